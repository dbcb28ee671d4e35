"""Small rules of placing on their own: how large rounds are, whose turn it is, what is placed together, and what is said of how much of a gang fits."""

from __future__ import annotations

import itertools
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from builders import Desk, group, metadata, node, pod, queue
from drawing import drawn
from pumice.actions.placing import drafted, gang_fit, largest_first, misfits, round_size, turn_order
from pumice.actions.placing.domain_capacity import DomainCapacity
from pumice.actions.placing.nodes_ahead import NodesAhead
from pumice.actions.placing.round_size import RoundSize
from pumice.framework import selection
from pumice.framework.plugin import Plugin
from pumice.framework.priority_queues import HeapQueue
from pumice.framework.subject import Subject

# -- rounds ----------------------------------------------------------------------------------------------------


def taken_alone(size):
    """Count the turns that are taken alone before the next round."""
    return next(count for count in itertools.count() if not size.rests())


def test_rounds_grow_as_long_as_all_turns_are_taken():
    size, sizes = RoundSize(), []
    for _ in range(7):
        sizes.append(size.turns)
        size.adapt(size.turns)
    assert sizes == [round_size.FIRST * 2**n for n in range(4)] + [round_size.MOST] * 3
    assert taken_alone(size) == 0


def test_a_round_of_which_a_part_is_taken_is_followed_by_one_as_large():
    size = RoundSize()
    size.adapt(2)
    assert (size.turns, taken_alone(size)) == (round_size.FIRST, 0)


def test_after_rounds_in_vain_more_and_more_turns_are_taken_alone_and_rounds_are_smaller():
    size, found = RoundSize(), []
    for served in (0, 1, 0, 1, 2, 0):
        size.adapt(served)
        found.append((size.turns, taken_alone(size)))
    assert found == [(8, 1), (4, 3), (2, 7), (2, 15), (4, 0), (2, 1)]


USUAL = {"rounds": True, "by_scores": True, "binds": False, "delays": False, "holds": {}}


@pytest.mark.parametrize(
    ("unusual", "played"),
    [({}, True), *(({each: not USUAL[each]}, False) for each in ("rounds", "by_scores", "binds", "delays", "holds"))],
)
def test_rounds_are_played_where_nobody_has_a_say_that_is_for_a_turn_of_its_own(unusual, played):
    said = {**USUAL, **unusual}
    session = SimpleNamespace(
        shortcuts=SimpleNamespace(rounds=said["rounds"]),
        independence=SimpleNamespace(nodes_are_chosen_by_scores=said["by_scores"]),
        pre_bind=SimpleNamespace(active=said["binds"]),
        job_delay=SimpleNamespace(active=said["delays"]),
        reservations=SimpleNamespace(holds=said["holds"]),
    )
    assert bool(round_size.may_be_played(session)) is played


class Numbers:
    """Orders items by their number."""

    def key(self, item):
        return (item.number,)

    def arranged(self, items, step):
        return step([self.key(item) for item in items])


def waiting(**jobs):
    """Queues in the order of their names, with so many jobs each."""
    queues = [SimpleNamespace(name=name, number=number) for number, name in enumerate(sorted(jobs))]
    listed = {name: [SimpleNamespace(number=n, name=f"{name}{n}") for n in range(jobs[name])] for name in jobs}
    order = Numbers()
    return turn_order.Waiting(HeapQueue(order, queues), {n: HeapQueue(order, some) for n, some in listed.items()}, {})


@pytest.mark.parametrize(
    ("jobs", "first", "alone"),
    [
        ({"a": 2}, "a", True),
        ({"a": 2, "b": 1}, "a", False),
        ({"a": 0, "b": 1}, "b", True),
        ({"a": 2, "b": 0}, "a", False),  # that it has none is seen when it is its turn
        ({"a": 0, "b": 0}, None, False),
    ],
)
def test_a_queue_is_alone_if_no_other_waits(jobs, first, alone):
    order = turn_order.TurnOrder(waiting(**jobs))
    found = order.queue()
    assert (found and found.name, order.is_alone) == (first, alone)


