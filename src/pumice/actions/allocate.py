"""allocate: place the pods of gangs, a whole gang or nothing, queue by queue and job by job."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import msgspec

from pumice.actions.placing import (
    another_way,
    expected_subjects,
    gang_fit,
    held_back,
    inside_domains,
    minimum,
    refusals,
    rounds,
    searching,
    surplus,
    task_runs,
    telling,
    turn_order,
    turns,
    waiting_tasks,
)
from pumice.api import names
from pumice.framework import dormancy, reservations, resting, subject
from pumice.framework.configuration import Configured, Settings, settings
from pumice.framework.plugin import Action
from pumice.framework.reasons import BeyondDue, FitSummary

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from pumice.framework.explaining.explanations import GangVerdict
    from pumice.framework.priority_queues import PriorityQueue
    from pumice.framework.session import Session
    from pumice.framework.statement import Statement
    from pumice.model.job import Job
    from pumice.model.queue import Queue
    from pumice.model.task import Task


class PlacingSettings(Settings):
    """What placing actions accept."""

    error_cache = settings.truth(
        "predicateErrorCacheEnable",
        default=True,
        help="accepted for compatibility; verdicts about nodes are always kept per shape, and are exact",
    )


class Allocate(Action):
    """Place pods that ask for resources.

    A gang that can start is bound at once; one that could start once room that is being released is free keeps that room, and the room it already has, for
    the rest of the cycle. What proportion keeps waiting for the share of its queue alone is served once more when everybody else was: no room stays idle for a share. The members that a minimum names, those of each role first, come before surplus. Beyond its minimum a job is served pod by pod,
    taking turns with the others. Where the members of a gang differ and it cannot start in their order, it is tried without those
    for whom there is no free room, and with the largest first: by the largest share of the cluster, then by each requested dimension. With
    `compatibility: volcano` the order of tasks alone decides.
    """

    name = "allocate"
    settings = Configured(PlacingSettings)

    def execute(self, session: Session) -> None:
        """Serve everybody within what queues are due, then beyond it those whom nothing else kept waiting."""
        self._gated: dict[str, None] = {}
        self._beyond_due: dict[str, Job] = {}
        self._is_settled = True
        self._dormancy = dormancy.of(session)
        session.resting_holders = {}
        for refusal, uids in resting.of(session).left_out(session):
            say = functools.partial(self._leave_holding, session, refusal=refusal)
            session.resting_holders.update(dict.fromkeys(uids, say))
        holding = [task.job for uid, task in session.reserved.items() if uid not in session.resting_holders]
        reserved = {job.key: job for job in holding if job is not None}
        self._serve_all(session, {**session.awake, **reserved}.values())
        if self._beyond_due:
            waiting = list(self._beyond_due.values())
            for job in waiting:
                session.findings.forget_fit(job)
            with session.lending.beyond_dues():
                self._serve_all(session, waiting)
        resting.of(session).note(session, reserved.values())

    def _serve_all(self, session: Session, waiting: Iterable[Job]) -> None:
        """Serve gangs that were left incomplete, then the first job of the first queue until no queue has a job left."""
        self._refusals = refusals.Refusals(session, self.name, self._dormancy)
        self._surplus = surplus.Surplus()
        self._held_back = held_back.HeldBack(session)
        self._blocked: Job | None = None
        session.search = searching.Searching(session)
        self._dormancy.begin_plans(session)
        members, work = waiting_tasks.listed(session, waiting, self.name)
        jobs = {name: session.job_order.queue(listed) for name, listed in members.items()}
        expected = {name: waiting.waiting() for name, waiting in jobs.items()}
        session.evaluator.blocks.expect(expected_subjects.listed(session, expected, work))
        if session.gangs_are_kept and not session.lending.lifted:
            interrupted = [name for name, listed in members.items() if any(job.is_interrupted for job in listed)]
            self._finish(session, interrupted, jobs, work)
        queues = session.queue_order.queue(session.cluster.queues[name] for name in jobs)
        together = rounds.Rounds(session, turn_order.Waiting(queues, jobs, work), self._refusals.no_room)
        while len(queues):
            if (played := together.play()) is not None:
                self._bind(session, played.statement, played.served)
                continue
            queue = queues.pop()
            if (reason := session.overused(queue)) is not None:
                self._leave_waiting(session, queue, jobs[queue.name], work, reason)
            elif len(jobs[queue.name]):
                self._serve_while_nothing_changes(session, queue, queues, jobs[queue.name], work)
                queues.push(queue)

    def _bind(self, session: Session, statement: Statement, served: list[tuple[Job, int]]) -> None:
        """Bind what was placed in a round of turns, a pod in each."""
        attempted, record = session.findings.attempted, session.record
        for job, _ in served:
            if job.key not in attempted:
                session.findings.attempt(job)
        statement.commit()
        texts = {left: telling.placed(1, left) for left in dict.fromkeys([left for _, left in served])}
        for job, left in served:
            record.say(self.name, texts[left], job.key)
            record.acquit(job.key, self.name)
        self._surplus.begin(served[-1][0])

    def is_settled(self, session: Session) -> bool:
        """Tell whether nobody found too little room who might find enough in less: a search among unequal members, or of domains, takes what it comes upon first."""
        return self._is_settled and not session.gates.enabled

    def gang(self, session: Session, job: Job) -> GangVerdict | None:
        """Say how many members of a job find a place beside each other, and why the others do not; dues that give way are no reason."""
        with session.lending.beyond_dues():
            return gang_fit.verdict(session, job, waiting_tasks.eligible(session, job, job.pending.values()))

    def _finish(
        self, session: Session, affected: list[str], jobs: Mapping[str, PriorityQueue[Job]], work: dict[str, list[Task]]
    ) -> None:
        """Serve gangs that were left incomplete before anybody else, while they are the first of their queue: what they hold serves nobody until they are whole.

        That gives nobody more than is due: only what their queue could reclaim from others, and never before a queue of higher priority.
        """
        known = session.cluster.queues
        highest = max((known[name].priority for name in jobs), default=0)
        queues = session.queue_order.queue(known[name] for name in affected if known[name].priority == highest)
        while len(queues):
            queue = queues.pop()
            waiting = jobs[queue.name]
            if not len(waiting) or session.overused(queue) is not None:
                continue
            job = waiting.pop()
            if not self._may_be_finished(session, queue, job, work[job.key]):
                waiting.push(job)
                continue
            work[job.key] = self._serve(session, queue, job, work[job.key])
            if work[job.key]:
                waiting.push(job)
            queues.push(queue)

    def _may_be_finished(self, session: Session, queue: Queue, job: Job, tasks: list[Task]) -> bool:
        """Tell whether a job was left incomplete, and its queue may claim what it lacks."""
        lacking = _lacking(session, job, tasks) if job.is_interrupted else []
        with session.attempt(job):
            return bool(lacking) and session.preemptive(queue, subject.demand(lacking)) is None
        return False

    def _serve_while_nothing_changes(
        self,
        session: Session,
        queue: Queue,
        queues: PriorityQueue[Queue],
        jobs: PriorityQueue[Job],
        work: dict[str, list[Task]],
    ) -> None:
        """Serve jobs of a queue until one changes anything; before that no other queue could come first."""
        table = session.cluster.nodes
        position = table.position
        self._refusals.begin(queue)
        while len(jobs):
            job = jobs.pop()
            tasks = work[job.key]
            if self._is_refused_at_once(session, queue, job, tasks) or self._would_delay(session, job, tasks):
                self._tell_of_blocked(session, job)
                continue
            if (stays := self._held_back.known(queue, job, tasks)) is not None:
                self._leave_holding(session, job, stays.refusal)
                self._set_aside(session, job)
                work[job.key] = []
                continue

            def is_next(job: Job = job) -> bool:
                """Tell whether the next turn would be this job's again."""
                return session.overused(queue) is None and queues.all_follow(queue) and jobs.all_follow(job)

            work[job.key] = left = self._serve(session, queue, job, tasks, is_next)
            if left:
                jobs.push(job)
            if left or table.position != position:
                return

    def _leave_waiting(
        self, session: Session, queue: Queue, jobs: PriorityQueue[Job], work: dict[str, list[Task]], reason: str
    ) -> None:
        """Serve what is held for jobs of an overused queue, and note for the others why they are not served, unless they still may be."""
        while len(jobs):
            job = jobs.pop()
            if self._holds_too_much(session, queue, job):
                work[job.key] = self._serve(session, queue, job, work[job.key])
                if work[job.key]:
                    jobs.push(job)
            elif isinstance(reason, BeyondDue):
                self._beyond_due[job.key] = job
            else:
                session.record.judge(job.key, self.name, f"queue {queue.name} is overused: {reason}")

    def _holds_too_much(self, session: Session, queue: Queue, job: Job) -> bool:
        """Tell whether it is only what is held for a job that makes its queue overused; that is for the job to use."""
        lifted = reservations.lift(session, job)
        try:
            return bool(lifted) and session.overused(queue) is None
        finally:
            reservations.put_back(session, session.reservations, lifted)

    def _serve(
        self,
        session: Session,
        queue: Queue,
        job: Job,
        tasks: list[Task],
        is_next: Callable[[], bool] | None = None,
    ) -> list[Task]:
        """Try to bring one job forward; returns the tasks for another turn, none if it should have no other."""
        session.findings.attempt(job)
        again = self._surplus.begin(job)
        if session.gates.enabled and job.key not in self._gated:
            self._gated[job.key] = None
            with session.attempt(job):
                session.gates.take_off(queue, [task for task in tasks if task.gated])
        # What is held for the job is its own to use; whatever it does not use is held for it again.
        self._held_back.begin(queue, job, tasks)
        self._blocked = None
        lifted = reservations.lift(session, job)
        try:
            with session.attempt(job):
                return self._try(session, queue, job, tasks, is_next if again and not lifted else None)
            return []
        finally:
            if lifted:
                reservations.hold_again(session, session.reservations, lifted)
                self._held_back.end()
            self._tell_of_blocked(session, self._blocked)

    def _leave_holding(self, session: Session, job: Job, refusal: FitSummary | None) -> None:
        """Say of a job that holds room for its only pod what trying it would say, and leave it as that would."""
        (task,) = job.tasks.values()
        session.findings.attempt(job)
        self._surplus.begin(job)
        session.statements.hold_anew(task, evicted=refusal is not None)
        if refusal is None:
            session.record.judge(job.key, self.name, telling.holds_room(job))
            return
        session.findings.note_fit([task], refusal)
        lacking = job.min_member - job.tally.ready
        session.record.judge(job.key, self.name, telling.Shortfall(0, lacking, job.min_member, 1, task.name, refusal))
        if session.findings.phase(job) == names.PHASE_INQUEUE:
            session.never_running.say(job)

    def _is_refused_at_once(self, session: Session, queue: Queue, job: Job, tasks: list[Task]) -> bool:
        """Tell whether a job need not be tried: it was refused, and told why."""
        failure = self._refusals.at_once(queue, job, tasks)
        if failure is None:
            return False
        if failure.due:
            self._beyond_due[job.key] = job
        if session.findings.phase(job) == names.PHASE_INQUEUE:
            session.never_running.say(job)
        return True

    def _set_aside(self, session: Session, job: Job) -> None:
        """Note that a job has no other turn as long as dues hold, if it lacks a pod that nothing but the due of its queue keeps out."""
        if session.lending.enabled and any(failure.due for failure in session.findings.errors(job).values()):
            self._beyond_due[job.key] = job

    def _would_delay(self, session: Session, job: Job, tasks: list[Task]) -> bool:
        """Tell at once that a job, or in its first turn any member beyond its minimum, finds no room beside what is promised to others."""
        if not session.job_delay.active:
            return False
        if job.tally.is_ready(job.min_member) and job.key in session.findings.attempted:
            return False
        refusal = session.job_delay(job)
        if refusal is None:
            return False
        failure = FitSummary(0, (), refusal)
        session.findings.attempt(job)
        session.findings.note_fit(tasks, failure)
        session.record.judge(job.key, self.name, telling.shortfall(session, job, 0))
        self._dormancy.note_delayed(session, job, tasks, failure)
        return True

    def _tell_of_blocked(self, session: Session, job: Job | None) -> None:
        """Tell whoever plans ahead of a job that found too little room."""
        if job is not None and session.job_blocked.active:
            with session.attempt(job):
                session.job_blocked(job)

    def _try(
        self, session: Session, queue: Queue, job: Job, tasks: list[Task], is_next: Callable[[], bool] | None
    ) -> list[Task]:
        # Only commit, hold and discard end the attempt; anything still in a statement when the session closes is undone.
        statement = session.statement()
        turn, steered = turns.Turn(session, statement, queue, job), session.topology.steers(job)
        left = inside_domains.place(turn, tasks)[1] if steered else self._place(turn, tasks, is_next)
        placed, is_ready = len(statement), session.job_ready(job)
        if not is_ready and not steered and (other := another_way.place(turn, tasks)) is not None:
            left, is_ready = other, session.job_ready(job)
        if is_ready:
            self._commit(session, statement, job, left)
            if not left:
                self._set_aside(session, job)
            return left
        if session.is_pipelined(job):
            session.record.judge(job.key, self.name, telling.holds_room(job))
            statement.keep()
            return []
        statement.discard()
        if steered or job.min_task_member or job.policies or any(t.shape is not tasks[0].shape for t in tasks):
            self._is_settled = False
        if not steered:
            remember = self._refusals.let_lie if placed else self._refusals.remember
            remember(queue, job, tasks)
        session.record.judge(job.key, self.name, telling.shortfall(session, job, placed))
        self._set_aside(session, job)
        if session.findings.phase(job) == names.PHASE_INQUEUE:
            session.never_running.say(job)
        self._blocked = job
        return []

    def _place(self, turn: turns.Turn, tasks: list[Task], is_next: Callable[[], bool] | None) -> list[Task]:
        """Place tasks until their job is ready, or beyond its minimum one of them; returns those for another turn."""
        if not turn.session.job_ready(turn.job):
            return task_runs.place_minimum(turn, tasks)
        # Beyond its minimum a job gets one pod per turn; the first one that finds a node ends the turn.
        if is_next is not None:
            tasks = self._give_ahead(turn, tasks, is_next)
        return self._surplus.place_next(turn, tasks)

    def _give_ahead(self, turn: turns.Turn, tasks: list[Task], is_next: Callable[[], bool]) -> list[Task]:
        """Bind what a job would get in turns of its own before this one; returns the other tasks."""
        session, statement = turn.session, turn.session.statement()
        given = self._surplus.place_ahead(msgspec.structs.replace(turn, statement=statement), tasks, is_next)
        if not given:
            return tasks
        self._commit(session, statement, turn.job, tasks[given:], apart=True)
        return tasks[given:]

    def _commit(
        self, session: Session, statement: Statement, job: Job, left: list[Task], *, apart: bool = False
    ) -> None:
        """Bind what was placed."""
        placed = len(statement)
        statement.commit(apart=apart)
        if placed:
            session.record.say(self.name, telling.placed(placed, len(left)), job.key)
            session.record.acquit(job.key, self.name)
        elif session.findings.errors(job):
            session.record.judge(job.key, self.name, telling.shortfall(session, job, 0))


def _lacking(session: Session, job: Job, tasks: Sequence[Task]) -> list[Task]:
    """Return the members that a job still needs."""
    return minimum.named_first(session, job, tasks)[0][: job.min_member - job.tally.ready]
