"""Small worlds of eviction, each made for one rule: whose pods are looked at, who counts with a claimant, what is told and remembered, and how little is looked at for equals."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from builders import Desk, group, metadata, node, pod, priority_class, queue
from pumice.actions.eviction import asking, bundles, exhaustive, gang_rules, judge, offers, rules, takeover, ways
from pumice.actions.eviction.equal_claimants import EqualClaimants
from pumice.actions.eviction.plan import Plan
from pumice.actions.eviction.search import Search
from pumice.framework import shortcuts
from pumice.framework.plugin import Plugin
from pumice.framework.reads import NODE_LOCAL

CONFIG = """
actions: "%s"
tiers:
- plugins: %s
- plugins: [{name: predicates}, {name: nodeorder}%s]
"""
VOTERS = "[{name: priority}, {name: gang, enablePreemptable: false}]"
PREEMPT = CONFIG % ("preempt", VOTERS, "")


def classes():
    return [priority_class("low", 1), priority_class("mid", 5), priority_class("high", 9)]


def wanted(desk, session, name, count, done=lambda: True):
    tasks = [desk.task(f"{name}-{i}") for i in range(count)]
    return asking.Wanted(session.queue_of(tasks[0].job), tasks[0].job, tasks, done)


# -- inside one job --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("minimum", [1, 2])
def test_each_of_two_jobs_takes_from_its_own_pods_for_its_more_important_ones(minimum):
    """Whoever comes counts for the minimum in the place of who goes."""
    desk = Desk(CONFIG % ("preempt", "[{name: priority}]", ", {name: gang}")).feed(*classes())
    for i in range(2):
        desk.feed(node(f"n{i}", "2"), group(f"j{i}", minimum, created=i))
        desk.feed(*(pod(f"j{i}-{n}", f"j{i}", cpu="1", node=f"n{i}", priority=1) for n in range(2)))
        desk.feed(pod(f"j{i}-high", f"j{i}", cpu="1", priority=9))
    desk.cycle()
    assert sorted(desk.world.evictions) == ["j0-1", "j1-1"]


# -- what a plan leaves behind ---------------------------------------------------------------------------------


def rack(*nodes, title="rack"):
    """A hyper-node of some nodes."""
    members = [{"type": "Node", "selector": {"exactMatch": {"name": name}}} for name in nodes]
    made = {"apiVersion": "topology.volcano.sh/v1alpha1", "kind": "HyperNode", "metadata": metadata(title)}
    return {**made, "spec": {"tier": 1, "members": members}}


HARD = {"mode": "hard", "highestTierAllowed": 1}


def test_a_plan_that_finds_no_room_says_nothing_about_it():
    desk = Desk(CONFIG % ("preempt", VOTERS, ", {name: network-topology-aware}")).feed(
        *classes(), node("m", "1"), rack("m")
    )
    desk.feed(group("asks", 2, networkTopology=HARD), *(pod(f"asks-{i}", "asks", cpu="1") for i in range(2)))
    session = desk.session()
    asks = wanted(desk, session, "asks", 2)
    assert not Plan(session, rules.Preempt(session), asks).arrange_anywhere(asks.tasks)
    assert not session.findings.errors(asks.job)


class Later(Plugin):
    """Finds the last nodes the best."""

    name = "later"
    points = frozenset({"NodeOrder"})

    def open(self, session):
        session.score.add(lambda _, nodes: nodes.index * 100.0, reads=NODE_LOCAL)


def test_equal_members_wait_where_pods_leave_if_that_is_better_than_what_is_free_now():
    desk = Desk(CONFIG % ("preempt", VOTERS, ", {name: later}"), Later)
    desk.feed(*classes(), node("m", "2"), node("n", "2"), group("low", 0, phase="Running"))
    desk.feed(pod("leaves", "low", cpu="2", node="n", deleting=5), group("asks", 2))
    desk.feed(*(pod(f"asks-{i}", "asks", cpu="1") for i in range(2)))
    session = desk.session()
    asks = wanted(desk, session, "asks", 2)
    plan = Plan(session, rules.Preempt(session), asks)
    assert plan.arrange_in_order(asks.tasks, lambda: len(plan.members) == 2)
    assert [task.node.name for task in asks.tasks] == ["n", "n"]


# -- bundles ---------------------------------------------------------------------------------------------------


def bundled(desk, asks, count, domain=None, done=lambda: True):
    """Say who goes in the first plan that bundles give."""
    session = desk.session()
    found = wanted(desk, session, asks, count, done)
    asked = gang_rules.GangPreempt(session)
    inside = None if domain is None else next(d for d in session.topology.tree.domains if d.name == domain)
    plan = Plan(session, asked, found, inside)
    return next(
        (sorted(t.name for t in plan.victims) for _ in bundles.Bundles(session, asked).proposals(plan, found)), None
    )


@pytest.mark.parametrize(("capability", "goes"), [("3", ["low-0"]), ("9", None)])
def test_whoever_is_on_a_node_of_no_use_goes_only_for_a_limit_of_the_queue(capability, goes):
    """The claimant fits beside nobody on n0, for which nobody has to go; whoever is on n1 is in the way of the limit alone."""
    desk = Desk(CONFIG % ("gangpreempt", VOTERS, ", {name: capacity}")).feed(*classes())
    desk.feed(node("n0", "2", labels={"is": "n0"}), node("n1", "2"))
    desk.modify(queue("default", capability={"cpu": capability}))
    desk.feed(group("low", 0, phase="Running", priorityClassName="low"), pod("low-0", "low", cpu="2", node="n1"))
    desk.feed(group("asks", 1, phase="Inqueue", priorityClassName="high"))
    desk.feed(pod("asks-0", "asks", cpu="2", nodeSelector={"is": "n0"}))
    assert bundled(desk, "asks", 1) == goes


def test_a_gang_that_is_partly_outside_the_domain_goes_with_all_of_it():
    text = CONFIG % ("gangpreempt", VOTERS, ", {name: network-topology-aware}")
    desk = Desk(text).feed(*classes(), node("n0", "2"), node("n1", "2"), rack("n0"))
    desk.feed(group("low", 2, phase="Running", priorityClassName="low"))
    desk.feed(*(pod(f"low-{i}", "low", cpu="2", node=f"n{i}") for i in range(2)))
    desk.feed(group("asks", 1, phase="Inqueue", priorityClassName="high", networkTopology=HARD))
    desk.feed(pod("asks-0", "asks", cpu="2"))
    assert bundled(desk, "asks", 1, "rack") == ["low-0", "low-1"]


@pytest.mark.parametrize("minimum", [1, 2])
def test_all_that_is_left_of_a_job_goes_whole_and_breaks_it_only_if_that_is_a_gang(minimum):
    desk = Desk(CONFIG % ("gangpreempt", VOTERS, "")).feed(*classes(), node("n", str(minimum)))
    desk.feed(group("low", minimum, phase="Running", priorityClassName="low"))
    desk.feed(*(pod(f"low-{i}", "low", cpu="1", node="n") for i in range(minimum)))
    desk.feed(group("asks", 1, phase="Inqueue", priorityClassName="high"))
    desk.feed(pod("asks-0", "asks", cpu=str(minimum)))
    session = desk.session()
    asks, asked = wanted(desk, session, "asks", 1), gang_rules.GangPreempt(session)
    plan = Plan(session, asked, asks)
    next(bundles.Bundles(session, asked).proposals(plan, asks))
    assert [(unit.whole, unit.breaks) for unit in plan.units] == [(True, minimum > 1)]


# -- hyper-nodes -----------------------------------------------------------------------------------------------


def racks(low, high, **options):
    """Two racks of a node, each full of a pod, and a job that must stay in one of them."""
    text = CONFIG % ("gangpreempt", VOTERS, ", {name: network-topology-aware}")
    desk = Desk(text, **options).feed(*classes())
    for name, rank, room in (("a", high, {"cpu": "1"}), ("b", low, {"cpu": "9", "pods": "1"})):
        desk.feed(node(name, **room), rack(name, title=name), group(rank, 0, phase="Running", priorityClassName=rank))
        desk.feed(pod(f"{rank}-0", rank, cpu="1", node=name))
    desk.feed(group("asks", 1, phase="Inqueue", priorityClassName="high", networkTopology=HARD))
    return desk.feed(pod("asks-0", "asks", cpu="1"))


@pytest.mark.parametrize("sums", [True, False])
def test_of_hyper_nodes_the_one_is_taken_where_a_plan_costs_least_be_it_known_ahead_or_not(sums):
    """In one of them nothing is short but places for pods."""
    desk = racks("low", "mid", taken=msgspec.structs.replace(shortcuts.ALL, domain_sums=sums))
    desk.cycle()
    assert desk.world.evictions == ["low-0"]


# -- what is told ----------------------------------------------------------------------------------------------


def test_of_those_who_were_considered_it_is_told_how_many_were_refused_and_how_many_are_of_no_help():
    desk = Desk(CONFIG % ("preempt", "[{name: gang}]", ", {name: priority}")).feed(*classes(), node("n", "3"))
    desk.feed(group("low", 2, phase="Running", priorityClassName="low"))
    desk.feed(*(pod(f"low-{i}", "low", cpu="1", node="n") for i in range(3)))
    desk.feed(group("asks", 1, phase="Inqueue", priorityClassName="high"), pod("asks-0", "asks", cpu="3"))
    trace = " ".join(map(str, desk.cycle().trace()))
    assert "of 3 pods considered: 2 refused by the rules of gang" in trace
    assert "; 1 offered, but of no help" in trace


# -- taking over -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("minimum", "could"), [(1, True), (2, False)])
def test_what_a_gang_holds_once_all_of_it_is_there_decides_whether_it_may_take_room_over(minimum, could):
    """With all its members it has as large a share as those whom it took from would have, who could take it back."""
    text = CONFIG % ("preempt", "[{name: drf}]", ", {name: gang, enablePreemptable: false}")
    desk = Desk(text).feed(node("m", "20"), group("holds", 3), group("asks", minimum))
    desk.feed(*(pod(f"holds-{i}", "holds", cpu="2", node="m") for i in range(3)))
    desk.feed(*(pod(f"asks-{i}", "asks", cpu="2") for i in range(minimum)))
    session = desk.session()
    held = [desk.task(f"holds-{i}") for i in range(3)]
    assert takeover.could_evict(session, rules.Preempt(session), desk.task("asks-0"), held) is could


# -- plugins that simulate -------------------------------------------------------------------------------------


class Attached(Plugin):
    """Speaks against the going of pods by name."""

    name = "attached"
    points = frozenset({"SimulateRemoveTask", "SimulateAddTask"})

    def open(self, session):
        session.simulate_remove_task.add(lambda _claimant, task, _record: "it stays" if task.name == "low-0" else None)
        session.simulate_add_task.add(lambda _claimant, _task, _record: None)


class Licensed(Plugin):
    """Lets a queue take nobody on who is to wait for room."""

    name = "licensed"
    points = frozenset({"SimulateAllocatable"})

    def open(self, session):
        session.simulate_allocatable.add(lambda _queue, demand: "no licence is left" if demand.waits else None)


@pytest.mark.parametrize(("plugin", "evicted"), [(Attached, ["mid-0"]), (Licensed, [])])
def test_a_plugin_that_simulates_may_speak_against_a_victim_s_going_and_a_member_s_coming(plugin, evicted):
    text = PREEMPT.replace("{name: priority}", f"{{name: priority}}, {{name: {plugin.name}}}")
    text += "configurations:\n- {name: preempt, arguments: {enableTopologyAwarePreemption: true}}\n"
    desk = Desk(text, plugin).feed(*classes(), group("high", 1, phase="Inqueue", priorityClassName="high"))
    for i, rank in enumerate(("low", "mid")):
        desk.feed(node(f"n{i}", "1"), group(f"{rank}", 0, phase="Running", priorityClassName=rank))
        desk.feed(pod(f"{rank}-0", rank, cpu="1", node=f"n{i}"))
    desk.feed(pod("high-0", "high", cpu="1"))
    desk.cycle()
    assert desk.world.evictions == evicted


def test_of_pods_of_which_a_plugin_speaks_against_one_the_other_goes():
    text = PREEMPT.replace("{name: priority}", "{name: priority}, {name: attached}")
    text += "configurations:\n- {name: preempt, arguments: {enableTopologyAwarePreemption: true}}\n"
    desk = Desk(text, Attached).feed(*classes(), node("n", "2"))
    for rank in ("low", "mid"):
        desk.feed(group(rank, 0, phase="Running", priorityClassName=rank), pod(f"{rank}-0", rank, cpu="1", node="n"))
    desk.feed(group("high", 1, phase="Inqueue", priorityClassName="high"), pod("high-0", "high", cpu="1"))
    desk.cycle()
    assert desk.world.evictions == ["mid-0"]


def test_of_pods_of_which_the_claimant_wants_to_be_beside_one_the_other_goes():
    rule = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "x"}}}
    beside = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [rule]}}
    desk = Desk(PREEMPT).feed(*classes(), node("n", "2", labels={"zone": "z"}))
    for rank, labels in (("low", {"app": "x"}), ("mid", {})):
        desk.feed(group(rank, 0, phase="Running", priorityClassName=rank))
        desk.feed(pod(f"{rank}-0", rank, cpu="1", node="n", labels=labels))
    desk.feed(group("high", 1, phase="Inqueue", priorityClassName="high"))
    desk.feed(pod("high-0", "high", cpu="1", affinity=beside))
    desk.cycle()
    assert desk.world.evictions == ["mid-0"]


# -- several members -------------------------------------------------------------------------------------------


def test_where_gangs_are_not_kept_no_more_pods_of_one_go_than_make_room_for_all_members():
    desk = Desk("compatibility: volcano\n" + PREEMPT).feed(*classes(), node("n", "3"))
    desk.feed(group("low", 3, phase="Running", priorityClassName="low"))
    desk.feed(*(pod(f"low-{i}", "low", cpu="1", node="n") for i in range(3)))
    desk.feed(group("high", 2, phase="Inqueue", priorityClassName="high"))
    desk.feed(*(pod(f"high-{i}", "high", cpu="1") for i in range(2)))
    desk.cycle()
    assert desk.world.evictions == ["low-1", "low-2"]


def test_where_not_every_way_is_tried_each_order_of_the_members_begins_with_nobody_placed(monkeypatch):
    """The first takes the only node where the second may go, in their own order and the largest first."""
    monkeypatch.setattr(ways, "MOST", 0)
    desk = Desk(PREEMPT.replace(", {name: nodeorder}", "")).feed(*classes())
    desk.feed(group("low", 0, phase="Running", priorityClassName="low"))
    for i in range(2):
        desk.feed(node(f"n{i}", "1", labels={"is": f"n{i}"}), pod(f"low-{i}", "low", cpu="1", node=f"n{i}"))
    desk.feed(group("high", 2, phase="Inqueue", priorityClassName="high"))
    desk.feed(pod("high-0", "high", cpu="1"), pod("high-1", "high", cpu="1", nodeSelector={"is": "n0"}))
    session = desk.session()
    asks = wanted(desk, session, "high", 2, lambda: session.is_pipelined(desk.task("high-0").job))
    asked = rules.Preempt(session)
    plan = Plan(session, asked, asks)
    assert any(judge.passes(plan, asks.done) for _ in exhaustive.EverySet(asked).proposals(plan, asks))
    assert {member.name: member.node.name for member in plan.members} == {"high-0": "n1", "high-1": "n0"}


@pytest.mark.parametrize(("limit", "found"), [(None, {""}), (HARD, {"rack"})])
def test_a_plan_is_looked_for_inside_the_hyper_nodes_that_a_job_must_stay_in_or_anywhere(limit, found):
    text = CONFIG % ("gangpreempt", VOTERS, ", {name: network-topology-aware}")
    desk = Desk(text).feed(*classes(), node("n0", "2"), node("n1", "2"), rack("n0"))
    topology = {} if limit is None else {"networkTopology": limit}
    desk.feed(group("asks", 1, phase="Inqueue", priorityClassName="high", **topology), pod("asks-0", "asks", cpu="1"))
    session = desk.session()
    domains = Search(session, gang_rules.GangPreempt(session)).domains(desk.task("asks-0").job, None)
    root = session.topology.tree.root
    assert {"" if domain is root else domain.name for domain in domains} == found


# -- what is remembered ----------------------------------------------------------------------------------------


def test_that_nobody_may_go_is_forgotten_when_a_queue_may_give_more():
    text = CONFIG % ("reclaim", "[{name: gang}, {name: conformance}]", ", {name: capacity}")
    desk = Desk(text).feed(node("m", "2"), queue("q"), queue("p", deserved={"cpu": "2"}))
    desk.modify(queue("q", deserved={"cpu": "2"}))
    desk.feed(
        group("old", 0, phase="Running", queue="q"), *(pod(f"old-{i}", "old", cpu="1", node="m") for i in range(2))
    )
    desk.feed(group("asks", 1, phase="Inqueue", queue="p"), pod("asks-0", "asks", cpu="1"))
    for _ in range(2):
        desk.cycle()
        assert desk.world.evictions == []
    desk.modify(queue("q", deserved={"cpu": "1"}))
    desk.cycle()
    assert len(desk.world.evictions) == 1


def test_that_nobody_may_go_is_forgotten_when_dues_become_smaller_with_the_cluster():
    text = CONFIG % ("reclaim", "[{name: gang}, {name: conformance}]", ", {name: proportion, enableReclaimable: false}")
    desk = Desk(text).feed(node("m", "2", labels={"is": "m"}), node("n", "2"), queue("q"), queue("p"))
    desk.feed(
        group("old", 0, phase="Running", queue="q"), *(pod(f"old-{i}", "old", cpu="1", node="m") for i in range(2))
    )
    desk.feed(group("asks", 1, phase="Inqueue", queue="p"), pod("asks-0", "asks", cpu="1", nodeSelector={"is": "m"}))
    for _ in range(2):
        desk.cycle()
        assert desk.world.evictions == []
    desk.modify(node("n", "100m"))
    desk.cycle()
    assert len(desk.world.evictions) == 1


# -- how little is looked at -----------------------------------------------------------------------------------


@pytest.fixture
def looks(monkeypatch):
    """Count how often it is asked on which of all nodes a member costs least."""
    found, cheapest = [], offers.Offers.cheapest

    def counted(self, plan, member):
        found.append(member.name)
        return cheapest(self, plan, member)

    monkeypatch.setattr(offers.Offers, "cheapest", counted)
    return found


def full(nodes, each):
    desk = Desk(PREEMPT).feed(*classes(), *(node(f"n{i:02}", str(each), "64Gi") for i in range(nodes)))
    desk.feed(group("low", 0, phase="Running", priorityClassName="low"))
    return desk.feed(*(pod(f"low-{i}", "low", cpu="1", node=f"n{i // each:02}") for i in range(nodes * each)))


def test_for_claimants_like_the_one_before_nodes_are_not_looked_at_again(looks):
    desk = full(12, 1)
    for i in range(8):
        desk.feed(
            group(f"j{i}", 1, phase="Inqueue", priorityClassName="high", created=i), pod(f"j{i}-0", f"j{i}", cpu="1")
        )
    desk.cycle()
    assert len(desk.world.evictions) == 8
    assert len(looks) <= 2


@pytest.fixture
def alike(monkeypatch):
    """Note for which pods a plan was made like the one before it."""
    found, place = [], EqualClaimants.place

    def noted(self, plan, tasks, done):
        placed = place(self, plan, tasks, done)
        found.extend([tasks[0].name] if placed else [])
        return placed

    monkeypatch.setattr(EqualClaimants, "place", noted)
    return found


def test_a_claimant_of_one_pod_is_served_like_an_equal_one_before_it(alike):
    desk = full(12, 1)
    for i, cpu in enumerate(("1", "1", "500m", "1", "1")):
        desk.feed(group(f"j{i}", 1, phase="Inqueue", priorityClassName="high", created=i))
        desk.feed(pod(f"j{i}-0", f"j{i}", cpu=cpu))
    desk.cycle()
    assert len(desk.world.evictions) == 5
    assert alike == ["j1-0", "j4-0"]


def test_whoever_finds_room_that_the_one_before_left_has_nobody_go(alike):
    desk = Desk(PREEMPT).feed(*classes(), *(node(f"n{i:02}", "2") for i in range(12)))
    desk.feed(group("low", 0, phase="Running", priorityClassName="low"))
    desk.feed(*(pod(f"low-{i:02}", "low", cpu="2", node=f"n{i:02}") for i in range(12)))
    for i in range(6):
        desk.feed(group(f"j{i}", 1, phase="Inqueue", priorityClassName="high", created=i))
        desk.feed(pod(f"j{i}-0", f"j{i}", cpu="1"))
    desk.cycle()
    assert (len(desk.world.evictions), alike) == (3, [])


def test_preempt_leaves_jobs_that_are_bound_to_hyper_nodes_to_the_gang_forms():
    desk = full(2, 1).feed(
        rack("n01"), group("high", 1, phase="Inqueue", priorityClassName="high", networkTopology=HARD)
    )
    desk.feed(pod("high-0", "high", cpu="1")).cycle()
    assert desk.world.evictions == []


class Choosy(Plugin):
    """Refuses a pod, and lets another one find the last nodes the best."""

    name = "choosy"
    points = frozenset({"PrePredicate", "NodeOrder"})

    def open(self, session):
        session.pre_predicate.add(lambda subject: "not that one" if subject.task.name == "j3-0" else None)
        session.score.add(self.points_of, reads=NODE_LOCAL, apart=self.backwards)

    def points_of(self, subject, nodes):
        return nodes.index * 100.0 if self.backwards(subject) else np.zeros(len(nodes))

    def backwards(self, subject):
        return subject.task.name == "j4-0" or None


def test_of_a_claimant_like_others_before_it_plugins_may_say_that_it_goes_nowhere_or_elsewhere():
    desk = Desk(PREEMPT.replace("{name: priority}", "{name: priority}, {name: choosy}"), Choosy)
    desk.feed(*classes(), *(node(f"n{i:02}", "1") for i in range(12)))
    desk.feed(group("low", 0, phase="Running", priorityClassName="low"))
    desk.feed(*(pod(f"low-{i:02}", "low", cpu="1", node=f"n{i:02}") for i in range(12)))
    for i in range(6):
        desk.feed(group(f"j{i}", 1, phase="Inqueue", priorityClassName="high", created=i))
        desk.feed(pod(f"j{i}-0", f"j{i}", cpu="1"))
    desk.cycle()
    assert sorted(desk.world.evictions) == ["low-00", "low-01", "low-02", "low-03", "low-11"]


def test_a_claimant_of_several_pods_looks_for_room_first_for_each_of_them():
    """The second one is as small as what is left."""
    desk = full(11, 1).feed(node("small", "500m"), group("j0", 1, phase="Inqueue", priorityClassName="high"))
    desk.feed(group("j1", 1, phase="Inqueue", priorityClassName="high", created=1), pod("j0-0", "j0", cpu="1"))
    desk.feed(pod("j1-0", "j1", cpu="1", created=1), pod("j1-1", "j1", cpu="500m", created=2))
    desk.cycle()
    assert len(desk.world.evictions) == 1
