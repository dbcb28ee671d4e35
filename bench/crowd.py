"""What a steady stream of jobs costs beside thousands of groups that wait for more room than there is: cycles should cost by what changes."""

from __future__ import annotations

import statistics
import time

from bench import worlds
from bench.cases import Figure

NODES, CROWD = 1000, 10_000
SIZES = (1, 1, 4, 1, 16, 1)  # pods of the jobs that come in a cycle
CYCLES = 60
MOST = 1.2


class _Stream:
    """A cluster in which small jobs come and start, and so many gangs of two find no room."""

    def __init__(self, crowd: int) -> None:
        self._bench = worlds.Bench()
        self._come = 0
        self._bench.feed(worlds.node(i, cpu=32, memory=128) for i in range(NODES))
        for i in range(NODES):
            running = worlds.pod(f"running-{i}", 0, "24", "24Gi", f"node-{i:05d}")
            self._bench.feed([worlds.group(f"running-{i}", 1, phase="Running"), running])
        for gang in range(crowd):
            self._bench.feed([worlds.group(f"waiting-{gang}", 2)])
            self._bench.feed(worlds.pod(f"waiting-{gang}", i, f"{16_000 + 500 * (gang % 8)}m", "4Gi") for i in range(2))
        self._bench.apply()
        for _ in range(3):
            self._bench.scheduler.cycle()

    def cycle(self) -> float:
        """Let jobs come; return the processor time of the cycle that starts them, in milliseconds."""
        before = len(self._bench.world.binds)
        for size in SIZES:
            self._come += 1
            self._bench.feed([worlds.group(f"come-{self._come}", size)])
            cpu = f"{10 + 5 * (self._come % 20)}m"
            self._bench.feed(worlds.pod(f"come-{self._come}", i, cpu, "10Mi") for i in range(size))
        self._bench.time += 100_000
        start = time.process_time()
        self._bench.scheduler.cycle()
        spent = (time.process_time() - start) * 1000
        if (bound := len(self._bench.world.binds) - before) != sum(SIZES):
            raise RuntimeError(f"{bound} of {sum(SIZES)} pods were bound")
        return spent


def waiting() -> Figure:
    """Measure cycles with the crowd beside them and without it, in turns."""
    alone, beside = _Stream(0), _Stream(CROWD)
    pairs = [(alone.cycle(), beside.cycle()) for _ in range(CYCLES)]
    without, with_crowd = (statistics.median(column) for column in zip(*pairs, strict=True))
    ratio = statistics.median(more / less for less, more in pairs)
    return Figure(
        name=f"a cycle that starts {sum(SIZES)} pods beside {CROWD:,} groups that wait",
        value=ratio,
        unit="x",
        target=f"<= {MOST}",
        holds=ratio <= MOST,
        note=f"{with_crowd:.1f} ms of the processor beside them, {without:.1f} ms without them, in turns, {CYCLES} of each",
    )
