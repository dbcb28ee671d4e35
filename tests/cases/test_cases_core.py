"""The data model: worked cases of core.md section 7 that need a look inside."""

from __future__ import annotations

import numpy as np
import pytest

from builders import Desk, group, node, pod
from pumice.api import decoding
from pumice.framework import reasons
from pumice.model import requests, resources
from pumice.model.statuses import Status

MI = 1 << 20


def wanted(manifest):
    return requests.of_pod(decoding.decode(manifest))


def test_case_1_every_resource_has_its_unit_and_foreign_names_are_dropped():
    listed = {
        "cpu": "1500m",
        "memory": "1Gi",
        "nvidia.com/gpu": 2,
        "ephemeral-storage": "1Ki",
        "pods": 110,
        "count/jobs.batch": 4,
        "storage": "1Gi",
    }
    # Byte-like scalars stay in bytes here; the peer keeps ephemeral-storage in thousandths.
    expected = {"cpu": 1500, "memory": 1 << 30, "nvidia.com/gpu": 2000, "ephemeral-storage": 1024, "pods": 110}
    assert resources.parse(listed, "status.allocatable") == expected


def container(cpu, memory=None, **more):
    asked = {"cpu": cpu, **({"memory": memory} if memory else {})}
    return {"name": "c", "image": "x", "resources": {"requests": asked}, **more}


SIDECAR = {"restartPolicy": "Always"}


@pytest.mark.parametrize(
    ("case", "spec", "cpu", "memory"),
    [
        (
            "2: init container and overhead",
            {
                "containers": [container("300m", "100Mi"), container("200m", "50Mi")],
                "initContainers": [container("800m", "60Mi")],
                "overhead": {"cpu": "100m", "memory": "20Mi"},
            },
            900,
            170 * MI,
        ),
        (
            "3: sidecar before the init container",
            {"containers": [container("500m")], "initContainers": [container("100m", **SIDECAR), container("700m")]},
            800,
            0,
        ),
        (
            "3: init container before the sidecar",
            {"containers": [container("500m")], "initContainers": [container("700m"), container("100m", **SIDECAR)]},
            700,
            0,
        ),
        (
            "kube-predicates.md 1, example",
            {
                "containers": [container("500m"), container("700m")],
                "initContainers": [container("100m", **SIDECAR), container("1500m")],
            },
            1600,
            0,
        ),
        (
            "2.2: pod-level requests replace the sum",
            {
                "containers": [container("500m", "1Gi")],
                "resources": {"requests": {"cpu": "2"}},
                "overhead": {"cpu": "1"},
            },
            3000,
            1 << 30,
        ),
    ],
)
def test_cases_2_and_3_requests_follow_init_containers_sidecars_and_overhead(case, spec, cpu, memory):
    amounts = wanted({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "a"}, "spec": spec})
    assert (amounts["cpu"], amounts.get("memory", 0), amounts["pods"]) == (cpu, memory, 1), case


def test_case_7_pools_of_a_node():
    desk = Desk().feed(node("n", cpu="8"), group("g"))
    desk.feed(
        pod("run", "g", cpu="3", node="n"), pod("go", "g", cpu="2", node="n", deleting=True), pod("wait", "g", cpu="4")
    )
    session = desk.session()
    session.statement().pipeline([desk.task("wait")], [desk.node("n")])
    view = desk.cluster.nodes.view()
    cpu = [int(column[0, 0]) for column in (view.idle, view.used, view.releasing, view.pipelined, view.future_idle)]
    assert cpu == [3000, 5000, 2000, 4000, 1000]


def test_case_8_a_node_whose_use_exceeds_what_it_offers_is_legal():
    desk = Desk().feed(node("n", cpu="4"), pod("x", cpu="3", node="n"), pod("y", cpu="2", node="n")).apply()
    assert int(desk.cluster.nodes.view().idle[0, 0]) == -1000


@pytest.mark.parametrize(
    ("case", "minimum", "pods", "ready_pipelined_starving"),
    [
        ("core 9", 4, {"running": 1, "pipelined": 1, "idle": 2}, (False, True, True)),
        ("GA1", 3, {"running": 2, "pending": 2}, (False, False, True)),
        ("GA1, one of the pending best-effort", 3, {"running": 2, "pending": 1, "idle": 1}, (True, True, True)),
        ("enough", 2, {"running": 2}, (True, True, False)),
        ("finished ones count", 2, {"succeeded": 1, "running": 1}, (True, True, False)),
    ],
)
def test_case_9_best_effort_members_count_as_ready_but_do_not_end_starving(
    case, minimum, pods, ready_pipelined_starving
):
    desk = Desk().feed(node("n", cpu="64"), group("g", minimum))
    for index in range(pods.get("running", 0)):
        desk.feed(pod(f"r{index}", "g", cpu="1", node="n"))
    for index in range(pods.get("succeeded", 0)):
        desk.feed(pod(f"s{index}", "g", cpu="1", node="n", phase="Succeeded"))
    for index in range(pods.get("pending", 0)):
        desk.feed(pod(f"p{index}", "g", cpu="1"))
    for index in range(pods.get("pipelined", 0)):
        desk.feed(pod(f"w{index}", "g", cpu="1"))
    for index in range(pods.get("idle", 0)):
        desk.feed(pod(f"b{index}", "g"))
    session = desk.session()
    for index in range(pods.get("pipelined", 0)):
        session.statement().pipeline([desk.task(f"w{index}")], [desk.node("n")])
    job = desk.cluster.jobs["a/g"]
    assert (session.job_ready(job), session.is_pipelined(job), job.is_starving) == ready_pipelined_starving, case


