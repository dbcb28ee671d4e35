"""Who refuses what: every rule is broken once and kept once; only what Volcano, Kubernetes or a schema refuses is refused unless rules are strict."""

from __future__ import annotations

from typing import Any

import admission_objects as objects
import pytest
from admission_objects import container, cron_job, edited, hyper_node, job, job_flow, pod_group, queue

from pumice.admission import laws, remarks, reviewing, rules
from pumice.admission.requests import RuleSettings
from pumice.api import kinds, names

TASK = ("spec", "tasks", 0)
POD = (*TASK, "template", "spec")
MAIN = (*POD, "containers", 0)
LENIENT, STRICT = RuleSettings(), RuleSettings(strict=True)


def tasks(*called: str, **more: Any) -> list[dict[str, Any]]:
    return [
        {"name": name, "replicas": 1, "template": {"spec": {"containers": [container()]}}, **more.get(name, {})}
        for name in called
    ]


def policies(*made: dict[str, Any]) -> dict[str, Any]:
    return job(policies=list(made))


def pod(**annotations: str) -> dict[str, Any]:
    keys = {"least": names.BUDGET_MIN_AVAILABLE, "most": names.BUDGET_MAX_UNAVAILABLE}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "annotations": {keys[key]: value for key, value in annotations.items()}},
        "spec": {"schedulerName": "volcano", "containers": [container()]},
    }


def hierarchy(path: str, weights: str) -> dict[str, Any]:
    return queue("h", annotations={names.HIERARCHY: path, names.HIERARCHY_WEIGHTS: weights})


def matching(**selector: Any) -> dict[str, Any]:
    return hyper_node({"type": "Node", "selector": selector})


