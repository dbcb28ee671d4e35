"""Lives of full clusters in which many jobs wait for victims, and everything around them changes now and then: nodes, queues, classes, their own pods and groups, the time, the configuration and the scheduler itself."""

from __future__ import annotations

from eviction_holders import KNOWN, POLICIES, Life, policy

import recount
from builders import node, priority_class, queue
from pumice.api import duration, kinds
from pumice.cache.cache import Cache
from pumice.framework import configuration, registry
from pumice.framework.engine import Engine
from pumice.scheduler import Options, Scheduler

CYCLES = 12


class TakenScheduler(Scheduler):
    """A scheduler that takes some shortcuts."""

    taken = None

    def _bring_to_life(self, configuration):
        known, cluster = registry.installed(), self.cache.cluster
        return Engine(configuration, known, cluster, observer=self._observer, taken=self.taken)


class Restless(Life):
    """One life, of a scheduler that takes some shortcuts; everything that happens in it follows from its seed and from what is decided."""

    def __init__(self, seed, name, taken):
        super().__init__(seed, name)
        self.name, self.rested = name, 0
        self.kind = type("Taking", (TakenScheduler,), {"taken": taken})
        self._begin()

    def _begin(self):
        """Start a scheduler that knows nothing but what the cluster says."""
        self.cache = Cache(self.cluster, Options())
        loaded = configuration.load(policy(self.name), KNOWN, "config")
        self.scheduler = self.kind(self.cache, loaded, self.cluster.clock.now)
        self.cluster.restart(self.cache)

    def told(self):
        """Live, and say in every cycle what was sent, what is held, who waits and when the next cycle is due."""
        for _ in range(CYCLES):
            self._arrive()
            asked = self.pick.random() < 0.05
            self.cluster.pump()
            if asked:
                self.scheduler.cycle(lambda explainer: [explainer.job(key) for key in self.cache.cluster.jobs])
            else:
                self.scheduler.cycle()
            assert not self.scheduler.failures, self.scheduler.failures
            model, sent = self.cache.cluster, sorted(self.cluster.sent)
            self.cluster.sent = []
            recount.check(model)
            self.rested += len(self.rests())
            holds = {uid: (hold.node, hold.victims) for uid, hold in self.scheduler.reservations.holds.items()}
            yield sent, holds, sorted(model.pending_jobs), self.scheduler.wake
            self._go_on()

    def rests(self):
        """Name who would be left out of the next cycle, if nothing happened."""
        kept = self.scheduler.engine.lasting.get("resting")
        return sorted(kept.noted) if kept is not None else []

    def _go_on(self):
        pick = self.pick
        if pick.random() < 0.3:
            # The API server is slow: what was sent is not performed before the next cycle.
            self.cluster.clock.advance(duration.SECOND)
            return
        self.cluster.settle()
        if pick.random() < 0.4:
            self._leave()
        if pick.random() < 0.4:
            self._change()
        self.cluster.advance(duration.SECOND * pick.choice([1] * 9 + [31, 65]))

    def _change(self):
        pick, happens = self.pick, self.pick.random()
        nodes = sorted(each["metadata"]["name"] for each in self.cluster.store.scan(kinds.NODE))
        if happens < 0.3:
            labels = {"zone": pick.choice("aab")}
            chosen, cpu = pick.choice([*nodes, f"n{len(nodes)}"]), pick.choice(["3", "4", "4", "6"])
            self.cluster.apply([node(chosen, cpu, "32Gi", labels=labels, cordoned=pick.random() < 0.2)])
        elif happens < 0.4 and len(nodes) > 2:
            self.cluster.delete([f"node/{pick.choice(nodes)}"])
        elif happens < 0.55:
            state = pick.choice(["Open", "Open", "Closed"])
            self.cluster.apply(
                [queue(pick.choice(self.queues), state=state, weight=pick.randint(1, 3), **self._limits())]
            )
        elif happens < 0.6:
            self.cluster.apply([priority_class("mid", pick.choice([5, 50, 500]))])
        elif happens < 0.8:
            self._change_somebody()
        elif happens < 0.9:
            self._begin()
        else:
            self.name = pick.choice(list(POLICIES))
            self.scheduler.reconfigure(configuration.load(policy(self.name), KNOWN, "config"))

    def _change_somebody(self):
        """Let somebody who waits, or its group, be another one, or go."""
        pods = [each for each in self.cluster.store.scan(kinds.POD) if not each["spec"].get("nodeName")]
        if not pods:
            return
        found = self.pick.choice(sorted(pods, key=lambda each: each["metadata"]["name"]))
        meta, happens = found["metadata"], self.pick.random()
        name, space = meta["name"], meta["namespace"]
        if happens < 0.3:
            self.cluster.delete([f"pod/{space}/{name}"], grace=0)
        elif happens < 0.6:
            noted = {**meta["annotations"], "volcano.sh/task-priority": str(self.pick.randint(1, 9))}
            self._merge("v1", "Pod", name, space, {"metadata": {"annotations": noted}})
        else:
            wanted = {"minMember": self.pick.randint(0, 2), "priorityClassName": self.pick.choice(["mid", "high"])}
            self._merge("scheduling.volcano.sh/v1beta1", "PodGroup", name.rpartition("-")[0], space, {"spec": wanted})

    def _merge(self, version, kind, name, space, change):
        head = {"apiVersion": version, "kind": kind, "metadata": {"name": name, "namespace": space}}
        change = {**change, "metadata": {**head["metadata"], **change.get("metadata", {})}}
        self.cluster.merge([{**head, **change}])
