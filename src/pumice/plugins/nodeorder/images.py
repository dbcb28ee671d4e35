"""Image locality: prefer nodes that have the pod's images already."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pumice.plugins.sharing.scoring import MAX_SCORE

if TYPE_CHECKING:
    from pumice.framework.evaluation import Floats
    from pumice.framework.subject import Subject
    from pumice.model.attributes import Attributes
    from pumice.model.nodes import Nodes

MEBIBYTE = 2**20
LEAST = 23 * MEBIBYTE
MOST_PER_CONTAINER = 1000 * MEBIBYTE
LARGEST = 2**48  # a size beyond this is a mistake, and would not fit into the products below


def locality(subject: Subject, nodes: Nodes) -> Floats | None:
    """Score the bytes that need not be fetched, each image weighed by the part of the nodes that have it."""
    constraints = subject.constraints
    columns = nodes.table.attributes
    key = ("image locality", constraints.images, constraints.image_count)
    if key not in columns.derived:
        columns.derived[key] = _scores(columns, constraints.images, constraints.image_count)
    scores: Floats | None = columns.derived[key]
    return None if scores is None else scores[nodes.index]


def _scores(columns: Attributes, images: tuple[str, ...], containers: int) -> Floats | None:
    """Return the score of every node, None if no node has anything."""
    present = [column for name in images if (column := columns.image(name)) is not None]
    if not present or not containers:
        return None
    total = np.zeros(columns.count, dtype=np.int64)
    for column in present:
        # The part of the nodes that have the image keeps a pod from running after the only node that ever ran it.
        total += np.clip(column, 0, LARGEST) * np.count_nonzero(column >= 0) // columns.count
    most = MOST_PER_CONTAINER * containers
    scores: Floats = (MAX_SCORE * (np.clip(total, LEAST, most) - LEAST) // (most - LEAST)).astype(np.float64)
    return scores
