"""Bound pods per second with scheduling, beside the bare rate of the same process without, alternated in one run."""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING, Any

from bench.cases import Figure
from bench.cluster import load, rig
from pumice.cache.effects import Bind

if TYPE_CHECKING:
    from collections.abc import Callable

    from pumice.kube.access.connection import Connection

GANGS, SIZE, ROUNDS = 20, 100, 6
PODS = GANGS * SIZE


def measure(connection: Connection, tell: Callable[[str], None]) -> list[Figure]:
    """Alternate rounds of binding with and without scheduling, and compare the medians."""
    with rig.Rig(connection) as made:
        made.run(load.clear(made.client))
        scheduled, bare, writes, events = [], [], [], []
        for number in range(ROUNDS):
            stored = _fill(made)
            before, written = made.world.counts, made.written
            scheduled.append(made.schedule(PODS))
            placed = {task.uid: task.node.name for task in made.cache.cluster.tasks.values() if task.node is not None}
            made.catch_up(PODS)
            made.scheduler.cycle()
            made.catch_up(PODS)
            writes.append((made.written - written) / PODS)
            events.append((made.world.counts.events - before.events) / PODS)
            nodes = [placed[pod["metadata"]["uid"]] for pod in stored]
            _empty(made)
            bare.append(_bare(made, nodes))
            _empty(made)
            tell(f"round {number + 1} of {ROUNDS}: {scheduled[-1]:,.0f} pods/s scheduled, {bare[-1]:,.0f} bare")
    rate, floor = statistics.median(scheduled), statistics.median(bare)
    spread = f"scheduled {min(scheduled):,.0f} to {max(scheduled):,.0f}, bare {min(bare):,.0f} to {max(bare):,.0f}"
    name = f"{PODS:,} pods in {GANGS} gangs, share of the bare bind rate"
    return [
        Figure(
            name=name,
            value=rate / floor,
            unit="x",
            target=">= 0.8",
            holds=rate / floor >= 0.8,
            note=f"{rate:,.0f} pods/s beside {floor:,.0f} bare, medians of {ROUNDS} rounds ({spread})",
        ),
        Figure(
            name="API writes per bound pod, events not counted",
            value=max(writes),
            unit="",
            target="<= 1.1",
            holds=max(writes) <= 1.1,
            note=f"events per bound pod: {max(events):.2f}",
        ),
    ]


def _fill(made: rig.Rig) -> list[dict[str, Any]]:
    stored: list[dict[str, Any]] = made.run(load.gangs(made.client, GANGS, SIZE))
    made.catch_up(PODS)
    return stored


def _empty(made: rig.Rig) -> None:
    made.run(load.clear(made.client))
    made.catch_up(0)


def _bare(made: rig.Rig, nodes: list[str]) -> float:
    """Post the same bindings again for equal pods, with the same watches open."""
    stored = _fill(made)
    binds = [
        Bind(namespace=load.NAMESPACE, name=pod["metadata"]["name"], uid=pod["metadata"]["uid"], node=node)
        for pod, node in zip(stored, nodes, strict=True)
    ]
    rate = made.bind_only(binds)
    made.catch_up(PODS)
    return rate
