"""Applying fields, in every world that performs requests of controllers."""

from __future__ import annotations

import asyncio

import pytest

from pumice.api import kinds
from pumice.apiserver import cluster
from pumice.controllers.queueing import requests
from pumice.kube.access import connection
from pumice.kube.calls.client import Client
from pumice.kube.reconciling import ApiWorld
from pumice.local_cluster.controlling import ServerWorld
from pumice.sim.clock import VirtualClock
from pumice.sim.identity import Key
from pumice.sim.reconciling import StoreWorld
from pumice.sim.store import ObjectStore

NAME = "leases-of-applying"
BODY = {"spec": {"holderIdentity": "us"}}


def lease(namespace):
    metadata = {"name": NAME, "namespace": namespace}
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": metadata,
        "spec": {"holderIdentity": "x"},
    }


def applied(namespace, uid, **more):
    stated = {"kind": kinds.LEASE, "namespace": namespace, "name": NAME, "uid": uid, "body": BODY, **more}
    return requests.Apply(manager="queue-controller", **stated)


def check(namespace, perform, managed):
    """Hold a world against the rules: an apply overrules others, minds the uid, and makes nothing."""
    assert perform(applied(namespace, "some-uid")).code in {"notfound", "conflict"}
    made = perform(requests.effects.Create(kind=kinds.LEASE, manifest=lease(namespace))).object
    answer = perform(applied(namespace, made["metadata"]["uid"]))
    assert answer.code == ""
    assert answer.object["spec"]["holderIdentity"] == "us"
    if managed:
        owners = {each["manager"]: each["operation"] for each in answer.object["metadata"]["managedFields"]}
        assert owners["queue-controller"] == "Apply"
    assert perform(applied(namespace, "another-uid")).code == "conflict"


def test_on_the_store():
    check("a", StoreWorld(ObjectStore(VirtualClock().now)).perform, managed=False)


def test_beside_the_api_server():
    store = ObjectStore(VirtualClock().now)
    serving = cluster.Cluster(store, lambda: 0)
    store.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a"}, "status": {"phase": "Active"}})
    check("a", ServerWorld(serving).perform, managed=True)
    assert store.find(Key(kinds.LEASE, "a", NAME)) is not None


@pytest.mark.kube
def test_on_a_real_api_server(api_server):
    namespace = api_server.new_namespace()

    def perform(request):
        async def main():
            target = connection.load(str(api_server.kubeconfig), "", environ={})
            async with Client(target) as client:
                return await ApiWorld(client).perform(request)

        return asyncio.run(main())

    check(namespace, perform, managed=True)
