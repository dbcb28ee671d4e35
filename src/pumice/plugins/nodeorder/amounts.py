"""The scores of Kubernetes that go by amounts: free, used and evenly used resources, for one pod and for many.

The forms over many count in floats what the others count in whole numbers. That is exact: amounts are small enough (see blocks) for a quotient of two of them, times 100, to be
rounded to a whole number only if it is one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import numpy as np
import numpy.typing as npt

from pumice.api import names
from pumice.model.resources import CPU, MEMORY
from pumice.plugins.sharing.scoring import MAX_SCORE

if TYPE_CHECKING:
    from pumice.framework.evaluation import Floats, Mask
    from pumice.framework.subject import Subject, Subjects
    from pumice.model.nodes import Nodes
    from pumice.model.resources import Matrix

Positions = npt.NDArray[np.int64]


def _after(subject: Subject, nodes: Nodes) -> Matrix:
    """Return cpu and memory in use with the pod on the node, pods without requests counting with stand-ins."""
    after: Matrix = nodes.non_zero + np.array(subject.shape.non_zero, dtype=np.int64)
    return after


def least(subject: Subject, nodes: Nodes) -> Floats:
    """Score the free part of cpu and memory, 50 to 50, in whole points."""
    after = _after(subject, nodes)
    room = nodes.native
    free = np.where((after > room) | (room == 0), 0, (room - after) * MAX_SCORE // np.maximum(room, 1))
    score: Floats = (free.sum(axis=1) // 2).astype(np.float64)
    return score


def least_of_many(subjects: Subjects, nodes: Nodes) -> Floats:
    """Score the same for many pods."""
    return _mean_part(nodes.kept(_free) - subjects.kept(_hundredfold), nodes.kept(_room))


def _columns(amounts: Matrix) -> Floats:
    """Lay amounts of nodes out to be spread over pods: resources by nodes."""
    return np.ascontiguousarray(amounts.T, dtype=np.float64)[:, None, :]


def _room(nodes: Nodes) -> Floats:
    """Return what nodes have, at least 1 of everything, so that it can be divided by."""
    return _columns(np.maximum(nodes.kept(_native), 1))


def _native(nodes: Nodes) -> Matrix:
    return nodes.native


def _free(nodes: Nodes) -> Floats:
    """Return a hundred times what is free."""
    return _columns((nodes.kept(_native) - nodes.non_zero) * MAX_SCORE)


def _hundredfold(subjects: Subjects) -> Floats:
    """Return a hundred times what pods count with: resources by pods, to be spread over nodes."""
    return _columns(subjects.non_zero * MAX_SCORE).transpose(0, 2, 1)


def _mean_part(amounts: Floats, room: Floats) -> Floats:
    """Return how many hundredths of the room hundredfold amounts are on average, in whole points, at least none each; in place."""
    amounts /= room
    np.floor(amounts, out=amounts)
    np.maximum(amounts, 0.0, out=amounts)
    return _halved(np.add(amounts[0], amounts[1], out=amounts[0]))


def _halved(points: Floats) -> Floats:
    points *= 0.5
    return np.floor(points, out=points)


def most(subject: Subject, nodes: Nodes) -> Floats:
    """Score the used part of cpu and memory, in whole points."""
    after = _after(subject, nodes)
    room = nodes.native
    used = np.where(room == 0, 0, np.minimum(after, room) * MAX_SCORE // np.maximum(room, 1))
    score: Floats = (used.sum(axis=1) // 2).astype(np.float64)
    return score


def most_of_many(subjects: Subjects, nodes: Nodes) -> Floats:
    """Score the same for many pods."""
    used, full = nodes.kept(_used)
    after = used + subjects.kept(_hundredfold)
    return _mean_part(np.minimum(after, full, out=after), nodes.kept(_room))


def _used(nodes: Nodes) -> tuple[Floats, Floats]:
    """Return a hundred times what is used, and a hundred times what there is."""
    return _columns(nodes.non_zero * MAX_SCORE), _columns(nodes.native * MAX_SCORE)


def balanced(subject: Subject, nodes: Nodes) -> Floats | None:
    """Score how much evener the node's resources are used with the pod than without: 75 means no change."""
    vector = subject.request.vector
    columns = [CPU, MEMORY]
    gpu = nodes.table.vocabulary.columns.get(names.NVIDIA_GPU)
    if gpu is not None and vector[gpu]:
        columns.append(gpu)
    if not vector[columns].any():
        return None
    room = nodes.allocatable[:, columns]
    room[:, :2] = nodes.native
    used = nodes.used[:, columns]
    before, after = _balance(used, room), _balance(used + vector[columns], room)
    return (50 + (50 + after - before) // 2).astype(np.float64)


def _balance(used: Matrix, room: Matrix) -> Matrix:
    """Return 100 less the spread of the used fractions, in whole points; a resource that the node lacks is left out."""
    has = room > 0
    fraction = np.minimum(1.0, used / np.maximum(room, 1))
    count = np.maximum(has.sum(axis=1), 1)
    if room.shape[1] == 2:
        deviation = np.where(has.all(axis=1), np.abs(fraction[:, 0] - fraction[:, 1]) / 2, 0.0)
    else:
        mean = np.where(has, fraction, 0).sum(axis=1) / count
        variance = np.where(has, (fraction - mean[:, None]) ** 2, 0).sum(axis=1) / count
        deviation = np.sqrt(variance)
    return ((1 - deviation) * MAX_SCORE).astype(np.int64)


def balanced_of_many(subjects: Subjects, nodes: Nodes) -> Floats | None:
    """Score the same for many pods: those that ask for GPUs apart, and nothing for those that ask for none of the three."""
    kinds = subjects.kept(_kinds)
    if len(kinds.usual) == len(subjects):
        return _evenness(kinds.requests, nodes)
    if not len(kinds.usual) and not len(kinds.devices):
        return None
    total = np.zeros((len(subjects), len(nodes)))
    if len(kinds.usual):
        total[kinds.usual] = _evenness(kinds.requests, nodes)
    if len(kinds.devices):
        total[kinds.devices] = _evenness_with_devices(subjects.requests[kinds.devices], nodes)
    return total


class Kinds(msgspec.Struct, frozen=True):
    """Who among many asks for cpu or memory alone, and who for GPUs; and what the former ask for, resources by pods, after a pod that asks for nothing."""

    usual: Positions
    devices: Positions
    requests: Floats


def _kinds(subjects: Subjects) -> Kinds:
    gpu = subjects.vocabulary.columns.get(names.NVIDIA_GPU)
    devices = subjects.requests[:, gpu] > 0 if gpu is not None else np.zeros(len(subjects), dtype=np.bool_)
    asked = subjects.requests[:, [CPU, MEMORY]]
    usual = np.flatnonzero(~devices & asked.any(axis=1))
    requests = np.zeros((2, len(usual) + 1, 1))
    requests[:, 1:, 0] = asked[usual].T
    return Kinds(usual, np.flatnonzero(devices), requests)


def _evenness(requests: Floats, nodes: Nodes) -> Floats:
    """Score cpu and memory; the first request is nothing, which shows how even they are before."""
    used, lacking = nodes.kept(_taken)
    fraction = used + requests
    fraction /= nodes.kept(_room)
    np.minimum(1.0, fraction, out=fraction)
    gap: Floats = np.subtract(fraction[0], fraction[1], out=fraction[0])
    np.abs(gap, out=gap)
    if lacking is not None:
        gap[:, lacking] = 0.0
    # What is halved elsewhere is doubled here, which is exact and costs a pass less over all nodes; so does adding the last 50 before the halving.
    np.subtract(2, gap, out=gap)
    gap *= MAX_SCORE / 2
    np.floor(gap, out=gap)
    return _halved(gap[1:] - (gap[0] - 150))


def _taken(nodes: Nodes) -> tuple[Floats, Mask | None]:
    """Return cpu and memory in use, and which nodes lack either, None if none does."""
    native = nodes.kept(_native)
    lacking: Mask | None = None if np.count_nonzero(native) == native.size else np.logical_not(native.all(axis=1))
    return _columns(nodes.used[:, :2]), lacking


def _evenness_with_devices(requests: Matrix, nodes: Nodes) -> Floats:
    """Score cpu, memory and GPUs."""
    columns = [CPU, MEMORY, nodes.table.vocabulary.columns[names.NVIDIA_GPU]]
    room = nodes.allocatable[:, columns]
    room[:, :2] = nodes.native
    used = nodes.used[:, columns]
    full = (used + requests[:, None, columns]).reshape(-1, len(columns))
    after = _balance(full, np.tile(room, (len(requests), 1))).reshape(len(requests), len(nodes))
    return (50 + (50 + after - _balance(used, room)) // 2).astype(np.float64)
