"""Jobs that lie dormant: they ask for more of something than any node will have free, or than their queue may take on, they were told so, and nothing about them has changed since.

Trying one again would give nobody anything and say what was said before, so it is left out of the cycle; what is asked in every cycle is asked once for all that are equal. If the
numbers of a refusal are other ones, a few of its jobs are told in each cycle, so that thousands who wait cost no more than what changes (`waiting-10000`).

Where nobody reads what they are told as it changes, so do gangs for which there is too little room on all nodes together, whatever part of them would find some.

Who would delay somebody for whom room is promised lies dormant too, room or no room, until whoever promised it says that it has to be tried again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from pumice.framework import reason_keys, standings, waking
from pumice.framework.no_room import NoRoom
from pumice.framework.reasons import of_queue
from pumice.framework.subject import equal_tasks

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Mapping, Sequence

    from pumice.framework.reasons import FitSummary
    from pumice.framework.session import Session
    from pumice.model.job import Job
    from pumice.model.queue import Queue
    from pumice.model.task import Task

TOLD_AT_ONCE: Final = 256
"""So many jobs of which only the numbers are new are looked at in one cycle, and"""
PAUSE: Final = 1_000_000
"""so much later the next of them, if nothing else happens."""
NUMBERS_PAUSE: Final = 60_000_000
"""So seldom those who are told the same are looked at because of its numbers."""
TOLD_ANEW: Final = 2
"""So many jobs that wait for a time that is promised to them are told in one cycle that something else keeps them waiting now."""
LEAVE_ALONE: Final = {"enqueue", "allocate", "backfill"}
"""Actions that make no room;"""
MAKE_ROOM: Final = {"preempt", "reclaim", "gangpreempt", "gangreclaim"}
"""those that do by evictions, so that what was refused before may be so no longer after them."""


class Kind(msgspec.Struct):
    """Equal jobs of one queue that were told the same."""

    queue: Queue
    failure: FitSummary
    jobs: dict[str, Job] = {}
    orders: dict[str, list[str]] = {}  # in which the pods of each are tried, if there are several
    ever: tuple[int, str, str] = (-1, "", "")  # what will always keep them waiting, and as limits and nodes were when
    numbers: object = None  # those of the moment at which they were last looked at because of them,
    numbered: int = -NUMBERS_PAUSE  # and when that was

    def told(self, session: Session, job: Job, failure: FitSummary) -> object:
        """Return what is news to one of them if it is another."""
        if not session.record.is_followed:
            return ()
        epoch = session.never_running.epoch
        if self.ever[0] != epoch:
            self.ever = (epoch, *_ever(session, job))
        return standings.essence(failure), *self.ever[1:]

    def tried(self, job: Job) -> Sequence[str]:
        """Return the pods of a job, in the order in which they would be tried."""
        return self.orders.get(job.key) or list(job.pending)


class Dormancy:
    """Who lies dormant from cycle to cycle, by kind and by what was said."""

    def __init__(self, awake: waking.Awake) -> None:
        self._awake = awake
        self._kinds: dict[tuple[Hashable, object], Kind] = {}
        self.noted: dict[str, Kind] = {}
        self._delayed: dict[str, Kind] = {}  # those among them that would delay others
        self._rows: dict[int, str] = {}  # who is in which row of the jobs
        self._told_anew = 0
        self._position = 0
        self._basis: object = None

    def note(self, session: Session, queue: Queue, job: Job, tasks: Sequence[Task], failure: FitSummary) -> None:
        """Keep that a job was refused for want of room with these tasks, in their order, if they are all its pods and alike, and no other objects have a say in where they go."""
        self._wake([job.key])
        task = tasks[0]
        if len(tasks) != len(job.pending) or not _is_uniform(job, task):
            return
        told = (standings.essence(failure), *_ever(session, job)) if session.record.is_followed else ()
        key = ((queue.name, *task.likeness, job.min_member), told)
        kind = self._kinds.get(key)
        if kind is None:
            kind = self._kinds[key] = Kind(queue, failure, numbers=(standings.taken(session), failure))
        self._enter(job, kind, tasks)

    def note_delayed(self, session: Session, job: Job, tasks: Sequence[Task], failure: FitSummary) -> None:
        """Keep that a job would delay another, if nothing but amounts and what is promised has a say in whether it may start."""
        self._wake([job.key])
        queue = session.queue_of(job)
        limits = session.allocatable.active or session.overused.active or session.pre_predicate.active
        if queue is not None and not limits and _is_uniform(job, tasks[0]):
            self._delayed[job.key] = kind = Kind(queue, failure)
            self._enter(job, kind, tasks)

    def _enter(self, job: Job, kind: Kind, tasks: Sequence[Task]) -> None:
        kind.jobs[job.key] = job
        if 1 < len(tasks) == len(job.pending):
            kind.orders[job.key] = [each.uid for each in tasks]
        self.noted[job.key] = kind
        self._rows[job.row] = job.key

    def renew(self, session: Session) -> Mapping[str, Kind]:
        """Return who can be left out of a cycle; whoever cannot is forgotten until it is noted again."""
        cluster = session.cluster
        queues = {queue.name: queue.object.spec for queue in cluster.queues.values() if queue.object is not None}
        basis = (session.outlooks.epoch, list(cluster.priority_classes.values()), queues)
        changed = cluster.group_changes.since(self._position)
        self._position = cluster.group_changes.position
        if basis != self._basis or changed is None or not _may_be_left_out(session):
            self._basis, self._kinds, self.noted, self._delayed, self._rows = basis, {}, {}, {}, {}
            self._awake.woken = True
        if not self.noted:
            return {}
        self._wake(cluster.dirty_jobs)
        # Whoever holds room that it cannot use yet is told whose going it waits for.
        self._wake([cluster.tasks[uid].job_key for uid in session.reservations.holds if uid in cluster.tasks])
        self._wake([self._rows[row] for row in changed or () if row in self._rows])
        self._told_anew = TOLD_ANEW
        plans = len(session.announced.standing_plans)
        for keys in session.ask_plans(lambda plan: list(plan.woken(self._delayed))) if self._delayed else ():
            self._wake(self._due(session, keys))
        self._ask_kinds(session)
        noted = dict(self.noted)
        stand = all(session.ask_plans(lambda plan: plan.stands(noted)))
        if len(session.announced.standing_plans) < plans:
            self._wake(noted)  # who broke down may have promised them something
        return noted if stand and self.noted else {}

    def begin_plans(self, session: Session) -> None:
        """Let those who plan ahead bring their plans up to date; if one breaks down, everybody is tried in the next cycle."""
        plans = len(session.announced.standing_plans)
        session.ask_plans(lambda plan: plan.begin())
        if len(session.announced.standing_plans) < plans:
            self._wake(list(self.noted))

    def _ask_kinds(self, session: Session) -> None:
        """Wake those for whom there may be room by now, and some of those whom other numbers keep waiting."""
        answers: dict[Hashable, tuple[FitSummary, object] | None] = {}
        refusing = NoRoom(session)
        takes_none = set(session.closed_queues()) | _overused(session, [kind.queue for kind in self._kinds.values()])
        allowed, taken = TOLD_AT_ONCE, standings.taken(session)
        for key, kind in list(self._kinds.items()):
            if kind.jobs and key[0] not in answers:
                answers[key[0]] = None if kind.queue.name in takes_none else _answer(session, kind, refusing)
            answer = answers.get(key[0])
            if answer is None:
                self._wake(self._due(session, kind.jobs))
            elif answer[1] == key[1]:
                kind.failure = answer[0]  # what a queue holds moves with everybody's pods, and is no news
                if session.record.figures is not None:
                    _tell_numbers(session, kind, taken)
            else:
                woken = list(kind.jobs)[:allowed]
                self._wake(woken)
                allowed -= len(woken)
                if kind.jobs:
                    session.wake_at(session.started + PAUSE)
            if not kind.jobs:
                del self._kinds[key]

    def _due(self, session: Session, jobs: Iterable[str]) -> list[str]:
        """Return the jobs that have to be tried; of those that wait for a time that is promised to them, no more than are told something else in a cycle."""
        found = []
        for key in jobs:
            if any(session.ask_plans(lambda plan, key=key: plan.awaits(key))):  # type: ignore[misc]
                if not self._told_anew:
                    continue
                self._told_anew -= 1
            found.append(key)
        return found

    def _wake(self, jobs: Iterable[str]) -> None:
        for key in jobs:
            kind = self.noted.pop(key, None)
            self._delayed.pop(key, None)
            if kind is not None:
                self._awake.woken = True
                del self._rows[kind.jobs.pop(key).row]
                kind.orders.pop(key, None)


def _is_uniform(job: Job, task: Task) -> bool:
    """Tell whether all pods of a job wait and are like one of them, and no other objects have a say in where they go."""
    if len(job.tasks) != len(job.pending) or len(job.pending) != job.min_member:
        return False
    if task.shape.constraints.has_volumes or task.shape.constraint_class.has_device_claims:
        return False
    return not any(t.shape is not task.shape or t.bond is not task.bond or t.refusal for t in job.pending.values())


def of(session: Session) -> Dormancy:
    """Return what is kept from cycle to cycle."""
    kept = session.lasting.get("dormancy")
    if kept is None:
        kept = session.lasting["dormancy"] = Dormancy(waking.of(session.lasting))
    assert isinstance(kept, Dormancy)  # noqa: S101  nobody else has that name
    return kept


def _may_be_left_out(session: Session) -> bool:
    """Tell whether nobody but nodes and queues has a say in whether those who ask for too much wait, and nobody wants to be told why."""
    if not session.shortcuts.dormant_jobs or session.is_asked or session.reserved:
        return False
    if any(each.plugin not in session.announced.standing_plans for each in (*session.job_delay, *session.job_blocked)):
        return False  # whoever plans ahead is told of everybody who waits, unless it says when it need not be
    facts = session.independence
    return (
        _is_no_room_made(session.configuration.action_names)
        and not session.gates.enabled
        and facts.limits_go_by_queues
        and facts.refusals_go_by_shape
        and facts.validity_goes_by_queues
    )


def _is_no_room_made(actions: Sequence[str]) -> bool:
    """Tell whether allocate runs once, and no action before it may make room; those after it look themselves at who lies dormant."""
    if actions.count("allocate") != 1:
        return False
    at = actions.index("allocate")
    return LEAVE_ALONE.issuperset(actions[:at]) and (LEAVE_ALONE | MAKE_ROOM).issuperset(actions[at + 1 :])


def _overused(session: Session, queues: Iterable[Queue]) -> set[str]:
    """Name the queues that get nothing now; whoever waits for the due of its queue alone is tried beyond it in the end, and told what is found then."""
    known = session.cluster.queues
    asked = [queue for queue in dict.fromkeys(queues) if known.get(queue.name) is queue and not queue.bad]
    with session.lending.beyond_dues():
        return {queue.name for queue in asked if session.overused(queue) is not None}


def _answer(session: Session, kind: Kind, refusing: NoRoom) -> tuple[FitSummary, object] | None:
    """Say why the jobs of a kind find no room now, and what they would be told; None if they have to be tried."""
    queue, job = kind.queue, next(iter(kind.jobs.values()))
    if session.cluster.queues.get(queue.name) is not queue or queue.bad or not job.pending:
        return None
    tasks = list(job.pending.values())
    if not session.record.is_followed and refusing.is_short(tasks[0], len(tasks)):
        return kind.failure, ()
    if not session.allocatable.active:
        failure = refusing.failure(queue, job, tasks)
        return None if failure is None else (failure, kind.told(session, job, failure))
    with session.lending.beyond_dues(), session.attempt(job):
        refusal = session.allocatable(queue, equal_tasks(tasks[:1])) if session.allocatable.active else None
        failure = of_queue(queue.name, refusal) if refusal is not None else refusing.failure(queue, job, tasks)
        return None if failure is None else (failure, kind.told(session, job, failure))
    return None


def _tell_numbers(session: Session, kind: Kind, taken: bytes) -> None:
    """Have the jobs of a kind written anew when there is time, if numbers in what they were told are others by now."""
    numbers = (taken, kind.failure)
    if numbers == kind.numbers:
        return
    if session.started < kind.numbered + NUMBERS_PAUSE:
        session.wake_at(kind.numbered + NUMBERS_PAUSE)
        return
    kind.numbers, kind.numbered = numbers, session.started
    session.findings.figures.extend(kind.jobs.values())


def _ever(session: Session, job: Job) -> tuple[str, str]:
    """Return what will always keep a job from starting, or its pods from every node."""
    ever = session.outlooks.of(next(iter(job.pending.values()))).never
    never = session.never_running.verdict(job) or ""
    return reason_keys.cause_key(ever), reason_keys.cause_key(never)
