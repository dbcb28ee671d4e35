"""Several cycles in a row with what nodes and controllers do between them, until a job has started or nothing more happens; then all of it is taken back.

A cycle is that of a rehearsal. What it decides is fed to the model as watches would tell of it: pods that are bound run, pods that are evicted go when their
grace is over and are made anew if somebody owns them, groups enter their phase. Time is virtual and jumps to what is due next.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import structs

from pumice.api import core, duration, kinds, names, timestamp
from pumice.cache import shadows
from pumice.framework import closing
from pumice.model import native_groups
from pumice.model.statuses import GOING
from pumice.study import quotas, staffing
from pumice.study.rehearsal import Ledger
from pumice.study.state import manifest
from pumice.study.verdicts import Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pumice.framework.reservations import Reservations
    from pumice.framework.session import Session
    from pumice.model.job import Job
    from pumice.model.task import Task
    from pumice.study.rehearsal import Outlet, Rehearsal, Replaced
    from pumice.study.staffing import Staff
    from pumice.study.verdicts import Target

CYCLES: Final = 40
"""A job that has not started after so many cycles in which something happened is not said to start."""
HORIZON: Final = 10 * duration.MINUTE
"""What is due later than this is not waited for."""
OVERDUE: Final = duration.MINUTE
"""A pod that should have gone so long ago is not expected to go: its node does not answer."""
_PERIOD: Final = duration.SECOND
_GRACE: Final = 30


class Play:
    """One run of a rehearsal into the future of one job."""

    def __init__(self, rehearsal: Rehearsal, target: Target, staff: Staff | None = None, *, last: bool = False) -> None:
        self._rehearsal, self._target = rehearsal, target
        self._crew = staffing.Crew(rehearsal, target.job, staff, last=last)
        self._ledger = Ledger(rehearsal)
        self._quotas = quotas.Quotas(rehearsal.cluster)
        self._now = rehearsal.now
        self._going: dict[str, tuple[core.Pod, int]] = {}  # uid -> a pod that is going, and when it is gone
        self._evicted: dict[str, str] = {}
        self._nodes: dict[str, str] = {}
        self._made = 0
        self._is_cut = False  # whether something would happen later than is looked at
        self.cycles = 0

    def run(self, changes: Iterable[Replaced] = ()) -> Verdict:
        """Make changes, run cycles until the job has started or nothing more happens, and leave everything as it was."""
        cluster = self._rehearsal.cluster
        disruptions = dict(cluster.disruptions)  # cycles count on in the same one
        pods, others = _apart(changes)
        try:
            self._ledger.feed(others)
            if refusal := self._refusal(pods):
                return Verdict(standing="waits", reason=refusal)
            self._ledger.feed(pods)
            self._follow([*others, *pods])
            return self._run()
        finally:
            self._ledger.undo()
            cluster.disruptions = disruptions

    @property
    def races(self) -> bool:
        """Whether others might have made pods before those of the job, for which a quota has no more room then."""
        return self._crew.races

    def _run(self) -> Verdict:
        for pod, ends in going(self._rehearsal):
            self._going[pod.metadata.uid] = (pod, ends)
        reserved = self._rehearsal.reserved()
        last = Verdict(standing="waits")
        while self.cycles < CYCLES:
            self.cycles += 1
            with self._rehearsal.cycle(now=self._now, reserved=reserved) as (session, outlet):
                found = self._judged(session, outlet)
                if found.starts:
                    return found
                last = found
                changes = list(self._followed(session, outlet))
                wake = session.wake
                disruptions = self._rehearsal.cluster.disruptions
            self._rehearsal.cluster.disruptions = disruptions
            if changes:
                self._now += _PERIOD
                self._feed([*changes, *self._gone()])
            elif not self._wait(wake, reserved):
                return structs.replace(last, settled=not self._is_cut)
        return structs.replace(last, settled=False)

    def _refusal(self, changes: Sequence[Replaced]) -> str:
        """Say which quota refuses pods that somebody would make by hand."""
        beside: dict[str, int] = {}
        for kind, before, after in changes:
            if before is None and isinstance(after, core.Pod):
                if refusal := self._quotas.refusal(manifest(kind, after), beside):
                    return refusal
                for name, amount in quotas.charges(after).items():
                    beside[name] = beside.get(name, 0) + amount
        return ""

    # -- what is said ------------------------------------------------------------------------------------------

    def _judged(self, session: Session, outlet: Outlet) -> Verdict:
        for task, node in self._target.bound(outlet):
            self._nodes[task.uid] = node
        seconds = (self._now - self._rehearsal.now) // duration.SECOND
        if self._target.has_started(session, outlet):
            return Verdict(
                standing="starts after evictions" if self._evicted else "starts",
                placed=len(self._nodes),
                nodes=tuple(sorted(set(self._nodes.values()))),
                evicted=tuple(sorted(self._evicted.values())),
                created=self._made,
                seconds=seconds,
            )
        return Verdict(
            standing="is let in" if self._target.lacks_pods(session) else "waits",
            placed=self._target.fitting(session),
            reason=self._crew.refusal or self._target.reason(session),
            created=self._made,
            seconds=seconds,
        )

    # -- what happens after a cycle ----------------------------------------------------------------------------

    def _followed(self, session: Session, outlet: Outlet) -> Iterator[Replaced]:
        """Walk over what becomes of the decisions of a cycle."""
        jobs: dict[str, Job] = {}
        for task, node in outlet.bound.values():
            yield kinds.POD, task.pod, _running(task.pod, node, self._now)
            jobs[task.job_key] = session.cluster.jobs[task.job_key]
        for uid, (task, _) in outlet.evicted.items():
            if uid not in self._going:
                gone = self._now + _grace(task.pod)
                self._going[uid] = (going_pod(task.pod, gone), gone)
                self._evicted[uid] = task.key
                yield kinds.POD, task.pod, self._going[uid][0]
        for task in outlet.ungated.values():
            yield kinds.POD, task.pod, _ungated(task)
        jobs |= {key: session.cluster.jobs[key] for key in session.findings.phases if key in session.cluster.jobs}
        for job in jobs.values():
            yield from _entered(session, job)

    def _gone(self) -> Iterator[Replaced]:
        """Walk over the pods whose time is over by now, and over those that are made in their place."""
        for uid, (pod, ends) in list(self._going.items()):
            if ends <= self._now:
                del self._going[uid]
                yield kinds.POD, pod, None
                if uid in self._evicted and _is_made_anew(pod) and not self._crew.makes(_group_of(pod)):
                    yield kinds.POD, None, _successor(pod, self._now)

    def _wait(self, wake: int | None, reserved: Reservations) -> bool:
        """Let time pass to what is due next; tell whether anything is."""
        known = [ends for _, ends in self._going.values()]
        due = [each for each in (*known, wake, reserved.deadline(self._now), self._crew.next_due()) if each is not None]
        moment = max(min(due, default=0), self._now + _PERIOD)
        self._is_cut = bool(due) and moment > self._rehearsal.now + HORIZON
        if not due or self._is_cut:
            return False
        self._now = moment
        self._feed(list(self._gone()))
        return True

    def _feed(self, changes: Sequence[Replaced]) -> None:
        """Let everybody know of changes."""
        self._ledger.feed(changes)
        self._follow(changes)

    def _follow(self, changes: Sequence[Replaced]) -> None:
        """Let quotas and controllers know of changes, and the model of what they do about them."""
        self._ledger.feed(self._quotas.follow(changes))
        for staff in self._crew.at_work(changes):
            done = staff.follow(changes, self._now)
            mine = [after for kind, before, after in done if kind is kinds.POD and before is None]
            self._made += sum(1 for pod in mine if isinstance(pod, core.Pod) and _group_of(pod) == self._target.job)
            self._ledger.feed(done)
            self._ledger.feed(self._quotas.follow(done))


def _apart(changes: Iterable[Replaced]) -> tuple[list[Replaced], list[Replaced]]:
    """Tell pods from everything else."""
    listed = list(changes)
    return [each for each in listed if each[0] is kinds.POD], [each for each in listed if each[0] is not kinds.POD]


def going(rehearsal: Rehearsal) -> Iterator[tuple[core.Pod, int]]:
    """Walk over the pods that are going and can be expected to be gone, with when that will be."""
    table = rehearsal.cluster.nodes
    if not table.releasing[: table.count].any():
        return
    for record in table.by_name.values():
        if table.releasing[record.row].any():
            for task in record.tasks.values():
                ends = _ends(task.pod)
                if task.status in GOING and ends is not None and ends > rehearsal.now - OVERDUE:
                    yield task.pod, ends


def _ends(pod: core.Pod) -> int | None:
    try:
        return timestamp.parse(pod.metadata.deletion_timestamp or "")
    except timestamp.TimestampError:
        return None


def _running(pod: core.Pod, node: str, now: int) -> core.Pod:
    status = structs.replace(
        pod.status, phase=names.PHASE_RUNNING, nominated_node_name="", start_time=timestamp.format_timestamp(now)
    )
    return structs.replace(pod, spec=structs.replace(pod.spec, node_name=node), status=status)


def _grace(pod: core.Pod) -> int:
    stated = pod.spec.termination_grace_period_seconds
    return (_GRACE if stated is None else stated) * duration.SECOND


def going_pod(pod: core.Pod, ends: int) -> core.Pod:
    """Return a pod as it is once somebody has deleted it."""
    metadata = structs.replace(pod.metadata, deletion_timestamp=timestamp.format_timestamp(ends))
    return structs.replace(pod, metadata=metadata)


def _group_of(pod: core.Pod) -> str:
    return f"{pod.metadata.namespace}/{native_groups.name_in_job(pod)}"


def _is_made_anew(pod: core.Pod) -> bool:
    return any(owner.controller for owner in pod.metadata.owner_references)


def _successor(pod: core.Pod, now: int) -> core.Pod:
    """Return the pod that the owner of one that is gone makes in its place."""
    metadata = structs.replace(
        pod.metadata,
        uid=f"{pod.metadata.uid}-anew-{now}",
        creation_timestamp=timestamp.format_timestamp(now),
        deletion_timestamp=None,
        deletion_grace_period_seconds=None,
        resource_version="",
    )
    status = core.PodStatus(phase=names.PHASE_PENDING)
    return core.Pod(metadata=metadata, spec=structs.replace(pod.spec, node_name=""), status=status)


def _ungated(task: Task) -> core.Pod:
    gates = tuple(gate for gate in task.pod.spec.scheduling_gates if gate.name != names.QUEUE_GATE)
    return structs.replace(task.pod, spec=structs.replace(task.pod.spec, scheduling_gates=gates))


def _entered(session: Session, job: Job) -> Iterator[Replaced]:
    """Give a group the phase that it has after a cycle."""
    if job.group is None or shadows.is_shadow(job.group):
        return
    given = session.findings.conditions.get(job.key, ())
    lacks = any(each.type == names.CONDITION_UNSCHEDULABLE for each in given)
    phase = closing.phase(job, session.findings.phase(job), unschedulable=lacks)
    if phase != job.group.status.phase:
        yield (
            kinds.POD_GROUP,
            job.group,
            structs.replace(job.group, status=structs.replace(job.group.status, phase=phase)),
        )
