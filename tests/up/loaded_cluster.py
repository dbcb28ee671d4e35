"""A cluster that began with a dump, in this process and in virtual time: its API server, kubelets, node health and controllers, and no scheduler."""

from __future__ import annotations

import asyncio
import itertools
import json

from pumice.api import duration
from pumice.apiserver import cluster, resources
from pumice.controllers import standard
from pumice.controllers.volcano import registry
from pumice.local_cluster import contents, controlling, kubelets, loading, node_health
from pumice.sim.clock import VirtualClock
from pumice.sim.identity import Key
from pumice.sim.store import ObjectStore

MUST_NOT_CHANGE = ("apiVersion", "kind", "spec", "status")


class Clock(VirtualClock):
    speed = 1.0


class LoadedCluster:
    """Lives for as long as it is told to."""

    def __init__(self, path, now):
        self.clock = Clock(now)
        numbers = itertools.count()
        uids = (f"new-{number}" for number in numbers)
        self.store = ObjectStore(self.clock.now, uids.__next__, resources.has_generation)
        self.made = cluster.Cluster(self.store, self.clock.now)
        self.made.start()
        contents.define(self.made)
        self.count = loading.load(self.made, path)
        contents.install(self.made)

    def live(self, minutes):
        """Let it live, a minute at a time, as `pumice up` would run it."""
        asyncio.run(self._live(minutes))

    async def _live(self, minutes):
        health = node_health.NodeHealth(self.store, self.clock, whole=self.store.find(loading.RECORD) is None)
        told = []
        pods = kubelets.Kubelets(
            self.store, self.clock, lambda *note: told.append(note), lambda *_: None, health.is_served
        )
        pods.since = loading.recorded(self.store).at
        pods.adopt()
        every = [*standard.controllers(), *registry.controllers()]
        controllers = controlling.Controlling(self.made, self.clock, every)
        for _ in range(minutes + 1):
            while health.react() + pods.react() + await controllers.look():
                pass
            self.clock.advance_to(self.clock.now() + duration.MINUTE)

    def find(self, manifest):
        resource = self.made.registry.of_kind(manifest["apiVersion"], manifest["kind"])
        home = (manifest["metadata"].get("namespace") or "default") if resource.namespaced else ""
        return self.store.find(Key(resource.kind, home, manifest["metadata"]["name"]))

    def write(self, path, known):
        """Write the objects that a scheduler would read, as `kubectl get -o json` does."""
        found = [each for kind in known for each in self.store.scan(kind)]
        path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": found}))