FLOW_TWICE = edited(job_flow(a=[], b=["a"]), ("spec", "flows", 2), {"name": "a"})
TREE = (
    queue("p", deserved={"cpu": 4}, capability={"cpu": 8}),
    queue("c", parent="p", deserved={"cpu": 3}),
    queue("d1", parent="p"),
    queue("d2", parent="d1"),
    queue("d3", parent="d2"),
    queue("moved", parent="root"),
    queue("below", parent="moved"),
)
# Each law: an object that breaks it, where that is told, and the nearest one that keeps it.
CASES: list[tuple[laws.Law, dict[str, Any], str, dict[str, Any]]] = [
    (laws.SCHEMA, edited(job(), (*TASK, "replicas"), "2"), "spec.tasks[0].replicas", job()),
    (laws.TEMPLATE, edited(job(), (*MAIN, "image"), ""), "spec.tasks[0].template.spec.containers[0].image", job()),
    (laws.TEMPLATE_OF_USE, edited(job(), (*MAIN, "image"), "busybox "), "spec.tasks[0].template.spec.containers[0].image", job()),
    (laws.TEMPLATE_NEWER, edited(job(), (*POD, "volumes"), [{"name": "v", "zzz": {}}]), "spec.tasks[0].template.spec.volumes[0].zzz", edited(job(), (*POD, "volumes"), [{"name": "v", "emptyDir": {}}])),
    (laws.TASKS, job(tasks=tasks("a", "a")), "spec.tasks[1].name", job(tasks=tasks("a", "b"))),
    (laws.JOB_NAME, edited(job(), ("metadata", "name"), "j" * 64), "metadata.name", edited(job(), ("metadata", "name"), "j" * 54)),
    (laws.HOST_NAMES, edited(job(plugins={"svc": []}), ("metadata", "name"), "a.b"), "spec.tasks[0].name", edited(job(), ("metadata", "name"), "a.b")),
    (laws.NUMBERS, job(minAvailable=3), "spec.minAvailable", job(minAvailable=2)),
    (laws.PARTITIONS, edited(job(), (*TASK, "partitionPolicy"), {"totalPartitions": 2, "partitionSize": 2}), "spec.tasks[0].replicas", edited(job(), (*TASK, "partitionPolicy"), {"totalPartitions": 2, "partitionSize": 1})),
    (laws.POLICIES, policies({"action": "AbortJob", "event": "PodFailed"}, {"action": "AbortJob", "events": ["PodFailed"]}), "spec.policies[1].events[0]", policies({"action": "AbortJob", "event": "PodFailed"}, {"action": "AbortJob", "events": ["PodEvicted"]})),
    (laws.POLICY_REPEATS, policies({"action": "AbortJob", "events": ["PodFailed", "PodFailed"]}), "spec.policies[0].events[1]", policies({"action": "AbortJob", "events": ["PodFailed"]})),
    (laws.POLICY_ACTION, policies({"action": "Restart", "exitCode": 3}), "spec.policies[0].action", policies({"action": "RestartJob", "exitCode": 3})),
    (laws.POLICY_TIMEOUT, policies({"action": "AbortJob", "event": "PodFailed", "timeout": "-5s"}), "spec.policies[0].timeout", policies({"action": "AbortJob", "event": "PodFailed", "timeout": "5s"})),
    (laws.POLICY_IDLE, policies({"action": "AbortJob", "event": "PodPending"}), "spec.policies[0]", policies({"action": "AbortJob", "event": "PodPending", "timeout": "5m"})),
    (laws.PLUGINS, job(plugins={"mpi": []}), "spec.plugins.mpi", job(plugins={"mpi": ["--master=worker"]})),
    (laws.PLUGIN_ARGUMENTS, job(plugins={"svc": ["--enable-networking"]}), "spec.plugins.svc", job(plugins={"svc": ["--disable-network-policy"]})),
    (laws.VOLUMES, job(volumes=[{"mountPath": "/a"}]), "spec.volumes[0]", job(volumes=[{"mountPath": "/a", "volumeClaimName": "c"}])),
    (laws.CLAIMS, job(volumes=[{"mountPath": "/a", "volumeClaim": {}}]), "spec.volumes[0].volumeClaim.accessModes", job(volumes=[{"mountPath": "/a", "volumeClaim": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}])),
    (laws.TOPOLOGY, job(networkTopology={"highestTierAllowed": 1, "highestTierName": "r"}), "spec.networkTopology.highestTierName", job(networkTopology={"highestTierName": "r"})),
    (laws.NUMA, edited(edited(job(), (*TASK, "topologyPolicy"), "restricted"), (*MAIN, "resources"), {"requests": {"cpu": "500m"}}), "spec.tasks[0].template.spec.containers[0].resources.requests.cpu", edited(edited(job(), (*TASK, "topologyPolicy"), "restricted"), (*MAIN, "resources"), {"requests": {"cpu": 1}})),
    (laws.DEPENDENCIES, job(tasks=tasks("a", "b", b={"dependsOn": {"name": ["c"]}})), "spec.tasks[1].dependsOn.name[0]", job(tasks=tasks("a", "b", b={"dependsOn": {"name": ["a"]}}))),
    (laws.DEADLOCK, job(minAvailable=2, tasks=tasks("a", "b", b={"dependsOn": {"name": ["a"]}})), "spec.minAvailable", job(minAvailable=1, tasks=tasks("a", "b", b={"dependsOn": {"name": ["a"]}}))),
    (laws.QUEUE, job(queue="nobody"), "spec.queue", job(queue="default")),
    (laws.UNSEEN, job(priorityClassName="absent"), "spec.priorityClassName", job()),
    (laws.LEAST_OF_ROLE, pod_group(minTaskMember={"a": -1}), "spec.minTaskMember.a", pod_group(minTaskMember={"a": 1})),
    (laws.BUDGETS, pod(least="0"), f"metadata.annotations[{names.BUDGET_MIN_AVAILABLE}]", pod(least="1")),
    (laws.BUDGET_FORM, pod(least="+5"), f"metadata.annotations[{names.BUDGET_MIN_AVAILABLE}]", pod(least="5")),
    (laws.AMOUNTS, queue(capability={"cpu": -1}), "spec.capability.cpu", queue(capability={"cpu": 1})),
    (laws.RESOURCES, queue(capability={"a/b/c": 1}), "spec.capability[a/b/c]", queue(capability={"a/c": 1})),
    (laws.PROMISES, queue(guarantee={"resource": {"cpu": 2}}), "spec.guarantee.resource.cpu", queue(guarantee={"resource": {"cpu": 2}}, deserved={"cpu": 2})),
    (laws.STATE, queue(state="Closing"), "status.state", queue(state="Closed")),
    (laws.HIERARCHY, hierarchy("root/a", "1/0"), f"metadata.annotations[{names.HIERARCHY_WEIGHTS}]", hierarchy("root/a", "1/2")),
    (laws.HIERARCHY_FORM, hierarchy("root/a", "1/inf"), f"metadata.annotations[{names.HIERARCHY_WEIGHTS}]", hierarchy("root/a", "1/2.5")),
    (laws.PARENT, queue("q", parent="nobody"), "spec.parent", queue("q", parent="p")),
    (laws.SUBTREE, queue("moved", parent="d3"), "spec.parent", queue("moved", parent="d1")),
    (laws.SHARES, queue("q", parent="p", deserved={"cpu": 2}), "spec.deserved.cpu", queue("q", parent="p", deserved={"cpu": 1})),
    (laws.PATTERN, matching(regexMatch={"pattern": "node-("}), "spec.members[0].selector.regexMatch.pattern", matching(regexMatch={"pattern": "node-.*"})),
    (laws.PATTERN_FORM, matching(regexMatch={"pattern": r"\p{Greek}+"}), "spec.members[0].selector.regexMatch.pattern", matching(regexMatch={"pattern": "[a-z]+"})),
    (laws.SELECTOR, matching(labelMatch={"matchExpressions": [{"key": "a", "operator": "Is"}]}), "spec.members[0].selector.labelMatch.matchExpressions[0].operator", matching(labelMatch={"matchExpressions": [{"key": "a", "operator": "Exists"}]})),
    (laws.FINDS_NOTHING, hyper_node({"type": "HyperNode", "selector": {"regexMatch": {"pattern": "a"}}}), "spec.members[0].selector.regexMatch", hyper_node({"type": "HyperNode", "selector": {"exactMatch": {"name": "a"}}})),
    (laws.FLOWS, job_flow(a=["b"]), "spec.flows[0].dependsOn.targets[0]", job_flow(a=["b"], b=[])),
    (laws.FLOW_NAMES, job_flow(a_b=[]), "spec.flows[0].name", job_flow(ab=[])),
    (laws.FLOW_REPEATS, FLOW_TWICE, "spec.flows[2].name", job_flow(a=[], b=["a"])),
    (laws.FLOW_UNHEEDED, edited(job_flow(a=[]), ("spec", "flows", 0, "patch"), {"jobSpec": {"queue": "q"}}), "spec.flows[0].patch", job_flow(a=[])),
    (laws.SCHEDULE, cron_job(schedule="hourly"), "spec.schedule", cron_job(schedule="@hourly")),
    (laws.CRON_TEMPLATE, edited(cron_job(), ("spec", "jobTemplate", "spec", "minAvailable"), 7), "spec.jobTemplate.spec.minAvailable", cron_job()),
    (laws.CRON_MINUTES, cron_job(schedule="@every 5s"), "spec.schedule", cron_job(schedule="@every 5m")),
]  # fmt: skip
# Laws about changes and deletions, and about a kind that no webhook judges, have tests of their own below.
APART = (laws.CHANGES, laws.ROOT, laws.DELETION, laws.JOB_TEMPLATE)


