"""Rules about jobs: every rule refuses at its own field, with the numbers."""

from __future__ import annotations

import pytest
from admission_objects import GONE, container, edited, job, known, queue, refusals, warnings

from pumice.admission.jobs import completing, dependencies
from pumice.admission.requests import Request, RuleSettings

TASK = ("spec", "tasks", 0)
POLICY = {"action": "RestartJob", "event": "PodFailed"}


def two(first: str, second: str, **needs: list[str]) -> list[dict]:
    made = [
        {"name": name, "replicas": 1, "template": {"spec": {"containers": [container()]}}} for name in (first, second)
    ]
    for each in made:
        if each["name"] in needs:
            each["dependsOn"] = {"name": needs[each["name"]]}
    return made


def policies(*made: dict) -> dict:
    return job(policies=list(made))


BROKEN = [
    (edited(job(), ("spec", "tasks"), []), "spec.tasks", "at least one task"),
    (edited(job(), ("spec",), GONE), "spec", "missing"),
    (edited(job(), (*TASK, "minAvailable"), 3), "spec.tasks[0].minAvailable", "is 3, above replicas of the task (2)"),
    (edited(job(), (*TASK, "replicas"), -1), "spec.tasks[0].replicas", "is -1, and must be at least 0"),
    (edited(job(), (*TASK, "replicas"), "2"), "spec.tasks[0].replicas", "not a string"),
    (job(minAvailable=5), "spec.minAvailable", "is 5, above the replicas of all tasks together (2)"),
    (job(tasks=two("a", "a")), "spec.tasks[1].name", '"a", which tasks[0] is called already'),
    (edited(job(), (*TASK, "name"), "Worker_1"), "spec.tasks[0].name", "lower-case letters"),
    (edited(job(), ("metadata", "name"), "j" * 64), "metadata.name", "has 64 characters, and may have at most 63"),
    (edited(job(), ("metadata", "name"), "j" * 60), "spec.tasks[0].name", "has 69 characters"),
    (edited(job(), (*TASK, "template"), GONE), "spec.tasks[0].template", "missing"),
    (job(maxRetry=-1), "spec.maxRetry", "is -1"),
    (job(ttlSecondsAfterFinished=-1), "spec.ttlSecondsAfterFinished", "is -1"),
    (job(minSuccess=0), "spec.minSuccess", "is 0, and must be at least 1"),
    (job(plugins={"pytoch": []}), "spec.plugins.pytoch", "no plugin of jobs; did you mean pytorch?"),
    (job(plugins={"mpi": []}), "spec.plugins.mpi", "needs a task called master; there are worker"),
    (job(plugins={"mpi": ["--master=boss"]}), "spec.plugins.mpi", "needs a task called boss"),
    (job(plugins={"env": "x"}), "spec.plugins.env", "must be a list"),
    (job(plugins={"ray": []}), "spec.plugins.ray", "needs a task called head; there are worker"),
    (job(plugins={"svc": ["--publish=true"]}), "spec.plugins.svc", "--publish is no flag of it; it takes --disable-network-policy"),
    (job(plugins={"svc": ["--inject-host-env"]}), "spec.plugins.svc", "did you mean --inject-hosts-env?"),
    (job(plugins={"tensorflow": ["--port=99999"]}), "spec.plugins.tensorflow", "--port=99999 is no port; write 1 to 65535"),
    (job(plugins={"ssh": ["--ssh-public-key=x"]}), "spec.plugins.ssh", "are given together or not at all"),
    (job(networkTopology={"highestTierAllowed": 1, "highestTierName": "rack"}), "spec.networkTopology.highestTierName", "only one"),
    (job(networkTopology={"mode": "strict"}), "spec.networkTopology.mode", "one of hard, soft"),
    (job(priorityClassName="High_Prio"), "spec.priorityClassName", "lower-case"),
    (job(runningEstimate="soon"), "spec.runningEstimate", "no duration"),
    # policies
    (policies({"event": "PodFailed"}), "spec.policies[0].action", "missing"),
    (policies({"action": "Restart", "event": "PodFailed"}), "spec.policies[0].action", "must be one of AbortJob"),
    (policies({"action": "SyncJob", "event": "PodFailed"}), "spec.policies[0].action", "must be one of"),
    (policies({"action": "AbortJob"}), "spec.policies[0]", "must say when it acts"),
    (policies({"action": "AbortJob", "event": "PodFailed", "exitCode": 3}), "spec.policies[0].exitCode", "together with event"),
    (policies({"action": "AbortJob", "exitCode": 0}), "spec.policies[0].exitCode", "is 0"),
    (policies({"action": "AbortJob", "exitCode": 3}, {"action": "AbortJob", "exitCode": 3}), "spec.policies[1].exitCode", "is 3, which policies[0] has"),
    (policies(POLICY, {"action": "AbortJob", "events": ["PodFailed"]}), "spec.policies[1].events[0]", "is PodFailed, which policies[0] has already"),
    (policies(POLICY, {"action": "AbortJob", "event": "*"}), "spec.policies[1]", "excludes every other (PodFailed)"),
    (policies({"action": "AbortJob", "event": "PodRunning"}), "spec.policies[0].event", "must be one of"),
    (policies({"action": "AbortJob", "event": "CommandIssued"}), "spec.policies[0].event", "must be one of"),
    (policies({**POLICY, "timeout": "5 minutes"}), "spec.policies[0].timeout", "no duration"),
    (edited(job(), (*TASK, "policies"), [POLICY, POLICY]), "spec.tasks[0].policies[1].event", "is PodFailed"),
    # volumes
    (job(volumes=[{"volumeClaimName": "c"}]), "spec.volumes[0].mountPath", "missing"),
    (job(volumes=[{"mountPath": "/a:b", "volumeClaimName": "c"}]), "spec.volumes[0].mountPath", "colon"),
    (job(volumes=[{"mountPath": "/a"}]), "spec.volumes[0]", "needs one of volumeClaim and volumeClaimName"),
    (job(volumes=[{"mountPath": "/a", "volumeClaimName": "c"}] * 2), "spec.volumes[1].mountPath", '"/a", which volumes[0] has already'),
    (job(volumes=[{"mountPath": "/a", "volumeClaimName": "C_1"}]), "spec.volumes[0].volumeClaimName", "lower-case"),
    (job(volumes=[{"mountPath": "/a", "volumeClaim": {"accessModes": ["ReadWriteOnce"]}}]), "spec.volumes[0].volumeClaim.resources.requests.storage", "missing"),
    (job(volumes=[{"mountPath": "/a", "volumeClaim": {"resources": {"requests": {"storage": "1Gi"}}}}]), "spec.volumes[0].volumeClaim.accessModes", "empty"),
    # partitions
    (edited(job(), (*TASK, "partitionPolicy"), {"totalPartitions": 2, "partitionSize": 2}), "spec.tasks[0].replicas", "is 2, and must be totalPartitions x partitionSize (2 x 2 = 4)"),
    (edited(job(), (*TASK, "partitionPolicy"), {"totalPartitions": 2}), "spec.tasks[0].partitionPolicy.partitionSize", "missing"),
    (edited(job(), (*TASK, "partitionPolicy"), {"totalPartitions": 2, "partitionSize": 1, "minPartitions": 3}), "spec.tasks[0].partitionPolicy.minPartitions", "is 3, above totalPartitions (2)"),
    # NUMA
    (edited(job(), (*TASK, "topologyPolicy"), "restricted"), "spec.tasks[0].template.spec.containers[0].resources.limits.cpu", "needs whole CPUs"),
    (edited(job(), (*TASK, "topologyPolicy"), "strict"), "spec.tasks[0].topologyPolicy", "must be one of none"),
    # dependencies
    (job(tasks=two("a", "b", b=["c"])), "spec.tasks[1].dependsOn.name[0]", "no task of that name; there are a, b"),
    (job(tasks=two("a", "b", b=["b"])), "spec.tasks[1].dependsOn.name[0]", "itself"),
    (job(tasks=two("a", "b", a=["b"], b=["a"])), "spec.tasks[0].dependsOn.name[0]", "a needs b needs a"),
]  # fmt: skip


