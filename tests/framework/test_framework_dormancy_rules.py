"""Who lies dormant and who does not, what wakes them, and what they are told meanwhile: by table, one rule at a time."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from builders import SECOND, Desk, group, node, pod, priority_class, queue
from pumice.cache.effects import Bind
from pumice.framework import dormancy
from pumice.framework.plugin import Plugin
from pumice.framework.points import Reads

PLAIN = """
actions: "enqueue, allocate, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}]
- plugins: [{name: drf}, {name: predicates}, {name: nodeorder}]
"""
ALONE = """
actions: "enqueue, allocate, backfill"
tiers:
- plugins: [{name: gang}]
"""
SHARED = PLAIN.replace("{name: drf}", "{name: overcommit}, {name: drf}, {name: proportion}")


def dormant(made):
    """Name who would be left out of the next cycle, if nothing happened."""
    return set(made.scheduler.engine.lasting["dormancy"].noted)


def waiting(count=3, text=PLAIN, *classes, cpu="9", **fields):
    """A scheduler of two nodes and so many jobs that ask for more than either has, all of which lie dormant."""
    made = Desk(text, *classes).feed(node("n0", "4"), node("n1", "4"))
    for i in range(count):
        made.feed(group(f"g{i}", 1, phase="Inqueue", **fields), pod(f"g{i}-0", f"g{i}", cpu=cpu))
    made.cycle()
    return made


def tried(made, number=0):
    """Run a cycle in which somebody else comes; name the jobs that were tried in it."""
    made.feed(group(f"new{number}", 1, phase="Inqueue"), pod(f"new{number}-0", f"new{number}", cpu="10m"))
    made.cycle()
    return {verdict.job for verdict in made.cache.record.latest if not verdict.job.startswith("a/new")}


def awake_in(made, **how):
    """Name who would be looked at in a cycle that began now."""
    made.apply()
    session = made.scheduler.engine.open(made.cache.record, made.cache, number=9, now=made.now, **how)
    found = set(session.awake)
    session.rollback()
    return found


# ---- who lies dormant

CLAIM = {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "none"}}]}
DEVICE = {"resourceClaims": [{"name": "d", "resourceClaimName": "none"}]}
GATED = {"schedulingGates": [{"name": "example.com/wait"}]}
WHO = [
    ("all are alike and needed", 2, [{"cpu": "9"}, {"cpu": "9"}], True),
    ("one alone", 1, [{"cpu": "9"}], True),
    ("they are not alike", 2, [{"cpu": "9"}, {"cpu": "8"}], False),
    ("there is one more than is needed", 1, [{"cpu": "9"}, {"cpu": "9"}], False),
    ("one has a node", 2, [{"cpu": "9"}, {"cpu": "1", "node": "n0"}], False),
    ("a volume may be bound", 1, [{"cpu": "9", **CLAIM}], False),
    ("a device may come", 1, [{"cpu": "9", **DEVICE}], False),
    ("one is not looked at", 2, [{"cpu": "9"}, {"cpu": "9", **GATED}], False),
    ("a node would take it, if others left", 1, [{"cpu": "3"}], False),
]


@pytest.mark.parametrize(("minimum", "pods", "lies"), [row[1:] for row in WHO], ids=[row[0] for row in WHO])
def test_who_lies_dormant_asks_for_too_much_with_all_its_pods_alike_and_nothing_else_in_the_way(minimum, pods, lies):
    made = Desk(PLAIN).feed(node("n0", "4"), group("g", minimum, phase="Inqueue"))
    made.feed(*(pod(f"g-{i}", "g", **each) for i, each in enumerate(pods)))
    made.cycle()
    assert (dormant(made) == {"a/g"}) is lies


def test_who_was_refused_a_bind_does_not_lie_dormant():
    """A node may take it yet as soon as it may try again."""
    made = Desk(PLAIN).feed(node("n0", "4"), group("g", 1, phase="Inqueue"), pod("g-0", "g", cpu="3"))
    made.cycle()
    made.settle(made.world.of(Bind)[-1], "refused").feed(pod("foreign", cpu="3", node="n0", scheduler="else"))
    made.cycle(60)
    made.feed(group("new", 1))
    made.cycle()
    assert dormant(made) == set()


ACTIONS = [
    ("allocate", True),
    ("enqueue, allocate, backfill", True),
    ("allocate, preempt, backfill", True),
    ("preempt, allocate", False),
    ("allocate, backfill, allocate", False),
    ("allocate, shuffle", False),
    ("allocate, shuffle, backfill", False),
    ("enqueue, allocate, backfill, shuffle", False),
    ("shuffle, allocate", False),
]


@pytest.mark.parametrize(("actions", "left_out"), ACTIONS)
def test_nobody_is_left_out_where_allocate_runs_again_or_somebody_makes_room_before_it(actions, left_out):
    made = waiting(2, PLAIN.replace("enqueue, allocate, backfill", actions))
    assert awake_in(made) == (set() if left_out else {"a/g0", "a/g1"})


class Knowing(Plugin):
    """Lets everybody go on, by what it knows of each."""

    name = "knowing"
    points = frozenset({"PrePredicate", "JobValid", "Allocatable"})
    asked = ""

    def open(self, session):
        point = {
            "a pod": session.pre_predicate,
            "a job": session.job_valid,
            "a queue": session.allocatable,
        }[self.asked]
        point.add(lambda *_: None, reads=self.known)


KNOWN = [
    ("a pod", Reads(0), True),
    ("a pod", Reads.NODE, True),
    ("a pod", Reads.JOB, False),
    ("a pod", Reads.TIME, False),
    ("a job", Reads.QUEUE, True),
    ("a job", Reads.TIME, False),
    ("a queue", Reads.QUEUE, True),
    ("a queue", Reads.JOB, False),
]


@pytest.mark.parametrize(("asked", "known", "left_out"), KNOWN)
def test_nobody_is_left_out_where_it_takes_more_than_nodes_and_queues_to_say_who_may_go(asked, known, left_out):
    how = type("Knowing", (Knowing,), {"asked": asked, "known": known})
    made = waiting(2, PLAIN.replace("{name: gang}", "{name: gang}, {name: knowing}"), how)
    assert awake_in(made) == (set() if left_out else {"a/g0", "a/g1"})


# ---- what wakes them

ALL = {"a/g0", "a/g1", "a/g2"}
WAKES = [
    ("nothing", [], set()),
    ("one asks for something else", [pod("g1-0", "g1", cpu="8")], {"a/g1"}),
    ("its group says something else", [group("g1", 1, phase="Inqueue", minResources={"cpu": "1"})], {"a/g1"}),
    ("its queue has another weight", [queue("default", weight=2)], ALL),
    ("another queue comes", [queue("other")], ALL),
    ("a priority class comes", [priority_class("high", 5)], ALL),
    ("a node comes", [node("n2", "4")], ALL),
    ("a node has another label", [node("n1", "4", labels={"a": "b"})], ALL),
    ("a pod of others takes room", [pod("else", cpu="1", node="n0", scheduler="else")], set()),
    ("its queue is closed", [queue("default", state="Closed")], ALL),
]


@pytest.mark.parametrize(("changes", "woken"), [row[1:] for row in WAKES], ids=[row[0] for row in WAKES])
def test_who_lies_dormant_is_tried_again_where_what_kept_it_may_be_otherwise(changes, woken):
    made = waiting()
    assert dormant(made) == ALL
    made.modify(*changes)
    assert awake_in(made) == woken


def test_all_are_tried_where_it_is_not_known_any_more_which_groups_have_changed(monkeypatch):
    made = waiting()
    log = made.cluster.group_changes
    known = {name: getattr(log, name) for name in dir(log) if not name.startswith("_")}
    assert awake_in(made) == set()
    monkeypatch.setattr(made.cluster, "group_changes", SimpleNamespace(**{**known, "since": lambda _: None}))
    assert awake_in(made) == ALL


def test_who_waited_for_room_on_a_node_that_could_have_it_is_served_when_others_leave():
    made = Desk(PLAIN).feed(node("n0", "4"), pod("else", cpu="2", node="n0", scheduler="else"))
    made.feed(group("g", 2, phase="Inqueue"), *(pod(f"g-{i}", "g", cpu="3", memory="9Gi") for i in range(2)))
    made.feed(group("h", 1, phase="Inqueue"), pod("h-0", "h", cpu="3"))
    made.cycle()
    assert dormant(made) == {"a/g", "a/h"}
    made.delete(pod("else", cpu="2", node="n0", scheduler="else"))
    made.cycle()
    assert made.world.binds == {"h-0": "n0"}


def test_who_has_made_room_that_it_cannot_use_yet_is_looked_at_and_others_are_not():
    """It is told whose going it waits for."""
    made = Desk(PLAIN.replace("allocate, backfill", "allocate, preempt, backfill"))
    made.feed(node("n0", "4"), priority_class("low", 1), priority_class("high", 9))
    made.feed(group("old", 0, phase="Running", priorityClassName="low"), pod("old-0", "old", cpu="3", node="n0"))
    for name, cpu in (("g", "3"), ("h", "9")):
        made.feed(group(name, 1, phase="Inqueue", priorityClassName="high"), pod(f"{name}-0", name, cpu=cpu))
    made.cycle()
    assert (made.world.evictions, dormant(made)) == (["old-0"], {"a/g", "a/h"})
    made.feed(pod("else", cpu="1500m", node="n0", scheduler="else")).apply()
    assert awake_in(made, reserved=made.scheduler.reservations) == {"a/g"}


def test_who_lies_dormant_is_tried_where_its_queue_was_made_anew():
    made = waiting()
    made.delete(queue("default")).apply()
    assert awake_in(made.feed(queue("default"))) == ALL


class Strict(Plugin):
    """Gives some queues nothing more."""

    name = "strict"
    points = frozenset({"Overused"})
    full = ""

    def open(self, session):
        session.overused.add(lambda queue: "enough" if queue.name == self.full else None)


def test_who_lies_dormant_is_tried_where_its_queue_gets_nothing_more():
    how = type("Strict", (Strict,), {})
    made = Desk(PLAIN.replace("{name: gang}", "{name: gang}, {name: strict}"), how).feed(queue("q"), queue("r"))
    made.feed(node("n0", "4"), group("g", 1, queue="q", phase="Inqueue"), pod("g-0", "g", cpu="9"))
    made.feed(group("h", 1, queue="r", phase="Inqueue"), pod("h-0", "h", cpu="9"))
    made.cycle()
    assert awake_in(made) == set()
    how.full = "q"
    assert awake_in(made) == {"a/g"}


# ---- what they are told


def told_of(made, key):
    """Say by pod why a job waits, in the words of now, to whoever looks at it though it is left out."""
    session, job = made.session(), made.cluster.jobs[key]
    session.findings.attempt(job)
    found = {uid: str(failure) for uid, failure in session.findings.errors(job).items()}
    session.rollback()
    return found


def test_who_lies_dormant_for_its_queue_is_told_what_that_holds_now():
    made = Desk(SHARED).feed(node("n0", "9"), queue("q", capability={"cpu": "4"}))
    made.feed(group("g", 1, queue="q", phase="Inqueue"), pod("g-0", "g", cpu="5"))
    made.cycle()
    (before,) = told_of(made, "a/g").values()
    made.feed(group("h", 1, queue="q", phase="Inqueue"), pod("h-0", "h", cpu="3"))
    made.cycle()
    assert "a/g" in dormant(made)
    assert "a/g" not in awake_in(made)
    (after,) = told_of(made, "a/g").values()
    assert ("3" in after, before != after) == (True, True)


def test_pods_of_a_gang_that_lies_dormant_are_told_of_in_the_order_in_which_they_would_be_tried():
    made = Desk(PLAIN).feed(node("n0", "4"), priority_class("high", 5), group("g", 2, phase="Inqueue"))
    made.feed(pod("g-0", "g", cpu="9"), pod("g-1", "g", cpu="9", priority=5, priorityClassName="high"))
    made.cycle()
    assert dormant(made) == {"a/g"}
    assert next(iter(told_of(made, "a/g"))) == made.task("g-1").uid


def test_the_next_who_are_told_other_numbers_are_told_a_second_later(monkeypatch):
    monkeypatch.setattr(dormancy, "TOLD_AT_ONCE", 1)
    made = Desk(PLAIN).feed(node("n0", "4"), node("n1", "4"))
    for i in range(3):
        made.feed(group(f"g{i}", 1, phase="Inqueue"), pod(f"g{i}-0", f"g{i}", cpu="4", memory="20Gi"))
    made.cycle()
    made.feed(group("small", 1, phase="Inqueue"), pod("small-0", "small", cpu="1", memory="7Gi")).cycle()
    for left in (2, 1, 0):
        now = made.now
        made.cycle()
        assert made.scheduler.wake == (now + dormancy.PAUSE if left else None)


def test_numbers_are_written_anew_once_a_minute_and_only_if_they_are_others():
    made = waiting(2)
    made.cache.record.figures = {}
    found, minute = [], 60 * SECOND
    for place, seconds in enumerate((0, 61, 1, 59, 61)):
        made.now += seconds * SECOND
        if place in (1, 2):
            made.feed(pod(f"else-{place}", cpu="1", node="n0", scheduler="else"))
        session = made.session()
        found.append(sorted(job.key for job in session.findings.figures))
        if place == 2:
            assert session.wake == made.now - SECOND + minute
        session.rollback()
    both = ["a/g0", "a/g1"]
    assert found == [[], both, [], both, []]


# ---- those who wait for a time that is promised to them


class Prophet(Plugin):
    """Promises times to those of whom it is told to, as a plan that stands from cycle to cycle."""

    name = "prophet"
    points = frozenset({"JobDelay"})
    reads = Reads.COLUMNS
    delayed, awaited, woke, holds, heard = set(), set(), [], True, []

    def open(self, session):
        session.job_delay.add(lambda job: "not yet" if job.key in self.delayed else None)
        session.announced.standing_plans[self.name] = self

    def begin(self):
        pass

    def woken(self, delayed):
        self.heard.append(set(delayed))
        return [key for key in self.woke if key in delayed]

    def stands(self, dormant):
        del dormant
        return self.holds

    def awaits(self, job):
        return job in self.awaited


def promising(count=4, text=ALONE, **said):
    """So many jobs for which there is room, but which would delay others."""
    keys = [f"a/g{i}" for i in range(count)]
    how = type("Prophet", (Prophet,), {"delayed": set(keys), "heard": [], **said})
    made = Desk(text.replace("{name: gang}", "{name: gang}, {name: prophet}"), how).feed(node("n0", "64"))
    for i in range(count):
        made.feed(group(f"g{i}", 1, phase="Inqueue"), pod(f"g{i}-0", f"g{i}", cpu="1"))
    made.cycle()
    return made, how


def test_who_would_delay_others_lies_dormant_until_the_plan_wakes_it():
    made, how = promising()
    assert tried(made, 1) == set()
    how.woke = ["a/g2"]
    assert tried(made, 2) == {"a/g2"}
    assert dormant(made) == {f"a/g{i}" for i in range(4)}
    how.delayed = set()
    assert tried(made, 3) == {"a/g2"}
    assert made.world.binds["g2-0"] == "n0"


def test_all_are_tried_where_the_plan_stands_no_longer():
    made, how = promising()
    how.holds = False
    assert tried(made, 1) == {f"a/g{i}" for i in range(4)}
    how.holds = True
    assert tried(made, 2) == set()


def test_a_plan_hears_only_of_those_who_still_lie_dormant():
    made, how = promising()
    made.delete(pod("g1-0", "g1"), group("g1"))
    made.feed(pod("g2-0", "g2", cpu="2"), event="MODIFIED")
    tried(made, 1)
    assert how.heard[-1] == {"a/g0", "a/g3"}


@pytest.mark.parametrize(("awaited", "count"), [(set(), 4), ({"a/g0", "a/g1", "a/g2", "a/g3"}, dormancy.TOLD_ANEW)])
def test_of_those_who_have_a_time_a_few_in_each_cycle_are_told_what_else_keeps_them(awaited, count):
    made, how = promising(awaited=awaited)
    how.woke = [f"a/g{i}" for i in range(4)]
    assert len(tried(made, 1)) == count
    assert len(tried(made, 2)) == count


def test_who_would_delay_others_is_tried_in_every_cycle_where_its_queue_has_a_say():
    made, _ = promising(text=ALONE.replace("{name: gang}", "{name: gang}, {name: proportion}"))
    assert len(tried(made, 1)) == 4
