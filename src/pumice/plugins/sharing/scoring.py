"""What scoring plugins share: the scale, weights, and Kubernetes' normalisation."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, TypeVar

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from pumice.framework.evaluation import Floats
    from pumice.model.nodes import Nodes

MAX_SCORE = 100
S = TypeVar("S")


@functools.cache
def weighted(score: Callable[[S, Nodes], Floats | None], weight: int) -> Callable[[S, Nodes], Floats | None]:
    """Multiply a score of one subject or of many; equal arguments give the same function, so that kept vectors stay valid."""
    if weight == 1:
        return score

    def multiplied(asking: S, nodes: Nodes) -> Floats | None:
        answer = score(asking, nodes)
        return None if answer is None else answer * weight

    return multiplied


@functools.cache
def normaliser(weight: int, *, reverse: bool) -> Callable[[Floats], Floats]:
    """Scale raw scores to whole points of 0 to 100 over the candidates, the highest (reversed: the lowest) being best."""

    def normalise(raw: Floats) -> Floats:
        top = raw.max(initial=0)
        if top == 0:
            return np.full(len(raw), float(MAX_SCORE * weight if reverse else 0))
        points = np.floor(raw * MAX_SCORE / top)
        scaled: Floats = (MAX_SCORE - points if reverse else points) * weight
        return scaled

    return normalise
