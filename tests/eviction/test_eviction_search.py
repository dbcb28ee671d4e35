"""What a search carries out and says: room that needs no victim, members without requests, plans for others that are only asked about, and domains that were not tried."""

from __future__ import annotations

from types import SimpleNamespace

import msgspec
import pytest
from eviction_hand import ANYWHERE, Hand

from builders import Desk, group, metadata, node, pod, priority_class, queue
from pumice.actions.eviction.proposals import Proposers
from pumice.actions.eviction.search import Search
from pumice.framework import shortcuts
from pumice.framework.plugin import Plugin
from pumice.framework.runs import Step
from pumice.model.statuses import Status

CONFIG = """
actions: "%s"
tiers:
- plugins: [{name: priority}, {name: gang%s}]
- plugins: [{name: predicates}, {name: nodeorder}%s]
%s
"""
HARD = {"mode": "hard", "highestTierAllowed": 1}


def rack(name, *nodes):
    """A hyper-node of some nodes."""
    members = [{"type": "Node", "selector": {"exactMatch": {"name": each}}} for each in nodes]
    made = {"apiVersion": "topology.volcano.sh/v1alpha1", "kind": "HyperNode", "metadata": metadata(name)}
    return {**made, "spec": {"tier": 1, "members": members}}


def asking(desk, *cpus, least=None, rank="high", **spec):
    least = len(cpus) if least is None else least
    desk.feed(group("asks", least, phase="Inqueue", priorityClassName=rank, **spec))
    return desk.feed(*(pod(f"asks-{i}", "asks", **({"cpu": cpu} if cpu else {})) for i, cpu in enumerate(cpus)))


def desk_of(actions, *plugins, more="", tail="", starving="", **options):
    return Desk(CONFIG % (actions, starving, more, tail), *plugins, **options).feed(
        priority_class("low", 1), priority_class("high", 9)
    )


def full(desk, count, *, each="1", name="low"):
    desk.feed(group(name, 0, phase="Running", priorityClassName="low"))
    return desk.feed(*(pod(f"{name}-{i}", name, cpu=each, node="m") for i in range(count)))


def held(desk):
    return sorted(desk.cluster.tasks[uid].name for uid in desk.scheduler.reservations.holds)


# ---- room that needs no victim


@pytest.mark.parametrize("actions", ["preempt", "preempt, allocate", "gangpreempt"])
def test_room_that_needs_no_victim_is_kept_and_allocate_gives_it_in_the_same_cycle_if_it_comes_later(actions):
    desk = asking(full(desk_of(actions).feed(node("m", "3")), 1), "1", "1")
    trace = " ".join(map(str, desk.cycle().trace()))
    assert desk.world.evictions == []
    name = actions.split(",")[0]
    assert "there is room for 2 members without evicting anybody" in trace
    assert name in trace
    if "allocate" in actions:
        assert desk.world.binds == {"asks-0": "m", "asks-1": "m"}
    else:
        assert held(desk) == ["asks-0", "asks-1"]


@pytest.mark.parametrize("racks", [{"a": ["m"]}, {"a": ["m"], "b": ["n"]}])
def test_room_inside_a_hyper_node_that_needs_no_victim_is_kept(racks):
    desk = desk_of("gangpreempt", more=", {name: network-topology-aware}").feed(node("m", "1"), node("n", "2"))
    desk.feed(*(rack(name, *nodes) for name, nodes in racks.items()))
    full(desk, 1)
    asking(desk, "1", "1" if "b" in racks else "", networkTopology=HARD)
    desk.cycle()
    assert held(desk) == (["asks-0", "asks-1"] if "b" in racks else ["asks-0"])
    assert desk.world.evictions == ([] if "b" in racks else ["low-0"])


def test_members_without_requests_alone_keep_no_room():
    desk = asking(desk_of("preempt").feed(node("m", "1")), "", "")
    trace = " ".join(map(str, desk.cycle().trace()))
    assert "without evicting" not in trace
    assert held(desk) == []
    assert {desk.task(f"asks-{i}").status for i in range(2)} == {Status.PENDING}


