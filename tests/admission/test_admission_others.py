"""Rules about pod groups, pods, hyper-nodes, flows and cron jobs."""

from __future__ import annotations

import pytest
from admission_objects import (
    GONE,
    container,
    cron_job,
    edited,
    hyper_node,
    job_flow,
    judged,
    known,
    pod_group,
    queue,
    refusals,
    warnings,
)

from pumice.admission import pod_groups, pod_rules, pods
from pumice.admission.requests import Request, RuleSettings

TOPOLOGY = {"highestTierAllowed": 1, "highestTierName": "rack"}
NAMESPACE = {
    "apiVersion": "v1",
    "kind": "Namespace",
    "metadata": {"name": "default", "annotations": {"scheduling.volcano.sh/queue-name": "q1"}},
}


def regex(pattern: str, kind: str = "Node") -> dict:
    return {"type": kind, "selector": {"regexMatch": {"pattern": pattern}}}


BROKEN = [
    (pod_group(queue="nope"), "spec.queue", "no such queue"),
    (pod_group(queue="closed"), "spec.queue", "state is Closed"),
    (pod_group(minMember=-1), "spec.minMember", "is -1"),
    (pod_group(minTaskMember={"a": -1}), "spec.minTaskMember.a", "is -1"),
    (pod_group(networkTopology=TOPOLOGY), "spec.networkTopology.highestTierName", "only one of the two"),
    (pod_group(subGroupPolicy=[{"networkTopology": TOPOLOGY}]), "spec.subGroupPolicy[0].networkTopology.highestTierName", "only one"),
    (pod_group(subGroupPolicy=[{"subGroupSize": 0}]), "spec.subGroupPolicy[0].subGroupSize", "is 0"),
    (edited(hyper_node(), ("spec", "members"), []), "spec.members", "at least one member"),
    (edited(hyper_node(), ("spec", "tier"), GONE), "spec.tier", "missing"),
    (hyper_node(regex("node-(")), "spec.members[0].selector.regexMatch.pattern", "no regular expression"),
    (hyper_node({"type": "Node", "selector": {}}), "spec.members[0].selector", "exactly one of"),
    (hyper_node({"type": "Node", "selector": {"exactMatch": {"name": "a"}, "regexMatch": {"pattern": "a"}}}), "spec.members[0].selector", "not 2"),  # A18
    (hyper_node({"type": "Rack", "selector": {"exactMatch": {"name": "a"}}}), "spec.members[0].type", "one of Node, HyperNode"),
    (job_flow(a=[], b=["c"]), "spec.flows[1].dependsOn.targets[0]", "no flow of that name"),
    (job_flow(a=["b"], b=["a"]), "spec.flows[0].dependsOn.targets[0]", "a needs b needs a"),
    (job_flow(a=["a"]), "spec.flows[0].dependsOn.targets[0]", "itself"),
    (edited(job_flow(a=[]), ("spec", "flows", 1), {"name": "a"}), "spec.flows[1].name", "called already"),
    (edited(job_flow(a=[]), ("metadata", "name"), "f" * 62), "spec.flows[0].name", 'makes a job called "ffff'),
    (edited(job_flow(a=[]), ("spec", "jobRetainPolicy"), "keep"), "spec.jobRetainPolicy", "one of retain, delete"),
    (cron_job(schedule="61 * * * *"), "spec.schedule", "'61' lies outside 0 to 59, the range of the minute"),
    (cron_job(schedule="TZ=UTC 0 3 * * *"), "spec.schedule", "belongs to the field timeZone"),
    (cron_job(schedule="CRON_TZ=UTC 0 3 * * *"), "spec.schedule", "belongs to the field timeZone"),
    (cron_job(schedule=""), "spec.schedule", "missing"),
    (cron_job(timeZone="Mars/Base"), "spec.timeZone", "time zone"),
    (cron_job(timeZone="Local"), "spec.timeZone", "time zone"),
    (cron_job(timeZone=""), "spec.timeZone", "time zone"),
    (cron_job(timeZone="../../etc/passwd"), "spec.timeZone", "time zone"),
    (cron_job(concurrencyPolicy="Wait"), "spec.concurrencyPolicy", "one of Allow, Forbid, Replace"),
    (cron_job(startingDeadlineSeconds=-1), "spec.startingDeadlineSeconds", "is -1"),
    (edited(cron_job(), ("metadata", "name"), "n" * 53), "metadata.name", "has 53 characters, and may have at most 52"),
    (edited(cron_job(), ("metadata", "name"), "n" * 50), "spec.jobTemplate.spec.tasks[0].name", "such a name has 68 characters, and may have at most 63"),
    (edited(cron_job(), ("spec", "jobTemplate"), GONE), "spec.jobTemplate", "missing"),
    (edited(cron_job(), ("spec", "jobTemplate", "spec", "minAvailable"), 7), "spec.jobTemplate.spec.minAvailable", "is 7"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("manifest", "field", "message"), BROKEN, ids=[f"{case[0]['kind']}-{case[1]}-{case[2][:20]}" for case in BROKEN]
)
def test_an_object_is_refused_at_the_field_that_is_wrong(manifest, field, message):
    found = refusals(manifest, around=known(queue("closed", "Closed")))

    assert [(where, message in text) for where, text in found] == [(field, True)], found


@pytest.mark.parametrize(
    "manifest",
    [
        pod_group(),
        pod_group(queue=""),
        hyper_node(),
        hyper_node(regex("^node-[0-9]+$")),
        job_flow(a=[], b=["a"], c=["a", "b"]),
        cron_job(),
        cron_job(schedule="@every 90m", timeZone="UTC"),
        edited(cron_job(), ("spec", "jobTemplate", "spec", "tasks", 0, "name"), ""),
    ],
)
def test_an_object_that_breaks_no_rule_is_let_in(manifest):
    assert refusals(manifest) == []


@pytest.mark.parametrize(
    ("place", "value", "field"),
    [
        (("dependsOn", "probe"), {"taskStatusList": [{"taskName": "w", "phase": "Running"}]}, "dependsOn.probe"),
        (("patch",), {"jobSpec": {"minAvailable": 2}}, "patch"),
    ],
)
def test_a_field_of_a_flow_that_changes_nothing_is_warned_of(place, value, field):
    flow = edited(job_flow(a=[], b=["a"]), ("spec", "flows", 1, *place), value)
    assert refusals(flow) == []
    assert [(where, "has no effect" in text) for where, text in warnings(flow)] == [(f"spec.flows[1].{field}", True)]


@pytest.mark.parametrize(("schedule", "warned"), [("@every 59s", 1), ("@every 60s", 0), ("* * * * *", 0)])
def test_a_schedule_of_more_than_one_start_a_minute_is_warned_of(schedule, warned):
    found = warnings(cron_job(schedule=schedule))
    assert [(where, "one a minute is started" in text) for where, text in found] == [("spec.schedule", True)] * warned


@pytest.mark.parametrize("broken", [hyper_node(regex("(")), job_flow(a=["a"]), cron_job(schedule="x")])
def test_a_change_of_metadata_is_let_through_though_the_object_breaks_rules(broken):
    assert refusals(broken) != []
    assert refusals(edited(broken, ("metadata", "labels"), {"a": "b"}), old=broken) == []


def test_a_template_that_was_there_before_stops_no_other_change_of_a_cron_job():
    old = edited(cron_job(), ("spec", "jobTemplate", "spec", "minAvailable"), 7)

    assert refusals(edited(old, ("spec", "suspend"), True), old=old) == []
    assert refusals(edited(old, ("spec", "jobTemplate", "spec", "minAvailable"), 8), old=old) != []


def test_members_that_are_never_found_are_warned_of():
    assert [field for field, _ in warnings(hyper_node(regex("leaf-.*", "HyperNode")))] == [
        "spec.members[0].selector.regexMatch"
    ]


# ---- pod groups and namespaces (I17)


@pytest.mark.parametrize(
    ("named", "stored"), [("default", "q1"), ("", "q1"), ("other", "other")]
)  # fmt: skip
def test_a_group_without_a_queue_of_its_own_goes_to_that_of_its_namespace(named, stored):
    request = Request(operation="CREATE", object=pod_group(queue=named), namespace="default", name="g")

    assert pod_groups.complete(request, known(NAMESPACE), RuleSettings())["spec"]["queue"] == stored
    assert pod_groups.complete(request, known(), RuleSettings())["spec"]["queue"] == named


# ---- pods


def pod(scheduler: str = "volcano", annotations: dict | None = None, **spec) -> dict:
    metadata = {"name": "p", "namespace": "default", "annotations": annotations or {}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"schedulerName": scheduler, "containers": [container()], **spec},
    }


