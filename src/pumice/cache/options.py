"""The scheduler's own flags, as far as they shape what it sees and decides."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from pumice.api import documents, names
from pumice.framework import shortcuts

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


QUEUE_ADMISSION = "SchedulingGatesQueueAdmission"
LISTS = frozenset({"scheduler_name", "node_selector", "feature_gates"})


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """Flags by name, `-` written as `_`."""

    scheduler_name: tuple[str, ...] = (names.SCHEDULER,)
    default_queue: str = names.DEFAULT_QUEUE
    node_selector: tuple[str, ...] = ()
    priority_class: bool = True
    enable_namespace_as_queue: bool = False
    minimum_feasible_nodes: int = 100
    minimum_percentage_nodes_to_find: int = 5
    percentage_nodes_to_find: int = 0
    feature_gates: tuple[str, ...] = ()
    reason_patience: int = 0
    """Microseconds for which a reason to wait must stand before it is written on a pod or group; for cycles that start at once, to which a gang arrives in parts."""
    queue_statuses: bool = True
    """Whether statuses of queues are written: decisions do not rest on them, and where nobody reads them each costs a cycle more than it is worth."""
    pod_reasons: bool = True
    """Whether pods are told why they wait, each of them; groups are in any case, and pods which node they are to get."""
    latest_reasons: bool = True
    """Whether somebody reads why groups wait as it changes; if not, those that were told once and still find too little room are left out of cycles, whatever they would be told now."""
    renews_numbers: bool = False
    """Whether numbers in what is said of whoever waits are written anew as they change; for clusters that people look at."""
    plain: bool = False
    """Whether no shortcut is taken: the same decisions, the long way."""

    @classmethod
    def from_flags(cls, flags: Mapping[str, Any]) -> Options:
        """Read flags as they are written on a command line, or raise a ValueError that names the one that is wrong."""
        known = {field.replace("_", "-"): field for field in cls.__struct_fields__}
        values: dict[str, Any] = {}
        for flag, value in flags.items():
            field = known.get(flag)
            if field is None:
                near = documents.nearest(flag, known)
                hint = f"; did you mean {near}?" if near else f"; known flags: {', '.join(sorted(known))}"
                raise ValueError(f"unknown flag {flag!r}{hint}")
            values[field] = [value] if isinstance(value, str) and field in LISTS else value
        try:
            options = msgspec.convert(values, cls)
        except msgspec.ValidationError as error:
            raise ValueError(f"flags: {error}") from None
        _check(options)
        return options

    @property
    def takes_gates_off(self) -> bool:
        """Whether gates that wait for a queue are taken off once the queue may take a pod on."""
        pairs = [entry.partition("=") for entry in self.feature_gates]
        return [value.lower() == "true" for name, _, value in pairs if name == QUEUE_ADMISSION][-1:] == [True]

    @property
    def shortcuts(self) -> shortcuts.Shortcuts:
        """Which shortcuts are taken."""
        return shortcuts.NONE if self.plain else shortcuts.ALL

    def selects(self, labels: Mapping[str, str]) -> bool:
        """Tell whether a node with these labels is ours."""
        pairs = [entry.split(":", 1) for entry in self.node_selector]
        return not pairs or any(labels.get(key) == value for key, value in pairs)


def _check(options: Options) -> None:
    if not options.scheduler_name or not all(options.scheduler_name):
        raise ValueError("flag scheduler-name: at least one name is needed, and none may be empty")
    _check_selector(options.node_selector)
    for entry in options.feature_gates:
        name, _, value = entry.partition("=")
        if not name or value.lower() not in ("true", "false"):
            raise ValueError(f"flag feature-gates: {entry!r} is not of the form Name=true or Name=false")
    for field in (
        "minimum_feasible_nodes",
        "minimum_percentage_nodes_to_find",
        "percentage_nodes_to_find",
        "reason_patience",
    ):
        if getattr(options, field) < 0:
            raise ValueError(f"flag {field.replace('_', '-')}: {getattr(options, field)} is negative")


def _check_selector(entries: Sequence[str]) -> None:
    for entry in entries:
        key, colon, _ = entry.partition(":")
        if not key or not colon:
            raise ValueError(f"flag node-selector: {entry!r} is not of the form label:value")