def test_members_without_requests_alone_are_left_to_backfill_in_the_same_cycle():
    desk = asking(desk_of("preempt, backfill").feed(node("m", "1")), "", "")
    desk.cycle()
    assert desk.world.binds == {"asks-0": "m", "asks-1": "m"}


def test_for_a_gang_with_members_without_requests_room_is_made_for_the_others():
    desk = asking(full(desk_of("preempt").feed(node("m", "2")), 2), "", "1", "")
    desk.cycle()
    assert len(desk.world.evictions) == 1
    assert held(desk) == ["asks-1"]


def test_each_plan_is_counted_with_its_victims(monkeypatch):
    desk = asking(full(desk_of("preempt").feed(node("m", "2")), 2), "2")
    found = []
    monkeypatch.setattr(
        type(desk.session().observer), "evicted", lambda _, action, victims: found.append((action, victims))
    )
    desk.cycle()
    assert found == [("preempt", 2)]


def test_for_members_of_a_job_beyond_its_minimum_like_one_for_whom_nobody_helps_victims_are_not_looked_for(monkeypatch):
    desk = desk_of("preempt", starving=", enableJobStarving: false").feed(node("m", "2"))
    asking(full(desk, 2), "3", "3", "1", least=0)
    found = []
    monkeypatch.setattr(type(desk.session().observer), "sought", lambda _, action: found.append(action))
    desk.cycle()
    assert len(desk.world.evictions) == 1
    assert found == ["preempt", "preempt"]


def test_a_job_beyond_its_minimum_has_room_made_for_each_further_member():
    desk = desk_of("preempt", starving=", enableJobStarving: false").feed(node("m", "4"))
    asking(full(desk, 4), "1", "1", "1", least=0)
    desk.cycle()
    assert len(desk.world.evictions) == 3
    assert held(desk) == ["asks-0", "asks-1", "asks-2"]


# ---- plans for others


@pytest.mark.parametrize(
    ("spared", "asked", "serves"),
    [([], 1, True), (["low-1"], 1, True), (["low-0", "low-1"], 1, False), (["low-1"], 2, False), ([], 3, False)],
)
def test_whether_another_could_be_served_without_those_of_a_plan_is_only_asked(spared, asked, serves):
    hand = Hand(nodes={"m": 2}, running={"low": (0, "low", [("m", 1), ("m", 1)])}, asks=[(asked, ANYWHERE)])
    before = hand.statuses()
    plan = SimpleNamespace(members=[hand.desk.task(name) for name in spared])
    search = Search(hand.plan.session, hand.rules)
    wanted = hand.wanted(lambda: hand.members[0].status is Status.PIPELINED)
    for _ in range(2):
        assert search.could_serve(wanted, spared=plan) is serves
        assert hand.statuses() == before


# ---- domains


def crowded(most, *, first="4"):
    """Three racks full of pods, of which a plan may be made in so many; the first is too small for a gang."""
    tail = f"configurations:\n- {{name: gangpreempt, arguments: {{maxDomains: {most}}}}}\n"
    desk = desk_of("gangpreempt", more=", {name: network-topology-aware}", tail=tail)
    for i, cpu in enumerate((first, "4", "4")):
        desk.feed(
            node(f"n{i}", cpu, labels={"kubernetes.io/hostname": f"n{i}"}),
            rack(f"r{i}", f"n{i}"),
            group(f"g{i}", 0, phase="Running", priorityClassName="low"),
        )
        size = 4 - i if cpu == "4" else 1
        desk.feed(*(pod(f"g{i}-{j}", f"g{i}", cpu="1" if size > 1 else cpu, node=f"n{i}") for j in range(size)))
    return desk


