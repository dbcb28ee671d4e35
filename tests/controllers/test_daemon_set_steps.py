"""What DaemonSets and ReplicaSets do next, case by case: where pods are to be, which go first, how they are updated, and what the status says."""

from __future__ import annotations

import pytest
from workload_objects import START, at, begun, owned, stamp

from pumice.api import duration, kinds
from pumice.cache import effects
from pumice.controllers.queueing import requests
from pumice.controllers.queueing.observed import Observed
from pumice.controllers.workloads import daemon_sets, history, manifests, node_fit, replica_sets
from pumice.controllers.workloads import pods as pods_of

NOW = at(100)
TEMPLATE = {"metadata": {"labels": {"app": "x"}}, "spec": {"containers": []}}


def subject(kind="DaemonSet", *, template=None, status=None, going=False, **spec):
    metadata = {"name": "s", "namespace": "a", "uid": "u-s", "generation": 4, "resourceVersion": "5"}
    metadata |= {"deletionTimestamp": stamp(1)} if going else {}
    pod = {**TEMPLATE, "spec": template} if template else TEMPLATE
    spec = {"selector": {"matchLabels": {"app": "x"}}, "template": pod, **spec}
    return {"kind": kind, "metadata": metadata, "spec": spec, "status": status or {}}


def pod(
    name,
    node="",
    state="ready",
    *,
    of="new",
    since=10,
    kind="DaemonSet",
    created=0,
    restarts=0,
    notes=None,
    labels=None,
):
    """A pod: `ready`, `starting`, `failed` or `going`."""
    shown = labels or {"app": "x", history.LABEL: of}
    metadata = owned(name, kind, labels=shown, creationTimestamp=stamp(created), annotations=notes or {})
    metadata |= {"deletionTimestamp": stamp(1)} if state == "going" else {}
    status = {"phase": {"failed": "Failed", "pending": "Pending"}.get(state, "Running")}
    status["containerStatuses"] = [{"restartCount": restarts}]
    if state in ("ready", "going"):
        status["conditions"] = [{"type": "Ready", "status": "True", "lastTransitionTime": stamp(since)}]
    return {"metadata": metadata, "spec": {"nodeName": node} if node else {}, "status": status}


def node(name, *taints, labels=None):
    found = [{"key": key, "effect": effect} for key, effect in taints]
    return {"metadata": {"name": name, "uid": f"u-{name}", "labels": labels or {}}, "spec": {"taints": found}}


def looked_at(owner, pods=(), nodes=("n1", "n2", "n3"), others=()):
    observed = Observed()
    observed.feed(kinds.DAEMON_SET, "ADDED", owner)
    data = {"spec": {"template": {**owner["spec"]["template"], "$patch": "replace"}}}
    present = {"metadata": owned("s-new", "DaemonSet", labels={history.LABEL: "new"}), "data": data, "revision": 2}
    observed.feed(manifests.CONTROLLER_REVISION, "ADDED", present)
    for each in nodes:
        observed.feed(kinds.NODE, "ADDED", node(each) if isinstance(each, str) else each)
    for kind, each in [*((kinds.POD, each) for each in pods), *others]:
        observed.feed(kind, "ADDED", each)
    return daemon_sets.DaemonSets().reconcile("a", "s", observed, NOW)


def told(found):
    """Give the nodes that get a pod, with a plus, and the pods that go, with a minus."""
    steps = [step.request for step in found.steps]
    made = [f"+{node_fit.node_of(each.manifest)}" for each in steps if isinstance(each, effects.Create)]
    return [*(f"-{each.name}" for each in steps if isinstance(each, requests.Delete)), *made]


ALL = [pod("a", "n1"), pod("b", "n2"), pod("c", "n3")]
HARD, OUT = node("n4", ("k", "NoSchedule")), node("n4", ("k", "NoExecute"))


def rolling(count):
    return {"updateStrategy": {"rollingUpdate": {"maxUnavailable": count}}}


