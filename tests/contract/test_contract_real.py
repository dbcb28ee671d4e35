"""What only a real API server can show."""

from __future__ import annotations

import asyncio
import contextlib
import time

import pytest
from contract_objects import code, pod, pod_group, uid

from pumice.api import kinds, names
from pumice.cache import effects
from pumice.kube import grouping
from pumice.kube.access import connection
from pumice.kube.calls import client
from pumice.kube.watches import informers
from pumice.kube.watches.watching import WatchSpec
from testbed import waiting

CRD = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/podgroups.scheduling.volcano.sh"
SERVED = f"/apis/{kinds.POD_GROUP.api_version}"


def status_door(server):
    return any(resource["name"] == "podgroups/status" for resource in server.call("GET", SERVED)["resources"])


@contextlib.contextmanager
def with_status_door(server):
    """Let pod groups have a status of their own, as some installations define them."""

    def define(subresources):
        definition = server.call("GET", CRD)
        for version in definition["spec"]["versions"]:
            version["subresources"] = subresources
        server.call("PUT", CRD, definition)
        waiting.until(lambda: status_door(server) == bool(subresources))

    define({"status": {}})
    try:
        yield
    finally:
        define({})


def test_the_status_of_a_group_takes_the_door_that_the_installed_definition_has(kube):
    kube.apply(pod_group(kube))
    effect = effects.Patch(
        kind=kinds.POD_GROUP,
        namespace=kube.namespace,
        name="g",
        uid=uid(kube, kinds.POD_GROUP, "g"),
        body={"status": {"phase": "Running", "running": 2}},
    )
    with with_status_door(kube.server):

        def written():
            (outcome,) = kube.perform(effect)
            assert code(outcome) is None
            return (kube.find(kinds.POD_GROUP, "g").get("status") or {}).get("running") == 2

        waiting.until(written)


def test_without_the_lease_nothing_reaches_the_server(kube):
    kube.apply(pod(kube), pod_group(kube))
    kube.leading = False
    known = {"namespace": kube.namespace, "name": "p", "uid": uid(kube, kinds.POD, "p")}
    before = kube.find(kinds.POD, "p")
    outcomes = kube.perform(
        effects.Bind(**known, node="n1"),
        effects.Evict(**known, reason="x"),
        effects.Patch(kind=kinds.POD, **known, body={"metadata": {"labels": {"x": "1"}}}),
        effects.Read(kind=kinds.POD, namespace=kube.namespace, name="p"),
        effects.Note(kind=kinds.POD, **known, type="Normal", reason="r", message="m"),
    )
    assert [code(outcome) for outcome in outcomes] == ["unavailable"] * 3 + [None]
    assert kube.find(kinds.POD, "p") == before
    assert kube.events(kinds.POD, "p") == []


@pytest.mark.parametrize("message", ["é" * 3000, "x"])
def test_an_event_of_any_length_is_accepted_and_says_what_it_is_about(kube, message):
    kube.apply(pod(kube))
    known = uid(kube, kinds.POD, "p")
    kube.perform(
        effects.Note(
            kind=kinds.POD,
            namespace=kube.namespace,
            name="p",
            uid=known,
            type="Warning",
            reason="FailedScheduling",
            message=message,
        )
    )
    (event,) = kube.server.call("GET", f"/api/v1/namespaces/{kube.namespace}/events")["items"]
    assert event["involvedObject"]["uid"] == known
    assert event["source"]["component"] == event["reportingComponent"] == "volcano"
    assert event["count"] == 1
    assert event["firstTimestamp"] == event["lastTimestamp"]
    printed = kube.server.kubectl("events", "-n", kube.namespace, "--for", "pod/p")
    assert "FailedScheduling" in printed


def test_a_repeated_event_counts_up(kube):
    kube.apply(pod(kube))
    told = effects.Note(
        kind=kinds.POD,
        namespace=kube.namespace,
        name="p",
        uid=uid(kube, kinds.POD, "p"),
        type="Normal",
        reason="r",
        message="m",
    )

    async def tell_twice():
        from pumice.kube.writes import eventing

        async with client.Client(connection.load(kubeconfig=str(kube.server.kubeconfig))) as api:
            recorder = eventing.EventRecorder(api, lambda: time.time_ns() // 1000, "volcano")
            for _ in range(2):
                recorder.put(told)
                await recorder.send(recorder.take())
            return recorder.sent

    assert asyncio.run(tell_twice()) == 2
    (event,) = kube.server.call("GET", f"/api/v1/namespaces/{kube.namespace}/events")["items"]
    assert event["count"] == 2


# -- companions ------------------------------------------------------------------------------------------------


def grouped(kube, done):
    """Run the companion controller over real watches until something is so."""

    async def run():
        async with client.Client(connection.load(kubeconfig=str(kube.server.kubeconfig))) as api:
            controller = grouping.Grouping(api)
            specs = [WatchSpec(kind, keep_raw=True) for kind in grouping.WATCHED]
            watches = informers.Informers(api, specs, controller)
            tasks = [asyncio.create_task(watches.run())]
            try:
                await watches.wait_synced()
                tasks.append(asyncio.create_task(controller.run()))
                await asyncio.to_thread(waiting.until, done)
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)

    asyncio.run(run())


def group_of(kube, name):
    return kube.find(kinds.POD, name)["metadata"].get("annotations", {}).get(names.GROUP_NAME)


def ungrouped(kube, name, **metadata):
    manifest = pod(kube, name, **metadata)
    del manifest["metadata"]["annotations"][names.GROUP_NAME]
    manifest["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "500m"}}
    return manifest


def test_ungrouped_pods_are_grouped_by_their_owner_or_alone(kube):
    labels = {"app": "web"}
    template = {
        "metadata": {"labels": labels},
        "spec": {"containers": [{"name": "c", "image": "x"}], "schedulerName": "volcano"},
    }
    replica_set = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": "r", "namespace": kube.namespace, "annotations": {names.GROUP_MIN_MEMBER: "2"}},
        "spec": {"replicas": 2, "selector": {"matchLabels": labels}, "template": template},
    }
    kube.apply(replica_set, ungrouped(kube, "alone"), pod(kube, "grouped"))
    owner = uid(kube, kinds.REPLICA_SET, "r")
    reference = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": owner, "controller": True}
    owned = [ungrouped(kube, name, labels=labels, ownerReferences=[reference]) for name in ("w0", "w1")]
    kube.apply(*owned)
    grouped(kube, lambda: all(group_of(kube, name) for name in ("alone", "w0", "w1")))
    assert group_of(kube, "w0") == group_of(kube, "w1") == f"podgroup-{owner}"
    assert group_of(kube, "grouped") == "g"
    alone = kube.find(kinds.POD_GROUP, group_of(kube, "alone"))
    assert alone["spec"]["minMember"] == 1
    assert alone["spec"]["minResources"]["cpu"] == "500m"
    assert alone["metadata"]["ownerReferences"][0]["name"] == "alone"
    shared = kube.find(kinds.POD_GROUP, f"podgroup-{owner}")
    assert shared["spec"]["minMember"] == 2


def test_a_group_follows_its_owner_to_nothing(kube):
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "x"}]}}
    kube.apply(
        {
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "metadata": {"name": "r", "namespace": kube.namespace},
            "spec": {"replicas": 0, "selector": {"matchLabels": labels}, "template": template},
        }
    )
    group = f"podgroup-{uid(kube, kinds.REPLICA_SET, 'r')}"
    kube.apply(pod_group(kube, group))
    grouped(kube, lambda: kube.find(kinds.POD_GROUP, group) is None)
