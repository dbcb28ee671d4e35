"""Manifests and clients for the tests of the simulated cluster."""

from __future__ import annotations

from pumice.api import kinds
from pumice.sim.cluster import SimulatedCluster
from pumice.sim.identity import Key

SECOND = 1_000_000
T0 = "2026-01-01T00:00:00Z"


def pod(name="p", namespace="a", *, node=None, annotations=None, phase=None, group="g", **spec):
    metadata = {"name": name, "namespace": namespace, "annotations": dict(annotations or {})}
    if group:
        metadata["annotations"]["scheduling.k8s.io/group-name"] = group
    manifest = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {
            "schedulerName": "volcano",
            "containers": [{"name": "c", "image": "x", "resources": {"requests": {"cpu": "1"}}}],
            **spec,
        },
    }
    if node:
        manifest["spec"]["nodeName"] = node
    if phase:
        manifest["status"] = {"phase": phase}
    return manifest


def node(name="n1", **fields):
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name},
        "status": {"allocatable": {"cpu": "4"}},
        **fields,
    }


def pod_group(name="g", namespace="a", spec=None, **metadata):
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": namespace, **metadata},
        "spec": {"minMember": 1} if spec is None else spec,
    }


def queue(name="q", **fields):
    return {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": name}, **fields}


def priority_class(name, value, **fields):
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": value,
        **fields,
    }


def pod_key(name="p", namespace="a"):
    return Key(kinds.POD, namespace, name)


class Mirror:
    """A cache that only remembers: what exists, every event, every outcome."""

    def __init__(self):
        self.objects = {}
        self.events = []
        self.outcomes = []

    def feed(self, kind, event_type, manifest):
        metadata = manifest["metadata"]
        key = Key(kind, metadata.get("namespace", ""), metadata["name"])
        self.events.append((event_type, str(key)))
        if event_type == "DELETED":
            del self.objects[key]
        else:
            assert (event_type == "ADDED") == (key not in self.objects)
            self.objects[key] = manifest

    def settled(self, outcome):
        self.outcomes.append(outcome)

    def failures(self):
        return [outcome.failure.code for outcome in self.outcomes if outcome.failure]


def cluster(*manifests, **options):
    simulated = SimulatedCluster(**options)
    simulated.apply(list(manifests))
    mirror = Mirror()
    simulated.connect(mirror)
    return simulated, mirror


def stored(simulated, reference):
    from pumice.sim import identity

    return simulated.store.find(identity.parse(reference))
