"""Room, and the summary of why no node has it: which nodes can hold a request, and what all nodes say against a task."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from pumice.framework.functions import answers
from pumice.framework.reasons import FitSummary, Reasons, ReasonVector, summary
from pumice.model.nodes import EVERY
from pumice.model.resources import CPU, MEMORY, PODS

if TYPE_CHECKING:
    from pumice.framework.functions import Functions
    from pumice.framework.subject import Subject, Subjects
    from pumice.model.nodes import Nodes
    from pumice.model.resources import Matrix, Vector

Mask = npt.NDArray[np.bool_]


def room(subject: Subject, nodes: Nodes) -> Mask:
    """Tell which nodes have room for one subject."""
    request = subject.request
    if request.unoffered:
        return np.zeros(len(nodes), dtype=np.bool_)
    fits: Mask = np.logical_and.reduce(nodes.kept(_room)[request.asked, 0] >= request.needed[:, None], axis=0)
    return fits


def room_for_many(subjects: Subjects, nodes: Nodes) -> Mask:
    """Tell for each of many subjects, all of whose requests are offered, which nodes have room for it: once all is released, and in a view of now also at once."""
    columns, needed = subjects.kept(_needed)
    fits: Mask = np.logical_and.reduce(nodes.kept(_room)[columns] >= needed, axis=0)
    return fits


def _room(nodes: Nodes) -> Matrix:
    """Return what will be free, in a view of now what is free and stays so: resources by nodes, to be spread over subjects."""
    free = nodes.idle_at(EVERY)
    later = nodes.after_release(free, EVERY)
    room = later if nodes.released else np.minimum(free, later)
    return np.ascontiguousarray(room.T)[:, None, :]


def _needed(subjects: Subjects) -> tuple[Vector, Matrix]:
    """Return the columns that somebody asks for, and how much each needs there, to be spread over nodes; whoever does not ask needs less than nothing."""
    asked = subjects.requests > 0
    asked[:, [CPU, MEMORY]] = True
    columns = np.flatnonzero(asked.any(axis=0))
    needed = np.where(asked, subjects.requests, np.iinfo(np.int64).min)[:, columns]
    return columns, np.ascontiguousarray(needed.T)[:, :, None]


def summarise(subject: Subject, nodes: Nodes, functions: Functions, reasons: Reasons) -> FitSummary:
    """Count the reasons of all nodes: the first resource that is short, else what the filters say."""
    counted: list[tuple[str, int]] = []
    request = subject.request
    short: Mask = nodes.future_idle[:, request.asked] < request.needed
    if not nodes.released:
        short |= nodes.idle[:, request.asked] < request.needed
    # A node without a free pod slot is left to the filter that has words for it, if it is asked.
    slots = request.asked == PODS
    full: Mask = np.logical_or.reduce(short[:, slots], axis=1)
    short &= ~slots
    failed: Mask = np.logical_or.reduce(short, axis=1)
    names = nodes.table.vocabulary.names
    firsts: list[int] = np.bincount(short[failed].argmax(axis=1), minlength=len(request.asked)).tolist()
    counted += [
        (f"Insufficient {names[column]}", count) for column, count in zip(request.asked.tolist(), firsts, strict=True)
    ]
    open_rows = ~failed
    if request.unoffered:
        counted.append((f"Insufficient {request.unoffered[0]}", int(open_rows.sum())))
        return summary(len(nodes), counted)
    for plugin in dict.fromkeys(f.plugin for f in functions.filters):
        refused = np.zeros(len(nodes), dtype=np.bool_)
        for _, said in answers([f for f in functions.filters if f.plugin == plugin], subject, nodes, reasons):
            answer: ReasonVector = np.where(open_rows, said, 0)
            counted += _texts(answer, reasons)
            refused |= answer != 0
            # A reason that eviction cannot cure ends the node's list; a curable one lets the plugin's next filter speak too.
            open_rows = open_rows & reasons.curable[answer]
        open_rows &= ~refused
    counted.append(("Insufficient pods", int((full & open_rows).sum())))
    return summary(len(nodes), counted)


def _texts(answer: npt.NDArray[np.int16], reasons: Reasons) -> list[tuple[str, int]]:
    counts = np.bincount(answer)
    return [(reasons.table[number].text, int(counts[number])) for number in range(1, len(counts)) if counts[number]]
