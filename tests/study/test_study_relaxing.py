"""Each thing that can keep a job waiting has a relaxation that starts it, told in words with numbers."""

from __future__ import annotations

import pytest
from study_worlds import KNOWN

from pumice.cache.options import Options
from pumice.framework import configuration
from pumice.sim.cluster import SimulatedCluster
from pumice.study import files, search
from pumice.study.rehearsal import Rehearsal

VOLCANO = "scheduling.volcano.sh/v1beta1"
PLAIN = """
actions: "enqueue, allocate, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}]
- plugins: [{name: predicates}, {name: nodeorder}]
"""
LIMITS = PLAIN.replace("{name: nodeorder}", "{name: proportion}, {name: nodeorder}")
QUOTAS = PLAIN.replace("{name: nodeorder}", "{name: resourcequota}, {name: nodeorder}")
PREEMPTS = """
actions: "enqueue, allocate, preempt, backfill"
tiers:
- plugins: [{name: priority}, {name: gang, enablePreemptable: false}, {name: conformance}, {name: pdb}]
- plugins: [{name: predicates}, {name: nodeorder}]
"""
HOSTNAME = "kubernetes.io/hostname"
ZONE = "zone"


def node(name="n1", cpu="4", **spec):
    labels = {HOSTNAME: name, ZONE: "a"}
    status = {"allocatable": {"cpu": cpu, "memory": "8Gi"}}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": spec,
        "status": status,
    }


def group(name="g", minimum=1, queue="default", phase="Inqueue", **spec):
    metadata = {"name": name, "namespace": "a"}
    body = {"minMember": minimum, "queue": queue, **spec}
    return {"apiVersion": VOLCANO, "kind": "PodGroup", "metadata": metadata, "spec": body, "status": {"phase": phase}}


def pod(name="g-0", of="g", cpu="2", on="", labels=None, **spec):
    requests = {"name": "c", "image": "x", "resources": {"requests": {"cpu": cpu}}}
    metadata = {"name": name, "namespace": "a", "annotations": {"scheduling.k8s.io/group-name": of}}
    body = {"schedulerName": "volcano", "containers": [requests], **spec}
    if on:
        body["nodeName"] = on
    if labels:
        metadata["labels"] = labels
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": body}


def in_role(made, role):
    made["metadata"]["annotations"]["volcano.sh/task-spec"] = role
    return made


def queue(name, state="Open", **spec):
    metadata = {"name": name}
    return {
        "apiVersion": VOLCANO,
        "kind": "Queue",
        "metadata": metadata,
        "spec": {"weight": 1, **spec},
        "status": {"state": state},
    }


def required(kind, **rule):
    return {kind: {"requiredDuringSchedulingIgnoredDuringExecution": rule.get("terms") or rule}}


ZONE_B = {"nodeSelectorTerms": [{"matchExpressions": [{"key": ZONE, "operator": "In", "values": ["b"]}]}]}
BESIDE = [{"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": HOSTNAME}]
SPREAD = {
    "maxSkew": 1,
    "topologyKey": "rack",
    "whenUnsatisfiable": "DoNotSchedule",
    "labelSelector": {"matchLabels": {}},
}
HIGH = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 100}
QUOTA = {
    "apiVersion": "v1",
    "kind": "ResourceQuota",
    "metadata": {"name": "small", "namespace": "a"},
    "spec": {"hard": {"cpu": "1"}},
    "status": {"hard": {"cpu": "1"}, "used": {"cpu": "0"}},
}
BUDGET = {
    "apiVersion": "policy/v1",
    "kind": "PodDisruptionBudget",
    "metadata": {"name": "web", "namespace": "a"},
    "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}},
    "status": {"disruptionsAllowed": 0, "currentHealthy": 1, "desiredHealthy": 1, "expectedPods": 1},
}
RUNNING = [group("web", phase="Running"), pod("web-0", "web", "3", on="n1", labels={"app": "web"})]
PORT = {
    "containers": [
        {
            "name": "c",
            "image": "x",
            "ports": [{"containerPort": 80, "hostPort": 80}],
            "resources": {"requests": {"cpu": "1"}},
        }
    ]
}


def resource(kind, name, namespace="", **body):
    metadata = {"name": name, "namespace": namespace} if namespace else {"name": name}
    return {"apiVersion": "resource.k8s.io/v1", "kind": kind, "metadata": metadata, **body}


ONE = {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]}}
TAKEN = {"allocation": {"devices": {"results": [{"request": "r", "driver": "d", "pool": "n1", "device": "g0"}]}}}
POOL = {"name": "n1", "generation": 1, "resourceSliceCount": 1}
DEVICES = [
    resource("DeviceClass", "gpu", spec={}),
    resource("ResourceSlice", "s", spec={"driver": "d", "nodeName": "n1", "pool": POOL, "devices": [{"name": "g0"}]}),
    resource("ResourceClaim", "taken", "a", spec=ONE, status=TAKEN),
    resource("ResourceClaim", "open", "a", spec=ONE),
]

