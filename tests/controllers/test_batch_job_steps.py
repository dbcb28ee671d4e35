"""What a Job of batch/v1 does next, case by case: which pods it starts and takes away, how it counts them, when it is over and what its status says."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st
from workload_objects import START, at, stamp

from pumice.api import duration, kinds
from pumice.cache import effects
from pumice.controllers.queueing import requests
from pumice.controllers.queueing.observed import Observed
from pumice.controllers.workloads.jobs import ending, failure_policy, indexes, staffing, tallying
from pumice.controllers.workloads.jobs.controlling import Jobs

SECOND = duration.SECOND
NOW = at(1000)


def job(status=None, *, name="j", template=None, going=False, **spec):
    metadata = {"name": name, "namespace": "a", "uid": f"u-{name}", "resourceVersion": "5"}
    if going:
        metadata["deletionTimestamp"] = stamp(9)
    selector = {"matchLabels": {"job": name}}
    pod = {"metadata": {"labels": {"job": name}}, "spec": template or {"containers": [{"name": "c"}]}}
    return {"metadata": metadata, "spec": {"selector": selector, "template": pod, **spec}, "status": status or {}}


def pod(
    name,
    phase="Running",
    *,
    index=None,
    tracked=True,
    going=False,
    ended=None,
    owner="u-j",
    of="j",
    label="",
    app="j",
    ready=False,
    **status,
):
    metadata = {"name": name, "namespace": "a", "uid": f"u-{name}", "resourceVersion": "3", "labels": {"job": app}}
    metadata["creationTimestamp"] = stamp(0)
    if label:
        metadata["labels"]["batch.kubernetes.io/job-name"] = label
    if owner:
        reference = {"apiVersion": "batch/v1", "kind": "Job", "name": of, "uid": owner, "controller": True}
        metadata["ownerReferences"] = [reference]
    if index is not None:
        metadata["annotations"] = {tallying.INDEX: str(index)}
    if tracked:
        metadata["finalizers"] = [tallying.FINALIZER]
    if going:
        metadata["deletionTimestamp"] = stamp(9)
    if ended is not None:
        state = {"name": "c", "state": {"terminated": {"finishedAt": stamp(ended), "exitCode": 1}}}
        status["containerStatuses"] = [state]
    if ready:
        status["conditions"] = [{"type": "Ready", "status": "True", "lastTransitionTime": stamp(1)}]
    return {"metadata": metadata, "spec": {"nodeName": "n"}, "status": {"phase": phase, **status}}


def many(count, phase="Running", **more):
    return [pod(f"p{place}", phase, **more) for place in range(count)]


def seen(*manifests_of_pods):
    found = Observed()
    for each in manifests_of_pods:
        found.feed(kinds.POD, "ADDED", each)
    return found


def changes(owner, owned, moment=NOW):
    """Give how many pods come, the names of those that go, and when it looks again."""
    tally = tallying.Tally(owner, owned)
    steps, again = staffing.changes(owner, tally, ending.judge(owner, tally, moment), seen(*owned), moment)
    made = [step.request.manifest for step in steps if isinstance(step.request, effects.Create)]
    gone = [step.request.name for step in steps if isinstance(step.request, requests.Delete)]
    assert staffing.balance(steps) == (len(made), frozenset(f"u-{name}" for name in gone))
    return made, gone, again


def numbers(owner, owned, moment=NOW):
    made, gone, again = changes(owner, owned, moment)
    return len(made), len(gone), again


DONE = ("p9", "Succeeded")


@pytest.mark.parametrize(
    ("spec", "owned", "expected"),
    [
        ({}, [], (1, 0)),
        ({"parallelism": 3}, [], (3, 0)),
        ({"parallelism": 3, "completions": 2}, [], (2, 0)),
        ({"parallelism": 3, "completions": 9}, many(1), (2, 0)),
        ({"parallelism": 3, "completions": 3}, [*many(1), pod(*DONE)], (1, 0)),
        ({"parallelism": 3, "completions": 4}, [*many(3), pod(*DONE)], (0, 0)),
        ({"parallelism": 2, "completions": 9}, many(3), (0, 1)),
        ({"parallelism": 3}, many(3), (0, 0)),
        ({"parallelism": 3}, many(5), (0, 2)),
        ({"parallelism": 3}, [*many(1), pod(*DONE)], (0, 0)),  # one has succeeded: nobody is started any more
        ({"parallelism": 1}, [*many(3), pod(*DONE)], (0, 0)),
        ({"parallelism": 0}, [], (0, 0)),
        ({"parallelism": 2, "completions": 2, "suspend": True}, many(2), (0, 2)),
        ({"parallelism": 2, "completions": 1}, [*many(2), pod(*DONE)], (0, 2)),
        ({"parallelism": 2, "backoffLimit": 0}, [*many(2), pod("p9", "Failed")], (0, 2)),
        ({"parallelism": 2, "completions": 4}, [pod("p0", going=True)], (2, 0)),
        ({"parallelism": 2, "completions": 4, "podReplacementPolicy": "Failed"}, [pod("p0", going=True)], (1, 0)),
    ],
)
def test_pods_come_and_go_until_there_are_as_many_as_may_run_at_once_and_are_still_needed(spec, owned, expected):
    early = requests.Moment(START + 10 * SECOND)
    assert numbers(job(**spec), owned, early)[:2] == expected


def indexed(completions, *owned, done="", **spec):
    status = {"completedIndexes": done} if done else {}
    return job(status, completionMode="Indexed", completions=completions, **spec), list(owned)


def test_an_index_has_one_pod_and_those_that_are_done_or_do_not_exist_none():
    owner, owned = indexed(6, pod("a", index=1), pod("b", "Succeeded", index=2), done="0", parallelism=3)
    made, gone, _ = changes(owner, owned)
    assert [each["metadata"]["annotations"][tallying.INDEX] for each in made] == ["3", "4"]
    assert gone == []
    double = [
        pod("a", index=1),
        pod("b", index=1, ready=True),
        pod("c", index=0),
        pod("d", index=6),
        pod("e"),
        pod("f", index=5),
    ]
    owner, owned = indexed(6, *double, done="0", parallelism=6)
    assert sorted(changes(owner, owned)[1]) == ["a", "c", "d", "e"]
    owner, owned = indexed(6, pod("a", index=1), pod("f", index=5), parallelism=1)
    assert len(changes(owner, owned)[1]) == 1


def test_a_second_pod_of_an_index_goes_though_more_might_run():
    _, gone, _ = changes(*indexed(6, pod("a", index=1), pod("b", index=1, ready=True), parallelism=6))
    assert gone == ["a"]


@pytest.mark.parametrize("owned", [[], [pod("a", index=0)], [pod("b", "Succeeded", index=0)]])
def test_a_job_that_does_not_say_how_many_indexes_it_has_has_none(owned):
    owner, _ = indexed(None, done="0", parallelism=2)
    made, gone, _ = changes(owner, owned)
    assert (made, gone) == ([], [each["metadata"]["name"] for each in owned if each["status"]["phase"] == "Running"])
    assert tallying.Tally(owner, owned).succeeded == 0


def test_an_index_whose_pod_is_going_is_filled_again_unless_it_must_have_failed_first():
    going = pod("a", index=0, going=True)
    late = requests.Moment(START + 9000 * SECOND)
    for policy, filled in (({}, ["0", "1"]), ({"podReplacementPolicy": "Failed"}, ["1"])):
        owner, owned = indexed(2, going, parallelism=2, **policy)
        made = changes(owner, owned, late)[0]
        assert [each["metadata"]["annotations"][tallying.INDEX] for each in made] == filled


def test_a_pod_of_an_index_knows_it_by_annotation_label_host_and_variable():
    containers = [{"name": "c"}, {"name": "d", "env": [{"name": "JOB_COMPLETION_INDEX", "value": "mine"}]}]
    template = {"containers": containers, "initContainers": [{"name": "i", "env": [{"name": "x", "value": "y"}]}]}
    owner, _ = indexed(1, template=template)
    (made,) = changes(owner, [])[0]
    metadata, spec = made["metadata"], made["spec"]
    assert metadata["name"].startswith("j-0-")
    assert (metadata["labels"][tallying.INDEX], spec["hostname"]) == ("0", "j-0")
    assert metadata["finalizers"] == [tallying.FINALIZER]
    assert [(owner["uid"], owner["controller"]) for owner in metadata["ownerReferences"]] == [("u-j", True)]
    where = {"fieldRef": {"fieldPath": f"metadata.labels['{tallying.INDEX}']"}}
    variable = {"name": "JOB_COMPLETION_INDEX", "valueFrom": where}
    assert [each.get("env") for each in spec["containers"]] == [[variable], containers[1]["env"]]
    assert spec["initContainers"][0]["env"] == [{"name": "x", "value": "y"}, variable]
    (plain,) = changes(job(), [])[0]
    assert tallying.INDEX not in plain["metadata"].get("annotations", {})
    assert "hostname" not in plain["spec"]


@pytest.mark.parametrize(
    ("ends", "pause"),
    [
        ([("Failed", 100)], 10),
        ([("Failed", 100), ("Failed", 200)], 20),
        ([("Failed", 50), ("Failed", 200), ("Failed", 150)], 40),
        ([("Failed", 100), ("Succeeded", 150), ("Failed", 200)], 10),
        ([("Failed", 200), ("Succeeded", 100)], 10),
        ([("Succeeded", 200), ("Failed", 100)], None),
        ([("Failed", 100 + place) for place in range(7)], 600),
        ([], None),
    ],
)
def test_after_failures_in_a_row_new_pods_wait_ten_seconds_doubled_with_each_at_most_ten_minutes(ends, pause):
    owned = [pod(f"p{place}", phase, ended=second) for place, (phase, second) in enumerate(ends)]
    owner = job(parallelism=1, completions=9, backoffLimit=99)
    last = max((second for _, second in ends), default=0)
    until = START + (last + (pause or 0)) * SECOND
    assert numbers(owner, owned, requests.Moment(until)) == (1, 0, None)
    assert numbers(owner, [*owned, pod("running")], requests.Moment(until - 1)) == (0, 0, None)
    if pause is not None:
        assert numbers(owner, owned, requests.Moment(until - 1)) == (0, 0, until)


def test_a_pod_that_does_not_say_when_it_ended_ended_when_it_was_no_longer_ready_or_came():
    owner = job(parallelism=1, backoffLimit=9)
    unready = {"type": "Ready", "status": "False", "lastTransitionTime": stamp(30)}
    for told, end in (({"conditions": [unready]}, 30), ({}, 0)):
        assert numbers(owner, [pod("a", "Failed", **told)], requests.Moment(START + end * SECOND)) == (
            0,
            0,
            START + (end + 10) * SECOND,
        )


VERDICTS = [
    ({}, [], {}, "running", ""),
    ({"suspend": True}, [], {}, "suspended", ""),
    ({"completions": 1}, [pod("a", "Succeeded")], {}, "succeeding", "CompletionsReached"),
    ({"completions": 2}, [pod("a", "Succeeded")], {}, "running", ""),
    ({"completions": 2, "suspend": True}, [pod("a", "Succeeded"), pod("b", "Succeeded")], {}, "succeeding", None),
    ({}, [pod("a", "Succeeded")], {}, "succeeding", "CompletionsReached"),
    ({}, [pod("a", "Succeeded"), pod("b")], {}, "running", ""),
    ({"backoffLimit": 1}, [pod("a", "Failed")], {}, "running", ""),
    ({"backoffLimit": 1}, [pod("a", "Failed"), pod("b", "Failed")], {}, "failing", "BackoffLimitExceeded"),
    ({}, many(6, "Failed"), {}, "running", ""),
    ({}, many(7, "Failed"), {}, "failing", "BackoffLimitExceeded"),
    ({"activeDeadlineSeconds": 10}, [], {"startTime": stamp(990)}, "failing", "DeadlineExceeded"),
    ({"activeDeadlineSeconds": 11}, [], {"startTime": stamp(990)}, "running", ""),
    ({"activeDeadlineSeconds": 10}, [], {}, "running", ""),
    ({"activeDeadlineSeconds": 10, "suspend": True}, [], {"startTime": stamp(1)}, "suspended", ""),
]


@pytest.mark.parametrize(("spec", "owned", "status", "state", "reason"), VERDICTS)
def test_a_job_is_over_when_enough_have_succeeded_or_too_many_failed_or_it_ran_too_long(
    spec, owned, status, state, reason
):
    owner = job(status, **spec)
    found = ending.judge(owner, tallying.Tally(owner, owned), NOW)
    assert found.state == state
    assert reason is None or found.reason == reason


@pytest.mark.parametrize(("policy", "state"), [("OnFailure", "failing"), ("Never", "running")])
def test_restarts_count_against_the_limit_where_containers_are_started_again(policy, state):
    owner = job(backoffLimit=2, template={"restartPolicy": policy})
    restarted = pod("a", containerStatuses=[{"restartCount": 2}], initContainerStatuses=[{"restartCount": 1}])
    assert ending.judge(owner, tallying.Tally(owner, [restarted]), NOW).state == state
    enough = pod("a", containerStatuses=[{"restartCount": 2}])
    assert ending.judge(owner, tallying.Tally(owner, [enough]), NOW).state == "running"


@pytest.mark.parametrize(("kind", "state"), [("FailureTarget", "failing"), ("SuccessCriteriaMet", "succeeding")])
def test_a_verdict_once_written_stays(kind, state):
    said = {"type": kind, "status": "True", "reason": "R", "message": "M"}
    owner = job({"conditions": [said]}, suspend=True)
    assert ending.judge(owner, tallying.Tally(owner, []), NOW) == ending.JobEnd(state, "R", "M")
    taken_back = job({"conditions": [{**said, "status": "False"}]})
    assert ending.judge(taken_back, tallying.Tally(taken_back, []), NOW).state == "running"


def exits(action, operator, *values, **more):
    return {"action": action, "onExitCodes": {"operator": operator, "values": list(values), **more}}


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        ([], "Count"),
        ([exits("FailJob", "In", 1, 7)], "FailJob"),
        ([exits("FailJob", "In", 2)], "Count"),
        ([exits("FailJob", "NotIn", 2)], "FailJob"),
        ([exits("FailJob", "NotIn", 1)], "Count"),
        ([exits("FailJob", "In", 1, containerName="c")], "FailJob"),
        ([exits("FailJob", "In", 1, containerName="d")], "Count"),
        ([exits("Ignore", "In", 1), exits("FailJob", "In", 1)], "Ignore"),
        ([{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}], "Ignore"),
        ([{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "False"}]}], "Count"),
    ],
)
def test_the_first_rule_that_fits_a_failed_pod_decides(rules, expected):
    disrupted = [{"type": "DisruptionTarget", "status": "True"}]
    failed = pod("a", "Failed", ended=5, conditions=disrupted)
    owner = job(podFailurePolicy={"rules": rules}, backoffLimit=0)
    ruling = failure_policy.rule(owner, failed)
    assert ruling.action == expected
    tally = tallying.Tally(owner, [failed])
    assert [step.request.name for step in tally.released(over=False)] == ["a"]
    assert (tally.failed, bool(tally.fatal)) == (int(expected != "Ignore"), expected == "FailJob")
    state = {"Count": "failing", "FailJob": "failing", "Ignore": "running"}[expected]
    verdict = ending.judge(owner, tally, NOW)
    assert (verdict.state, verdict.reason == failure_policy.REASON) == (state, expected == "FailJob")
    if rules and expected != "Count":
        assert f"matching {expected} rule at index 0" in ruling.message
    assert failure_policy.rule(owner, pod("b", ended=5, conditions=disrupted)).action == "Count"


def lived(owner, owned, moment=NOW):
    """Reconcile until nothing more is done; returns the Job and its pods, as the writes have made them."""
    for _ in range(6):
        observed = seen(*owned)
        observed.feed(kinds.BATCH_JOB, "ADDED", owner)
        steps = Jobs().reconcile("a", "j", observed, moment).steps
        if not steps:
            break
        for step in steps:
            request = step.request
            if isinstance(request, effects.Patch) and request.kind == kinds.BATCH_JOB:
                owner = {**owner, "status": patched(owner["status"], request.body["status"])}
            elif isinstance(request, effects.Patch):
                owned = [
                    {**each, "metadata": {**each["metadata"], "finalizers": request.body["metadata"]["finalizers"]}}
                    if each["metadata"]["name"] == request.name
                    else each
                    for each in owned
                ]
            elif isinstance(request, requests.Delete):
                owned = [each for each in owned if each["metadata"]["name"] != request.name]
            elif isinstance(request, effects.Create):
                made = request.manifest
                metadata = {**made["metadata"], "uid": f"u-{made['metadata']['name']}", "creationTimestamp": stamp(0)}
                owned = [*owned, {**made, "metadata": metadata, "status": {"phase": "Pending"}}]
    return owner, owned


def patched(old, new):
    merged = dict(old)
    for key, value in new.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = patched(old.get(key, {}), value) if isinstance(value, dict) else value
    return merged


def counts(owner):
    status = owner["status"]
    fields = ("active", "ready", "terminating", "succeeded", "failed", "completedIndexes", "uncountedTerminatedPods")
    conditions = [each["type"] for each in status.get("conditions", []) if each["status"] == "True"]
    return {field: status[field] for field in fields if status.get(field)}, conditions


def test_every_pod_is_counted_once_however_often_it_is_looked_at():
    ended = [pod("a", "Succeeded"), pod("b", "Failed", ended=1), pod("c", ready=True)]
    owner, owned = lived(job(parallelism=1, completions=5), ended)
    assert counts(owner) == ({"active": 1, "ready": 1, "succeeded": 1, "failed": 1}, [])
    assert [name for each in owned if tallying.is_tracked(each) for name in [each["metadata"]["name"]]] == ["c"]
    assert lived(owner, owned) == (owner, owned)


def test_a_count_is_written_in_steps_that_may_be_lost():
    ended = [pod("a", "Succeeded"), pod("b", "Failed", ended=1), pod("c", "Failed", tracked=False)]
    uncounted = {"succeeded": ["u-a", "u-x"], "failed": ["u-b", "u-y", "u-z"]}
    owner = job({"succeeded": 2, "failed": 3, "uncountedTerminatedPods": uncounted}, completions=9, backoffLimit=99)
    tally = tallying.Tally(owner, ended)
    assert (tally.succeeded, tally.failed, tally.new_successes, tally.new_failures) == (4, 6, 0, [])
    assert tally.written() == {
        "uncountedTerminatedPods": {"succeeded": ["u-a"], "failed": ["u-b"]},
        "succeeded": 3,
        "failed": 5,
    }
    assert [step.request.name for step in tally.released(over=False)] == ["a", "b"]
    fresh = tallying.Tally(job(completions=9), [*ended, pod("d", "Failed")])
    assert (fresh.succeeded, fresh.failed, fresh.new_successes) == (1, 2, 1)
    assert [each["metadata"]["name"] for each in fresh.new_failures] == ["b", "d"]
    assert fresh.written() == {"uncountedTerminatedPods": {"succeeded": ["u-a"], "failed": ["u-b", "u-d"]}}


@pytest.mark.parametrize(("policy", "failed"), [({}, 1), ({"podReplacementPolicy": "Failed"}, 0)])
def test_a_pod_that_somebody_deletes_has_failed_unless_it_must_end_first(policy, failed):
    tally = tallying.Tally(job(**policy), [pod("a", going=True), pod("b", "Succeeded", going=True)])
    assert (tally.failed, len(tally.terminating), len(tally.active)) == (failed, 1, 0)
    assert tally.succeeded == 1
    assert [each["metadata"]["name"] for each in tally.new_failures] == ["a"] * failed


def test_an_index_counts_once_and_only_below_the_completions():
    owner, owned = indexed(
        4, *(pod(name, "Succeeded", index=place) for name, place in zip("abcd", (1, 1, 3, 4), strict=True))
    )
    tally = tallying.Tally({**owner, "status": {"completedIndexes": "0,1,9"}}, owned)
    assert (listed(tally.completed), tally.succeeded, tally.new_successes) == ([0, 1, 3], 3, 1)
    assert tally.written() == {"uncountedTerminatedPods": {}, "succeeded": 3, "completedIndexes": "0,1,3"}
    assert len(tally.released(over=False)) == 4
    none = tallying.Tally(owner, [pod("a", index=1)])
    assert (none.written(), none.released(over=False)) == ({"uncountedTerminatedPods": {}}, [])
    for text, place in (("5", 5), ("x", None), ("1234567890", None), (None, None)):
        assert tallying.index(pod("a", index=text)) == place


def test_indexes_are_written_as_ranges_of_three_and_more_and_read_back():
    for count in range(7):
        for chosen in itertools.combinations(range(6), min(count, 6)):
            text = indexes.write(indexes.Indexes().with_others(chosen))
            assert listed(indexes.parse(text, 6)) == sorted(chosen)
    assert indexes.write(indexes.Indexes().with_others([7, 0, 2, 3, 4, 5, 9, 10])) == "0,2-5,7,9,10"
    assert indexes.write(indexes.Indexes().with_others([0, 1, 2])) == "0-2"
    assert listed(indexes.parse("0,2-5,x,3-,-4,7", 5)) == [0, 2, 3, 4]
    assert listed(indexes.parse(None, 5)) == []
    assert listed(indexes.parse("9" * 5000 + f",1-{'9' * 5000},3", 5)) == [3]


def listed(found):
    return [index for each in found.ranges for index in each]


@given(
    st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), max_size=8),
    st.integers(0, 25),
    st.sets(st.integers(0, 30)),
)
def test_ranges_of_indexes_are_the_set_that_they_stand_for(pairs, most, others):
    text = ",".join(f"{first}-{last}" for first, last in pairs)
    plain = {index for first, last in pairs for index in range(first, last + 1) if index < most}
    found = indexes.parse(text, most)
    assert listed(found) == sorted(plain)
    more = found.with_others(others)
    assert listed(more) == sorted(plain | others)
    assert len(more) == len(plain | others)
    assert [index in more for index in range(32)] == [index in plain | others for index in range(32)]
    assert list(more.missing(most)) == [index for index in range(most) if index not in plain | others]
    assert indexes.parse(indexes.write(more), 31).ranges == more.ranges
    assert all(before.stop < after.start for before, after in itertools.pairwise(more.ranges))


def test_indexes_of_which_there_are_two_thousand_millions_cost_nothing():
    most = 10**9
    owner, owned = indexed(most, pod("a", "Succeeded", index=most - 2))
    tally = tallying.Tally({**owner, "status": {"completedIndexes": f"0-{most - 3}"}}, owned)
    assert tally.written()["completedIndexes"] == f"0-{most - 2}"
    assert (tally.succeeded, tally.new_successes) == (most - 1, 1)
    assert list(tally.completed.missing(most)) == [most - 1]
    owner, _ = indexed(2**31 - 1)
    assert tallying.Tally({**owner, "status": {"completedIndexes": "0-2147483647"}}, []).succeeded == 2**31 - 1


def test_a_job_that_has_enough_says_so_at_once_and_that_it_is_complete_when_all_its_pods_are_gone():
    good, running = pod("a", "Succeeded"), pod("b")
    owner = job(completions=1, parallelism=1)
    tally = tallying.Tally(owner, [good, running])
    verdict = ending.judge(owner, tally, NOW)
    status, notes = ending.status(owner, tally, verdict, NOW, made=0, leaving=frozenset({"u-b"}))
    assert counts({"status": status})[1] == ["SuccessCriteriaMet"]
    assert (status["terminating"], status.get("active"), notes) == (1, None, [])
    assert verdict.message == "Reached expected number of succeeded pods"
    owner, _ = lived(owner, [good])
    assert counts(owner) == ({"succeeded": 1}, ["SuccessCriteriaMet", "Complete"])
    assert owner["status"]["completionTime"] == stamp(1000)


def test_a_job_that_fails_takes_its_pods_away_and_tells_why():
    owner, owned = lived(job(backoffLimit=0, parallelism=2), [pod("a", "Failed", ended=1), pod("b")])
    assert counts(owner)[1] == ["FailureTarget", "Failed"]
    assert [each["metadata"]["name"] for each in owned] == ["a"]
    assert "completionTime" not in owner["status"]
    failed = job(backoffLimit=0)
    tally = tallying.Tally(failed, [pod("a", "Failed", tracked=False)])
    verdict = ending.JobEnd("failing", "R", "M")
    assert ending.status(failed, tally, verdict, NOW, made=0, leaving=frozenset())[1] == [("Warning", "R", "M")]


def test_a_suspended_job_says_so_and_begins_anew_when_it_is_resumed():
    owner, owned = lived(job({"startTime": stamp(3)}, suspend=True), [pod("a")])
    assert (counts(owner)[1], owned, owner["status"].get("startTime")) == (["Suspended"], [], None)
    resumed = {**owner, "spec": {**owner["spec"], "suspend": False}}
    tally = tallying.Tally(resumed, [])
    status, notes = ending.status(resumed, tally, ending.JobEnd(), NOW, made=1, leaving=frozenset())
    assert (counts({"status": status}), status["startTime"]) == (({"active": 1}, []), stamp(1000))
    assert notes == [("Normal", "Resumed", "Job resumed")]
    assert ending.status(owner, tally, ending.JobEnd("suspended"), NOW, made=0, leaving=frozenset())[1] == []


def test_a_finished_job_is_deleted_when_its_time_to_live_is_over():
    ended = {"conditions": [{"type": "Complete", "status": "True", "lastTransitionTime": stamp(10)}]}
    for lives, due, deleted in ((990, None, True), (991, START + 1001 * SECOND, False), (None, None, False)):
        more = {} if lives is None else {"ttlSecondsAfterFinished": lives}
        observed = seen(pod("a"), pod("b", "Failed"))
        observed.feed(kinds.BATCH_JOB, "ADDED", job(ended, **more))
        found = Jobs().reconcile("a", "j", observed, NOW)
        gone = [step.request.name for step in found.steps if isinstance(step.request, requests.Delete)]
        assert gone == ["a", "j"][: 1 + deleted]
        assert found.again == due
        assert [step.request.name for step in found.steps if isinstance(step.request, effects.Patch)] == ["a", "b"]


@pytest.mark.parametrize(
    ("owner", "owned", "released"),
    [
        (None, pod("a"), True),
        (None, pod("a", tracked=False), False),
        (job(going=True), pod("a", "Failed"), True),
        (job(going=True), pod("a"), False),
        (job(going=True, podReplacementPolicy="Failed"), pod("a", going=True), True),
        (None, pod("a", owner="", label="j"), True),
        (None, pod("a", owner="", label="k"), False),
        (job(going=True), pod("a", owner="", label="j", going=True, app="k"), True),
        (job(), pod("a", owner="", label="j", going=True, app="k"), False),
        (None, pod("a", of="k"), False),
        (job(), pod("a", owner="u-earlier"), True),
        (job({"startTime": stamp(1)}), pod("a", owner="u-earlier"), False),
        (job(managedBy="someone.else/x"), pod("a", "Failed"), False),
    ],
)
def test_pods_that_nobody_will_count_any_more_are_let_go(owner, owned, released):
    observed = seen(owned)
    if owner is not None:
        observed.feed(kinds.BATCH_JOB, "ADDED", owner)
    steps = Jobs().reconcile("a", "j", observed, NOW).steps
    let_go = [
        step.request.name
        for step in steps
        if isinstance(step.request, effects.Patch) and step.request.kind == kinds.POD
    ]
    assert let_go == ["a"] * released


def test_a_pod_that_must_end_first_has_not_failed_and_starts_no_pause():
    owner = job(parallelism=2, podReplacementPolicy="Failed")
    assert numbers(owner, [pod("a", going=True)], requests.Moment(START)) == (1, 0, None)


def test_a_job_that_is_over_lets_go_a_pod_that_was_never_counted():
    ended = {"conditions": [{"type": "Failed", "status": "True"}]}
    observed = seen(pod("a", going=True))
    observed.feed(kinds.BATCH_JOB, "ADDED", job(ended, podReplacementPolicy="Failed"))
    assert [step.request.name for step in Jobs().reconcile("a", "j", observed, NOW).steps] == ["a"]


def test_what_is_counted_is_written_against_the_version_that_was_read_and_without_pods_that_were_refused():
    observed = seen(pod("a", "Failed", ended=1))
    observed.feed(kinds.BATCH_JOB, "ADDED", job(parallelism=2))
    found = Jobs().reconcile("a", "j", observed, NOW)
    for steps, active in ((found.steps, 2), (found.when_refused("no"), None)):
        (written,) = [each.request for each in steps if getattr(each.request, "subresource", "") == "status"]
        assert (written.body["metadata"]["resourceVersion"], written.body["status"].get("active")) == ("5", active)
        assert written.body["status"]["startTime"] == stamp(1000)
        (released,) = [each.request for each in steps if getattr(each.request, "name", "") == "a"]
        assert released.body == {"metadata": {"finalizers": None, "resourceVersion": "3"}}
    kept = pod("b")
    kept["metadata"]["finalizers"].append("x")
    assert tallying.release(kept).request.body["metadata"]["finalizers"] == ["x"]


def test_a_gang_is_made_before_its_pods_which_name_it():
    owner = job(completionMode="Indexed", completions=2, parallelism=2)
    observed = seen()
    observed.feed(kinds.BATCH_JOB, "ADDED", owner)
    (workload,) = Jobs(gangs=True).reconcile("a", "j", observed, NOW).steps
    assert workload.request.kind is kinds.WORKLOAD
    group = pod("g", tracked=False)
    observed.feed(kinds.NATIVE_POD_GROUP, "ADDED", group)
    made = [each.request.manifest for each in Jobs(gangs=True).reconcile("a", "j", observed, NOW).steps[:2]]
    assert [each["spec"]["schedulingGroup"] for each in made] == [{"podGroupName": "g"}] * 2
    assert list(Jobs(gangs=True).concerns(kinds.NATIVE_POD_GROUP, group, observed)) == [("a", "j")]


@pytest.mark.parametrize(
    ("each", "concerned"),
    [
        (pod("a"), ["j"]),
        (pod("a", owner="", label="k", app="x"), ["k"]),
        (pod("a", owner="", label="k", app="x", tracked=False), []),
        (pod("a", owner="", app="x"), []),
        (pod("a", owner="u-x", of="x", label="k", app="x"), ["x"]),
    ],
)
def test_a_pod_concerns_its_job_and_one_without_an_owner_the_job_that_has_not_counted_it(each, concerned):
    observed = seen(each)
    observed.feed(kinds.BATCH_JOB, "ADDED", job())
    assert list(Jobs().concerns(kinds.POD, each, observed)) == [("a", name) for name in concerned]
    stranger = {"metadata": {"name": "g", "namespace": "a"}}
    other = {"apiVersion": "x/v1", "kind": "Other", "name": "o", "uid": "u", "controller": True}
    for manifest in (stranger, {"metadata": {**stranger["metadata"], "ownerReferences": [other]}}):
        assert list(Jobs(gangs=True).concerns(kinds.NATIVE_POD_GROUP, manifest, observed)) == []


def test_a_job_looks_again_when_it_will_have_run_too_long():
    observed = seen(pod("a"))
    observed.feed(kinds.BATCH_JOB, "ADDED", job({"startTime": stamp(990)}, activeDeadlineSeconds=60))
    assert Jobs().reconcile("a", "j", observed, NOW).again == START + 1050 * SECOND
