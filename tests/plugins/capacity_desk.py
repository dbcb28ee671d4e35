"""Clusters for the tests of capacity: queues with amounts, and jobs that hold something."""

from builders import Desk, group, node, pod, queue
from pumice.framework import subject
from pumice.plugins.capacity import Capacity

FLAT = """
actions: "enqueue, allocate, backfill"
tiers:
- plugins: [{name: gang}]
- plugins: [{name: capacity}, {name: predicates}, {name: nodeorder}]
"""
TREE = FLAT.replace("{name: capacity}", "{name: capacity, enableHierarchy: true}")
LEVEL = FLAT.replace(
    "{name: capacity}", "{name: capacity, enableHierarchy: true, arguments: {ancestorReclaimLevel: %d}}"
)


def amounts(text):
    """Read `2c/4Gi`, either part optional."""
    parts = [part for part in text.split("/") if part]
    return {"cpu" if part.endswith("c") else "memory": part.removesuffix("c") for part in parts}


def limited(name, *, deserved="", capability="", guarantee="", **spec):
    """A queue with amounts."""
    written = {
        "deserved": amounts(deserved),
        "capability": amounts(capability),
        "guarantee": {"resource": amounts(guarantee)} if guarantee else {},
    }
    return queue(name, **{key: value for key, value in written.items() if value}, **spec)


def job(name, queue, *held, wanted=(), minimum=1, phase="", **spec):
    """A job with running pods of the given amounts, and with waiting ones."""
    pods = [pod(f"{name}-{i}", name, requests=amounts(text), node="m") for i, text in enumerate(held)]
    pods += [pod(f"{name}-w{i}", name, requests=amounts(text)) for i, text in enumerate(wanted)]
    return [group(name, minimum, queue=queue, phase=phase or ("Running" if held else "Inqueue"), **spec), *pods]


def desk(*manifests, text=FLAT, cpu="20", memory="40Gi", queues=("root", "default")):
    return Desk(text, queues=queues).feed(node("m", cpu, memory, "1000"), *manifests)


def opened(made):
    session = made.session()
    plugin = next(p for tier in made.scheduler.engine.plugins for p in tier if isinstance(p, Capacity))
    return session, plugin


def asked(made, name, count=1):
    """A demand of equal tasks of which one exists."""
    return subject.equal_tasks([made.task(name)] * count)


def order(made, *names):
    session, _ = opened(made)
    return [q.name for q in session.queue_order.sort(made.cluster.queues[name] for name in names)]


def reclaimed(made, claimant, *candidates):
    session, _ = opened(made)
    mine = next(registered for registered in session.reclaimable if registered.plugin == "capacity")
    return [t.name for t in mine.function(made.task(claimant), [made.task(name) for name in candidates])]
