"""Plans: where the members of a claimant go, who has to leave for it, and nobody more than that."""

from __future__ import annotations

import functools
import itertools
from typing import TYPE_CHECKING

import numpy as np

from pumice.actions.eviction import asking, units, ways
from pumice.actions.eviction.votes import Votes
from pumice.actions.eviction.ways import Ways
from pumice.actions.placing import inside_domains, likeness, sub_jobs, task_runs, turns
from pumice.actions.placing.domain_goal import Progress
from pumice.framework import selection, subject
from pumice.framework.fitting import room
from pumice.framework.runs import leaving_order
from pumice.model.statuses import Status

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator, Sequence

    from pumice.actions.eviction.asking import Wanted
    from pumice.actions.eviction.rules import Rules
    from pumice.actions.eviction.units import Unit
    from pumice.actions.placing.turns import Turn
    from pumice.framework.evaluation import Evaluation
    from pumice.framework.session import Session
    from pumice.framework.statement import Statement
    from pumice.model.hypernodes import HyperNode
    from pumice.model.job import Job
    from pumice.model.nodes import Rows
    from pumice.model.task import Task

SMALL = 8
FEW = 4  # members of which every order is tried


class Plan:
    """One attempt to make room for a job; everything it does is in one statement."""

    def __init__(self, session: Session, rules: Rules, wanted: Wanted, domain: HyperNode | None = None) -> None:
        self.session = session
        self.rules = rules
        self.queue = wanted.queue
        self.job = wanted.job
        self.claimant = wanted.claimant
        # Where members go and victims come from, None for anywhere.
        self.domain = domain
        self.statement: Statement = session.statement(wanted.claimant)
        self.units: list[Unit] = []
        self.members: list[Task] = []
        # Pods that go in no later plan, and those of jobs that must not go entirely, though they may give what they can spare.
        self.excluded: dict[str, None] = {}
        self.kept: dict[frozenset[str], None] = {}
        self.refusal = ""
        # Which bounds of the search were reached: whoever reads why a plan was made or not is told.
        self.bounds: dict[str, None] = {}
        # Who would take the room over, where that is why a plan was given up.
        self.successor: Job | None = None
        # What was found last for a member, as long as nothing has moved since: whether its queue may take it on, and that it finds no room.
        self._allowed: tuple[int, str, bool] = (-1, "", False)
        self._homeless: tuple[int, str] = (-1, "")
        # Whether it is known that no victim can be spared.
        self.is_trimmed = False
        self.gangs = rules.keeps_gangs
        self.votes = Votes(rules, domain)
        # Whether every step was let through in the state that those before it have reached.
        self.is_admitted = True
        self._owners: dict[str, Task] = {}

    def with_bounds(self, text: str) -> str:
        """Return what is said of the plan, followed by the bounds that were reached while it was looked for."""
        return f"{text} ({'; '.join(self.bounds)})" if self.bounds else text

    @property
    def victims(self) -> list[Task]:
        """All who go, in the order in which they leave: it says nothing of how they were found."""
        return sorted([task for unit in self.units for task in unit.tasks], key=leaving_order)

    # -- who would come back -----------------------------------------------------------------------------------

    def exclude(self, tasks: Sequence[Task]) -> None:
        """Leave victims out from now on; where all of a job goes that could spare some, all of it together at first."""
        by_job: dict[str, list[Task]] = {}
        for task in tasks:
            by_job.setdefault(task.job_key, []).append(task)
        for some in by_job.values():
            job, together = some[0].job, frozenset([task.uid for task in some])
            if job is None or job.tally.ready or len(some) <= max(1, job.min_member) or together in self.kept:
                self.excluded.update(dict.fromkeys(together))
            else:
                self.kept[together] = None

    @property
    def number_excluded(self) -> int:
        """How many pods were left out."""
        return len(set(self.excluded).union(*self.kept))

    def leaves_out(self, going: Sequence[Unit]) -> bool:
        """Tell whether units must not go, or not together."""
        if not self.excluded and not self.kept:
            return False
        uids = {task.uid for unit in going for task in unit.tasks}
        return not uids.isdisjoint(self.excluded) or any(together <= uids for together in self.kept)

    # -- questions ---------------------------------------------------------------------------------------------

    def rows(self, member: Task) -> Rows | None:
        """Return the nodes that a member may go to as things stand, None for all of them."""
        within = None if self.domain is None else self.domain.rows
        if self.domain is not None and not any(policy.topology for policy in self.job.policies):
            return within
        reach = self.session.topology.reach(member)
        if reach is None or within is None:
            return within if reach is None else reach
        return np.intersect1d(reach, within, assume_unique=True)

    def covers(self, task: Task) -> bool:
        """Tell whether a task is on a node that victims are taken from."""
        if self.domain is None:
            return True
        return task.node is not None and task.node.row in self._covered

    @functools.cached_property
    def _covered(self) -> frozenset[int]:
        return frozenset(() if self.domain is None else self.domain.rows.tolist())

    def evaluation(self, member: Task) -> Evaluation:
        """Return the verdicts of all nodes for a member."""
        return self.session.evaluate(subject.Subject(member, self.queue))

    def is_allowed(self, member: Task) -> bool:
        """Ask whether the queue may take the member on."""
        changed = self.session.cluster.changed
        if self._allowed[:2] != (changed, member.uid):
            refusal = self.session.allocatable(self.queue, subject.equal_tasks([member], waits=True))
            self._allowed = (changed, member.uid, refusal is None)
        return self._allowed[2]

    def fits(self, member: Task, row: int) -> bool:
        """Ask whether a member passes everything on a node that it may go to, taking what is being released as gone."""
        evaluation = self.evaluation(member)
        nodes = self.session.cluster.nodes.view(np.array([row], dtype=np.int64), released=True)
        if not room(evaluation.subject, nodes)[0]:
            return False
        return (
            bool(evaluation.mask(released=True)[row]) and self.is_allowed(member) and not self._is_refused(member, row)
        )

    def _is_refused(self, member: Task, row: int) -> bool:
        """Ask the plugins that simulate, where they are asked."""
        simulated = self.rules.simulation
        return simulated is not None and simulated.refuses(self.queue, member, self.session.cluster.nodes.records[row])

    def tier(self, member: Task, row: int, candidates: Sequence[Task]) -> int:
        """Return which tier of plugins decides about victims on a node, of which these are the candidates."""
        begun = bool(self.units) and (not self.rules.node_by_node or self._takes_from(row))
        return self.votes.tier(member, row, candidates, begun=begun)

    def _takes_from(self, row: int) -> bool:
        """Tell whether somebody goes on a node already."""
        return any(task.node is not None and task.node.row == row for unit in self.units for task in unit.tasks)

    def leaves_gangs_whole(self, taken: Sequence[Unit]) -> bool:
        """Tell whether every job that loses a pod keeps its minimum or is gone entirely."""
        if not self.gangs:
            return True
        jobs = {task.job.key: task.job for unit in taken for task in unit.tasks if task.job is not None}
        return all(job is self.job or not job.tally.ready or units.keeps_its_minimum(job) for job in jobs.values())

    def can_spare(self, going: Sequence[Unit]) -> bool:
        """Tell whether every job can spare all those of it together that go alone."""
        losing: dict[str, list[Task]] = {}
        for unit in going if self.gangs else ():
            if not unit.whole and unit.tasks[0].job is not self.job:
                losing.setdefault(unit.tasks[0].job_key, []).append(unit.tasks[0])
        return all(t[0].job is not None and units.keeps_its_minimum(t[0].job, t) for t in losing.values())

    def loose_units(self) -> list[Unit]:
        """Return the units of which nobody is on the node of a member, where victims are offered node by node."""
        if not self.rules.node_by_node:
            return []
        nodes = {id(member.node) for member in self.members}
        return [unit for unit in self.units if not any(id(task.node) in nodes for task in unit.tasks)]

    # -- placing -----------------------------------------------------------------------------------------------

    def place_freely(self, member: Task, ahead: list[int] | None = None) -> bool:
        """Let a member wait for room that is free or being released, wherever that is, or on the next of the rows that were chosen ahead."""
        if self._homeless == (self.session.cluster.changed, member.uid):
            return False
        if not self.is_allowed(member) or self.session.pre_predicate(subject.Subject(member, self.queue)) is not None:
            return False
        rows = ahead or selection.choose(
            self.evaluation(member), self.session.cluster.nodes, 1, released=True, within=self.rows(member)
        )
        if not rows:
            if self.session.evaluator.sampler is None:
                self._homeless = (self.session.cluster.changed, member.uid)
            return False
        row = rows.pop(0)
        if self.rules.asks_each:
            self.is_admitted = False
        return not self._is_refused(member, row) and self.settle(member, row)

    def _choose_ahead(self, run: Sequence[Task]) -> list[int]:
        """Choose rows for a run of equal members at once, where that gives what choosing one by one would; else none."""
        session, first = self.session, run[0]
        roams = self.domain is None and self.job.topology is not None
        if roams or session.evaluator.sampler is not None:
            return []
        evaluation, nodes = self.evaluation(first), session.cluster.nodes
        evaluation.mask(released=True)
        evaluation.refresh_scores()
        if evaluation.is_stepwise(released=True):
            return []
        count = min(len(run), task_runs.lacking(first))
        return selection.choose(evaluation, nodes, count, released=True, within=self.rows(first))

    def add_step(self, member: Task, row: int, going: Sequence[Unit]) -> bool:
        """Let units go that were let through for a member, and the member wait on their node."""
        self.evict_all(going)
        for unit in going:
            self._owners[unit.tasks[0].uid] = member
        return self.settle(member, row)

    def taken_for(self, unit: Unit) -> Task | None:
        """Return the member that a unit was taken for, if that is known."""
        return self._owners.get(unit.tasks[0].uid)

    def settle(self, member: Task, row: int) -> bool:
        """Let a member wait on a node."""
        record = self.session.cluster.nodes.records[row]
        if not self.statement.pipeline([member], [record], evicted=True):
            return False
        self.members.append(member)
        return True

    def evict(self, unit: Unit) -> None:
        """Take a unit out of the way."""
        self.statement.evict(unit.tasks, self.rules.name)
        self.units.append(unit)

    def evict_all(self, some: Sequence[Unit]) -> None:
        """Take units out of the way together."""
        self.statement.evict([task for unit in some for task in unit.tasks], self.rules.name)
        self.units += some

    # -- all members at once, without new victims --------------------------------------------------------------

    def arrange(self, members: Sequence[Task]) -> bool:
        """Place all members without new victims: one after the other, and, if there are few, in every way there is."""
        mark, count = self.statement.checkpoint(), len(self.members)
        if all(self.place_freely(member) for member in members):
            return True
        self.back_to(mark, count)
        wanted = count + len(members)
        some = Ways(self, len(members), lambda: len(self.members) == wanted)
        return self.is_small(members) and not ways.is_only_one(self.session, self.job, members) and some.finds(members)

    def arrange_enough(self, tasks: Sequence[Task], done: Callable[[], bool]) -> bool:
        """Place as many of the tasks as are enough, without new victims, as allocate would or, if there are few, in every way there is."""
        mark, count = self.statement.checkpoint(), len(self.members)
        if self.arrange_in_order(tasks, done):
            return True
        self.back_to(mark, count)
        return (
            not self.job.policies
            and not ways.is_only_one(self.session, self.job, tasks)
            and self.arrange_somehow(tasks, done)
        )

    def arrange_somehow(
        self, tasks: Sequence[Task], done: Callable[[], bool], suits: Callable[[], bool] = lambda: True
    ) -> bool:
        """Place as many of the tasks as are enough in some way that suits, of all there are, if there are few."""
        least = min(len(tasks), asking.number_lacking(self.job))
        return self.is_small(tasks) and Ways(self, least, done, suits).finds(tasks)

    def arrange_in_order(self, tasks: Sequence[Task], done: Callable[[], bool]) -> bool:
        """Place one member after the other until it is enough, or whole sub-groups; those that are like one which finds no room are passed over."""
        if self.job.policies:
            return self._arrange_sub_groups(tasks)
        hopeless: dict[Hashable, None] = {}
        start = 0
        while start < len(tasks):
            run = task_runs.next_run(self.session, tasks, start)
            start += len(run)
            if likeness.of_member(self.session, run[0]) in hopeless:
                continue
            ahead: list[int] = []
            for position, member in enumerate(run):
                if not ahead and position + 1 < len(run):
                    ahead = self._choose_ahead(run[position:])
                if not self.place_freely(member, ahead):
                    hopeless[likeness.of_member(self.session, member)] = None
                    break
                if done():
                    return True
        return False

    def _arrange_sub_groups(self, tasks: Sequence[Task]) -> bool:
        """Place whole sub-groups, as allocate would."""
        return self._arrange_as_allocate(
            tasks, lambda turn: sub_jobs.attempt(turn.inside(self.domain), Progress.WAITS, tasks)
        )

    def arrange_anywhere(self, tasks: Sequence[Task]) -> bool:
        """Place as many of the tasks as are enough inside any one of the domains of their job, without new victims, as allocate would."""
        return self._arrange_as_allocate(tasks, lambda turn: inside_domains.place(turn, tasks)[0])

    def _arrange_as_allocate(self, tasks: Sequence[Task], place: Callable[[Turn], Progress]) -> bool:
        """Let tasks wait where allocate would put them; why they cannot is for allocate to say."""
        journal = self.session.findings.journal
        words = journal.begin()
        try:
            with self.statement.trial() as trial:
                turn = turns.Turn(self.session, self.statement, self.queue, self.job, turns.Scope(waits=True))
                if place(turn) is Progress.NOTHING:
                    return False
                trial.keep()
        finally:
            journal.back_to(words)
            journal.end()
        self.members += [task for task in tasks if task.status == Status.PIPELINED and task not in self.members]
        return True

    def is_small(self, members: Sequence[object]) -> bool:
        """Tell whether there is so little to place that every way can be tried."""
        return len(members) <= SMALL and self.session.cluster.nodes.count <= SMALL

    def back_to(self, mark: int, members: int) -> None:
        """Undo everything after a mark, before which there were that many members and the same victims."""
        self.statement.rollback(mark)
        del self.members[members:]

    def start_again(self) -> None:
        """Undo everything as if it had never been tried."""
        self.statement.rollback(0)
        self.members.clear()
        self.units.clear()
        self.is_trimmed, self.is_admitted = False, True

    def give_up(self) -> None:
        """Undo everything."""
        self.statement.discard()
        self.members.clear()
        self.units.clear()


def orders(plan: Plan, tasks: Sequence[Task]) -> Iterator[Sequence[Task]]:
    """Give the orders in which members of different shapes are placed: their own, the largest first, and, if there are few, every other."""
    yield tasks
    if len({id(task.shape) for task in tasks}) == 1:
        return
    table = plan.session.cluster.nodes
    total = np.maximum(table.allocatable[: table.count].sum(axis=0), 1)
    yield sorted(tasks, key=lambda task: -float((task.shape.request.vector / total).max()))
    if len(tasks) <= FEW and plan.is_small(tasks):
        named = [(ways.kind_of(plan.session, task), task) for task in tasks]
        distinct: dict[Hashable, Sequence[Task]] = {}
        for ordered in itertools.permutations(named):
            distinct.setdefault(tuple([kind for kind, _ in ordered]), tuple([task for _, task in ordered]))
        yield from itertools.islice(distinct.values(), 1, None)
