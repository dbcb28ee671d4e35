import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sim_objects import SECOND, T0, cluster, node, pod, pod_group, priority_class, queue, stored

from drawing import drawn
from pumice.api import timestamp
from pumice.sim import errors
from pumice.sim.clock import START
from pumice.sim.cluster import SimulatedCluster

RUNNING = [
    {"type": "PodScheduled", "status": "True", "lastTransitionTime": T0},
    {"type": "Ready", "status": "True", "lastTransitionTime": T0},
]


def applied(*manifests):
    simulated = SimulatedCluster()
    simulated.apply(list(manifests))
    return simulated


# ---- what exists before anybody comes


def test_queues_and_system_classes_exist():
    simulated = SimulatedCluster()
    assert stored(simulated, "queue/root")["spec"] == {"weight": 1, "reclaimable": False, "dequeueStrategy": "traverse"}
    assert stored(simulated, "queue/default")["spec"]["reclaimable"] is True
    assert stored(simulated, "queue/default")["status"] == {"state": "Open"}
    assert stored(simulated, "priorityclass/system-node-critical")["value"] == 2_000_001_000
    assert stored(simulated, "priorityclass/system-cluster-critical")["value"] == 2_000_000_000


# ---- identity and age


def test_objects_listed_earlier_are_older_by_a_millisecond_each():
    simulated = applied(pod("a"), pod("b"), pod("c"))
    times = [stored(simulated, f"pod/a/{name}")["metadata"]["creationTimestamp"] for name in "abc"]
    assert times == ["2025-12-31T23:59:59.998000Z", "2025-12-31T23:59:59.999000Z", T0]


def test_objects_of_an_earlier_step_are_older_than_those_of_a_later_one_at_the_same_time():
    simulated = applied(pod("a"))
    simulated.apply([pod("b"), pod("c")])
    times = [timestamp.parse(stored(simulated, f"pod/a/{name}")["metadata"]["creationTimestamp"]) for name in "abc"]
    assert times == [START, START + 1000, START + 2000]


def test_time_between_steps_makes_room_for_ages():
    simulated = applied(pod("a"))
    simulated.advance(SECOND)
    simulated.apply([pod("b"), pod("c")])
    assert stored(simulated, "pod/a/c")["metadata"]["creationTimestamp"] == "2026-01-01T00:00:01Z"
    assert stored(simulated, "pod/a/b")["metadata"]["creationTimestamp"] == "2026-01-01T00:00:00.999000Z"


def test_namespace_defaults_and_exists_without_being_listed():
    bare = pod()
    del bare["metadata"]["namespace"]
    simulated = applied(bare, pod("q", "team"))
    assert stored(simulated, "pod/default/p") is not None
    assert stored(simulated, "namespace/default") is not None
    assert stored(simulated, "namespace/team")["metadata"]["labels"] == {"kubernetes.io/metadata.name": "team"}


