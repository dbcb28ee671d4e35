"""What `pumice top` keeps is what a recount of the objects gives, whatever happened in whatever order."""

from __future__ import annotations

import command_objects as objects
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.api import decoding, kinds
from pumice.cli.top import showing
from pumice.study.following import scene, tracking

KINDS = {"Pod": kinds.POD, "Node": kinds.NODE, "Queue": kinds.QUEUE, "PodGroup": kinds.POD_GROUP}


def node(name, cpu="8", *, ready="True", cordoned=False):
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name},
        "spec": {"unschedulable": cordoned},
        "status": {
            "allocatable": {"cpu": cpu, "memory": "32Gi", "pods": "110"},
            "conditions": [{"type": "Ready", "status": ready}],
        },
    }


def member(name, group="", **more):
    annotations = {"scheduling.k8s.io/group-name": group} if group else {}
    return objects.pod(name, annotations=annotations, **more)


def tracked(*made):
    tracker = tracking.Tracker()
    for each in made:
        feed(tracker, "ADDED", each)
    return tracker


def feed(tracker, event, manifest):
    kind = KINDS[manifest["kind"]]
    tracker.feed(kind, event, decoding.decode_json(kind, msgspec.json.encode(manifest)), b"")


# -- a recount -------------------------------------------------------------------------------------------------------

pods = st.builds(
    member,
    st.sampled_from(["p1", "p2", "p3", "p4", "p5"]),
    st.sampled_from(["", "g1", "g2"]),
    node=st.sampled_from(["", "n1", "n2", "gone"]),
    phase=st.sampled_from(["Pending", "Running", "Succeeded", "Failed"]),
    cpu=st.sampled_from(["1", "500m", "2", "-1", "many"]),
)
others = st.one_of(
    st.builds(node, st.sampled_from(["n1", "n2"]), st.sampled_from(["4", "8"])),
    st.builds(
        objects.group,
        st.sampled_from(["g1", "g2"]),
        st.sampled_from(["", "q"]),
        st.sampled_from(["", "Inqueue", "Running", "Completed"]),
    ),
    st.builds(objects.queue, st.sampled_from(["q", "default"])),
)
events = st.lists(st.tuples(st.booleans(), st.one_of(pods, others)), max_size=40)


def cpu_of(pod):
    written = pod["spec"]["containers"][0]["resources"]["requests"]["cpu"]
    return {"1": 1000, "500m": 500, "2": 2000}.get(written, 0)


@given(events)
def test_sums_are_those_of_a_recount(happened):
    tracker, known = tracking.Tracker(), {}
    for gone, manifest in happened:
        key = (manifest["kind"], manifest["metadata"]["name"])
        feed(tracker, "DELETED" if gone else "MODIFIED" if key in known else "ADDED", manifest)
        known.pop(key, None)
        if not gone:
            known[key] = manifest
    seen = tracker.look(objects.NOW)
    left = [each for (kind, _), each in known.items() if kind == "Pod"]
    assert seen.pods == len(left)
    assert {each.name for each in seen.nodes} == {name for kind, name in known if kind == "Node"}
    for row in seen.nodes:
        here = [
            p for p in left if p["spec"].get("nodeName") == row.name and p["status"]["phase"] in ("Pending", "Running")
        ]
        assert row.pods == len(here)
        assert row.used.get("cpu", 0) == sum(map(cpu_of, here))
    for row in seen.jobs:
        mine = [p for p in left if p["metadata"]["annotations"].get("scheduling.k8s.io/group-name") == row.name]
        assert row.members == len(mine)
        assert row.ready == sum(bool(p["spec"].get("nodeName")) and p["status"]["phase"] != "Failed" for p in mine)
    for row in seen.queues:
        groups = [
            g for (kind, _), g in known.items() if kind == "PodGroup" and g["spec"].get("queue", "default") == row.name
        ]
        assert row.waiting == sum(g["status"].get("phase", "") in ("", "Inqueue") for g in groups)
        assert row.running == sum(g["status"].get("phase") == "Running" for g in groups)


@given(events)
def test_nothing_is_left_when_everything_is_deleted(happened):
    tracker = tracking.Tracker()
    for _, manifest in happened:
        feed(tracker, "ADDED", manifest)
    for _, manifest in happened:
        feed(tracker, "DELETED", manifest)
    assert tracker.objects == 0
    assert tracker._by_node == {}  # noqa: SLF001  memory that is given back shows nowhere else
    assert tracker._by_group == {}  # noqa: SLF001  as above


