"""Which groups can never run as things are, however many pods leave: their minimum has no place on nodes emptied of all but static and daemon pods.

A verdict is kept until the group, its pods, the nodes or the limits of queues change; asking again costs a look-up. Only what Node objects and amounts say
is asked, so a group that other pods keep out may always come to run.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Protocol

import msgspec
import numpy as np

from pumice.framework import queue_room
from pumice.framework.subject import Subject
from pumice.framework.told_session import ToldSession
from pumice.model import resources, statuses
from pumice.model.statuses import Status

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from pumice.framework.configuration import Configuration
    from pumice.framework.vectors import Mask
    from pumice.model.job import Job
    from pumice.model.queue import Queue
    from pumice.model.resources import Matrix, Vector
    from pumice.model.task import Task

    Branch = Callable[[Queue], Sequence[tuple[str, Vector]]]
    Supply = Callable[[Task], Vector | None]

MEMBERS = statuses.ALLOCATED_LIKE | {Status.PENDING, Status.PIPELINED}
MOST_SHAPES = 64
PASSED_OVER = "let in, takes no room from others"
NO_DEVICES = "devices that it claims are nowhere, though nobody else had any"


class Verdict(msgspec.Struct, frozen=True, gc=False):
    """What was found out about a group, and of which group, pods and surroundings."""

    group: object
    version: int
    epoch: int
    reason: str | None


class Memory:
    """What is kept between cycles: verdicts, and the surroundings they were found in."""

    def __init__(self, passed_over: dict[str, None] | None = None) -> None:
        self.verdicts: dict[str, Verdict] = {}
        self.surroundings: list[object] = []
        self.free: Matrix = np.zeros((0, 0), dtype=np.int64)
        self.total: Vector = np.zeros(0, dtype=np.int64)
        self.epoch = 0
        self.equals: dict[tuple[int, int, int, str], str | None] = {}  # verdicts on gangs of equal members
        # Groups of which it is said that they take no room from others, whatever else is known.
        self.passed_over: dict[str, None] = {} if passed_over is None else passed_over

    def tidy(self, jobs: Mapping[str, Job]) -> None:
        """Forget what is known of groups that are gone, once these are more than those that are there; with the last of them everything."""
        if len(self.verdicts) > len(jobs):
            self.verdicts = {key: kept for key, kept in self.verdicts.items() if key in jobs}
            if not self.verdicts:
                self.surroundings = []
                self.equals.clear()


class StaticAnswers(Protocol):
    """What Node objects alone rule out, and what is kept from cycle to cycle (`evaluator.Evaluator`)."""

    never_running: Memory
    forgotten: int

    def static_mask(self, subject: Subject, *, bare: bool = False) -> Mask:
        """Return the nodes that the Node objects alone do not rule out."""


class EnqueueingSession(ToldSession, Protocol):
    """What the question needs of a session."""

    @property
    def configuration(self) -> Configuration:
        """The configuration in force."""

    @property
    def evaluator(self) -> StaticAnswers:
        """What nodes answer, and what is kept of it."""

    def queue_of(self, job: Job) -> Queue | None:
        """Return the queue of a job, None if it is missing or invalid."""


class NeverRunning:
    """Asks of one cycle; `ceilings`, if a plugin sets it, gives the ceilings of a queue and those above it, and `supply` how many pods like a task each node has devices for, None if that matters to none."""

    def __init__(self, session: EnqueueingSession) -> None:
        self._session = session
        self._current = False
        self._memory.tidy(session.cluster.jobs)
        self.ceilings: Branch | None = None
        self.supply: Supply | None = None
        self._counted: dict[tuple[int, str, int], tuple[Vector, int]] = {}

    @property
    def _memory(self) -> Memory:
        return self._session.evaluator.never_running

    @property
    def epoch(self) -> int:
        """What grows whenever nodes or limits of queues change."""
        self._look_around()
        return self._memory.epoch

    def reason(self, job: Job) -> str | None:
        """Say why a group can never run; None if it may, or if Volcano's rules count everybody."""
        return None if self._session.configuration.compatibility == "volcano" else self.verdict(job)

    def verdict(self, job: Job) -> str | None:
        """Say why a group can never run, whatever that counts for."""
        self._look_around()
        memory = self._memory
        known = memory.verdicts.get(job.key)
        if known is None or known.group is not job.group or known.version != job.version or known.epoch != memory.epoch:
            forgotten = self._session.evaluator.forgotten
            reason = self._judge(job)
            if forgotten != self._session.evaluator.forgotten:
                # A filter broke down: that says nothing about ever.
                self._memory.equals.clear()
                return None
            if reason is None:
                self._acquit(job)
            known = memory.verdicts[job.key] = Verdict(job.group, job.version, memory.epoch, reason)
        return known.reason

    def say(self, job: Job) -> str | None:
        """Tell a group that it can never run, if so, by an event; returns the reason."""
        reason = self.reason(job)
        if reason is not None:
            self._session.findings.notice(job, f"can never run: {reason}")
        return reason

    def passes_over(self, job: Job) -> bool:
        """Tell whether a group that was let in takes no budget from others; that is noted with the reason."""
        reason = self.say(job)
        text = f"can never run: {reason}" if reason is not None else NO_DEVICES if self._lacks_devices(job) else ""
        if text:
            self._session.record.judge(job.key, "enqueue", f"{PASSED_OVER}: {text}")
            self._memory.passed_over[job.key] = None
        return bool(text)

    def take_back(self) -> None:
        """Say of nobody any more that it takes no room from others who may run by now, whether or not it does."""
        told, jobs = self._memory.passed_over, self._session.cluster.jobs
        for key in [key for key in told if key not in jobs or not self._is_passed_over(jobs[key])]:
            del told[key]
            if key in jobs:
                self._acquit(jobs[key])

    def _is_passed_over(self, job: Job) -> bool:
        return self.reason(job) is not None or self._lacks_devices(job)

    def _acquit(self, job: Job) -> None:
        """Take back that a group can never run."""
        said = self._session.record.verdict(job.key, "enqueue")
        if said is not None and said.text.startswith(PASSED_OVER):
            self._session.record.acquit(job.key, "enqueue")

    def _look_around(self) -> None:
        """Start a new epoch if nodes or limits have changed since the verdicts were found; looked at once a cycle."""
        if self._current:
            return
        self._current = True
        cluster, memory = self._session.cluster, self._memory
        table = cluster.nodes
        free = np.maximum(table.allocatable[: table.count] - table.fixed[: table.count], 0)
        limits = [(queue.name, queue.parent, queue.capability) for queue in cluster.queues.values() if not queue.bad]
        around: list[object] = [table.structure, table.static, table.claims, limits]
        if around != memory.surroundings or not np.array_equal(free, memory.free):
            memory.epoch += 1
            memory.equals.clear()
            memory.surroundings, memory.free = around, free
            memory.total = table.allocatable[: table.count].sum(axis=0)

    # -- judging -----------------------------------------------------------------------------------------------

    def _lacks_devices(self, job: Job) -> bool:
        """Tell whether nodes would lack devices for the minimum of a group even without other pods; drivers report anew at any time, so that is said to nobody as if it were for ever."""
        if self.supply is None or self._session.configuration.compatibility == "volcano":
            return False
        members, lacking = _members(job)
        if not any(task.shape.constraint_class.has_device_claims for task in members) or not 0 < lacking <= len(
            members
        ):
            return False
        groups: dict[int, list[Task]] = {}
        for task in _smallest(job, members, (), lacking, self._memory.total):
            groups.setdefault(task.shape.serial, []).append(task)
        for tasks in groups.values():
            supplied = self.supply(tasks[0])
            if supplied is not None and self._places(tasks[0], supplied) < len(tasks):
                return True
        return False

    def _places(self, task: Task, supplied: Vector) -> int:
        """Count the pods like one for which nodes have room and devices; once a cycle for equals."""
        key = (task.shape.serial, _queue(task), id(supplied))
        known = self._counted.get(key)
        if known is None:
            count = int(np.minimum(self._fits(self._memory.free, task), supplied).sum())
            known = self._counted[key] = (supplied, count)  # kept, so that the key stays its own
        return known[1]

    def _judge(self, job: Job) -> str | None:
        members, lacking = _members(job)
        if len(members) < lacking:
            return self._without_members(job)
        # Members without requests count as ready before they have a node.
        counted: list[Task] = []
        sized: list[Task] = []
        for task in members:
            (counted if task.best_effort else sized).append(task)
        lacking = max(lacking - len(counted), 0)
        if not sized:
            return None
        shape = sized[0].shape
        if job.min_task_member or any(task.shape is not shape for task in sized):
            return self._judge_members(job, _smallest(job, sized, counted, lacking, self._memory.total))
        key = (shape.serial, lacking, job.min_member, job.queue)
        if key not in self._memory.equals:
            self._memory.equals[key] = self._judge_members(job, sized[:lacking])
        return self._memory.equals[key]

    def _judge_members(self, job: Job, needed: Sequence[Task]) -> str | None:
        """Judge a group by the members that its minimum needs."""
        if not needed:
            return None
        amounts: Vector = np.sum([task.shape.request.vector for task in needed], axis=0)
        beyond = self._beyond_a_ceiling(job, amounts)
        if beyond is None and not self._have_places(needed):
            return f"even empty nodes {self._held(job, needed)} beside static and daemon pods"
        return beyond

    def _held(self, job: Job, needed: Sequence[Task]) -> str:
        """Say how many of the members that a minimum needs the emptied nodes hold, if these are equal."""
        if any(task.shape is not needed[0].shape for task in needed):
            return f"do not hold the {job.min_member} pods that it needs"
        fit = int(self._fits(self._memory.free, needed[0]).sum())
        return f"hold {fit} of the {len(needed)} pods that it needs"

    def _without_members(self, job: Job) -> str | None:
        """Judge a group by its `minResources` as long as it has fewer pods than its minimum."""
        if job.min_resources is None:
            return None
        cluster, total = self._session.cluster, self._memory.total
        vocabulary = cluster.vocabulary
        for name, units in job.min_resources.items():
            column = vocabulary.columns.get(name)
            most = 0 if column is None else int(total[column])
            if units > most and name != "pods" and not cluster.devices.stands_for(name):
                asked, all_of_it = (resources.shown(name, each) for each in (units, most))
                return f"it needs {asked} {name} at the least, all nodes together have {all_of_it}"
        return self._beyond_a_ceiling(job, vocabulary.vector(job.min_resources))

    def _beyond_a_ceiling(self, job: Job, amounts: Vector) -> str | None:
        queue = self._session.queue_of(job)
        names = self._session.cluster.vocabulary.names
        for name, ceiling in self.ceilings(queue) if self.ceilings is not None and queue is not None else ():
            beyond = amounts > ceiling
            beyond[resources.PODS] = False
            for column in np.flatnonzero(beyond).tolist():
                most, asked = int(ceiling[column]), int(amounts[column])
                return str(queue_room.Lack(name, names[column], 0, most, asked))
        return None

    def _have_places(self, needed: Sequence[Task]) -> bool:
        """Tell whether tasks find places on the emptied nodes, the largest first, filling tight or wide nodes first."""
        groups: dict[int, list[Task]] = {}
        for task in needed:
            groups.setdefault(task.shape.serial, []).append(task)
        free = self._memory.free
        fits = {serial: self._fits(free, tasks[0]) for serial, tasks in groups.items()}
        if any(int(fits[serial].sum()) < len(tasks) for serial, tasks in groups.items()):
            return False
        if len(groups) == 1 or len(groups) > MOST_SHAPES:
            return True
        sizes = {serial: _size(tasks[0], self._memory.total) for serial, tasks in groups.items()}
        # Of equal sizes the one with the first pod: serials go by who came first, which is not the same after a restart.
        ordered = sorted(groups.values(), key=lambda tasks: (-sizes[tasks[0].shape.serial], min(t.uid for t in tasks)))
        return any(self._fill(free.copy(), ordered, sign) for sign in (1, -1))

    def _fill(self, free: Matrix, groups: Iterable[Sequence[Task]], sign: int) -> bool:
        for tasks in groups:
            fits = self._fits(free, tasks[0])
            order = np.argsort(sign * fits, kind="stable")
            ahead = np.cumsum(fits[order]) - fits[order]
            taken = np.clip(len(tasks) - ahead, 0, fits[order])
            if int(taken.sum()) < len(tasks):
                return False
            free[order] -= taken[:, None] * tasks[0].shape.request.vector
        return True

    def _fits(self, free: Matrix, task: Task) -> Vector:
        """Count how many such tasks each node could hold."""
        request = task.shape.request
        passed = self._session.evaluator.static_mask(Subject(task, self._session.cluster.queues.get(_queue(task))))
        if request.unoffered:
            return np.zeros(len(free), dtype=np.int64)
        wanted = request.needed > 0
        room = free[:, request.asked[wanted]] // request.needed[wanted]
        most: Vector = room.min(axis=1, initial=2**31)
        return np.where(passed, most, 0)


