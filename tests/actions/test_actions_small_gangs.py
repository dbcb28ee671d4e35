"""Small rules of gangs on their own: what keeps one out of its queue is said, one of unequal members waits in another order, sub-groups are served as far as the job needs."""

from __future__ import annotations

import pytest
from test_actions_small_rules import rack

from builders import Desk, group, node, pod, queue, said_of
from pumice.actions.placing import another_way, inside_domains, sub_jobs, task_runs, turns
from pumice.actions.placing.domain_goal import Progress

LIMITED = """
actions: "allocate"
tiers:
- plugins: [{name: gang}]
- plugins: [{name: predicates}, {name: capacity}%s]
"""
PLAIN = LIMITED.replace(", {name: capacity}%s", "")


def turn_of(desk, name):
    """Give a turn of a job, and its tasks in the order of their names."""
    session = desk.session()
    job = next(job for job in desk.cluster.jobs.values() if job.name == name)
    tasks = sorted(job.tasks.values(), key=lambda task: task.name)
    return turns.Turn(session, session.statement(), session.queue_of(job), job), tasks


def test_a_gang_of_unequal_members_that_its_queue_may_not_take_on_is_told_so():
    desk = Desk(LIMITED % "").feed(node("m", "64"), group("g", 2), pod("g-0", "g", cpu="3"), pod("g-1", "g", cpu="4"))
    desk.modify(queue("default", capability={"cpu": "5"}))
    record = desk.cycle()
    assert not desk.world.binds
    assert "queue default" in said_of(record, "a/g")
    assert "cpu" in said_of(record, "a/g")


def test_members_inside_a_hyper_node_that_their_queue_may_not_take_on_are_told_so():
    rack = {"type": "Node", "selector": {"exactMatch": {"name": "m"}}}
    hyper_node = {
        "apiVersion": "topology.volcano.sh/v1alpha1",
        "kind": "HyperNode",
        "metadata": {"name": "rack", "uid": "rack", "creationTimestamp": "2026-01-01T00:00:00Z"},
        "spec": {"tier": 1, "members": [rack]},
    }
    desk = Desk(LIMITED % ", {name: network-topology-aware}").feed(node("m", "64"), hyper_node)
    desk.feed(group("g", 2, networkTopology={"mode": "hard", "highestTierAllowed": 1}))
    desk.feed(*(pod(f"g-{i}", "g", cpu="3") for i in range(2))).modify(queue("default", capability={"cpu": "5"}))
    record = desk.cycle()
    assert not desk.world.binds
    assert "queue default" in said_of(record, "a/g")


def test_a_gang_of_unequal_members_waits_in_the_order_in_which_it_can():
    """In their own order the small one comes to wait where alone there will be room for the large one."""
    desk = Desk(PLAIN)
    for i, cpu in enumerate("32"):
        desk.feed(node(f"n{i}", cpu), pod(f"old-{i}", scheduler="other", cpu=cpu, node=f"n{i}", deleting=3600))
    desk.feed(group("g", 2), pod("g-0", "g", cpu="2"), pod("g-1", "g", cpu="3"))
    turn, tasks = turn_of(desk, "g")
    task_runs.place_minimum(turn, tasks)
    assert not turn.session.is_pipelined(turn.job)
    assert another_way.place(turn, tasks) == []
    assert [task.node.name for task in tasks] == ["n1", "n0"]


def divided(parts, *, cpu="8", size=2, needed=1, least=None):
    """A job in sub-groups of which so many have to be there."""
    policy = {"name": "s", "subGroupSize": size, "minSubGroups": needed, "matchLabelKeys": ["part"]}
    least = size * needed if least is None else least
    desk = Desk(PLAIN).feed(node("m", cpu, "64Gi"), group("g", least, subGroupPolicy=[policy]))
    for i, part in enumerate(parts):
        desk.feed(pod(f"g-{i}", "g", cpu="1", labels={"part": part}))
    return desk