# -- rows ------------------------------------------------------------------------------------------------------------


def condition(message, since="2025-12-31T23:30:00Z", status="True"):
    return {"type": "Unschedulable", "status": status, "message": message, "lastTransitionTime": since}


def only_job(manifest, *more):
    (row,) = tracked(manifest, *more).look(objects.NOW).jobs
    return row


SUMMARY = "2/2 tasks in gang unschedulable: pod group is not ready. Origin reason is g-0: 0/3 nodes are unavailable: 3 Insufficient cpu."


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (
            f"no node has 2 cpu free: the freest of 3, n-1, has 1 cpu; {SUMMARY}",
            "no node has 2 cpu free: the freest of 3, n-1, has 1 cpu",
        ),
        # As older versions, and Volcano, wrote it.
        (SUMMARY, "2/2 tasks in gang unschedulable: g-0: 0/3 nodes are unavailable: 3 Insufficient cpu."),
    ],
)
def test_job_that_waits_says_since_when_and_why(message, reason):
    waiting = objects.group("g", "q", "Inqueue", 2)
    waiting["status"]["conditions"] = [condition(message)]
    row = only_job(waiting, member("g-0", "g"))
    assert row.since == objects.NOW - 3_600_000_000
    assert row.reason == reason
    assert (row.ready, row.minimum, row.members) == (0, 2, 1)


def test_group_that_was_let_in_and_has_no_pods_says_so():
    assert only_job(objects.group("g", "q", "Inqueue", 2)).reason == "it has no pods yet, minMember is 2"
    assert not only_job(objects.group("g", "q", "Pending", 2)).reason


@pytest.mark.parametrize(
    ("phase", "conditions", "since", "reason"),
    [
        ("Running", [condition("old")], None, ""),
        ("Pending", [condition("no longer", status="False")], "created", ""),
        ("Unknown", [condition("lost a member")], "condition", "lost a member"),
        ("Completed", [], None, ""),
        ("", [], "created", ""),
    ],
)
def test_only_a_job_that_waits_has_a_reason(phase, conditions, since, reason):
    made = objects.group("g", phase=phase)
    made["status"]["conditions"] = conditions
    row = only_job(made)
    moments = {None: None, "created": objects.NOW - 3_600_000_000, "condition": objects.NOW - 1_800_000_000}
    assert (row.since, row.reason) == (moments[since], reason)


def test_group_is_called_as_its_owner_and_what_a_terminal_would_obey_is_written_out():
    owned = objects.group(
        "podgroup-1", ownerReferences=[{"kind": "Job", "name": "llama", "apiVersion": "x", "uid": "u"}]
    )
    assert only_job(owned).title == "llama"
    odd = objects.group("g", phase="Inqueue")
    odd["status"]["conditions"] = [condition("\x1b[31mred\nline")]
    assert only_job(odd).reason == "\\x1b[31mred\\nline"


def test_node_in_trouble_says_so():
    rows = tracked(node("a"), node("b", ready="Unknown"), node("c", cordoned=True)).look(objects.NOW).nodes
    assert [(each.name, each.state) for each in rows] == [("a", ""), ("b", "NotReady"), ("c", "Cordoned")]


def test_bad_amounts_count_for_nothing_and_hide_nobody():
    queue = objects.queue("q", capability={"cpu": "lots", "memory": "1Gi"})
    queue["status"]["allocated"] = {"cpu": "-3"}
    (row,) = tracked(queue).look(objects.NOW).queues
    assert (row.capability, row.allocated) == ({"memory": 2**30}, {})


# -- order and numbers -----------------------------------------------------------------------------------------------


def ordered(tracker, order):
    seen = scene.ordered(tracker.look(objects.NOW), order)
    return [each.name for each in seen.queues], [each.name for each in seen.jobs], [each.name for each in seen.nodes]


def test_rows_come_in_the_order_that_was_asked_for():
    old = objects.group("old", "b", "Inqueue")
    old["metadata"]["creationTimestamp"] = "2025-12-30T00:00:00Z"
    busy = objects.queue("b")
    busy["status"]["allocated"] = {"cpu": "4"}
    tracker = tracked(
        objects.queue("root"),
        objects.queue("a"),
        busy,
        objects.group("run", "a", "Running"),
        objects.group("done", "a", "Completed"),
        objects.group("new", "b", "Inqueue"),
        old,
        member("x", "run", node="n2"),
        node("n1"),
        node("n2"),
        node("n3", ready="False"),
    )
    assert ordered(tracker, "waiting") == (["root", "b", "a"], ["old", "new", "run", "done"], ["n3", "n2", "n1"])
    assert ordered(tracker, "use") == (["root", "b", "a"], ["run", "done", "new", "old"], ["n3", "n2", "n1"])
    assert ordered(tracker, "name") == (["root", "a", "b"], ["done", "new", "old", "run"], ["n1", "n2", "n3"])


