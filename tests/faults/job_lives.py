"""Lives of Volcano's Jobs on a real API server, each in a namespace of its own: controllers behind a proxy, and whoever else a Job needs past it.

A life: three pods run, one fails, its policy restarts the Job, three pods run again and succeed.
"""

from __future__ import annotations

import asyncio
import contextlib
import time

import msgspec

from pumice.api import kinds
from pumice.controllers.volcano import registry
from pumice.kube import errors
from pumice.kube.access import connection
from pumice.kube.access.endpoint import Connection
from pumice.kube.calls.client import Client
from pumice.kube.reconciling import Reconciler
from pumice.kube.watches.informers import Informers
from pumice.kube.watches.watching import WatchSpec
from pumice.kube.writes.eventing import EventRecorder
from pumice.server.controlling import part
from testbed import waiting

LOOK = 0.05
PODS = 3
NAME = "life"
POLICIES = ({"event": "PodFailed", "action": "RestartJob"},)


def job(name=NAME, *, policies=POLICIES, **spec):
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}
    pod = {"restartPolicy": "Never", "terminationGracePeriodSeconds": 0, "containers": [container]}
    tasks = [{"name": role, "replicas": count, "template": {"spec": pod}} for role, count in (("a", 2), ("b", 1))]
    whole = {"schedulerName": "volcano", "queue": "default", "minAvailable": PODS, "maxRetry": 3, "tasks": tasks}
    return {
        "apiVersion": kinds.JOB.api_version,
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {**whole, "policies": list(policies), **spec},
    }


def phase(manifest):
    return manifest.get("status", {}).get("phase") or ""


def state(found):
    return found.get("status", {}).get("state", {}).get("phase") or ""


