"""Controllers through plain HTTP: the same code as beside the API server of `pumice up`, on that server and on a real one."""

from __future__ import annotations

import asyncio
import json

import pytest

from pumice.api import kinds
from pumice.controllers import standard
from pumice.kube import reconciling
from pumice.kube.access import connection
from pumice.kube.calls.client import Client
from pumice.kube.writes.eventing import EventRecorder
from testbed import waiting

pytestmark = pytest.mark.kube


@pytest.fixture(params=["up_server", "api_server"])
def server(request):
    return request.getfixturevalue(request.param)


def manifest(kind, name, api_version="apps/v1", **spec):
    template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec = {"selector": {"matchLabels": {"app": name}}, "template": template, **spec}
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, "spec": spec}


def items(server, path):
    return server.call("GET", path)["items"]


async def until(condition):
    await asyncio.to_thread(waiting.until, condition)


async def controlled(server, script):
    complaints = []
    async with Client(connection.load(str(server.kubeconfig))) as client:
        events = EventRecorder(client, lambda: 1_700_000_000_000_000, "test-controllers")
        made = reconciling.Reconciler(client, standard.controllers(), events=events, complain=complaints.append)
        running = asyncio.create_task(made.run())
        try:
            await script(made)
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
    assert not complaints


def test_a_deployment_gets_its_pods_through_http_and_is_scaled_down_again(server):
    home = server.new_namespace()
    apps, pods = f"/apis/apps/v1/namespaces/{home}", f"/api/v1/namespaces/{home}/pods"

    async def script(_):
        server.call("POST", f"{apps}/deployments", manifest("Deployment", "web", replicas=4))
        await until(lambda: len(items(server, pods)) == 4)
        server.kubectl("-n", home, "scale", "deployment/web", "--replicas=1")
        await until(lambda: len(items(server, pods)) == 1)
        await until(lambda: server.call("GET", f"{apps}/deployments/web")["status"].get("replicas") == 1)

        def told():
            events = json.loads(server.kubectl("-n", home, "get", "events", "-o", "json"))["items"]
            return {each["reason"] for each in events}

        await until(lambda: "SuccessfulCreate" in told())

    asyncio.run(controlled(server, script))


def test_a_job_counts_its_pods_through_http(server):
    home = server.new_namespace()
    jobs, pods = f"/apis/batch/v1/namespaces/{home}/jobs", f"/api/v1/namespaces/{home}/pods"
    body = manifest("Job", "work", "batch/v1", completions=3, parallelism=3)
    del body["spec"]["selector"]
    body["spec"]["template"]["spec"]["restartPolicy"] = "Never"

    async def script(made):
        server.call("POST", jobs, body)
        await until(lambda: len(items(server, pods)) == 3)
        for pod in items(server, pods):
            patch = {"status": {"phase": "Succeeded"}}
            name = pod["metadata"]["name"]
            server.kubectl("-n", home, "patch", "pod", name, "--subresource=status", "-p", json.dumps(patch))
        await until(lambda: server.call("GET", f"{jobs}/work")["status"].get("completionTime"))
        status = server.call("GET", f"{jobs}/work")["status"]
        assert status["succeeded"] == 3
        assert not any(pod["metadata"].get("finalizers") for pod in items(server, pods))
        known = made.engine.observed.find(kinds.BATCH_JOB, home, "work")
        assert known is not None

    asyncio.run(controlled(server, script))
