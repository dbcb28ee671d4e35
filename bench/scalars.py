"""What a filter or a score costs that is written for one node at a time, beside the same over columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bench import worlds
from bench.cases import Figure, seconds
from pumice.framework.per_node import Node, filter_per_node, score_per_node
from pumice.framework.subject import Subject
from pumice.model.resources import CPU

if TYPE_CHECKING:
    from collections.abc import Callable

    from pumice.framework.evaluation import Floats
    from pumice.framework.reasons import ReasonVector
    from pumice.model.nodes import Nodes

NODES = 5000
TIMES = 20


@filter_per_node
def fits(subject: Subject, node: Node) -> int:
    """Keep a fifth of the cpu free."""
    return int((node.used("cpu") + subject.request.vector[CPU]) * 5 > node.allocatable("cpu") * 4)


def fits_all(subject: Subject, nodes: Nodes) -> ReasonVector:
    """Keep a fifth of the cpu free, over columns."""
    full: ReasonVector = np.where(
        (nodes.used[:, CPU] + subject.request.vector[CPU]) * 5 > nodes.allocatable[:, CPU] * 4, 1, 0
    ).astype(np.int16)
    return full


@score_per_node
def wanted(_subject: Subject, node: Node) -> float:
    """Prefer full nodes."""
    return node.used("cpu") / max(1, node.allocatable("cpu"))


def wanted_all(_subject: Subject, nodes: Nodes) -> Floats:
    """Prefer full nodes, over columns."""
    share: Floats = nodes.used[:, CPU] / np.maximum(1, nodes.allocatable[:, CPU])
    return share


def per_node() -> list[Figure]:
    """Measure both decorators."""
    bench = worlds.Bench()
    bench.feed([*map(worlds.node, range(NODES)), worlds.group("one", 1), worlds.pod("one", 0, "1", "1Gi")])
    bench.apply()
    cluster = bench.cache.cluster
    subject, view = Subject(next(iter(cluster.tasks.values()))), cluster.nodes.view()
    pairs: list[tuple[str, Callable[[Subject, Nodes], object], Callable[[Subject, Nodes], object]]] = [
        ("a filter", fits, fits_all),
        ("a score", wanted, wanted_all),
    ]
    return [_figure(what, scalar, vector, subject, view) for what, scalar, vector in pairs]


def _figure(
    what: str,
    scalar: Callable[[Subject, Nodes], object],
    vector: Callable[[Subject, Nodes], object],
    subject: Subject,
    view: Nodes,
) -> Figure:
    spent = min(seconds(lambda: scalar(subject, view)) for _ in range(TIMES)) / NODES * 1e6
    floor = min(seconds(lambda: vector(subject, view)) for _ in range(TIMES)) / NODES * 1e6
    return Figure(
        f"{what} of one node at a time, per node of {NODES:,}", spent, "us", "<= 10 us", spent <= 10, floor, "us"
    )
