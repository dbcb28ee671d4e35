"""One look at a Job of Volcano, case by case: what orders do, when it is given up, what waits, whom a restart takes away, and how its pods are read."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from test_volcano_job_undoing import GOING, OWNER, group, job, owned, pod

from builders import NOW, SECOND, stamp
from pumice.api import kinds, names
from pumice.cache import effects
from pumice.controllers.queueing.observed import Observed
from pumice.controllers.queueing.requests import Delete, Moment
from pumice.controllers.volcano.jobs import beside, commands, expiring, killing, members, pod_groups, reading
from pumice.controllers.volcano.jobs.controlling import Jobs

AT = NOW + 100 * SECOND
MARK = "volcano.sh/controller-out-of-sync"
HAPPENED = "pumice.dev/happened-at"


def known(made, *pods, phase="Running", ordered=(), gone=()):
    """Give a cluster with a queue, a Job, its group and its pods."""
    observed = Observed([(kinds.JOB, kinds.POD)])
    observed.feed(kinds.QUEUE, "ADDED", {"metadata": {"name": "default"}})
    observed.feed(kinds.JOB, "ADDED", made)
    whole = group(2) | {
        "spec": {"minMember": 1, "minTaskMember": {"w": 2}, "queue": "default"},
        "status": {"phase": phase},
    }
    whole["spec"]["minResources"] = {"count/pods": "1", "pods": "1"}
    observed.feed(kinds.POD_GROUP, "ADDED", whole)
    for kind, listed in ((kinds.POD, pods), (kinds.COMMAND, ordered), (kinds.POD, gone)):
        for each in listed:
            observed.feed(kind, "ADDED", each)
    for each in gone:
        observed.feed(kinds.POD, "DELETED", each)
    return observed


def looked(made, *pods, now=AT, refusals=0, busy=False, jobs=None, **more):
    moment = Moment(now, refusals=refusals, busy=busy)
    return (jobs or Jobs()).reconcile("a", "j", known(made, *pods, **more), moment)


def said(plan):
    """Give the phase, and the message, of the status that is written."""
    written = [
        step.request.body["status"] for step in plan.steps if getattr(step.request, "subresource", "") == "status"
    ]
    return [
        (each["state"]["phase"], each["state"].get("message")) for each in written if "phase" in each.get("state", {})
    ]


# ---- orders


def command(action="AbortJob", name="c", **more):
    target = {"apiVersion": kinds.JOB.api_version, "kind": "Job", "name": "j"}
    return {
        "metadata": {"name": name, "namespace": "a", "uid": f"u-{name}"},
        "target": target,
        "action": action,
        **more,
    }


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({}, "Command c (u-c)"),
        ({"reason": "R"}, "Command c (u-c): R"),
        ({"message": "M"}, "Command c (u-c): M"),
        ({"reason": "R", "message": "M"}, "Command c (u-c): R: M"),
    ],
)
def test_an_order_is_written_down_with_the_command_that_gave_it_and_what_that_says(more, told):
    plan = looked(job("Running"), pod(0), pod(1), ordered=[command(**more)])
    assert said(plan) == [("Aborting", told)]
    assert [each.request.name for each in plan.steps if isinstance(each.request, Delete)] == ["c"]


def test_an_order_that_was_written_down_is_deleted_and_nothing_else_done_before():
    made = job("Running")
    made["status"]["state"]["message"] = "Command c (u-c)"
    plan = looked(made, pod(0), ordered=[command(), command("ResumeJob", "d")])
    assert [(type(each.request), each.request.name) for each in plan.steps] == [(Delete, "c")]


@pytest.mark.parametrize(
    ("phase", "action", "told"),
    [
        ("Running", "ResumeJob", "it changes nothing, as the Job is Running"),
        ("", "ResumeJob", "it changes nothing, as the Job is new"),
        ("Completed", "AbortJob", "it changes nothing, as the Job is Completed"),
    ],
)
def test_an_order_that_changes_nothing_says_so(phase, action, told):
    (step,) = looked(job(phase), pod(0), ordered=[command(action)]).steps
    assert step.said[1].endswith(told)


def test_what_no_job_can_be_ordered_to_do_is_deleted_with_a_warning():
    plan = looked(job("Running"), pod(0), ordered=[command("RestartPod")])
    assert [(type(each.request), each.request.name) for each in plan.steps] == [(Delete, "c")]
    ((kind, _, told),) = plan.notes
    assert kind == "Warning"
    assert told.startswith(
        "Command c: 'RestartPod' is nothing that a Job can be ordered to do; it is one of AbortJob, "
    )


# ---- when a Job is given up


@pytest.mark.parametrize(
    ("most", "refusals", "given_up"),
    [
        (15, 13, False),
        (15, 14, True),
        (2, 0, False),
        (2, 1, True),
        (1, 0, False),
        (1, 1, True),
        (0, 0, False),
        (0, 1, True),
        (-1, 0, False),
        (-1, 99, False),
    ],
)
def test_instead_of_the_last_of_so_many_tries_a_job_is_given_up(most, refusals, given_up):
    plan = looked(job("Running"), pod(0), pod(1), refusals=refusals, jobs=Jobs(most_refusals=most))
    message = "Job failed on action SyncJob for retry limit reached: why"
    assert said(plan) == ([("Terminating", message)] if given_up else [])


# ---- what waits


def policy(event, action, timeout=None):
    return {"event": event, "action": action} | ({} if timeout is None else {"timeout": f"{timeout}s"})


def failed(index, ended=None, **annotations):
    terminated = {"exitCode": 1, **({} if ended is None else {"finishedAt": stamp(ended)})}
    made = pod(index, "Failed", annotations=annotations)
    made["status"]["containerStatuses"] = [{"state": {"terminated": terminated}}]
    return made


def with_policies(made, *listed):
    made["spec"]["policies"] = list(listed)
    return made


@pytest.mark.parametrize(("now", "phases"), [(99, []), (100, ["Failed"])])
def test_a_job_whose_pods_have_ended_has_too_as_soon_as_no_policy_waits_any_more(now, phases):
    made = with_policies(job("Running"), policy("PodFailed", "SyncJob", 20))
    plan = looked(made, failed(0, 10), failed(1, 80), now=NOW + now * SECOND)
    assert [each for each, _ in said(plan)] == phases


def test_a_job_is_looked_at_again_when_the_first_of_its_policies_is_due():
    made = with_policies(job("Running", running=1, failed=2), policy("PodFailed", "AbortJob", 60))
    made["spec"]["tasks"][0]["replicas"] = 3
    plan = looked(made, failed(0, 90), failed(1, 80), pod(2))
    assert plan.again == NOW + 140 * SECOND


@pytest.mark.parametrize(("failure", "stamps"), [({"ended": 90}, False), ({HAPPENED: stamp(90)}, False), ({}, True)])
def test_since_when_a_policy_waits_is_written_on_the_pod_that_does_not_say(failure, stamps):
    made = with_policies(job("Running"), policy("PodFailed", "AbortJob", 60))
    plan = looked(made, failed(0, **failure), pod(1))
    written = [
        step.request
        for step in plan.steps
        if isinstance(step.request, effects.Patch) and step.request.kind is kinds.POD
    ]
    told = [(each.name, each.body["metadata"]["annotations"]) for each in written]
    assert told == ([("j-w-0", {HAPPENED: stamp(100)})] if stamps else [])


# ---- how long it rests, and what it puts off


def settled():
    """Give a Job whose status says all there is to say of two pods that run."""
    counts = {"running": 2, "taskStatusCount": {"w": {"phase": {"Running": 2}}}}
    made = job("Running", controlledResources={}, **counts)
    made["status"]["state"]["message"] = ""
    return made


def test_who_has_nothing_to_do_rests_and_who_has_something_to_do_or_is_stuck_does_not():
    made = settled()
    assert looked(made, pod(0), pod(1)).steps == []
    assert looked(made, pod(0), pod(1)).size == 167
    busy = looked(made, pod(0))
    assert [type(each.request) for each in busy.steps][:1] == [effects.Create]
    assert busy.size == 1
    made["spec"]["queue"] = "nowhere"
    stuck = looked(made, pod(0), pod(1))
    assert stuck.stuck
    assert stuck.size == 0
    made["status"]["state"] |= {"reason": "QueueNotFound", "message": "queue nowhere does not exist"}
    told = looked(made, pod(0), pod(1))
    assert (told.steps, bool(told.stuck), told.size) == ([], True, 0)


@pytest.mark.parametrize("busy", [False, True])
@pytest.mark.parametrize("waits", [False, True])
def test_only_what_is_put_off_while_there_is_much_to_do_is_patient(busy, waits):
    made = job("Running", running=2, taskStatusCount={"w": {"phase": {"Running": 2}}}, controlledResources={})
    plan = looked(
        with_policies(made, policy("PodFailed", "AbortJob", 60)), failed(0, 90) if waits else pod(0), pod(1), busy=busy
    )
    assert (plan.again is not None) is waits
    assert plan.patient is (busy and waits)


# ---- whom a restart takes away


def restarting(reason, message, **status):
    made = job("Restarting", reason, retryCount=1, **status)
    made["status"]["state"]["message"] = message
    return made


def stamped(index, retry=0, **more):
    annotations = {"volcano.sh/job-retry-count": str(retry), **more.pop("annotations", {})}
    return pod(index, annotations=annotations, **more)


@pytest.mark.parametrize(
    ("more", "done"),
    [
        ({}, ["mark", "delete"]),
        (GOING, ["mark"]),
        ({"annotations": {MARK: "true"}}, ["delete"]),
        ({"annotations": {MARK: "true"}, **GOING}, []),
    ],
)
def test_whoever_a_restart_is_for_is_marked_and_deleted_each_once(more, done):
    plan = looked(restarting("RestartPod", "pod j-w-0: why"), stamped(0, **more), stamped(1))
    asked = [each.request for each in plan.steps if each.request.kind is kinds.POD and each.request.name == "j-w-0"]
    assert ["delete" if isinstance(each, Delete) else "mark" for each in asked] == done
    assert all(each.request.name != "j-w-1" for each in plan.steps)


def test_whoever_fails_during_a_restart_of_some_is_taken_away_with_it():
    made = with_policies(restarting("RestartPod", "pod j-w-0: why"), policy("PodFailed", "RestartPod"))
    plan = looked(made, stamped(0, retry=1), stamped(1, retry=1, phase="Failed"))
    assert [each.request.name for each in plan.steps if isinstance(each.request, Delete)] == ["j-w-1"]
    whole = with_policies(restarting("RestartPod", "pod j-w-0: why"), policy("PodFailed", "SyncJob"))
    assert not [
        each
        for each in looked(whole, stamped(0, retry=1), stamped(1, retry=1, phase="Failed")).steps
        if isinstance(each.request, Delete)
    ]


def answer(action, role="w", index=1, partition=""):
    member = None if index is None else SimpleNamespace(name=f"j-w-{index}", partition=partition)
    named = None if role is None else SimpleNamespace(name=role)
    return SimpleNamespace(action=action, occurrence=SimpleNamespace(role=named, member=member))


@pytest.mark.parametrize(
    ("asked", "target"),
    [
        (answer("RestartTask"), "task w"),
        (answer("RestartTask", index=None), "task w"),
        (answer("RestartPod"), "pod j-w-1"),
        (answer("RestartPod", partition="0"), "pod j-w-1"),
        (answer("RestartPod", index=None), None),
        (answer("RestartPartition", partition="0"), "partition w/0"),
        (answer("RestartPartition"), "pod j-w-1"),
        (answer("RestartPod", role=None), None),
        (answer("RestartTask", role=None, index=None), None),
        (answer("RestartJob"), None),
        (answer("AbortJob"), None),
    ],
)
def test_an_action_is_for_a_pod_a_task_or_a_partition(asked, target):
    found = killing.target(asked)
    assert (None if found is None else str(found)) == target


@pytest.mark.parametrize(
    ("reason", "message", "target"),
    [
        ("RestartPod", "pod j-w-0: PodFailed", "pod j-w-0"),
        ("RestartTask", "task w: why", "task w"),
        ("RestartPartition", "partition w/0: why", "partition w/0"),
        ("RestartPod", "pod: why", None),
        ("RestartPod", "nobody knows: why", None),
        ("RestartJob", "pod j-w-0: why", None),
    ],
)
def test_whom_a_restart_is_for_is_read_off_the_status(reason, message, target):
    found = killing.written(reading.Job(restarting(reason, message)))
    assert (None if found is None else str(found)) == target


@pytest.mark.parametrize(
    ("reason", "retries", "keeps"),
    [("RestartJob", 1, False), ("RestartJob", 3, True), ("ResumeJob", 1, True), ("ResumeJob", 3, True)],
)
def test_what_has_ended_is_kept_when_a_job_goes_on_or_is_at_its_last(reason, retries, keeps):
    made = reading.Job(restarting(reason, "why", version=3) | {})
    made.retry_count = retries
    found = members.Members(made, [pod(0, "Succeeded"), pod(1)])
    assert [each.index for each in killing.restarted(made, found, ())] == ([1] if keeps else [0, 1])


# ---- pods as they are read


def condition(status, second=None):
    return {"type": "Ready", "status": status} | ({} if second is None else {"lastTransitionTime": stamp(second)})


@pytest.mark.parametrize(
    ("status", "ended"),
    [
        ({}, None),
        ({"conditions": [condition("False", 7)]}, 7),
        ({"conditions": [condition("True", 7)]}, None),
        ({"conditions": [condition("False")]}, None),
        ({"containerStatuses": [{"state": {"terminated": {"finishedAt": stamp(3)}}}]}, 3),
        ({"containerStatuses": [{"state": {"terminated": {"finishedAt": stamp(each)}}} for each in (3, 9, 5)]}, 9),
        (
            {
                "containerStatuses": [{"state": {"terminated": {"finishedAt": stamp(3)}}}],
                "conditions": [condition("False", 7)],
            },
            7,
        ),
    ],
)
def test_a_pod_ended_with_its_last_container_or_when_it_was_no_longer_ready(status, ended):
    found = members.ended_at({"metadata": {}, "status": status})
    assert found == (None if ended is None else NOW + ended * SECOND)


@pytest.mark.parametrize(
    ("statuses", "code"),
    [
        ([], 0),
        ([{"state": {"running": {}}}], 0),
        ([{"state": {"terminated": {"exitCode": 3}}}], 3),
        ([{"state": {"terminated": {"exitCode": code}}} for code in (3, 5)], 3),
    ],
)
def test_the_exit_code_of_a_pod_is_that_of_its_first_container(statuses, code):
    assert members.exit_code({"status": {"containerStatuses": statuses}}) == code


READY, UNREADY = {"ready": True}, {"ready": False}


@pytest.mark.parametrize(
    ("phase", "status", "ready"),
    [
        ("Succeeded", {}, True),
        ("Failed", {"containerStatuses": [READY]}, False),
        ("Pending", {"containerStatuses": [READY]}, False),
        ("Running", {"containerStatuses": [READY, READY]}, True),
        ("Running", {"containerStatuses": [READY, UNREADY]}, False),
        ("Running", {"containerStatuses": [{}]}, False),
        ("Running", {"containerStatuses": [UNREADY], "conditions": [condition("True")]}, False),
        ("Running", {"conditions": [condition("True")]}, True),
        ("Running", {"conditions": [condition("False")]}, False),
        ("Running", {}, False),
    ],
)
@pytest.mark.parametrize("going", [False, True])
def test_a_pod_is_ready_that_has_succeeded_or_runs_with_all_containers_ready(phase, status, ready, going):
    made = reading.Job(job("Running"))
    each = pod(0, phase, **(GOING if going else {}))
    each["status"] |= status
    found = members.Members(made, [each])
    assert found.ready(made.roles[0]) == (ready and not going)
    assert found.ready(SimpleNamespace(name="other")) == 0


@pytest.mark.parametrize("annotations", [None, "x", {}, {"volcano.sh/task-spec": "w", "volcano.sh/job-version": "2"}])
def test_a_pod_that_names_no_job_is_none_of_its_making(annotations):
    other = owned("j-w-0")
    if annotations is not None:
        other["metadata"]["annotations"] = annotations
    found = members.Members(reading.Job(job("Running")), [other])
    assert (found.all, found.strangers) == ([], [other])


# ---- groups, and what stands beside


@pytest.mark.parametrize(
    ("phase", "enters"),
    [("", False), ("Pending", False), ("Inqueue", True), ("Running", True), ("Unknown", True), ("Completed", True)],
)
@pytest.mark.parametrize("going", [False, True])
def test_pods_may_be_made_once_their_group_was_let_in_and_while_it_stays(phase, enters, going):
    found = group(**(GOING if going else {})) | {"status": {"phase": phase}}
    assert pod_groups.lets_in(found) is (enters and not going)
    assert not pod_groups.lets_in(None)


@pytest.mark.parametrize(
    ("holds", "waits"),
    [
        ({}, "m"),
        ({"type": "Scheduled"}, ""),
        ({"type": None}, ""),
        ({"reason": "NotEnoughTasks"}, ""),
        ({"reason": "NotEnoughPodsOfTask"}, ""),
        ({"status": "False"}, ""),
        ({"message": ""}, "r"),
        ({"message": "", "reason": ""}, ""),
    ],
)
def test_what_speaks_against_a_group_is_its_newest_condition_that_holds(holds, waits):
    newest = {"type": "Unschedulable", "status": "True", "reason": "r", "message": "m", "lastTransitionTime": stamp(5)}
    old = {"type": "Unschedulable", "status": "True", "message": "old", "lastTransitionTime": stamp(1)}
    found = {"status": {"conditions": [newest | holds] + ([] if "status" in holds else [old])}}
    assert pod_groups.why_it_waits(found) == waits


class Plugin:
    """Needs a ConfigMap with data that is kept fresh."""

    def objects(self, made):
        wanted = {"data": {"k": "new"}, "other": {"x": "y"}}
        return [SimpleNamespace(kind=kinds.CONFIG_MAP, name="j-c", content=wanted, fresh=("data",), make=None)]


def config(data, *, owner=OWNER, **more):
    metadata = {"name": "j-c", "namespace": "a", "uid": "c", "ownerReferences": [owner] if owner else []}
    return {"metadata": metadata | more, "data": data}


@pytest.mark.parametrize(
    ("present", "body"),
    [
        (config({"k": "new"}), None),
        (config({"k": "old"}), {"data": {"k": "new"}}),
        (config({"k": "old", "l": "x"}), {"data": {"k": "new", "l": None}}),
        (config({"k": "old"}, **GOING), None),
        (config({"k": "old"}, owner={**OWNER, "uid": "other"}), None),
        (config({"k": "old"}, owner=None), None),
    ],
)
def test_what_a_plugin_wants_fresh_is_brought_up_to_date_where_it_is_the_jobs_own(present, body):
    observed = Observed()
    observed.feed(kinds.CONFIG_MAP, "ADDED", present)
    steps = beside.keep(reading.Job(job("Running")), [Plugin()], observed)
    assert [each.request.body for each in steps] == ([] if body is None else [body])


def test_what_a_plugin_needs_is_made_for_the_job():
    (step,) = beside.keep(reading.Job(job("Running")), [Plugin()], Observed())
    metadata = step.request.manifest["metadata"]
    assert (metadata["name"], [each["uid"] for each in metadata["ownerReferences"]]) == ("j-c", ["u"])
    assert metadata["labels"] == {"volcano.sh/job-name": "j", "volcano.sh/job-namespace": "a"}
    assert step.request.manifest["data"] == {"k": "new"}


def test_of_what_plugins_make_only_that_of_jobs_is_wanted_and_of_all_else_everything():
    made = (kinds.CONFIG_MAP, kinds.SERVICE, kinds.NETWORK_POLICY, kinds.SECRET)
    assert Jobs().selectors == dict.fromkeys(made, names.JOB_NAME)


# ---- changes that say nothing new


@pytest.mark.parametrize(
    ("kind", "change", "same"),
    [
        (kinds.POD, {"status": {"phase": "Running", "podIP": "x"}}, True),
        (kinds.POD, {"status": {"phase": "Failed"}}, False),
        (kinds.POD_GROUP, {"status": {"phase": "Running", "running": 3}}, True),
        (kinds.POD_GROUP, {"status": {"phase": "Failed"}}, False),
        (kinds.COMMAND, {"status": {"phase": "Running"}}, False),
    ],
)
def test_a_change_of_a_pod_or_a_group_that_nobody_reads_is_none(kind, change, same):
    before = {"metadata": {"name": "x"}, "status": {"phase": "Running"}}
    assert Jobs().is_same(kind, before, before | change) is same


def test_a_job_that_does_not_say_when_it_ended_stays_and_says_so():
    observed = Observed()
    observed.feed(
        kinds.JOB,
        "ADDED",
        {
            "metadata": {"name": "j", "namespace": "a"},
            "spec": {"ttlSecondsAfterFinished": 1},
            "status": {"state": {"phase": "Failed"}},
        },
    )
    plan = expiring.ExpiredJobs().reconcile("a", "j", observed, Moment(AT))
    assert (plan.steps, "lastTransitionTime is missing" in plan.stuck) == ([], True)


def test_orders_wait_in_the_order_in_which_they_were_given():
    observed = Observed()
    for name, second in (("b", 2), ("a", 2), ("c", 1)):
        made = command(name=name)
        made["metadata"]["creationTimestamp"] = stamp(second)
        observed.feed(kinds.COMMAND, "ADDED", made)
    going = command(name="d")
    going["metadata"] |= GOING
    observed.feed(kinds.COMMAND, "ADDED", going)
    assert [each["metadata"]["name"] for each in commands.waiting("a", "j", observed)] == ["c", "a", "b"]


@pytest.mark.parametrize(("annotated", "writes"), [(False, True), (True, False)])
@pytest.mark.parametrize("extends", [False, True])
def test_a_job_in_a_queue_of_other_clusters_says_once_that_it_is_forwarded(annotated, writes, extends):
    made = settled()
    made["metadata"]["annotations"] = {names.JOB_FORWARDING: "true"} if annotated else {}
    observed = known(made, pod(0), pod(1))
    clusters = {"spec": {"extendClusters": [{"name": "x"}]}} if extends else {}
    observed.feed(kinds.QUEUE, "MODIFIED", {"metadata": {"name": "default", "resourceVersion": "9"}, **clusters})
    plan = Jobs().reconcile("a", "j", observed, Moment(AT))
    told = [each.request.body for each in plan.steps]
    said_so = {"metadata": {"annotations": {names.JOB_FORWARDING: "true"}}}
    assert told == ([said_so] if extends and writes else [])


# ---- what is said of a Job at work


def status_of(plan):
    written = [
        step.request.body["status"] for step in plan.steps if getattr(step.request, "subresource", "") == "status"
    ]
    return written[0] if written else {}


@pytest.mark.parametrize(("phase", "stays"), [("", "Pending"), ("Pending", "Pending"), ("Running", "Running")])
def test_a_job_that_is_stuck_says_why_in_the_phase_that_it_has(phase, stays):
    made = job(phase)
    made["spec"]["queue"] = "nowhere"
    plan = looked(made, pod(0))
    state = status_of(plan)["state"]
    assert state.get("phase", phase) == stays
    assert (state["reason"], state["message"]) == ("QueueNotFound", "queue nowhere does not exist")
    assert plan.stuck == "queue nowhere does not exist"


@pytest.mark.parametrize(("phase", "told"), [("Pending", True), ("Running", False)])
def test_why_its_group_waits_is_the_reason_of_a_job_that_is_pending(phase, told):
    made = job(phase)
    observed = known(made, pod(0), pod(1, "Pending" if phase == "Pending" else "Running"))
    made["status"]["state"]["message"] = ""
    if phase == "Pending":
        made["spec"]["minAvailable"] = 2
    waits = {
        "type": "Unschedulable",
        "status": "True",
        "message": "queue q is closed; 2/2 tasks in gang unschedulable: x",
    }
    waiting = group(2, resourceVersion="9") | {"status": {"phase": "Inqueue", "conditions": [waits]}}
    observed.feed(kinds.POD_GROUP, "MODIFIED", waiting)
    plan = Jobs().reconcile("a", "j", observed, Moment(AT))
    state = status_of(plan).get("state", {})
    assert (state.get("reason"), state.get("message")) == (
        ("Unschedulable", "queue q is closed") if told else (None, None)
    )


@pytest.mark.parametrize(
    ("end", "spec", "phase", "message"),
    [
        ("Failed", {}, "Failed", "0 of 2 pods succeeded, 2 failed; minAvailable is 1"),
        ("Failed", {"minSuccess": 2}, "Failed", "0 of 2 pods succeeded, 2 failed; minAvailable is 1, minSuccess 2"),
        ("Succeeded", {}, "Completed", None),
    ],
)
def test_a_job_that_has_ended_says_why_and_nothing_of_plugins_any_more(end, spec, phase, message):
    made = job("Running")
    made["spec"] |= spec
    status = status_of(looked(made, pod(0, end), pod(1, end)))
    state = status["state"]
    assert (state["phase"], state["message"]) == (phase, message)
    assert state.get("reason") == ("NotEnoughSucceeded" if phase == "Failed" else None)
    assert status["version"] == 3
    assert status["controlledResources"] == {"plugin-svc": None}


def test_what_a_job_has_of_plugins_that_it_names_no_more_is_taken_off_its_status_and_claims_stay():
    made = settled()
    made["status"]["controlledResources"] = {"plugin-svc": "svc", "volume-pvc-c": "c"}
    made["spec"]["plugins"] = {"env": []}
    assert status_of(looked(made, pod(0), pod(1)))["controlledResources"] == {"plugin-svc": None, "plugin-env": "env"}


@pytest.mark.parametrize(("counted", "announced"), [(0, True), (1, False)])
def test_a_policy_that_waits_is_announced_when_the_status_first_counts_what_it_is_about(counted, announced):
    made = with_policies(settled(), policy("PodFailed", "AbortJob", 60))
    made["status"] |= {"running": 2, "failed": counted}
    plan = looked(made, failed(0, 90), pod(1))
    (said_of,) = [step.said for step in plan.steps if getattr(step.request, "subresource", "") == "status"]
    assert said_of == (("ExecuteAction", "Execute action AbortJob after 1m0s") if announced else None)


def test_a_claim_is_named_against_the_version_that_was_read():
    made = job("Pending")
    made["metadata"]["resourceVersion"] = "7"
    made["spec"]["volumes"] = [{"mountPath": "/d", "volumeClaim": {}}]
    (step,) = looked(made).steps
    assert step.request.body["metadata"] == {"resourceVersion": "7"}
    (volume,) = step.request.body["spec"]["volumes"]
    assert volume["volumeClaimName"].startswith("j-pvc-")
