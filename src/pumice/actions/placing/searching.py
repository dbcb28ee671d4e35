"""Where a job would go at another time: by amounts where nothing else decides, else its members are placed on trial as allocate places them, and everything is taken back."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pumice.actions.placing import another_way, inside_domains, minimum, task_runs, turns, waiting_tasks
from pumice.framework.functions import speaks
from pumice.framework.reasons import BeyondDue
from pumice.framework.subject import Subject
from pumice.model.statuses import Status

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pumice.framework.searching import Moment, Places
    from pumice.framework.session import Session
    from pumice.framework.vectors import Mask
    from pumice.model.job import Job
    from pumice.model.nodes import NodeRecord
    from pumice.model.queue import Queue
    from pumice.model.task import Task


class Searching:
    """The search of one cycle."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._amounts: bool | None = None

    def __call__(self, job: Job, moment: Moment, beyond: Sequence[Task] = ()) -> Places | None:
        """Return a node for each pod that would be placed, None if the job would not be ready; of members beyond the minimum, for each of those that find one, None if none does."""
        session, queue = self._session, self._session.queue_of(job)
        tasks = list(beyond) or waiting_tasks.eligible(session, job, job.pending.values())
        if queue is None or not tasks:
            return None
        least = 1 if beyond else minimum.lacking(job.tally, job.min_member)
        if 0 < least <= len(tasks) and self._is_by_amounts(job, tasks, moment):
            return self._filled(tasks if beyond else tasks[:least], least, queue, moment)
        # Whoever places may discard what was placed, and that alone.
        statement, placing = session.statement(), session.statement()
        with session.attempt(job), statement.trial():
            gone, expected = moment.changes(self._rows(job, tasks, queue, moment))
            statement.suppose(gone, [None] * len(gone), Status.SUCCEEDED)
            come = [(task, node) for task, node in expected if task.status == Status.PENDING]
            statement.suppose([task for task, _ in come], [node for _, node in come], Status.RUNNING)
            moment.begins()
            if (over := session.overused(queue)) is not None and not isinstance(over, BeyondDue):
                return None
            session.findings.forget_fit(job)
            with placing.trial():
                turn = turns.Turn(session, placing, queue, job, turns.Scope(now=True))
                return self._placed_beyond(turn, tasks) if beyond else self._placed(turn, tasks)
        return None

    # -- by amounts --------------------------------------------------------------------------------------------

    def _is_by_amounts(self, job: Job, tasks: Sequence[Task], moment: Moment) -> bool:
        """Tell whether amounts, and what Node objects say, decide alone: about equal members."""
        if self._amounts is None:
            self._amounts = self._amounts_decide(moment.who)
        first = tasks[0]
        if not self._amounts or job.policies or job.min_task_member or self._session.topology.steers(job):
            return False
        return not first.shape.request.unoffered and not any(
            task.shape is not first.shape or task.gated or task.nominated for task in tasks
        )

    def _amounts_decide(self, who: str) -> bool:
        """Tell whether nobody but whoever asks has a say in which nodes take a pod, beyond what Node objects are, or prefers any."""
        session, functions = self._session, self._session.evaluator.functions
        others = [f for f in functions.filters if f.plugin != who and f not in functions.filters_static]
        preferring = [f for f in (*functions.scores, *functions.scores_static) if f.plugin != who]
        if others or preferring or functions.scores_global or functions.raws or session.announced.divisions:
            return False
        limits = session.allocatable.active or session.overused.active or session.pre_predicate.active
        if limits or not session.announced.minimums_count:
            return False
        facts = session.independence
        usual = facts.placements_stand and facts.nodes_are_chosen_by_scores and facts.all_nodes_are_looked_at
        return usual and session.shortcuts.runs and len([*session.job_ready]) == 1

    def _filled(self, tasks: Sequence[Task], least: int, queue: Queue, moment: Moment) -> Places | None:
        """Fill nodes one after the other, those of the highest rank first, and of equals the first by name, if at least so many find one."""
        request, records = tasks[0].shape.request, self._session.cluster.nodes.records
        room = moment.room[:, request.asked]
        held = (room // np.maximum(request.needed, 1))[:, request.needed > 0].min(axis=1, initial=len(tasks))
        held[(room < request.needed).any(axis=1)] = 0
        held[~self._session.evaluator.static_mask(Subject(tasks[0], queue))] = 0
        if int(held.sum()) < least:
            return None
        order = np.argsort(-moment.ranks, kind="stable")
        rows = np.repeat(order, held[order])[: len(tasks)]
        return [(task, records[row]) for task, row in zip(tasks, rows.tolist(), strict=False)]

    # -- on trial ----------------------------------------------------------------------------------------------

    def _rows(self, job: Job, tasks: Sequence[Task], queue: Queue, moment: Moment) -> Mask | None:
        """Return the nodes that may have room for some member, if what is on others has no say in where members go; None if it may have (`timeline`: 500 searches at 1,000 nodes take a tenth of the time)."""
        session, functions = self._session, self._session.evaluator.functions
        limits = session.allocatable.active or session.overused.active or session.topology.steers(job)
        if limits or not session.shortcuts.runs or not session.independence.nodes_are_chosen_by_scores:
            return None
        found, view = np.zeros(len(moment.room), dtype=np.bool_), session.cluster.nodes.view()
        for task in {task.shape: task for task in tasks}.values():
            shape = task.shape
            if (
                shape.constraint_class.concerns_pods
                or shape.constraint_class.has_volumes
                or shape.constraint_class.has_device_claims
            ):
                return None
            if speaks(functions.looking_around, Subject(task, queue), view):
                return None
            found |= (moment.room[:, shape.request.asked] >= shape.request.needed).all(axis=1)
        return found

    def _placed(self, turn: turns.Turn, tasks: list[Task]) -> Places | None:
        session, job = turn.session, turn.job
        if session.topology.steers(job):
            inside_domains.place(turn, tasks)
        else:
            task_runs.place_minimum(turn, tasks)
            if not session.job_ready(job):
                another_way.place(turn, tasks)
        return _places(tasks) if session.job_ready(job) else None

    def _placed_beyond(self, turn: turns.Turn, tasks: list[Task]) -> Places | None:
        """Place all members beyond the minimum that find a node; inside hyper-nodes one of them."""
        if turn.session.topology.steers(turn.job):
            inside_domains.place(turn, tasks)
        else:
            task_runs.place_all(turn, tasks)
        return _places(tasks) or None


def _places(tasks: Sequence[Task]) -> list[tuple[Task, NodeRecord]]:
    return [(task, task.node) for task in tasks if task.status == Status.ALLOCATED and task.node is not None]
