"""How many devices of a class the claims of a queue may have, and how much of their capacities: `deviceclass/<class>` and `<dimension>.deviceclass/<class>` in its capability."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pumice.api import names, quantity
from pumice.framework.extensions import PERMIT, Vote, reject
from pumice.framework.runs import Step
from pumice.model import statuses
from pumice.model.devices import amounts
from pumice.plugins.capacity.claim_counts import COUNT, ClaimCounts, asked
from pumice.plugins.sharing import evictable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from pumice.framework.runs import Run
    from pumice.framework.session import Session
    from pumice.framework.subject import Demand
    from pumice.model.devices.wanted import ClaimUse
    from pumice.model.job import Job
    from pumice.model.queue import Queue
    from pumice.model.task import Task
    from pumice.plugins.capacity.claim_counts import Held

CLASS: Final = "deviceclass/"
_INSIDE: Final = ".deviceclass/"
Quotas = dict[tuple[str, str], tuple[int, str]]


def stated(queue: Queue, *, dimensions: bool) -> Quotas:
    """Read the quotas of a queue: the amount, and how it is written; one that cannot be read is none."""
    found: Quotas = {}
    for key, text in queue.object.spec.capability.items() if queue.object is not None else ():
        dimension, inside, name = key.rpartition(_INSIDE)
        if key.startswith(CLASS):
            dimension, inside, name = COUNT, CLASS, key.removeprefix(CLASS)
        if not inside or (dimension and not dimensions):
            continue
        try:
            found[name, dimension] = (amounts.nanos(text), str(text))
        except quantity.QuantityError:
            continue
    return found


class DeviceQuotas:
    """What the claims of each queue that has quotas, and of those below it, ask for or have, and whether more may."""

    def __init__(self, session: Session, above: Callable[[str], Sequence[Queue]], *, dimensions: bool) -> None:
        cluster = session.cluster
        self._session = session
        self._cluster = cluster
        self._devices = cluster.devices
        self._above = above
        self.limits = {
            queue.name: quotas for queue in cluster.queues.values() if (quotas := stated(queue, dimensions=dimensions))
        }
        self._dimensions = dimensions
        self._counts = {name: ClaimCounts() for name in self.limits}
        self._promises: dict[str, Job] | None = None  # groups that were let in, from the first vote on
        self._lightened = False
        self._evictable: dict[tuple[str, str, int], Held] = {}
        for task in cluster.tasks.values() if self.limits else ():
            if task.node is not None and task.status in statuses.PLACED:
                self._count(task, 1, going=task.status in statuses.GOING)

    # -- counting ----------------------------------------------------------------------------------------------

    def follow(self, runs: Sequence[Run], sign: int) -> None:
        """Count what pods ask for that are placed, and what those give back that are not any more."""
        for run in runs:
            if run.tasks[0].shape.constraint_class.has_device_claims:
                for task in run.tasks:
                    self._count(task, sign, going=False)
                    if run.step is Step.EVICT:
                        self._count(task, -sign, going=True)

    def _count(self, task: Task, sign: int, *, going: bool) -> None:
        queue = task.job.queue if task.job is not None else ""
        for key, use in self._uses((task,)).items():
            for counts in self._limited(queue):
                known = counts.claims.get(key)
                units = asked(self._devices, use) if known is None else known.amounts
                counts.change(key, units, task, sign, going=going)

    def _limited(self, queue: str) -> Iterable[ClaimCounts]:
        return (self._counts[each.name] for each in self._above(queue) if each.name in self.limits)

    def _uses(self, tasks: Iterable[Task]) -> dict[str, ClaimUse]:
        return {
            use.key: use
            for task in tasks
            if task.shape.constraint_class.has_device_claims
            for use in self._devices.uses_of(task.pod, self._devices.mapped.natives(task.node))
        }

    # -- judging -----------------------------------------------------------------------------------------------

    def refuse(self, queue: Queue, demand: Demand) -> str | None:
        """Say which quota of a queue, or of one above it, the claims of tasks would exceed; who only waits counts evictions as carried out."""
        uses = self._uses(demand.tasks)
        for each in self._above(queue.name) if uses else ():
            quotas = self.limits.get(each.name)
            if quotas is None:
                continue
            counts = self._counts[each.name]
            more = self._more(use for key, use in uses.items() if not counts.has(key, going=not demand.waits))
            problem = self._beyond(quotas, counts.staying if demand.waits else counts.there, more)
            if problem:
                whose = "" if each is queue else f" of queue {each.name} above it"
                return f"beyond the limit{whose}: {problem}"
        return None

    def _more(self, uses: Iterable[ClaimUse]) -> Held:
        more: Held = {}
        for use in uses:
            for kind, units in asked(self._devices, use).items():
                more[kind] = more.get(kind, 0) + units
        return more

    def _beyond(self, quotas: Quotas, held: Mapping[tuple[str, str], int], more: Held) -> str:
        listed = {name for name, _ in quotas}
        for (name, dimension), units in sorted(more.items()):
            if name not in listed or (dimension and not self._dimensions):
                continue
            key = f"{dimension}{_INSIDE}{name}" if dimension else f"{CLASS}{name}"
            quota = quotas.get((name, dimension))
            if quota is None or (not dimension and not quota[0]):
                if dimension:
                    return f"its claims ask for {key}, of which the queue's capability says nothing"
                continue
            limit, text = quota
            used = held.get((name, dimension), 0)
            if used + units > limit:
                shown = [amounts.written(each, text) for each in (used, units)]
                return f"{key} {shown[0]} held, {shown[1]} asked for, {text} allowed"
        return ""

    # -- letting jobs in ---------------------------------------------------------------------------------------

    def vote(self, job: Job) -> Vote:
        """Vote whether the claims of a job's minimum fit its queue and those above it, beside what they hold and have let in."""
        uses = self._uses(minimum(job))
        if not uses:
            return PERMIT
        self._promise_all()
        for each in self._above(job.queue):
            if each.name not in self.limits:
                continue
            problem = self._kept_out(each, uses)
            if problem and self._lighten():
                problem = self._kept_out(each, uses)
            if problem and (freed := self._freed(each, job)):
                problem = self._kept_out(each, uses, freed)
            if problem:
                return reject(f"queue {each.name}: claims exceed its room: {problem}")
        return PERMIT

    def _kept_out(self, queue: Queue, uses: Mapping[str, ClaimUse], freed: Held | None = None) -> str:
        counts, quotas = self._counts[queue.name], self.limits[queue.name]
        held = counts.with_promised
        if freed:
            held = {kind: units - freed.get(kind, 0) for kind, units in held.items()}
        return self._beyond(quotas, held, self._more(use for key, use in uses.items() if key not in counts.claims))

    def let_in(self, job: Job) -> None:
        """Count a group that was let in."""
        if self._promises is not None:
            self._promise(job)

    def _promise_all(self) -> None:
        if self._promises is None:
            self._promises = {}
            for job in self._cluster.phases.jobs(names.PHASE_INQUEUE):
                self._promise(job)

    def _promise(self, job: Job, *, kept: bool = True) -> None:
        for key, use in self._uses(minimum(job)).items():
            for counts in self._limited(job.queue):
                counts.promise(key, asked(self._devices, use), kept=kept)
        if self._promises is not None and kept:
            self._promises[job.key] = job

    def _lighten(self) -> bool:
        """Leave groups out that can never run; tells whether that made a difference."""
        if self._lightened or self._promises is None:
            return False
        self._lightened = True
        never = [job for job in self._promises.values() if self._session.never_running.passes_over(job)]
        for job in never:
            self._promise(job, kept=False)
        return bool(never)

    def _freed(self, queue: Queue, job: Job) -> Held:
        """Return what claims count for in a queue of which all pods could be evicted for a job."""
        key = (queue.name, job.queue, job.priority)
        if key not in self._evictable:
            room = evictable.shared(self._session)
            freed = self._evictable[key] = {}
            for standing in self._counts[queue.name].claims.values():
                users = (*standing.staying.values(), *standing.going.values())
                if users and all(task.status in statuses.GOING or room.may_take(job, task) for task in users):
                    for kind, units in standing.amounts.items():
                        freed[kind] = freed.get(kind, 0) + units
        return self._evictable[key]


def minimum(job: Job) -> list[Task]:
    """Return the pods with claims that a group needs: of each role as many as it says, else the first of all by name."""
    tasks = sorted(
        (task for task in job.tasks.values() if task.shape.constraint_class.has_device_claims),
        key=lambda task: (task.name, task.uid),
    )
    if not job.min_task_member:
        return tasks[: job.min_member]
    left = dict(job.min_task_member)
    chosen: list[Task] = []
    for task in tasks:
        if left.get(task.role, 0) > 0:
            left[task.role] -= 1
            chosen.append(task)
    return chosen
