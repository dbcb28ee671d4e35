"""Who finds and keeps evaluations, for as long as the configuration lasts: what is shared by equal subjects, constraint classes and blocks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pumice.framework import never_running, observing, outlooks, shortcuts
from pumice.framework.blocks import Blocks
from pumice.framework.evaluation import Evaluation
from pumice.framework.functions import JOB, QUEUE, SINGLE, TASK, Functions, answers

if TYPE_CHECKING:
    from collections.abc import Hashable

    from pumice.framework.evaluation import Mask
    from pumice.framework.functions import Filters, Scores
    from pumice.framework.reasons import Reasons
    from pumice.framework.sampling import Sampler
    from pumice.framework.subject import Subject
    from pumice.model.nodes import NodeTable

KEPT = 256


class Evaluator:
    """Finds and keeps evaluations; it lives as long as the configuration."""

    def __init__(
        self,
        table: NodeTable,
        reasons: Reasons,
        sampler: Sampler | None = None,
        observer: observing.Observer = observing.NOBODY,
        *,
        taken: shortcuts.Shortcuts = shortcuts.ALL,
    ) -> None:
        self.table = table
        self.shortcuts = taken
        self.observer = observer
        self.sampler = sampler
        self.reasons = reasons
        self._kept: dict[Hashable, Evaluation] = {}
        self._masks: dict[bytes, tuple[tuple[int, int], Mask]] = {}
        self._identity: tuple[Hashable, ...] | None = None
        self.functions: Functions
        self.never_running = never_running.Memory()
        self.outlooks = outlooks.Memory()
        self._cycle = 0
        self.forgotten = 0  # how often something was not worth keeping
        self.blocks = Blocks(self)

    def open(self, filters: Filters, scores: Scores, cycle: int) -> None:
        """Take over the functions of a new session; what was kept stays if they are the same."""
        self.functions = Functions(filters, scores)
        identity = self.functions.identity()
        if identity != self._identity or not self.shortcuts.memory:
            self._identity = identity
            self._kept.clear()
            self._masks.clear()
            self.blocks.clear()
            self.never_running = never_running.Memory(self.never_running.passed_over)
            self.outlooks = outlooks.Memory()
        self._cycle = cycle
        self.blocks.open()

    @property
    def looks_at_all_nodes(self) -> bool:
        """Whether a search does not stop where enough nodes were found."""
        return self.sampler is None

    @property
    def tells_subjects_apart(self) -> bool:
        """Whether any function reads more of a subject than its shape."""
        return self.functions.tells_subjects_apart

    @property
    def tells_tasks_apart(self) -> bool:
        """Whether any function reads more of a task than its shape, its job and its queue."""
        return self.functions.tells_tasks_apart

    def names_apart(self, plugin: str) -> bool:
        """Whether a plugin names what its filters tell pods of one shape apart by."""
        return any(each.apart is not None and each.plugin == plugin for each in self.functions.filters)

    def evaluate(self, subject: Subject) -> Evaluation:
        """Return the evaluation that a subject shares with its equals."""
        key = self.key(subject)
        if not self.shortcuts.kept_answers:
            return Evaluation(self, subject, key)
        evaluation = self._kept.pop(key, None)
        if evaluation is None:
            evaluation = Evaluation(self, subject, key)
            while len(self._kept) >= KEPT:
                del self._kept[next(iter(self._kept))]
        else:
            subject.follow(evaluation.subject)
            evaluation.subject = subject
        self._kept[key] = evaluation
        return evaluation

    def forget(self, subject: Subject) -> None:
        """Keep nothing of what was said about a subject: a function broke down about it, and is asked again by whoever comes next."""
        self.forgotten += 1
        for key in [key for key, kept in self._kept.items() if kept.subject is subject]:
            del self._kept[key]

    def key(self, subject: Subject) -> Hashable:
        """Return what a subject shares with its equals."""
        serial = subject.shape.serial
        bond = subject.task.bond
        apart = self.apart(subject)
        signature = bond.signature() if bond is not None and self.functions.looks_elsewhere else None
        if not self.functions.tells_subjects_apart:
            return serial if signature is None and not apart else (serial, apart, signature)
        reads = self.functions.reads
        parts: list[Hashable] = [serial, apart, signature]
        if reads & TASK:
            parts.append(subject.task.uid)
        if reads & JOB and subject.job is not None:
            parts.append(subject.job.key)
        if reads & QUEUE and subject.queue is not None:
            parts.append(subject.queue.name)
        if reads & SINGLE:
            parts.append(self._cycle)
        return tuple(parts)

    def apart(self, subject: Subject) -> tuple[Hashable, ...]:
        """Return what functions name of a subject beyond its shape, so that others of that shape may get other answers."""
        aparts = self.functions.aparts
        return tuple([name for question in aparts if (name := question(subject)) is not None]) if aparts else ()

    def static_mask(self, subject: Subject, *, bare: bool = False) -> Mask:
        """Return the nodes that the Node objects alone do not rule out; what plugins raise may be wanted `bare`."""
        state = (self.table.structure, self.table.stated(subject.constraints))
        key = subject.constraint_class.key
        kept = self._masks.get(key)
        if kept is not None and kept[0] == state:
            return kept[1]
        mask = np.ones(self.table.count, dtype=np.bool_)
        nodes = self.table.view()
        forgotten = self.forgotten
        for _, answer in answers(self.functions.filters_static, subject, nodes, bare=bare):
            mask &= answer == 0
        if forgotten == self.forgotten and self.shortcuts.kept_answers:
            if len(self._masks) >= KEPT:
                self._masks.clear()
            self._masks[key] = (state, mask)
        return mask