@pytest.mark.parametrize(("manifest", "field", "message"), BROKEN, ids=[f"{case[1]}-{case[2][:30]}" for case in BROKEN])
def test_a_job_is_refused_at_the_field_that_is_wrong(manifest, field, message):
    found = refusals(manifest)

    assert [text for where, text in found if where == field and message in text], found
    assert len(found) <= 2, found  # one mistake is no avalanche


VALID = [
    job(),
    job(policies=[POLICY, {"action": "AbortJob", "exitCode": 3}, {"action": "AbortJob", "exitCode": 4}]),
    job(policies=[{"action": "CompleteJob", "events": ["TaskCompleted", "PodEvicted"], "timeout": "5m"}]),
    job(policies=[{"action": "RestartPod", "event": "*"}]),
    job(plugins={"svc": [], "ssh": ["--no-root"], "env": []}),
    job(tasks=two("master", "worker"), plugins={"mpi": []}),
    job(tasks=two("boss", "worker"), plugins={"mpi": ["--master", "boss"]}),
    job(tasks=two("a", "b", b=["a"])),
    job(volumes=[{"mountPath": "/a", "volumeClaimName": "c"}, {"mountPath": "/b", "volumeClaimName": "c"}]),
    edited(job(minAvailable=2), (*TASK, "partitionPolicy"), {"totalPartitions": 1, "partitionSize": 2, "minPartitions": 1}),
    edited(
        edited(job(), (*TASK, "topologyPolicy"), "restricted"),
        (*TASK, "template", "spec", "containers", 0, "resources"),
        {"requests": {"cpu": "2000m"}},
    ),
    edited(edited(job(), ("metadata", "name"), GONE), ("metadata", "generateName"), "train-"),
    edited(job(), (*TASK, "maxRetry"), -1),
]  # fmt: skip