@pytest.mark.parametrize("kept", [True, False])
@given(st.integers(0, 4), st.integers(0, 3), st.integers(0, 2))
@settings(max_examples=drawn(100, 30), deadline=None)
def test_whoever_has_a_turn_to_come_waits_on_and_all_do_if_turns_are_not_kept(kept, first, second, turns):
    jobs = waiting(a=first, b=second, c=0)
    order, left = turn_order.TurnOrder(jobs), {"a": first, "b": second}
    for _ in range(turns):
        owner = order.queue()
        if owner is None:
            break
        order.go_on(owner, order.job(owner), again=False)
        left[owner.name] -= kept
    order.end(kept=kept)
    assert {name: len(jobs.jobs[name]) for name in "ab"} == left
    known = [jobs.queues.pop().name for _ in range(len(jobs.queues))]
    assert set(known) >= {name for name in "ab" if left[name]}
    assert kept or known == ["a", "b", "c"]


@pytest.mark.parametrize("blocks", [True, False])
@pytest.mark.parametrize("scored", [True, False])
@pytest.mark.parametrize("told", [True, False])
def test_nodes_are_drafted_only_where_scores_alone_choose_them_and_all_may_be_told_together(blocks, scored, told):
    facts = SimpleNamespace(nodes_are_chosen_by_scores=scored, placements_are_told_together=told)
    session = SimpleNamespace(shortcuts=SimpleNamespace(blocks=blocks), independence=facts)
    assert drafted.are_usual(session) is (blocks and scored and told)


def many(count, cpu="1", **more):
    for i in range(count):
        yield from (group(f"j{i:02}", 1, created=i), pod(f"j{i:02}-0", f"j{i:02}", cpu=cpu, created=i, **more))


def test_of_many_small_jobs_those_whose_turn_it_is_come_below_the_limit_of_their_queue():
    text = 'actions: "allocate"\ntiers:\n- plugins: [{name: gang}, {name: predicates}, {name: capacity}]\n'
    desk = (
        Desk(text, queues=("default",))
        .feed(node("m", "64", "64Gi"), *many(40))
        .modify(queue("default", capability={"cpu": "5"}))
    )
    desk.cycle()
    assert sorted(desk.world.binds) == [f"j{i:02}-0" for i in range(5)]


def test_a_gated_pod_among_many_small_jobs_is_left_alone():
    desk = Desk(queues=("default",)).feed(node("m", "64", "64Gi"), *many(20), group("g", 1, created=3))
    desk.feed(pod("g-0", "g", cpu="1", created=3, schedulingGates=[{"name": "wait"}]))
    desk.cycle()
    assert sorted(desk.world.binds) == [f"j{i:02}-0" for i in range(20)]


def test_nodes_are_chosen_ahead_for_equal_tasks_alone():
    """Pods of one spec are not equal where one of them is kept apart from others by its labels."""
    term = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "x"}}}
    apart = {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}
    desk = Desk().feed(*(node(f"n{i}", cpu, "64Gi", labels={"zone": f"z{i}"}) for i, cpu in enumerate(("64", "8"))))
    desk.feed(group("old", 1), pod("old-0", "old", cpu="1", node="n0", labels={"app": "y"}, **apart))
    desk.feed(group("g", 3))
    for i, app in enumerate("yyx"):
        desk.feed(pod(f"g-{i}", "g", cpu="1", labels={"app": app}))
    session = desk.session()
    ahead, owner = NodesAhead(session), session.cluster.queues["default"]
    statement = session.statement()
    for i in range(3):
        task = desk.task(f"g-{i}")
        row = ahead.next(Subject(task, owner))
        assert bool(session.evaluate(Subject(task, owner)).mask(released=False)[row])
        assert statement.allocate([task], [session.cluster.nodes.records[row]])


@pytest.mark.parametrize("apart", [False, True])
def test_where_plugins_tell_equal_tasks_apart_each_looks_for_a_node_itself(apart, monkeypatch):
    desk = Desk().feed(node("n", "64", "64Gi"), group("g", 4), *(pod(f"g-{i}", "g", cpu="1") for i in range(4)))
    session, asked, choose = desk.session(), [], selection.choose
    session.announced.divisions = ["somebody"] if apart else []

    def counted(evaluation, table, count, **options):
        asked.append(count)
        return choose(evaluation, table, count, **options)

    monkeypatch.setattr(selection, "choose", counted)
    tasks, owner = [desk.task(f"g-{i}") for i in range(4)], session.cluster.queues["default"]
    ahead, statement = NodesAhead(session, tasks), session.statement()
    for task in tasks:
        assert statement.allocate([task], [session.cluster.nodes.records[ahead.next(Subject(task, owner))]])
    assert asked == ([1, 1, 1, 1] if apart else [4])


