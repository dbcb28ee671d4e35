"""The end of the demonstration: how each job fared, and with numbers why those that wait still do."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from pumice.api import duration
from pumice.cli.demo import snapshot
from pumice.cli.demo.changes import cpu
from pumice.cli.demo.snapshot import State

if TYPE_CHECKING:
    from pumice.cli.demo.play import Play
    from pumice.cli.demo.snapshot import Job, Snapshot


def write(play: Play, seen: Snapshot, *, stopped: bool) -> list[str]:
    """Give the lines of the summary."""
    head = "Stopped after" if stopped else "Finished after"
    cycles = f"{seen.cycle} cycles ({play.busy} with work to do)"
    total = f"{seen.binds} pods bound, {seen.evictions} evicted"
    lines = [f"{head} {snapshot.clock(seen.time)} of simulated time, {cycles}: {total}.", ""]
    width = max((len(job.title) for job in seen.jobs), default=0)
    lines += [f"  {job.title:<{width}}  {job.phase:<9}  {_fate(job)}" for job in seen.jobs]
    for job in seen.jobs:
        if job.waits:
            lines += ["", *_why(job, seen, play.record.explain(job.key))]
    return lines


def _fate(job: Job) -> str:
    """Say when a job started, and whether it had to wait."""
    starts = sorted(member.started for member in job.members if member.started is not None)
    total = len(job.members)
    if not starts:
        return f"0 of {total} pods started, {job.minimum} needed at once"
    if total == 1:
        return f"started at {snapshot.clock(starts[0])}"
    first = sum(start == starts[0] for start in starts)
    waited = (starts[0] - job.created) // duration.SECOND
    text = f"{first} of {total} pods started together at {snapshot.clock(starts[0])}"
    text += f" after waiting {waited} s" if waited else ""
    return text + (f", {len(starts) - first} more until {snapshot.clock(starts[-1])}" if len(starts) > first else "")


def _why(job: Job, seen: Snapshot, explanation: str) -> list[str]:
    """Explain why a job waits: by arithmetic, by the group's condition, and by the decision record."""
    lines = [f"Why {job.title} waits", *_arithmetic(job, seen)]
    if job.condition:
        lines.append(f"  Its PodGroup says {job.condition}")
    return [*lines, "  The decision record says", *(f"    {line}" for line in explanation.splitlines())]


def _arithmetic(job: Job, seen: Snapshot) -> list[str]:
    """Compare what the minimum asks for with what the nodes have, empty and now."""
    asks = {member.cpu for member in job.members if member.state is State.WAITING}
    if len(asks) != 1 or not (each := asks.pop()):
        return []
    total = sum(node.cpu for node in seen.nodes)
    free = total - sum(node.used for node in seen.nodes)
    empty = sum(node.cpu // each for node in seen.nodes)
    now = sum((node.cpu - node.used) // each for node in seen.nodes)
    needs = f"It needs {job.minimum} pods of {cpu(each)} at the same time, {cpu(job.minimum * each)} in all"
    lines = [f"  {needs}; the {len(seen.nodes)} nodes have {cpu(total)}, of which {cpu(free)} are free now."]
    if empty >= job.minimum:
        return [*lines, f"  {now} such pods fit now, {job.minimum - now} too few. A gang starts whole or not at all."]
    return [
        *lines,
        f"  Even on empty nodes only {empty} such pods fit, {job.minimum - empty} too few. A gang starts whole or not at all, so none is bound.",
        f"  It starts once there is room for {job.minimum - empty} more, on another node, or if its minMember is {empty} or less.",
    ]


def fold(lines: list[str], width: int) -> list[str]:
    """Break long lines between words, going on a little further right than they began."""
    folded: list[str] = []
    for line in lines:
        indent = " " * (len(line) - len(line.lstrip()) + 2)
        folded += textwrap.wrap(line, width, subsequent_indent=indent) or [""]
    return folded
