"""The rows of Kubernetes' own gangs: PodGroups of `scheduling.k8s.io`, with how many of their pods stand how and what the scheduler says of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pumice.api import names
from pumice.cli.volcano import columns
from pumice.cli.volcano.columns import Column
from pumice.framework import reason_keys
from pumice.sim import structure

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    Manifest = Mapping[str, Any]

NAMESPACE: Final = Column("Namespace", columns.namespace, gap=3)
_SCHEDULED: Final = "PodGroupScheduled"
_PHASES: Final = (
    names.PHASE_PENDING,
    names.PHASE_RUNNING,
    names.PHASE_SUCCEEDED,
    names.PHASE_FAILED,
)


def table(pods: Iterable[Manifest], *, everywhere: bool) -> tuple[Column, ...]:
    """Give the columns, with the counts of some pods."""
    counts: dict[tuple[str, str], dict[str, int]] = {}
    for pod in pods:
        named = structure.mapping(pod, "spec", "schedulingGroup").get("podGroupName")
        if named:
            of_group = counts.setdefault((columns.namespace(pod), str(named)), {})
            phase = str(structure.mapping(pod, "status").get("phase") or names.PHASE_PENDING)
            of_group[phase] = of_group.get(phase, 0) + 1

    def counted(phase: str) -> Column:
        def cell(group: Manifest, _: int) -> int:
            return counts.get((columns.namespace(group), columns.name(group)), {}).get(phase, 0)

        return Column(phase, cell, gap=3)

    first = (NAMESPACE,) if everywhere else ()
    return (*first, *_COLUMNS, *map(counted, _PHASES), Column("Status", _status, gap=3, is_state=True), _REASON)


def chosen(groups: Iterable[Manifest], *, queue_name: str, part: str) -> list[Any]:
    """Choose the groups whose names have a part, and of one queue if that is asked for."""
    found = [group for group in groups if part in columns.name(group) and queue_name in ("", _queue(group))]
    return sorted(found, key=lambda group: (columns.namespace(group), columns.name(group)))


def _queue(group: Manifest, _: int = 0) -> str:
    return str(structure.mapping(group, "metadata", "annotations").get(names.QUEUE_NAME) or names.DEFAULT_QUEUE)


def _minimum(group: Manifest, _: int) -> object:
    gang = structure.mapping(group, "spec", "schedulingPolicy").get("gang")
    return structure.mapping(gang).get("minCount", 1)


def _said(group: Manifest) -> Manifest:
    return structure.condition(group, _SCHEDULED) or {}


def _status(group: Manifest, _: int) -> str:
    return str(_said(group).get("reason") or columns.NONE)


def _reason(group: Manifest, _: int) -> str:
    said = _said(group)
    return "" if said.get("status") == "True" else reason_keys.cause(str(said.get("message") or ""))


_COLUMNS: Final = (
    Column("Name", columns.name, gap=3),
    Column("Queue", _queue, gap=3),
    Column("Age", columns.age, moves=True, gap=3),
    Column("Min", _minimum, gap=3),
)
_REASON: Final = Column("Reason", _reason, gap=0)