@pytest.mark.parametrize(
    ("spec", "pods", "nodes", "expected"),
    [
        ({}, [], (), ["+n1", "+n2", "+n3"]),
        ({}, ALL, (), []),
        ({}, ALL[:2], (), ["+n3"]),
        ({}, [*ALL, pod("d", "n9")], (), ["-d"]),
        ({}, [*ALL, pod("d", "n1", "starting")], (), ["-d"]),
        ({}, [*ALL, pod("d", "n1", since=5, created=5)], (), ["-d"]),
        ({}, [*ALL[:2], pod("d", "n3", "failed")], (), ["-d"]),
        ({}, [*ALL[:2], pod("d", "n3", "going")], (), []),
        ({}, ALL, (HARD,), []),
        ({}, [*ALL, pod("d", "n4")], (HARD,), []),
        ({}, [*ALL, pod("d", "n4")], (OUT,), ["-d"]),
        ({"going": True}, ALL[:2], (), []),
        # another template
        ({}, [pod("a", "n1", of="old"), *ALL[1:]], (), ["-a"]),
        ({}, [pod(name, f"n{place}", of="old") for place, name in enumerate("abc", 1)], (), ["-a"]),
        (rolling(2), [pod(name, f"n{place}", of="old") for place, name in enumerate("abc", 1)], (), ["-a", "-b"]),
        (rolling("50%"), [pod(name, f"n{place}", of="old") for place, name in enumerate("abc", 1)], (), ["-a", "-b"]),
        (rolling(0), [pod(name, f"n{place}", of="old") for place, name in enumerate("abc", 1)], (), ["-a"]),
        ({}, [pod("a", "n1", of="old"), pod("b", "n2", "starting"), ALL[2]], (), []),
        ({}, [pod("a", "n1", of="old"), pod("b", "n2", "starting", of="old"), ALL[2]], (), ["-b"]),
        ({"updateStrategy": {"type": "OnDelete"}}, [pod("a", "n1", of="old"), *ALL[1:]], (), []),
        ({"minReadySeconds": 91}, [pod("a", "n1", of="old"), *ALL[1:]], (), ["-a"]),
        # one that surges stands beside the old one
        ({}, [*ALL, pod("d", "n1", "starting", of="old")], (), ["-d"]),
    ],
)
def test_every_node_that_will_have_one_gets_one_pod_and_old_ones_go_as_many_as_may_be_missing(
    spec, pods, nodes, expected
):
    assert told(looked_at(subject(**spec), pods, ("n1", "n2", "n3", *nodes))) == expected


def test_old_and_new_may_stand_side_by_side_on_a_node_and_no_third():
    beside = [pod("x", "n1", of="old", created=1), pod("y", "n1", "starting", created=2)]
    assert "-y" not in told(looked_at(subject(**rolling(1)), [*beside, *ALL[1:]]))
    third = pod("z", "n1", "starting", created=3)
    assert told(looked_at(subject(), [*beside, third, *ALL[1:]])) == ["-z"]


def test_a_pod_is_pinned_to_its_node_and_says_of_which_template_it_is():
    (step,) = [each.request for each in looked_at(subject(), ALL[1:]).steps if isinstance(each.request, effects.Create)]
    labels = step.manifest["metadata"]["labels"]
    assert (labels[history.LABEL], labels["pod-template-generation"], labels["app"]) == ("new", "4", "x")
    assert step.manifest["metadata"]["name"].startswith("s-")
    (owner,) = step.manifest["metadata"]["ownerReferences"]
    assert (owner["uid"], owner["controller"], owner["blockOwnerDeletion"]) == ("u-s", True, True)


