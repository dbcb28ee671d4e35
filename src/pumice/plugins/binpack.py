"""binpack: fill nodes that are already in use."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pumice.framework.configuration import Configured, Settings, settings
from pumice.framework.plugin import Plugin
from pumice.framework.points import Reads
from pumice.plugins.sharing.scoring import MAX_SCORE

if TYPE_CHECKING:
    from pumice.framework.evaluation import Floats
    from pumice.framework.session import Session
    from pumice.framework.subject import Subject
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
            session.score.add(self.raw)

    def raw(self, subject: Subject, nodes: Nodes) -> Floats | None:
        """Score the nodes of a view."""
        columns = nodes.table.vocabulary.columns
        asked = [(name, units) for name, units in subject.request.amounts.items() if units and name in self.weights]
        if not asked:
            return None
        total = sum(self.weights[name] for name, _ in asked)
        known = [(columns[name], self.weights[name]) for name, _ in asked if name in columns]
        picked = [column for column, _ in known]
        full = nodes.used[:, picked] + subject.request.vector[picked]
        room = nodes.allocatable[:, picked]
        share = np.divide(full, room, out=np.zeros(full.shape), where=room > 0)
        overflow = ((full > room) & (room > 0)).any(axis=1)
        points = share @ np.array([weight for _, weight in known], dtype=np.float64)
        score: Floats = np.where(overflow, 0.0, points * (MAX_SCORE * self.weight) / (total or 1))
        return score
