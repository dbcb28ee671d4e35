"""The rows of queues, with their groups counted by phase: nobody writes these counts into a queue's status."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pumice.api import names
from pumice.cli.volcano import columns
from pumice.cli.volcano.columns import Column
from pumice.sim import structure

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

OPEN: Final = "Open"
PHASES: Final = ("Inqueue", "Pending", "Running", "Unknown", "Completed")

Counts = dict[str, dict[str, int]]


def counted(groups: Iterable[Mapping[str, Any]]) -> Counts:
    """Count the groups of each queue by phase; one without a phase waits, one without a queue is in the default one."""
    counts: Counts = {}
    for group in groups:
        queue = str(structure.mapping(group, "spec").get("queue") or names.DEFAULT_QUEUE)
        phase = str(structure.mapping(group, "status").get("phase") or names.PHASE_PENDING)
        of_queue = counts.setdefault(queue, dict.fromkeys(PHASES, 0))
        if phase in of_queue:
            of_queue[phase] += 1
    return counts


def table(counts: Counts | None) -> tuple[Column, ...]:
    """Give the columns of queues whose groups were counted, or may not be read."""
    return (
        Column("Name", columns.name, 25),
        Column("Weight", columns.field("spec", "weight", otherwise=1), 8),
        # A queue whose state nobody wrote is open: no controller is needed to make it usable.
        Column("State", columns.field("status", "state", otherwise=OPEN), 8, is_state=True),
        Column("Parent", columns.field("spec", "parent"), 8),
        *(Column(phase, _counting(counts, phase), 8) for phase in PHASES),
    )


def _counting(counts: Counts | None, phase: str) -> Callable[[columns.Manifest, int], object]:
    if counts is None:
        return lambda _queue, _: "?"
    return lambda queue, _: counts.get(columns.name(queue), {}).get(phase, 0)


def _reclaimable(queue: Mapping[str, Any], _: int) -> str:
    return "false" if structure.mapping(queue, "spec").get("reclaimable") is False else "true"


WIDE: Final = (
    Column("Reclaimable", _reclaimable, gap=3),
    Column("Allocated", columns.amounts("status", "allocated"), gap=3),
    Column("Deserved", columns.amounts("spec", "deserved"), gap=3),
    Column("Guarantee", columns.amounts("spec", "guarantee", "resource"), gap=3),
    Column("Capability", columns.amounts("spec", "capability"), gap=3),
    Column("Age", columns.age, moves=True),
)
