"""How long jobs are expected to run, and when pods are expected to end."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

from pumice.api import duration, names
from pumice.model.reading import instant, positive_duration
from pumice.model.statuses import FINISHED, GOING
from pumice.plugins.timeline.profile import NEVER

if TYPE_CHECKING:
    from collections.abc import Callable

    from pumice.model.cluster import Cluster
    from pumice.model.job import Job
    from pumice.model.queue import Queue
    from pumice.model.task import Task

MINUTE = duration.MINUTE
DEFAULT_GRACE = 30 * duration.SECOND
REMEMBERED = 10_000  # kinds of runs of which the last two are known
_GENERATED = re.compile(r"-(?:[a-z0-9]{5}|[0-9]{1,10}|[a-f0-9]{8,10})$")


class Estimate(msgspec.Struct, frozen=True, gc=False):
    """How long a job is expected to run, where that is said, and what could not be read."""

    length: int | None
    basis: str
    unreadable: str = ""
    ends_by: int = NEVER  # when its Job ends it, however long it has run by then

    def run(self, since: int) -> int | None:
        """Return how long it would run if it started at some time, or did."""
        if since < self.ends_by < NEVER:
            return self.ends_by - since if self.length is None else min(self.length, self.ends_by - since)
        return self.length


class Estimates:
    """Finds estimates, kept as long as a group and its pods say the same."""

    def __init__(self, default: int | None, *, learn: bool) -> None:
        self._default = default
        self.learns = learn
        self._known: dict[str, tuple[object, int, object, Estimate]] = {}
        self._runs: dict[tuple[str, str, str], tuple[int, ...]] = {}
        self._started: dict[str, dict[str, int]] = {}

    def of(self, cluster: Cluster, job: Job) -> Estimate:
        """Return the estimate of a job."""
        queue = cluster.queues.get(job.queue)
        stated = (queue.annotations.get(names.DEFAULT_ESTIMATE) if queue is not None and not queue.bad else None) or ""
        learnt = self._runs.get(owner(job)) if self.learns else None
        known = self._known.get(job.key)
        if known is None or known[0] is not job.group or known[1] != job.version or known[2] != (stated, learnt):
            if len(self._known) > 2 * len(cluster.jobs) + 64:
                self._known = {key: kept for key, kept in self._known.items() if key in cluster.jobs}
            found = self._find(job, stated, learnt)
            known = self._known[job.key] = (job.group, job.version, (stated, learnt), found)
        return known[3]

    def _find(self, job: Job, stated: str, learnt: tuple[int, ...] | None) -> Estimate:
        """Take the first that is said: on the group, on its pods, by the deadline of its pods, by its queue, by earlier runs, by default."""
        cap = _deadline(job)
        unreadable: list[str] = []

        def read(text: str | None, where: str) -> int | None:
            value = positive_duration(text)
            if text and value is None:
                unreadable.append(_no_duration(where, names.ESTIMATE, text))
            return value

        length, basis = read(job.annotations.get(names.ESTIMATE), "annotation"), "its annotation"
        if length is None:
            said = [read(task.pod.metadata.annotations.get(names.ESTIMATE), "pod") for task in job.tasks.values()]
            length, basis = max((each for each in said if each is not None), default=None), "its pods"
        if length is None and cap is not None:
            length, basis = cap, "its pods' activeDeadlineSeconds"
        if length is None:
            length, basis = positive_duration(stated), f"queue {job.queue}"
        if length is None and learnt:
            length, basis = max(1, sum(learnt) // len(learnt)), f"{len(learnt)} earlier runs"
        if length is None:
            length, basis = self._default, "the default"
        if length is None:
            basis = "nobody says how long"
        elif cap is not None and cap < length:
            length, basis = cap, "its pods' activeDeadlineSeconds"
        ends_by, problem = _ends_by(job)
        unreadable += problem
        return Estimate(length, basis, unreadable[0] if unreadable else "", ends_by)

    # -- learning ----------------------------------------------------------------------------------------------

    def watch(self, cluster: Cluster, now: int, start: Callable[[Task], int]) -> bool:
        """Learn from jobs that have changed how long they ran, if that is asked for, and tell whether anything was learnt."""
        if not self.learns:
            return False
        learnt = False
        for key, job in cluster.dirty_jobs.items():
            running = [task for task in job.tasks.values() if task.node is not None and task.status not in FINISHED]
            if running:
                self._started[key] = {task.uid: start(task) for task in running}
            elif key in self._started and job.tasks and all(t.status in FINISHED for t in job.tasks.values()):
                self._note(job, now - min(self._started.pop(key).values()))
                learnt = True
        for key in [key for key in self._started if key not in cluster.jobs]:
            del self._started[key]
        return learnt

    def _note(self, job: Job, length: int) -> None:
        kind = owner(job)
        self._runs[kind] = (*self._runs.pop(kind, ()), max(1, length))[-2:]
        while len(self._runs) > REMEMBERED:
            del self._runs[next(iter(self._runs))]


def owner(job: Job) -> tuple[str, str, str]:
    """Return what earlier runs of a job have in common with it: namespace, user, and the name of its owner without what was generated."""
    metadata = job.group.metadata if job.group is not None else None
    name = (
        next((each.name for each in metadata.owner_references if each.controller), job.name) if metadata else job.name
    )
    while (match := _GENERATED.search(name)) is not None:
        name = name[: match.start()]
    user = job.annotations.get(names.USER, "")
    if not user and metadata is not None:
        user = metadata.labels.get(names.USER, "")
    return job.namespace, user, name


def unreadable_default(queue: Queue) -> str:
    """Say what is wrong with the estimate that a queue gives its jobs; empty if nothing is."""
    text = queue.annotations.get(names.DEFAULT_ESTIMATE)
    return _no_duration("annotation", names.DEFAULT_ESTIMATE, text) if text and positive_duration(text) is None else ""


def _no_duration(where: str, name: str, text: str) -> str:
    return f"{where} {name} {text[:40]!r} is no duration above 0, such as 2h"


def planned_end(started: int, length: int | None, now: int) -> int:
    """Return when a pod is expected to end: after its estimate; once that is exceeded a minute later, then two, four and so on, never more than the estimate."""
    if length is None:
        return NEVER
    end, step = started + length, min(MINUTE, length)
    while end <= now:
        if step >= length:
            return min(NEVER, end + ((now - end) // length + 1) * length)
        end, step = end + step, min(2 * step, length)
    return min(NEVER, end)


def departure(task: Task, now: int) -> int:
    """Return when a pod that is going should be gone; one that should be is taken for going any moment."""
    told = instant(task.pod.metadata.deletion_timestamp)
    if told:
        return max(told, now + 1)
    grace = task.pod.spec.termination_grace_period_seconds
    return now + (DEFAULT_GRACE if grace is None else max(1, grace * duration.SECOND))


def is_going(task: Task) -> bool:
    """Tell whether a pod is being deleted."""
    return task.status in GOING


def _ends_by(job: Job) -> tuple[int, list[str]]:
    """Return when a job is ended by whoever owns it, and what is wrong with what is said of that."""
    text = job.annotations.get(names.ENDS_BY)
    if not text:
        return NEVER, []
    if found := instant(text):
        return found, []
    return NEVER, [f"annotation {names.ENDS_BY} {text[:40]!r} is no time such as 2026-01-31T12:00:00Z"]


def _deadline(job: Job) -> int | None:
    """Return the longest time after which the kubelet ends a pod of a job, if it ends all of them."""
    found = [task.pod.spec.active_deadline_seconds for task in job.tasks.values()]
    given = [each * duration.SECOND for each in found if each is not None and each > 0]
    return max(given) if given and len(given) == len(found) else None
