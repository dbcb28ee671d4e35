"""Where decisions leave a session: binds, looked at once more before they go, evictions, and gates that are taken off."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Protocol

from pumice.framework.runs import leaving_order
from pumice.framework.told_session import ToldSession
from pumice.model.statuses import Status

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pumice.framework.combining import Refusals
    from pumice.framework.observing import Observer
    from pumice.framework.runs import Run
    from pumice.model.job import Job
    from pumice.model.nodes import NodeRecord
    from pumice.model.task import Task


class Outlet(Protocol):
    """Where decisions leave the session."""

    def overtaken(self, tasks: Sequence[Task]) -> Mapping[str, str]:
        """Say by uid which tasks cannot be bound any more, by what has become known since the cycle began, and why."""

    def bind(self, tasks: Sequence[Task]) -> Mapping[str, str]:
        """Send binds on their way; returns the tasks that cannot be sent, by uid, with the reason."""

    def evict(self, task: Task, reason: str) -> None:
        """Send an eviction on its way."""

    @property
    def takes_gates_off(self) -> bool:
        """Whether gates that wait for a queue are taken off here."""

    def take_gate_off(self, task: Task) -> bool:
        """Have the queue's gate taken off a pod; tells whether that is news."""


class SendingSession(ToldSession, Protocol):
    """What sending needs of a session."""

    progressed: bool

    @property
    def observer(self) -> Observer:
        """Who counts evictions."""

    @property
    def pre_bind(self) -> Refusals[[Task, NodeRecord], str]:
        """Who may object to a bind as the last thing."""


class Sender:
    """Sends what was decided on its way, and has the cluster know of it."""

    __slots__ = ("_outlet", "_session")

    def __init__(self, session: SendingSession, outlet: Outlet) -> None:
        self._session = session
        self._outlet = outlet

    @property
    def takes_gates_off(self) -> bool:
        """Whether gates that wait for a queue are taken off here."""
        return self._outlet.takes_gates_off

    def withheld(self, tasks: Sequence[Task], *, apart: bool = False) -> Mapping[str, str]:
        """Look once more before binds leave; where one task of a gang is overtaken, or one that it cannot do without is objected to, all of the gang's that would leave now stay.

        Tasks that leave `apart` are beyond the minimum of their gang, and none of them is needed by another.
        """
        overtaken = self._outlet.overtaken(tasks)
        refused = {**self._objections(tasks), **overtaken} if self._session.pre_bind.active else overtaken
        if not refused:
            return refused
        lost = Counter(task.job_key for task in tasks if task.uid in refused)
        reasons: dict[str, str] = {}
        for task in tasks:
            job = task.job
            spared = job is not None and job.tally.ready - lost[task.job_key] >= job.min_member
            if not apart and (task.uid in overtaken or (task.uid in refused and not spared)):
                reasons.setdefault(task.job_key, refused[task.uid])
        for key, reason in reasons.items():
            self._session.record.judge(key, "commit", f"not bound: {reason}; it is decided anew in the next cycle")
        for task in tasks:
            if task.uid in refused and task.job_key not in reasons:
                self._session.record.say("commit", f"{task.key}: not bound: {refused[task.uid]}")
        return {
            task.uid: reasons.get(task.job_key) or refused[task.uid]
            for task in tasks
            if task.job_key in reasons or task.uid in refused
        }

    def send_binds(self, tasks: Sequence[Task]) -> Mapping[str, str]:
        """Hand allocated tasks over to be bound; returns those that were refused."""
        refused = self._outlet.bind(tasks)
        sent = [task for task in tasks if task.uid not in refused] if refused else list(tasks)
        if sent:
            self._session.cluster.apply(sent, [task.node for task in sent], Status.BINDING)
            self._session.record.binds += len(sent)
            self._session.progressed = True
        if self._session.findings.last_transactions:
            for task in sent:
                self._session.findings.forget_transaction(task)
        for uid, reason in refused.items():
            self._session.record.say("commit", f"{self._session.cluster.tasks[uid].key}: not bound: {reason}")
        return refused

    def dispatch(self, job: Job) -> None:
        """Bind every allocated task of a job, also those that earlier actions left held; equal ones together."""
        allocated = [task for task in job.tasks.values() if task.status == Status.ALLOCATED]
        stays = self.withheld(allocated)
        equal: dict[int, list[Task]] = {}
        for task in allocated:
            if task.uid not in stays:
                equal.setdefault(id(task.shape), []).append(task)
        for tasks in equal.values():
            self.send_binds(tasks)

    def _objections(self, tasks: Sequence[Task]) -> dict[str, str]:
        """Ask the plugins, as the last thing before a bind is sent, what speaks against it."""
        asked = {task.uid: self._session.pre_bind(task, task.node) for task in tasks if task.node is not None}
        return {uid: reason for uid, reason in asked.items() if reason is not None}

    def send_evictions(self, runs: Sequence[Run]) -> None:
        """Hand evictions over, in an order that does not depend on how the victims were found."""
        by_uid = {task.uid: run for run in runs for task in run.tasks}
        victims = sorted([task for run in runs for task in run.tasks], key=leaving_order)
        if not victims:
            return
        for task in victims:
            run = by_uid[task.uid]
            claimant = run.claimant.job if run.claimant is not None else None
            self._outlet.evict(task, run.why or run.reason)
            self._session.observer.took(
                run.reason, task.job.queue if task.job else "", claimant.queue if claimant else ""
            )
        # A delete may be refused: until the pod is terminating it counts in its queue, for whoever is to be bound.
        self._session.cluster.apply(victims, [task.node for task in victims], Status.EVICTING)
        self._session.record.evictions += len(victims)
        self._session.progressed = True

    def take_gate_off(self, task: Task) -> bool:
        """Have the queue's gate taken off a pod; tells whether that was not asked for before."""
        return self._outlet.take_gate_off(task)
