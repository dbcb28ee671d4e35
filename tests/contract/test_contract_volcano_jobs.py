"""Jobs of Volcano through HTTP: on the API server of `pumice up` and on a real one, whose schemas, validation and patches they have to pass."""

from __future__ import annotations

import json

import pytest
from test_contract_volcano_controllers import run

from pumice.api import kinds
from pumice.controllers.volcano import registry

pytestmark = pytest.mark.kube
CONTROLLERS = ("job-controller", "gc-controller")
POD = {
    "terminationGracePeriodSeconds": 0,
    "containers": [{"name": "c", "image": "x", "resources": {"requests": {"cpu": "1"}}}],
}


def job_phase(job):
    return job["status"]["state"]["phase"] if job is not None and job.get("status") else ""


class Story:
    """What happens to one Job; the group is let in and pods run when told to."""

    def __init__(self, world, name="j"):
        self.world, self.name = world, name

    async def begin(self, **spec):
        """Create the Job, in a queue of its own: nobody has made one on a server without a scheduler."""
        queue = f"q-{self.world.namespace}"
        await self.world.create(kinds.QUEUE, queue, spec={})
        return await self.world.create(kinds.JOB, self.name, spec={**spec, "queue": queue, "schedulerName": "volcano"})

    async def until(self, *phases):
        return await self.world.until(kinds.JOB, self.name, lambda each: job_phase(each) in phases)

    async def listed(self, kind):
        group = f"/apis/{kind.api_version}" if kind.group else "/api/v1"
        answer = await self.world.client.request("GET", f"{group}/namespaces/{self.world.namespace}/{kind.plural}")
        return json.loads(answer)["items"]

    async def let_in(self):
        job = await self.world.get(kinds.JOB, self.name)
        group = f"{self.name}-{job['metadata']['uid']}"
        found = await self.world.until(kinds.POD_GROUP, group, lambda each: each is not None)
        body = {"status": {"phase": "Inqueue"}}
        await self.world.client.patch(kinds.POD_GROUP, self.world.namespace, group, body)
        return found

    async def fate(self, phase, *names):
        for name in names:
            pod = await self.world.until(kinds.POD, name, lambda each: each is not None)
            ended = {"terminated": {"exitCode": int(phase == "Failed"), "finishedAt": "2026-01-01T00:00:00Z"}}
            status = {"name": "c", "ready": phase == "Running", "restartCount": 0, "image": "x", "imageID": "x"}
            status["state"] = {"running": {}} if phase == "Running" else ended
            body = {"status": {"phase": phase, "containerStatuses": [status]}}
            assert pod["metadata"]["uid"]
            await self.world.client.patch(kinds.POD, self.world.namespace, name, body, subresource="status")


def test_a_job_lives_restarts_and_completes(server):
    async def story(world):
        told = Story(world)
        tasks = [
            {"name": "a", "replicas": 1, "template": {"spec": POD}},
            {"name": "b", "replicas": 2, "template": {"spec": POD}},
        ]
        claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
        spec = {
            "minAvailable": 3,
            "tasks": tasks,
            "policies": [{"event": "PodFailed", "action": "RestartJob"}],
            "plugins": {"svc": [], "ssh": [], "env": [], "mpi": ["--master=a", "--worker=b"]},
            "volumes": [{"mountPath": "/data", "volumeClaim": claim}],
        }
        await told.begin(**spec)
        job = await told.until("Pending")
        assert job["status"]["controlledResources"]["plugin-svc"] == "svc"
        assert not await told.listed(kinds.POD)
        group = await told.let_in()
        assert group["spec"]["minTaskMember"] == {"a": 1, "b": 2}
        names = ("j-a-0", "j-b-0", "j-b-1")
        await told.fate("Running", *names)
        await told.until("Running")
        for kind, name in (
            (kinds.SERVICE, "j"),
            (kinds.CONFIG_MAP, "j-svc"),
            (kinds.SECRET, "j-ssh"),
            (kinds.NETWORK_POLICY, "j"),
        ):
            assert await world.get(kind, name) is not None, name
        await told.fate("Failed", "j-b-1")
        job = await world.until(kinds.JOB, "j", lambda each: each["status"].get("retryCount") == 1)
        job = await told.until("Pending")
        assert (job["status"]["version"], job["status"]["retryCount"]) == (1, 1)
        assert (await told.let_in())["metadata"]["uid"] != group["metadata"]["uid"]
        pod = await world.until(kinds.POD, "j-b-1", lambda each: each is not None)
        assert pod["metadata"]["annotations"]["volcano.sh/job-version"] == "1"
        await told.fate("Running", *names)
        await told.until("Running")
        await told.fate("Succeeded", *names)
        job = await told.until("Completed")
        assert job["status"]["succeeded"] == 3
        await world.until(kinds.POD_GROUP, group["metadata"]["name"], lambda each: each is None)
        await world.until(kinds.SECRET, "j-ssh", lambda each: each is None)
        assert len(await told.listed(kinds.POD)) == 3
        assert [each["status"] for each in job["status"]["conditions"]] == [
            "Restarting",
            "Pending",
            "Running",
            "Completed",
        ]

    run(server, story, registry.controllers(CONTROLLERS))


def test_a_job_is_suspended_resumed_and_collected(server):
    async def story(world):
        told = Story(world)
        tasks = [{"name": "a", "replicas": 2, "template": {"spec": POD}}]
        job = await told.begin(minAvailable=1, tasks=tasks, ttlSecondsAfterFinished=0)
        target = {"apiVersion": kinds.JOB.api_version, "kind": "Job", "name": "j", "uid": job["metadata"]["uid"]}
        await told.until("Pending")
        await told.let_in()
        await told.fate("Running", "j-a-0")
        await told.until("Running")
        await world.create(kinds.COMMAND, "stop", action="AbortJob", target=target)
        await told.until("Aborted")
        await world.until(kinds.COMMAND, "stop", lambda each: each is None)
        assert not await told.listed(kinds.POD)
        await world.create(kinds.COMMAND, "go", action="ResumeJob", target=target)
        job = await told.until("Pending")
        assert job["status"]["retryCount"] == 1
        await world.create(kinds.COMMAND, "end", action="TerminateJob", target=target)
        await world.until(kinds.JOB, "j", lambda each: each is None or each["metadata"].get("deletionTimestamp"))

    run(server, story, registry.controllers(CONTROLLERS))
