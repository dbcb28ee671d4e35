"""An object of which one thing has changed is what it would be if it had come like that: nothing that a decision may read is passed over."""

from __future__ import annotations

import copy

import pytest

import recount
from builders import GROUP_NAME, Desk, group, node, pod, queue
from pumice.api import kinds, names

OWNER = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "r", "controller": True}
AVOIDING = {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": "kubernetes.io/hostname"}
AVOIDS = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [AVOIDING]}}
POLICY = [{"name": "ring", "subGroupSize": 1, "minSubGroups": 1, "matchLabelKeys": ["rank"]}]
NATIVE = {
    "apiVersion": kinds.NATIVE_POD_GROUP.api_version,
    "kind": "PodGroup",
    "metadata": {"name": "n", "namespace": "a", "uid": "native.n", "labels": {"z": "1"}, "annotations": {"z": "1"}},
    "spec": {"schedulingPolicy": {"gang": {"minCount": 1}}},
}


def objects():
    """Every kind that is held against what was known of it, one of each."""
    running = {"restartPolicy": "Never", "schedulingGroup": {"podGroupName": "n"}}
    return {
        "waiting": pod("waiting-0", "g", cpu="1", labels={"rank": "0"}, annotations={"z": "1"}),
        "running": pod("running-0", "g", cpu="1", node="n1", labels={"rank": "1"}),
        "claiming": pod("claiming-0", "k", resourceClaims=[{"name": "gpu", "resourceClaimTemplateName": "t"}]),
        "avoiding": pod("avoiding-0", "h", cpu="1", affinity=AVOIDS),
        "single": pod("single-0", cpu="1"),
        "group": group("g", 1, queue="q", subGroupPolicy=POLICY),
        "other group": group("h", 1),
        "third group": group("k", 1),
        "native": copy.deepcopy(NATIVE),
        "member": pod("member-0", cpu="1", **running),
        "queue": queue("q"),
        "other queue": queue("r"),
        "node": node("n1", labels={"z": "1"}),
    }


def both(*changes):
    """Change several things at once, as a kubelet does."""

    def change(manifest):
        for each in changes:
            each(manifest)

    return change


def reports(cpu):
    """Let a kubelet say what a container has."""
    resources = {"requests": {"cpu": cpu}}
    return put(
        [{"name": "c", "allocatedResources": {"cpu": cpu}, "resources": resources}], "status", "containerStatuses"
    )


def put(value, *path):
    """Change one thing: it stands there, by the names that lead to it."""

    def change(manifest):
        *way, last = path
        for name in way:
            manifest = manifest[name] if isinstance(manifest, list) else manifest.setdefault(name, {})
        manifest[last] = value

    return change


CHANGES = {
    "labels": ("waiting", put({"rank": "2"}, "metadata", "labels")),
    "labels that others avoid": ("waiting", put({"rank": "0", "app": "web"}, "metadata", "labels")),
    "labels of a running pod": ("running", put({"rank": "0"}, "metadata", "labels")),
    "its role": ("waiting", put("m", "metadata", "annotations", "volcano.sh/task-spec")),
    "its group": ("waiting", put("k", "metadata", "annotations", GROUP_NAME)),
    "no group": ("waiting", put({"z": "1"}, "metadata", "annotations")),
    "that it may be evicted": ("running", put("false", "metadata", "annotations", "volcano.sh/preemptable")),
    "its owner, as it gets its node": (
        "waiting",
        both(put([{**OWNER, "kind": "DaemonSet"}], "metadata", "ownerReferences"), put("n1", "spec", "nodeName")),
    ),
    "another annotation of one that names no group, as it gets its node": (
        "single",
        both(put({"z": "2"}, "metadata", "annotations"), put("n1", "spec", "nodeName")),
    ),
    "another annotation, as it gets its node": (
        "waiting",
        both(put({"z": "2", GROUP_NAME: "g"}, "metadata", "annotations"), put("n1", "spec", "nodeName")),
    ),
    "its owner": ("waiting", put([OWNER], "metadata", "ownerReferences")),
    "its end": ("running", put("2026-01-01T00:00:00Z", "metadata", "deletionTimestamp")),
    "the end of one that waits": ("waiting", put("2026-01-01T00:00:00Z", "metadata", "deletionTimestamp")),
    "its node": ("waiting", put("n1", "spec", "nodeName")),
    "its node, and that it has more there": ("waiting", both(put("n1", "spec", "nodeName"), reports("2"))),
    "that it has more": ("running", reports("2")),
    "its gate": ("waiting", put([{"name": "example.com/gate"}], "spec", "schedulingGates")),
    "its tolerations": ("waiting", put([{"key": "k", "operator": "Exists"}], "spec", "tolerations")),
    "what it asks for": ("waiting", put({"cpu": "2"}, "spec", "containers", 0, "resources", "requests")),
    "its phase": ("running", put("Succeeded", "status", "phase")),
    "its nomination": ("waiting", put("n1", "status", "nominatedNodeName")),
    "the claim made for it": (
        "claiming",
        put([{"name": "gpu", "resourceClaimName": "c"}], "status", "resourceClaimStatuses"),
    ),
    "its priority": ("waiting", put(7, "spec", "priority")),
    "minMember": ("group", put(2, "spec", "minMember")),
    "the queue of a group": ("group", put("r", "spec", "queue")),
    "annotations of a group": ("group", put({"volcano.sh/preemptable": "true"}, "metadata", "annotations")),
    "labels of a group": ("group", put({"volcano.sh/preemptable": "true"}, "metadata", "labels")),
    "the uid of a group": ("group", put("another", "metadata", "uid")),
    "the status of a group": ("group", put({"phase": "Inqueue"}, "status")),
    "the policies of a group": ("group", put([], "spec", "subGroupPolicy")),
    "minCount": ("native", put(2, "spec", "schedulingPolicy", "gang", "minCount")),
    "annotations of a native group": ("native", put({"volcano.sh/preemptable": "true"}, "metadata", "annotations")),
    "labels of a native group": ("native", put({"volcano.sh/preemptable": "true"}, "metadata", "labels")),
    "the uid of a native group": ("native", put("another", "metadata", "uid")),
    "the priority of a member": ("member", put(7, "spec", "priority")),
    "what a member asks for": ("member", put({"cpu": "2"}, "spec", "containers", 0, "resources", "requests")),
    "how a native group goes": ("native", put("PodGroup", "spec", "disruptionMode")),
    "the weight of a queue": ("queue", put(3, "spec", "weight")),
    "what a queue may hold": ("queue", put({"cpu": "3"}, "spec", "capability")),
    "annotations of a queue": ("queue", put({"volcano.sh/hierarchy": "root/q"}, "metadata", "annotations")),
    "the uid of a queue": ("queue", put("another", "metadata", "uid")),
    "the state of a queue": ("queue", put({"state": "Closed"}, "status")),
    "labels of a node": ("node", put({"z": "2"}, "metadata", "labels")),
    "what a node offers": ("node", put("3", "status", "allocatable", "cpu")),
    "a cordon": ("node", put(True, "spec", "unschedulable")),
    "readiness": ("node", put([{"type": "Ready", "status": "False"}], "status", "conditions")),
    "taints": ("node", put([{"key": "k", "effect": "NoSchedule"}], "spec", "taints")),
}


