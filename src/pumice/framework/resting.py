"""Jobs that rest: their only pod waits on the node that is held for it, trying it again would leave it there and say what was said, and nothing about it has changed since.

So it is left out of allocate from cycle to cycle, and nothing is said of it. Whoever is lifted is awake again. One more pod in `preemption-1000` costs 5 times as much without. It rests on this:

| what | looked at | by |
|---|---|---|
| nothing but amounts, queues and Node objects has a say, and equals are answered alike | every cycle | `_may_rest` |
| its pod, its group and its victims are as they were | the log of jobs that changed | `_wake_changed` |
| its hold does not end by itself | every cycle, once for a kind | `_wake_changed` |
| Nodes, Queues and priority classes are the same objects; its queue is open | every cycle | `begin` |
| it is on its node, which has all the amounts that it had | every cycle, the rows of a kind at once | `_wake_moved` |
| no node has room for its like, and its queue answers as it did, now and until allocate ends | every cycle, once for a kind | `resting_answers` |

Whoever is woken may find another node and leave its own to others, so those who are left are asked again until nobody wakes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import numpy as np

from pumice.framework import resting_answers
from pumice.framework.runs import Run, Step
from pumice.model import held_blocks
from pumice.model.held_blocks import HeldBlock
from pumice.model.statuses import Status

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable

    from pumice.api import scheduling
    from pumice.framework.reasons import FitSummary
    from pumice.framework.session import Session
    from pumice.model.job import Job
    from pumice.model.nodes import NodeRecord
    from pumice.model.queue import Queue
    from pumice.model.resources import Matrix, Vector
    from pumice.model.task import Task


class Holder(msgspec.Struct):
    """One that rests: its pod, the node where it waits with all amounts of that, the status of its group, whose changes concern it, and until when its hold is as it is if nobody goes."""

    task: Task
    node: NodeRecord
    amounts: Vector
    status: scheduling.PodGroupStatus
    watched: tuple[int, ...]  # the rows of its job and of those of its victims
    until: int
    run: Run


class Together(msgspec.Struct, frozen=True):
    """The holders of a kind side by side: their pods on their nodes, what amounts these have, how the pods came to wait there, and until when all holds are as they are."""

    block: HeldBlock
    amounts: Matrix
    runs: dict[str, Run]
    until: int


class Kind(msgspec.Struct):
    """Equal holders of one queue that were told the same."""

    queue: Queue
    told: object
    refusal: FitSummary | None = None  # in the words of this cycle
    holders: dict[str, Holder] = {}
    known: Together | None = None

    def together(self) -> Together:
        """Return all of them side by side; rows of nodes move only where everybody is woken."""
        if self.known is None:
            listed = list(self.holders.values())
            self.known = Together(
                HeldBlock([holder.task for holder in listed], [holder.node for holder in listed]),
                np.array([holder.amounts for holder in listed], dtype=np.int64),
                {holder.task.uid: holder.run for holder in listed},
                min([holder.until for holder in listed]),
            )
        return self.known


class Resting:
    """Who rests from cycle to cycle, by kind and by what was said."""

    def __init__(self) -> None:
        self._kinds: dict[Hashable, Kind] = {}
        self.noted: dict[str, Kind] = {}
        self._watched: dict[int, dict[str, None]] = {}  # whom a change of a job concerns, by the row of that
        self._positions = (0, 0)  # of the logs of jobs and of groups
        self._basis: object = None

    def begin(self, session: Session) -> None:
        """Let those wait where they did about whom nothing has changed; called before anything else is held."""
        cluster = session.cluster
        basis: object = None
        if session.reservations.holds:
            queues = {queue.name: queue.object.spec for queue in cluster.queues.values() if queue.object is not None}
            basis = (session.outlooks.epoch, list(cluster.priority_classes.values()), queues)
        if basis != self._basis or not _may_rest(session):
            self._basis, self._kinds, self.noted, self._watched = basis, {}, {}, {}
        positions, self._positions = self._positions, (cluster.job_changes.position, cluster.group_changes.position)
        if self.noted:
            self._wake_changed(session, *positions)
            closed = session.closed_queues()
            for kind in self._kinds.values():
                if not kind.holders:
                    continue
                is_open = cluster.queues.get(kind.queue.name) is kind.queue and not kind.queue.bad
                if not is_open or kind.queue.name in closed or not self._is_held(session, kind):
                    self._wake(list(kind.holders))
        held_blocks.tell_the_logs(cluster, self.noted)

    def _wake_changed(self, session: Session, of_jobs: int, of_groups: int) -> None:
        """Wake those about whom something has changed since the logs came to some positions, or whose hold may end."""
        cluster, watched = session.cluster, self._watched
        jobs, groups = cluster.job_changes.since(of_jobs), cluster.group_changes.since(of_groups)
        if jobs is None or groups is None:
            self._wake(list(self.noted))
            return
        for row in [*groups, *(job.row for job in cluster.dirty_jobs.values())]:
            self._wake(list(watched.get(row, ())))
        touched = [key for row in jobs for key in watched.get(row, ())]
        self._wake([key for key in touched if (kind := self.noted.get(key)) and not _is_same(kind.holders[key])])
        for kind in self._kinds.values():
            if kind.holders and kind.together().until < session.started:
                self._wake([key for key, holder in kind.holders.items() if holder.until < session.started])

    def _is_held(self, session: Session, kind: Kind) -> bool:
        """Let the holders of a kind wait where they did, and tell whether all of them can."""
        together, table = kind.together(), session.cluster.nodes
        if not session.statements.hold_together(together.block, together.runs):
            return False
        session.reserved.update(together.block.by_uid)
        if (table.future_idle_at(together.block.rows) >= 0).all():
            return True
        self.give_up(session)
        return False

    def give_up(self, session: Session) -> None:
        """Wake everybody, before anybody has looked at them."""
        session.statements.let_go()
        session.reserved.clear()
        self._wake(list(self.noted))
        held_blocks.tell_the_logs(session.cluster)

    def note(self, session: Session, jobs: Iterable[Job]) -> None:
        """Keep who was tried and waits where it waited before."""
        if not _may_rest(session):
            return
        table, holds, known = session.cluster.nodes, session.reservations.holds, session.cluster.tasks
        found: list[tuple[Job, Task, NodeRecord]] = []
        for job in jobs:
            node = place_of(session, job)
            if node is None or not _is_plain(job) or job.key not in session.findings.attempted:
                continue
            task = next(iter(job.tasks.values()))
            if holds[task.uid].victims and task.nominated == node.name and not session.breakdowns.has(job):
                found.append((job, task, node))
        amounts = table.amounts(np.array([node.row for _, _, node in found], dtype=np.int64)) if found else ()
        for (job, task, node), row in zip(found, amounts, strict=True):
            self._wake([job.key])
            said = session.findings.errors(job).get(task.uid)
            if said is None or said.queue:
                told = resting_answers.told(session, job, said)
                tasks = [task, *(known[uid] for uid in holds[task.uid].victims if uid in known)]
                watched = tuple({each.job.row: None for each in tasks if each.job is not None})
                run = Run(
                    Step.PIPELINE, Status.PENDING, Status.PIPELINED, [task], [None], [node], evicted=True, serials=[0]
                )
                until = holds[task.uid].unchanged_until
                holder = Holder(task, node, row, job.status, watched, until, run)
                self._add(job, holder, session.cluster.queues[job.queue], told)

    def _add(self, job: Job, holder: Holder, queue: Queue, told: object) -> None:
        task = holder.task
        names = (queue.name, task.namespace, task.pod.spec.priority_class_name)
        numbers = (task.shape.serial, task.priority, job.priority, job.min_member)
        key = (*names, *numbers, job.preemptable, job.preemptable_set, task.preemptable, told)
        kind = self._kinds.get(key)
        if kind is None:
            kind = self._kinds[key] = Kind(queue, told)
        kind.holders[job.key], kind.known = holder, None
        self.noted[job.key] = kind
        for row in holder.watched:
            self._watched.setdefault(row, {})[job.key] = None

    def left_out(self, session: Session) -> list[tuple[FitSummary | None, Iterable[str]]]:
        """Return the pods that can be left out of allocate, by uid, with why their queue refuses them, if it does; whoever cannot is forgotten until it is noted again."""
        if not self.noted or not _may_rest(session):
            return []
        for kind in self._kinds.values():
            self._wake_moved(session, kind)
        session.awake  # noqa: B018  before anybody is lifted
        while self._wake_those_told_otherwise(session):
            pass  # who is woken may find another node, and leave its own to others
        self._kinds = {key: kind for key, kind in self._kinds.items() if kind.holders}
        return [(kind.refusal, kind.together().runs) for kind in self._kinds.values()]

    def _wake_those_told_otherwise(self, session: Session) -> bool:
        """Wake the kinds that would not be told what they were told, as far as can be said with those resting that rest now; tells whether there are any."""
        known = set[str]().union(*(kind.together().runs for kind in self._kinds.values() if kind.holders))
        awake = [task for uid, task in session.reserved.items() if uid not in known]
        growth, before = resting_answers.growth(session.cluster, awake), len(self.noted)
        for kind in self._kinds.values():
            if kind.holders and not self._is_told_again(session, kind, growth):
                self._wake(list(kind.holders))
        return len(self.noted) < before

    def _is_told_again(self, session: Session, kind: Kind, growth: Vector) -> bool:
        """Tell whether each holder of a kind, if it were tried at any time in allocate, would surely stay where it is and be told what it was told."""
        task = next(iter(kind.holders.values())).task
        answer = resting_answers.answer(session, kind.queue, task, kind.together().block.rows, growth)
        if answer is None:
            return False
        kind.refusal = answer.refusal
        return answer.told == kind.told

    def kinds(self, session: Session) -> list[dict[str, Task]]:
        """Return those who are left out of a cycle and were not lifted, equal ones together: all that rules which know nothing else of a job could see of them is the same."""
        left_out = session.resting_holders.keys()
        held = [kind.together().block.by_uid for kind in self._kinds.values() if kind.holders]
        listed = [each if each.keys() <= left_out else {k: each[k] for k in each if k in left_out} for each in held]
        return [tasks for tasks in listed if tasks]

    def _wake_moved(self, session: Session, kind: Kind) -> None:
        """Wake those that do not wait where they did, or whose node is not as it was."""
        reserved, table = session.reserved, session.cluster.nodes
        if kind.holders and not kind.together().runs.keys() <= session.statements.kept.resting.keys():
            listed = kind.holders.items()
            self._wake([k for k, each in listed if each.task.node is not each.node or each.task.uid not in reserved])
        if not kind.holders:
            return
        together = kind.together()
        rows = together.block.rows
        same = (table.amounts(rows) == together.amounts).all(axis=1) & (table.future_idle_at(rows) >= 0).all(axis=1)
        if not same.all():
            self._wake([key for key, is_same in zip(list(kind.holders), same.tolist(), strict=True) if not is_same])

    def _wake(self, jobs: Iterable[str]) -> None:
        for key in jobs:
            kind = self.noted.pop(key, None)
            if kind is not None:
                holder = kind.holders.pop(key)
                kind.known = None
                for row in holder.watched:
                    self._watched[row].pop(key)
                    if not self._watched[row]:
                        del self._watched[row]


def of(session: Session) -> Resting:
    """Return what is kept from cycle to cycle."""
    kept = session.lasting.setdefault("resting", Resting())
    assert isinstance(kept, Resting)  # noqa: S101  nobody else has that name
    return kept


def _is_same(holder: Holder) -> bool:
    """Tell whether a group says what it did; that its pod is another one is told where it becomes so."""
    return holder.task.job is not None and holder.task.job.status is holder.status


def place_of(session: Session, job: Job) -> NodeRecord | None:
    """Return the node that is held for the only pod of a job and on which it waits; None if there is more to a job than that."""
    if len(job.tasks) != 1 or job.min_member < 1:
        return None
    task = next(iter(job.tasks.values()))
    node = task.node
    if task.status != Status.PIPELINED or node is None or task.gated:
        return None
    if task.uid not in session.reserved or task.uid not in session.statements.evicted_for:
        return None
    hold = session.reservations.holds.get(task.uid)
    constraint_class = task.shape.constraint_class
    if hold is None or hold.node != node.name or constraint_class.takes_ports or constraint_class.has_volumes:
        return None
    return None if session.topology.steers(job) else node


def _is_plain(job: Job) -> bool:
    """Tell whether nothing but the number of its members says when a job is complete."""
    return not (job.native or job.roles_enforced or job.policies or job.topology is not None)


def _may_rest(session: Session) -> bool:
    """Tell whether nothing but amounts, queues and Node objects has a say in what becomes of holders, equal ones alike, and nobody wants to be told why."""
    if not session.shortcuts.resting_holders or session.is_asked or not session.announced.minimums_count:
        return False
    if session.job_delay.active or session.job_blocked.active or session.gates.enabled:
        return False  # whoever plans ahead is told of everybody who waits
    facts = session.independence
    return (
        facts.placements_are_told_together
        and not session.cluster.kinship.counting
        and facts.limits_go_by_queues
        and facts.waiting_goes_by_numbers
        and facts.validity_goes_by_queues
        and facts.refusals_go_by_shape
        and facts.equals_share_answers
        and facts.all_nodes_are_looked_at
    )
