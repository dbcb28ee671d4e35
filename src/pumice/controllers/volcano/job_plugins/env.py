"""The plugin env."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final

from pumice.controllers.volcano.job_plugins import flags, pods

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pumice.api import kinds
    from pumice.controllers.volcano.job_plugins.protocol import Beside, Place
    from pumice.controllers.volcano.jobs.reading import Job

_VARIABLES: Final = ("VK_TASK_INDEX", "VC_TASK_INDEX")


class Env:
    """Tells every container, init containers included, the index of its pod within its task: `VC_TASK_INDEX`, and `VK_TASK_INDEX` as older images read it."""

    name: ClassVar[str] = "env"
    makes: ClassVar[tuple[kinds.Kind, ...]] = ()

    def __init__(self, arguments: Sequence[str]) -> None:
        flags.parse(self.name, arguments, {})

    def objects(self, job: Job) -> list[Beside]:
        """Need nothing."""
        del job
        return []

    def complete(self, pod: dict[str, Any], place: Place) -> None:
        """Set the variables."""
        for container in pods.containers(pod, init=True):
            for variable in _VARIABLES:
                pods.set_variable(container, variable, str(place.index))
