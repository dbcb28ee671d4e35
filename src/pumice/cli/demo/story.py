"""What happens in the demonstration: the cluster at the start, and the jobs that arrive one after the other."""

from __future__ import annotations

from typing import Any

import msgspec

from pumice.api import kinds, names

Manifest = dict[str, Any]

NODES = 4
NODE_CPU = 8
NODE_MEMORY = "32Gi"
QUEUES = ("production", "research")

# Gangs only: nobody is kept from taking the whole cluster, so that what waits waits for room.
CONFIGURATION = """\
actions: "enqueue, allocate, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins: [{name: predicates}, {name: nodeorder}]
"""


class Arrival(msgspec.Struct, frozen=True):
    """Objects that somebody submits, and how many seconds after the start."""

    second: int
    manifests: tuple[Manifest, ...]


def cluster() -> list[Manifest]:
    """Give four equal nodes and two queues."""
    room = {"cpu": str(NODE_CPU), "memory": NODE_MEMORY, "pods": "110"}
    nodes = [
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": f"node-{n}"}, "status": {"allocatable": room}}
        for n in range(1, NODES + 1)
    ]
    return [*queues(), *nodes]


def queues() -> list[Manifest]:
    """Give the two queues."""
    return [
        {"apiVersion": kinds.QUEUE.api_version, "kind": "Queue", "metadata": {"name": name}, "spec": {"weight": 1}}
        for name in QUEUES
    ]


def arrivals() -> list[Arrival]:
    """Give the jobs in the order in which they arrive.

    The first two fill most of the cluster. `bert` needs six nodes' halves at once and has to wait for them as a whole, while the elastic `crawler`
    starts with what there is and grows. `probe` asks for nothing and fits anywhere. `giant` is larger than the cluster.
    """
    return [
        Arrival(2, _gang("research", "resnet", pods=4, cpu=4, run_time="75s")),
        Arrival(14, _gang("production", "nightly", pods=6, cpu=2, run_time="70s")),
        Arrival(28, _gang("research", "bert", pods=6, cpu=4, run_time="50s")),
        Arrival(40, _gang("production", "crawler", pods=10, cpu=1, run_time="25s", minimum=2)),
        Arrival(52, (_pod("tools", "probe", cpu=0, run_time="60s", group=""),)),
        Arrival(64, _gang("research", "giant", pods=NODES * NODE_CPU // 4 + 1, cpu=4, run_time="60s")),
    ]


def _gang(
    queue: str, name: str, *, pods: int, cpu: int, run_time: str, minimum: int | None = None
) -> tuple[Manifest, ...]:
    """Give a PodGroup and its pods, in a namespace called like the queue; without a minimum, all pods are needed."""
    group = {
        "apiVersion": kinds.POD_GROUP.api_version,
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": queue},
        "spec": {"minMember": pods if minimum is None else minimum, "queue": queue},
    }
    members = [_pod(queue, f"{name}-{i}", cpu=cpu, run_time=run_time, group=name) for i in range(pods)]
    return (group, *members)


def _pod(namespace: str, name: str, *, cpu: int, run_time: str, group: str) -> Manifest:
    annotations = {names.RUN_TIME: run_time} | ({names.GROUP_NAME: group} if group else {})
    container: Manifest = {"name": "main", "image": "example/work:1"}
    if cpu:
        container["resources"] = {"requests": {"cpu": str(cpu), "memory": f"{cpu}Gi"}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "annotations": annotations},
        "spec": {"schedulerName": "volcano", "containers": [container]},
    }
