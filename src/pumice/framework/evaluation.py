"""Which nodes take a task and how much each is wanted, kept per shape and patched where nodes changed.

An `Evaluation` holds, for one kind of subject, a mask of nodes that pass every filter and the raw scores. Functions say what they read, and that
decides what is kept: answers that read only the Node object belong to the constraint class; those that read amounts or tasks of the node are
asked again only for rows in the table's log; those that look at other nodes are asked again whenever any row changed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pumice.framework import fitting, wrong_answers
from pumice.framework.followers import Followers
from pumice.framework.functions import answers, points_of
from pumice.framework.vectors import Floats as Floats  # noqa: PLC0414, TC001  points are declared with it at run time
from pumice.framework.vectors import Mask as Mask  # noqa: PLC0414, TC001  as above
from pumice.framework.verdicts import Verdicts

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from pumice.framework.functions import NodeFunction
    from pumice.framework.keeper import Keeper
    from pumice.framework.reasons import FitSummary, ReasonVector
    from pumice.framework.subject import Subject
    from pumice.model.nodes import Nodes, Rows

NO_SCORES: Floats = np.zeros(0)


class Evaluation:
    """Verdicts and scores of all nodes for one kind of subject."""

    __slots__ = (
        "_blind_sums",
        "_evaluator",
        "_failure",
        "_later",
        "_local_scores",
        "_moving",
        "_now",
        "_scored",
        "_static_scores",
        "_static_state",
        "_stepwise_sums",
        "key",
        "plain",
        "raw_vectors",
        "subject",
    )

    def __init__(self, evaluator: Keeper, subject: Subject, key: Hashable = None) -> None:
        self._evaluator = evaluator
        self.subject = subject
        self.key = key
        self._now = Verdicts(evaluator, released=False)
        self._later = Verdicts(evaluator, released=True)
        self.plain: Floats = NO_SCORES
        self._local_scores: Floats = NO_SCORES
        self._static_scores: Floats | None = None
        self._static_state = (-1, -1)
        # Whether a sum looks at other nodes, and which of the scores that are compared are changed by placements.
        self._stepwise_sums = self._blind_sums = False
        self._moving: list[bool] = []
        self.raw_vectors: list[Floats | None] = []
        self._scored = (-1, -1, -1)
        self._failure: tuple[tuple[int, int, int, int], FitSummary] | None = None

    @property
    def looks_ahead(self) -> bool:
        """Whether nodes for several equal tasks may be chosen at once."""
        return self._evaluator.shortcuts.runs

    def keys(self, *, released: bool) -> tuple[Floats, int] | None:
        """Return the scores of all nodes in whole thousandths, minus infinity where one does not take the task, and the best node.

        None unless they were worked out together with those of others.
        """
        return None if released else self._evaluator.blocks.row(self.key, self.subject)

    def drafted(self, count: int, *, released: bool) -> list[int] | None:
        """Return rows for a few equal tasks, fewer if nodes are full before; None as above."""
        return None if released else self._evaluator.blocks.rows(self.key, self.subject, count)

    # -- verdicts ----------------------------------------------------------------------------------------------

    def mask(self, *, released: bool) -> Mask:
        """Return the nodes that take the task now, or would once what is being released is gone."""
        return (self._later if released else self._now).refresh(self.subject)

    def _verdicts(self, *, released: bool) -> Verdicts:
        """Return what is known of one view; if nothing is, nodes are asked."""
        verdicts = self._later if released else self._now
        if verdicts.is_new:
            verdicts.refresh(self.subject)
        return verdicts

    def minds_others(self, *, released: bool) -> bool:
        """Tell whether what is on other nodes has a say in which nodes take the task."""
        return self._verdicts(released=released).minds_others

    def is_by_amounts(self, *, released: bool) -> bool:
        """Tell whether beside Node objects only the amounts of a node decide whether it takes the task."""
        verdicts = self._verdicts(released=released)
        return verdicts.goes_by_amounts and not verdicts.minds_others

    def fixed(self, *, released: bool) -> Mask:
        """Return the nodes that take the task as far as placing equal ones on other nodes does not matter."""
        return self._verdicts(released=released).fixed

    def possible(self, *, released: bool) -> Mask:
        """Return the nodes that may come to take the task, whatever is placed on other nodes meanwhile."""
        verdicts = self._later if released else self._now
        mask = verdicts.refresh(self.subject)
        return verdicts.local if verdicts.minds_others else mask

    def followers(self, *, released: bool) -> Followers | None:
        """Return what keeps step with placements; None if some function can only be asked again after each."""
        verdicts = self._verdicts(released=released)
        raws = [function for function, moves in zip(self._evaluator.functions.raws, self._moving, strict=True) if moves]
        if verdicts.is_blind or self._cannot_add_ahead(released=released) or self._evaluator.sampler is not None:
            return None
        if any(f.follow is None for f in verdicts.moving) or any(f.follow is None for f in raws):
            return None
        table = self._evaluator.table
        return Followers(
            [f.follow(self.subject, table, released=released) for f in verdicts.moving if f.follow is not None],
            [f.follow(self.subject, table) for f in raws if f.follow is not None],
        )

    def is_stepwise(self, *, released: bool) -> bool:
        """Tell whether a placement must be seen by some function before the next one is chosen."""
        verdicts = self._verdicts(released=released)
        if self._scored[0] < 0:
            self.refresh_scores()
        return verdicts.reads_tasks or bool(verdicts.moving) or self._stepwise_sums or any(self._moving)

    def is_blind(self, *, released: bool) -> bool:
        """Tell the same once scores were worked out, but for functions that can say what they will answer with more equal tasks on a node."""
        verdicts = self._verdicts(released=released)
        blind = verdicts.is_blind or self._cannot_add_ahead(released=released)
        return blind or bool(verdicts.moving) or any(self._moving)

    def _cannot_add_ahead(self, *, released: bool) -> bool:
        """Tell whether a sum has to see each placement; scores are of nodes as they are, on which those that wait are not."""
        return self._stepwise_sums if released else self._blind_sums

    # -- scores ------------------------------------------------------------------------------------------------

    def scores_apart(self) -> bool:
        """Tell whether no score compares candidates: where no placement must be seen either, that of a node depends on that node alone."""
        return all(vector is None for vector in self.raw_vectors)

    def refresh_scores(self) -> None:
        """Bring the raw scores of all nodes up to date."""
        table = self._evaluator.table
        state = (table.structure, table.stated(self.subject.constraints), table.position)
        if self._scored == state:
            return
        mark = self._evaluator.observer.mark()
        functions = self._evaluator.functions
        rows = table.changed_since(self._scored[2]) if self._scored[:2] == state[:2] else None
        nodes = table.view()
        whole = rows is None or 2 * len(rows) > table.count
        if whole:
            self._local_scores = self.plain_scores(nodes)
            self.raw_vectors = [None] * len(functions.raws)
        elif rows is not None and len(rows):
            self._local_scores[rows] = self.plain_scores(table.view(rows))
        self._moving = [
            self._refresh_raw(position, function, None if whole else rows)
            for position, function in enumerate(functions.raws)
        ]
        # Amounts run ahead in a view; single pods are on their node only once they are placed.
        self._stepwise_sums, self._blind_sums = functions.scores_read_tasks, functions.scores_are_blind
        self.plain = self._local_scores
        for _, points in answers(functions.scores_global, self.subject, nodes):
            self.plain = self.plain + points
            self._stepwise_sums = self._blind_sums = True
        self._scored = state
        self._evaluator.observer.spent("scoring", "", mark)

    def _refresh_raw(self, position: int, function: NodeFunction[Floats | None], rows: Rows | None) -> bool:
        """Bring one vector that will be normalised up to date, wholly or only the rows that changed, and tell whether placements change it."""
        table = self._evaluator.table
        vector = self.raw_vectors[position]
        looks_elsewhere, is_local = self._evaluator.functions.raw_flags[id(function)]
        if rows is None or looks_elsewhere:
            vector = self.raw_vectors[position] = self._raw(function, table.view())
        elif vector is not None and is_local and len(rows):
            vector[rows] = self._raw(function, table.view(rows))
        if vector is None or not (looks_elsewhere or is_local):
            return False
        return function.is_stepwise(self.subject)

    def _raw(self, function: NodeFunction[Floats | None], nodes: Nodes) -> Floats | None:
        """Ask one function that is normalised."""
        return next((points for _, points in answers([function], self.subject, nodes)), None)

    def _static_points(self) -> Floats | None:
        """Add up the scores that only Node objects decide; they stay until one of those changes."""
        table = self._evaluator.table
        state = (table.structure, table.stated(self.subject.constraints))
        if self._static_state != state:
            self._static_scores = points_of(self._evaluator.functions.scores_static, self.subject, table.view())
            self._static_state = state
        return self._static_scores

    def plain_scores(self, nodes: Nodes) -> Floats:
        """Add up the scores that need no comparison between nodes."""
        static = self._static_points()
        total = np.zeros(len(nodes))
        for _, points in answers(self._evaluator.functions.scores, self.subject, nodes):
            total += points
        return total if static is None else total + static[nodes.index]

    def normalised(self, candidates: Rows) -> Floats:
        """Add up the scores that compare the candidates with each other."""
        total = np.zeros(len(candidates))
        for vector, function in zip(self.raw_vectors, self._evaluator.functions.raws, strict=True):
            if vector is None:
                continue
            points = None
            if function.normalise is not None:
                points = self._to_scale(function, vector[candidates])
            elif function.follow is not None:
                points = self._followed(function, candidates)
            if points is not None:
                total += points
        return total

    def _to_scale(self, function: NodeFunction[Floats | None], raw: Floats) -> Floats | None:
        """Let a score bring its raw values to scale; None if it broke down and is left out."""
        try:
            points: Floats = function.normalise(raw)  # type: ignore[misc]  # asked of those that have it
            wrong_answers.check_points(points, len(raw))
        except Exception as error:  # noqa: BLE001  whatever a plugin raises
            left_out: Floats | None = function.home.failed(function, error, self.subject, len(raw))
            return left_out
        return points

    def _scale(self, function: NodeFunction[Floats | None]) -> Callable[[Floats], Floats]:
        """Return what brings the raw values of a score to scale; one that broke down and is left out gives everybody the same."""

        def scaled(raw: Floats) -> Floats:
            points = self._to_scale(function, raw)
            return np.zeros(len(raw)) if points is None else points

        return scaled

    def _followed(self, function: NodeFunction[Floats | None], candidates: Rows) -> Floats | None:
        """Ask a score that is followed; None as above."""
        try:
            points: Floats = function.follow(self.subject, self._evaluator.table).points(candidates)  # type: ignore[misc]  # as above
            wrong_answers.check_points(points, len(candidates))
        except Exception as error:  # noqa: BLE001  as above
            left_out: Floats | None = function.home.failed(function, error, self.subject, len(candidates))
            return left_out
        return points

    @property
    def settled_raws(self) -> list[tuple[Floats, Callable[[Floats], Floats]]]:
        """The scores that compare candidates and that placements do not change: raw vector, and what brings it to scale."""
        triples = zip(self.raw_vectors, self._evaluator.functions.raws, self._moving, strict=True)
        return [
            (vector, self._scale(function))
            for vector, function, moves in triples
            if vector is not None and function.normalise is not None and not moves
        ]

    def compares(self, candidates: Rows) -> bool:
        """Tell whether the set of candidates matters to any score: a uniform raw vector gives all the same, whoever is left."""
        for vector in self.raw_vectors:
            if vector is not None and len(candidates):
                chosen = vector[candidates]
                if (chosen != chosen[0]).any():
                    return True
        return False

    def sampled(self, candidates: Rows) -> Rows:
        """Cut candidates down if fewer than all nodes are asked for."""
        sampler = self._evaluator.sampler
        return candidates if sampler is None else sampler.sample(candidates, self._evaluator.table.count)

    def curable(self, *, own_queue: bool) -> Mask:
        """Tell of all nodes which no filter rules out beyond what eviction, of pods of the subject's queue or of others, could cure; room is not asked about."""
        evaluator = self._evaluator
        nodes = evaluator.table.view(None, released=True)
        passed = np.ones(len(nodes), dtype=np.bool_)
        for function, answer in answers(evaluator.functions.filters, self.subject, nodes, evaluator.reasons):
            stays = not function.is_moved or (function.own_queue and not own_queue)
            passed &= answer == 0 if stays else evaluator.reasons.curable[answer]
        return passed

    def foreseen(self, rows: Rows, steps: Rows, *, released: bool) -> tuple[Floats, Mask | None]:
        """Return the scores that need no comparison of rows with so many more of these tasks on them, and which pass the filters that read amounts."""
        nodes = self._evaluator.table.ahead(rows, steps, self.subject.shape, waiting=released)
        passed = self._pass(self._evaluator.functions.filters_ahead, nodes)
        # Scores are always those of the nodes as they are, also where the tasks will wait for release.
        nodes.released = False
        return self.plain_scores(nodes), passed

    def passes_ahead(self, nodes: Nodes) -> Mask | None:
        """Ask the filters that read amounts about a view that runs ahead; None if no such filter has anything to say."""
        return self._pass(self._evaluator.functions.filters_amounts, nodes)

    def _pass(self, filters: list[NodeFunction[ReasonVector | None]], nodes: Nodes) -> Mask | None:
        passed: Mask | None = None
        for _, answer in answers(filters, self.subject, nodes):
            passed = answer == 0 if passed is None else passed & (answer == 0)
        return passed

    # -- why nothing fits --------------------------------------------------------------------------------------

    def failure(self, *, released: bool = True, within: Rows | None = None) -> FitSummary:
        """Say why no node, or none of some, takes the task: even counting what is being released, or as things are now."""
        if within is not None:
            nodes = self._evaluator.table.view(within, released=released)
            return fitting.summarise(self.subject, nodes, self._evaluator.functions, self._evaluator.reasons)
        table = self._evaluator.table
        state = (table.structure, table.stated(self.subject.constraints), table.position, int(released))
        if self._failure is None or self._failure[0] != state:
            self._failure = (
                state,
                fitting.summarise(
                    self.subject, table.view(released=released), self._evaluator.functions, self._evaluator.reasons
                ),
            )
        return self._failure[1]
