"""GPU fragments over time: what is left of cards and of no use to the kinds of pods that the trace usually has, by the definition that plugin `fragmentation` scores by.

Which card a pod has is known where the bind says so. Otherwise whole cards are the first free ones, and a share is on the fullest card that has room for it.
"""

from __future__ import annotations

import itertools
from collections import Counter
from typing import TYPE_CHECKING, Final

from pumice.api import core, kinds, names
from pumice.model import resources, shape, task
from pumice.plugins.fragmentation import asked, typical
from pumice.plugins.fragmentation.fragments import Fragments
from pumice.simulate import gpus

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pumice.plugins.fragmentation.typical import Kind
    from pumice.simulate.results import PodRun
    from pumice.simulate.trace import Given, Trace, TraceJob

SHARE: Final = 95
"""The kinds that count cover so many percent of the pods of the trace, as where the plugin learns them."""
Level = tuple[int, float, int]
"""From when on so many thousandths of cards are fragments, and so many are idle."""


class _Node:
    """What is left of a node."""

    __slots__ = ("cpu", "fragments", "left", "models")

    def __init__(self, cpu: int, cards: int, models: int) -> None:
        self.cpu = cpu
        self.left = [gpus.CARD] * cards
        self.models = models
        self.fragments = 0

    def give(self, run: PodRun, kind: Kind) -> list[tuple[int, int]]:
        """Give a pod its cards, and return how much it has of each."""
        cpu, milli, count, _ = kind
        self.cpu -= cpu
        free = [index for index, left in enumerate(self.left) if left >= milli]
        stated = [index for index in run.cards if index < len(self.left)]
        if len(stated) < count:
            stated = sorted(free, key=lambda index: self.left[index])[:count] if milli < gpus.CARD else free[:count]
        taken = [(index, min(milli, self.left[index])) for index in stated]
        for index, amount in taken:
            self.left[index] -= amount
        return taken

    def take_back(self, kind: Kind, taken: list[tuple[int, int]]) -> None:
        """Take back what a pod had."""
        self.cpu += kind[0]
        for index, amount in taken:
            self.left[index] += amount


def levels(
    trace: Trace, cluster: Sequence[Given], runs: Iterable[tuple[TraceJob, PodRun, int]], *, first: int
) -> list[Level]:
    """Return how much is fragmented and idle, from the first submit and each time on at which that changes; nothing where no pod asks for cards."""
    known = _Kinds()
    every = [known.of(each.spec) for job in trace.jobs for each in job.members for _ in range(each.count)]
    if not any(milli for _, milli, _, _ in every):
        return []
    fragments = Fragments(typical.learn(Counter(every), SHARE))
    nodes = _nodes(trace, cluster, fragments)
    total = sum(_counted(node, fragments) for node in nodes.values())
    idle = sum(sum(node.left) for node in nodes.values())
    found: list[Level] = [(first, total / fragments.total, idle)]
    held: dict[int, list[tuple[int, int]]] = {}
    events: list[tuple[int, int, int, PodRun, Kind]] = []
    for number, (job, run, end) in enumerate(runs):
        if run.node in nodes and end > run.start:
            kind = known.of(job.members[run.member].spec)
            events.append((run.start, 1, number, run, kind))
            if run.end is not None:
                events.append((end, 0, number, run, kind))
    events.sort(key=lambda each: each[:3])
    for moment, at_once in itertools.groupby(events, key=lambda each: each[0]):
        for _, starts, number, run, kind in at_once:
            node = nodes[run.node]
            total -= node.fragments
            idle -= sum(node.left)
            if starts:
                held[number] = node.give(run, kind)
            else:
                node.take_back(kind, held.pop(number))
            total += _counted(node, fragments)
            idle += sum(node.left)
        found.append((moment, total / fragments.total, idle))
    return found


def means(found: list[Level], last: int) -> tuple[float, float | None]:
    """Return how many cards are fragments on average, and which part of what is idle that is."""
    spans = [after - moment for (moment, _, _), (after, _, _) in itertools.pairwise([*found, (last, 0.0, 0)])]
    fragments = sum(span * amount for span, (_, amount, _) in zip(spans, found, strict=True))
    idle = sum(span * amount for span, (_, _, amount) in zip(spans, found, strict=True))
    return fragments / max(1, sum(spans)) / gpus.CARD, fragments / idle if idle else None


def _counted(node: _Node, fragments: Fragments) -> int:
    node.fragments = fragments.of(tuple(node.left), node.models, fragments.level(node.cpu))
    return node.fragments


def _nodes(trace: Trace, cluster: Sequence[Given], fragments: Fragments) -> dict[str, _Node]:
    """Return the nodes that have cards, by the names that runs give them."""
    found = {}
    for kind, each in cluster:
        if kind is kinds.NODE and isinstance(each, core.Node) and (cards := gpus.offered(each) // gpus.CARD):
            cpu = resources.parse(each.status.allocatable, "status.allocatable").get(names.CPU, 0)
            models = fragments.model_class(each.metadata.labels.get(names.GPU_PRODUCT))
            found[trace.shown.get(each.metadata.name, each.metadata.name)] = _Node(cpu, cards, models)
    return found


class _Kinds:
    """The kinds of pods, worked out once for each spec."""

    def __init__(self) -> None:
        self._shapes = shape.Shapes()
        self._known: dict[int, Kind] = {}

    def of(self, spec: core.PodSpec) -> Kind:
        """Return the kind of pods with a spec."""
        found = self._known.get(id(spec))
        if found is None:
            made = task.build(core.Pod(spec=spec), self._shapes).shape
            found = self._known[id(spec)] = asked.kind_of(made, gpus.WHOLE, names.GPU_PRODUCT, asked.Sizes())
        return found
