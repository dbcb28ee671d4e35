"""crossquota: pods without GPUs leave room for those that have some, on nodes with GPUs."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import msgspec
import numpy as np

from pumice.api import meta
from pumice.framework.configuration import Configured, Settings, settings
from pumice.framework.plugin import Plugin
from pumice.framework.points import NODE_TASKS
from pumice.framework.reasons import Code
from pumice.model import resources
from pumice.plugins.crossquota import quotas

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Mapping

    from pumice.api import documents
    from pumice.framework.evaluation import Floats
    from pumice.framework.reasons import ReasonVector
    from pumice.framework.session import Session
    from pumice.framework.subject import Subject
    from pumice.model.nodes import Nodes
    from pumice.model.records import NodeRecord
    from pumice.model.task import Task

STRATEGY: Final = "volcano.sh/crossquota-scoring-strategy"
LEAST: Final = "least-allocated"
_GPUS: Final = "gpu-resource-names"
_RESOURCES: Final = "quota-resources"
_SELECTOR: Final = "label-selector"
_QUOTA, _PERCENTAGE = "quota.", "quota-percentage."
_USUAL: Final = ("cpu",)
_USUAL_WEIGHTS: Final = {"cpu": 10, "memory": 1}
EXCEEDED: Final = "node(s) had no room left of what pods without GPUs may hold there"


class CrossQuotaSettings(Settings):
    """Which nodes and pods are meant, what these may hold, and what is scored."""

    gpus = settings.words(_GPUS, help="resources of GPUs: regular expressions that are found anywhere in a name")
    names = settings.words(_RESOURCES, help="the resources that are limited; `cpu` if none is named")
    amounts = settings.each(settings.text(f"{_QUOTA}*", "", help="how much of a resource, such as `32` or `64Gi`"))
    percentages = settings.each(
        settings.text(f"{_PERCENTAGE}*", "", help="how much of what a node offers, in percent, such as `50`")
    )
    selector = settings.anything(
        _SELECTOR, "map", None, help="the pods that are meant, by `matchLabels` and `matchExpressions`; else all"
    )
    weight = settings.whole("crossQuotaWeight", 10, minimum=0, help="weight of the score; 0 switches it off")
    weights = settings.each(
        settings.whole("weight.*", 1, minimum=0, help="weight of a resource in it: 10 for cpu unless stated")
    )


class CrossQuota(Plugin):
    """Limit what pods without GPUs hold on nodes with GPUs, so that pods with GPUs find cpu and memory there.

    A node with some of the resources that `gpu-resource-names` matches takes pods that ask for none of them only up to a quota of each resource in `quota-resources`: that of the node's annotation `volcano.sh/crossquota-<resource>`, else `volcano.sh/crossquota-percentage-<resource>`, else the argument
    `quota.<resource>`, else `quota-percentage.<resource>`, else everything. Other pods, and other nodes, are not limited.
    Of nodes with GPUs the one is preferred where such pods hold most of their quota, or least if the pod says so by the annotation `volcano.sh/crossquota-scoring-strategy: least-allocated`: the part that they would hold of each resource that the pod asks for, averaged by `weight.<resource>`, times `crossQuotaWeight`.
    """

    name = "crossquota"
    points = frozenset({"Predicate", "NodeOrder"})
    settings = Configured(CrossQuotaSettings)

    @classmethod
    def objections(cls, arguments: Mapping[str, Any]) -> Iterator[tuple[documents.Path, str]]:
        """Refuse expressions, amounts, percentages and selectors that cannot be read, and quotas of resources that are not listed."""
        for pattern in arguments[_GPUS]:
            try:
                re.compile(pattern)
            except re.error as error:
                yield (_GPUS,), f"{pattern!r} is no regular expression: {error}"
        listed = arguments[_RESOURCES] or _USUAL
        for key, value in arguments.items():
            prefix = next((each for each in (_QUOTA, _PERCENTAGE) if key.startswith(each)), "")
            if not prefix:
                continue
            name = key.removeprefix(prefix)
            try:
                quotas.percentage(value) if prefix == _PERCENTAGE else quotas.amount(name, value)
            except quotas.QuotaError as error:
                yield (key,), str(error)
            if name not in listed:
                yield (key,), f"{_RESOURCES} does not list {name}"
        try:
            _selector(arguments.get(_SELECTOR))
        except msgspec.ValidationError as error:
            yield (_SELECTOR,), f"is no selector of labels: {error}"

    @classmethod
    def remarks(cls, arguments: Mapping[str, Any]) -> Iterator[tuple[documents.Path, str]]:
        """Say that without resources of GPUs nothing is limited."""
        if not arguments[_GPUS]:
            yield (), f"{_GPUS} names no resource: nothing is limited"

    def __init__(self, settings: Settings, switches: Mapping[str, bool]) -> None:
        super().__init__(settings, switches)
        told = self.settings
        self._stated = quotas.Stated(
            told.gpus, told.names or _USUAL, told.amounts, told.percentages, _selector(told.selector)
        )
        self._quotas = quotas.Quotas(self._stated)

    def open(self, session: Session) -> None:
        """Register filter and score, if any node has GPUs."""
        if not self.settings.gpus or not self._quotas.update(session.cluster):
            return
        self._cluster = session.cluster
        self._full = session.reason(self.name, Code.UNSCHEDULABLE, EXCEEDED)
        self._never = session.reason(self.name, Code.UNRESOLVABLE, EXCEEDED)
        for node, problems in self._quotas.problems.items():
            session.record.say(self.name, f"Node {node}: {'; '.join(problems)}")
        session.divide_runs(self.kind)
        session.predicate.add(self.fits, reads=NODE_TASKS, apart=self.key, details=self.detail, ahead=True)
        if self.settings.weight:
            session.score.add(self.score, reads=NODE_TASKS, apart=self.key, ahead=True)

    def key(self, subject: Subject) -> Hashable:
        """Return what pods of one shape differ in: whether they are limited, and what they prefer."""
        return self.kind(subject.task)

    def kind(self, task: Task) -> Hashable:
        """Return the same of a task."""
        return task.pod.metadata.annotations.get(STRATEGY) == LEAST if self._stated.concerns(task) else None

    def fits(self, subject: Subject, nodes: Nodes) -> ReasonVector | None:
        """Refuse nodes with GPUs on which pods without would hold more than their quota."""
        if not self._stated.concerns(subject.task):
            return None
        self._quotas.update(self._cluster)
        limits, asked = self._quotas.limits[nodes.index], subject.request.vector[self._quotas.columns]
        counted = self._quotas.has_gpus[nodes.index, None] & (asked > 0)
        over = (counted & (self._expected(subject, nodes) > limits)).any(axis=1)
        alone = (counted & (asked > limits)).any(axis=1)
        return np.where(alone, self._never, np.where(over, self._full, 0)).astype(np.int16)

    def _expected(self, subject: Subject, nodes: Nodes) -> Any:
        """Return what such pods would hold with this one."""
        asked = subject.request.vector[self._quotas.columns]
        more = asked if nodes.steps is None else asked * (nodes.steps[:, None] + 1)
        return self._quotas.held(nodes) + more

    def detail(self, subject: Subject, node: NodeRecord) -> str:
        """Say what such pods hold of which quota on a node."""
        nodes = self._cluster.nodes.view(np.array([node.row]), released=True)
        self._quotas.update(self._cluster)
        held, limits = self._quotas.held(nodes)[0].tolist(), self._quotas.limits[node.row].tolist()
        asked = subject.request.vector[self._quotas.columns].tolist()
        told = [
            f"{resources.shown(name, had)} of {resources.shown(name, most)} {name}, where {resources.shown(name, wants)} are asked for"
            for name, had, most, wants in zip(self._quotas.names, held, limits, asked, strict=True)
            if wants and had + wants > most
        ]
        return f"where pods without GPUs hold {' and '.join(told)}" if told else ""

    def score(self, subject: Subject, nodes: Nodes) -> Floats | None:
        """Score nodes with GPUs by how much of their quota such pods would hold, or would not."""
        if not self._stated.concerns(subject.task):
            return None
        self._quotas.update(self._cluster)
        asked = subject.request.vector[self._quotas.columns]
        weights = np.array([self._weight(name) for name in self._quotas.names], dtype=np.float64) * (asked > 0)
        if not weights.any():
            return None
        limits, expected = self._quotas.limits[nodes.index], self._expected(subject, nodes)
        part = np.divide(expected, limits, out=np.zeros(limits.shape), where=limits > 0)
        if self.kind(subject.task):
            part = np.where(limits > 0, 1.0 - part, 0.0)
        nothing = ((expected > limits) & (limits > 0) & (asked > 0)).any(axis=1) | ~self._quotas.has_gpus[nodes.index]
        points: Floats = part @ weights / weights.sum() * self.settings.weight
        return np.where(nothing, 0.0, points)

    def _weight(self, name: str) -> int:
        return self.settings.weights.get(name, _USUAL_WEIGHTS.get(name, 1))


def _selector(stated: Mapping[str, Any] | None) -> meta.LabelSelector | None:
    return None if not stated else msgspec.convert(stated, meta.LabelSelector)
