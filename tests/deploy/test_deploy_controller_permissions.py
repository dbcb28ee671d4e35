"""Least privilege: what the controllers ask a real API server for, under their own account, is what their roles grant.

All of Volcano's kinds live a short life, with every job plugin that makes objects; the API server's audit log tells what was asked for. Reads of single
objects follow lost answers, which this life has none of, and are held against the rule that whatever is written may be read.
"""

from __future__ import annotations

import asyncio
import json
import time

import pytest
from audited import CONTROLLERS, RELEASE, granted

from pumice.api import kinds
from pumice.kube import controller_permissions
from pumice.kube.access import connection
from pumice.kube.calls.client import Client
from pumice.kube.watches import informers
from pumice.manifests import text
from pumice.server import surroundings
from pumice.server.controlling import part, reporting
from pumice.server.flags import controller_settings
from pumice.server.health import api_silence, overdue
from pumice.server.logs import logs
from pumice.server.threads import clocks
from testbed import waiting

pytestmark = [pytest.mark.kube, pytest.mark.apart]

VOLCANO = "batch.volcano.sh/v1alpha1"


def job(name, namespace, *, plugins=None, replicas=1, **spec):
    container = {"name": "head", "image": "i", "resources": {"requests": {"cpu": "1"}}}
    template = {"spec": {"restartPolicy": "Never", "terminationGracePeriodSeconds": 0, "containers": [container]}}
    task = {"name": "head", "replicas": replicas, "template": template}
    whole = {
        "schedulerName": "volcano",
        "queue": "default",
        "minAvailable": 1,
        "tasks": [task],
        "plugins": plugins or {},
    }
    return {
        "apiVersion": VOLCANO,
        "kind": "Job",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {**whole, **spec},
    }


def named(api_version, kind, name, namespace="", **fields):
    home = {"namespace": namespace} if namespace else {}
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name, **home}, **fields}