def picture(desk):
    """What decisions read of pods, groups, queues and nodes, in no order."""
    cluster = desk.cluster
    tasks = {
        uid: (
            (task.status, task.node and task.node.name, task.job and task.job.key, task.sub_job and task.sub_job.key),
            (task.role, task.priority, task.preemptable, task.gated, task.best_effort, task.stays, task.nominated),
            (task.shape.constraints, task.bond.kin.labels, task.pod.metadata),
        )
        for uid, task in cluster.tasks.items()
    }
    jobs = {
        key: (
            (job.uid, job.queue, job.phase, job.bad, job.native, job.whole, job.priority),
            (job.min_member, job.min_task_member, job.min_resources, job.policies, job.annotations),
            (job.preemptable, job.preemptable_set, job.group and job.group.metadata),
        )
        for key, job in cluster.jobs.items()
    }
    queues = {
        name: (each.object, each.weight, each.capability, each.guarantee, each.status.state, set(each.jobs))
        for name, each in cluster.queues.items()
    }
    nodes = {
        record.name: (record.object, record.labels, record.taints, record.unschedulable, record.ready)
        for record in cluster.nodes.records
    }
    offered = {
        name: cluster.vocabulary.amounts(cluster.nodes.allocatable[cluster.nodes.by_name[name].row]) for name in nodes
    }
    return tasks, jobs, queues, nodes, offered, recount.actual(cluster), set(cluster.nominated)


def desk_with(made):
    return Desk().feed(*made.values()).apply()


@pytest.mark.parametrize("change", CHANGES)
def test_an_object_of_which_one_thing_changes_is_what_it_would_be_if_it_had_come_so(change):
    which, what = CHANGES[change]
    desk, before = desk_with(objects()), picture(desk_with(objects()))
    changed = objects()
    what(changed[which])
    desk.modify(changed[which]).apply()
    expected = picture(desk_with(changed))
    assert picture(desk) == expected
    assert expected != before, "nothing has changed: this says nothing"


@pytest.mark.parametrize(("cpu", "stays"), [("1", True), ("2", False)])
def test_a_pod_that_gets_its_node_and_what_it_asked_for_as_others_did_stays_the_task_it_was(cpu, stays):
    pods = [pod(f"p-{n}", "g", cpu="1") for n in range(2)]
    desk = Desk().feed(node("n1"), group("g", 2), *pods).apply()
    before = desk.task("p-1")
    for each in pods:
        both(put("n1", "spec", "nodeName"), reports(cpu))(each)
        desk.modify(each).apply()
    assert (desk.task("p-1") is before) is stays


def test_a_pod_that_gets_its_node_with_the_labels_of_that_node_stays_the_task_it_was():
    desk = Desk().feed(node("n1"), group("g"), pod("p", "g", cpu="1")).apply()
    before = desk.task("p")
    desk.modify(pod("p", "g", cpu="1", node="n1", labels={names.ZONE: "z", names.REGION: "r"})).apply()
    assert desk.task("p") is before
    assert before.node is desk.node("n1")


def test_a_pod_of_which_nothing_is_reported_any_more_is_what_it_would_be_if_nothing_had_been():
    reported, plain = objects(), objects()
    reports("2")(reported["running"])
    desk = desk_with(reported).modify(plain["running"]).apply()
    assert picture(desk) == picture(desk_with(plain))


@pytest.mark.parametrize("which", ["waiting", "running", "group", "native", "queue"])
def test_what_says_nothing_new_asks_for_no_cycle(which):
    made = objects()
    desk = desk_with(made)
    before = desk.cluster.changed
    made[which]["metadata"]["resourceVersion"] = "7"
    desk.modify(made[which]).apply()
    assert desk.cluster.changed == before
