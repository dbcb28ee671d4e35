"""Controllers of Volcano's kinds through HTTP: on the API server of `pumice up` and on a real one, with its schemas, its watches and its field managers."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json

import pytest

from pumice.api import kinds
from pumice.controllers.volcano import registry
from pumice.controllers.volcano.hyper_nodes.controlling import Discovery
from pumice.kube import errors
from pumice.kube.access import connection
from pumice.kube.calls.client import Client
from pumice.kube.reconciling import Reconciler
from pumice.kube.writes.eventing import EventRecorder
from testbed import waiting

pytestmark = pytest.mark.kube
NUMBERS = itertools.count(1)


class Running:
    """Controllers at work on a server, and a client beside them."""

    def __init__(self, client, namespace):
        self.client = client
        self.namespace = namespace

    async def create(self, kind, name, **fields):
        home = {"namespace": self.namespace} if kind.namespaced else {}
        manifest = {"apiVersion": kind.api_version, "kind": kind.name, "metadata": {"name": name, **home}, **fields}
        return await self.client.create(kind, manifest)

    async def get(self, kind, name):
        try:
            return await self.client.get(kind, self.namespace if kind.namespaced else "", name)
        except errors.ApiError as error:
            if error.status == 404:
                return None
            raise

    async def until(self, kind, name, holds):
        """Wait for an object to be so, None if it is gone."""
        async with asyncio.timeout(waiting.PATIENCE):
            while True:
                found = await self.get(kind, name)
                if holds(found):
                    return found
                await asyncio.sleep(0.02)

    async def command(self, action, queue):
        target = {"apiVersion": kinds.QUEUE.api_version, "kind": "Queue", "name": queue, "uid": "any"}
        name = f"c{next(NUMBERS)}"
        await self.create(kinds.COMMAND, name, action=action, target=target)
        return name


def run(server, story, controllers=None):
    async def main():
        target = connection.load(str(server.kubeconfig), "", environ={})
        async with Client(target) as client:
            complaints = []
            recorder = EventRecorder(client, lambda: 0, registry.SOURCE)
            reconciler = Reconciler(
                client, controllers or registry.controllers(), events=recorder, complain=complaints.append
            )
            working = asyncio.create_task(reconciler.run())
            try:
                await story(Running(client, server.new_namespace()))
            finally:
                working.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await working
            assert not complaints

    asyncio.run(main())


def state(queue):
    return queue is not None and queue.get("status", {}).get("state")


def test_queues_are_closed_and_opened_by_commands(server):
    parent, child = f"p{next(NUMBERS)}-{id(server) % 10_000}", f"c{next(NUMBERS)}-{id(server) % 10_000}"

    async def story(world):
        await world.create(kinds.QUEUE, parent, spec={})
        await world.create(kinds.QUEUE, child, spec={"parent": parent})
        found = await world.until(
            kinds.QUEUE, parent, lambda each: state(each) == "Open" and each["spec"].get("parent")
        )
        assert found["spec"]["parent"] == "root"
        owners = {each["manager"]: each for each in found["metadata"]["managedFields"]}
        assert owners["queue-controller"]["operation"] == "Apply"
        assert owners["queue-controller"]["fieldsV1"] == {"f:status": {"f:state": {}}}
        await world.create(kinds.POD_GROUP, "g", spec={"minMember": 1, "queue": child})
        asked = await world.command("CloseQueue", parent)
        await world.until(kinds.COMMAND, asked, lambda each: each is None)
        await world.until(kinds.QUEUE, parent, lambda each: state(each) == "Closed")
        await world.until(kinds.QUEUE, child, lambda each: state(each) == "Closing")
        await world.client.delete(kinds.POD_GROUP, world.namespace, "g")
        await world.until(kinds.QUEUE, child, lambda each: state(each) == "Closed")
        await world.command("OpenQueue", parent)
        marked = await world.until(kinds.QUEUE, child, lambda each: state(each) == "Open")
        marked = await world.until(
            kinds.QUEUE, child, lambda each: each["metadata"]["annotations"]["volcano.sh/closed-by-parent"] == "false"
        )
        assert "pumice.dev/queue-order" not in marked["metadata"]["annotations"]

    run(server, story)


TASK = {"name": "t", "replicas": 1, "template": {"spec": {"containers": [{"name": "c", "image": "x"}]}}}


def test_flows_and_schedules_make_jobs(server):
    async def story(world):
        for name in ("a", "b"):
            await world.create(kinds.JOB_TEMPLATE, name, spec={"minAvailable": 1, "tasks": [TASK]})
        flows = [{"name": "a"}, {"name": "b", "dependsOn": {"targets": ["a"]}}]
        await world.create(kinds.JOB_FLOW, "f", spec={"flows": flows, "jobRetainPolicy": "delete"})
        for name in ("f-a", "f-b"):
            job = await world.until(kinds.JOB, name, lambda each: each is not None)
            assert job["spec"]["tasks"][0]["template"] == TASK["template"]
            body = {"status": {"state": {"phase": "Completed", "lastTransitionTime": "2026-01-01T00:00:00Z"}}}
            await world.client.patch(kinds.JOB, world.namespace, name, body, subresource="status")
        flow = await world.until(kinds.JOB_FLOW, "f", lambda each: each["status"]["state"]["phase"] == "Succeed")
        assert flow["status"]["completedJobs"] == ["f-a", "f-b"]
        await world.until(kinds.JOB, "f-b", lambda each: each is None)
        template = await world.get(kinds.JOB_TEMPLATE, "a")
        assert template["status"] == {"jobDependsOnList": ["f-a"]}

        spec = {"schedule": "@every 1s", "jobTemplate": {"spec": {"minAvailable": 1, "tasks": [TASK]}}}
        await world.create(kinds.CRON_JOB, "c", spec=spec)
        found = await world.until(kinds.CRON_JOB, "c", lambda each: each.get("status", {}).get("active"))
        (active,) = found["status"]["active"]
        job = await world.get(kinds.JOB, active["name"])
        assert job["metadata"]["uid"] == active["uid"]
        await world.client.delete(kinds.CRON_JOB, world.namespace, "c")

    run(server, story)


def test_hyper_nodes_are_made_from_labels(server):
    key = f"rack-{next(NUMBERS)}-{id(server) % 10_000}"

    async def story(world):
        await world.create(kinds.NODE, f"n-{key}", spec={})
        body = {"metadata": {"labels": {key: "r1"}}}
        await world.client.patch(kinds.NODE, "", f"n-{key}", body)
        types = {"t": [{"nodeLabel": key}, {"nodeLabel": "kubernetes.io/hostname"}]}
        source = {"source": "label", "enabled": True, "config": {"networkTopologyTypes": types}}
        text = json.dumps({"networkTopologyDiscovery": [source]})
        place.append((world.namespace, "discovery"))
        controller.place = place[0]
        await world.create(kinds.CONFIG_MAP, "discovery", data={"volcano-controller.conf": text})
        async with asyncio.timeout(waiting.PATIENCE):
            made = []
            while not made or "status" not in made[0]:
                answer = await world.client.request("GET", "/apis/topology.volcano.sh/v1alpha1/hypernodes")
                made = [each for each in json.loads(answer)["items"] if key in each["metadata"]["labels"]]
                await asyncio.sleep(0.02)
        assert made[0]["spec"]["members"] == [{"type": "Node", "selector": {"exactMatch": {"name": f"n-{key}"}}}]
        assert made[0]["status"]["nodeCount"] == 1
        await world.client.delete(kinds.CONFIG_MAP, world.namespace, "discovery")
        await world.client.delete(kinds.HYPER_NODE, "", made[0]["metadata"]["name"])
        await world.client.delete(kinds.NODE, "", f"n-{key}")

    place = []
    controller = Discovery(("none", "none"))
    counts = next(each for each in registry.controllers(["hyperNode-controller"]) if each.kind == kinds.HYPER_NODE)
    run(server, story, [counts, controller])
