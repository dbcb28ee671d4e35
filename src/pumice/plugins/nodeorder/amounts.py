"""The scores of Kubernetes that go by amounts: free, used and evenly used resources.

Of many pods they are counted in floats, which is exact where all amounts are small (`Subjects.small`): a quotient of two of them, times 100, is rounded to a whole number only if it is one. Else they
are counted in whole numbers.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import numpy.typing as npt

from pumice.api import names
from pumice.model.resources import CPU, MEMORY
from pumice.plugins.sharing.scoring import MAX_SCORE

if TYPE_CHECKING:
    from collections.abc import Callable

    from pumice.framework.evaluation import Floats, Mask
    from pumice.framework.subject import Subjects
    from pumice.model.nodes import Nodes
    from pumice.model.resources import Matrix

Positions = npt.NDArray[np.int64]
Numbers = npt.NDArray[Any]
"""Whole numbers, or floats that stand for them."""


def _columns(amounts: Matrix, *, small: bool) -> Numbers:
    """Lay amounts of nodes out to be spread over pods: resources by nodes."""
    return np.ascontiguousarray(amounts.T, dtype=np.float64 if small else np.int64)[:, None, :]


def _both(make: Callable[..., Any]) -> tuple[Callable[[Nodes], Any], Callable[[Nodes], Any]]:
    """Return what makes something of nodes in whole numbers, and in floats; `Nodes.kept` keeps each."""
    return functools.partial(make, small=False), functools.partial(make, small=True)


def _native(nodes: Nodes) -> Matrix:
    return nodes.native


def _room(nodes: Nodes, *, small: bool) -> Numbers:
    """Return what nodes have, at least 1 of everything, so that it can be divided by."""
    return _columns(np.maximum(nodes.kept(_native), 1), small=small)


def _free(nodes: Nodes, *, small: bool) -> Numbers:
    """Return a hundred times what is free."""
    return _columns((nodes.kept(_native) - nodes.non_zero) * MAX_SCORE, small=small)


def _used(nodes: Nodes, *, small: bool) -> tuple[Numbers, Numbers]:
    """Return a hundred times what is used, and a hundred times what there is."""
    return _columns(nodes.non_zero * MAX_SCORE, small=small), _columns(nodes.kept(_native) * MAX_SCORE, small=small)


def _taken(nodes: Nodes, *, small: bool) -> tuple[Numbers, Mask | None]:
    """Return cpu and memory in use, and which nodes lack either, None if none does."""
    native = nodes.kept(_native)
    lacking: Mask | None = None if np.count_nonzero(native) == native.size else np.logical_not(native.all(axis=1))
    return _columns(nodes.used[:, :2], small=small), lacking


_ROOM, _FREE, _USED, _TAKEN = _both(_room), _both(_free), _both(_used), _both(_taken)


def _hundredfold(subjects: Subjects) -> Numbers:
    """Return a hundred times what pods count with, stand-ins where they ask for nothing: resources by pods, to be spread over nodes."""
    return _columns(subjects.non_zero * MAX_SCORE, small=subjects.small).transpose(0, 2, 1)


def least(subjects: Subjects, nodes: Nodes) -> Floats:
    """Score the free part of cpu and memory, 50 to 50, in whole points."""
    small = subjects.small
    return _mean_part(nodes.kept(_FREE[small]) - subjects.kept(_hundredfold), nodes.kept(_ROOM[small]))


def most(subjects: Subjects, nodes: Nodes) -> Floats:
    """Score the used part of cpu and memory, in whole points."""
    used, full = nodes.kept(_USED[subjects.small])
    after = used + subjects.kept(_hundredfold)
    return _mean_part(np.minimum(after, full, out=after), nodes.kept(_ROOM[subjects.small]))


def _mean_part(amounts: Numbers, room: Numbers) -> Floats:
    """Return how many hundredths of the room hundredfold amounts are on average, in whole points, at least none each; in place."""
    if amounts.dtype.kind == "i":
        amounts = np.floor_divide(amounts, room, out=amounts).astype(np.float64)
    else:
        amounts /= room
        np.floor(amounts, out=amounts)
    np.maximum(amounts, 0.0, out=amounts)
    return _halved(np.add(amounts[0], amounts[1], out=amounts[0]))


def _halved(points: Floats) -> Floats:
    points *= 0.5
    return np.floor(points, out=points)


def balanced(subjects: Subjects, nodes: Nodes) -> Floats | None:
    """Score how much evener a node's resources are used with the pod than without: 75 means no change.

    Those that ask for GPUs are scored apart, and nothing is said of those that ask for none of the three.
    """
    kinds = subjects.kept(_kinds)
    if len(kinds.usual) == len(subjects):
        return _evenness(kinds.requests, nodes, small=subjects.small)
    if not len(kinds.usual) and not len(kinds.devices):
        return None
    total = np.zeros((len(subjects), len(nodes)))
    if len(kinds.usual):
        total[kinds.usual] = _evenness(kinds.requests, nodes, small=subjects.small)
    if len(kinds.devices):
        total[kinds.devices] = _evenness_with_devices(subjects.requests[kinds.devices], nodes)
    return total


class Kinds(msgspec.Struct, frozen=True):
    """Who among many asks for cpu or memory alone, and who for GPUs; and what the former ask for, resources by pods, after a pod that asks for nothing."""

    usual: Positions
    devices: Positions
    requests: Numbers


def _kinds(subjects: Subjects) -> Kinds:
    gpu = subjects.vocabulary.columns.get(names.NVIDIA_GPU)
    devices = subjects.requests[:, gpu] > 0 if gpu is not None else np.zeros(len(subjects), dtype=np.bool_)
    asked = subjects.requests[:, [CPU, MEMORY]]
    usual = np.flatnonzero(~devices & asked.any(axis=1))
    requests = np.zeros((2, len(usual) + 1, 1), dtype=np.float64 if subjects.small else np.int64)
    requests[:, 1:, 0] = asked[usual].T
    return Kinds(usual, np.flatnonzero(devices), requests)


def _evenness(requests: Numbers, nodes: Nodes, *, small: bool) -> Floats:
    """Score cpu and memory; the first request is nothing, which shows how even they are before."""
    used, lacking = nodes.kept(_TAKEN[small])
    taken = used + requests
    fraction: Floats = np.true_divide(taken, nodes.kept(_ROOM[small]), out=taken if small else None)
    np.minimum(1.0, fraction, out=fraction)
    gap: Floats = np.subtract(fraction[0], fraction[1], out=fraction[0])
    np.abs(gap, out=gap)
    if lacking is not None:
        gap[:, lacking] = 0.0
    # The spread is half of the gap. What would be halved is doubled here, which is exact and costs a pass less over all nodes; so does adding the last 50 before the halving.
    np.subtract(2, gap, out=gap)
    gap *= MAX_SCORE / 2
    np.floor(gap, out=gap)
    return _halved(gap[1:] - (gap[0] - 150))


def _evenness_with_devices(requests: Matrix, nodes: Nodes) -> Floats:
    """Score cpu, memory and GPUs."""
    columns = [CPU, MEMORY, nodes.table.vocabulary.columns[names.NVIDIA_GPU]]
    room = nodes.allocatable[:, columns]
    room[:, :2] = nodes.native
    used = nodes.used[:, columns]
    full = (used + requests[:, None, columns]).reshape(-1, len(columns))
    after = _balance(full, np.tile(room, (len(requests), 1))).reshape(len(requests), len(nodes))
    return (50 + (50 + after - _balance(used, room)) // 2).astype(np.float64)


def _balance(used: Matrix, room: Matrix) -> Matrix:
    """Return 100 less the spread of the used fractions, in whole points; a resource that the node lacks is left out."""
    has = room > 0
    fraction = np.minimum(1.0, used / np.maximum(room, 1))
    count = np.maximum(has.sum(axis=1), 1)
    mean = np.where(has, fraction, 0).sum(axis=1) / count
    variance = np.where(has, (fraction - mean[:, None]) ** 2, 0).sum(axis=1) / count
    points: Matrix = ((1 - np.sqrt(variance)) * MAX_SCORE).astype(np.int64)
    return points