@pytest.mark.parametrize(
    ("most", "told"),
    [
        (1, ", in the first 1 of 3 hyper-nodes (maxDomains)"),
        (2, ", in the first 2 of 3 hyper-nodes (maxDomains)"),
        (3, ""),
    ],
)
def test_whoever_is_refused_is_told_how_many_of_its_hyper_nodes_were_tried(most, told):
    """Each rack has one node with room enough for both members, who will not share it."""
    desk = crowded(most)
    desk.feed(group("asks", 2, phase="Inqueue", priorityClassName="high", networkTopology=HARD))
    minds = {"labels": {"a": "b"}, "affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
        {"labelSelector": {"matchLabels": {"a": "b"}}, "topologyKey": "kubernetes.io/hostname"}]}}}  # fmt: skip
    desk.feed(*(pod(f"asks-{i}", "asks", cpu="1", **minds) for i in range(2)))
    said = []
    desk.scheduler.cycle(lambda explainer: said.extend(each.said for each in explainer.job("a/asks").actions))
    considered = "of 9 pods considered: 9 offered, but of no help"
    assert said == [f"no set of pods that may be evicted makes enough room{told}: {considered}"]
    assert desk.world.evictions == []


@pytest.mark.parametrize("asked", ["4", "3"])
def test_of_several_hyper_nodes_the_plan_with_the_fewest_victims_is_carried_out(asked):
    """The first has four pods, the second three, the third two and room for two."""
    desk = asking(crowded(8), asked, networkTopology=HARD)
    desk.cycle()
    assert sorted(desk.world.evictions) == (["g2-0", "g2-1"] if asked == "4" else ["g2-1"])
    assert held(desk) == ["asks-0"]
    running = [task for task in desk.cluster.tasks.values() if task.status is Status.RUNNING]
    assert len(running) == 9 - len(desk.world.evictions)


def test_a_hyper_node_that_is_too_small_is_none_of_those_of_which_only_so_many_are_tried():
    desk = asking(crowded(1, first="1"), "4", networkTopology=HARD)
    desk.cycle()
    assert held(desk) == ["asks-0"]
    assert len(desk.world.evictions) in {2, 3}


def test_what_a_gang_asks_for_at_the_least_need_not_be_free_where_it_evicts():
    desk = asking(crowded(8), "4", networkTopology=HARD, minResources={"cpu": "4"})
    desk.cycle()
    assert desk.world.evictions


def test_room_that_is_free_in_a_hyper_node_is_taken_though_no_more_than_others_are_tried_for_a_plan():
    desk = crowded(1).feed(node("free", "3"), rack("r9", "free"))
    asking(desk, "3", networkTopology=HARD).cycle()
    assert desk.world.evictions == []
    assert [hold.node for hold in desk.scheduler.reservations.holds.values()] == ["free"]


def of_two_racks(desk):
    """Each full of a pod of one size; in the second less is lacking, so that a plan might cost less there, but nobody goes by halves."""
    for i, cpu in enumerate(("2", "3")):
        desk.feed(node(f"n{i}", cpu), rack(f"r{i}", f"n{i}"))
        desk.feed(group(f"g{i}", 0, phase="Running", priorityClassName="low"))
        desk.feed(pod(f"g{i}-0", f"g{i}", cpu="2", node=f"n{i}"))
    return desk


def test_of_hyper_nodes_in_which_a_plan_costs_as_much_the_first_is_taken_though_another_lacks_less():
    desk = of_two_racks(desk_of("gangpreempt", more=", {name: network-topology-aware}"))
    asking(desk, "2", networkTopology=HARD).cycle()
    assert desk.world.evictions == ["g0-0"]
    assert [hold.node for hold in desk.scheduler.reservations.holds.values()] == ["n0"]
    assert desk.task("g1-0").status is Status.RUNNING


class Fickle(Plugin):
    """Refuses the last of so many placements."""

    name = "fickle"
    refuses: int
    seen: list[str]

    def open(self, session):
        session.add_handler(self.follow, may_refuse=True)

    def follow(self, run, sign):
        if sign > 0 and run.step is Step.PIPELINE:
            self.seen.append(run.targets[0].name)
            return "not now" if len(self.seen) == self.refuses else None
        return None


