"""Whatever the watches bring, in whatever order: after each batch every sum of the model equals a recount from scratch."""

from __future__ import annotations

import copy

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import recount
from builders import Desk, group, node, pod, queue
from drawing import drawn
from pumice.cache.effects import Bind, Read
from pumice.model import totals
from pumice.model.statuses import Status
from pumice.plugins.sharing.minima import Minima

NODES = ("n0", "n1", "n2", "lost")
GROUPS = ("g", "h", "")
ZONE = "topology.kubernetes.io/zone"
POLICY = [{"name": "ring", "subGroupSize": 1, "minSubGroups": 1, "matchLabelKeys": ["rank"]}]
BY_ZONE = [{"name": "ring", "subGroupSize": 1, "minSubGroups": 1, "matchLabelKeys": [ZONE]}]
AVOIDING = {"labelSelector": {"matchLabels": {ZONE: "zone of n1"}}, "topologyKey": "kubernetes.io/hostname"}
GPU, PAGES = "nvidia.com/gpu", "hugepages-2Mi"
STATUSES = {
    ("Pending", False): Status.PENDING,
    ("Pending", True): Status.BOUND,
    ("Running", False): Status.RUNNING,
    ("Running", True): Status.RUNNING,
    ("Succeeded", False): Status.SUCCEEDED,
    ("Succeeded", True): Status.SUCCEEDED,
    ("", False): Status.UNKNOWN,
    ("", True): Status.UNKNOWN,
}

number = st.integers(0, 7)
nodes = st.builds(
    lambda name, cpu, pods, gpu, pages, away: (
        "node",
        node(name, cpu=str(cpu), pods=str(pods), labels={"pool": "web" if away == 7 else "batch"})
        | {"extra": {GPU: gpu, PAGES: pages}},
    ),
    st.sampled_from(NODES[:3]),
    st.integers(0, 8),
    number,
    st.sampled_from([None, None, "0", "2"]),
    st.sampled_from([None, None, None, "64Mi"]),
    number,
)


@st.composite
def pods(draw):
    requests = draw(
        st.dictionaries(st.sampled_from(["cpu", "memory", GPU, PAGES, "example.com/none"]), st.just("1"), max_size=3)
    )
    if draw(number) == 7:
        requests["cpu"] = draw(st.sampled_from(["-1", "abc", "1e30"]))
    name = draw(st.sampled_from([f"p-w-{i}" for i in range(6)]))
    made = pod(
        name,
        draw(st.sampled_from(GROUPS)),
        requests=requests,
        node=draw(st.sampled_from(["", "", *NODES])),
        deleting=draw(number) == 0,
        role=draw(st.sampled_from(["", "m"])),
        labels=draw(st.sampled_from([{}, {"rank": "0"}, {"rank": "1"}])),
        ports=draw(st.sampled_from([(), [{"hostPort": 80}]])),
        scheduler=draw(st.sampled_from(["volcano", "volcano", "volcano", "else"])),
    )
    made["status"]["phase"] = draw(st.sampled_from(["Pending", "Pending", "Running", "Succeeded", ""]))
    if draw(number) == 7:
        avoided = {"requiredDuringSchedulingIgnoredDuringExecution": [AVOIDING]}
        made["spec"]["affinity"] = {"podAntiAffinity": avoided}
    return "pod", made


@st.composite
def groups(draw):
    spec = {"subGroupPolicy": policy} if (policy := draw(st.sampled_from([None, POLICY, BY_ZONE]))) else {}
    if draw(st.booleans()):
        spec["minResources"] = {"cpu": draw(st.sampled_from(["1", "3"])), GPU: "1"}
    minimum = draw(st.sampled_from([0, 1, 2, 5, -3, 2**40]))
    return "group", group(
        draw(st.sampled_from(GROUPS[:2])),
        minimum,
        queue=draw(st.sampled_from(["", "q", "r"])),
        phase=draw(st.sampled_from(["", "Inqueue", "Running"])),
        minTaskMember={"m": draw(st.integers(0, 2))},
        **spec,
    )


queues = st.builds(lambda name, weight: ("queue", queue(name, weight=weight)), st.sampled_from(["q", "r"]), number)
gone = st.tuples(st.just("gone"), st.tuples(st.sampled_from(["Pod", "Pod", "Node", "PodGroup", "Queue"]), number))
answers = st.tuples(st.just("answer"), number)
pauses = st.sampled_from([("apply", 0), ("cycle", 0), ("cycle", 1), ("cycle", 40)])
events = st.lists(st.one_of(pods(), pods(), nodes, groups(), queues, gone, answers, pauses), max_size=30)