def test_nodes_that_are_chosen_ahead_are_given_in_the_order_in_which_they_would_be_chosen():
    desk = Desk().feed(*(node(f"n{i}", str(3 - i), "64Gi") for i in range(3)), group("g", 4))
    session = desk.feed(*(pod(f"g-{i}", "g", cpu="1") for i in range(4))).session()
    tasks, owner = [desk.task(f"g-{i}") for i in range(4)], session.cluster.queues["default"]

    def given(ahead):
        statement, rows = session.statement(), []
        for task in tasks:
            rows.append((ahead or NodesAhead(session)).next(Subject(task, owner)))
            assert statement.allocate([task], [session.cluster.nodes.records[rows[-1]]])
        statement.discard()
        return rows

    one_by_one = given(None)
    assert len(set(one_by_one)) > 1
    assert given(NodesAhead(session, tasks)) == one_by_one == given(NodesAhead(session))


def test_beyond_the_minimum_no_gated_pod_is_given_ahead():
    desk = Desk(queues=("default",)).feed(node("m", "64", "64Gi"), group("g", 1))
    desk.feed(*(pod(f"g-{i}", "g", cpu="1", created=5) for i in range(4)))
    gate = {"schedulingGates": [{"name": "wait"}]}
    desk.feed(*(pod(f"g-wait-{i}", "g", cpu="1", created=0, priority=9, **gate) for i in range(4))).cycle()
    assert sorted(desk.world.binds) == [f"g-{i}" for i in range(4)]


# -- hyper-nodes -----------------------------------------------------------------------------------------------


def rack(name, *members):
    listed = [{"type": "Node", "selector": {"exactMatch": {"name": member}}} for member in members]
    kind = {"apiVersion": "topology.volcano.sh/v1alpha1", "kind": "HyperNode", "metadata": metadata(name)}
    return {**kind, "spec": {"tier": 1, "members": listed}}


TOPOLOGY = """
actions: "allocate"
tiers:
- plugins: [{name: gang}]
- plugins: [{name: predicates}, {name: network-topology-aware}]
"""


@example([(1, 0), (2, 0), (1, 1), (2, 1)], [(6, 1), (6, 0)])
@given(
    st.lists(st.tuples(st.integers(1, 4), st.integers(0, 2)), min_size=2, max_size=5),
    st.lists(st.tuples(st.integers(1, 6), st.integers(0, 3)), min_size=2, max_size=2),
)
@settings(max_examples=drawn(100, 25), deadline=None)
def test_no_more_members_are_said_to_fit_into_a_rack_than_the_smallest_in_sum_nor_fewer_than_do(asked, rooms):
    desk = Desk(TOPOLOGY).feed(rack("rack", "n0", "n1"))
    for i, (cpu, cards) in enumerate(rooms):
        desk.feed(node(f"n{i}", str(cpu), "64Gi", example__card=str(cards)))
    limit = {"mode": "hard", "highestTierAllowed": 1}
    desk.feed(group("g", len(asked), networkTopology=limit))
    for i, (cpu, cards) in enumerate(asked):
        desk.feed(pod(f"g-{i}", "g", cpu=str(cpu), requests={"example/card": str(cards)} if cards else {}))
    session = desk.session()
    tasks = [desk.task(f"g-{i}") for i in range(len(asked))]
    job = tasks[0].job
    counts = DomainCapacity(session, session.queue_of(job), job, tasks).counts(released=False)
    place = next(each.index for each in session.topology.tree_of(job).domains if each.name == "rack")
    in_sum = [
        sum(total <= sum(room[at] for room in rooms) for total in itertools.accumulate(sorted(a[at] for a in asked)))
        for at in range(2)
    ]
    kinds = [sum(min(asked.count(kind), sum(copies(kind, room) for room in rooms)) for kind in set(asked))]
    assert counts[place] == min(*kinds, *in_sum)


