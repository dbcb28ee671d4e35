"""What a member of a claimant would cost on each node, and where that is least.

Nodes are asked in the order of their bounds until none that is left can be cheaper than the best so far, so the answer is the one that asking every node would give.
Members that nothing can tell apart share their bounds, which are brought up to date node by node.
"""

from __future__ import annotations

import functools
import operator
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from pumice.actions.eviction import candidate_columns
from pumice.actions.eviction.node_bounds import Bounds
from pumice.actions.eviction.victim_sets import VictimSets
from pumice.framework import foresight
from pumice.framework.evaluation import recalled
from pumice.framework.points import Reads
from pumice.framework.subject import Subject

if TYPE_CHECKING:
    from collections.abc import Hashable

    from pumice.actions.eviction.candidate_columns import Columns
    from pumice.actions.eviction.plan import Plan
    from pumice.actions.eviction.ranking import Rank
    from pumice.actions.eviction.rules import Rules
    from pumice.actions.eviction.units import Unit
    from pumice.framework.evaluation import Evaluation, Mask
    from pumice.framework.session import Session
    from pumice.model.job import Job
    from pumice.model.nodes import Rows
    from pumice.model.resources import Matrix
    from pumice.model.task import Task

# How many nodes are looked at more closely at a time, and how many are asked once there is an offer: the best so far is then good enough.
BATCH = 1024
ASKED = 100
ENOUGH = f"no more than {ASKED} nodes were asked for a cheaper offer"


class Offer(msgspec.Struct, frozen=True):
    """What one node would cost one member; the higher score breaks ties, then the first name."""

    row: int
    units: tuple[Unit, ...]
    rank: tuple[Rank, int, int]


