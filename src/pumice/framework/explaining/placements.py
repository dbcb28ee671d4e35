"""Where a pod could go: every node by the first reason that rejects it, in the order in which `fitting.summarise` tells them, and how near the nearest came."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from pumice.framework.explaining.amounts import request_shown, shown
from pumice.framework.explaining.explanations import Detail, NearestMiss, NodeGroup, Placement
from pumice.framework.functions import answers
from pumice.framework.subject import Subject
from pumice.model import resources
from pumice.model.resources import PODS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pumice.framework.functions import NodeFunction
    from pumice.framework.session import Session
    from pumice.model.nodes import NodeRecord, Nodes, Rows
    from pumice.model.resources import Matrix
    from pumice.model.task import Task

    Mask = npt.NDArray[np.bool_]
    Filter = NodeFunction[npt.NDArray[np.int16] | None]

DETAILS = 5  # kinds of a reason that are told apart; the rest is summed up


def explain(session: Session, tasks: Sequence[Task], within: Rows | None = None) -> Placement:
    """Say of equal tasks which nodes take one, room that is being released counted as free, and why the others do not."""
    first = tasks[0]
    subject = Subject(first, session.queue_of(first.job) if first.job is not None else None)
    refusal = session.pre_predicate(subject) or ""
    nodes = session.cluster.nodes.view(within, released=True)
    census = Census(session, subject, nodes)
    return Placement(
        pod=first.key,
        members=len(tasks),
        request=request_shown(first.shape.request.amounts),
        nodes=len(nodes),
        fitting=census.fitting,
        groups=tuple(census.groups()),
        refusal=refusal,
    )


def first_refusal(session: Session, task: Task, row: int) -> str:
    """Say the first reason for which one node does not take a task; empty if it does."""
    rows = np.array([row], dtype=np.int64)
    placement = explain(session, [task], rows)
    if placement.refusal:
        return placement.refusal
    return placement.groups[0].reason if placement.groups else ""


class Census:
    """All nodes of a view, each under the first thing that speaks against it."""

    def __init__(self, session: Session, subject: Subject, nodes: Nodes) -> None:
        self._session = session
        self._subject = subject
        self._nodes = nodes
        request = subject.request
        self._missing: Matrix = np.maximum(request.needed - nodes.future_idle[:, request.asked], 0)
        # Slots for pods are told by the filter that has words for them, else at the end, as summaries do.
        slots = request.asked == PODS
        self._full: Mask = np.logical_or.reduce(self._missing[:, slots] > 0, axis=1)
        self._missing[:, slots] = 0
        self._said: list[tuple[Filter, npt.NDArray[np.int16]]] = list(
            answers(session.evaluator.functions.filters, subject, nodes, session.evaluator.reasons)
        )
        short: Mask = self._missing > 0
        self._short: Mask = np.logical_or.reduce(short, axis=1)
        self._column: Rows = short.argmax(axis=1)  # the first that a node is short of, if it is
        self._number, self._function = self._firsts()

    def _firsts(self) -> tuple[Rows, Rows]:
        """Return of every node the first reason of a filter, 0 where none refuses, and which filter gave it."""
        numbers = np.zeros(len(self._nodes), dtype=np.int64)
        functions = np.zeros(len(self._nodes), dtype=np.int64)
        for position, (_, said) in enumerate(self._said):
            new = (numbers == 0) & (said != 0)
            numbers[new] = said[new]
            functions[new] = position
        return numbers, functions

    @property
    def _by_room(self) -> Mask:
        """The nodes that lack an amount; where no node offers what is asked, all of them do."""
        return np.ones(len(self._nodes), dtype=np.bool_) if self._subject.request.unoffered else self._short

    @property
    def _by_slot(self) -> Mask:
        mask: Mask = self._full & ~self._by_room & (self._number == 0)
        return mask

    @property
    def fitting(self) -> int:
        """How many nodes take the task."""
        return int((~self._by_room & ~self._by_slot & (self._number == 0)).sum())

    def groups(self) -> list[NodeGroup]:
        """Return the nodes that do not, the largest group first."""
        found = [*self._short_groups(), *self._filter_groups()]
        slots = np.flatnonzero(self._by_slot)
        if len(slots):
            found.append(self._group("Insufficient pods", slots, resource="pods", asked="1"))
        return sorted(found, key=lambda group: (-group.count, group.reason, group.plugin))

    def _short_groups(self) -> list[NodeGroup]:
        request, names = self._subject.request, self._session.cluster.vocabulary.names
        found = []
        for position, column in enumerate(request.asked.tolist()):
            rows = np.flatnonzero(self._short & (self._column == position))
            if len(rows):
                name = names[column]
                asked, nearest = shown(name, int(request.needed[position])), self._nearest(rows)
                found.append(self._group(f"Insufficient {name}", rows, resource=name, asked=asked, nearest=nearest))
        if request.unoffered and len(rest := np.flatnonzero(~self._short)):
            name = request.unoffered[0]
            asked = resources.shown(name, request.amounts[name])
            found.append(self._group(f"Insufficient {name}", rest, resource=name, asked=asked, curable=False))
        return found

    def _filter_groups(self) -> list[NodeGroup]:
        reasons = self._session.evaluator.reasons
        left = ~self._by_room & (self._number != 0)
        found = []
        for position, (function, _) in enumerate(self._said):
            mine = left & (self._function == position)
            for number in np.unique(self._number[mine]).tolist():
                rows = np.flatnonzero(mine & (self._number == number))
                reason = reasons.table[number]
                found.append(
                    self._group(
                        reason.text,
                        rows,
                        plugin=reason.plugin,
                        curable=function.is_moved and bool(reasons.curable[number]),
                        details=self._details(function, rows),
                    )
                )
        return found

    def _group(
        self,
        reason: str,
        rows: Rows,
        *,
        plugin: str = "",
        resource: str = "",
        asked: str = "",
        curable: bool = True,
        nearest: NearestMiss | None = None,
        details: tuple[Detail, ...] = (),
    ) -> NodeGroup:
        return NodeGroup(
            reason=reason,
            count=len(rows),
            first=self._record(int(rows[0])).name,
            plugin=plugin,
            resource=resource,
            asked=asked,
            curable=curable,
            nearest=nearest,
            details=details,
        )

    def _record(self, position: int) -> NodeRecord:
        return self._session.cluster.nodes.records[int(self._nodes.index[position])]

    def _nearest(self, rows: Rows) -> NearestMiss:
        """Return the node of a group that lacks least: nothing else against it, fewest resources, the smallest part of what is asked, the first name."""
        request = self._subject.request
        missing = self._missing[rows]
        part = (missing / np.maximum(request.needed, 1)).max(axis=1)
        refused = (self._number[rows] != 0).astype(np.int64)
        best = int(np.lexsort((rows, part, (missing > 0).sum(axis=1), refused))[0])
        names = self._session.cluster.vocabulary.names
        short = {
            names[column]: shown(names[column], int(units))
            for column, units in zip(request.asked.tolist(), missing[best].tolist(), strict=True)
            if units
        }
        number = int(self._number[rows[best]])
        reasons = self._session.evaluator.reasons.table
        return NearestMiss(
            node=self._record(int(rows[best])).name, short=short, otherwise=reasons[number].text if number else ""
        )

    def _details(self, function: Filter, rows: Rows) -> tuple[Detail, ...]:
        """Tell apart what a reason means on different nodes, if the filter can say so."""
        if function.details is None:
            return ()
        counted = Counter(function.details(self._subject, self._record(int(row))) for row in rows)
        counted.pop("", None)
        listed = sorted(counted.items(), key=lambda entry: (-entry[1], entry[0]))
        told = [Detail(text=text, count=count) for text, count in listed[:DETAILS]]
        if rest := sum(count for _, count in listed[DETAILS:]):
            told.append(Detail(text="others", count=rest))
        return tuple(told)