class Stream:
    """Feeds events as a watch would, and remembers what is there."""

    def __init__(self, made):
        self.desk = made
        self.there = {}
        self.offered = {"cpu", "memory", "pods"}
        self.answered = 0
        self.minima = Minima()
        self.totals = totals.Totals(made.cluster.nodes, "taken")

    def take(self, event):
        kind, value = event
        if kind == "gone":
            self._delete(value)
        elif kind == "answer":
            self._answer(value)
        elif kind == "cycle":
            self.desk.cycle(value)
            assert self.desk.scheduler.failures == []
        elif kind == "apply":
            self.desk.apply()
        else:
            self._put(copy.deepcopy(value))

    def _put(self, manifest):
        if "extra" in manifest:
            manifest["status"]["allocatable"] |= {n: v for n, v in manifest.pop("extra").items() if v is not None}
        key = (manifest["kind"], manifest["metadata"]["name"])
        known = self.there.get(key)
        if known is not None and key[0] == "Pod" and known["spec"]["nodeName"]:
            manifest["spec"]["nodeName"] = known["spec"]["nodeName"]
        self.there[key] = manifest
        self.desk.feed(manifest, event="ADDED" if known is None else "MODIFIED")

    def _delete(self, which):
        kind, number = which
        keys = [key for key in self.there if key[0] == kind]
        if keys:
            self.desk.delete(self.there.pop(keys[number % len(keys)]))

    def _answer(self, how):
        """Answer the oldest effect that has no answer yet."""
        waiting = self.desk.world.of(Bind, Read)[self.answered :]
        if not waiting:
            return
        self.answered += 1
        effect = waiting[0]
        present = self.there.get(("Pod", effect.name))
        if isinstance(effect, Read):
            self.desk.settle(effect, None if present else "notfound", read=present)
        elif how < 3 and present is not None and not present["spec"]["nodeName"]:
            self.desk.settle(effect, "unknown" if how == 0 else None)
            # As an API server does, with labels of the node on the pod.
            labels = present["metadata"]["labels"] | {ZONE: f"zone of {effect.node}"}
            self._put(
                present
                | {"spec": present["spec"] | {"nodeName": effect.node}}
                | {"metadata": present["metadata"] | {"labels": labels}}
            )
        else:
            self.desk.settle(effect, ("conflict", "unknown", "refused", "unavailable", "notfound")[how % 5])

    def check(self):
        self.desk.apply()
        cluster = self.desk.cluster
        recount.check(cluster)
        self._check_derived(cluster)
        wanted = {m["metadata"]["uid"]: m for (kind, _), m in self.there.items() if kind == "Pod" and _taken(m)}
        assert set(cluster.tasks) == set(wanted)
        for uid, manifest in wanted.items():
            _check_status(cluster.tasks[uid], manifest)
        self._check_nodes(cluster)

    def _check_derived(self, cluster):
        """What follows the jobs and nodes that changed is what would be worked out from all of them."""
        fresh = Minima()
        fresh.refresh(cluster)
        self.minima.refresh(cluster)
        for name in ("minimum", "queue_rows", "lacking", "elastic", "lacking_anywhere"):
            assert getattr(self.minima, name).tolist() == getattr(fresh, name).tolist(), name
        assert cluster.job_at == {job.row: job for job in cluster.jobs.values()}
        by_queue = {}
        for job in cluster.jobs.values():
            by_queue.setdefault(job.queue, set()).add(job.key)
        assert {name: set(keys) for name, keys in cluster.queue_jobs.items() if keys} == by_queue
        assert all(set(queue.jobs) == by_queue.get(name, set()) for name, queue in cluster.queues.items())
        nodes = cluster.nodes
        assert self.totals.vector().tolist() == nodes.used[: nodes.count].sum(axis=0).tolist()
        assert nodes.total("offered").tolist() == nodes.allocatable[: nodes.count].sum(axis=0).tolist()
        left = np.maximum(nodes.allocatable[: nodes.count] - nodes.foreign[: nodes.count], 0)
        assert nodes.total("left by foreigners").tolist() == left.sum(axis=0).tolist()

    def _check_nodes(self, cluster):
        table = cluster.nodes
        mine = {n: m for (k, n), m in self.there.items() if k == "Node" and m["metadata"]["labels"]["pool"] == "batch"}
        assert [record.name for record in table.records[: table.count]] == sorted(mine)
        for name, manifest in mine.items():
            offered = {n: recount.units(n, text) for n, text in manifest["status"]["allocatable"].items()}
            row = cluster.vocabulary.amounts(table.allocatable[table.by_name[name].row])
            assert row == {n: units for n, units in offered.items() if units}
        assert all(record.object is None for record in table.records[table.count :])


