"""The floor: the same fit problem as a plain numpy loop, one full scan of all nodes per pod."""

from __future__ import annotations

import time

import numpy as np


def scan_per_pod(nodes: int, capacity: tuple[int, int, int], requests: list[tuple[int, int, int]]) -> tuple[float, int]:
    """Place each pod on the node with most room left, scanning all nodes each time; returns seconds and pods placed."""
    room = np.tile(np.array(capacity, dtype=np.int64), (nodes, 1))
    idle = room.copy()
    placed = 0
    start = time.perf_counter()
    for request in requests:
        asked = np.array(request, dtype=np.int64)
        fits = (idle >= asked).all(axis=1)
        score = np.where(fits, ((idle - asked)[:, :2] * 100 // room[:, :2]).sum(axis=1), -1)
        best = int(score.argmax())
        if score[best] >= 0:
            idle[best] -= asked
            placed += 1
    return time.perf_counter() - start, placed