MIN, MAX = "volcano.sh/jdb-min-available", "volcano.sh/jdb-max-unavailable"


@pytest.mark.parametrize(
    ("annotations", "fields"),
    [
        ({MIN: "1"}, []),
        ({MAX: "99%"}, []),
        ({MIN: "0"}, [MIN]),
        ({MIN: "-1"}, [MIN]),
        ({MIN: "100%"}, [MIN]),
        ({MAX: "0%"}, [MAX]),
        ({MAX: "half"}, [MAX]),
        ({MIN: "1", MAX: "1"}, [MAX]),
        ({MIN: "", MAX: "x"}, [MIN, MAX, MAX]),
    ],
)
def test_budgets_of_pods_can_be_read_and_are_not_both_given(annotations, fields):
    found = [field for field, _ in refusals(pod(annotations=annotations))]

    assert found == [f"metadata.annotations[{each}]" for each in fields]
    assert refusals(pod("default-scheduler", annotations)) == []


RULES = """
resourceGroups:
- resourceGroup: management
  object:
    key: namespace
    value: [mng-1, mng-2]
  schedulerName: default-scheduler
  tolerations:
  - {effect: NoSchedule, key: taint, operator: Exists}
  labels:
    volcano.sh/nodetype: management
- resourceGroup: cpu
  object:
    key: annotation
    value: ["volcano.sh/resource-group: cpu"]
  schedulerName: volcano
  labels:
    volcano.sh/nodetype: cpu
- resourceGroup: gpu
  schedulerName: volcano
  affinity: '{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"gpu","operator":"Exists"}]}]}}}'
"""


