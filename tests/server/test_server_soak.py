"""After weeks of coming and going nothing may be left behind: every container is as small as it was before anybody came."""

from __future__ import annotations

import random

import pytest
from server_desk import Lines, read

import builders
from containers import entries
from pumice.cache.cache import Cache
from pumice.cache.effects import Bind, Evict, Failure, Outcome, Patch, Read
from pumice.framework import configuration, registry
from pumice.model import change_log, kinship
from pumice.scheduler import Scheduler
from pumice.server import reporting
from pumice.server.configuration import policy
from pumice.server.health import api_silence, overdue
from pumice.server.metrics import job_samples
from pumice.server.surroundings import Surroundings
from pumice.server.threads import deciding, mailbox

CYCLES = 300
SHARING = """
actions: "enqueue, allocate, preempt, reclaim, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}, {name: sla}, {name: pdb}]
- plugins: [{name: overcommit}, {name: drf}, {name: predicates}, {name: PLUGIN}, {name: nodeorder}, {name: binpack}]
- plugins: [{name: resourcequota}, {name: task-topology}, {name: nodegroup}, {name: network-topology-aware}]
"""
CONFIGURATIONS = {
    "proportion": SHARING.replace("PLUGIN", "proportion"),
    "capacity": SHARING.replace("PLUGIN", "capacity"),
    "kube-batch": f"compatibility: kube-batch\n{SHARING.replace('PLUGIN', 'proportion')}",
}
# Bounded by themselves, or emptied at the next use.
BOUNDED = (
    "._changes",
    "._lines",
    "._latest",
    "._free",
    ".looked_at",
    ".register._log",
    "._known_patterns",
    ".nodes._attributes",
    "._observer._stages",
    ".evaluator.reasons.",
    ".evaluator._kept",
    ".evaluator._masks",
    ".engine._slots[]()._known",
    ".cluster.objects",
    ".exposition._histograms.",
    ".engine.lasting[]._places",  # of the queues that there were when a vote was last asked for
)
# How much may be left of what is only looked through when it has grown.
SPARE = {
    "Reporter._job_samples._retries": job_samples.SPARE,
    "Reporter.meter.placed": job_samples.SPARE,
    "Cache.publisher._retry_pauses._kept": 2,  # of the queues that stay
    "Cache.cluster.job_changes._rows": change_log.LIMIT,
    "Cache.cluster.listings._rows": change_log.LIMIT,
    "Cache.cluster.group_changes._rows": change_log.LIMIT,
    "Cache.cluster.nodes.by_name": 2,  # of nodes that only pods named, until nodes are put in order again
    "Cache.cluster.nodes.records": 2,
    "Scheduler.engine.lasting[]": 3,  # a node for each resource, which had most of it
    "Cache.cluster.nodes._restated": 2,  # until somebody asks about attributes again
    "Cache.cluster.kinship.counts": 2 * kinship.FEW_COUNTS,  # so many are kept before anybody sweeps
    "Cache.cluster.kinship._counts_by_hook": 2 * kinship.FEW_COUNTS,
    "Cache.cluster.kinship._counts_by_hook[]": 2 * kinship.FEW_COUNTS,
}


def sizes(*roots):
    """Count the entries of every container that can be reached and has no bound of its own."""
    return {path: size for path, size in entries(*roots).items() if not any(part in path for part in BOUNDED)}


