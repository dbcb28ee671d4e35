"""usage: choose nodes by how busy they are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from pumice.framework.configuration import Configured, Settings, settings
from pumice.framework.plugin import Plugin
from pumice.framework.points import Reads
from pumice.framework.reasons import Code
from pumice.plugins.sharing import loads
from pumice.plugins.sharing.scoring import MAX_SCORE
from pumice.plugins.usage.estimates import Estimator, EstimatorSettings
from pumice.plugins.usage.shadows import Recent, Shadows

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pumice.framework.evaluation import Floats
    from pumice.framework.reasons import ReasonVector
    from pumice.framework.session import Session
    from pumice.framework.subject import Subject
    from pumice.model.nodes import NodeRecord, Nodes

_PERCENT: Final = 1000  # loads are in thousandths of one


class ThresholdSettings(Settings):
    """From where on a node is too busy."""

    cpu = settings.whole("cpu", 80, minimum=0, maximum=100, help="percent of cpu above which a node takes no pods")
    memory = settings.whole("mem", 80, minimum=0, maximum=100, help="percent of memory above which it takes none")


class UsageSettings(Settings):
    """How much the load counts, and where it is too much."""

    weight = settings.whole("usage.weight", 5, minimum=0, help="weight of the whole score")
    cpu = settings.whole("cpu.weight", 1, minimum=0, help="weight of cpu in it")
    memory = settings.whole("memory.weight", 1, minimum=0, help="weight of memory in it")
    thresholds = settings.section("thresholds", ThresholdSettings, help="where a node is too busy")
    estimator = settings.section("estimator", EstimatorSettings, help="what pods use that were not measured yet")


class Usage(Plugin):
    """Keep pods off nodes that were measured to be busy, and prefer those that are not.

    The loads come from the source that `metrics` names in the configuration: averages of ten minutes, in percent. A node whose measurement is missing or more than 5 minutes old is neither refused nor preferred. Pods that have not run for one
    interval of the source are not part of what was measured: what they will probably use is added, from the moment they are placed. The score of a node is 100 times `usage.weight` times what is left of cpu and memory, by their weights.
    """

    name = "usage"
    points = frozenset({"Predicate", "NodeOrder"})
    settings = Configured(UsageSettings)

    def __init__(self, settings: Settings, switches: Mapping[str, bool]) -> None:
        super().__init__(settings, switches)
        self._estimator = Estimator(self.settings.estimator)
        self._recent = Recent()

    def open(self, session: Session) -> None:
        """Register filter and score, if anything was measured that still counts."""
        found = loads.of_nodes(session)
        if found is None or (stale := found.stale_at(session.started)) is None:
            return
        session.wake_at(stale)
        self._loads = found
        self._fresh = found.fresh(session.started)
        self._cpu_reason = session.reason(self.name, Code.UNRESOLVABLE, self._refusal("cpu"))
        self._memory_reason = session.reason(self.name, Code.UNRESOLVABLE, self._refusal("memory"))
        session.predicate.add(self.fits, reads=Reads.NODE | Reads.TIME, details=self.detail)
        told = self.settings
        if not (told.weight and told.cpu + told.memory):
            return
        measured = self._recent.update(session.cluster.nodes, session.started, found.interval)
        if measured is not None:
            session.wake_at(measured)
        self.shadows = Shadows(session, found, self._recent, self._estimator, (told.cpu, told.memory))
        session.score.add(self.score, reads=Reads.NODE | Reads.TASKS | Reads.TIME)
        session.add_handler(self.shadows.follow)

    def _refusal(self, what: str) -> str:
        limit = self.settings.thresholds.cpu if what == "cpu" else self.settings.thresholds.memory
        return f"node(s) had more than {limit}% of their {what} in use"

    def fits(self, _subject: Subject, nodes: Nodes) -> ReasonVector:
        """Refuse nodes that are too busy."""
        rows, told = nodes.index, self.settings.thresholds
        fresh = self._fresh[rows]
        hot_cpu = fresh & (self._loads.cpu[rows] > told.cpu * _PERCENT)
        hot_memory = fresh & (self._loads.memory[rows] > told.memory * _PERCENT)
        return np.where(hot_cpu, self._cpu_reason, np.where(hot_memory, self._memory_reason, 0)).astype(np.int16)

    def detail(self, _subject: Subject, node: NodeRecord) -> str:
        """Say how busy a node was."""
        cpu, memory = (int(column[node.row]) / _PERCENT for column in (self._loads.cpu, self._loads.memory))
        told = self.settings.thresholds
        return f"measured at {cpu:g}% of cpu (at most {told.cpu}%) and {memory:g}% of memory (at most {told.memory}%)"

    def score(self, _subject: Subject, nodes: Nodes) -> Floats:
        """Give each node what is left of it."""
        left = 1.0 - self.shadows.weighted(nodes.index)
        return np.where(self._fresh[nodes.index], left * (MAX_SCORE * self.settings.weight), 0.0)
