"""Where a job would go at another time: what is asked of the cluster as it would be, and when amounts alone decide."""

from __future__ import annotations

import numpy as np
import pytest

from builders import Desk, group, metadata, node, pod
from pumice.actions.placing.searching import Searching
from pumice.framework import shortcuts
from pumice.framework.plugin import Plugin
from pumice.framework.points import NODE_LOCAL, Reads
from pumice.framework.reasons import BeyondDue, Code
from pumice.framework.searching import Moment
from pumice.model.resources import PODS


def at_another_time(desk, beyond=(), *, gone="old-1", come=(), room=None, begins=lambda: None):
    """Search for the job `g` when a pod will be gone and others will have come; give the nodes that are looked at, None for all, and where pods would go."""
    session, looked_at = desk.session(), []
    if room is None:
        room = session.cluster.nodes.idle_at(slice(3)).copy()
        room[:, 0] = [1999, 2000, 2001]

    def changes(rows):
        looked_at.append(None if rows is None else rows.tolist())
        return [desk.task(gone)], [(desk.task(name), desk.node(where)) for name, where in come]

    moment = Moment("somebody", room, np.zeros(3), changes, begins)
    placed = Searching(session)(desk.task("g-0").job, moment, [desk.task(name) for name in beyond])
    return looked_at, placed and [(task.name, where.name) for task, where in placed]


def full(text=None, *plugins, **more):
    """Three nodes that are full of a pod each, and a job whose pods ask for half a node."""
    desk = Desk(text or GANG_AND_SCORES, *plugins, **more).feed(*(node(f"n{i}", "4", "64Gi") for i in range(3)))
    desk.feed(group("old", 1), group("g", 1), *(pod(f"old-{i}", "old", cpu="4", node=f"n{i}") for i in range(3)))
    return desk.feed(*(pod(f"g-{i}", "g", cpu="2") for i in range(3)))


GANG_AND_SCORES = """
actions: "allocate"
tiers:
- plugins: [{name: gang}]
- plugins: [{name: predicates}, {name: nodeorder}%s]
"""


@pytest.mark.parametrize(
    ("more", "taken", "all_nodes"),
    [
        ("", shortcuts.ALL, False),
        (", {name: capacity}", shortcuts.ALL, True),  # a limit may have a say in where members go
        (", {name: proportion}", shortcuts.ALL, True),
        ("", shortcuts.NONE, True),
    ],
)
def test_a_search_at_another_time_looks_at_the_nodes_that_will_have_just_enough_where_nobody_else_has_a_say(
    more, taken, all_nodes
):
    """Something prefers nodes, so amounts do not decide alone."""
    looked_at, ((_, where), *_) = at_another_time(full(GANG_AND_SCORES % more, taken=taken))
    assert where == "n1"
    assert looked_at == [None if all_nodes else [False, True, True]]


@pytest.mark.parametrize(
    ("sizes", "more", "placed"),
    [(("2", "2"), {}, 2), (("2", "9"), {}, 0), (("2", "2"), {"schedulingGates": [{"name": "wait"}]}, 0)],
)
def test_a_gang_starts_at_another_time_if_there_is_room_for_each_of_its_members(sizes, more, placed):
    """Amounts decide alone here: nobody prefers a node, or keeps anybody from one."""
    desk = Desk('actions: "allocate"\ntiers:\n- plugins: [{name: gang}]\n').feed(
        *(node(f"n{i}", "4") for i in range(3))
    )
    desk.feed(group("old", 1), group("g", 2), *(pod(f"old-{i}", "old", cpu="4", node=f"n{i}") for i in range(3)))
    desk.feed(pod("g-0", "g", cpu=sizes[0]), pod("g-1", "g", cpu=sizes[1], **more))
    assert len(at_another_time(desk)[1] or ()) == placed


class Never(Plugin):
    """Finds no job ready."""

    name = "never"
    points = frozenset({"JobReady"})

    def open(self, session):
        session.job_ready.add(lambda _: False)


@pytest.mark.parametrize(("more", "starts"), [("", True), (", {name: never}", False)])
def test_a_job_starts_at_another_time_only_if_everybody_finds_it_ready(more, starts):
    text = f'actions: "allocate"\ntiers:\n- plugins: [{{name: gang}}{more}]\n'
    assert bool(at_another_time(full(text, *([Never] if more else [])))[1]) is starts


def test_of_members_beyond_the_minimum_all_are_placed_that_will_find_a_node():
    desk = full(GANG_AND_SCORES % "")
    assert at_another_time(desk, ["g-0", "g-1", "g-2"])[1] == [("g-0", "n1"), ("g-1", "n1")]


# -- the cluster as it would be --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("phase", "starts"),
    [
        ("", False),  # a pod that waits now will be there, and takes the room
        ("n0", True),  # one that runs is where it is
    ],
)
def test_whoever_waits_now_and_will_have_come_by_then_takes_room(phase, starts):
    desk = full(GANG_AND_SCORES % "").feed(group("next", 0), node("n3", "4", cordoned=True))
    desk.feed(pod("next-0", "next", cpu="4", node="n3" if phase else ""))
    assert bool(at_another_time(desk, come=[("next-0", "n1")])[1]) is starts


