"""A comparison as tables: jobs that fare differently, queues that hold something else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pumice.study.comparing import Comparison, JobOutcome

LATELY: Final = 10
NAMED: Final = 3
MOST: Final = 50


def lines(found: Comparison) -> Iterator[str]:
    """Write a comparison out."""
    if not found.differs:
        yield f"no difference: {found.same} jobs are as before; {_ran(found)}"
        return
    if found.jobs:
        rows = [
            (each.job, each.after.queue or each.before.queue, _fares(each.before), _fares(each.after))
            for each in found.jobs[:MOST]
        ]
        yield from _table(("JOB", "QUEUE", "BEFORE", "AFTER"), rows)
        if len(found.jobs) > MOST:
            yield f"and {len(found.jobs) - MOST} more jobs; -o json has all"
        yield ""
    if found.queues:
        yield from _table(
            ("QUEUE", "RESOURCE", "BEFORE", "AFTER"),
            [(each.queue, each.resource, each.before, each.after) for each in found.queues],
        )
        yield ""
    differ = f"{len(found.jobs)} jobs differ" if len(found.jobs) != 1 else "1 job differs"
    yield (
        f"{differ}, {found.same} as before; "
        f"binds {found.binds[0]} → {found.binds[1]}, evictions {found.evictions[0]} → {found.evictions[1]}; {_ran(found)}"
    )


def _ran(found: Comparison) -> str:
    """Say for how long both were simulated, and whether more would happen."""
    cycles = f"{found.cycles} cycle{'s' if found.cycles != 1 else ''} ({found.seconds} s)"
    if found.settled:
        return f"after {cycles} nothing more happens"
    binds, evictions = found.lately
    return f"stopped after {cycles} while more was happening: {binds} binds and {evictions} evictions in the last {LATELY} cycles; --cycles N runs on"


def _fares(outcome: JobOutcome) -> str:
    if not outcome.pods:
        text: str = outcome.standing + (f" after {outcome.seconds} s" if outcome.seconds else "")
    else:
        where = f" on {_nodes(outcome)}" if outcome.nodes else ""
        text = f"{outcome.standing} ({outcome.placed} of {outcome.pods}{where})"
    if outcome.evicted:
        text += f", {len(outcome.evicted)} evicted"
    return text


def _nodes(outcome: JobOutcome) -> str:
    names = sorted(set(outcome.nodes.values()))
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + more


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    widths = [max(len(row[column]) for row in (head, *rows)) for column in range(len(head))]
    for row in (head, *rows):
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