def found_by(manifest: dict[str, Any], settings: RuleSettings, **more: Any) -> remarks.Remarks:
    return objects.judged(manifest, settings=settings, around=objects.known(*TREE), **more)


def broken(manifest: dict[str, Any], law: laws.Law, settings: RuleSettings, **more: Any) -> list[remarks.Remark]:
    return [each for each in found_by(manifest, settings, **more).all if each.law == law]


def test_every_law_has_a_case_and_a_name_of_its_own():
    assert {law.name for law, *_ in CASES} | {law.name for law in APART} == {law.name for law in laws.ALL}
    assert len({law.name for law in laws.ALL}) == len(laws.ALL) == len(CASES) + len(APART)


@pytest.mark.parametrize(("law", "bad", "field", "good"), CASES, ids=[law.name for law, *_ in CASES])
def test_a_law_is_broken_by_one_object_and_kept_by_its_neighbour(law, bad, field, good):
    assert field in [each.field for each in broken(bad, law, LENIENT)], found_by(bad, LENIENT).all
    assert broken(good, law, LENIENT) == []
    assert found_by(good, STRICT).refusals == []


@pytest.mark.parametrize(("law", "bad", "field", "good"), CASES, ids=[law.name for law, *_ in CASES])
def test_only_what_others_refuse_is_refused_unless_rules_are_strict(law, bad, field, good):
    del field, good
    lenient, strict = found_by(bad, LENIENT), found_by(bad, STRICT)

    assert bool(lenient.refusals) == (law.refused_by in ("Volcano", "Kubernetes", "schema")), lenient.all
    assert bool(strict.refusals) == (law.refused_by != "nobody"), strict.all
    assert [str(each) for each in lenient.all] == [str(each) for each in strict.all]