@pytest.mark.parametrize("manifest", VALID)
def test_a_job_that_breaks_no_rule_is_let_in(manifest):
    assert refusals(manifest) == []


@pytest.mark.parametrize(
    ("others", "name", "message"),
    [
        ([queue("closed", "Closed")], "closed", "state is Closed"),  # I9
        ([queue("closing", "Closing")], "closing", "state is Closing"),
        ([queue("odd", "Unknown")], "odd", "state is Unknown"),
        ([queue("p"), queue("c", parent="p")], "p", "has 1 queues below it (c)"),  # I10
        ([], "root", "is root"),  # I10
        ([], "nope", "there is no such queue; create it first"),
        ([queue("team-a")], "team-b", "did you mean team-a?"),
    ],
)
def test_a_queue_that_takes_no_jobs_is_named_with_its_state(others, name, message):
    [(field, text)] = refusals(job(queue=name), around=known(*others))

    assert field == "spec.queue"
    assert message in text


def test_a_queue_without_a_state_is_open():
    assert refusals(job(queue="q"), around=known(queue("q"))) == []
    assert refusals(job(queue="q"), around=known(queue("q", "Open"))) == []


def test_a_queue_that_was_not_read_is_only_noted():
    around = known(complete=False)

    assert refusals(job(queue="q"), around=around) == []
    [(field, text)] = warnings(job(queue="q"), around=around)
    assert field == "spec.queue"
    assert "must exist in the cluster" in text


def test_every_mistake_is_reported_not_only_the_first():
    wrong = job(minAvailable=9, maxRetry=-1, plugins={"x": []}, queue="nope")

    assert [field for field, _ in refusals(wrong)] == [
        "spec.minAvailable",
        "spec.maxRetry",
        "spec.plugins.x",
        "spec.queue",
    ]


CHANGED = [
    (("spec", "minAvailable"), 2, ""),
    (("spec", "priorityClassName"), "high", ""),
    ((*TASK, "replicas"), 5, ""),
    ((*TASK, "minAvailable"), 1, ""),
    (("metadata", "labels"), {"a": "b"}, ""),
    ((*TASK, "template", "spec", "containers", 0, "image"), "other", "spec.tasks[0].template.spec.containers[0].image"),  # I12
    (("spec", "queue"), "q", "spec.queue"),
    (("spec", "maxRetry"), 4, "spec.maxRetry"),
    (("spec", "policies"), [POLICY], "spec.policies"),
    (("spec", "tasks", 1), two("a", "b")[0], "spec.tasks"),
    ((*TASK, "name"), "other", "spec.tasks[0].name"),
    ((*TASK, "minAvailable"), 3, "spec.tasks[0].minAvailable"),
    (("spec", "minAvailable"), 9, "spec.minAvailable"),
]  # fmt: skip


@pytest.mark.parametrize(("path", "value", "field"), CHANGED)
def test_only_numbers_of_pods_and_the_priority_may_change(path, value, field):
    old = completing.complete(Request(operation="CREATE", object=job()), known(), RuleSettings())

    found = refusals(edited(old, path, value), old=old)

    assert [where for where, _ in found] == ([field] if field else [])


def test_a_claim_that_the_controller_names_may_get_its_name():
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    old = job(volumes=[{"mountPath": "/a", "volumeClaim": claim}])

    assert refusals(edited(old, ("spec", "volumes", 0, "volumeClaimName"), "train-volume-1"), old=old) == []
    assert refusals(edited(old, ("spec", "volumes", 0, "mountPath"), "/b"), old=old) != []


def test_a_change_of_metadata_is_let_through_though_the_job_breaks_rules():
    old = job(minAvailable=9)

    assert refusals(edited(old, ("metadata", "finalizers"), []), old=old) == []