@pytest.mark.parametrize(
    ("pods", "nodes", "expected"),
    [
        (ALL, (), (3, 3, 0, 3, 3, 3, 0)),
        (ALL[:1], (), (1, 3, 0, 1, 1, 1, 2)),
        ([*ALL[:2], pod("c", "n3", "starting", of="old")], (), (3, 3, 0, 2, 2, 2, 1)),
        ([*ALL, pod("d", "n4")], (HARD,), (3, 3, 1, 3, 3, 3, 0)),
        ([*ALL[:2], pod("c", "n3", "going")], (), (2, 3, 0, 2, 2, 2, 1)),
        ([*ALL[:2], pod("c", "n3", since=20)], (), (3, 3, 0, 3, 3, 2, 1)),
    ],
)
def test_the_status_counts_nodes(pods, nodes, expected):
    found = looked_at(subject(minReadySeconds=90, status={"kept": 1}), pods, ("n1", "n2", "n3", *nodes))
    status = found.steps[0].request.body["status"]
    fields = ("currentNumberScheduled", "desiredNumberScheduled", "numberMisscheduled", "numberReady")
    more = ("updatedNumberScheduled", "numberAvailable", "numberUnavailable")
    assert tuple(status.get(each, 0) for each in (*fields, *more)) == expected
    assert set(fields) <= set(status)
    assert status["observedGeneration"] == 4
    assert "kept" not in status
    later = START + 110 * duration.SECOND if any(each["metadata"]["name"] == "c" for each in pods) else None
    assert found.again in (None, later)


def test_counts_of_pods_that_are_gone_are_taken_back():
    counted = {"numberAvailable": 3, "updatedNumberScheduled": 3, "numberReady": 3}
    status = looked_at(subject(status=counted)).steps[0].request.body["status"]
    assert {field: status[field] for field in counted} == {
        "numberAvailable": None,
        "updatedNumberScheduled": None,
        "numberReady": 0,
    }


def required(*terms):
    return {
        "affinity": {
            "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}}
        }
    }


def expression(key, operator, *values):
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}


def field(name):
    return {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [name]}]}


RUNS, STAYS, NOT = (True, True), (False, True), (False, False)


@pytest.mark.parametrize(
    ("spec", "found", "expected"),
    [
        ({}, node("n"), RUNS),
        ({"nodeName": "n"}, node("n"), RUNS),
        ({"nodeName": "m"}, node("n"), NOT),
        ({"nodeName": ""}, node("n"), RUNS),
        ({"nodeSelector": {"z": "1"}}, node("n", labels={"z": "1"}), RUNS),
        ({"nodeSelector": {"z": "1"}}, node("n", labels={"z": "2"}), NOT),
        (required(expression("z", "In", "1")), node("n", labels={"z": "1"}), RUNS),
        (required(expression("z", "In", "2")), node("n", labels={"z": "1"}), NOT),
        (required(expression("z", "In", "2"), field("n")), node("n"), RUNS),
        (required(field("m")), node("n"), NOT),
        (required({**expression("z", "Exists"), **field("n")}), node("n"), NOT),
        (required({}), node("n"), NOT),
        ({}, node("n", ("k", "NoSchedule")), STAYS),
        ({}, node("n", ("k", "NoExecute")), NOT),
        ({}, node("n", ("k", "PreferNoSchedule")), RUNS),
        ({}, node("n", ("node.kubernetes.io/not-ready", "NoExecute")), RUNS),
        ({}, node("n", ("node.kubernetes.io/not-ready", "NoSchedule")), STAYS),
        ({}, node("n", ("node.kubernetes.io/network-unavailable", "NoSchedule")), STAYS),
        ({"hostNetwork": True}, node("n", ("node.kubernetes.io/network-unavailable", "NoSchedule")), RUNS),
        ({"tolerations": [{"operator": "Exists"}]}, node("n", ("k", "NoExecute")), RUNS),
        ({"tolerations": [{"key": "k", "operator": "Exists"}]}, node("n", ("k", "NoExecute")), RUNS),
        ({"tolerations": [{"key": "j", "operator": "Exists"}]}, node("n", ("k", "NoExecute")), NOT),
        ({"tolerations": [{"key": "k", "effect": "NoSchedule"}]}, node("n", ("k", "NoExecute")), NOT),
        ({"tolerations": [{"key": "k"}]}, node("n", ("k", "NoExecute")), RUNS),
        ({"tolerations": [{"key": "k", "value": "v"}]}, node("n", ("k", "NoExecute")), NOT),
    ],
)
def test_a_pod_runs_on_a_node_by_name_selector_affinity_and_taints(spec, found, expected):
    verdict = node_fit.judge(found, {"spec": spec})
    assert (verdict.runs, verdict.stays) == expected