@pytest.mark.parametrize("stage", [Progress.READY, Progress.WAITS])
@pytest.mark.parametrize(("needed", "placed"), [(1, 2), (2, 4), (3, 6)])
def test_as_many_sub_groups_start_in_a_turn_as_the_job_needs(needed, placed, stage):
    turn, tasks = turn_of(divided("aabbcc", needed=needed), "g")
    assert sub_jobs.attempt(turn, stage, tasks) is Progress.READY
    assert sum(task.node is not None for task in tasks) == placed


@pytest.mark.parametrize("needed", [1, 2])
def test_those_sub_groups_are_required_that_bring_each_policy_to_its_number(needed):
    turn, tasks = turn_of(divided("aabbcc", needed=needed), "g")
    listed = turn.session.sub_job_order.sort(turn.job.sub_jobs.values())
    assert list(sub_jobs.required(turn, listed)) == [sub.key for sub in listed[:needed]]
    first = [task for task in tasks if task.sub_job is listed[1]]
    turn.statement.allocate(first, [turn.session.cluster.nodes.records[0]] * 2)
    expected = [sub.key for sub in (listed[0], listed[2])][: needed - 1]
    assert list(sub_jobs.required(turn, listed)) == expected


def test_a_sub_group_more_starts_in_each_turn_once_the_job_has_what_it_needs():
    turn, tasks = turn_of(divided("aabbcc"), "g")
    for placed in (2, 4, 6):
        assert sub_jobs.attempt(turn, Progress.READY, [t for t in tasks if t.node is None]) is Progress.READY
        assert sum(task.node is not None for task in tasks) == placed
    assert sub_jobs.attempt(turn, Progress.READY, []) is Progress.NOTHING


def test_a_job_whose_sub_groups_have_to_wait_for_room_waits_with_as_many_as_it_needs():
    desk = divided("aabbcc", needed=2, cpu="6")
    desk.feed(*(pod(f"old-{i}", scheduler="other", cpu="1", node="m", deleting=3600) for i in range(6)))
    turn, tasks = turn_of(desk, "g")
    assert sub_jobs.attempt(turn, Progress.WAITS, tasks) is Progress.WAITS
    assert sum(task.node is not None for task in tasks) == 4


def test_a_sub_group_that_has_started_gets_a_pod_a_turn_once_the_job_has_what_it_needs():
    turn, tasks = turn_of(divided("aaaa"), "g")
    for placed in (2, 3, 4):
        assert sub_jobs.attempt(turn, Progress.READY, [t for t in tasks if t.node is None]) is Progress.READY
        assert sum(task.node is not None for task in tasks) == placed
    session, job = turn.session, turn.job
    assert session.job_ready(job)


@pytest.mark.parametrize(("parts", "least", "placed"), [("aaa", 3, 3), ("aaaa", 4, 4), ("aaab", 3, 3)])
def test_a_sub_group_that_has_started_comes_again_as_long_as_the_job_lacks_members(parts, least, placed):
    turn, tasks = turn_of(divided(parts, least=least), "g")
    assert sub_jobs.attempt(turn, Progress.READY, tasks) is Progress.READY
    assert sum(task.node is not None for task in tasks) == placed


def test_members_that_wait_are_not_enough_where_free_room_is_looked_for():
    turn, tasks = turn_of(divided("aabbcc", needed=2), "g")
    first = [task for task in tasks if task.sub_job is tasks[0].sub_job]
    turn.statement.pipeline(first, [turn.session.cluster.nodes.records[0]] * 2)
    assert sub_jobs.attempt(turn, Progress.READY, [t for t in tasks if t.node is None]) is Progress.READY
    assert sum(task.node is not None for task in tasks) == 6


def test_a_sub_group_of_which_no_more_fits_holds_up_no_other():
    turn, tasks = turn_of(divided("aabb").feed(pod("g-4", "g", cpu="9", labels={"part": "a"})), "g")
    for placed in (2, 4):
        assert sub_jobs.attempt(turn, Progress.READY, [t for t in tasks if t.node is None]) is Progress.READY
        assert sum(task.node is not None for task in tasks) == placed


