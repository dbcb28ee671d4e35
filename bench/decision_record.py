"""What recording decisions costs a cycle, and what an explanation costs whoever asks for it."""

from __future__ import annotations

import functools
import time
from typing import TYPE_CHECKING

from bench import cases, worlds
from pumice.framework.record import CycleRecord, Verdict

if TYPE_CHECKING:
    from collections.abc import Callable

    from pumice.framework.explaining import Explainer

WAITING = 2_000
ROUNDS = 40


class MuteRecord(CycleRecord):
    """A record to which nothing is said; it keeps only what tells whether a job is to be reported at all."""

    __slots__ = ()

    def say(self, source: str, text: object, job: str = "") -> None:
        """Forget a line."""

    def judge(self, job: str, source: str, text: object) -> None:
        """Forget a verdict."""

    def acquit(self, job: str, source: str) -> None:
        """Forget that a verdict is taken back."""

    def state(self, job: str, text: str) -> None:
        """Forget how a job stands."""

    def verdict(self, job: str, source: str) -> Verdict | None:
        """Know nothing."""
        del job, source
        return None


def crowded(queues: int = 10) -> worlds.Bench:
    """Fill 1,000 nodes with pods of full queues, in which gangs wait: half of them are let in and find no room, the others are not let in."""
    bench = worlds.Bench(cases.SHIPPED)
    bench.feed(worlds.node(i, cpu=16) for i in range(1000))
    bench.feed(worlds.queue(f"q{q}", capability={"cpu": "1600"}) for q in range(queues))
    for g in range(1000):
        bench.feed([worlds.group(f"run-{g}", 4, f"q{g % queues}", phase="Running")])
        bench.feed(worlds.pod(f"run-{g}", i, "4", "8Gi", f"node-{g:05d}") for i in range(4))
    for g in range(WAITING):
        more = {"minResources": {"cpu": "3200"}} if g % 2 else {}
        bench.feed([worlds.group(f"wait-{g}", 4, f"q{g % queues}", phase="Pending" if g % 2 else "Inqueue", **more)])
        bench.feed(worlds.pod(f"wait-{g}", i, f"{1 + g % 4}", "8Gi") for i in range(4))
    bench.apply()
    for _ in range(3):
        _spent(bench, bench.scheduler.cycle)
    return bench


def _spent(bench: worlds.Bench, work: Callable[[], object]) -> float:
    """Measure the processor time of a cycle in which everybody is looked at again."""
    bench.cache.cluster.changed += 1
    bench.time += 1_000_000
    start = time.process_time()
    work()
    return time.process_time() - start


def recording() -> cases.Figure:
    """Compare cycles that are recorded with cycles that are not, in turns, on the same cluster."""
    bench = crowded()
    spoken, mute = bench.cache.record, MuteRecord()
    found: dict[bool, list[float]] = {True: [], False: []}
    for turn in range(ROUNDS):
        for recorded in (True, False) if turn % 2 else (False, True):
            bench.cache.record = spoken if recorded else mute
            found[recorded].append(_spent(bench, bench.scheduler.cycle))
    with_, without = _typical(found[True]), _typical(found[False])
    part = max(0.0, 1 - without / with_)
    note = f"{1000 * with_:.1f} ms with, {1000 * without:.1f} ms without"
    name = "recording decisions, 1,000 full nodes, 2,000 gangs that wait, as part of a cycle"
    return cases.Figure(name, 100 * part, "%", "<= 5", part <= 0.05, note=note)


def _typical(spent: list[float]) -> float:
    """Return the lower quartile, which others on the machine disturb least; the first cycles without the record find everything new."""
    return sorted(spent[2:])[(len(spent) - 2) // 4]


def explaining() -> cases.Figure:
    """Time the depth of a job, at 5,000 nodes and 100,000 pods, beside the cycle that it is asked in."""
    bench = worlds.Bench(cases.SHIPPED)
    bench.feed(worlds.node(i, cpu=20) for i in range(5000))
    for g in range(5000):
        bench.feed([worlds.group(f"run-{g}", 20, phase="Running")])
        bench.feed(worlds.pod(f"run-{g}", i, "1", "1Gi", f"node-{(g * 20 + i) % 5000:05d}") for i in range(20))
    bench.feed([worlds.group("wait", 8), *(worlds.pod("wait", i, "2", "4Gi") for i in range(8))])
    bench.apply()
    bench.scheduler.cycle()
    spent: list[float] = []

    def ask(explainer: Explainer) -> None:
        spent.append(cases.seconds(functools.partial(explainer.job, "bench/wait")))

    for _ in range(3):
        bench.scheduler.cycle(ask)
    value = min(spent)
    return cases.Figure("explaining a gang of 8, 5,000 nodes, 100,000 pods", value, "s", "<= 0.5", value <= 0.5)


def everything() -> list[Callable[[], cases.Figure]]:
    """Give the measurements."""
    return [recording, explaining]
