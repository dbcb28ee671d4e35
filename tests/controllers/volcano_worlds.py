"""Volcano's kinds on the unreliable API server: objects, killed controllers, and what is there at the end."""

from __future__ import annotations

from unreliable_world import UnreliableWorld

from pumice.api import duration, kinds, timestamp
from pumice.sim import errors
from pumice.sim.identity import Key


class KilledError(Exception):
    """The process of the controllers has ended in the middle of a request."""


class VolcanoWorld(UnreliableWorld):
    """A world whose controllers can be killed at any request, before it leaves or after it was carried out."""

    killed = KilledError

    def __init__(self, make, **more):
        self.requests = 0
        self.kill_at = None  # the number of the request, and whether it is carried out
        super().__init__(make, **more)

    def perform(self, request, fault=""):
        self.requests += 1
        if self.kill_at is not None and self.requests >= self.kill_at[0]:
            performed, self.kill_at = self.kill_at[1], None
            if performed:
                super().perform(request)
            raise KilledError
        return super().perform(request, fault)

    def settled(self):
        """Let nothing go wrong but the kill; whoever was killed is replaced."""
        try:
            self.settle()
        except KilledError:
            self.restart()
            self.settle()

    def everything(self):
        """Give what is stored, without what differs from life to life."""
        found = {}
        for key, manifest in self.store.everything():
            metadata = {name: manifest["metadata"].get(name) for name in ("annotations", "labels")}
            found[str(key)] = {**manifest, "metadata": {name: value for name, value in metadata.items() if value}}
        return timeless(found)

    def delete(self, kind, name, namespace="a"):
        try:
            self.store.delete(Key(kind, namespace if kind.namespaced else "", name))
        except errors.NotFoundError:
            return


def timeless(value):
    """Leave out when something was: whoever is killed and replaced is later than who is not."""
    if isinstance(value, dict):
        return {key: timeless(each) for key, each in value.items() if not key.endswith(("Timestamp", "createTime"))}
    return [timeless(each) for each in value] if isinstance(value, list) else value


def queue(name, parent=None, **fields):
    spec = {} if parent is None else {"spec": {"parent": parent}}
    return {"apiVersion": kinds.QUEUE.api_version, "kind": "Queue", "metadata": {"name": name}, **spec, **fields}


def group(name, queue="default", namespace="a", **fields):
    metadata = {"name": name, "namespace": namespace}
    return {
        "apiVersion": kinds.POD_GROUP.api_version,
        "kind": "PodGroup",
        "metadata": metadata,
        "spec": {"queue": queue},
        **fields,
    }


def command(name, action, target, namespace="a", kind=kinds.QUEUE):
    wanted = {"apiVersion": kind.api_version, "kind": kind.name, "name": target, "uid": "any"}
    metadata = {"name": name, "namespace": namespace}
    return {
        "apiVersion": "bus.volcano.sh/v1alpha1",
        "kind": "Command",
        "metadata": metadata,
        "action": action,
        "target": wanted,
    }


def killed_anywhere(begin, happen):
    """Play a story once whole and once for each request at which the controllers are killed; give the first end and all others."""
    world = begin()
    happen(world)
    ends = []
    for number in range(1, world.requests + 1):
        for performed in (False, True):
            other = begin()
            other.kill_at = (number, performed)
            happen(other)
            assert not other.complaints
            ends.append((number, performed, other))
    return world, ends


def cron_job(name="c", schedule="* * * * *", **spec):
    metadata = {"name": name, "namespace": "a"}
    template = {"metadata": {"labels": {"x": "y"}}, "spec": {"tasks": [{"name": "t", "replicas": 1}]}}
    stated = {"schedule": schedule, "jobTemplate": template, **spec}
    return {"apiVersion": kinds.CRON_JOB.api_version, "kind": "CronJob", "metadata": metadata, "spec": stated}


def end_job(world, name, phase="Completed", namespace="a"):
    """Let a Job come into a phase, as its own controller would."""
    when = timestamp.format_timestamp(world.clock.now() // duration.SECOND * duration.SECOND)
    state = {"phase": phase, "lastTransitionTime": when}
    world.store.patch_status(Key(kinds.JOB, namespace, name), {"status": {"state": state}})


def jobs(world):
    """Give the phases of Jobs by name."""
    found = world.store.scan(kinds.JOB)
    return {each["metadata"]["name"]: each.get("status", {}).get("state", {}).get("phase", "") for each in found}


def job_flow(name="f", *steps, **spec):
    """Make a flow of steps, each a name or a name with those before it."""
    flows = [
        {"name": step} if isinstance(step, str) else {"name": step[0], "dependsOn": {"targets": step[1]}}
        for step in steps
    ]
    metadata = {"name": name, "namespace": "a"}
    return {
        "apiVersion": kinds.JOB_FLOW.api_version,
        "kind": "JobFlow",
        "metadata": metadata,
        "spec": {"flows": flows, **spec},
    }


def job_template(name, **spec):
    metadata = {"name": name, "namespace": "a"}
    return {
        "apiVersion": kinds.JOB_TEMPLATE.api_version,
        "kind": "JobTemplate",
        "metadata": metadata,
        "spec": {"minAvailable": 1, **spec},
    }