@pytest.mark.parametrize("strict", [False, True])
def test_laws_on_changes_and_deletions_hold_for_everybody(strict):
    settings, root = RuleSettings(strict=strict), queue("root")
    image = edited(job(), (*MAIN, "image"), "other")

    assert broken(image, laws.CHANGES, settings, old=job())[0].refuses
    assert not broken(edited(job(), (*TASK, "replicas"), 5), laws.CHANGES, settings, old=job())
    assert broken(edited(root, ("spec", "capability"), {"cpu": 1}), laws.ROOT, settings, old=root)[0].refuses
    assert not broken(edited(root, ("spec", "weight"), 2), laws.ROOT, settings, old=root)
    assert broken(queue("p"), laws.DELETION, settings, old=queue("p"), operation="DELETE")[0].refuses
    assert not broken(queue("c"), laws.DELETION, settings, old=queue("c"), operation="DELETE")


@pytest.mark.parametrize(("strict", "refused"), [(False, False), (True, True)])
def test_a_template_of_jobs_is_refused_by_nobody_else(strict, refused):
    from pumice.admission import job_flows
    from pumice.admission.requests import written

    found = remarks.Remarks(strict=strict)
    manifest = {
        "apiVersion": "flow.volcano.sh/v1alpha1",
        "kind": "JobTemplate",
        "metadata": {"name": "t"},
        "spec": job(minAvailable=9)["spec"],
    }

    job_flows.judge_template(written("CREATE", manifest), found, objects.known(), RuleSettings(strict=strict))

    assert [(each.law, each.field, each.refuses) for each in found.all] == [
        (laws.JOB_TEMPLATE, "spec.minAvailable", refused)
    ]


# ---- what Volcano admits, though it looks wrong

ADMITTED = [
    policies({"action": "TerminateJob", "events": ["PodEvicted", "PodFailed", "PodEvicted"]}),
    policies({"action": "TerminateJob", "event": "PodFailed", "events": ["PodFailed"]}),
    job(plugins={"tensorflow": [], "svc": ["--enable-networking"]}),
    job(plugins={"mpi": ["--nonsense", "--master=boss"]}, tasks=tasks("master", "worker")),  # what is behind the flag is not read
    job(plugins={"ray": []}),
    edited(job_flow(a=[], b=["a"]), ("spec", "flows", 2), {"name": "a"}),
    edited(job_flow(a=["b"], b=["a"]), ("spec", "flows", 2), {"name": "a"}),  # the last of two counts
    pod(least="2147483647"),
    pod(most="007%"),
    hierarchy("", "5"),
    queue("root", parent="p"),
    queue("q", parent="p", capability={"cpu": 8}),
    matching(regexMatch={"pattern": r"(?<name>\Qa.b\E)\z"}),
    matching(regexMatch={"pattern": "a" * 3000}),
    edited(job(), (*POD, "terminationGracePeriodSeconds"), -1),
    edited(job(), (*POD, "imagePullSecrets"), [{}]),
    edited(job(), (*POD, "volumes"), [{"name": "v", "projected": {}}]),
    edited(job(), (*POD, "volumes"), [{"name": "v", "emptyDir": {"medium": "HugePages-512Mi"}}]),
]  # fmt: skip