@pytest.mark.parametrize(
    ("name", "units", "text"),
    [
        ("cpu", 1500, "1.5"),
        ("cpu", 48000, "48"),
        ("cpu", 1, "0.0".removesuffix(".0")),
        ("memory", 13 * 2**30, "13Gi"),
        ("memory", 3 * 2**39, "1.5Ti"),
        ("memory", 5, "5"),
        ("nvidia.com/gpu", 8000, "8"),
    ],
)
def test_amounts_are_written_in_a_few_characters(name, units, text):
    assert scene.short(name, units) == text


def test_devices_get_columns_after_cpu_and_memory_and_slots_get_none():
    queue = objects.queue(
        "q", capability={"nvidia.com/gpu": "8", "pods": "10", "hugepages-2Mi": "1Gi", "cpu": "1", "a/b": "1"}
    )
    assert scene.dimensions(tracked(queue).look(objects.NOW)) == ("cpu", "memory", "nvidia.com/gpu", "a/b")


def test_json_writes_amounts_as_kubernetes_does():
    queue = objects.queue("q", deserved={"cpu": "1500m", "memory": "1Gi"})
    plain = showing.document(tracked(queue, node("n"), member("p", node="n")).look(objects.NOW, ("pods are left out",)))
    assert plain["queues"][0]["deserved"] == {"cpu": "1500m", "memory": "1Gi"}
    assert plain["nodes"][0]["used"] == {"cpu": "1", "pods": "1"}
    assert plain["total"] == {"cpu": "8", "memory": "32Gi", "pods": "110"}
    assert plain["missing"] == ("pods are left out",)


# -- what is new -----------------------------------------------------------------------------------------------------


@given(st.lists(events, max_size=4))
def test_what_is_new_brings_a_copy_up_to_date(batches):
    tracker, copy = tracking.Tracker(changes=True), {}
    for batch in batches:
        for gone, manifest in batch:
            feed(tracker, "DELETED" if gone else "ADDED", manifest)
        changed = tracker.changed()
        asked = [(changed.queues, tracker.queue), (changed.jobs, tracker.job), (changed.nodes, tracker.node)]
        for table, (keys, row) in enumerate(asked):
            copy |= {(table, key): row(key) for key in keys}
        seen = tracker.look(objects.NOW)
        left = [row for row in copy.values() if row is not None]
        assert sorted(map(repr, left)) == sorted(map(repr, (*seen.queues, *seen.jobs, *seen.nodes)))
        assert seen.total.get("cpu", 0) == sum(row.allocatable["cpu"] for row in seen.nodes)
    assert not tracker.changed().jobs


@pytest.mark.parametrize(
    ("message", "told"),
    [
        (
            "Pod is evicted, because of gangpreempt for pod a/x-0 of group a/x in queue q by the rules of gang, pdb, plan 17",
            ("gangpreempt", "a/x-0", "a/x", "q", "gang, pdb", 17),
        ),
        ("Pod is evicted, because of reclaim", ("reclaim", "", "", "", "", None)),
        ("The node was low on resource: memory", ("", "", "", "", "", None)),
    ],
)
def test_eviction_says_for_whom_by_which_action_and_plan_as_far_as_it_is_told(message, told):
    event = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "e", "namespace": "a", "uid": "u"},
        "involvedObject": {"kind": "Pod", "namespace": "a", "name": "v-0"},
        "reason": "Evict",
        "message": message,
        "lastTimestamp": "2026-01-01T00:00:00Z",
    }
    tracker = tracking.Tracker(changes=True)
    for _ in range(2):  # what is told again is no news
        tracker.feed(kinds.EVENT, "ADDED", decoding.decode_json(kinds.EVENT, msgspec.json.encode(event)), b"")
    (row,) = tracker.changed().evictions
    assert (row.action, row.claimant, row.group, row.queue, row.rules, row.plan) == told
    assert (row.namespace, row.pod, row.text, row.time) == ("a", "v-0", message, objects.NOW)