WISHES = [
    {},
    {"networkTopology": {"mode": "soft"}},
    {"networkTopology": {"mode": "hard", "highestTierAllowed": 1}},
    {"networkTopology": {"mode": "hard", "highestTierAllowed": 2}},
]


@pytest.mark.parametrize("job", WISHES)
@pytest.mark.parametrize("part", [None, *WISHES])
@pytest.mark.parametrize("gone", [0, 3600])
def test_unequal_members_that_do_not_fit_in_their_own_order_are_tried_largest_first_wherever_they_may_go(
    job, part, gone
):
    """Sub-groups by themselves too, and also where they have to wait for the room."""
    text = PLAIN.replace("{name: predicates}", "{name: predicates}, {name: network-topology-aware}")
    desk = Desk(text).feed(node("n0", "3"), node("n1", "2"), rack("r", "n0", "n1"))
    if gone:
        desk.feed(*(pod(f"old-{n}", scheduler="other", cpu=n, node=f"n{i}", deleting=gone) for i, n in enumerate("32")))
    policy = {"name": "s", "subGroupSize": 2, "minSubGroups": 1, "matchLabelKeys": ["part"], **(part or {})}
    desk.feed(group("g", 2, phase="Inqueue", **({} if part is None else {"subGroupPolicy": [policy]}), **job))
    desk.feed(*(pod(f"g-{i}", "g", cpu=str(i + 2), labels={"part": "a"}) for i in range(2)))
    turn, tasks = turn_of(desk, "g")
    left = [task for task in tasks if task.node is None]
    if turn.session.topology.steers(turn.job):
        inside_domains.place(turn, left)
    else:
        task_runs.place_minimum(turn, left)
        another_way.place(turn, left)
    assert [task.node and task.node.name for task in tasks] == ["n1", "n0"]
    assert not turn.session.findings.errors(turn.job)
    assert not turn.session.findings.last_transactions


@pytest.mark.parametrize("job", WISHES)
@pytest.mark.parametrize("part", [None, *WISHES])
def test_under_volcano_s_rules_the_order_of_tasks_alone_decides_also_inside_hyper_nodes(job, part):
    text = PLAIN.replace("{name: predicates}", "{name: predicates}, {name: network-topology-aware}")
    desk = Desk(f"compatibility: volcano{text}").feed(node("n0", "3"), node("n1", "2"), rack("r", "n0", "n1"))
    policy = {"name": "s", "subGroupSize": 2, "minSubGroups": 1, "matchLabelKeys": ["part"], **(part or {})}
    desk.feed(group("g", 2, phase="Inqueue", **({} if part is None else {"subGroupPolicy": [policy]}), **job))
    desk.feed(*(pod(f"g-{i}", "g", cpu=str(i + 2), labels={"part": "a"}) for i in range(2))).cycle()
    assert desk.world.binds == {}


def test_a_gang_starts_without_those_for_whom_there_is_no_free_room_though_there_will_be_some():
    desk = Desk(PLAIN).feed(node("n0", "5"), node("n1", "3"), node("n2", "2"))
    desk.feed(pod("old", scheduler="other", cpu="5", node="n0", deleting=3600))
    desk.feed(group("g", 2, phase="Inqueue"), *(pod(f"g-{i}", "g", cpu=cpu) for i, cpu in enumerate("523"))).cycle()
    assert desk.world.binds == {"g-1": "n2", "g-2": "n1"}


def test_equal_members_that_their_queue_may_not_take_on_are_told_so_and_nothing_of_hyper_nodes():
    desk = Desk(LIMITED % ", {name: network-topology-aware}").feed(node("m", "64"), rack("r", "m"))
    desk.modify(queue("default", capability={"cpu": "1"}))
    desk.feed(group("g", 2, phase="Inqueue", networkTopology={"mode": "hard", "highestTierAllowed": 1}))
    record = desk.feed(*(pod(f"g-{i}", "g", cpu="1") for i in range(2))).cycle()
    assert "g-0: queue default: " in record.explain("a/g")
    assert "yper" not in record.explain("a/g")
