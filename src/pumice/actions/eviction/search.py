"""From a starving job to a committed plan: first without victims, then with the cheapest, spared as far as possible, never in a circle."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import numpy as np

from pumice.actions.eviction import looping, takeover, trimming
from pumice.actions.eviction.offers import Market
from pumice.actions.eviction.planning import Plan
from pumice.api import names

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator, Sequence

    from pumice.actions.eviction.rules import Rules
    from pumice.framework.session import Session
    from pumice.model.job import Job
    from pumice.model.queue import Queue
    from pumice.model.task import Task

ROUNDS = 8
NAMED = 10
FEW = 4
NOBODY = "no pod may be evicted for it"


def claimants(session: Session, job: Job) -> list[Task]:
    """Return the members of a job that may ask, in task order."""
    waiting = [
        task
        for task in job.pending.values()
        if not task.gated and session.may_try(task) and task.pod.spec.preemption_policy != "Never"
    ]
    return session.task_order.sort(waiting)


def members_lacking(job: Job, tasks: Sequence[Task]) -> list[Task]:
    """Return the first tasks that would bring a job to its minimum, all of them if that cannot be told from the number alone."""
    lacking = job.min_member - job.tally.ready - job.tally.waiting
    if job.roles_enforced or job.policies or lacking <= 0:
        return list(tasks)
    return list(tasks[:lacking])


def orders(plan: Plan, tasks: Sequence[Task]) -> Iterator[Sequence[Task]]:
    """Give the orders in which members of different shapes are placed: their own, the largest first, and, if there are few, every other."""
    yield tasks
    if len({id(task.shape) for task in tasks}) == 1:
        return
    table = plan.session.cluster.nodes
    total = np.maximum(table.allocatable[: table.count].sum(axis=0), 1)
    yield sorted(tasks, key=lambda task: -float((task.shape.request.vector / total).max()))
    if len(tasks) <= FEW and plan.is_small(tasks):
        yield from itertools.islice(itertools.permutations(tasks), 1, None)


class Search:
    """Finds plans by the rules of one action."""

    def __init__(self, session: Session, rules: Rules) -> None:
        self.session = session
        self.rules = rules
        self._market = Market(session, rules)
        self._anybody: dict[object, bool] = {}
        settings = session.configuration
        # kube-batch knew no admission: without enqueue its actions look at every group.
        self._has_no_admission = settings.rules == "kube-batch" and "enqueue" not in settings.action_names

    def starving_jobs(self) -> dict[str, list[Job]]:
        """Return the jobs that may ask for room, by queue: let in, somebody to take from, valid, starving."""
        session = self.session
        found: dict[str, list[Job]] = {}
        for job in list(session.cluster.pending_jobs.values()):
            if self.rules.within and len(job.pending) == len(job.tasks):
                continue
            if not session.usable(job) or (session.phase(job) == names.PHASE_PENDING and not self._has_no_admission):
                continue
            if not self._is_anybody_there(job):
                if not self.rules.within:
                    session.record.judge(job.key, self.rules.name, NOBODY)
            elif session.job_valid(job) is None and session.job_starving(job):
                found.setdefault(job.queue, []).append(job)
        return found

    def serve(self, queue: Queue, job: Job) -> None:
        """Make plans for a job: one for the members its minimum needs, then one for each further member, while it starves."""
        session = self.session
        tasks = claimants(session, job)
        if not session.is_pipelined(job):
            if tasks:
                self.seek(queue, job, tasks, lambda: session.is_pipelined(job))
            return
        for task in tasks:
            if not session.job_starving(job) or not self.seek(queue, job, [task], lambda: True):
                return

    def _is_anybody_there(self, job: Job) -> bool:
        """Tell whether the rules let anybody at all go for a job, asked once for all jobs that nothing can tell apart."""
        if self.session.reserved:
            # Room that is held for somebody weaker can be taken over without evicting anybody.
            return True
        pending = job.pending.values()
        claimant = next((task for task in pending if not task.best_effort), next(iter(pending), None))
        if claimant is None:
            return False
        key = (self._market.kind_of_job(job), claimant.best_effort)
        if key not in self._anybody:
            self._anybody[key] = any(
                self.rules.may_go(claimant, task)
                for source in self.rules.sources(claimant)
                for task in source.tasks.values()
            )
        return self._anybody[key]

    def seek(self, queue: Queue, job: Job, tasks: Sequence[Task], done: Callable[[], bool]) -> bool:
        """Try to make one plan, if need be on room that is held for somebody weaker; tells whether room was made or found."""
        self.session.attempted[job.key] = job
        self.session.observer.sought(self.rules.name)
        simulated = self.rules.simulation
        if simulated is None:
            return self._seek(queue, job, tasks, done)
        simulated.claimant = tasks[0]
        try:
            return self._seek(queue, job, tasks, done)
        finally:
            simulated.claimant = None

    def _seek(self, queue: Queue, job: Job, tasks: Sequence[Task], done: Callable[[], bool]) -> bool:
        plan = Plan(self.session, self.rules, queue, job)
        if self._settle(plan, tasks, done):
            return True
        weaker = takeover.holders(self.session, self.rules, tasks[0])
        if weaker:
            with takeover.lifted(self.session, weaker) as lifted:
                if self._settle(Plan(self.session, self.rules, queue, job), tasks, done):
                    lifted.keep()
                    return True
        if not self.rules.within:
            # What was found between jobs says more than that the job's own pods do not help.
            self.session.record.judge(job.key, self.rules.name, self._why_not(plan))
        return False

    def _settle(self, plan: Plan, tasks: Sequence[Task], done: Callable[[], bool]) -> bool:
        """Look for a plan that its victims would not undo, and commit it."""
        for _ in range(ROUNDS):
            if not self.fill(plan, tasks, done):
                break
            trimming.trim(plan)
            if not plan.units:
                self._keep_room(plan)
                return True
            returning = looping.those_who_would_return(plan, self._takes_from)
            if not returning:
                self._commit(plan)
                return True
            plan.start_again()
            plan.excluded.update(dict.fromkeys(task.uid for task in returning))
        plan.give_up()
        return False

    def fill(self, plan: Plan, tasks: Sequence[Task], done: Callable[[], bool]) -> bool:
        """Place members until the job has what the plan is for; without new victims if that can be done."""
        if plan.arrange_enough(tasks, done):
            return True
        return any(self._fill_in_order(plan, ordered, done) for ordered in orders(plan, tasks))

    def _fill_in_order(self, plan: Plan, tasks: Sequence[Task], done: Callable[[], bool]) -> bool:
        """Place members one after the other, each where it costs least; if that is not enough, nothing stays."""
        mark, count = plan.statement.checkpoint(), len(plan.members)
        hopeless: dict[Hashable, None] = {}
        for member in tasks:
            if member.likeness in hopeless:
                continue
            if not plan.place(member, self._market):
                hopeless[member.likeness] = None
            elif done():
                return True
        plan.back_to(mark, count)
        plan.units.clear()
        return False

    def fresh(self) -> Search:
        """Return a search by the same rules that remembers nothing."""
        return Search(self.session, self.rules)

    def _takes_from(self, job: Job, plan: Plan) -> bool:
        """Tell whether the same search, as things stand, would take pods of a plan's claimant for a job, in any of its rounds."""
        session = self.session
        queue, tasks = session.queue_of(job), claimants(session, job)
        if queue is None or not tasks:
            return False
        complete = session.is_pipelined(job)
        rival, search = Plan(session, self.rules, queue, job), self.fresh()
        members = {member.uid for member in plan.members}
        for _ in range(ROUNDS):
            if not search.fill(rival, tasks[:1] if complete else tasks, lambda: complete or session.is_pipelined(job)):
                break
            trimming.trim(rival)
            taken = [task for unit in rival.units for task in unit.tasks]
            rival.start_again()
            if not taken:
                return False
            if any(task.uid in members or (task.job is plan.job and task.job is not job) for task in taken):
                return True
            # Whoever it would take first may be refused to it in turn; then it goes on.
            rival.excluded.update(dict.fromkeys(task.uid for task in taken))
        rival.start_again()
        return False

    def _keep_room(self, plan: Plan) -> None:
        """Nobody needs to go: the members keep the places that were found for them, and allocate follows."""
        self.session.record.say(
            self.rules.name, f"{plan.job.key}: there is room for {len(plan.members)} members without evicting anybody"
        )
        self.session.reserve(plan.members, [], self.rules.hold_for)
        # Where allocate comes later in the list, it places them in this very cycle.
        self.session.reserved.update({member.uid: member for member in plan.members})
        plan.statement.hold()

    def _commit(self, plan: Plan) -> None:
        victims = [task for unit in plan.units for task in unit.tasks]
        listed = ", ".join(task.key for task in victims[:NAMED])
        more = f" and {len(victims) - NAMED} more" if len(victims) > NAMED else ""
        self.session.record.judge(
            plan.job.key,
            self.rules.name,
            f"{len(victims)} pods are evicted for {len(plan.members)} members: {listed}{more}",
        )
        self.session.reserve(plan.members, victims, self.rules.hold_for)
        plan.statement.commit()
        self.session.observer.evicted(self.rules.name, len(victims))

    def _why_not(self, plan: Plan) -> str:
        if plan.refusal:
            return plan.refusal
        if plan.excluded:
            return f"{len(plan.excluded)} pods could be evicted, but would take the room back in the next cycle by the same rules"
        return "no set of pods that may be evicted makes enough room"