@pytest.mark.parametrize("manifest", ADMITTED, ids=range(len(ADMITTED)))
def test_what_volcano_admits_is_admitted(manifest):
    assert found_by(manifest, LENIENT).refusals == []


@pytest.mark.parametrize(
    ("pattern", "law"),
    [
        ("(?=a)b", laws.PATTERN),
        (r"(a)\1", laws.PATTERN),
        ("a**", laws.PATTERN),
        ("[z-a]", laws.PATTERN),
        (r"\pN", laws.PATTERN_FORM),
        ("(?U)a+", laws.PATTERN_FORM),
        (r"\x{41}", laws.PATTERN_FORM),
        ("(a{1000}){1000}", laws.PATTERN_FORM),
    ],
)
def test_patterns_are_refused_where_go_cannot_read_them_either(pattern, law):
    assert [each.law for each in found_by(matching(regexMatch={"pattern": pattern}), LENIENT).all] == [law]


CHANGES = [
    ((*MAIN, "resources", "requests", "cpu"), "1000m", False),
    ((*MAIN, "resources", "requests", "cpu"), "2", True),
    ((*MAIN, "command"), [], False),
    ((*POD, "hostNetwork"), False, False),
    ((*POD, "schedulerName"), "", False),
    ((*TASK, "template", "metadata"), {"creationTimestamp": None}, False),
    ((*POD, "terminationGracePeriodSeconds"), 0, True),
    ((*POD, "automountServiceAccountToken"), False, True),
    (("spec", "maxRetry"), 7, True),
]


@pytest.mark.parametrize(("path", "value", "refused"), CHANGES)
def test_a_change_that_changes_nothing_is_none(path, value, refused):
    old = edited(job(maxRetry=3), (*MAIN, "resources"), {"requests": {"cpu": "1"}})

    found = found_by(edited(old, path, value), LENIENT, old=old)

    assert bool(found.refusals) == refused, found.all


def test_a_queue_whose_amounts_stay_is_not_judged_by_them_again():
    around = objects.known(queue("p", deserved={"cpu": 1}), queue("c", parent="p", deserved={"cpu": 3}))
    old = queue("c", parent="p", deserved={"cpu": 3})

    def refused(new: dict[str, Any]) -> bool:
        return bool(objects.judged(new, old=old, around=around, settings=LENIENT).refusals)

    assert not refused(edited(old, ("spec", "weight"), 5))
    assert not refused(edited(edited(old, ("spec", "weight"), 5), ("spec", "deserved", "cpu"), "3000m"))
    assert refused(edited(old, ("spec", "deserved", "cpu"), 4))


# ---- how it is told


def test_a_review_admits_with_warnings_and_refuses_where_rules_are_strict():
    rule, manifest = rules.BY_PATH["/jobs/validate"], policies({"action": "AbortJob", "events": ["PodFailed"] * 2})
    question = reviewing.Question(uid="1", request=objects.written("CREATE", manifest))
    told = "spec.policies[0].events[1]: is PodFailed, which the same policy lists already; once is enough"

    lenient = reviewing.answer(rule, question, objects.known(), LENIENT)["response"]
    strict = reviewing.answer(rule, question, objects.known(), STRICT)["response"]

    assert lenient == {"uid": "1", "allowed": True, "warnings": [told]}
    assert (strict["allowed"], strict["status"]["message"]) == (False, told)


def test_a_hundred_warnings_do_not_hide_that_an_object_is_refused():
    found = remarks.Remarks()
    for index in range(remarks.MOST + 5):
        found.add((index,), "odd", laws.CLAIMS)
    found.add(("spec",), "wrong", laws.TASKS)

    assert [str(each) for each in found.refusals] == ["spec: wrong"]


def test_kinds_of_laws_are_kinds():
    known = {kind.name for kind in kinds.KINDS} | {"all"}
    assert {each for law in laws.ALL for each in law.kinds.split(", ")} <= known