def test_whoever_plans_ahead_is_told_when_the_cluster_is_as_it_would_be():
    desk, seen = full(GANG_AND_SCORES % ""), []
    desk.feed(group("next", 0), pod("next-0", "next", cpu="1"))
    at_another_time(
        desk, come=[("next-0", "n1")], begins=lambda: seen.append(desk.cluster.nodes.idle_at(slice(3))[:, 0].tolist())
    )
    assert seen == [[0, 3000, 0]]


class Limiting(Plugin):
    """Lets a queue have nothing more."""

    name = "limiting"
    points = frozenset({"Overused"})
    why = "it has enough"

    def open(self, session):
        session.overused.add(lambda _: self.why)


@pytest.mark.parametrize(("why", "starts"), [("it has enough", False), (BeyondDue("more than is due"), True)])
def test_a_job_starts_at_no_time_at_which_its_queue_gets_nothing_but_for_its_due(why, starts):
    text = GANG_AND_SCORES % ", {name: limiting}"
    desk = full(text, type("Limiting", (Limiting,), {"why": why}))
    assert bool(at_another_time(desk)[1]) is starts


def test_room_that_is_still_being_released_then_is_no_room_for_anybody():
    """Not even to wait: the large one would take from the small one what is free."""
    desk = Desk(GANG_AND_SCORES % "").feed(node("n0", "1"), node("n1", "4"), node("n2", "1"))
    desk.feed(group("old", 1), *(pod(f"old-{i}", "old", cpu="2", node="n1", deleting=3600 * (i == 0)) for i in (0, 1)))
    desk.feed(group("g", 0), *(pod(f"g-{i}", "g", cpu=cpu) for i, cpu in enumerate(("3", "2"))))
    assert at_another_time(desk, ["g-0", "g-1"])[1] == [("g-1", "n1")]


TERM = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "x"}}}
CLAIM = {"name": "v", "persistentVolumeClaim": {"claimName": "c"}}
DEVICES = [{"name": "d", "resourceClaimName": "c"}]