def test_a_pinned_pod_keeps_what_its_template_asks_for_but_the_names_of_nodes():
    made = node_fit.pinned({**required(expression("z", "In", "1"), field("m")), "x": 1}, "n")
    terms = made["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert terms == [{**expression("z", "In", "1"), **field("n")}, field("n")]
    assert (made["x"], len(made["tolerations"])) == (1, 6)
    assert node_fit.node_of({"spec": node_fit.pinned({}, "n")}) == "n"
    assert node_fit.node_of({"spec": {"nodeName": "m", **node_fit.pinned({}, "n")}}) == "m"
    two = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["a", "b"]}]}
    for other in (two, expression("z", "Exists"), {"matchFields": [{"key": "x", "values": ["a"]}]}):
        assert node_fit.node_of({"spec": required(other)}) == ""
    own = [{"key": "node.kubernetes.io/disk-pressure", "operator": "Exists", "effect": "NoSchedule"}]
    assert len(node_fit.tolerations({"tolerations": own, "hostNetwork": True})) == 7


def test_pods_are_taken_in_and_a_revision_made_before_anything_else():
    orphan = pod("a", "n1")
    del orphan["metadata"]["ownerReferences"]
    confirmed, adopted = (step.request for step in looked_at(subject(), [orphan]).steps)
    assert (type(confirmed), type(adopted), adopted.name) == (requests.Confirm, effects.Patch, "a")
    controller = daemon_sets.DaemonSets()
    observed = begun(controller, kinds.DAEMON_SET, subject(), orphan)
    assert list(controller.concerns(kinds.POD, ALL[0], observed)) == [("a", "s")]
    assert list(controller.concerns(kinds.NODE, node("n"), observed)) == [("a", "s")]


def test_old_revisions_are_forgotten_when_nothing_else_is_to_be_done():
    past = {"metadata": owned("s-old", "DaemonSet", labels={history.LABEL: "old"}), "data": {}, "revision": 1}
    for pods, gone in ((ALL, ["-s-old"]), (ALL[:2], ["+n3"])):
        found = looked_at(subject(revisionHistoryLimit=0), pods, others=[(manifests.CONTROLLER_REVISION, past)])
        assert (told(found), found.size) == (gone, len(pods) + 3)


# ---- ReplicaSets


def replicas(owner, *pods):
    observed = Observed()
    observed.feed(kinds.REPLICA_SET, "ADDED", owner)
    for each in pods:
        observed.feed(kinds.POD, "ADDED", each)
    return replica_sets.ReplicaSets().reconcile("a", "s", observed, NOW)


def of_set(name, *arguments, **more):
    return pod(name, *arguments, kind="ReplicaSet", **more)


COST = "controller.kubernetes.io/pod-deletion-cost"


@pytest.mark.parametrize(
    ("stays", "goes"),
    [
        (of_set("a", "n"), of_set("b", "")),
        (of_set("a", "n", "starting"), of_set("b", "n", "pending")),
        (of_set("a", "n"), of_set("b", "n", "starting")),
        (of_set("a", "n", notes={COST: "1"}), of_set("b", "n")),
        (of_set("a", "n"), of_set("b", "n", notes={COST: "-1"})),
        (of_set("a", "n", since=1), of_set("b", "n", since=2)),
        (of_set("a", "n"), of_set("b", "n", restarts=1)),
        (of_set("a", "n", created=1), of_set("b", "n", created=2)),
        (of_set("b", "n"), of_set("a", "n")),
    ],
)
def test_of_too_many_pods_those_go_first_that_do_least(stays, goes):
    for pods in ((stays, goes), (goes, stays)):
        assert told(replicas(subject("ReplicaSet", replicas=1), *pods)) == [f"-{goes['metadata']['name']}"]