def copies(kind, room):
    """Count the pods of a kind that fit into a room."""
    return min(have // want for have, want in zip(room, kind, strict=True) if want)


# -- what is said of gangs -----------------------------------------------------------------------------------


def test_a_gang_is_told_how_many_fit_largest_first_if_these_are_more_and_why_the_others_do_not():
    desk = Desk().feed(node("n0", "2", "64Gi"), node("n1", "2", "64Gi"), group("g", 4))
    desk.feed(*(pod(f"g-{i}", "g", cpu=cpu) for i, cpu in enumerate(("1", "1", "2", "900"))))
    session = desk.session()
    job = desk.task("g-0").job
    found = gang_fit.verdict(session, job, sorted(job.tasks.values(), key=lambda task: task.name))
    assert (found.placed, found.fit, found.enough) == (0, 3, False)
    assert [(each.pod, each.count) for each in found.missing] == [("g-3", 1)]
    assert found.missing[0].reason.startswith("0/2 nodes are unavailable: 2 Insufficient cpu")


# -- who is told what others were told -------------------------------------------------------------------------


def test_why_a_queue_takes_nobody_on_is_no_reason_for_equals_of_another_queue():
    text = 'actions: "allocate"\ntiers:\n- plugins: [{name: gang}, {name: predicates}, {name: capacity}]\n'
    desk = Desk(text).feed(queue("a", capability={"cpu": "1"}), queue("b"), node("n", "64", "64Gi"))
    for i in range(4):
        desk.feed(*(each for name in "ab" for each in (group(f"{name}{i}", 2, queue=name, created=i),)))
        desk.feed(*(pod(f"{name}{i}-{j}", f"{name}{i}", cpu="1") for name in "ab" for j in range(2)))
    desk.cycle()
    assert sorted(desk.world.binds) == sorted(f"b{i}-{j}" for i in range(4) for j in range(2))


def test_whom_no_node_took_is_no_reason_for_equals_once_others_were_placed():
    """Each wants to be beside a pod that is placed after the first of them was tried."""
    term = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "y"}}}
    beside = {"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}
    desk = Desk().feed(node("n", "64", "64Gi", labels={"zone": "z"}))
    for i, (app, spec) in enumerate((("x", beside), ("x", beside), ("y", {}), ("x", beside), ("x", beside))):
        desk.feed(group(f"g{i}", 1, created=i), pod(f"g{i}-0", f"g{i}", cpu="1", labels={"app": app}, **spec))
    desk.cycle()
    assert sorted(desk.world.binds) == ["g2-0", "g3-0", "g4-0"]


def test_a_job_that_can_never_be_valid_is_told_so_by_the_action_that_leaves_it_out():
    desk = Desk().feed(node("n", "4", "64Gi"), group("g", 2, phase="Inqueue"), pod("g-0", "g", cpu="1"))
    said = {verdict.source: verdict.text for verdict in desk.cycle().verdicts(desk.task("g-0").job_key)}
    assert said["allocate"] == "NotEnoughTasks: the group has 1 valid pods, minMember is 2"


@pytest.mark.parametrize("cpu", ["1", "9"])
def test_a_gated_member_is_said_to_wait_for_its_gate_alone_whether_nodes_would_take_it_or_not(cpu):
    gate = {"schedulingGates": [{"name": "wait"}]}
    desk = Desk().feed(node("n", "4", "64Gi"), group("g", 2))
    desk.feed(pod("g-0", "g", cpu="1"), pod("g-1", "g", cpu=cpu, **gate))
    session = desk.session()
    found = gang_fit.verdict(session, desk.task("g-0").job, [desk.task("g-0"), desk.task("g-1")])
    assert [(each.pod, each.placement) for each in found.missing] == [("g-1", None)]
    assert "gate" in found.missing[0].reason


# -- in which order unequal members are tried, and when it is of no use ------------------------------------------


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)).filter(any), min_size=2, max_size=5))
@settings(max_examples=drawn(100), deadline=None)
def test_members_are_ordered_by_their_largest_share_then_by_each_resource_never_twice_alike(sizes):
    offered = np.array([[8, 4]])
    table = SimpleNamespace(allocatable=offered)

    def task(number, size):
        shape = SimpleNamespace(serial=size, request=SimpleNamespace(vector=np.array(size)))
        return SimpleNamespace(shape=shape, number=number)

    def share(size, column):
        return size[column] / offered[0, column]

    tasks = [task(number, size) for number, size in enumerate(sizes)]
    found = [[each.number for each in order] for order in largest_first.by_size(table, slice(1), tasks)]
    most = {each.number: max(share(sizes[each.number], column) for column in range(2)) for each in tasks}
    wanted = []
    keys = [lambda n: -most[n], lambda n: (-most[n], -share(sizes[n], 0), -share(sizes[n], 1))]
    keys += [lambda n, c=c: (-share(sizes[n], c), -most[n]) for c in range(2)]
    for key in keys:
        order = sorted(range(len(sizes)), key=key)
        if order != list(range(len(sizes))) and order not in wanted:
            wanted.append(order)
    assert found == wanted


