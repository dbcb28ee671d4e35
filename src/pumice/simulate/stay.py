"""`--stay`: pods arrive one by one, each decided before the next, and never end; how much of the GPUs can be given out.

Everything that is drawn comes from one generator, in this order: the order of nodes, the order of pods, which pods come again until the load is reached, and which of them stay away if it is exceeded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
from msgspec import structs

from pumice.api import core, duration, kinds
from pumice.simulate import gpus
from pumice.simulate.trace import TraceError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pumice.simulate.settings import Settings
    from pumice.simulate.trace import Given, Trace, TraceJob

LOAD: Final = 1.3
"""How much arrives, in parts of all GPUs, where nothing else is said."""
APART: Final = 10 * duration.SECOND
"""How far apart pods arrive: what is learnt every ten minutes is learnt every sixty pods."""


def prepare(trace: Trace, cluster: list[Given], settings: Settings) -> tuple[Trace, list[Given]]:
    """Return the pods that arrive, an instant each and for ever, and the nodes in their tie order."""
    capacity = _capacity(cluster)
    if not capacity:
        raise TraceError(trace.source, 0, "", "no node has GPUs; --stay tells how much of them can be given out")
    pods = sorted(trace.jobs, key=lambda job: job.name)
    for job in pods:
        if job.size != 1:
            raise TraceError(trace.source, job.line, "", f"job {job.key} has {job.size} pods; with --stay each has one")
    if not pods:
        raise TraceError(trace.source, 0, "", "no pod is in it")
    chance = np.random.default_rng(settings.seed)
    order = chance.permutation(len([kind for kind, _ in cluster if kind is kinds.NODE]))
    arriving = _arriving(pods, capacity, settings.load or LOAD, chance)
    shown: dict[str, str] = {}
    if settings.node_order == "seeded":
        cluster, shown = _renamed(cluster, order.tolist())
    found = structs.replace(trace, jobs=[_staying(job, at) for at, job in enumerate(arriving)], stays=True, shown=shown)
    return found, cluster


def _capacity(cluster: Sequence[Given]) -> int:
    """Add up the GPUs of nodes, in thousandths."""
    nodes = [found for _, found in cluster if isinstance(found, core.Node)]
    return sum(gpus.offered(node) for node in nodes)


def _arriving(pods: Sequence[TraceJob], capacity: int, load: float, chance: np.random.Generator) -> list[TraceJob]:
    """Draw who arrives: everybody once, then whoever is drawn until the next one would exceed the load; too many lose some."""
    known = {job.name: gpus.cards(job) for job in pods}
    sizes = {name: number * milli for name, (number, milli) in known.items()}
    found = [pods[at] for at in chance.permutation(len(pods)).tolist()]
    total, most = sum(sizes[job.name] for job in found), load * capacity
    if not any(sizes.values()):
        return found
    while total + known[(job := pods[int(chance.integers(len(pods)))]).name][1] <= most:
        found.append(job)
        total += sizes[job.name]
    while total > most:
        total -= sizes[found.pop(int(chance.integers(len(found)))).name]
    return found


def _staying(job: TraceJob, at: int) -> TraceJob:
    """Return a pod that arrives at its place in the order, under a name of its own."""
    members = tuple(structs.replace(each, run_time=None) for each in job.members)
    return structs.replace(
        job, number=at, name=f"{job.name}.{at}", submit=at * APART, run_time=None, members=members, estimate=None
    )


def _renamed(cluster: Sequence[Given], order: list[int]) -> tuple[list[Given], dict[str, str]]:
    """Give nodes names by which they stand in an order, since the first by name is taken among equals; returns what they are called, too."""
    nodes = [found for _, found in cluster if isinstance(found, core.Node)]
    shown: dict[str, str] = {}
    renamed: list[Given] = []
    for at, place in enumerate(order):
        node = nodes[place]
        name = f"{at:06d}.{node.metadata.name}"
        shown[name] = node.metadata.name
        renamed.append((kinds.NODE, structs.replace(node, metadata=structs.replace(node.metadata, name=name))))
    return [each for each in cluster if each[0] is not kinds.NODE] + renamed, shown