@pytest.mark.parametrize("cost", ["--5", "+5", "", "x", "1.5", "9" * 5000])
def test_a_cost_that_cannot_be_read_is_none(cost):
    for names in ("ab", "ba"):
        pods = (of_set(names[0], "n", notes={COST: cost}), of_set(names[1], "n"))
        assert told(replicas(subject("ReplicaSet", replicas=1), *pods)) == ["-a"]


def test_of_equal_pods_one_goes_that_has_others_beside_it():
    pods = of_set("a", "n1"), of_set("b", "n2"), of_set("c", "n2")
    assert told(replicas(subject("ReplicaSet", replicas=2), *pods)) == ["-b"]


@pytest.mark.parametrize(
    ("wanted", "there", "made", "gone"), [(3, 1, 2, 0), (2, 2, 0, 0), (0, 2, 0, 2), (None, 0, 1, 0)]
)
def test_there_are_as_many_pods_as_are_wanted(wanted, there, made, gone):
    owner = subject("ReplicaSet", **({} if wanted is None else {"replicas": wanted}))
    found = told(replicas(owner, *(of_set(f"p{place}", "n") for place in range(there)), of_set("x", "n", "failed")))
    assert (sum(each[0] == "+" for each in found), sum(each[0] == "-" for each in found)) == (made, gone)
    assert told(replicas({**owner, "metadata": {**owner["metadata"], "deletionTimestamp": stamp(1)}})) == []


def test_a_replica_set_counts_its_pods_and_says_when_it_was_refused_one():
    pods = [of_set("a", "n"), of_set("b", "n", "starting"), of_set("c", "n", since=20), of_set("d", "n", "going")]
    pods.append(of_set("e", "n", labels={"app": "x"}))
    owner = subject("ReplicaSet", replicas=6, minReadySeconds=90, status={"kept": 1})
    owner["spec"]["template"] = {"metadata": {"labels": {"app": "x", history.LABEL: "new"}}}
    found = replicas(owner, *pods)
    status = found.steps[0].request.body["status"]
    assert status == {
        "replicas": 4,
        "fullyLabeledReplicas": 3,
        "readyReplicas": 3,
        "availableReplicas": 2,
        "terminatingReplicas": 1,
        "observedGeneration": 4,
    }
    assert found.again == START + 110 * duration.SECOND
    (refused,) = found.when_refused("quota")
    (failure,) = refused.request.body["status"]["conditions"]
    assert (failure["type"], failure["message"], failure["status"]) == ("ReplicaFailure", "quota", "True")
    failing = subject("ReplicaSet", replicas=1, status={"conditions": [failure]})
    whole = replicas(failing, of_set("a", "n"))
    assert whole.steps[0].request.body["status"]["conditions"] is None
    assert whole.when_refused("quota") == []
    kept = replicas(failing)
    assert "conditions" not in kept.steps[0].request.body["status"]
    assert replicas(subject("ReplicaSet", replicas=0)).again is None
    assert replica_sets.ReplicaSets().reconcile("a", "gone", Observed(), NOW) == requests.Reconciled()
    empty = replicas(subject("ReplicaSet", replicas=0)).steps[0].request.body["status"]
    assert empty == {"replicas": 0, "terminatingReplicas": 0, "observedGeneration": 4}


@pytest.mark.parametrize(
    ("pause", "second", "is_available"), [(0, 50, True), (1, 50, False), (1, 51, True), (9, 58, False)]
)
def test_a_pod_is_available_when_it_has_been_ready_for_long_enough(pause, second, is_available):
    ready = of_set("a", "n", since=50)
    moment, due = at(second), START + (50 + pause) * duration.SECOND
    assert pods_of.is_available(ready, pause, moment) is is_available
    assert pods_of.available_at(ready, pause, moment) == due
    found = replica_sets.next_available([ready], {"minReadySeconds": pause}, moment)
    assert found == (None if is_available else due)
    assert not pods_of.is_available(of_set("b", "n", "starting"), pause, moment)
    assert pods_of.available_at(of_set("b", "n", "starting"), pause, moment) is None
