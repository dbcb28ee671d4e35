"""fragmentation in whole worlds: what it decides is what the rules say one pod at a time, and what is tried is undone exactly."""

import os
import random

import fragmentation_reference as reference
from hypothesis import given, settings
from hypothesis import strategies as st

from builders import Desk, group, node, pod
from pumice.cache.effects import Bind
from pumice.plugins.fragmentation.plugin import Fragmentation

MILLI, COUNT, INDEX = "pumice.dev/gpu-milli", "pumice.dev/gpu-count", "pumice.dev/gpu-index"
MODEL = "nvidia.com/gpu.product"
FUZZ = bool(os.environ.get("PUMICE_FUZZ"))
TEXT = """
actions: "enqueue, allocate, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}]
- plugins: [{name: predicates}, {name: fragmentation}]
"""


class World:
    """Nodes as plain numbers, beside the manifests that say the same."""

    def __init__(self, rng):
        self.rng = rng
        self.nodes = {
            f"n{at}": [rng.choice([4, 8, 16]) * 1000, [1000] * rng.randint(0, 4), rng.choice([None, "A", "B"])]
            for at in range(rng.randint(2, 6))
        }
        self.kinds = [
            (
                rng.choice([1, 2, 4]) * 1000,
                *rng.choice([(0, 0), (200, 1), (500, 1), (1000, 1), (1000, 2)]),
                rng.choice([(), ("A",), ("A", "B")]),
            )
            for _ in range(4)
        ]

    def node_manifests(self):
        for name, (cpu, cards, model) in self.nodes.items():
            made = node(name, cpu=f"{cpu}m", memory="64Gi", labels={MODEL: model} if model else None)
            if cards:
                made["status"]["allocatable"][MILLI] = str(1000 * len(cards))
            yield made

    def pod(self, name, kind, group_name="", **more):
        cpu, milli, cards, models = kind
        limits = {MILLI: str(milli), COUNT: str(cards)} if milli else {}
        spec = {}
        if models:
            expression = {"key": MODEL, "operator": "In", "values": list(models)}
            terms = [{"matchExpressions": [expression]}]
            spec["affinity"] = {
                "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
            }
        return pod(name, group_name or name, cpu=f"{cpu}m", requests=limits, **spec, **more)

    def choose(self, kind, counts):
        """Put a pod where the rules say: the best score, the first name, the best card; None if it fits nowhere."""
        cpu, milli, cards, models = kind
        learnt = [(reference.kind(c, g, k, *m), count) for (c, g, k, m), count in counts.items()]
        seen = any(g for _, g, _, _ in counts)
        found = None
        for name in sorted(self.nodes):
            left, has, model = self.nodes[name]
            if left < cpu or (models and model not in models):
                continue
            best = reference.best(learnt, left, has, model, (cpu, milli, cards)) if seen else even(has, milli, cards)
            if best is not None and (found is None or best[0] > found[0]):
                found = (*best, name)
        if found is None:
            return None
        _, way, name = found
        self.nodes[name][0] -= cpu
        for at in way:
            self.nodes[name][1][at] -= milli
        return name, ",".join(map(str, way))


def even(cards, milli, number):
    ways = reference.placements(cards, number, milli)
    return (50, ways[0][0]) if ways else None


@settings(max_examples=400 if FUZZ else 40, deadline=None)
@given(seed=st.integers(0, 1 << 32))
def test_every_pod_goes_where_the_rules_say(seed):
    rng = random.Random(seed)  # noqa: S311  drawn, not secret
    world = World(rng)
    desk = Desk(TEXT).feed(*world.node_manifests())
    history = [rng.choice(world.kinds) for _ in range(12)]
    for at, kind in enumerate(history):
        desk.feed(group(f"past-{at}"), world.pod(f"past-{at}", kind, phase="Succeeded"))
    arriving = [rng.choice(world.kinds) for _ in range(25)]
    first = {}
    counts = {}
    for at, kind in enumerate(arriving):
        name = f"p{at:02}"
        desk.feed(group(name), world.pod(name, kind, created=at))
        if at == 0 or (first and not any(g for _, g, _, _ in counts)):
            counts = typical_of([*history, *arriving[: at + 1]])
            first = counts
        desk.cycle()
        bind = next((each for each in desk.world.effects if isinstance(each, Bind)), None)
        desk.world.effects.clear()
        expected = world.choose(kind, counts)
        got = None if bind is None else (bind.node, bind.annotations.get(INDEX, ""))
        assert got == expected, (at, kind)
        if bind is None:
            desk.delete(group(name), world.pod(name, kind, created=at))
        else:
            assert bind.name == name
            desk.settle(bind).modify(world.pod(name, kind, created=at, node=bind.node, annotations=bind.annotations))


def typical_of(kinds):
    """Count kinds, the most frequent first, until 95 percent are covered."""
    numbers = {}
    for kind in kinds:
        numbers[kind] = numbers.get(kind, 0) + 1
    found = {}
    for kind, count in sorted(
        numbers.items(),
        key=lambda each: (each[1], (*each[0][:3], reference.kind(*each[0][:3], *each[0][3])[3])),
        reverse=True,
    ):
        if 100 * sum(found.values()) >= 95 * len(kinds):
            break
        found[kind] = count
    return found


def holdings(desk):
    return next(
        each for tier in desk.scheduler.engine.plugins for each in tier if isinstance(each, Fragmentation)
    ).holdings


@settings(max_examples=100 if FUZZ else 15, deadline=None)
@given(seed=st.integers(0, 1 << 32))
def test_gangs_that_do_not_fit_leave_no_trace_on_any_card(seed):
    rng = random.Random(seed)  # noqa: S311  drawn, not secret
    world = World(rng)
    desk = Desk(TEXT).feed(*world.node_manifests())
    desk.cycle()
    before = {record.name: holdings(desk).known(record.row) for record in desk.cluster.nodes.records}
    size = rng.randint(2, 60)
    desk.feed(group("gang", size))
    for at in range(size):
        desk.feed(world.pod(f"gang-{at}", rng.choice(world.kinds), "gang"))
    desk.cycle()
    binds = [each for each in desk.world.effects if isinstance(each, Bind)]
    assert len(binds) in (0, size)
    if not binds:
        assert {record.name: holdings(desk).known(record.row) for record in desk.cluster.nodes.records} == before
        assert not desk.cluster.with_bind.stamps
