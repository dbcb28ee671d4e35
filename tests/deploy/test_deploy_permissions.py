"""Least privilege: what the scheduler's code asks a real API server for is what its roles grant, no less and no more.

The code of the table is run under the scheduler's own account, rare paths included; the API server's audit log tells what it asked for.
"""

from __future__ import annotations

import asyncio
import json
import random
import time

import pytest
from audited import RELEASE, Use, granted

from pumice.api import kinds
from pumice.cache import effects
from pumice.cache.options import Options
from pumice.kube import election, errors, grouping, lease, lease_holders, rivals
from pumice.kube.access import connection
from pumice.kube.calls.client import Client
from pumice.kube.watches import informers
from pumice.kube.writes import binding, eventing, evicting, preparing, updating, volumes
from pumice.manifests import resources, text
from pumice.model.preparations import ClaimGrant, NewClaim, NodeLock
from pumice.model.volumes import VolumeDecision
from pumice.server.configuration import sources
from testbed import waiting

pytestmark = [pytest.mark.kube, pytest.mark.apart]

RNG = random.Random(1)  # noqa: S311  spreads retries


def pod(namespace, name, **spec):
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}
    metadata = {"name": name, "namespace": namespace}
    whole = {"schedulerName": "volcano", "containers": [container], **spec}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": whole}


def replica_set(namespace, replicas):
    template = {"metadata": {"labels": {"a": "b"}}, "spec": pod(namespace, "")["spec"]}
    spec = {"replicas": replicas, "selector": {"matchLabels": {"a": "b"}}, "template": template}
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": "rs", "namespace": namespace},
        "spec": spec,
    }


def group(kind, namespace):
    return {"apiVersion": kind.api_version, "kind": kind.name, "metadata": {"name": "g", "namespace": namespace}}


