import pytest
from sim_objects import SECOND, cluster, node, pod, stored

from pumice.cache import effects


def bind(simulated, name="p", to="n1"):
    uid = stored(simulated, f"pod/a/{name}")["metadata"]["uid"]
    simulated.send(effects.Bind(namespace="a", name=name, uid=uid, node=to))
    simulated.settle()


def phase(simulated, name="p"):
    found = stored(simulated, f"pod/a/{name}")
    return found and found["status"]["phase"]


def conditions(simulated, name="p"):
    found = stored(simulated, f"pod/a/{name}")
    return {each["type"]: (each["status"], each.get("lastTransitionTime")) for each in found["status"]["conditions"]}


def test_a_bound_pod_runs_after_the_settle():
    simulated, _ = cluster(pod(), node())
    simulated.advance(2 * SECOND)
    bind(simulated)
    assert phase(simulated) == "Running"
    assert stored(simulated, "pod/a/p")["status"]["startTime"] == "2026-01-01T00:00:02Z"
    at = ("True", "2026-01-01T00:00:02Z")
    assert conditions(simulated) == {"PodScheduled": at, "Ready": at}


def test_a_pod_that_gets_its_node_by_a_patch_runs_after_the_settle():
    simulated, _ = cluster(pod())
    simulated.merge([{"kind": "Pod", "metadata": {"name": "p", "namespace": "a"}, "spec": {"nodeName": "n1"}}])
    assert phase(simulated) == "Pending"
    simulated.settle()
    assert phase(simulated) == "Running"
    assert set(conditions(simulated)) == {"PodScheduled", "Ready"}


@pytest.mark.parametrize(("value", "ends"), [(None, "Succeeded"), ("failed", "Failed"), ("succeeded", "Succeeded")])
def test_a_pod_ends_its_run_time_after_it_started(value, ends):
    annotations = {"pumice.dev/run-time": "60s"} | ({"pumice.dev/exit": value} if value else {})
    simulated, _ = cluster(pod(annotations=annotations), node())
    simulated.advance(5 * SECOND)
    bind(simulated)
    simulated.advance(60 * SECOND - 1)
    assert phase(simulated) == "Running"
    simulated.advance(1)
    assert phase(simulated) == ends
    assert conditions(simulated)["Ready"] == ("False", "2026-01-01T00:01:05Z")
    assert not simulated.events


def test_a_pod_given_as_running_has_been_running_since_its_creation():
    manifest = pod(node="n1", annotations={"pumice.dev/run-time": "60s"})
    manifest["metadata"]["creationTimestamp"] = "2025-12-31T23:59:30Z"
    simulated, _ = cluster(manifest)
    simulated.advance(30 * SECOND)
    assert phase(simulated) == "Succeeded"


def test_a_run_time_that_is_over_ends_at_the_settle():
    manifest = pod(node="n1", annotations={"pumice.dev/run-time": "1s"})
    manifest["metadata"]["creationTimestamp"] = "2025-12-31T23:59:30Z"
    simulated, _ = cluster(manifest)
    simulated.settle()
    assert phase(simulated) == "Succeeded"


def test_a_run_time_of_zero_ends_within_the_settle():
    simulated, _ = cluster(pod(annotations={"pumice.dev/run-time": "0"}))
    bind(simulated)
    assert phase(simulated) == "Succeeded"


def test_a_run_time_that_is_changed_replaces_the_old_one():
    simulated, _ = cluster(pod(node="n1", annotations={"pumice.dev/run-time": "10s"}))
    simulated.settle()
    annotations = {"pumice.dev/run-time": "20s"}
    simulated.merge([{"kind": "Pod", "metadata": {"name": "p", "namespace": "a", "annotations": annotations}}])
    simulated.advance(19 * SECOND)
    assert phase(simulated) == "Running"
    simulated.advance(SECOND)
    assert phase(simulated) == "Succeeded"


def test_a_pod_of_the_same_name_does_not_end_by_the_timer_of_its_predecessor():
    simulated, _ = cluster(pod(node="n1", annotations={"pumice.dev/run-time": "10s"}))
    simulated.advance(5 * SECOND)
    simulated.delete(["pod/a/p"])
    simulated.apply([pod(node="n1", annotations={"pumice.dev/run-time": "10s"})])
    simulated.advance(6 * SECOND)
    assert phase(simulated) == "Running"
    simulated.advance(4 * SECOND)
    assert phase(simulated) == "Succeeded"