@pytest.mark.parametrize(
    ("more", "all_nodes"),
    [
        ({}, False),
        ({"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [TERM]}}}, True),
        ({"volumes": [CLAIM]}, True),
        ({"resourceClaims": DEVICES}, True),
    ],
)
def test_all_nodes_are_looked_at_for_pods_for_whom_more_counts_than_their_own_node(more, all_nodes):
    desk = full(GANG_AND_SCORES % "").modify(*(pod(f"g-{i}", "g", cpu="2", **more) for i in range(3)))
    assert at_another_time(desk)[0] == [None if all_nodes else [False, True, True]]


def test_a_gang_of_unequal_members_starts_at_another_time_in_another_order_if_need_be():
    text = 'actions: "allocate"\ntiers:\n- plugins: [{name: gang}, {name: predicates}]\n'
    desk = Desk(text).feed(*(node(f"n{i}", cpu) for i, cpu in enumerate("141")))
    desk.feed(group("old", 1), *(pod(f"old-{i}", "old", cpu=cpu, node=f"n{i}") for i, cpu in enumerate("14")))
    desk.feed(group("g", 2), *(pod(f"g-{i}", "g", cpu=cpu, nodeSelector={}) for i, cpu in enumerate("14")))
    desk.modify(node("n2", "1", cordoned=True), node("n0", "2"))
    room = desk.session().cluster.nodes.idle_at(slice(3)).copy()
    room[1, 0] = 4000
    placed = at_another_time(desk, room=room)[1]
    assert sorted(placed) == [("g-0", "n0"), ("g-1", "n1")]


# -- inside hyper-nodes ----------------------------------------------------------------------------------------


def rack(name, *members):
    listed = [{"type": "Node", "selector": {"exactMatch": {"name": member}}} for member in members]
    kind = {"apiVersion": "topology.volcano.sh/v1alpha1", "kind": "HyperNode", "metadata": metadata(name)}
    return {**kind, "spec": {"tier": 1, "members": listed}}


def in_racks(least, *cpus):
    """A job that has to stay in one rack; of the one that will be free half is being released."""
    desk = Desk(GANG_AND_SCORES % ", {name: network-topology-aware}").feed(*(node(f"n{i}", "4") for i in range(3)))
    desk.feed(rack("r0", "n0", "n1"), rack("r1", "n2"), group("old", 1))
    desk.feed(pod("old-0", "old", cpu="4", node="n0", deleting=3600), pod("old-1", "old", cpu="4", node="n1"))
    desk.feed(pod("old-2", "old", cpu="3", node="n2"))
    desk.feed(group("g", least, networkTopology={"mode": "hard", "highestTierAllowed": 1}))
    return desk.feed(*(pod(f"g-{i}", "g", cpu=cpu) for i, cpu in enumerate(cpus)))


@pytest.mark.parametrize(
    ("cpus", "placed"),
    [
        (("2", "2"), [("g-0", "n1"), ("g-1", "n1")]),
        (("4", "1"), None),  # there is room for both, but not in one rack
        (("4", "4"), None),  # nor is anything free before it is
    ],
)
def test_a_gang_starts_at_another_time_inside_its_hyper_node_or_not_at_all(cpus, placed):
    assert at_another_time(in_racks(2, *cpus))[1] == placed


@pytest.mark.parametrize(("gone", "placed"), [("old-1", [("g-0", "n1")]), ("old-2", None)])
def test_of_members_beyond_the_minimum_one_is_placed_inside_the_hyper_node_if_there_is_free_room(gone, placed):
    desk = in_racks(0, "4", "4").modify(rack("r1"), node("n2", "4", cordoned=True))
    assert at_another_time(desk, ["g-0", "g-1"], gone=gone)[1] == placed


# -- amounts alone ---------------------------------------------------------------------------------------------


class Somebody(Plugin):
    """Adds something, in the name of a plugin that may plan ahead."""

    name = "other"
    points = frozenset({"Predicate", "Score", "BestNode", "JobReady"})

    def open(self, session):
        self.reason = session.reason(self.name, Code.UNRESOLVABLE, "not this one")
        self.does(session)

    def refuses(self, nodes, wrong):
        return np.array([self.reason * (record.name == wrong) for record in nodes.records()], dtype=np.int16)


def filters(reads):
    """Keep everybody off the second node, by what is read."""
    return lambda self, session: session.predicate.add(lambda _, nodes: self.refuses(nodes, "n1"), reads=reads)


def scores(_, session):
    session.score.add(lambda _, nodes: np.zeros(len(nodes)), reads=NODE_LOCAL)


ADDED = {
    "nothing": (lambda _, __: None, "other", True, "n1"),
    "a filter by Node objects": (filters(Reads.NODE), "other", True, "n2"),
    "a filter by more": (filters(NODE_LOCAL), "other", False, "n2"),
    "an own filter by more": (filters(NODE_LOCAL), "somebody", True, "n1"),
    "a score": (scores, "other", False, "n1"),
    "an own score": (scores, "somebody", True, "n1"),
    "a name": (lambda _, session: session.best_node.add(lambda *_: None), "other", False, "n1"),
    "a division": (lambda _, session: session.divide_runs(lambda task: task.name), "other", False, "n1"),
}


@pytest.mark.parametrize("case", ADDED)
def test_nobody_is_placed_on_trial_where_amounts_and_node_objects_alone_decide(case):
    does, name, alone, where = ADDED[case]
    text = f'actions: "allocate"\ntiers:\n- plugins: [{{name: gang}}, {{name: {name}}}]\n'
    desk = full(text, type("Somebody", (Somebody,), {"does": does, "name": name}))
    room = desk.session().cluster.nodes.idle_at(slice(3)).copy()
    room[:, 0] = [1999, 4000, 2001]
    looked_at, placed = at_another_time(desk, room=room)
    assert (looked_at == []) is alone
    # On trial there is room where pods are gone alone.
    assert placed == ([("g-0", where)] if alone or where == "n1" else None)


def by_amounts(least, *pods, room):
    """Where the pods of a job go by what nodes will have left of cpus and of pods."""
    desk = Desk('actions: "allocate"\ntiers:\n- plugins: [{name: gang}]\n')
    desk.feed(*(node(f"n{i}", "9", example__card="1" if i == 2 else None) for i in range(3)))
    desk.feed(group("old", 1), pod("old-1", "old", cpu="1", node="n1"), group("g", least))
    desk.feed(*(pod(f"g-{i}", "g", **each) for i, each in enumerate(pods)))
    matrix = desk.session().cluster.nodes.idle_at(slice(3)).copy()
    matrix[:, [0, PODS]] = room
    looked_at, placed = at_another_time(desk, room=matrix)
    assert not looked_at or any("requests" in each for each in pods)
    return placed and [where for _, where in placed]


ONE = {"cpu": "1"}


@pytest.mark.parametrize(
    ("least", "pods", "room", "where"),
    [
        (2, [ONE, ONE], [(1000, 9), (1000, 9), (1000, 9)], ["n0", "n1"]),
        (2, [ONE, ONE], [(2000, 1), (999, 9), (1000, 1)], ["n0", "n2"]),  # one pod more is one pod more
        (2, [ONE, ONE], [(2000, 0), (999, 9), (1000, 1)], None),
        (1, [ONE, ONE], [(-1, 9), (0, 9), (2000, 9)], ["n2"]),  # no more than it needs
        (1, [{**ONE, "requests": {"example.com/unknown": "1"}}], [(2000, 9)] * 3, None),
        (1, [{**ONE, "requests": {"example/card": "0"}}], [(2000, 9)] * 3, ["n0"]),  # who asks for none needs none
    ],
)
def test_nodes_are_filled_one_after_the_other_as_far_as_each_amount_goes(least, pods, room, where):
    assert by_amounts(least, *pods, room=room) == where
