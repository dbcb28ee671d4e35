"""What changed between two moments, told in one line per job."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pumice.api import duration, quantity
from pumice.cli.demo.snapshot import State

if TYPE_CHECKING:
    from pumice.cli.demo.snapshot import Job, Snapshot


class Change(msgspec.Struct, frozen=True):
    """Something that happened to a job."""

    time: int
    job: str
    title: str
    text: str


def opening(first: Snapshot) -> str:
    """Tell what there is at the start."""
    total = cpu(sum(node.cpu for node in first.nodes))
    return f"cluster: {len(first.nodes)} nodes with {total}, queues {', '.join(queue.name for queue in first.queues)}"


def between(before: Snapshot | None, after: Snapshot) -> list[Change]:
    """Tell what is new, job by job: first who has left room, then who came, found room or still waits."""
    known = {job.key: job for job in before.jobs} if before else {}
    told = [(job, text) for job in after.jobs for text in _ended(known.get(job.key), job)]
    for job in after.jobs:
        if job.key not in known:
            told.append((job, _submitted(job)))
        told += [(job, text) for text in _moved(known.get(job.key), job, after.time)]
    return [Change(after.time, job.key, job.title, text) for job, text in told]


def _submitted(job: Job) -> str:
    pods = _pods(len(job.members))
    largest = max((member.cpu for member in job.members), default=0)
    size = f"{pods} of {cpu(largest)}" if largest else f"{pods} without requests"
    needed = "all or none" if job.minimum == len(job.members) else f"{job.minimum} needed"
    return f"submitted to queue {job.queue}: {size}" + (f", {needed}" if len(job.members) > 1 else "")


def _ended(before: Job | None, after: Job) -> list[str]:
    """Tell which members have ended."""
    running = {m.name for m in before.members if m.state in (State.PLACED, State.RUNNING)} if before else set()
    ended = sum(member.name in running and member.state in (State.DONE, State.FAILED) for member in after.members)
    return [f"{_pods(ended)} finished, {len(running) - ended} still running"] if ended else []


def _moved(before: Job | None, after: Job, now: int) -> list[str]:
    """Tell which members were placed, or else why the job waits if that is news."""
    had = {m.name for m in before.members if m.state is not State.WAITING} if before else set()
    placed = [m for m in after.members if m.node and m.name not in had]
    if placed:
        nodes = sorted({member.node for member in placed})
        has = len(after.members) - after.count(State.WAITING)
        waited = (now - after.created) // duration.SECOND
        since = f" after {waited} s" if waited and (before is None or before.waits) else ""
        total = f"; has {has} of {len(after.members)}, needs {after.minimum}" if len(after.members) > 1 else ""
        return [f"{_pods(len(placed))} placed{since} on {', '.join(nodes)}{total}"]
    if after.waits and after.reason and (before is None or before.reason != after.reason):
        return [f"waits: {after.reason}"]
    return []


def cpu(milli: int) -> str:
    """Write millicores as people say them."""
    return f"{quantity.format_milli(milli)} cpu"


def _pods(count: int) -> str:
    return f"{count} pod" if count == 1 else f"{count} pods"
