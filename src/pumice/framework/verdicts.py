"""Which nodes take a subject, in one view of releasing pods: as they are, or taken as gone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pumice.framework import fitting
from pumice.framework.functions import answers

if TYPE_CHECKING:
    from pumice.framework.functions import NodeFunction
    from pumice.framework.keeper import Keeper
    from pumice.framework.reasons import ReasonVector
    from pumice.framework.subject import Subject
    from pumice.framework.vectors import Mask
    from pumice.model.nodes import Nodes

NO_MASK: Mask = np.zeros(0, dtype=np.bool_)


class Verdicts:
    """The verdict on all nodes, brought up to date where nodes changed.

    `fixed` holds whatever is placed on other nodes, `moving` are the filters whose answers placements change, and `local` is what the filters say that look at no other node. It is
    blind if one of these reads the tasks of a node and cannot look ahead.
    """

    __slots__ = (
        "_keeper",
        "_position",
        "_released",
        "_stated",
        "fixed",
        "goes_by_amounts",
        "is_blind",
        "local",
        "mask",
        "minds_others",
        "moving",
        "reads_tasks",
    )

    def __init__(self, keeper: Keeper, *, released: bool) -> None:
        self._keeper = keeper
        self._released = released
        self._stated = (-1, -1)
        self._position = -1
        self.reads_tasks = self.is_blind = False
        self.goes_by_amounts = True
        self.minds_others = False
        self.moving: list[NodeFunction[ReasonVector | None]] = []
        self.local: Mask = NO_MASK
        self.fixed: Mask = NO_MASK
        self.mask: Mask = NO_MASK

    @property
    def is_new(self) -> bool:
        """Whether no node was asked yet."""
        return self._position < 0

    def refresh(self, subject: Subject) -> Mask:
        """Return the nodes that take a subject, now, or once what is being released is gone."""
        keeper, table = self._keeper, self._keeper.table
        stated = (table.structure, table.stated(subject.constraints))
        if self._position == table.position and self._stated == stated:
            return self.mask
        mark = keeper.observer.mark()
        rows = table.changed_since(self._position) if self._stated == stated else None
        if rows is None or 2 * len(rows) > table.count:
            self.local = self._ask(subject, table.view(released=self._released))
            self.local &= keeper.static_mask(subject)
        elif len(rows):
            passed = self._ask(subject, table.view(rows, released=self._released))
            self.local[rows] = passed & keeper.static_mask(subject)[rows]
        self._stated, self._position = stated, table.position
        self._look_around(subject)
        keeper.observer.spent("predicate", "", mark)
        return self.mask

    def _ask(self, subject: Subject, nodes: Nodes) -> Mask:
        """Ask about room, and every filter that reads amounts or tasks of the node itself."""
        passed = fitting.room(subject, nodes)
        self.reads_tasks, self.is_blind, self.goes_by_amounts = False, False, True
        functions = self._keeper.functions
        for function, answer in answers(functions.filters_local, subject, nodes):
            passed &= answer == 0
            reads_tasks, reads_amounts = functions.local_flags[id(function)]
            self.reads_tasks = self.reads_tasks or reads_tasks
            self.is_blind = self.is_blind or (reads_tasks and not function.ahead)
            self.goes_by_amounts = self.goes_by_amounts and reads_amounts
        return passed

    def _look_around(self, subject: Subject) -> None:
        """Ask the filters that look at other nodes."""
        self.fixed, self.moving, self.minds_others = self.local, [], False
        refused: list[Mask] = []
        nodes = self._keeper.table.view(released=self._released)
        for function, answer in answers(self._keeper.functions.filters_global, subject, nodes):
            self.minds_others = True
            if function.is_stepwise(subject):
                self.moving.append(function)
                refused.append(answer != 0)
            else:
                self.fixed = self.fixed & (answer == 0)
        self.mask = self.fixed
        for mask in refused:
            self.mask = self.mask & ~mask
