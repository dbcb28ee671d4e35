"""Where the kubelet would put containers on many nodes at once: which cells it would choose, and whether its policy admits that.

The cells of a choice are a mask. Masks stand in the order in which one is preferred to another, fewer cells first, then lower numbers, so the first that has room is the best.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec
import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from pumice.framework.evaluation import Mask
    from pumice.model.resources import Matrix, Vector

ANYTHING, PREFERRED, SINGLE = 0, 1, 2
STRICTNESS: Final = {"restricted": PREFERRED, "single-numa-node": SINGLE}


class Masks:
    """All masks of some cells in their order, a column each."""

    def __init__(self, cells: int) -> None:
        numbers = sorted(range(1, 1 << cells), key=lambda mask: (mask.bit_count(), mask))
        bits = [[mask >> cell & 1 for mask in numbers] for cell in range(cells)]
        self.columns: npt.NDArray[np.int64] = np.array(bits, dtype=np.int64).reshape(cells, len(numbers))
        self.sizes: npt.NDArray[np.int64] = self.columns.sum(axis=0)


class Alignment(msgspec.Struct, frozen=True):
    """For each node: whether it admits the containers, how many CPUs they would take of each cell, and which container it does not admit (or -1)."""

    admitted: Mask
    taken: Matrix
    refused: Vector

    @property
    def spans(self) -> Vector:
        """How many cells the containers would be spread over."""
        spread: Vector = (self.taken > 0).sum(axis=1)
        return spread


def align(masks: Masks, total: Matrix, free: Matrix, strictness: Vector, needs: Sequence[int]) -> Alignment:
    """Give containers their CPUs one after the other; one without whole CPUs goes anywhere."""
    start: Matrix = np.maximum(free, 0)  # more may be held than an agent says there is
    left = start.copy()
    admitted = np.ones(len(free), dtype=np.bool_)
    refused = np.full(len(free), -1, dtype=np.int64)
    for index, need in enumerate(needs):
        if need <= 0:
            continue
        found, chosen, size = _best(masks, left, need)
        _, _, smallest = _best(masks, total, need)
        preferred = found & (size == smallest)
        fits = (strictness == ANYTHING) | (preferred & ((strictness == PREFERRED) | (size == 1)))
        refused[admitted & ~fits] = index
        admitted &= fits
        left -= _taken(masks, left, np.where(found, chosen, 0), np.where(found, need, 0))
    return Alignment(admitted, start - left, refused)


def _best(masks: Masks, amounts: Matrix, need: int) -> tuple[Mask, Vector, Vector]:
    """Return of each node whether some mask has as many CPUs, the first that has, and its size."""
    enough = amounts @ masks.columns >= need
    chosen: Vector = enough.argmax(axis=1) if enough.shape[1] else np.zeros(len(amounts), dtype=np.int64)
    found: Mask = np.asarray(enough.any(axis=1))
    sizes = masks.sizes[chosen] if enough.shape[1] else chosen
    return found, chosen, np.where(found, sizes, 0)


def _taken(masks: Masks, left: Matrix, chosen: Vector, need: Vector) -> Matrix:
    """Take CPUs from the cells of a mask, from the first on."""
    open_cells = left * masks.columns[:, chosen].T if masks.columns.size else left
    before = np.cumsum(open_cells, axis=1) - open_cells
    taken: Matrix = np.clip(need[:, None] - before, 0, open_cells)
    return taken