def test_what_is_left_out_is_filled_in():
    pod = {"hostNetwork": True, "containers": [container()]}
    given = job(
        tasks=[{"replicas": 2, "template": {"spec": pod}}, {"replicas": 3, "minAvailable": 1, "template": {"spec": {"containers": [container()]}}}],
        plugins={"mpi": ["--master=default0"]},
        minAvailable=0,
        queue="",
    )  # fmt: skip

    made = completing.complete(
        Request(operation="CREATE", object=given), known(), RuleSettings(scheduler_names=("vol", "b"))
    )

    spec = made["spec"]
    assert (spec["queue"], spec["schedulerName"], spec["maxRetry"], spec["minAvailable"]) == ("default", "vol", 3, 3)
    assert [(task["name"], task["minAvailable"], task["maxRetry"]) for task in spec["tasks"]] == [("default0", 2, 3), ("default1", 1, 3)]  # fmt: skip
    assert spec["tasks"][0]["template"]["spec"]["dnsPolicy"] == "ClusterFirstWithHostNet"
    assert "dnsPolicy" not in spec["tasks"][1]["template"]["spec"]
    assert spec["plugins"] == {"mpi": ["--master=default0"], "svc": [], "ssh": []}
    assert "schedulerName" not in given["spec"]  # what came in stays as it is


@pytest.mark.parametrize("plugin", ["tensorflow", "pytorch", "ray"])
def test_plugins_that_talk_to_peers_bring_svc(plugin):
    made = completing.complete(Request(operation="CREATE", object=job(plugins={plugin: []})), known(), RuleSettings())

    assert made["spec"]["plugins"] == {plugin: [], "svc": []}


def test_a_task_with_partitions_starts_whole_ones():
    parts = {"totalPartitions": 4, "partitionSize": 2, "minPartitions": 3}
    given = edited(edited(job(), (*TASK, "replicas"), 8), (*TASK, "partitionPolicy"), parts)

    made = completing.complete(Request(operation="CREATE", object=given), known(), RuleSettings())

    assert made["spec"]["tasks"][0]["minAvailable"] == 6


def test_what_is_filled_in_once_stays():
    once = completing.complete(Request(operation="CREATE", object=job()), known(), RuleSettings())

    assert completing.complete(Request(operation="CREATE", object=once), known(), RuleSettings()) == once


def test_a_gang_that_waits_for_pods_behind_it_is_warned_of():
    [(field, text)] = warnings(job(minAvailable=2, tasks=two("a", "b", b=["a"])))

    assert field == "spec.minAvailable"
    assert "at most 1 lets it start" in text


@pytest.mark.parametrize(
    ("manifest", "field"),
    [
        (policies({"action": "AbortJob", "event": "PodPending"}), "spec.policies[0]"),
        (policies({"action": "AbortJob", "event": "JobUpdated"}), "spec.policies[0].event"),
        (job(priorityClassName="high"), "spec.priorityClassName"),
    ],
)
def test_what_never_acts_is_warned_of_and_let_in(manifest, field):
    assert [where for where, _ in warnings(manifest)] == [field]
    assert refusals(manifest) == []


def test_pods_with_host_names_are_judged_by_the_longest_name():
    long = edited(edited(job(), ("metadata", "name"), "j" * 54), (*TASK, "replicas"), 11)

    assert refusals(long) == []
    [(field, text)] = refusals(edited(long, ("spec", "plugins"), {"svc": []}))
    assert field == "spec.tasks[0].name"
    assert "has 64 characters" in text


def test_a_long_chain_of_dependencies_is_no_circle():
    graph = {str(each): [str(each + 1)] for each in range(5000)} | {"5000": []}

    assert dependencies.find_circle(graph) == []
    assert dependencies.find_circle({**graph, "5000": ["0"]})[0] == "0"


SECRET = "hunter2-hunter2"  # noqa: S105  the point of the test


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ((*TASK, "template", "spec", "containers", 0, "env"), [{"name": "PASSWORD", "value": 271828182845}]),
        ((*TASK, "template", "spec", "containers", 0, "env"), [{"name": "PASSWORD", "value": {"hunter2-hunter2": 1}}]),
        ((*TASK, "template", "spec", "containers", 0, "command"), f"mysql -p {SECRET}"),
        ((*TASK, "template", "spec", "containers", 0, "args"), [{"p": SECRET}]),
        (("spec", "plugins"), {"ssh": f"--ssh-private-key={SECRET}"}),
        ((*TASK, "template", "metadata"), {"annotations": {"token": 271828182845}}),
    ],
)
def test_what_may_be_a_secret_is_in_no_message(path, value):
    found = refusals(edited(job(), path, value))

    assert found
    assert not [text for _, text in found if SECRET in text or "271828" in text]


def test_a_variable_that_changes_tells_neither_its_old_value_nor_its_new_one():
    place = (*TASK, "template", "spec", "containers", 0, "env")
    old = edited(job(), place, [{"name": "PASSWORD", "value": SECRET}])

    [(field, text)] = refusals(edited(old, (*place, 0, "value"), f"{SECRET}-2"), old=old)

    assert field.endswith("env[0].value")
    assert SECRET not in text