class Soak:
    """A scheduler with everything around it, and a world in which anything may come, change, fail and go."""

    def __init__(self, name):
        self.random = random.Random(name)  # noqa: S311  the same story every time
        self.now, self.made, self.alive, self.is_calm = builders.NOW, 0, {}, False
        lines, box = Lines(), mailbox.Mailbox()
        known = registry.catalog()
        self.reporter = reporting.Reporter(
            read(),
            lines.log,
            policy.Policy(known, lines.log),
            box,
            lambda: self.now,
            api_silence=api_silence.ApiSilence(lambda: 0.0),
            watch=overdue.Watch(),
        )
        self.world = builders.World(self.reporter.meter)
        self.cache = Cache(self.world)
        self.reporter.meter.look_at(self.cache.cluster)
        loaded = configuration.load(CONFIGURATIONS[name], known)
        self.scheduler = Scheduler(self.cache, loaded, lambda: self.now, observer=self.reporter.meter)
        self.decider = deciding.Decider(
            self.scheduler, box, lines.log, self.reporter, period=1, around=Surroundings(wall=lambda: self.now)
        )
        self.lines = lines
        self.reporter.follow(self.scheduler, self.decider)
        for queue in ("root", "default"):
            self.cache.feed(builders.kind_of(builders.queue(queue)), "ADDED", builders.queue(queue))

    @property
    def sizes(self):
        return sizes(self.cache, self.scheduler, self.reporter)

    def put(self, manifest):
        metadata = manifest["metadata"]
        key = (manifest["kind"], metadata.get("namespace", ""), metadata["name"])
        self.made += 1
        metadata["resourceVersion"] = str(self.made)
        event = "MODIFIED" if key in self.alive else "ADDED"
        self.alive[key] = manifest
        self.cache.feed(builders.kind_of(manifest), event, manifest)

    def drop(self, key):
        """Delete an object; as after a gap in the watch, often only its identity is known."""
        manifest = self.alive.pop(key)
        metadata = {k: v for k, v in manifest["metadata"].items() if k in ("name", "namespace", "uid")}
        if self.random.random() < 0.5:
            manifest = {"apiVersion": manifest["apiVersion"], "kind": manifest["kind"], "metadata": metadata}
        self.cache.feed(builders.kind_of(manifest), "DELETED", manifest)

    def cycle(self):
        self.decider.cycle()
        self.now += builders.SECOND
        for effect in self.world.of(Bind, Evict, Patch, Read):
            self.answer(effect)
        self.reporter.meter.write_failures.tell()
        self.world.effects.clear()

    def answer(self, effect):
        code = self.random.choice([None] * 6 + ["unknown", "refused", "notfound", "conflict", "unavailable"])
        code = None if self.is_calm else code
        key = ("Pod", effect.namespace, effect.name)
        if isinstance(effect, Bind) and code in (None, "unknown") and (pod := self.alive.get(key)):
            pod = {**pod, "spec": {**pod["spec"], "nodeName": effect.node}, "status": {"phase": "Running"}}
            self.put(pod)
        if isinstance(effect, Evict) and code is None and key in self.alive:
            self.drop(key)
        read = self.alive.get(key) if isinstance(effect, Read) else None
        if isinstance(effect, Read):
            code = None if read else "notfound"
        outcome = Outcome(effect=effect, failure=Failure(code, "as the test says") if code else None, object=read)
        self.reporter.meter.answered(outcome)
        self.cache.settled(outcome)

    def live(self):
        """Let a few things happen."""
        draw, n = self.random, self.made
        for _ in range(6):
            draw.choice(
                [self._gang, self._gang, self._gang, self._single, self._node, self._rest, self._bad, self._go]
            )(n)
            n += 1

    def _gang(self, n):
        size = self.random.randint(1, 3)
        queue = self.random.choice(["default", f"q{n}", f"nowhere-{n}"])
        if queue == f"q{n}":
            self.put(builders.queue(queue, weight=2, reclaimable=True))
        self.put(builders.group(f"g{n}", size, queue=queue, phase=self.random.choice(["", "Inqueue", f"odd-{n}"])))
        for i in range(size):
            self.put(
                builders.pod(f"p{n}-{i}", f"g{n}", cpu=self.random.choice(["1", "2", "90"]), labels={f"l{n}": "v"})
            )

    def _single(self, n):
        group = self.random.choice(["", f"missing-{n}"])
        pod = builders.pod(f"s{n}", group, cpu="1", node=self.random.choice(["", f"ghost-{n}"]))
        owner = {"apiVersion": "v1", "kind": "X", "name": "x", "uid": f"owner-{n}", "controller": True}
        if not group:
            pod["metadata"]["ownerReferences"] = [owner]
            budget = builders.metadata(f"b{n}", "a", ownerReferences=[owner])
            spec = {"minAvailable": 1, "selector": {"matchLabels": {"a": f"{n}"}}}
            self.put({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": budget, "spec": spec})
        self.put(pod)

    def _node(self, n):
        self.put(
            builders.node(f"n{n % 12}", cpu="4", labels={"zone": f"z{n}"}, ready=self.random.choice([None, "True"]))
        )

    def _rest(self, n):
        labels = {"team": f"t{n}"}
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": builders.metadata(f"ns{n}", labels=labels)}
        self.put(namespace)
        claim = builders.metadata(f"c{n}", "a")
        spec = {"accessModes": ["ReadWriteOnce"], "volumeName": f"v{n}"}
        self.put({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": claim, "spec": spec})
        service = {"selector": {"app": f"a{n}"}}
        self.put({"apiVersion": "v1", "kind": "Service", "metadata": builders.metadata(f"s{n}", "a"), "spec": service})
        member = {"type": "Node", "selector": {"regexMatch": {"pattern": f"n{n % 12}$"}}}
        hyper = {"tier": 1, "members": [member]}
        api = "topology.volcano.sh/v1alpha1"
        self.put({"apiVersion": api, "kind": "HyperNode", "metadata": builders.metadata(f"h{n}"), "spec": hyper})
        term = {"labelSelector": {"matchLabels": {f"l{n}": "v"}}, "topologyKey": "zone"}
        affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
        self.put(builders.group(f"r{n}"))
        mounted = [{"name": "d", "persistentVolumeClaim": {"claimName": f"c{n}"}}]
        self.put(builders.pod(f"r{n}", f"r{n}", cpu="1", affinity=affinity, volumes=mounted))

    def _bad(self, n):
        """Objects that make no sense."""
        self.put(builders.node(f"bad{n}", cpu="-1"))
        self.put(builders.queue(f"bad{n}", capability={"cpu": "many"}))
        self.put(builders.group(f"bad{n}", -1))
        self.put(builders.pod(f"bad{n}", f"bad{n}", cpu="abc"))
        self.put({**builders.priority_class(f"bad{n}", 1), "value": "high"})
        quota = {"hard": {"cpu": "minus"}}
        metadata = builders.metadata(f"bad{n}", "a")
        self.put({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "spec": quota})
        hyper = {"tier": -1, "members": []}
        api = "topology.volcano.sh/v1alpha1"
        self.put({"apiVersion": api, "kind": "HyperNode", "metadata": builders.metadata(f"bad{n}"), "spec": hyper})

    def _go(self, _):
        keys = list(self.alive)
        self.random.shuffle(keys)
        for key in keys[: len(keys) // 2]:
            self.drop(key)


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_nothing_is_left_of_what_came_and_went(name):
    soak = Soak(name)
    soak.cycle()
    soak.cycle()
    before = soak.sizes
    for _ in range(CYCLES):
        soak.live()
        soak.cycle()
    soak.is_calm = True
    for key in list(soak.alive):
        soak.drop(key)
    for _ in range(4):
        soak.cycle()
        soak.now += 2_000 * builders.SECOND
    soak.cycle()
    assert not soak.lines.of("a plugin or action broke down")
    left = {path: size for path, size in soak.sizes.items() if size > before.get(path, 0) + SPARE.get(path, 0)}
    assert left == {}
    assert len(soak.cache.cluster.queue_sums.allocated) < 200