CASES = {
    "taint": (
        PLAIN,
        [node(taints=[{"key": "k", "value": "v", "effect": "NoSchedule"}]), group(), pod()],
        "let its pods tolerate k=v:NoSchedule (1 node)",
    ),
    "selector": (PLAIN, [node(), group(), pod(nodeSelector={ZONE: "b"})], "drop zone=b from its nodeSelector"),
    "node affinity": (
        PLAIN,
        [node(), group(), pod(affinity=required("nodeAffinity", **ZONE_B))],
        "drop its required node affinity",
    ),
    "pod affinity": (
        PLAIN,
        [node(), group(), pod(affinity=required("podAffinity", terms=BESIDE))],
        "drop its required pod affinity",
    ),
    "pod anti-affinity": (
        PLAIN,
        [node(), *RUNNING, group(), pod(cpu="1", affinity=required("podAntiAffinity", terms=BESIDE))],
        "drop its required pod anti-affinity",
    ),
    "spread": (
        PLAIN,
        [node(), group(), pod(topologySpreadConstraints=[SPREAD])],
        "drop its topologySpreadConstraints",
    ),
    "host port": (
        PLAIN,
        [node(), group("web", phase="Running"), pod("web-0", "web", on="n1", **PORT), group(), pod(**PORT)],
        "drop its host ports",
    ),
    "gate": (
        PLAIN,
        [node(), group(), pod(schedulingGates=[{"name": "example.com/wait"}])],
        "take the scheduling gate example.com/wait off its pods",
    ),
    "cordon": (PLAIN, [node(unschedulable=True), group(), pod()], "uncordon node n1"),
    "no queue": (PLAIN, [node(), group(queue="none"), pod()], "create the queue none"),
    "closed queue": (
        PLAIN,
        [node(), queue("shut", state="Closed"), group(queue="shut"), pod()],
        "open the queue shut",
    ),
    "limit": (
        LIMITS,
        [node(), queue("team", capability={"cpu": "1"}), group(queue="team"), pod()],
        "raise capability cpu of queue team from 1 to 2",
    ),
    "quota": (
        QUOTAS,
        [node(), QUOTA, group(phase="Pending", minResources={"cpu": "2"}), pod()],
        "raise cpu of ResourceQuota a/small from 1 to 2",
    ),
    "priority": (
        PREEMPTS,
        [node(), HIGH, *RUNNING, group(), pod()],
        "give it the priority class high (100 instead of 0)",
    ),
    "budget": (
        PREEMPTS,
        [
            node(),
            HIGH,
            BUDGET,
            *RUNNING,
            group(priorityClassName="high"),
            pod(priorityClassName="high", priority=100),
        ],
        "drop the PodDisruptionBudget a/web",
    ),
    "minimum": (
        PLAIN,
        [node(), group(minimum=2), pod(cpu="3"), pod("g-1", cpu="3")],
        "lower its minMember from 2 to 1",
    ),
    "request": (PLAIN, [node(), group(), pod(cpu="6")], "let its pods ask for 4 cpu instead of 6"),
    "end": (PLAIN, [node(), *RUNNING, group(), pod()], "wait until a/web ends (1 pod)"),
    "device": (
        PLAIN,
        [
            node(cpu="8"),
            *DEVICES,
            group("web", phase="Running"),
            pod("web-0", "web", on="n1", resourceClaims=[{"name": "d", "resourceClaimName": "taken"}]),
            group(),
            pod(resourceClaims=[{"name": "d", "resourceClaimName": "open"}]),
        ],
        "wait until a/web ends (1 pod), which gives its devices back",
    ),
    "node": (PLAIN, [node(), *RUNNING, group(), pod()], "add 1 more node like n1 (cpu 4)"),
    "several nodes": (
        PLAIN,
        [node(), group(minimum=3), *(pod(f"g-{index}", cpu="3") for index in range(3))],
        "add 2 more nodes like n1 (cpu 4)",
    ),
    "two things": (
        LIMITS,
        [node(unschedulable=True), queue("team", capability={"cpu": "1"}), group(queue="team"), pod()],
        "uncordon node n1 and raise capability cpu of queue team from 1 to 2",
    ),
    "not let in": (
        LIMITS,
        [
            node(),
            queue("team", capability={"cpu": "1"}),
            group(queue="team", phase="Pending", minResources={"cpu": "2"}),
        ],
        "raise capability cpu of queue team from 1 to 2",
    ),
    "not let in, and a pod comes first": (
        LIMITS,
        [
            node(cpu="16"),
            queue("team", capability={"cpu": "5"}),
            group("run", queue="team", phase="Running"),
            pod("run-0", "run", "4", on="n1"),
            group("first", queue="team"),
            pod("first-0", "first", "3"),
            group(queue="team", phase="Pending", minResources={"cpu": "2"}),
        ],
        "create the 1 pod that is missing below its minMember of 1 and raise capability cpu of queue team from 5 to 6",
    ),
    "not let in, and a group without pods comes first": (
        LIMITS,
        [
            node(cpu="16"),
            queue("team", capability={"cpu": "1"}),
            group("first", queue="team", phase="Pending", minResources={"cpu": "2"}),
            group(queue="team", phase="Pending", minResources={"cpu": "3"}),
        ],
        "raise capability cpu of queue team from 1 to 5",
    ),
    "asks for nothing": (
        PLAIN.replace(", backfill", ""),
        [node(), group(), pod(containers=[{"name": "c", "image": "x"}])],
        "let its pods ask for cpu (100m): the policy has no action backfill, which places pods that ask for nothing",
    ),
    "pods are missing and a quota has no room for them": (
        PLAIN,
        [node(), QUOTA, group(minimum=2, minResources={"cpu": "4"})],
        "create the 2 pods that are missing below its minMember of 2 and raise cpu of ResourceQuota a/small from 1 to 4",
    ),
    "pods are missing and no node has room for them": (
        PLAIN,
        [node(cpu="3"), group(minimum=3, minResources={"cpu": "6"})],
        "create the 3 pods that are missing below its minMember of 3 and add 2 more nodes like n1 (cpu 3)",
    ),
    "a role has no pods": (
        PLAIN,
        [node(cpu="8"), group(minimum=2, minTaskMember={"ps": 1, "worker": 1}), in_role(pod(), "worker")],
        "create the 1 pod that is missing below its minMember of 2, of role ps",
    ),
}


