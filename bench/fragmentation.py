"""Figures of placement by fragments: what it costs to decide pods one by one, each before the next, until the GPUs are full, and how full they get."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from bench.cases import Figure
from pumice.framework import registry
from pumice.simulate import gpus, loading, running
from pumice.simulate.engine import Simulation
from pumice.simulate.settings import PolicyFile, Settings

if TYPE_CHECKING:
    from collections.abc import Callable

POLICY: Final = 'actions: "allocate"\ntiers:\n- plugins: [{name: gang}, {name: predicates}, {name: fragmentation}]\n'
NODES: Final = 1200
PODS: Final = 1500
# Cpus, cards and models of nodes; cpus, cards, thousandths of each and models of pods, with how often they come in a hundred.
OFFERS: Final = ((64, 2, "P"), (96, 8, "V"), (128, 8, "A"), (64, 1, "T"), (96, 0, ""))
KINDS: Final = (
    (8, 1, 1000, "", 30),
    (4, 1, 500, "", 20),
    (6, 1, 250, "T|P", 10),
    (32, 4, 1000, "V|A", 4),
    (64, 8, 1000, "A", 3),
    (16, 2, 1000, "", 5),
    (4, 0, 0, "", 28),
)
LIMIT: Final = 5.5
"""Milliseconds for each pod: sixty seconds for the eleven thousand that the published trace has."""


def staying(typical: str) -> Figure:
    """Let pods arrive on a cluster of the size of the published one, and measure until its load is 1.3."""
    chance = np.random.default_rng(1)
    nodes = [OFFERS[at % len(OFFERS)] for at in range(NODES)]
    drawn = chance.choice(len(KINDS), size=PODS, p=np.array([kind[-1] for kind in KINDS]) / 100).tolist()
    with tempfile.TemporaryDirectory() as folder:
        cluster, trace = Path(folder, "nodes.csv"), Path(folder, "pods.csv")
        listed = [f"n{at:04},{cpu}000,{cpu * 4096},{cards},{model}" for at, (cpu, cards, model) in enumerate(nodes)]
        cluster.write_text("\n".join(["sn,cpu_milli,memory_mib,gpu,model", *listed]), encoding="utf-8")
        asked = [
            f"p{at:04},{cpu}000,{cpu * 1024},{cards},{milli},{models}"
            for at, (cpu, cards, milli, models, _) in enumerate(KINDS[each] for each in drawn)
        ]
        columns = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec"
        trace.write_text("\n".join([columns, *asked]), encoding="utf-8")
        settings = Settings(
            trace=str(trace),
            cluster=str(cluster),
            policies=(PolicyFile(name="fragmentation", text=POLICY),),
            stay=True,
            load=1.3,
            typical="trace" if typical == "trace" else "history",
        )
        loaded = loading.load(settings)
    known = registry.installed()
    policy = running.configured(settings.policies[0], known)
    result = Simulation(loaded.trace, loaded.cluster, policy, known=known).run()
    capacity = 1000 * sum(cards for _, cards, _ in nodes)
    allocated = gpus.allocation_at_load(loaded.trace, result.jobs, capacity) or 0.0
    each = 1000 * result.seconds / len(loaded.trace.jobs)
    name = f"pods that stay on {NODES:,} nodes, decided one by one, kinds of the {typical}"
    note = f"{len(loaded.trace.jobs):,} pods, {100 * allocated:.1f} % of the GPUs allocated at load 1.3; processor time"
    return Figure(name, each, "ms/pod", f"<= {LIMIT:g}", each <= LIMIT, note=note)


def told() -> Figure:
    """Measure with typical kinds of the whole trace."""
    return staying("trace")


def learnt() -> Figure:
    """Measure with kinds that are learnt every sixty pods."""
    return staying("history")


def everything() -> list[Callable[[], Figure]]:
    """Return all measurements."""
    return [told, learnt]