def test_a_namespace_listed_after_its_pods_is_the_one_that_counts():
    labels = {"tier": "gold"}
    simulated = applied(pod(), {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a", "labels": labels}})
    assert stored(simulated, "namespace/a")["metadata"]["labels"]["tier"] == "gold"


def test_uids_are_the_same_in_every_run():
    uids = [stored(applied(pod()), "pod/a/p")["metadata"]["uid"] for _ in range(2)]
    assert uids[0] == uids[1]


def test_null_fields_of_a_template_count_as_absent():
    manifest = pod()
    manifest["metadata"]["creationTimestamp"] = None
    manifest["status"] = None
    simulated = applied(manifest)
    assert stored(simulated, "pod/a/p")["status"] == {"phase": "Pending"}
    assert stored(simulated, "pod/a/p")["metadata"]["creationTimestamp"] == T0


# ---- pods


@pytest.mark.parametrize(
    ("manifest", "status"),
    [
        (pod(), {"phase": "Pending"}),
        (pod(node="n1"), {"phase": "Running", "startTime": T0, "conditions": RUNNING}),
        (pod(node="n1", phase="Running"), {"phase": "Running", "startTime": T0, "conditions": RUNNING}),
        (pod(node="n1", phase="Pending"), {"phase": "Pending", "conditions": RUNNING[:1]}),
        (pod(node="n1", phase="Succeeded"), {"phase": "Succeeded", "conditions": RUNNING[:1]}),
        (pod(phase="Failed"), {"phase": "Failed"}),
    ],
)
def test_the_status_of_a_pod(manifest, status):
    assert stored(applied(manifest), "pod/a/p")["status"] == status


def test_a_status_that_is_given_stays():
    manifest = pod(node="n1")
    ready = {"type": "Ready", "status": "False"}
    manifest["status"] = {"startTime": "2025-01-01T00:00:00Z", "conditions": [ready], "reason": "x"}
    status = stored(applied(manifest), "pod/a/p")["status"]
    assert status["startTime"] == "2025-01-01T00:00:00Z"
    assert ready in status["conditions"]
    assert (status["reason"], status["phase"]) == ("x", "Running")


def test_a_running_pod_started_when_it_was_created():
    manifest = pod(node="n1")
    manifest["metadata"]["creationTimestamp"] = "2025-06-01T00:00:00Z"
    assert stored(applied(manifest), "pod/a/p")["status"]["startTime"] == "2025-06-01T00:00:00Z"


def test_limits_stand_for_requests_that_are_not_written():
    resources = {"limits": {"cpu": "2", "memory": "1Gi"}, "requests": {"cpu": "1"}}
    only_limits = {"limits": {"cpu": "3"}}
    simulated = applied(
        pod(
            containers=[{"name": "c", "resources": resources}], initContainers=[{"name": "i", "resources": only_limits}]
        )
    )
    spec = stored(simulated, "pod/a/p")["spec"]
    assert spec["containers"][0]["resources"]["requests"] == {"cpu": "1", "memory": "1Gi"}
    assert spec["initContainers"][0]["resources"]["requests"] == {"cpu": "3"}


GOLD, SILVER = priority_class("gold", 100), priority_class("silver", 5, globalDefault=True)
NEVER = priority_class("never", 7, preemptionPolicy="Never")


@pytest.mark.parametrize(
    ("classes", "spec", "found"),
    [
        ([], {}, {}),
        ([GOLD], {"priorityClassName": "gold"}, {"priority": 100, "priorityClassName": "gold"}),
        ([GOLD], {"priorityClassName": "gold", "priority": 3}, {"priority": 100}),
        ([GOLD], {"priorityClassName": "gone"}, {"priority": None, "priorityClassName": "gone"}),
        ([GOLD], {}, {"priority": None}),
        ([GOLD, SILVER], {}, {"priority": 5, "priorityClassName": "silver"}),
        ([GOLD, SILVER], {"priority": 8}, {"priority": 8, "priorityClassName": None}),
        ([SILVER, priority_class("bronze", 2, globalDefault=True)], {}, {"priority": 2}),
        ([NEVER], {"priorityClassName": "never"}, {"priority": 7, "preemptionPolicy": "Never"}),
        ([], {"priorityClassName": "system-node-critical"}, {"priority": 2_000_001_000}),
        ([], {"priorityClassName": 5}, {"priority": None}),
        ([priority_class("odd", "x", globalDefault=True)], {}, {"priority": None}),
    ],
)
def test_priority_follows_the_class_wherever_it_is_listed(classes, spec, found):
    admitted = stored(applied(pod(**spec), *classes), "pod/a/p")["spec"]
    assert {field: admitted.get(field) for field in found} == found


def test_priority_follows_classes_of_earlier_steps():
    simulated = applied(GOLD)
    simulated.apply([pod(priorityClassName="gold")])
    assert stored(simulated, "pod/a/p")["spec"]["priority"] == 100


@pytest.mark.parametrize(
    ("stamp", "end"),
    [
        ("2026-01-01T00:00:10Z", "2026-01-01T00:00:10Z"),
        ("2025-01-01T00:00:10Z", "2026-01-01T00:00:30Z"),
        ("junk", "2026-01-01T00:00:30Z"),
    ],
)
def test_a_pod_given_as_terminating_goes_at_its_mark_or_a_grace_from_now(stamp, end):
    manifest = pod(node="n1")
    manifest["metadata"]["deletionTimestamp"] = stamp
    simulated = applied(manifest)
    assert stored(simulated, "pod/a/p")["metadata"]["deletionTimestamp"] == end
    simulated.advance(timestamp.parse(end) - START - 1)
    assert stored(simulated, "pod/a/p") is not None
    simulated.advance(1)
    assert stored(simulated, "pod/a/p") is None


# ---- nodes, groups, queues


@pytest.mark.parametrize(
    ("status", "allocatable", "capacity"),
    [
        ({"allocatable": {"cpu": "4"}}, {"cpu": "4", "pods": "110"}, {"cpu": "4", "pods": "110"}),
        ({"capacity": {"cpu": "4", "pods": "7"}}, {"cpu": "4", "pods": "7"}, {"cpu": "4", "pods": "7"}),
        (
            {"capacity": {"cpu": "4", "pods": 9}, "allocatable": {"cpu": "3"}},
            {"cpu": "3", "pods": 9},
            {"cpu": "4", "pods": 9},
        ),
        ({"allocatable": {"pods": "5"}, "capacity": {}}, {"pods": "5"}, {"pods": "5"}),
        (None, {"pods": "110"}, {"pods": "110"}),
    ],
)
def test_a_node_has_capacity_allocatable_and_room_for_pods(status, allocatable, capacity):
    found = stored(applied(node(status=status)), "node/n1")
    assert (found["status"]["allocatable"], found["status"]["capacity"]) == (allocatable, capacity)


def test_capacity_and_allocatable_are_two_maps():
    simulated = applied(node())
    simulated.merge([{"kind": "Node", "metadata": {"name": "n1"}, "status": {"allocatable": {"cpu": "1"}}}])
    assert stored(simulated, "node/n1")["status"]["capacity"]["cpu"] == "4"


@pytest.mark.parametrize(
    ("conditions", "ready"),
    [
        (None, "True"),
        ([{"type": "DiskPressure", "status": "False"}], "True"),
        ([{"type": "Ready", "status": "Unknown"}], "Unknown"),
    ],
)
def test_a_node_is_ready_unless_given_otherwise(conditions, ready):
    found = stored(applied(node(status={"conditions": conditions})), "node/n1")
    assert {each["type"]: each["status"] for each in found["status"]["conditions"]}["Ready"] == ready


def test_a_node_is_labelled_with_its_host_name():
    assert stored(applied(node()), "node/n1")["metadata"]["labels"] == {"kubernetes.io/hostname": "n1"}
    other = node(metadata={"name": "n1", "labels": {"kubernetes.io/hostname": "h"}})
    assert stored(applied(other), "node/n1")["metadata"]["labels"] == {"kubernetes.io/hostname": "h"}


@pytest.mark.parametrize(
    ("spec", "found"),
    [
        ({}, {"queue": "default"}),
        ({"queue": "q"}, {"queue": "q"}),
        (
            {"networkTopology": {"highestTierAllowed": 1}},
            {"networkTopology": {"highestTierAllowed": 1, "mode": "hard"}},
        ),
        (
            {"subGroupPolicy": [{"name": "s"}]},
            {"subGroupPolicy": [{"name": "s", "subGroupSize": 1, "minSubGroups": 0}]},
        ),
        ({"minMember": -3, "subGroupPolicy": "x"}, {"minMember": -3, "subGroupPolicy": "x"}),
    ],
)
def test_schema_defaults_of_a_pod_group(spec, found):
    group = stored(applied(pod_group(spec=spec)), "podgroup/a/g")
    assert {field: group["spec"][field] for field in found} == found
    assert "status" not in group


def test_a_queue_is_open_and_weighs_one_unless_given_otherwise():
    simulated = applied(queue(), queue("r", spec={"weight": 4}, status={"state": "Closed"}))
    assert stored(simulated, "queue/q")["spec"]["weight"] == 1
    assert stored(simulated, "queue/q")["status"]["state"] == "Open"
    assert (stored(simulated, "queue/r")["spec"]["weight"], stored(simulated, "queue/r")["status"]["state"]) == (
        4,
        "Closed",
    )


# ---- anything else a file may hold


@pytest.mark.parametrize(
    "odd",
    [
        pod(containers="x"),
        pod(containers=[3, {"resources": 4}, {"resources": {"limits": {"cpu": "abc", 5: "1"}}}]),
        {**pod(), "spec": None},
        {**pod(), "spec": 7},
        {**pod(), "status": "Running"},
        {**pod(node="n1"), "status": {"conditions": "x"}},
        {**pod(), "metadata": {"name": "p", "namespace": "a", "annotations": 3, "labels": [], "ownerReferences": 4}},
        node(status=[]),
        node(status={"allocatable": "x"}),
        node(metadata={"name": "n1", "labels": 4}),
        pod_group(spec="x"),
        queue(spec=3, status=4),
    ],
)
def test_bad_values_are_stored_as_given_and_break_nothing(odd):
    simulated, mirror = cluster(odd)
    simulated.advance(SECOND)
    assert any(manifest["metadata"]["name"] == odd["metadata"]["name"] for manifest in mirror.objects.values())


def test_one_manifest_that_is_no_object_stops_the_whole_step():
    simulated = SimulatedCluster()
    with pytest.raises(errors.InvalidError, match="has no kind"):
        simulated.apply([pod(), {"metadata": {"name": "x"}}])
    assert stored(simulated, "pod/a/p") is None


JUNK = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2) | st.sampled_from(["", "x", "Running", "1Gi"]),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(
            st.sampled_from(
                [
                    "nodeName",
                    "phase",
                    "conditions",
                    "allocatable",
                    "capacity",
                    "containers",
                    "resources",
                    "limits",
                    "labels",
                    "type",
                    "subGroupPolicy",
                ]
            ),
            inner,
            max_size=3,
        )
    ),
    max_leaves=6,
)


@settings(max_examples=drawn(150), deadline=None)
@given(st.sampled_from([pod(), node(), pod_group(), queue()]), JUNK, JUNK, JUNK)
def test_no_spec_or_status_breaks_the_cluster(manifest, spec, status, labels):
    odd = {**manifest, "spec": spec, "status": status, "metadata": {**manifest["metadata"], "labels": labels}}
    simulated, mirror = cluster(odd)
    simulated.advance(SECOND)
    assert {str(key) for key in mirror.objects} >= {"queue/root"}