def changed(given: dict, settings: RuleSettings, namespace: str = "default") -> dict:
    return pods.complete(Request(operation="CREATE", object=given, namespace=namespace, name="p"), known(), settings)[
        "spec"
    ]


def test_the_first_rule_that_fits_a_pod_is_applied():
    settings = RuleSettings(pod_rules=pod_rules.load(RULES, "rules"))

    made = changed(pod(annotations={"volcano.sh/resource-group": "gpu"}, nodeSelector={"a": "b"}), settings, "mng-2")
    assert made["nodeSelector"] == {"a": "b", "volcano.sh/nodetype": "management"}
    assert made["tolerations"] == [{"effect": "NoSchedule", "key": "taint", "operator": "Exists"}]
    assert made["schedulerName"] == "default-scheduler"
    made = changed(pod("x", {"volcano.sh/resource-group": "cpu"}), settings)
    assert (made["schedulerName"], made["nodeSelector"]) == ("volcano", {"volcano.sh/nodetype": "cpu"})
    made = changed(pod("x", {"volcano.sh/resource-group": "gpu"}), settings)
    assert "requiredDuringSchedulingIgnoredDuringExecution" in made["affinity"]["nodeAffinity"]
    own = {"podAffinity": {}}
    assert changed(pod("x", {"volcano.sh/resource-group": "gpu"}, affinity=own), settings)["affinity"] == own
    assert changed(pod("x"), settings) == pod("x")["spec"]


def test_a_pod_that_asks_for_the_gate_gets_it_once_and_only_where_gates_are_on():
    gate = "scheduling.volcano.sh/queue-allocation-gate"
    asked = pod(annotations={gate: "true"})

    made = changed(asked, RuleSettings(gates_pods=True))
    assert made["schedulingGates"] == [{"name": gate}]
    assert changed({**asked, "spec": made}, RuleSettings(gates_pods=True)) == made
    assert "schedulingGates" not in changed(asked, RuleSettings())
    assert "schedulingGates" not in changed(pod(), RuleSettings(gates_pods=True))
    assert "schedulingGates" not in changed(pod("other", {gate: "true"}), RuleSettings(gates_pods=True))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("resourceGroup: []", "line 1: resourceGroup: is not known; there is resourceGroups"),
        ("resourceGroups:\n- object: {key: node}", "line 2: resourceGroups[0].resourceGroup: is missing"),
        ("resourceGroups:\n- resourceGroup: a\n  object: {key: node}", "line 3: resourceGroups[0].object.key: is"),
        ("resourceGroups:\n- resourceGroup: a\n  afinity: x", "line 3: resourceGroups[0].afinity: is not known; did you mean affinity?"),
        ("resourceGroups:\n- resourceGroup: a\n  affinity: '{'", "line 3: resourceGroups[0].affinity: must be JSON"),
        ("resourceGroups:\n- resourceGroup: a\n  labels: {a: 1}", "line 3: resourceGroups[0].labels.a: must be a string"),
        ("- a", "must be a map, not a list of 1"),
        ("a: [", "line 2: while parsing"),
    ],
)  # fmt: skip
def test_a_file_of_rules_that_cannot_be_followed_is_refused_with_the_line(text, problem):
    with pytest.raises(pod_rules.PodRulesError) as caught:
        pod_rules.load(text, "rules")

    assert problem in str(caught.value)


def test_an_empty_file_has_no_rules():
    assert pod_rules.load("", "rules") == ()
    assert judged(pod()).all == []
