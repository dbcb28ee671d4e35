"""Who counts in eviction: what plugins read, who is like whom, what a job can spare, whose turn it is among members, and what is said of victims."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from builders import Desk, group, node, pod, priority_class, queue
from pumice.actions.eviction import (
    asking,
    bundles,
    equal_rivals,
    gang_rules,
    plan,
    ranking,
    rules,
    telling,
    units,
    votes,
)
from pumice.framework.plugin import Plugin
from pumice.model.resources import PODS

CONFIG = """
actions: "%s"
tiers:
- plugins: %s
- plugins: %s
"""
FIT = "[{name: predicates}, {name: nodeorder}]"
PREEMPT = CONFIG % ("preempt", "[{name: priority}, {name: gang}, {name: conformance}]", FIT)


def classes():
    return [priority_class("low", 1), priority_class("high", 9)]


# -- rules -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("plugins", "numbers", "amounts", "gone"),
    [("{name: priority}, {name: gang}", True, False, False), ("{name: priority}, {name: drf}", False, True, True)],
)
def test_votes_know_what_any_of_them_reads(plugins, numbers, amounts, gone):
    facts = rules.Preempt(Desk(CONFIG % ("preempt", f"[{plugins}]", FIT)).session()).facts
    assert (facts.votes_go_by_numbers, facts.votes_go_by_priority) == (numbers, numbers)
    assert (facts.votes_know_amounts, facts.votes_count_who_goes, facts.votes_know_jobs) == (amounts, gone, False)


def test_pods_and_what_nobody_offers_are_no_loss():
    desk = Desk(PREEMPT).feed(node("m", "4", "8Gi", example__card="1"))
    desk.session()
    desk.modify(node("m", "4", "8Gi"))
    losses = ranking.losses(desk.session())
    offered = [column for column in range(desk.cluster.nodes.allocatable.shape[1]) if column in losses.totals]
    assert len(offered) == 2
    assert [losses.share(column, 7) for column in (PODS, 99)] == [0, 0]
    assert all(losses.share(column, losses.totals[column]) == losses.denominator for column in offered)


@pytest.mark.parametrize(("first", "decides"), [("[{name: gang}]", 1), ("[{name: conformance}, {name: pdb}]", 0)])
def test_where_the_first_tier_gives_nobody_on_a_node_the_second_decides_there(first, decides):
    desk = Desk(CONFIG % ("preempt", first, "[{name: priority}, {name: predicates}]")).feed(*classes(), node("m", "2"))
    desk.feed(group("low", 2, phase="Running", priorityClassName="low"), group("high", 1, priorityClassName="high"))
    desk.feed(*(pod(f"low-{i}", "low", cpu="1", node="m") for i in range(2)), pod("high-0", "high", cpu="1"))
    session = desk.session()
    asked, row = rules.Preempt(session), desk.node("m").row
    candidates = [desk.task(f"low-{i}") for i in range(2)]
    assert votes.Votes(asked, None).tier(desk.task("high-0"), row, candidates, begun=False) == decides


class Alone(Plugin):
    """Gives whoever is asked about alone, and of several nobody."""

    name = "alone"
    points = frozenset({"Preemptable"})

    def open(self, session):
        session.preemptable.add(lambda _claimant, tasks: list(tasks) if len(tasks) == 1 else [])


@pytest.mark.parametrize(("count", "decides"), [(1, 0), (2, -1)])
def test_the_only_tier_decides_about_a_node_if_it_gives_any_of_all_who_are_there(count, decides):
    text = CONFIG % ("preempt", "[{name: alone}]", "[{name: predicates}]")
    desk = Desk(text, Alone).feed(*classes(), node("m", str(count)), group("low", 0, priorityClassName="low"))
    desk.feed(*(pod(f"low-{i}", "low", cpu="1", node="m") for i in range(count)))
    desk.feed(group("high", 1, priorityClassName="high"), pod("high-0", "high", cpu="1"))
    session = desk.session()
    asked, row = rules.Preempt(session), desk.node("m").row
    candidates = [desk.task(f"low-{i}") for i in range(count)]
    assert votes.Votes(asked, None).tier(desk.task("high-0"), row, candidates, begun=False) == decides


class Unwilling(Plugin):
    """Gives nobody away to the gang forms."""

    name = "unwilling"
    points = frozenset({"UnifiedEvictable"})

    def open(self, session):
        session.unified_evictable.add(lambda _context, _tasks: [])


@pytest.mark.parametrize(("first", "decides"), [("unwilling", 1), ("priority", 0)])
def test_where_the_first_tier_gives_nobody_of_a_domain_the_second_decides_there(first, decides):
    text = CONFIG % ("gangpreempt", f"[{{name: {first}}}]", "[{name: gang}, {name: conformance}, {name: predicates}]")
    desk = Desk(text, Unwilling).feed(*classes(), node("m", "2"), group("low", 0, priorityClassName="low"))
    desk.feed(*(pod(f"low-{i}", "low", cpu="1", node="m") for i in range(2)))
    desk.feed(group("high", 1, priorityClassName="high"), pod("high-0", "high", cpu="1"))
    asked = gang_rules.GangPreempt(desk.session())
    candidates = [desk.task(f"low-{i}") for i in range(2)]
    found = votes.Votes(asked, None).tier(desk.task("high-0"), votes.DOMAIN, candidates, begun=False)
    assert found == decides


@pytest.mark.parametrize(
    ("roles", "policies", "victims", "spared"),
    [
        (None, None, 4, 2),
        (True, None, 4, 2),
        (False, None, 4, 0),
        (None, True, 4, 2),
        (None, False, 4, 0),
    ],
)
def test_a_job_can_spare_what_leaves_its_number_its_roles_and_its_sub_groups_complete(roles, policies, victims, spared):
    job = SimpleNamespace(
        surplus=2,
        min_member=2,
        roles_enforced=roles is not None,
        policies=[] if policies is None else ["policy"],
        roles_reach=lambda *, pipelined, without: roles is not False or not without,
        sub_jobs_reach=lambda *, pipelined, without: policies is not False or not without,
    )
    assert units.spared(job, list(range(victims))) == list(range(spared))


def test_of_roles_those_are_spared_that_are_not_needed():
    job = SimpleNamespace(
        surplus=2,
        min_member=1,
        roles_enforced=True,
        policies=[],
        roles_reach=lambda *, pipelined, without: "driver" not in without,
        sub_jobs_reach=lambda *, pipelined, without: True,
    )
    assert units.spared(job, ["driver", "a", "b", "c"]) == ["a", "b"]


# -- whose members come first ----------------------------------------------------------------------------------


def test_members_of_one_sub_group_come_together_in_the_order_of_sub_groups():
    desk = Desk(PREEMPT).feed(*classes(), node("m", "1"))
    policy = {"name": "s", "subGroupSize": 2, "minSubGroups": 1, "matchLabelKeys": ["part"]}
    desk.feed(group("g", 2, subGroupPolicy=[policy]))
    for i, part in enumerate("abab"):
        desk.feed(pod(f"g-{i}", "g", cpu="1", labels={"part": part}))
    session = desk.session()
    job = desk.task("g-0").job
    assert len(job.sub_jobs) == 2
    found = asking.claimants(session, job)
    parts = [task.pod.metadata.labels["part"] for task in found]
    ranked = [sub.key for sub in session.sub_job_order.sort(job.sub_jobs.values())]
    assert parts in (list("aabb"), list("bbaa"))
    assert [found[0].sub_job.key, found[-1].sub_job.key] == ranked


@pytest.mark.parametrize(
    ("minimum", "more", "lacking"),
    [
        (3, {}, 3),
        (4, {}, 4),
        (9, {}, 4),
        (0, {}, 4),  # one that lacks nobody asks for all, one after the other
        (2, {"minTaskMember": {"m": 1}}, 4),
    ],
)
def test_so_many_members_are_lacking_as_the_minimum_says_or_all_where_numbers_do_not_tell(minimum, more, lacking):
    desk = Desk(PREEMPT).feed(*classes(), node("m", "9"), group("g", minimum, **more))
    desk.feed(*(pod(f"g-{i}", "g", cpu="1", role="m") for i in range(4)))
    session = desk.session()
    job = desk.task("g-0").job
    found = asking.claimants(session, job)
    assert asking.members_lacking(job, found) == found[:lacking]


@pytest.mark.parametrize(("minimum", "lacking"), [(3, 1), (4, 2), (2, 4), (1, 4)])
def test_members_that_are_there_are_not_lacking(minimum, lacking):
    desk = Desk(PREEMPT).feed(*classes(), node("m", "9"), group("g", minimum))
    desk.feed(*(pod(f"g-{i}", "g", cpu="1") for i in range(4)), *(pod(f"h-{i}", "g", node="m") for i in range(2)))
    session = desk.session()
    job = desk.task("g-0").job
    found = asking.claimants(session, job)
    assert asking.members_lacking(job, found) == found[:lacking]


@pytest.mark.parametrize(("kinds", "asked"), [(asking.FEW, True), (asking.FEW + 1, False)])
def test_of_few_kinds_of_members_it_is_asked_whether_anybody_is_offered(kinds, asked):
    """Where gang keeps everybody, nobody is; of many kinds that is left to the search."""
    only_gang = CONFIG % ("preempt", "[{name: gang}]", FIT)
    desk = Desk(only_gang).feed(*classes(), node("m", "2"), group("low", 2, phase="Running", priorityClassName="low"))
    desk.feed(*(pod(f"low-{i}", "low", cpu="1", node="m") for i in range(2)))
    desk.feed(group("g", kinds, priorityClassName="high"))
    desk.feed(*(pod(f"g-{i}", "g", cpu=f"{i + 1}") for i in range(kinds)))
    session = desk.session()
    sources, claimant = [desk.task("low-0").job], desk.task("g-0")
    assert asking.is_anybody_offered(rules.Preempt(session), claimant, sources, ask=True) is not asked
    assert asking.is_anybody_offered(rules.Preempt(session), claimant, sources, ask=False)


# -- who is like a claimant ------------------------------------------------------------------------------------


class Rivals:
    """A gang of two whose members wait for room, and another that could be like it."""

    def __init__(self, **other):
        size, minimum = other.pop("size", 2), other.pop("minimum", 2)
        placed, rank = other.pop("placed", 0), other.pop("rank", "high")
        self.desk = Desk(PREEMPT).feed(*classes(), node("m", "64"), queue("q"), queue("p"))
        self.desk.feed(group("own", 2, queue="q", priorityClassName="high"))
        self.desk.feed(*(pod(f"own-{i}", "own", cpu="1") for i in range(2)))
        where = other.pop("queue", "q")
        self.desk.feed(group("other", minimum, queue=where, priorityClassName=rank))
        for i in range(size):
            self.desk.feed(pod(f"other-{i}", "other", cpu="1", node="m" if i < placed else "", **other))
        session = self.desk.session()
        self.own, self.other = (self.desk.task(f"{name}-0").job for name in ("own", "other"))
        members = [self.desk.task(f"own-{i}") for i in range(2)]
        wanted = asking.Wanted(session.queue_of(self.own), self.own, members, lambda: True)
        self.rules = rules.Preempt(session)
        self.plan = plan.Plan(session, self.rules, wanted)
        for member in members:
            assert self.plan.settle(member, 0)

    def are_one(self):
        return equal_rivals.is_one(self.rules, self.plan, self.other)


@pytest.mark.parametrize(
    ("other", "alike"),
    [
        ({}, True),
        ({"size": 3}, True),  # it lacks as many
        ({"size": 1}, False),
        ({"minimum": 1}, False),
        ({"minimum": 3, "size": 3}, False),
        ({"size": 3, "placed": 1}, False),
        ({"rank": "low"}, False),
        ({"queue": "p"}, False),
        ({"nodeSelector": {"a": "b"}}, False),
        ({"schedulingGates": [{"name": "g"}]}, False),
        ({"preemptionPolicy": "Never"}, False),
        ({"annotations": {"volcano.sh/preemptable": "false"}}, False),
    ],
)
def test_a_job_is_like_a_claimant_if_it_lacks_as_many_equal_members_that_may_ask_and_may_go(other, alike):
    assert Rivals(**other).are_one() is alike


def test_a_job_of_which_one_waits_for_room_is_not_like_one_of_which_both_do():
    rivals = Rivals()
    statement = rivals.plan.session.statement()
    statement.pipeline([rivals.desk.task("other-0")], [rivals.desk.node("m")])
    assert not rivals.are_one()


def test_a_plan_for_fewer_members_than_wait_is_not_like_anybody_s():
    rivals = Rivals()
    rivals.plan.members.pop()
    assert not rivals.are_one()


# -- what is said ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("count", "more"), [(telling.NAMED - 1, ""), (telling.NAMED, ""), (telling.NAMED + 1, " and 1 more")]
)
def test_so_many_victims_are_named_and_others_counted(count, more):
    desk = Desk(PREEMPT).feed(*classes(), node("m", str(count)), group("low", 0, priorityClassName="low"))
    desk.feed(*(pod(f"low-{i}", "low", cpu="1", node="m") for i in range(count)))
    desk.feed(group("high", 1, priorityClassName="high"), pod("high-0", "high", cpu=str(count)))
    trace = " ".join(desk.cycle().trace())
    assert len(desk.world.evictions) == count
    assert f"{count} pods are evicted for 1 members: " in trace
    assert f"{more}; plan 1 by" in trace
    assert trace.count("a/low-") >= min(count, telling.NAMED)
    assert (" more" in trace) == bool(more)


def test_each_search_for_victims_is_counted(monkeypatch):
    desk = Desk(PREEMPT).feed(*classes(), node("m", "1"), group("low", 0, priorityClassName="low"))
    desk.feed(pod("low-0", "low", cpu="1", node="m"))
    desk.feed(group("high", 1, priorityClassName="high"), pod("high-0", "high", cpu="1"))
    found = []
    monkeypatch.setattr(type(desk.session().observer), "sought", lambda _, action: found.append(action))
    desk.cycle()
    assert found == ["preempt"]


@pytest.mark.parametrize(("need", "gone"), [(1, 1), (2, 2), (3, 4), (4, 4), (5, 7), (7, 7)])
def test_of_bundles_as_many_go_as_are_enough_which_is_tried_each_time_that_twice_as_many_have_gone(need, gone):
    desk = Desk(PREEMPT.replace("preempt", "gangpreempt")).feed(
        *classes(), node("m", "7"), group("low", 0, priorityClassName="low")
    )
    desk.feed(*(pod(f"low-{i}", "low", cpu="1", node="m") for i in range(7)))
    desk.feed(group("high", 1, priorityClassName="high"), pod("high-0", "high", cpu=str(need)))
    session, asks = desk.session(), desk.task("high-0")
    asked = gang_rules.GangPreempt(session)
    wanted = asking.Wanted(session.queue_of(asks.job), asks.job, [asks], lambda: session.is_pipelined(asks.job))
    made = plan.Plan(session, asked, wanted)
    next(bundles.Bundles(session, asked).proposals(made, wanted))
    assert len(made.units) == gone