class Exercise:
    """Runs what the table names, on objects that an administrator makes."""

    def __init__(self, server, client, namespace):
        self.server = server
        self.client = client
        self.namespace = namespace

    def make(self, *manifests):
        self.server.kubectl("apply", "-f", "-", input=text.stream(manifests))

    def uid(self, kind, name):
        flags = ["-n", self.namespace] if kind.namespaced else []
        plural = f"{kind.plural}.{kind.group}" if kind.group else kind.plural
        return json.loads(self.server.kubectl("get", plural, name, *flags, "-o", "json"))["metadata"]["uid"]

    async def companions(self):
        """Follow everything; group a pod that has no group and one that is owned; forget the group of an owner that is scaled down."""
        self.make(pod(self.namespace, "alone"), replica_set(self.namespace, 1))
        owner = self.uid(kinds.REPLICA_SET, "rs")
        reference = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "rs", "uid": owner, "controller": True}
        owned = pod(self.namespace, "owned")
        owned["metadata"]["ownerReferences"] = [reference]
        self.make(owned)
        controller = grouping.Grouping(self.client)
        watches = informers.Informers(
            self.client, informers.standard(Options(), raw=grouping.WATCHED), controller, rng=RNG
        )
        async with asyncio.TaskGroup() as tasks:
            running = [tasks.create_task(watches.run())]
            await watches.wait_synced()
            running.append(tasks.create_task(controller.run()))
            await waiting.soon(lambda: controller.reconciler.engine.writes == 4)
            await asyncio.to_thread(self.make, replica_set(self.namespace, 0))
            await waiting.soon(lambda: controller.reconciler.engine.writes == 5)
            for task in running:
                task.cancel()
        assert controller.failures.count == 0

    async def lists(self):
        """Follow everything as on a server that does not stream lists."""
        specs = informers.standard(Options(), raw=grouping.WATCHED)
        idle = grouping.Grouping(self.client, wanted=lambda: False)
        watches = informers.Informers(self.client, specs, idle, rng=RNG, streaming=False)
        running = asyncio.create_task(watches.run())
        await watches.wait_synced()
        running.cancel()

    async def group_that_exists(self):
        self.make(group(kinds.POD_GROUP, self.namespace))
        await updating.ApiObjects(self.client).create(
            effects.Create(kind=kinds.POD_GROUP, manifest=group(kinds.POD_GROUP, self.namespace))
        )

    async def queues(self):
        objects = updating.ApiObjects(self.client)
        manifest = {"apiVersion": kinds.QUEUE.api_version, "kind": "Queue", "metadata": {"name": "root"}}
        for _ in range(2):
            await objects.create(effects.Create(kind=kinds.QUEUE, manifest=manifest))

    async def statuses(self):
        """Write the status of everything that has one, of older kinds too."""
        older = [each.kind for each in resources.KUBE_BATCH]
        for kind in older:
            self.make(group(kind, self.namespace if kind.namespaced else ""))
        for kind in (kinds.POD_GROUP, *(each for each in older if each.namespaced)):
            await self.write_status(kind, "g", {"phase": "Pending"})
        await self.write_status(kinds.QUEUE, "root", {"allocated": {"cpu": "1"}})
        for kind in older:
            if not kind.namespaced:
                await self.write_status(kind, "g", {"running": 1})

    async def native_group(self):
        """Write the condition of a group of Kubernetes' own; that this server does not serve the kind is found after the right to it."""
        where = {"namespace": self.namespace, "name": "g", "uid": "u"}
        patch = effects.Patch(
            kind=kinds.NATIVE_POD_GROUP,
            body={"status": {"conditions": []}},
            subresource="status",
            strategic=True,
            **where,
        )
        with pytest.raises(errors.ApiError, match="could not find the requested resource"):
            await updating.ApiUpdater(self.client, time.monotonic).patch(patch)

    async def preparations(self):
        """Lock a node."""
        self.make({"apiVersion": "v1", "kind": "Node", "metadata": {"name": f"n-{self.namespace}"}})
        lock = NodeLock(node=f"n-{self.namespace}", annotation="gpu", stamp="2026-01-01T00:00:00Z")
        where = {"namespace": self.namespace, "name": "p", "uid": "u"}
        outcome = await preparing.ApiPreparer(self.client, time.time_ns).prepare(
            effects.Prepare(node=lock.node, preparations=(lock,), **where)
        )
        assert outcome.failure is None
        await self.claim()

    async def claim(self):
        """Make a claim for devices, give it some, and take everything back."""
        where = {"namespace": self.namespace, "claim": "c", "pod": "p", "pod_uid": "u"}
        manifest = {
            "apiVersion": kinds.RESOURCE_CLAIM.api_version,
            "kind": "ResourceClaim",
            "metadata": {
                "name": "c",
                "namespace": self.namespace,
                "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u", "controller": True}],
            },
            "spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]}},
        }
        given = {"devices": {"results": [{"request": "r", "driver": "d.example.com", "pool": "p", "device": "x"}]}}
        wanted = (NewClaim(manifest=manifest, **where), ClaimGrant(uid="", allocation=given, **where))
        pod = {"namespace": self.namespace, "name": "p", "uid": "u"}
        writer = preparing.ApiPreparer(self.client, lambda: time.time_ns() // 1000)
        outcome = await writer.prepare(effects.Prepare(node="n", preparations=wanted, **pod))
        assert outcome.failure is None
        outcome = await writer.take_back(effects.TakeBack(preparations=wanted, **pod))
        assert outcome.failure is None

    async def status_apart(self):
        """Write the status of a group whose definition keeps it apart, as some may."""
        path = '[{"op": "add", "path": "/spec/versions/0/subresources", "value": {"status": {}}}]'
        crd = "podgroups.scheduling.volcano.sh"
        await asyncio.to_thread(self.server.kubectl, "patch", "crd", crd, "--type=json", "-p", path)
        where = f"/apis/{kinds.POD_GROUP.api_version}"

        def served():
            return "podgroups/status" in {each["name"] for each in self.server.call("GET", where)["resources"]}

        await asyncio.to_thread(waiting.until, served)
        await self.write_status(kinds.POD_GROUP, "g", {"phase": "Inqueue"})

    async def write_status(self, kind, name, status):
        effect = effects.Patch(
            kind=kind,
            namespace=self.namespace if kind.namespaced else "",
            name=name,
            uid=self.uid(kind, name),
            body={"status": status},
        )
        await updating.ApiUpdater(self.client, time.monotonic).patch(effect)

    async def pods(self):
        """Bind a pod, look at it, and evict it."""
        self.make({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}, pod(self.namespace, "bound"))
        uid = self.uid(kinds.POD, "bound")
        name = {"namespace": self.namespace, "name": "bound"}
        await binding.ApiBinder(self.client).bind(effects.Bind(**name, uid=uid, node="n"))
        await updating.ApiObjects(self.client).read(effects.Read(kind=kinds.POD, **name))
        evictor = evicting.ApiEvictor(self.client, lambda: time.time_ns() // 1000)
        await evictor.evict(effects.Evict(**name, uid=uid, reason="a test", grace_seconds=0))

    async def volumes(self):
        """Claim a volume, and undo it since nobody plays the volume controller."""
        spec = {"accessModes": ["ReadWriteOnce"], "storageClassName": "s"}
        claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim"}
        self.make(
            pod(self.namespace, "wants"),
            *(
                {
                    **claim,
                    "metadata": {"name": name, "namespace": self.namespace},
                    "spec": {**spec, "resources": {"requests": {"storage": "1Gi"}}},
                }
                for name in ("fixed", "made")
            ),
            {
                "apiVersion": "v1",
                "kind": "PersistentVolume",
                "metadata": {"name": "v"},
                "spec": {**spec, "capacity": {"storage": "1Gi"}, "hostPath": {"path": "/data"}},
            },
        )
        decisions = tuple(
            VolumeDecision(
                namespace=self.namespace, claim=name, uid=self.uid(kinds.PERSISTENT_VOLUME_CLAIM, name), volume=volume
            )
            for name, volume in (("fixed", "v"), ("made", ""))
        )
        effect = effects.Bind(
            namespace=self.namespace,
            name="wants",
            uid=self.uid(kinds.POD, "wants"),
            node="n",
            volumes=decisions,
            volume_patience=500_000,
        )
        with pytest.raises(volumes.VolumesNotReadyError):
            await volumes.ApiVolumeBinder(self.client).prepare(effect)

    async def events(self):
        recorder = eventing.EventRecorder(self.client, lambda: time.time_ns() // 1000, "volcano")
        note = effects.Note(
            kind=kinds.QUEUE, namespace="", name="root", uid="u", type="Normal", reason="Tested", message="twice"
        )
        for _ in range(2):
            recorder.put(note)
            await recorder.send(recorder.take())
        assert (recorder.sent, recorder.dropped) == (2, 0)

    async def holders(self):
        """Follow the Leases of controllers, as on servers that stream lists and on those that do not."""
        holders = lease_holders.LeaseHolders(self.client, rivals.CONTROLLING, lambda: 0)
        running = asyncio.create_task(holders.run())
        await waiting.soon(lambda: holders.synced)
        running.cancel()

    async def configuration(self):
        source = sources.ConfigMapSource(self.client, RELEASE.namespace, RELEASE.config_map)
        assert await source.read() == RELEASE.configuration

    async def lease(self):
        """Lead, renew once, and let go."""
        timing = lease.Timing(retry=100_000)
        clock = {"monotonic": lambda: time.monotonic_ns() // 1000, "wall": lambda: time.time_ns() // 1000}
        place = {"namespace": RELEASE.namespace, "name": RELEASE.lease_name}
        lookout = rivals.Lookout(
            self.client, rivals.Rivals("/".join(place.values()), ("permissions",)), clock["monotonic"]
        )
        me = lease.Candidate("me", timing)
        one = election.Election(self.client, me, **place, **clock, rng=RNG, lookout=lookout)
        leading = asyncio.Event()
        running = asyncio.create_task(one.run(lambda _: leading.set()))
        await leading.wait()

        def renewed():
            spec = self.server.call(
                "GET", f"/apis/coordination.k8s.io/v1/namespaces/{RELEASE.namespace}/leases/{RELEASE.lease_name}"
            )["spec"]
            return spec["renewTime"] > spec["acquireTime"]

        await asyncio.to_thread(waiting.until, renewed)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        assert one.allowance() > 0
        await one.release()


async def run_all(audited, namespace):
    async with Client(connection.load(str(audited.kubeconfig))) as client:
        exercise = Exercise(audited.server, client, namespace)
        await exercise.companions()
        await exercise.lists()
        await exercise.group_that_exists()
        await exercise.queues()
        await exercise.statuses()
        await exercise.native_group()
        await exercise.pods()
        await exercise.volumes()
        await exercise.preparations()
        await exercise.events()
        await exercise.configuration()
        await exercise.lease()
        await exercise.holders()
        await exercise.status_apart()


def test_every_verb_used_is_granted_and_every_verb_granted_is_used(audited):
    asyncio.run(run_all(audited, audited.server.new_namespace()))
    assert audited.forbidden() == []
    assert audited.used() - granted() == set()
    # Rights that the server looks at while it is asked for something else are not in its log.
    checked = {Use(verb, "resource.k8s.io", "resourceclaims/binding") for verb in ("patch", "update")}
    assert granted() - audited.used() == checked