class Life:
    """What users, the scheduler and kubelets do, by hand."""

    def __init__(self, server, namespace):
        self.server = server
        self.namespace = namespace

    def make(self, *manifests):
        self.server.kubectl("apply", "-f", "-", input=text.stream(manifests))

    def patch(self, resource, name, body, *flags):
        self.server.kubectl(
            "patch", resource, name, "-n", self.namespace, "--type=merge", "-p", json.dumps(body), *flags
        )

    def get(self, path):
        return self.server.call("GET", path)

    async def until(self, question):
        return await asyncio.to_thread(waiting.until, question, every=0.1)

    def items(self, group, plural):
        prefix = f"/apis/{group}" if "/" in group else f"/api/{group}"
        return self.get(f"{prefix}/namespaces/{self.namespace}/{plural}")["items"]

    async def let_in(self, name):
        """Play the scheduler: let the group of a Job in, and give its pods."""

        def groups():
            found = self.items("scheduling.volcano.sh/v1beta1", "podgroups")
            return [each for each in found if each["metadata"]["name"].startswith(f"{name}-")]

        (group,) = await self.until(groups)
        await asyncio.to_thread(
            self.patch, "podgroups.scheduling.volcano.sh", group["metadata"]["name"], {"status": {"phase": "Inqueue"}}
        )

        def pods():
            found = self.items("v1", "pods")
            return [each for each in found if each["metadata"]["name"].startswith(f"{name}-")]

        return await self.until(pods)

    def end(self, pod, phase):
        status = {"phase": phase, "containerStatuses": []}
        self.patch("pods", pod["metadata"]["name"], {"status": status}, "--subresource=status")

    def phase(self, name):
        found = self.get(f"/apis/{VOLCANO}/namespaces/{self.namespace}/jobs/{name}")
        return found.get("status", {}).get("state", {}).get("phase")

    async def jobs(self):
        """A Job with objects beside it and volumes is scaled, loses a pod, and is ended by an order; one succeeds and goes by its time to live."""
        volumes = [
            {
                "mountPath": "/d",
                "volumeClaim": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
            }
        ]
        plugins = {"svc": [], "ssh": [], "ray": []}
        policies = [{"event": "PodFailed", "action": "RestartPod"}]
        self.make(job("rich", self.namespace, plugins=plugins, replicas=2, volumes=volumes, policies=policies))
        pods = await self.let_in("rich")
        jobs = f"/apis/{VOLCANO}/namespaces/{self.namespace}/jobs/rich"
        task = self.get(jobs)["spec"]["tasks"][0]
        self.patch("jobs.batch.volcano.sh", "rich", {"spec": {"tasks": [{**task, "replicas": 3}]}})
        await self.until(lambda: len(self.items("v1", "pods")) == 3)
        await asyncio.to_thread(self.end, pods[0], "Failed")
        await self.until(lambda: self.get(jobs)["status"].get("retryCount") == 1)
        self.order("AbortJob", "Job", VOLCANO, "rich", self.get(jobs)["metadata"]["uid"])
        await self.until(lambda: self.phase("rich") == "Aborted")
        for count in (1, 2):
            # A warning that was given before is counted up.
            self.order("AbortJobs", "Job", VOLCANO, "rich", self.get(jobs)["metadata"]["uid"])
            await self.until(lambda: count in self.warnings("CommandIssued"))  # noqa: B023  asked at once
        self.make(job("brief", self.namespace, ttlSecondsAfterFinished=1))
        (pod,) = await self.let_in("brief")
        await asyncio.to_thread(self.end, pod, "Succeeded")
        await self.until(lambda: self.is_deleted("brief"))

    def warnings(self, reason):
        """Give how often each warning of a reason was given."""
        found = self.items("v1", "events")
        return [each["count"] for each in found if (each["type"], each["reason"]) == ("Warning", reason)]

    def is_deleted(self, name):
        """Tell whether a Job is gone, or goes: nobody collects garbage here."""
        found = [each for each in self.items(VOLCANO, "jobs") if each["metadata"]["name"] == name]
        return not found or "deletionTimestamp" in found[0]["metadata"]

    def order(self, action, kind, api_version, name, uid):
        target = {"apiVersion": api_version, "kind": kind, "name": name, "uid": uid}
        metadata = {"generateName": "order-", "namespace": self.namespace}
        self.server.call(
            "POST",
            f"/apis/bus.volcano.sh/v1alpha1/namespaces/{self.namespace}/commands",
            {
                "apiVersion": "bus.volcano.sh/v1alpha1",
                "kind": "Command",
                "metadata": metadata,
                "action": action,
                "target": target,
            },
        )

    async def queues(self):
        """A queue is closed by an order, which its child follows."""
        group = "scheduling.volcano.sh/v1beta1"
        self.make(named(group, "Queue", "parent", spec={}), named(group, "Queue", "child", spec={"parent": "parent"}))
        uid = self.get(f"/apis/{group}/queues/parent")["metadata"]["uid"]
        self.order("CloseQueue", "Queue", group, "parent", uid)
        await self.until(lambda: self.get(f"/apis/{group}/queues/child").get("status", {}).get("state") == "Closed")

    async def flows(self):
        """Templates are run by a flow that deletes what has succeeded, and a schedule starts a Job and replaces it."""
        flow = "flow.volcano.sh/v1alpha1"
        spec = job("x", self.namespace)["spec"]
        self.make(
            named(flow, "JobTemplate", "t", self.namespace, spec=spec),
            named(flow, "JobFlow", "f", self.namespace, spec={"flows": [{"name": "t"}], "jobRetainPolicy": "delete"}),
            named(
                VOLCANO,
                "CronJob",
                "c",
                self.namespace,
                spec={"schedule": "* * * * *", "jobTemplate": {"spec": spec}, "suspend": True},
            ),
        )
        (pod,) = await self.let_in("f-t")
        await asyncio.to_thread(self.end, pod, "Succeeded")
        await self.until(lambda: self.is_deleted("f-t"))

    async def hyper_nodes(self):
        """Labels of nodes are turned into HyperNodes, renamed and taken off."""
        types = {"rack": [{"nodeLabel": "spine"}, {"nodeLabel": "rack"}, {"nodeLabel": "kubernetes.io/hostname"}]}
        source = {"source": "label", "enabled": True, "config": {"networkTopologyTypes": types}}
        data = {"volcano-controller.conf": json.dumps({"networkTopologyDiscovery": [source]})}
        self.make(
            {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "hn-1", "labels": {"spine": "s", "rack": "r"}}}
        )
        self.make(
            {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "hn-2", "labels": {"spine": "s", "rack": "r"}}}
        )
        body = json.dumps({"data": data})
        where = ("-n", RELEASE.namespace, "--type=merge", "-p", body)
        self.server.kubectl("patch", "configmap", RELEASE.controllers_config_map, *where)
        path = "/apis/topology.volcano.sh/v1alpha1/hypernodes"
        await self.until(lambda: len(self.get(path)["items"]) == 2)
        await self.until(lambda: any(each.get("status", {}).get("nodeCount") for each in self.get(path)["items"]))
        self.server.kubectl("label", "node", "hn-2", "rack-", "spine-")
        await self.until(lambda: any(each.get("status", {}).get("nodeCount") == 1 for each in self.get(path)["items"]))
        self.server.kubectl("label", "node", "hn-1", "rack-", "spine-")
        await self.until(lambda: not self.get(path)["items"])

    async def groups(self):
        """A pod that nobody grouped gets a group, and so do those of a ReplicaSet, until it is scaled to nothing."""
        spec = {"schedulerName": "volcano", "containers": [{"name": "c", "image": "i"}]}
        self.make(named("v1", "Pod", "alone", self.namespace, spec=spec))
        template = {"metadata": {"labels": {"a": "b"}}, "spec": spec}
        whole = {"replicas": 1, "selector": {"matchLabels": {"a": "b"}}, "template": template}
        self.make(named("apps/v1", "ReplicaSet", "rs", self.namespace, spec=whole))
        owner = self.get(f"/apis/apps/v1/namespaces/{self.namespace}/replicasets/rs")["metadata"]["uid"]
        reference = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "rs", "uid": owner, "controller": True}
        owned = named("v1", "Pod", "owned", self.namespace, spec=spec)
        owned["metadata"] |= {"ownerReferences": [reference], "labels": {"a": "b"}}
        self.make(owned)

        def companions():
            found = self.items("scheduling.volcano.sh/v1beta1", "podgroups")
            return [each for each in found if each["metadata"]["name"].startswith("podgroup-")]

        await self.until(lambda: len(companions()) == 2)
        self.patch("replicasets", "rs", {"spec": {"replicas": 0}})
        await self.until(lambda: len(companions()) == 1)


