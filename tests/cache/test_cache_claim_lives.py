"""Random lives of pods with claims, with faults at every write: no device is given twice, nothing is left behind, and whoever can run does."""

from __future__ import annotations

import random

import pytest

from pumice.api import kinds
from pumice.cache.cache import Cache
from pumice.framework import configuration, registry
from pumice.scheduler import Scheduler
from pumice.sim.cluster import SimulatedCluster
from pumice.sim.faults import Fault

TEXT = """
actions: "enqueue, allocate, backfill"
tiers:
- plugins: [{name: gang}]
- plugins: [{name: predicates}, {name: nodeorder}]
"""
NODES, DEVICES, CYCLES = 3, 2, 30
ERRORS = ("conflict", "refused", "unavailable", "lost-reply")


def world(name):
    return [
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": {"allocatable": {"cpu": "8"}}},
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceSlice",
            "metadata": {"name": f"{name}-gpus"},
            "spec": {
                "driver": "d.example.com",
                "nodeName": name,
                "pool": {"name": name, "generation": 1, "resourceSliceCount": 1},
                "devices": [{"name": f"g{number}"} for number in range(DEVICES)],
            },
        },
    ]


def gang(name, size, *, shared):
    """A gang whose pods have a claim each, or one together."""
    spec = {
        "devices": {
            "requests": [
                {"name": "r", "exactly": {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1}}
            ]
        }
    }
    meta = {"namespace": "a"}
    source = {"resourceClaimName": name} if shared else {"resourceClaimTemplateName": "t"}
    made = [
        {
            "apiVersion": "scheduling.volcano.sh/v1beta1",
            "kind": "PodGroup",
            "metadata": {"name": name, **meta},
            "spec": {"minMember": size},
        }
    ]
    if shared:
        claim = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "spec": spec}
        made.append({**claim, "metadata": {"name": name, **meta}})
    for number in range(size):
        notes = {"scheduling.k8s.io/group-name": name}
        container = {"name": "c", "image": "x", "resources": {"requests": {"cpu": "1"}}}
        made.append(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": f"{name}-{number}", "annotations": notes, **meta},
                "spec": {
                    "schedulerName": "volcano",
                    "containers": [container],
                    "resourceClaims": [{"name": "gpu", **source}],
                },
            }
        )
    return made


class Life:
    def __init__(self, seed):
        self.rng = random.Random(seed)  # noqa: S311  a life of its own for each seed
        self.cluster = SimulatedCluster()
        known = registry.catalog()
        self.cache = Cache(self.cluster)
        self.scheduler = Scheduler(self.cache, configuration.load(TEXT, known), self.cluster.clock.now)
        self.cluster.connect(self.cache)
        template = {
            "devices": {
                "requests": [
                    {"name": "r", "exactly": {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1}}
                ]
            }
        }
        self.cluster.apply(
            [
                *(each for number in range(NODES) for each in world(f"n{number}")),
                {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "gpu"}, "spec": {}},
                {
                    "apiVersion": "resource.k8s.io/v1",
                    "kind": "ResourceClaimTemplate",
                    "metadata": {"name": "t", "namespace": "a"},
                    "spec": {"spec": template},
                },
            ]
        )
        self.made = 0

    def live(self):
        for _ in range(CYCLES):
            if self.rng.random() < 0.4:
                self.made += 1
                shared = self.rng.random() < 0.4
                self.cluster.apply(gang(f"j{self.made}", self.rng.randint(1, 3), shared=shared))
            if self.rng.random() < 0.7:
                verb = self.rng.choice(("prepare", "prepare", "take back", "bind"))
                self.cluster.fail(Fault(verb=verb, error=self.rng.choice(ERRORS), times=self.rng.randint(1, 3)))
            if self.rng.random() < 0.3 and (pods := self.pods()):
                self.end(self.rng.choice(pods))
            self.turn()
        self.cluster.faults.__init__()
        for _ in range(40):
            self.turn()

    def end(self, pod):
        """Delete a pod's whole gang, and its claim if it was made by hand."""
        name = pod["metadata"]["annotations"]["scheduling.k8s.io/group-name"]
        gone = [each for each in self.pods() if each["metadata"]["name"].rpartition("-")[0] == name]
        self.cluster.delete([f"pod/a/{each['metadata']['name']}" for each in gone])
        self.cluster.delete([f"podgroup/a/{name}"])
        if any(each["metadata"]["name"] == name for each in self.claims()):
            self.cluster.delete([f"resourceclaim/a/{name}"])

    def turn(self):
        self.scheduler.cycle()
        self.cluster.step()
        self.check()

    def pods(self):
        return list(self.cluster.store.scan(kinds.POD))

    def claims(self):
        return list(self.cluster.store.scan(kinds.RESOURCE_CLAIM))

    def check(self):
        """Hold at every moment: one device, one claim; a pod on a node has its claim, there, and it is reserved for it."""
        taken = [device for claim in self.claims() for device in given(claim)]
        assert len(taken) == len(set(taken)), taken
        for pod in self.pods():
            node = pod["spec"].get("nodeName")
            if not node:
                continue
            claim = self.claim_of(pod)
            assert [device[0] for device in given(claim)] == [node]
            assert pod["metadata"]["uid"] in consumers(claim)

    def claim_of(self, pod):
        (entry,) = pod["spec"]["resourceClaims"]
        told = {each["name"]: each["resourceClaimName"] for each in pod["status"].get("resourceClaimStatuses", ())}
        name = entry.get("resourceClaimName") or told["gpu"]
        return next(each for each in self.claims() if each["metadata"]["name"] == name)


def given(claim):
    results = (claim.get("status", {}).get("allocation") or {"devices": {"results": []}})["devices"]["results"]
    return [(each["pool"], each["device"]) for each in results]


def consumers(claim):
    return [each["uid"] for each in claim.get("status", {}).get("reservedFor") or ()]


@pytest.mark.parametrize("seed", range(12))
def test_no_device_is_given_twice_and_nothing_is_left_behind(seed):
    life = Life(seed)
    life.live()
    cache = life.cache
    bound = [pod for pod in life.pods() if pod["spec"].get("nodeName")]
    waiting = [pod for pod in life.pods() if not pod["spec"].get("nodeName")]
    assert life.made > 5
    # Whoever is not on a node has nothing reserved, and nothing is on its way.
    uids = {pod["metadata"]["uid"] for pod in bound}
    assert {uid for claim in life.claims() for uid in consumers(claim)} == uids
    preparing = cache.assumptions.preparing
    assert (preparing._parties, preparing._returning, preparing._party_of) == ({}, {}, {})  # noqa: SLF001  memory that is given back shows nowhere else
    assert preparing._written == {}  # noqa: SLF001  as above
    assert cache.cluster.with_bind.preparations == {}
    assert cache.cluster.devices.in_flight == {}
    # What is given shows in the model, and the other way round.
    shown = {device for claim in life.claims() for device in given(claim)}
    assert {(pool, device) for _, pool, device in cache.cluster.devices.uses} == shown
    # Those who wait do so for want of devices on one node, or for fellows.
    free = NODES * DEVICES - len(shown)
    alone = [pod for pod in waiting if sum(_group(each) == _group(pod) for each in waiting) == 1]
    assert not (alone and free)


def _group(pod):
    return pod["metadata"]["annotations"]["scheduling.k8s.io/group-name"]