def test_a_plan_that_was_made_before_is_made_anew_where_it_cannot_be_taken_up_again():
    placed = 0
    for again in (False, True):
        found = []
        made = type("Fickle", (Fickle,), {"refuses": placed, "seen": found})
        desk = of_two_racks(desk_of("gangpreempt", made, more=", {name: network-topology-aware}, {name: fickle}"))
        asking(desk, "2", networkTopology=HARD).cycle()
        assert desk.world.evictions == ["g0-0"]
        assert (len(found) > placed > 0) is again
        placed = len(found)


@pytest.mark.parametrize(("sums", "tried"), [(True, 1), (False, 2)])
def test_no_plan_is_made_in_a_hyper_node_that_costs_more_where_that_is_known_ahead(sums, tried, monkeypatch):
    made, proposals = [], Proposers.proposals

    def counted(self, plan, wanted):
        made.append(plan.domain.name)
        return proposals(self, plan, wanted)

    monkeypatch.setattr(Proposers, "proposals", counted)
    desk = desk_of(
        "gangpreempt",
        more=", {name: network-topology-aware}",
        taken=msgspec.structs.replace(shortcuts.ALL, domain_sums=sums),
    )
    for i, ranks in enumerate((("high",), ("low",), ("low", "low"))):
        desk.feed(node(f"n{i}", "2"), rack(f"r{i}", f"n{i}"))
        for n, rank in enumerate(ranks):
            desk.feed(group(f"g{i}{n}", 0, phase="Running", priorityClassName=rank))
            desk.feed(pod(f"g{i}{n}-0", f"g{i}{n}", cpu=str(2 // len(ranks)), node=f"n{i}"))
    asking(desk, "2", networkTopology=HARD).cycle()
    assert desk.world.evictions == ["g10-0"]
    assert len(made) == tried


# ---- room beyond a due


def lent(actions):
    """Two racks, each with a core that is idle and two that pods of a queue have; another queue is due most of it, but its pod fits nowhere."""
    desk = desk_of(actions, more=", {name: network-topology-aware}, {name: proportion}").feed(
        queue("q"), queue("p", weight=9)
    )
    desk.feed(group("large", 1, queue="p", phase="Inqueue"), pod("large-0", "large", cpu="6"))
    for i in range(2):
        desk.feed(
            node(f"n{i}", "3"),
            rack(f"r{i}", f"n{i}"),
            group(f"g{i}", 0, queue="q", phase="Running", priorityClassName="low"),
        )
        desk.feed(*(pod(f"g{i}-{n}", f"g{i}", cpu="1", node=f"n{i}") for n in range(2)))
    return desk


@pytest.mark.parametrize("actions", ["preempt, allocate", "gangpreempt, allocate"])
def test_idle_room_that_only_the_due_of_its_queue_keeps_from_a_job_is_left_to_allocate_which_gives_it(actions):
    desk = asking(lent(actions), "1", "1", queue="q")
    desk.cycle()
    assert desk.world.evictions == []
    assert sorted(desk.world.binds.values()) == ["n0", "n1"]


def test_idle_room_that_is_not_enough_is_none_and_the_whole_gang_has_room_made_for_it():
    """In a queue that was lent room one pod goes for one."""
    desk = desk_of("preempt", more=", {name: proportion}").feed(queue("q"), queue("p", weight=9), node("m", "4"))
    desk.feed(group("large", 1, queue="p", phase="Inqueue"), pod("large-0", "large", cpu="5"))
    desk.feed(group("low", 0, queue="q", phase="Running", priorityClassName="low"))
    desk.feed(*(pod(f"low-{i}", "low", cpu="1", node="m") for i in range(3)))
    asking(desk, "1", "1", queue="q").cycle()
    assert len(desk.world.evictions) == 2
    assert held(desk) == ["asks-0", "asks-1"]


def test_idle_room_in_several_hyper_nodes_is_none_for_a_job_that_must_stay_in_one_be_it_beyond_a_due_or_not():
    desk = asking(lent("gangpreempt, allocate"), "1", "1", queue="q", networkTopology=HARD)
    desk.cycle()
    assert len(desk.world.evictions) == 2
    assert held(desk) == ["asks-0", "asks-1"]
