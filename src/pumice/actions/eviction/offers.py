"""What a member of a claimant would cost on each node, and where that is least.

Nodes are asked in the order of their bounds until none that is left can be cheaper than the best so far, so the answer is the one that asking every node would give.
Members that nothing can tell apart share their bounds, which are brought up to date node by node.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import numpy as np

from pumice.actions.eviction import candidate_columns
from pumice.actions.eviction.kept_gangs import KeptGangs
from pumice.actions.eviction.node_bounds import Bounds
from pumice.actions.eviction.victim_sets import VictimSets
from pumice.framework import foresight
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


class KindBounds:
    """The bounds of all nodes for members of one kind, kept up to date."""

    def __init__(self, columns: Columns, member: Task, kept: KeptGangs) -> None:
        self.columns = columns
        self._kept = kept
        self.request = member.shape.request
        self.bounds = Bounds(columns, self.request.asked)
        self.epoch = columns.epoch
        self.read = 0
        self.passed: dict[Hashable, bool] = {}  # see VictimSets
        self.usable: Mask = np.zeros(0, dtype=np.bool_)

    def refresh(self, plan: Plan, member: Task) -> None:
        """Bring the bounds up to date with the nodes, the jobs and the queues."""
        columns = self.columns
        usable = self._who_could_go(plan, member)
        changed = columns.log[self.read :]
        self.read = len(columns.log)
        if len(self.usable) != len(usable):
            places = np.arange(len(columns.starts))
        else:
            at = np.flatnonzero(self.usable != usable)
            turned = np.searchsorted(columns.ends, at, side="right").tolist()
            places = np.array(sorted({*turned, *changed}), dtype=np.int64)
        self.usable = usable
        self.bounds.assess(places, self.lacking(places), usable)

    def _who_could_go(self, plan: Plan, member: Task) -> Mask:
        """Mark the units that are not known to stay."""
        columns = self.columns
        usable = columns.those_of(member)
        protected = columns.protected(member)
        if protected is not None:
            usable &= ~protected
        if plan.excluded:
            usable &= ~columns.having(plan.excluded)
        if kept := self._kept.places(plan, member, columns):
            usable[kept] = False
        return usable

    def lacking(self, places: Rows) -> Matrix:
        """Return what each node lacks for a member."""
        table = self.columns.table
        short: Matrix = (self.request.vector - table.future_idle_at(places))[:, self.request.asked]
        return short

    def tighten(self, place: int, among: Mask) -> None:
        """Look more closely at a node, and at those whose bounds are like its own."""
        b = self.bounds
        alike = among & b.possible & ~b.settled & (b.priority == b.priority[place])
        alike &= (b.breaks == b.breaks[place]) & (b.count == b.count[place])
        alike[place] = False
        places = np.sort(np.append(np.flatnonzero(alike)[: BATCH - 1], place))
        b.tighten(places, self.lacking(places), self.usable)


class OpenNodes(msgspec.Struct, frozen=True):
    """What is known of all nodes for members of one kind: their bounds, which of them are open, and their scores."""

    kind: KindBounds
    evaluation: Evaluation
    left: Mask
    scores: Rows


class Offers:
    """What nodes would cost the members of all claimants of one action in one cycle."""

    def __init__(self, session: Session, rules: Rules) -> None:
        self._session = session
        self._rules = rules
        self._kinds: dict[Hashable, KindBounds] = {}
        self._kept = KeptGangs(rules)
        self._by_priority = rules.facts.votes_go_by_priority

    def cheapest(self, plan: Plan, member: Task) -> Offer | None:
        """Return the cheapest offer for a member as things stand."""
        if member.shape.request.unoffered:
            return None
        evaluation = plan.evaluation(member)
        evaluation.mask(released=True)
        columns = candidate_columns.columns(self._session, self._rules, member)
        among = self._open_to(evaluation)
        within = plan.rows(member)
        if within is not None:
            inside = np.zeros(len(among), dtype=np.bool_)
            inside[within] = True
            among &= inside
        if not among.any():
            return None
        return self._first(self._bounds(plan, member, columns), plan, member, among, _scores(evaluation, among))

    def _open_to(self, evaluation: Evaluation) -> Mask:
        """Mark the nodes that a member may go to if eviction cures what speaks against them."""
        marked: Mask = evaluation.curable(own_queue=self._rules.own_queue)
        return marked

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

    def look_ahead(self, plan: Plan, member: Task) -> OpenNodes | None:
        """Return what is known of all nodes for a member, where what is done on one of them says nothing about another; None if it may, or if there is room without victims."""
        evaluation = plan.evaluation(member)
        if not self._by_priority or self._rules.within or not _is_apart(plan, member, evaluation):
            return None
        columns = candidate_columns.columns(self._session, self._rules, member)
        if not evaluation.scores_apart():
            return None
        kind, left = self._bounds(plan, member, columns), self._open_to(evaluation)
        kind.refresh(plan, member)
        return OpenNodes(kind, evaluation, left, _scores(evaluation, left))

    def _bounds(self, plan: Plan, member: Task, columns: Columns) -> KindBounds:
        job = plan.job
        apart = self._session.evaluator.apart(Subject(member, plan.queue))
        key: tuple[Hashable, ...] = (*member.likeness, apart, job.queue, job.priority)
        if not self._by_priority or self._rules.within:
            key = (*key, job.key, member.priority)
        kind = self._kinds.get(key)
        if kind is None or kind.epoch != columns.epoch:
            kind = self._kinds[key] = KindBounds(columns, member, self._kept)
        return kind

    def _first(self, kind: KindBounds, plan: Plan, member: Task, left: Mask, scores: Rows) -> Offer | None:
        """Ask nodes in the order of their bounds until none that is left can be cheaper."""
        columns, bounds = kind.columns, kind.bounds
        sets = VictimSets(plan, member, columns.protections, kind.passed)
        kind.refresh(plan, member)
        best: Offer | None = None
        asked = 0
        while (row := bounds.lowest(left, scores)) is not None:
            score = int(scores[row])
            bound = (bounds.rank(row), -score, row)
            if best is not None and (bound > best.rank or asked >= ASKED):
                if bound <= best.rank:
                    plan.bounds[ENOUGH] = None
                break
            if not bounds.settled[row]:
                kind.tighten(row, left)
                continue
            found = sets.cheapest(row)
            asked += 1
            left[row] = False
            if found is not None and (best is None or (found[0], -score, row) < best.rank):
                best = Offer(row, found[1], (found[0], -score, row))
                if best.rank == bound:
                    break
            if found is None or found[0] > bound[0]:
                self._kept.note(plan, member, columns, row, refused=sets.refused.values(), ordered=sets.ordered)
                if columns.learn(member, row):
                    # Others are protected like somebody here: no need to find that out node by node.
                    kind.refresh(plan, member)
        return best


def _scores(evaluation: Evaluation, among: Mask) -> Rows:
    """Return the scores of some nodes."""
    evaluation.refresh_scores()
    rows = np.flatnonzero(among)
    scores = np.zeros(len(among), dtype=np.int64)
    scores[among] = foresight.rounded(evaluation.plain[rows] + evaluation.normalised(rows))
    return scores


def _is_apart(plan: Plan, member: Task, evaluation: Evaluation) -> bool:
    """Tell whether a member finds no room without victims, anywhere, and what is done on one node says nothing about another."""
    return (
        plan.session.shortcuts.victims_by_numbers
        and plan.rules.judges_apart
        and plan.rules.simulation is None
        and plan.session.evaluator.sampler is None
        and not evaluation.mask(released=True).any()
        and evaluation.is_by_amounts(released=True)
        and not evaluation.is_stepwise(released=True)
        and plan.rows(member) is None
    )