def found(policy, given):
    cluster = SimulatedCluster()
    cluster.apply(given)
    settings = configuration.load(policy, KNOWN.catalog(), "config")
    rehearsal = Rehearsal(files.stored(cluster), settings, Options(), cluster.clock.now(), KNOWN)
    return search.search(rehearsal, search.Target("a/g"))


@pytest.mark.parametrize("cause", CASES)
def test_what_keeps_a_job_waiting_has_a_change_that_starts_it(cause):
    policy, given, change = CASES[cause]
    result = found(policy, given)
    assert change in [trial.change for trial in result.enough], result
    assert result.smallest == result.enough[0].change


def test_a_change_of_pods_alone_is_seen_where_equal_jobs_wait_beside():
    given = [
        node("n", cpu="4"),
        *(made for name in ("first", "g") for made in (group(name), pod(f"{name}-0", name, cpu="8"))),
    ]
    result = found(PLAIN, given)
    assert "let its pods ask for 4 cpu instead of 8" in [trial.change for trial in result.enough], result


def test_a_change_that_only_helps_a_job_that_comes_first_is_not_enough():
    first = {
        **group("first"),
        "metadata": {"name": "first", "namespace": "a", "creationTimestamp": "2020-01-01T00:00:00Z"},
    }
    given = [node(), *RUNNING, first, pod("first-0", "first", cpu="4"), group(), pod(cpu="4")]
    result = found(PLAIN, given)
    assert "wait until a/web ends (1 pod)" in [trial.change for trial in result.not_enough]
    assert "add 2 more nodes like n1 (cpu 4)" in [trial.change for trial in result.enough]


def test_a_policy_that_takes_too_long_is_not_asked_for_ever():
    cluster = SimulatedCluster()
    cluster.apply([node(), *RUNNING, group(), pod()])
    settings = configuration.load(PLAIN, KNOWN.catalog(), "config")
    rehearsal = Rehearsal(files.stored(cluster), settings, Options(), cluster.clock.now(), KNOWN)
    everything = search.search(rehearsal, search.Target("a/g"))
    seconds = iter(range(0, 10_000, 15))
    result = search.search(rehearsal, search.Target("a/g"), clock=lambda: float(next(seconds)))
    tried = len(result.enough) + len(result.not_enough)
    assert tried < len(everything.enough) + len(everything.not_enough)
    question = search.question_of(rehearsal, search.Target("a/g"), search.Verdict(standing="waits"))
    assert tried + result.untried == len(list(search.relaxations(question)))


def test_making_less_of_what_is_enough_counts_as_nothing_untried():
    """Time runs out while two changes are made smaller: what they are is known, and no other is left."""
    cluster = SimulatedCluster()
    cluster.apply([node(cpu="3"), group(minimum=3, minResources={"cpu": "6"})])
    settings = configuration.load(PLAIN, KNOWN.catalog(), "config")
    rehearsal = Rehearsal(files.stored(cluster), settings, Options(), cluster.clock.now(), KNOWN)
    looks = []

    def clock():
        looks.append(1)
        return 0.0

    search.search(rehearsal, search.Target("a/g"), clock=clock)
    whole, short = len(looks), []
    for last in range(2, whole):
        turns = iter([0.0] * last)
        short.append(search.search(rehearsal, search.Target("a/g"), clock=lambda turns=turns: next(turns, 1e9)))
    cut = [each for each in short if each.enough and each.enough[0].sort == "together"]
    assert cut
    assert not [each for each in cut if each.untried]