def _queue(task: Task) -> str:
    return task.job.queue if task.job is not None else ""


def _size(task: Task, total: Vector) -> float:
    return float((task.shape.request.vector / np.maximum(total, 1)).max())


def _members(job: Job) -> tuple[list[Task], int]:
    """Give the members of a group that run, wait or may start, and how many of them its minimum needs."""
    members = [task for task in job.tasks.values() if task.status in MEMBERS]
    return members, job.min_member - job.tally.counts[Status.SUCCEEDED]


def _smallest(job: Job, tasks: Sequence[Task], others: Iterable[Task], count: int, total: Vector) -> list[Task]:
    """Choose the smallest members that could make up a minimum: those that roles need beside what has run and some others, then as many more as are lacking."""
    ordered = sorted(tasks, key=lambda task: (_size(task, total), task.uid)) if len(tasks) > count else list(tasks)
    left: Counter[str] = Counter(job.min_task_member if job.roles_enforced else ())
    left.subtract({role: tally.counts[Status.SUCCEEDED] for role, tally in job.roles.items()})
    left.subtract(task.role for task in others)
    chosen, more = [], []
    for task in ordered:
        if left[task.role] > 0:
            left[task.role] -= 1
            chosen.append(task)
        else:
            more.append(task)
    return [*chosen, *more[: max(count - len(chosen), 0)]]
