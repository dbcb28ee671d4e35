"""resource-strategy-fit: spread some resources and pack others, and keep scarce devices usable."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from pumice.framework.configuration import Configured, Settings, settings
from pumice.framework.plugin import Plugin
from pumice.framework.points import Reads
from pumice.plugins.resource_strategy_fit import scarcity
from pumice.plugins.sharing.scoring import MAX_SCORE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pumice.api import documents
    from pumice.framework.evaluation import Floats
    from pumice.framework.session import Session
    from pumice.framework.subject import Subject
    from pumice.model.nodes import Nodes

LEAST, MOST = "LeastAllocated", "MostAllocated"
USUAL = {"cpu": {"type": LEAST, "weight": 1}, "memory": {"type": LEAST, "weight": 1}}


class StrategySettings(Settings):
    """How one resource is scored: whether the used or the free part counts, and how much."""

    type = settings.text("type", LEAST, choices=(LEAST, MOST), help="its strategy")
    weight = settings.whole("weight", 1, minimum=1, replacement=1, help="its weight")


class ResourcesSettings(Settings):
    """The resources that are scored."""

    strategies = settings.each(settings.section("*", StrategySettings, help="how a resource is scored"))


class FitSettings(Settings):
    """What is scored, and what is kept for those who need it."""

    weight = settings.whole(
        "resourceStrategyFitWeight",
        10,
        minimum=0,
        replacement=10,
        help="weight of the score by strategies; 0 switches it off",
    )
    resources = settings.section(
        "resources",
        ResourcesSettings,
        default=USUAL,
        help="the resources that count, by name or by a beginning that ends in `*`",
    )
    sra = settings.section("sra", scarcity.RetainedSettings, help="keep ordinary pods off nodes with scarce resources")
    proportional = settings.section(
        "proportional", scarcity.ProportionalSettings, help="keep cpu and memory for idle devices"
    )


class Strategy(msgspec.Struct, frozen=True):
    """How one resource is scored: whether the used or the free part counts, and how much."""

    type: str
    weight: int


class ResourceStrategyFit(Plugin):
    """Score every resource by a strategy of its own: `MostAllocated` packs what it counts, `LeastAllocated` spreads it.

    The score is the used, or free, part of each requested resource with the pod on the node, weighted and averaged, times 100 times `resourceStrategyFitWeight`. A resource the
    node does not have counts 0; one that would overflow makes the whole score 0. A name in `resources` may end in `*` and then stands for every resource with that beginning; the exact name
    is looked for first, then the longest beginning. A pod chooses for itself with the annotations `volcano.sh/resource-strategy-scoring-type` and `volcano.sh/resource-strategy-weight`, a map
    of weights in JSON such as `{"cpu": 1}`: then only the resources listed there count, and nothing if the weights cannot be read.

    `sra` keeps ordinary pods off nodes with scarce resources: a node scores 100 times `sra: weight` if it has none of them, less the more it has.
    `proportional` keeps cpu and memory for idle devices: on a node with idle ones, a pod that does not ask for them must leave so many cores and gigabytes (10⁹ bytes) for each.
    """

    name = "resource-strategy-fit"
    points = frozenset({"NodeOrder", "Predicate"})
    reads = Reads.COLUMNS
    settings = Configured(FitSettings)

    def __init__(self, settings: Settings, switches: Mapping[str, bool]) -> None:
        super().__init__(settings, switches)
        told = self.settings
        self._weight = told.weight
        listed = told.resources.strategies or ResourcesSettings(USUAL).strategies
        self._strategies = {name: Strategy(each.type, each.weight) for name, each in listed.items()}
        self._found: dict[str, Strategy | None] = {}
        self._retained = scarcity.Retained(told.sra)
        self._proportional = scarcity.Proportional(told.proportional)

    @classmethod
    def objections(cls, arguments: Mapping[str, Any]) -> Iterator[tuple[documents.Path, str]]:
        """Refuse names that could match nothing, and resources that are mentioned and not listed."""
        for name in arguments["resources"]:
            if "*" in name[:-1] or name in ("*", ""):
                yield ("resources", name), "a `*` stands only at the end of a name, after its beginning"
        yield from scarcity.objections(arguments)

    def open(self, session: Session) -> None:
        """Register the scores whose weight is not 0, and the filter if it is enabled."""
        if self._weight:
            session.score.add(self.fit)
        if self._retained.weight:
            session.score.add(self._retained.score)
        if self._proportional.enabled:
            self._proportional.open(session, self.name)
            session.predicate.add(self._proportional.refuse)

    def fit(self, subject: Subject, nodes: Nodes) -> Floats | None:
        """Score the nodes of a view by the strategies of the requested resources."""
        wanted = [name for name, units in subject.request.amounts.items() if units]
        asked = [(name, strategy) for name in wanted if (strategy := self._strategy(subject, name)) is not None]
        if not asked:
            return None
        columns = nodes.table.vocabulary.columns
        scored = [(columns[n], s) for n, s in asked if n in columns and s.type in (LEAST, MOST)]
        picked = [column for column, _ in scored]
        full = nodes.used[:, picked] + subject.request.vector[picked]
        room = nodes.allocatable[:, picked]
        used = np.divide(full, room, out=np.zeros(full.shape), where=room > 0)
        packs = np.array([strategy.type == MOST for _, strategy in scored], dtype=np.bool_)
        part = np.where(packs, used, np.where(room > 0, 1 - used, 0.0))
        overflow = ((full > room) & (room > 0)).any(axis=1)
        points = part @ np.array([strategy.weight for _, strategy in scored], dtype=np.float64)
        total = sum(strategy.weight for _, strategy in asked)
        score: Floats = np.where(overflow, 0.0, points * (MAX_SCORE * self._weight) / (total or 1))
        return score

    def _strategy(self, subject: Subject, name: str) -> Strategy | None:
        """Return how a resource is scored for a pod: as the pod says, else as the configuration says."""
        if subject.constraints.strategy:
            kind, text = subject.constraints.strategy
            weight = chosen_weights(text).get(name)
            return None if weight is None else Strategy(kind, weight)
        if name not in self._found:
            self._found[name] = self._strategies.get(name) or self._by_beginning(name)
        return self._found[name]

    def _by_beginning(self, name: str) -> Strategy | None:
        """Find the strategy of the longest beginning that a name has."""
        fitting = [key for key in self._strategies if key.endswith("*") and name.startswith(key[:-1])]
        return self._strategies[max(fitting, key=len)] if fitting else None


@functools.lru_cache(maxsize=1024)
def chosen_weights(text: str) -> Mapping[str, int]:
    """Read the weights that a pod gives to resources; none if they cannot be read or one of them is negative."""
    try:
        weights = msgspec.json.decode(text, type=dict[str, int])
    except msgspec.DecodeError:
        return {}
    return weights if all(weight >= 0 for weight in weights.values()) else {}