@pytest.mark.parametrize(
    ("minimum", "roles", "running", "pending", "ready"),
    [
        pytest.param(3, {"ps": 1, "worker": 2}, ["ps", "worker", ""], ["worker"], False, id="roles enforced"),
        pytest.param(2, {"ps": 1, "worker": 2}, ["ps", "worker", ""], ["worker"], True, id="minimum below their sum"),
        pytest.param(4, {"ps": 1, "worker": 3}, ["worker"] * 4, ["ps"], False, id="GA2: four workers, no ps"),
        pytest.param(3, {"ps": 1, "worker": 3}, ["worker"] * 4, ["ps"], True, id="GA2: minimum below their sum"),
    ],
)
def test_case_10_role_minima_count_only_if_the_gang_is_as_large_as_their_sum(minimum, roles, running, pending, ready):
    desk = Desk().feed(node("n", cpu="64"), group("g", minimum, minTaskMember=roles))
    desk.feed(*(pod(f"r{index}", "g", cpu="1", node="n", role=role) for index, role in enumerate(running)))
    desk.feed(*(pod(f"p{index}", "g", cpu="1", role=role) for index, role in enumerate(pending)))
    session = desk.session()
    assert session.job_ready(desk.cluster.jobs["a/g"]) is ready


@pytest.mark.parametrize(
    ("annotation", "label", "preemptable"),
    [(None, None, True), ("yes", None, False), ("false", "true", False), (None, "false", False), ("T", None, True)],
)
def test_case_11_a_pod_is_preemptable_unless_it_says_otherwise(annotation, label, preemptable):
    key = "volcano.sh/preemptable"
    made = pod("p", "g", annotations=annotation and {key: annotation}, labels=label and {key: label})
    assert Desk().feed(made).apply().task("p").preemptable is preemptable


def test_case_11_a_group_is_not_preemptable_unless_it_says_so():
    desk = Desk().feed(group("g"), group("h", annotations={"volcano.sh/preemptable": "true"})).apply()
    assert [desk.cluster.jobs[key].preemptable for key in ("a/g", "a/h")] == [False, True]


@pytest.mark.parametrize(
    ("phase", "where", "deleting", "status"),
    [
        ("Running", "n", False, Status.RUNNING),
        ("Running", "n", True, Status.RELEASING),
        ("Pending", "", True, Status.RELEASING),
        ("Pending", "n", True, Status.RELEASING),
        ("Pending", "", False, Status.PENDING),
        ("Pending", "n", False, Status.BOUND),
        ("Succeeded", "n", True, Status.SUCCEEDED),
        ("Failed", "n", False, Status.FAILED),
        ("Unknown", "n", False, Status.UNKNOWN),
        ("", "n", False, Status.UNKNOWN),
    ],
)
def test_case_13_phase_node_and_deletion_give_the_status(phase, where, deleting, status):
    made = pod("p", "g", node=where, deleting=deleting)
    made["status"]["phase"] = phase
    assert Desk().feed(made).apply().task("p").status == status


RING = {"name": "ring", "matchLabelKeys": ["rank"], "subGroupSize": 2, "minSubGroups": 2}


def test_case_14_labels_sort_pods_into_sub_groups_and_both_must_be_complete():
    desk = Desk().feed(node("n", cpu="64"), group("pg", 1, namespace="ns", subGroupPolicy=[RING]))
    ranks = {"p0": "0", "p1": "0", "p2": "1", "p3": ""}
    for name, rank in ranks.items():
        desk.feed(pod(name, "pg", namespace="ns", cpu="1", node="n", labels={"rank": rank} if rank else None))
    session = desk.session()
    job = desk.cluster.jobs["ns/pg"]
    assert {key: len(sub.tasks) for key, sub in job.sub_jobs.items()} == {
        "ns/pg/ring-0": 2,
        "ns/pg/ring-1": 1,
        "ns/pg": 1,
    }
    assert session.job_valid(job) is None
    assert not session.job_ready(job)
    desk.feed(pod("p4", "pg", namespace="ns", cpu="1", node="n", labels={"rank": "1"})).apply()
    assert session.job_ready(job)


def test_case_15_a_policy_without_match_label_keys_captures_nobody():
    policy = {"name": "p", "labelSelector": {"matchLabels": {"role": "w"}}}
    desk = Desk().feed(group("g", 2, subGroupPolicy=[policy]))
    desk.feed(*(pod(f"p{index}", "g", cpu="1", labels={"role": "w"}) for index in range(2))).apply()
    assert list(desk.cluster.jobs["a/g"].sub_jobs) == ["a/g"]


def test_case_20_reasons_are_counted_and_sorted_as_text():
    text = str(reasons.summary(3, [("Insufficient cpu", 2), ("node(s) pod number exceeded", 1)]))
    assert text == "0/3 nodes are unavailable: 1 node(s) pod number exceeded, 2 Insufficient cpu."
    assert str(reasons.summary(3, [])) == "0/3 nodes are unavailable"


def test_sums_are_exact_so_a_millicore_too_much_is_too_much():
    desk = Desk().feed(node("n", cpu="1"), group("g"), pod("p", "g", cpu="1000050u")).apply()
    assert desk.task("p").shape.request.amounts["cpu"] == 1001  # core.md case 4 has a tolerance, design.md 3 has none
    desk.cycle()
    assert not desk.world.binds


def test_a_node_without_pods_takes_nobody():
    desk = Desk().feed(node("n", pods=None), group("g", 0), pod("p", "g", cpu="1"), pod("b", "g"))
    desk.cycle()
    assert not desk.world.binds  # core.md case 6: 1 <= 0 fails
    assert np.array_equal(desk.cluster.nodes.view().allocatable[0, 2:3], [0])
