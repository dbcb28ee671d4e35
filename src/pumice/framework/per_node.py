"""Filters and scores written for one node at a time, for those who prefer that and pay for it knowingly.

`@filter_per_node` and `@score_per_node` make a function of many nodes out of one about a single node. The answers are the same; each node costs a call in Python,
several hundred times what it costs over columns (`make bench` measures both).
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, TypeVar, overload

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pumice.api import core
    from pumice.framework.evaluation import Floats
    from pumice.framework.reasons import ReasonVector
    from pumice.framework.subject import Subject
    from pumice.model.nodes import NodeRecord, Nodes
    from pumice.model.resources import Matrix

P = TypeVar("P")


class Node:
    """One node of a view; its amounts may run ahead of what is placed, as if some more pods were there.

    Amounts are integers: thousandths of a core for `cpu`, bytes for `memory`, pods for `pods`, thousandths of anything else. A resource that no node offers is 0.
    """

    __slots__ = ("_columns", "_nodes", "_position", "record")

    def __init__(self, nodes: Nodes, position: int, record: NodeRecord) -> None:
        self._nodes = nodes
        self._position = position
        self._columns: Mapping[str, int] = nodes.table.vocabulary.columns
        self.record = record

    @property
    def name(self) -> str:
        """The name of the node."""
        return self.record.name

    @property
    def labels(self) -> Mapping[str, str]:
        """The labels of the node."""
        return self.record.labels

    @property
    def taints(self) -> tuple[core.Taint, ...]:
        """The taints of the node."""
        return self.record.taints

    def allocatable(self, resource: str) -> int:
        """Return what the node offers."""
        return self._amount(self._nodes.allocatable, resource)

    def used(self, resource: str) -> int:
        """Return what is taken."""
        return self._amount(self._nodes.used, resource)

    def releasing(self, resource: str) -> int:
        """Return what of that is being released."""
        return self._amount(self._nodes.releasing, resource)

    def pipelined(self, resource: str) -> int:
        """Return what is promised to pods that wait for room being released."""
        return self._amount(self._nodes.pipelined, resource)

    def idle(self, resource: str) -> int:
        """Return what is free now."""
        return self.allocatable(resource) - self.used(resource)

    def future_idle(self, resource: str) -> int:
        """Return what is free once everything that is being released is gone and everything pipelined has come."""
        column = self._columns.get(resource)
        return 0 if column is None else int(self._nodes.future_idle_at((self._position, column)))

    def _amount(self, amounts: Matrix, resource: str) -> int:
        column = self._columns.get(resource)
        return 0 if column is None else int(amounts[self._position, column])


@overload
def filter_per_node(function: Callable[[Subject, Node], int]) -> Callable[[Subject, Nodes], ReasonVector]: ...


@overload
def filter_per_node(function: Callable[[P, Subject, Node], int]) -> Callable[[P, Subject, Nodes], ReasonVector]: ...


def filter_per_node(function: Callable[..., int]) -> Callable[..., ReasonVector]:
    """Make a filter out of a function, or a method, that says of one node 0 or the number of a reason."""
    return _each_node(function, np.int16)


@overload
def score_per_node(function: Callable[[Subject, Node], float]) -> Callable[[Subject, Nodes], Floats]: ...


@overload
def score_per_node(function: Callable[[P, Subject, Node], float]) -> Callable[[P, Subject, Nodes], Floats]: ...


def score_per_node(function: Callable[..., float]) -> Callable[..., Floats]:
    """Make a score out of a function, or a method, that gives one node a number."""
    return _each_node(function, np.float64)


def _each_node(function: Callable[..., Any], kind: type[np.generic]) -> Callable[..., Any]:
    @functools.wraps(function)
    def asked(*args: Any) -> Any:
        *before, nodes = args
        answers = [function(*before, Node(nodes, position, record)) for position, record in enumerate(nodes.records())]
        return np.array(answers, dtype=kind)

    return asked
