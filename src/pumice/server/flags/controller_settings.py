"""What the flags of `pumice controllers` come to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from pumice.server.flags import chosen_controllers, controller_flags, process_settings
from pumice.server.flags.process_settings import ProcessSettings, SettingsError

if TYPE_CHECKING:
    from collections.abc import Mapping


class Work(msgspec.Struct, frozen=True, kw_only=True):
    """What controllers do, whatever process runs them; `chosen` are their names."""

    chosen: tuple[str, ...]
    scheduler_names: tuple[str, ...] = ("volcano",)
    workers: int = 64
    max_requeues: int = 15
    inherit: bool = True
    workloads: bool = True

    @property
    def companions(self) -> bool:
        """Whether pods that nobody grouped are given a group."""
        return chosen_controllers.COMPANIONS in self.chosen


class ControllerSettings(ProcessSettings, frozen=True, kw_only=True):
    """The flags that a process of controllers acts on."""

    controllers: tuple[str, ...]
    scheduler_name: tuple[str, ...]
    worker_threads: int
    max_requeue_num: int
    inherit_owner_annotations: bool

    @property
    def work(self) -> Work:
        """What the controllers do."""
        return Work(
            chosen=chosen_controllers.chosen(self.controllers),
            scheduler_names=self.scheduler_name,
            workers=self.worker_threads,
            max_requeues=self.max_requeue_num,
            inherit=self.inherit_owner_annotations,
            workloads=self.gates.get("WorkLoadSupport", True),
        )


def read(given: Mapping[str, Any]) -> ControllerSettings:
    """Put values, by flag name, over the defaults, and check them; raise `SettingsError` for the first that is wrong."""
    values = {flag.field: given.get(flag.name, flag.default) for flag in controller_flags.FLAGS}
    unheard = process_settings.unheard(controller_flags.FLAGS, given)
    fields = {name: value for name, value in values.items() if name in ControllerSettings.__struct_fields__}
    try:
        settings = msgspec.convert({**fields, "unheard": unheard}, ControllerSettings)
    except msgspec.ValidationError as error:
        raise SettingsError(str(error)) from None
    process_settings.check(settings)
    if settings.worker_threads < 1:
        raise SettingsError("--worker-threads must be above 0, or nothing would be worked on")
    if not settings.work.chosen:
        raise SettingsError("--controllers: none is left to run")
    return settings


class SchedulerFlags(Protocol):
    """What of a scheduler's own settings says which controllers run beside it."""

    @property
    def controllers(self) -> str:
        """Their names, with or without signs."""

    @property
    def shaping(self) -> Mapping[str, Any]:
        """Flags that say what the scheduler looks at."""

    @property
    def gates(self) -> Mapping[str, bool]:
        """Feature gates."""


def beside_scheduler(settings: SchedulerFlags) -> Work | None:
    """Give what controllers do in the scheduler's own process, None if it runs none."""
    words = tuple(part.strip() for part in settings.controllers.split(",") if part.strip())
    if not words:
        return None
    found = chosen_controllers.chosen(words)
    if not found:
        raise SettingsError("--controllers: none is left to run")
    return Work(
        chosen=found,
        scheduler_names=tuple(settings.shaping["scheduler-name"]),
        workloads=settings.gates.get("WorkLoadSupport", True),
    )