class Controllers:
    """Controllers behind a proxy, in this process; `kill` ends them wherever they are."""

    def __init__(self, url, *, timeout=waiting.PATIENCE, silence=90.0):
        self._client = Client(Connection(url), timeout=timeout)
        self._silence = silence
        self.complaints = []

    async def start(self):
        await self._client.__aenter__()
        events = EventRecorder(self._client, lambda: time.time_ns() // 1000, registry.SOURCE)
        self.reconciler = Reconciler(
            self._client, registry.controllers(), events=events, complain=self.complaints.append, **part.kept()
        )
        feed = part.Feed(self.reconciler, None)
        watches = Informers(self._client, self.reconciler.specs, feed, silence=self._silence)
        self._tasks = [asyncio.create_task(watches.run())]
        async with asyncio.timeout(waiting.PATIENCE):
            await watches.wait_synced()
        self._tasks.append(asyncio.create_task(self.reconciler.work()))
        return self

    async def kill(self):
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._client.__aexit__(None, None, None)
        assert not self.complaints


class Stage:
    """Everybody else: watches what there is, plays scheduler and kubelets in each namespace, and looks for what must never be."""

    def __init__(self, server):
        self._server = server
        self.there = {kinds.JOB: {}, kinds.POD_GROUP: {}, kinds.POD: {}}
        self.problems = []
        self.namespaces = []
        self.plays = {}

    async def __aenter__(self):
        self.client = await Client(connection.load(str(self._server.kubeconfig)), qps=5000, burst=5000).__aenter__()
        with contextlib.suppress(errors.ApiError):
            queue = {"apiVersion": kinds.QUEUE.api_version, "kind": "Queue", "metadata": {"name": "default"}}
            await self.client.create(kinds.QUEUE, queue)
        watches = Informers(self.client, [WatchSpec(kind, keep_raw=True) for kind in self.there], self)
        self._tasks = [asyncio.create_task(watches.run()), asyncio.create_task(self._play())]
        await watches.wait_synced()
        return self

    async def __aexit__(self, *_):
        for task in self._tasks:
            task.cancel()
        ended = await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.client.__aexit__(None, None, None)
        assert not [each for each in ended if not isinstance(each, asyncio.CancelledError)], ended

    def feed(self, kind, event_type, found, raw):
        metadata = found.metadata
        homes = self.there[kind].setdefault(metadata.namespace, {})
        if event_type == "DELETED":
            homes.pop(metadata.name, None)
            return
        homes[metadata.name] = msgspec.json.decode(raw)
        if kind is kinds.POD and metadata.namespace in self.plays:
            alive = [each for each in homes.values() if "deletionTimestamp" not in each["metadata"]]
            if len(alive) > PODS:
                self.problems.append(f"{metadata.namespace}: {len(alive)} pods at once")

    # -- playing -----------------------------------------------------------------------------------------------

    async def begin(self, count, play, **spec):
        """Create so many Jobs, each in a namespace of its own, and play the same for all; gives the namespaces."""
        made = [await asyncio.to_thread(self._server.new_namespace) for _ in range(count)]
        self.namespaces += made
        self.plays |= dict.fromkeys(made, play)
        return made

    async def submit(self, namespaces, **spec):
        for namespace in namespaces:
            manifest = job(**spec)
            manifest["metadata"]["namespace"] = namespace
            await self.client.create(kinds.JOB, manifest)

    async def _play(self):
        while True:
            for namespace, play in list(self.plays.items()):
                await play(self, namespace)
            await asyncio.sleep(LOOK)

    def pods(self, namespace):
        found = self.there[kinds.POD].get(namespace, {}).values()
        return [each for each in found if "deletionTimestamp" not in each["metadata"]]

    def job(self, namespace):
        return self.there[kinds.JOB].get(namespace, {}).get(NAME)

    async def let_in(self, namespace):
        for group in list(self.there[kinds.POD_GROUP].get(namespace, {}).values()):
            if phase(group) in ("", "Pending") and "deletionTimestamp" not in group["metadata"]:
                await self.patch(kinds.POD_GROUP, group, {"phase": "Inqueue"})

    async def set_phase(self, pod, wanted):
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        ended = {"terminated": {"exitCode": 1 if wanted == "Failed" else 0, "finishedAt": now}}
        container = {"name": "c", "image": "i", "imageID": "", "restartCount": 0, "ready": wanted == "Running"}
        container["state"] = {"running": {}} if wanted == "Running" else ended
        await self.patch(kinds.POD, pod, {"phase": wanted, "containerStatuses": [container]}, "status")

    async def patch(self, kind, manifest, status, subresource=""):
        """Write a status, unless the object has gone or been replaced; it is seen at once, so that nothing is written twice."""
        metadata = manifest["metadata"]
        body = {"metadata": {"uid": metadata["uid"]}, "status": status}
        with contextlib.suppress(errors.ApiError):
            self.feed_answer(
                kind,
                await self.client.patch(kind, metadata["namespace"], metadata["name"], body, subresource=subresource),
            )

    def feed_answer(self, kind, manifest):
        """Take what a write was answered, unless the watch has told of the object's end, or of a later state, before the answer came."""
        metadata = manifest["metadata"]
        homes = self.there[kind].get(metadata["namespace"], {})
        known = homes.get(metadata["name"])
        if known and int(known["metadata"]["resourceVersion"]) < int(metadata["resourceVersion"]):
            homes[metadata["name"]] = manifest

    # -- the end -----------------------------------------------------------------------------------------------

    async def until(self, question, what=""):
        try:
            async with asyncio.timeout(waiting.PATIENCE):
                while not question():  # noqa: ASYNC110  what it asks about is on a server
                    await asyncio.sleep(LOOK)
        except TimeoutError:
            states = {each: (state(self.job(each) or {}), len(self.pods(each))) for each in self.namespaces}
            raise AssertionError(f"not in time: {what} {states}") from None

    def states(self, namespaces):
        return [state(self.job(namespace) or {}) for namespace in namespaces]

    async def completed(self, namespaces):
        """Wait until all Jobs are completed, and hold each against a recount."""
        await self.until(lambda: set(self.states(namespaces)) == {"Completed"}, "completed")
        await self.until(lambda: not any(self.there[kinds.POD_GROUP].get(each) for each in namespaces), "no group")
        for namespace in namespaces:
            found, pods = self.job(namespace), self.pods(namespace)
            status, uid = found["status"], found["metadata"]["uid"]
            assert status.get("retryCount", 0) == 1, namespace
            assert {each["metadata"]["ownerReferences"][0]["uid"] for each in pods} == {uid}
            assert len(pods) == status.get("succeeded") == PODS
            assert (status.get("running", 0), status.get("pending", 0), status.get("failed", 0)) == (0, 0, 0)
        assert not self.problems


async def whole_life(stage, namespace):
    """Three pods run, one of the first three fails, the next three succeed."""
    await stage.let_in(namespace)
    found, pods = stage.job(namespace), stage.pods(namespace)
    if found is None:
        return
    for pod in pods:
        if phase(pod) == "Pending":
            await stage.set_phase(pod, "Running")
    if len(pods) < PODS or any(phase(pod) != "Running" for pod in stage.pods(namespace)) or state(found) != "Running":
        return
    retried = found["status"].get("retryCount", 0)
    for pod in stage.pods(namespace):
        if retried or pod["metadata"]["name"].endswith("-b-0"):
            await stage.set_phase(pod, "Succeeded" if retried else "Failed")