@pytest.mark.parametrize(
    ("annotations", "told"),
    [
        ({"pumice.dev/run-time": "soon"}, ["pumice.dev/run-time.*'soon'"]),
        ({"pumice.dev/run-time": 60}, ["pumice.dev/run-time.*60"]),
        ({"pumice.dev/run-time": "-5s"}, ["pumice.dev/run-time.*'-5s' is negative"]),
        ({"pumice.dev/run-time": "1h", "pumice.dev/exit": "boom"}, ["pumice.dev/exit.*'boom'"]),
        ({"pumice.dev/run-time": "", "pumice.dev/exit": 3}, ["pumice.dev/run-time.*''", "pumice.dev/exit.*3"]),
    ],
)
def test_a_bad_annotation_is_told_once_on_the_pod_and_it_runs_on(annotations, told):
    import re

    simulated, _ = cluster(pod(annotations=annotations))
    bind(simulated)
    simulated.merge([{"kind": "Pod", "metadata": {"name": "p", "namespace": "a", "labels": {"x": "1"}}}])
    simulated.advance(60 * SECOND)
    assert phase(simulated) == "Running"
    assert len(simulated.events) == len(told)
    for event, pattern in zip(simulated.events, told, strict=True):
        assert (event.reference, event.note.type, event.note.reason) == ("pod/a/p", "Warning", "BadAnnotation")
        assert re.search(pattern, event.note.message)


# ---- how pods go


def test_a_graceful_delete_keeps_phase_and_node_until_the_period_has_passed():
    simulated, _ = cluster(pod(node="n1", terminationGracePeriodSeconds=5))
    simulated.delete(["pod/a/p"], grace=30 * SECOND)
    simulated.advance(30 * SECOND - 1)
    found = stored(simulated, "pod/a/p")
    assert (found["status"]["phase"], found["spec"]["nodeName"]) == ("Running", "n1")
    simulated.advance(1)
    assert phase(simulated) is None


def test_a_delete_without_grace_is_at_once_even_with_finalizers():
    manifest = pod(node="n1")
    manifest["metadata"]["finalizers"] = ["batch.kubernetes.io/job-tracking"]
    simulated, mirror = cluster(manifest)
    simulated.delete(["pod/a/p"])
    assert phase(simulated) is None
    assert mirror.events[-1] == ("DELETED", "pod/a/p")


@pytest.mark.parametrize("finalizers", [[], ["batch.kubernetes.io/job-tracking"]], ids=["free", "with finalizers"])
@pytest.mark.parametrize("manifest", [pod(), pod(node="n1", phase="Succeeded")], ids=["unbound", "finished"])
def test_grace_is_nothing_to_an_unbound_or_finished_pod(manifest, finalizers):
    manifest = {**manifest, "metadata": {**manifest["metadata"], "finalizers": finalizers}}
    simulated, _ = cluster(manifest)
    simulated.delete(["pod/a/p"], grace=30 * SECOND)
    assert phase(simulated) is None


def test_finalizers_do_not_hold_a_pod_whose_grace_has_passed():
    manifest = pod(node="n1")
    manifest["metadata"]["finalizers"] = ["x"]
    simulated, _ = cluster(manifest)
    simulated.delete(["pod/a/p"], grace=SECOND)
    simulated.advance(SECOND)
    assert phase(simulated) is None


def test_a_second_delete_shortens_the_grace():
    simulated, _ = cluster(pod(node="n1"))
    simulated.delete(["pod/a/p"], grace=30 * SECOND)
    simulated.advance(SECOND)
    simulated.delete(["pod/a/p"], grace=10 * SECOND)
    simulated.advance(9 * SECOND)
    assert phase(simulated) is None


def test_a_terminating_pod_keeps_its_phase_when_its_run_time_ends():
    simulated, _ = cluster(pod(node="n1", annotations={"pumice.dev/run-time": "5s"}))
    simulated.delete(["pod/a/p"], grace=30 * SECOND)
    simulated.advance(10 * SECOND)
    assert phase(simulated) == "Running"
    simulated.advance(20 * SECOND)
    assert phase(simulated) is None


def test_a_terminating_pod_does_not_start():
    simulated, _ = cluster(pod(node="n1", phase="Pending"))
    simulated.delete(["pod/a/p"], grace=30 * SECOND)
    simulated.settle()
    assert phase(simulated) == "Pending"


def test_the_timer_of_a_terminated_pod_leaves_its_successor_alone():
    simulated, _ = cluster(pod(node="n1"))
    simulated.delete(["pod/a/p"], grace=30 * SECOND)
    simulated.advance(SECOND)
    simulated.delete(["pod/a/p"])
    simulated.apply([pod(node="n1")])
    simulated.advance(60 * SECOND)
    assert phase(simulated) == "Running"


def test_nobody_collects_pods_whose_node_is_missing():
    simulated, _ = cluster(node(), pod(node="n1"))
    simulated.delete(["node/n1"])
    simulated.advance(3600 * SECOND)
    assert phase(simulated) == "Running"