def _taken(manifest):
    requests = manifest["spec"]["containers"][0]["resources"]["requests"]
    if requests.get("cpu", "1") != "1":
        return False
    own = manifest["spec"]["schedulerName"] == "volcano"
    return own or (manifest["spec"]["nodeName"] != "" and manifest["status"]["phase"] != "Succeeded")


def _check_status(task, manifest):
    """A pod is what it says, unless a bind of ours is on its way and the pod still waits."""
    phase, bound = manifest["status"]["phase"], bool(manifest["spec"]["nodeName"])
    deleting = "deletionTimestamp" in manifest["metadata"]
    if deleting and phase in ("Pending", "Running"):
        assert task.status in (Status.RELEASING, Status.EVICTING)
    elif task.status == Status.BINDING:
        assert (phase, bound) == ("Pending", False)
    else:
        assert task.status == STATUSES[phase, bound]
    if bound:
        on_node = task.node.name if task.node else ""
        assert on_node == ("" if task.status == Status.SUCCEEDED else manifest["spec"]["nodeName"])


@settings(max_examples=drawn(150), deadline=None)
@given(batches=st.lists(events, max_size=4))
def test_sums_equal_a_recount_after_any_events_in_any_order(batches):
    made = Desk(options=_selecting())
    stream = Stream(made)
    for batch in batches:
        for event in batch:
            stream.take(event)
        stream.check()


def _selecting():
    from pumice.scheduler import Options

    return Options(node_selector=("pool:batch",))


@settings(max_examples=drawn(150), deadline=None)
@given(batches=st.lists(events, max_size=4))
def test_a_pod_that_moves_on_is_what_it_would_be_if_it_were_taken_anew(batches):
    quick, slow = Stream(Desk(options=_selecting())), Stream(Desk(options=_selecting()))
    slow.desk.cache.pods._moves_on = lambda *_: False  # noqa: SLF001  there is no switch: it is what happens, and no shortcut of deciding
    for batch in batches:
        for event in batch:
            quick.take(event)
            slow.take(event)
        quick.desk.apply()
        slow.desk.apply()
        assert _picture(quick.desk) == _picture(slow.desk)


def _picture(desk):
    """Everything about tasks and jobs that a decision may read, whatever order it is listed in."""
    cluster = desk.cluster
    tasks = {
        uid: (
            task.status,
            task.node.name if task.node else "",
            task.job.key if task.job else "",
            task.sub_job.key if task.sub_job else "",
            task.shape.serial,
            (task.pod, task.priority, task.role, task.gated, task.stays, task.nominated, task.creation, task.index),
            (task.retry_at, task.refusal, task.eviction_refused),
            (task.bond.kin.key, task.bond.signature() is None),
        )
        for uid, task in cluster.tasks.items()
    }
    jobs = {
        key: (
            job.tally.counts,
            sorted(job.pending),
            sorted(job.tasks),
            {role: tally.counts for role, tally in job.roles.items()},
            {name: sorted(part.tasks) for name, part in job.sub_jobs.items() if part.tasks},
        )
        for key, job in cluster.jobs.items()
    }
    sent = [str(effect) for effect in desk.world.effects]
    return tasks, jobs, sorted(cluster.pending_jobs), sorted(cluster.nominated), sent


# ---- an API server copies labels of the node to a pod that is bound


def _bound_with_zone(*others, policy=None):
    """Let a pod come back with a node and its zone; returns its task before and after."""
    desk = Desk()
    desk.feed(node("n1"), group("g", 1, **({"subGroupPolicy": policy} if policy else {})), pod("p-w-0", "g"), *others)
    desk.cycle()
    before = next(task for task in desk.cluster.tasks.values() if task.name == "p-w-0")
    desk.modify(pod("p-w-0", "g", node="n1", labels={ZONE: "zone of n1"}))
    desk.apply()
    after = desk.cluster.tasks[before.uid]
    assert (after.node.name, after.pod.metadata.labels) == ("n1", {ZONE: "zone of n1"})
    return before, after


def test_a_pod_that_got_the_zone_of_its_node_stays_the_task_it_was():
    before, after = _bound_with_zone()
    assert after is before


def test_a_pod_whose_zone_some_rule_looks_at_is_counted_by_it():
    avoiding = pod("q-w-0", "h")
    rule = {"requiredDuringSchedulingIgnoredDuringExecution": [AVOIDING]}
    avoiding["spec"]["affinity"] = {"podAntiAffinity": rule}
    _, after = _bound_with_zone(group("h", 1), avoiding)
    assert after.bond.kin.labels == {ZONE: "zone of n1"}


def test_a_pod_whose_zone_says_which_sub_group_it_is_in_moves_there():
    _, after = _bound_with_zone(policy=BY_ZONE)
    assert after.sub_job.key.endswith("g/ring-zone of n1")
