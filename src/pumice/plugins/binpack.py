"""binpack: fill nodes that are already in use."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import numpy as np

from pumice.framework.configuration import Configured, Settings, settings
from pumice.framework.plugin import Plugin
from pumice.framework.points import Reads
from pumice.plugins.sharing.scoring import MAX_SCORE

if TYPE_CHECKING:
    from pumice.framework.evaluation import Floats, Mask
    from pumice.framework.session import Session
    from pumice.framework.subject import Subjects
    from pumice.model.nodes import Nodes


class BinpackSettings(Settings):
    """How much each resource counts."""

    weight = settings.whole(
        "binpack.weight", 1, help="weight of the whole score; 0 switches it off, a negative one spreads"
    )
    cpu = settings.whole("binpack.cpu", 1, minimum=0, replacement=1, help="weight of cpu")
    memory = settings.whole("binpack.memory", 1, minimum=0, replacement=1, help="weight of memory")
    resources = settings.words("binpack.resources", help="further resource names that count")
    resource_weights = settings.each(
        settings.whole("binpack.resources.*", 1, minimum=0, replacement=1, help="weight of such a resource")
    )


class Counted(msgspec.Struct, frozen=True):
    """The resources that count for somebody among many pods: their columns, and for each pod how much each counts, whether it asks for it, and the sum of its weights."""

    columns: list[int]
    weights: list[Floats]
    asked: list[Mask]
    totals: Floats


class Binpack(Plugin):
    """Prefer the fullest node that still fits.

    The score is the used share of each requested resource with the pod on the node, weighted and averaged, times 100 times `binpack.weight`. A
    resource the node does not have counts 0; one that would overflow makes the whole score 0.
    """

    name = "binpack"
    points = frozenset({"NodeOrder"})
    reads = Reads.COLUMNS
    settings = Configured(BinpackSettings)

    def open(self, session: Session) -> None:
        """Register the score unless its weight is 0."""
        told = self.settings
        self.weight = told.weight
        self.weights = {"cpu": told.cpu, "memory": told.memory}
        self.weights |= {name: told.resource_weights.get(name, 1) for name in told.resources}
        if self.weight:
            session.score.add(many=self.raw)

    def raw(self, subjects: Subjects, nodes: Nodes) -> Floats:
        """Score the nodes of a view for pods, column by column."""
        counted = subjects.kept(self._counted)
        overflow = np.zeros((len(subjects), len(nodes)), dtype=np.bool_)
        points = np.zeros((len(subjects), len(nodes)))
        for column, weights, asked in zip(counted.columns, counted.weights, counted.asked, strict=True):
            full, room = nodes.used[:, column] + subjects.requests[:, column, None], nodes.allocatable[:, column]
            has = room > 0
            share = full / np.maximum(room, 1)
            if not has.all():
                share[:, ~has] = 0.0
            share *= weights
            points += share
            overflow |= (full > room) & has & asked
        points *= MAX_SCORE * self.weight
        points /= counted.totals
        np.copyto(points, 0.0, where=overflow)
        return points

    def _counted(self, subjects: Subjects) -> Counted:
        """Work out what counts for whom."""
        named = [
            {
                name: self.weights[name]
                for name, units in member.request.amounts.items()
                if units and name in self.weights
            }
            for member in subjects.members
        ]
        columns = subjects.vocabulary.columns
        ordered = sorted({name for each in named for name in each if name in columns}, key=columns.__getitem__)
        return Counted(
            columns=[columns[name] for name in ordered],
            weights=[np.array([[float(each.get(name, 0))] for each in named]) for name in ordered],
            asked=[np.array([[name in each] for each in named]) for name in ordered],
            totals=np.array([[float(sum(each.values()) or 1)] for each in named]),
        )
