"""Nodes, slices, classes and claims, and what the search says of them, for tests."""

from pumice.api import core, decoding, kinds
from pumice.model import resources
from pumice.model.cluster import Cluster
from pumice.model.devices import wanted
from pumice.plugins.predicates.devices import results
from pumice.plugins.predicates.devices.answers import Answers
from pumice.plugins.predicates.devices.search import Refusal, Solution

STEPS = 100_000


def decoded(kind, name, namespace="", **body):
    metadata = {"name": name, "namespace": namespace, "uid": f"uid-of-{name}"}
    found = decoding.decode({"apiVersion": kind.api_version, "kind": kind.name, "metadata": metadata} | body)
    assert not isinstance(found, decoding.Malformed), found.message
    return found


def exactly(name="r", device_class="any", **more):
    return {"name": name, "exactly": {"deviceClassName": device_class, **more}}


def first(name, *options):
    return {
        "name": name,
        "firstAvailable": [
            {"name": f"s{index}", "deviceClassName": "any", **each} for index, each in enumerate(options)
        ],
    }


def cel(expression):
    return [{"cel": {"expression": expression}}]


class Devices:
    """A cluster that has devices."""

    def __init__(self, nodes=("n1",), labels=None):
        self.cluster = Cluster()
        for name in nodes:
            node = core.Node(metadata=core.ObjectMeta(name=name, labels=(labels or {}).get(name, {})))
            self.cluster.set_node(node, resources.parse({"cpu": 8}, "x"), (8000, 0))
        self.cluster.prepare()
        self.answers = Answers(self.cluster, STEPS)
        self.device_class("any")

    def device_class(self, name, **spec):
        self.cluster.devices.changed("DeviceClass", name, decoded(kinds.DEVICE_CLASS, name, spec=spec))

    def slice(self, name, devices=(), *, driver="d", pool="p", generation=1, count=1, counters=(), **where):
        spec = {
            "driver": driver,
            "pool": {"name": pool, "generation": generation, "resourceSliceCount": count},
            "devices": [{"name": each} if isinstance(each, str) else each for each in devices],
            "sharedCounters": list(counters),
            **(where or {"nodeName": "n1"}),
        }
        found = decoded(kinds.RESOURCE_SLICE, name, spec=spec)
        self.cluster.devices.changed("ResourceSlice", name, found)

    def taint(self, name, **spec):
        self.cluster.devices.changed("DeviceTaintRule", name, decoded(kinds.DEVICE_TAINT_RULE, name, spec=spec))

    def claim(self, *requests, constraints=(), config=()):
        body = {"devices": {"requests": list(requests), "constraints": list(constraints), "config": list(config)}}
        return wanted.read(decoded(kinds.RESOURCE_CLAIM, "c", "a", spec=body).spec)

    def hold(self, claim, *found, reserved=(), selector=None):
        """Let a claim have devices: names, or results."""
        held = [
            {"request": "r", "driver": "d", "pool": "p", "device": each} if isinstance(each, str) else each
            for each in found
        ]
        allocation = {"devices": {"results": held}} | ({"nodeSelector": selector} if selector else {})
        status = {"allocation": allocation, "reservedFor": [{"uid": uid} for uid in reserved]} if held else {}
        self.cluster.devices.changed(
            "ResourceClaim", f"a/{claim}", decoded(kinds.RESOURCE_CLAIM, claim, "a", status=status)
        )

    def answer(self, *claims, node="n1", released=False):
        self.cluster.prepare()
        self.answers.update()
        row = self.cluster.nodes.by_name[node].row
        return self.answers.answer(row, claims, released=released)

    def names(self, *claims, node="n1", released=False):
        """Return the names of the devices that claims get, one after the other; None if they get none."""
        found = self.answer(*claims, node=node, released=released)
        if isinstance(found, Refusal):
            assert not found.error, found.error
            return None
        offer = self.answers.offer(self.cluster.nodes.by_name[node].row)
        return [offer.devices[pick.place].device.id[2] for picks in found.picks for pick in picks]

    def error(self, *claims, node="n1"):
        found = self.answer(*claims, node=node)
        assert isinstance(found, Refusal)
        return found.error

    def allocation(self, claim, node="n1"):
        found = self.answer(claim, node=node)
        assert isinstance(found, Solution), found
        offer = self.answers.offer(self.cluster.nodes.by_name[node].row)
        classes = self.cluster.devices.classes
        return results.allocation("u", claim, found.picks[0], offer=offer, node=node, classes=classes)