class Shelf:
    """The bounds for members of one kind, and the nodes of which it is known that nobody there helps."""

    def __init__(self, columns: Columns, member: Task) -> None:
        self.columns = columns
        self.request = member.shape.request
        self.bounds = Bounds(columns, self.request.asked)
        self.epoch = columns.epoch
        self.read = 0
        self.revivals = columns.revivals
        self.useless: dict[int, None] = {}
        self.hopeless: dict[int, None] = {}  # the same, whatever filters there are
        self.passed: dict[Hashable, bool] = {}  # see VictimSets
        self.usable: Mask = np.zeros(0, dtype=np.bool_)
        self._open: Mask = np.zeros(0, dtype=np.bool_)
        self._open_by: Evaluation | None = None
        self._open_read = 0
        self._known: dict[bytes, bool] = {}
        self._scores: Rows = np.zeros(0, dtype=np.int64)
        self._scored_by: tuple[Evaluation, tuple[int, int]] | None = None
        self._scores_read = 0
        self._last: tuple[Job, int] | None = None

    def refresh(self, plan: Plan, member: Task) -> None:
        """Bring the bounds up to date with the nodes, the jobs and the queues."""
        columns = self.columns
        usable = self._who_could_go(plan, member)
        changed = columns.log[self.read :]
        self.read = len(columns.log)
        self._forget(plan, changed)
        if len(self.usable) != len(usable):
            places = np.arange(len(columns.rows))
        else:
            at = np.flatnonzero(self.usable != usable)
            turned = np.searchsorted(columns.ends, at, side="right").tolist()
            places = np.array(sorted({*turned, *(columns.segments[row] for row in changed)}), dtype=np.int64)
        self.usable = usable
        self.bounds.assess(places, self.lacking(places), usable)

    def open_to(self, evaluation: Evaluation, *, own_queue: bool) -> Mask:
        """Mark the nodes that a member may go to if eviction cures what speaks against them; unless other nodes have a say, only those are asked about that have changed."""
        columns = self.columns
        if self._open_by is not evaluation or evaluation.minds_others(released=True):
            self._open_by = evaluation
            self._open = evaluation.curable(own_queue=own_queue)[columns.rows]
            self._known.clear()
        elif len(columns.log) > self._open_read:
            changed = np.array(sorted({*columns.log[self._open_read :]}), dtype=np.int64)
            places = [columns.segments[row] for row in changed.tolist()]
            if evaluation.is_by_amounts(released=True) and self._open[places].all():
                # Node objects have not changed their minds, and nodes of equal amounts are asked about once.
                ask = functools.partial(evaluation.curable, own_queue=own_queue, local=True)
                self._open[places] = recalled(columns.table, changed, self._known, ask)
            else:
                self._open[places] = evaluation.curable(changed, own_queue=own_queue)
        self._open_read = len(columns.log)
        return self._open

    def scores(self, evaluation: Evaluation, among: Mask) -> Rows:
        """Return the scores of nodes, of these at least; unless other nodes have a say, only those are asked for that have changed."""
        columns = self.columns
        evaluation.refresh_scores()
        if not evaluation.scores_apart():
            rows = columns.rows[among]
            scores = np.zeros(len(columns.rows), dtype=np.int64)
            scores[among] = foresight.rounded(evaluation.plain[rows] + evaluation.normalised(rows))
            return scores
        if self._scored_by != (evaluation, evaluation.stated):
            self._scored_by = (evaluation, evaluation.stated)
            self._scores = foresight.rounded(evaluation.plain[columns.rows])
        elif changed := columns.log[self._scores_read :]:
            self._scores[[columns.segments[row] for row in changed]] = foresight.rounded(evaluation.plain[changed])
        self._scores_read = len(columns.log)
        return self._scores

    def _who_could_go(self, plan: Plan, member: Task) -> Mask:
        """Mark the units that are not known to stay."""
        columns = self.columns
        usable = columns.alive.copy()
        if not plan.rules.within and (own := columns.number_of(member.job)) >= 0:
            usable &= columns.job != own
        protected = columns.protected(member)
        if protected is not None:
            usable &= ~protected
        if plan.excluded:
            usable &= ~columns.having(plan.excluded)
        return usable

    def _forget(self, plan: Plan, changed: list[int]) -> None:
        """Forget of which nodes it is known that nobody helps, as far as that may have changed."""
        returned = self.revivals != self.columns.revivals
        again = self._last is not None and self._last[0] is plan.job and len(plan.members) < self._last[1]
        if returned or again:
            self.useless.clear()
            self.hopeless.clear()
        for row in changed:
            self.useless.pop(row, None)
            self.hopeless.pop(row, None)
        self.revivals = self.columns.revivals
        self._last = (plan.job, len(plan.members))

    def leave_out(self, row: int, sets: VictimSets) -> None:
        """Remember a node on which nobody helped, as long as that is known to stay so."""
        if sets.lasts or sets.hopeless:
            (self.hopeless if sets.hopeless else self.useless)[row] = None

    def lacking(self, places: Rows) -> Matrix:
        """Return what each node lacks for a member."""
        table = self.columns.table
        rows = self.columns.rows[places]
        free = table.allocatable[rows] - table.used[rows] + table.releasing[rows] - table.pipelined[rows]
        short: Matrix = (self.request.vector - free)[:, self.request.asked]
        return short

    def tighten(self, place: int, among: Mask) -> None:
        """Look more closely at a node, and at those whose bounds are like its own."""
        b = self.bounds
        alike = among & b.possible & ~b.settled & (b.priority == b.priority[place])
        alike &= (b.breaks == b.breaks[place]) & (b.count == b.count[place])
        alike[place] = False
        places = np.sort(np.append(np.flatnonzero(alike)[: BATCH - 1], place))
        b.tighten(places, self.lacking(places), self.usable)


class Outlook(msgspec.Struct, frozen=True):
    """What is known of all nodes for members of one kind: their bounds, which of them are open, and their scores."""

    shelf: Shelf
    evaluation: Evaluation
    left: Mask
    scores: Rows