@pytest.mark.parametrize(
    ("minimum", "roles", "ready", "waiting", "hope"),
    [
        (1, {"m": 2}, {}, "mw", True),  # the minimum is less than that of all roles: as many others count as it takes
        (2, {"m": 3}, {}, "mw", False),
        (2, {"m": 3}, {}, "mww", True),
        (2, {"m": 3}, {}, "mmw", False),
        (2, {"m": 3}, {"w": 1}, "mw", True),
        (2, {"m": 1, "w": 1}, {}, "mww", False),  # else none that found no node may be short of its own
        (2, {"m": 1, "w": 1}, {"m": 1}, "mww", True),
        (2, {"w": 2}, {}, "mww", True),
        (3, {"m": 1}, {}, "mwww", False),
        (9, {"m": 1}, {"m": 1}, "mwww", False),  # all of its members are needed
    ],
)
def test_under_volcano_s_rule_a_gang_is_left_if_roles_without_a_misfit_cannot_make_it(
    minimum, roles, ready, waiting, hope
):
    tally = {role: SimpleNamespace(is_ready=lambda least, role=role: ready.get(role, 0) >= least) for role in "mw"}
    job = SimpleNamespace(min_member=minimum, min_task_total=sum(roles.values()), min_task_member=roles, policies=())
    job.pending = {number: SimpleNamespace(role=role) for number, role in enumerate(waiting)}
    job.tasks, job.roles = range(9), tally
    job.tally = SimpleNamespace(ready=sum(ready.values()))
    known = misfits.MisfitRoles(SimpleNamespace(job=job))
    known.add(SimpleNamespace(role="m"))
    assert known.leave_hope(None, ()) is hope
    job.policies = ("some",)  # which count by themselves
    assert known.leave_hope(None, ()) is (minimum < len(job.tasks))
    assert not known.leave_hope(SimpleNamespace(minimum=2, tasks="ab"), ())
    assert known.leave_hope(SimpleNamespace(minimum=1, tasks="ab"), ()) is (minimum < len(job.tasks))


@pytest.mark.parametrize(
    ("sizes", "more", "settled"),
    [
        (("9",), {}, True),
        (("3", "3"), {}, True),
        (("1", "1"), {}, True),
        (("9", "1"), {}, False),  # with less room its members may be tried in another order
        (("3", "3"), {"minTaskMember": {"w": 1}}, False),
    ],
)
def test_who_found_too_little_room_finds_enough_in_less_only_where_members_differ(sizes, more, settled):
    desk = Desk().feed(node("n", "4", "64Gi"), group("g", len(sizes), phase="Inqueue", **more))
    desk.feed(*(pod(f"g-w-{i}", "g", cpu=cpu, role="w") for i, cpu in enumerate(sizes)))
    session = desk.session()
    (allocate,) = (action for action in desk.scheduler.engine.actions if action.name == "allocate")
    allocate.execute(session)
    assert allocate.is_settled(session) is settled


class Easy(Plugin):
    """Lets a job start with its first pod, whatever its minimum, and whoever has the fewest come first."""

    name = "easy"
    points = frozenset({"JobReady", "JobOrder"})

    def open(self, session):
        session.job_ready.add(lambda job: job.tally.ready > 0)
        session.job_order.add(lambda job: job.tally.ready)


@pytest.mark.parametrize("more", [0, 1])
@pytest.mark.parametrize("rooms", range(1, 7))
def test_where_minimums_do_not_count_a_turn_ends_with_the_pod_that_makes_a_job_ready(rooms, more):
    """Be the pods equal or not."""
    text = 'actions: "allocate"\ntiers:\n- plugins: [{name: easy}, {name: predicates}]\n'
    desk = Desk(text, Easy).feed(node("n", str(rooms), "64Gi"))
    for name in "ab":
        desk.feed(group(name, 3, phase="Inqueue"))
        desk.feed(*(pod(f"{name}-{i}", name, cpu="1", memory=f"{1 + more * i}Mi") for i in range(3)))
    desk.cycle()
    due = [f"{name}-{i}" for i in range(3) for name in "ab"]
    assert sorted(desk.world.binds) == sorted(due[:rooms])
