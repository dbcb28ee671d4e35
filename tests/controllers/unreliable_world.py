"""A small API server for controllers that cannot be relied on: late watches, lost answers, refusals, restarts, pods that come and go."""

from __future__ import annotations

import random
from collections import deque

from pumice.api import duration, kinds, timestamp
from pumice.controllers.queueing import engine, requests, running
from pumice.controllers.workloads import manifests, node_fit
from pumice.controllers.workloads.jobs import tallying
from pumice.sim import errors, structure
from pumice.sim.clock import VirtualClock
from pumice.sim.identity import Key
from pumice.sim.reconciling import StoreWorld
from pumice.sim.store import ObjectStore

OTHERS = {
    "Deployment": manifests.DEPLOYMENT,
    "ControllerRevision": manifests.CONTROLLER_REVISION,
    "CronJob": kinds.BATCH_CRON_JOB,
}
READY = {"type": "Ready", "status": "True"}


class UnreliableWorld:
    """Runs controllers against a store; what goes wrong is drawn from numbers, so a life can be told again."""

    def __init__(self, make, *, pods_end=True, beside=None, clock=None, alone=True):
        self.alone = alone  # whether no other controller looks after the same objects
        self.pods_end = pods_end
        self.busy = False  # whether controllers seem to have much else to do
        self.clock = beside.clock if beside else clock or VirtualClock()
        self.store = beside.store if beside else ObjectStore(self.clock.now)
        self.make = make
        self.notes = []
        self.complaints = []
        self.late = {}
        self.created = []  # keys of pods that controllers have made
        self.judges = []  # called after each write
        self.ends = {}  # uid of a pod that was tracked when it ended or was deleted -> how that counts
        self.world = StoreWorld(self.store, self._create)
        self.store.observe(self._seen)
        self.restart()

    def restart(self):
        self.engine = engine.Engine(self.make(), tell=self.notes.append, complain=self.complaints.append)
        self.late = {kind: deque() for kind in self.engine.watched}
        for kind in self.engine.watched:
            for manifest in self.store.scan(kind):
                self.engine.feed(kind, "ADDED", manifest)
                if self.alone and kind is not kinds.POD:
                    self.engine.observed.names.inherit([manifest["metadata"]["uid"]], self.store.resource_version)

    def create(self, manifest):
        kind = kinds.find(manifest["apiVersion"], manifest["kind"]) or OTHERS[manifest["kind"]]
        home = manifest["metadata"]["namespace"] if kind.namespaced else ""
        self.store.adopt(structure.copied(manifest), Key(kind, home, manifest["metadata"]["name"]))

    def _create(self, manifest):
        self.create(manifest)
        if manifest["kind"] == "Pod":
            self.created.append(Key(kinds.POD, manifest["metadata"]["namespace"], manifest["metadata"]["name"]))

    def _seen(self, key, event_type, manifest):
        if key.kind in self.late:
            self.late[key.kind].append((event_type, manifest))
        if key.kind is kinds.POD and tallying.is_tracked(manifest):
            phase = manifest.get("status", {}).get("phase")
            if phase in ("Succeeded", "Failed"):
                self.ends.setdefault(manifest["metadata"]["uid"], phase)
            elif manifest["metadata"].get("deletionTimestamp"):
                self.ends.setdefault(manifest["metadata"]["uid"], "Failed")

    # ---- what may happen

    def deliver(self, number):
        """Let some watches come some events further."""
        rng = random.Random(number)  # noqa: S311  tells a life again
        for kind, waiting in self.late.items():
            for _ in range(rng.choice((0, 0, 1, 3, len(waiting)))):
                if waiting:
                    self.engine.feed(kind, *waiting.popleft())

    def turn(self, number):
        """Take a turn in which each request may fail; now and then the controller is killed in the middle of it."""
        rng = random.Random(number)  # noqa: S311  tells a life again
        turn = self.engine.take(self.moment())
        while turn is not None and turn.left:
            for step in self.engine.next_steps(turn):
                answer = self.perform(step.request, rng.choice(("", "", "", "", "lost", "away", "refused")))
                if rng.random() < 0.04:
                    self.restart()
                    return
                self.engine.answered(turn, step, answer, self.clock.now())
        if turn is not None:
            self.engine.finish(turn, self.moment())

    def perform(self, request, fault=""):
        if fault == "away":
            return requests.Answer(code="unavailable", message="away")
        if fault == "refused":
            return requests.Answer(code="refused", message="exceeded quota")
        answer = self.world.perform(request)
        for judge in self.judges:
            judge()
        return requests.Answer(code="unknown", message="lost") if fault == "lost" else answer

    def pass_time(self, number):
        self.clock.advance((number % 40) * duration.SECOND // 2)

    def kubelet(self, number):
        """Let one pod take a step: it starts, ends, or is gone."""
        pods = list(self.store.scan(kinds.POD))
        if pods:
            end = "Failed" if number % 7 == 0 else "Succeeded"
            self.step_pod(pods[number % len(pods)], end if self.pods_end else None)

    def step_pod(self, pod, end=None):
        key = Key(kinds.POD, pod["metadata"]["namespace"], pod["metadata"]["name"])
        phase = pod.get("status", {}).get("phase", "Pending")
        if pod["metadata"].get("deletionTimestamp"):
            self.store.delete(key, grace=0)
        elif phase == "Pending":
            node = node_fit.node_of(pod) or "n"
            self.store.overwrite(key, {**pod, "spec": {**pod["spec"], "nodeName": node}})
            when = timestamp.format_timestamp(self.clock.now() // 1_000_000 * 1_000_000)
            self.store.patch_status(
                key, {"status": {"phase": "Running", "conditions": [{**READY, "lastTransitionTime": when}]}}
            )
        elif phase == "Running" and end:
            when = timestamp.format_timestamp(self.clock.now() // 1_000_000 * 1_000_000)
            unready = [{**READY, "status": "False", "lastTransitionTime": when}]
            self.store.patch_status(key, {"status": {"phase": end, "conditions": unready}})

    def delete_pod(self, number):
        """Let somebody else delete a pod."""
        pods = list(self.store.scan(kinds.POD))
        if pods:
            metadata = pods[number % len(pods)]["metadata"]
            self.store.delete(Key(kinds.POD, metadata["namespace"], metadata["name"]))

    # ---- the end

    def moment(self):
        return requests.Moment(self.clock.now(), busy=self.busy)

    def settle(self, ending=None, rounds=400):
        """Let nothing go wrong any more until nothing changes: watches catch up, pods start, end if they are to, and go when deleted."""
        for _ in range(rounds):
            before = self.store.resource_version
            for kind, waiting in self.late.items():
                while waiting:
                    self.engine.feed(kind, *waiting.popleft())
            running.run_due(self.engine, self, self.moment)
            for pod in list(self.store.scan(kinds.POD)):
                self.step_pod(pod, ending)
            if self.store.resource_version == before:
                due = self.engine.queue.next_due(self.clock.now())
                if due is None:
                    return
                self.clock.advance_to(due)
        raise AssertionError(f"it does not settle; last said: {self.notes[-3:]} {self.complaints[-1:]}")

    # ---- looking

    def pods(self, owner=None):
        found = self.store.scan(kinds.POD)
        return [pod for pod in found if owner is None or owner in owners(pod)]

    def active(self, owner=None):
        return [
            pod
            for pod in self.pods(owner)
            if not pod["metadata"].get("deletionTimestamp")
            and pod.get("status", {}).get("phase") not in ("Succeeded", "Failed")
        ]

    def get(self, kind, name, namespace="a"):
        return self.store.find(Key(kind, namespace if kind.namespaced else "", name))

    def patch(self, kind, name, body, namespace="a"):
        try:
            self.store.patch(Key(kind, namespace, name), body)
        except errors.NotFoundError:
            return


def owners(manifest):
    return [each["uid"] for each in manifest["metadata"].get("ownerReferences") or ()]


def template(app="x", image="i", **spec):
    return {"metadata": {"labels": {"app": app}}, "spec": {"containers": [{"name": "c", "image": image}], **spec}}


def workload(api_version, kind, name="w", **spec):
    stated = {"selector": {"matchLabels": {"app": "x"}}, "template": template(), **spec}
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name, "namespace": "a"}, "spec": stated}