class Market:
    """All offers of one action in one cycle."""

    def __init__(self, session: Session, rules: Rules) -> None:
        self._session = session
        self._rules = rules
        self._shelves: dict[Hashable, Shelf] = {}
        reads = functools.reduce(operator.or_, (each.reads for each in rules.functions()), Reads(0))
        self._by_priority = not reads & (Reads.JOB | Reads.QUEUE | Reads.OTHER_NODES | Reads.COLUMNS)
        self._by_job = bool(reads & Reads.JOB) or rules.within or not session.shortcuts.equal_claimants
        self._by_amounts = bool(reads & Reads.COLUMNS)

    def kind_of_job(self, job: Job) -> Hashable:
        """Return what the candidates for a job depend on: who it is, or its numbers, as far as those who decide read them."""
        if self._by_job:
            return job.key
        if not self._by_amounts:
            return job.queue, job.priority
        asked = frozenset([(task.priority, *task.likeness) for task in job.pending.values()])
        return job.queue, job.priority, self._session.cluster.job_sums.held(job.row).tobytes(), asked

    def cheapest(self, plan: Plan, member: Task) -> Offer | None:
        """Return the cheapest offer for a member as things stand."""
        if member.shape.request.unoffered:
            return None
        evaluation = plan.evaluation(member)
        evaluation.mask(released=True)
        columns = candidate_columns.columns(self._session, self._rules, member)
        if not len(columns.rows):
            return None
        shelf = self._shelf(plan, member, columns)
        among = shelf.open_to(evaluation, own_queue=self._rules.own_queue).copy()
        within = plan.rows(member)
        if within is not None:
            among &= np.isin(columns.rows, within)
        if not among.any():
            return None
        return self._first(shelf, plan, member, among, shelf.scores(evaluation, among))

    def place(self, plan: Plan, member: Task) -> bool:
        """Place a member where it costs least: nothing, else the node with the lowest victims, the fewest, the best score."""
        if plan.place_freely(member):
            return True
        if self._session.pre_predicate(Subject(member, plan.queue)) is not None:
            return False
        refusal = self._rules.may_ask(plan.queue, member)
        if refusal is not None:
            plan.refusal = f"queue {plan.queue.name} may not take from others: {refusal}"
            return False
        offer = self.cheapest(plan, member)
        return offer is not None and plan.add_step(member, offer.row, offer.units)

    def look_ahead(self, plan: Plan, member: Task) -> Outlook | None:
        """Return what is known of all nodes for a member, where what is done on one of them says nothing about another; None if it may, or if there is room without victims."""
        evaluation = plan.evaluation(member)
        evaluation.mask(released=True)
        if not self._by_priority or self._rules.within or not _is_apart(plan, member, evaluation):
            return None
        columns = candidate_columns.columns(self._session, self._rules, member)
        shelf = self._shelf(plan, member, columns)
        left = shelf.open_to(evaluation, own_queue=self._rules.own_queue).copy()
        shelf.refresh(plan, member)
        scores = shelf.scores(evaluation, left)
        if shelf.useless or shelf.hopeless or not evaluation.scores_apart():
            return None
        return Outlook(shelf, evaluation, left, scores)

    def _shelf(self, plan: Plan, member: Task, columns: Columns) -> Shelf:
        job = plan.job
        key: tuple[Hashable, ...] = (*member.likeness, job.queue, job.priority, job.key, member.priority)
        if self._by_priority and not self._rules.within:
            key = (*member.likeness, job.queue, job.priority)
        shelf = self._shelves.get(key)
        if shelf is None or shelf.epoch != columns.epoch:
            shelf = self._shelves[key] = Shelf(columns, member)
        return shelf

    def _first(self, shelf: Shelf, plan: Plan, member: Task, left: Mask, scores: Rows) -> Offer | None:
        """Ask nodes in the order of their bounds until none that is left can be cheaper."""
        columns, bounds = shelf.columns, shelf.bounds
        sets = VictimSets(plan, member, columns.protections, shelf.passed)
        shelf.refresh(plan, member)
        if sets.lasts:
            left[[columns.segments[row] for row in shelf.useless]] = False
        left[[columns.segments[row] for row in shelf.hopeless]] = False
        best: Offer | None = None
        asked = 0
        while (place := bounds.lowest(left, scores)) is not None:
            row, score = int(columns.rows[place]), int(scores[place])
            bound = (bounds.rank(place), -score, row)
            if best is not None and (bound > best.rank or asked >= ASKED):
                if bound <= best.rank:
                    plan.bounds[ENOUGH] = None
                break
            if not bounds.settled[place]:
                shelf.tighten(place, left)
                continue
            found = sets.cheapest(row)
            asked += 1
            left[place] = False
            if found is None:
                shelf.leave_out(row, sets)
            elif best is None or (found[0], -score, row) < best.rank:
                best = Offer(row, found[1], (found[0], -score, row))
                if best.rank == bound:
                    break
            if (found is None or found[0] > bound[0]) and columns.learn(member, row):
                # Others are protected like somebody here: no need to find that out node by node.
                shelf.refresh(plan, member)
        return best


def _is_apart(plan: Plan, member: Task, evaluation: Evaluation) -> bool:
    """Tell whether a member finds no room without victims, anywhere, and what is done on one node says nothing about another."""
    return (
        plan.session.shortcuts.victims_by_numbers
        and plan.rules.judges_apart
        and plan.rules.simulation is None
        and plan.session.evaluator.sampler is None
        and evaluation.is_by_amounts(released=True)
        and not evaluation.is_stepwise(released=True)
        and plan.rows(member) is None
        and not evaluation.mask(released=True).any()
    )