async def list_everything(audited):
    """Follow everything as on a server that does not stream lists."""
    settings = controller_settings.read({"kubeconfig": str(audited.controllers_kubeconfig), "leader-elect": False})
    meter = reporting.Reporter(logs.Log(0), clocks.wall, api_silence.ApiSilence(time.monotonic), overdue.Watch()).meter
    silence = api_silence.ApiSilence(time.monotonic)
    made = part.ControllersPart(
        settings, settings.work, "", log=logs.Log(0), meter=meter, api_silence=silence, around=surroundings.REAL
    )
    async with Client(connection.load(str(audited.controllers_kubeconfig))) as client:
        feed = part.Feed(made.reconciler, None)
        watches = informers.Informers(client, made.specs, feed, streaming=False)
        running = asyncio.create_task(watches.run())
        async with asyncio.timeout(waiting.PATIENCE):
            await watches.wait_synced()
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def idle(made):
    """Once nothing is left to do nothing is sent but renewals of the Lease: for twenty of them in a row."""
    async with asyncio.timeout(waiting.PATIENCE):
        while True:
            others, renewals = made.requests
            while made.requests[1] < renewals + 20:  # noqa: ASYNC110  time passes as renewals do
                await asyncio.sleep(0.1)
            if made.requests[0] == others:
                return


async def live(audited, life):
    given = {
        "kubeconfig": str(audited.controllers_kubeconfig),
        "leader-elect-resource-namespace": RELEASE.namespace,
        "leader-elect-retry-period": 200_000,
        "v": 3,
    }
    settings, log = controller_settings.read(given), logs.Log(3)
    silence = api_silence.ApiSilence(time.monotonic)
    meter = reporting.Reporter(log, clocks.wall, silence, overdue.Watch()).meter
    made = part.ControllersPart(
        settings,
        settings.work,
        RELEASE.controllers_lease,
        log=log,
        meter=meter,
        api_silence=silence,
        around=surroundings.REAL,
    )
    running = asyncio.create_task(made.run())
    try:
        async with asyncio.timeout(waiting.PATIENCE):
            while not meter.leading():  # noqa: ASYNC110  nobody sets an event
                await asyncio.sleep(0.05)
        for scene in (life.jobs, life.queues, life.flows, life.hyper_nodes, life.groups):
            await scene()
        await idle(made)
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
    assert meter.breakdowns == 0, meter.last_breakdown


def test_every_verb_the_controllers_use_is_granted_and_every_verb_granted_is_used(audited, monkeypatch):
    monkeypatch.setenv("KUBE_POD_NAMESPACE", RELEASE.namespace)
    monkeypatch.setenv("HELM_RELEASE_NAME", RELEASE.name)
    server = audited.server
    life = Life(server, server.new_namespace())
    life.make(named("scheduling.volcano.sh/v1beta1", "Queue", "default", spec={"weight": 1}))
    asyncio.run(live(audited, life))
    asyncio.run(list_everything(audited))
    assert audited.forbidden(CONTROLLERS) == []
    table = granted(controller_permissions.PERMISSIONS)
    used = audited.used(CONTROLLERS)
    assert used - table == set()
    after_lost_answers = {use for use in table if use.verb == "get" or use.resource.endswith("/finalizers")}
    # A schedule that starts Jobs takes minutes; what it asks for is in tests/controllers/test_cron_job_lives.py.
    schedules = {use for use in table if use.resource.startswith("cronjobs")}
    assert table - used - after_lost_answers - schedules == set()


def test_whatever_is_written_may_be_read():
    table = granted(controller_permissions.PERMISSIONS)
    written = {
        (use.group, use.resource.partition("/")[0]) for use in table if use.verb in ("create", "patch", "delete")
    }
    read = {(use.group, use.resource) for use in table if use.verb == "get"}
    assert written - read == {("", kinds.EVENT.plural)}
