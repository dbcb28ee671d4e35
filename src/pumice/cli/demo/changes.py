"""What changed between two moments, told in one line per job."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pumice.api import quantity
from pumice.cli.demo.sight import State

if TYPE_CHECKING:
    from pumice.cli.demo.sight import Job, Sight


class Change(msgspec.Struct, frozen=True):
    """Something that happened to a job."""

    time: int
    job: str
    title: str
    text: str


def between(before: Sight | None, after: Sight) -> list[Change]:
    """Tell what is new, job by job."""
    known = {job.key: job for job in before.jobs} if before else {}
    told = []
    for job in after.jobs:
        texts = [_submitted(job)] if job.key not in known else []
        texts += _moved(known.get(job.key), job, after.time)
        told += [Change(after.time, job.key, job.title, text) for text in texts]
    return told


def _submitted(job: Job) -> str:
    asks = {member.cpu for member in job.members}
    each = " and ".join(f"{cpu(ask)}" if ask else "no requests" for ask in sorted(asks))
    size = f"{_pods(len(job.members))} of {each}" if asks != {0} else f"{_pods(len(job.members))} without requests"
    needed = "all or none" if job.minimum == len(job.members) else f"{job.minimum} needed"
    return f"submitted to queue {job.queue}: {size}" + (f", {needed}" if len(job.members) > 1 else "")


def _moved(before: Job | None, after: Job, now: int) -> list[str]:
    """Tell which members were placed or ended, or else why the job waits if that is news."""
    old = {member.name: member.state for member in before.members} if before else {}
    placed = [m for m in after.members if m.node and old.get(m.name, State.WAITING) is State.WAITING]
    ended = [m for m in after.members if m.state in (State.DONE, State.FAILED) and old.get(m.name) is not m.state]
    texts = []
    if placed:
        nodes = sorted({member.node for member in placed})
        has = len(after.members) - after.count(State.WAITING)
        waited = (now - after.created) // 1_000_000
        since = f" after {waited} s" if waited and (before is None or before.waits) else ""
        texts.append(
            f"{_pods(len(placed))} placed{since} on {', '.join(nodes)}; has {has} of {len(after.members)}, needs {after.minimum}"
        )
    if ended:
        left = after.count(State.PLACED, State.RUNNING)
        texts.append(f"{_pods(len(ended))} finished, {left} still running")
    if not texts and after.waits and after.reason and (before is None or before.reason != after.reason):
        texts.append(f"waits: {after.reason}")
    return texts


def cpu(milli: int) -> str:
    """Write millicores as people say them."""
    return f"{quantity.format_milli(milli)} cpu"


def _pods(count: int) -> str:
    return f"{count} pod" if count == 1 else f"{count} pods"
