"""Who asks for more than any node will have is left out of cycles while nothing about it changes, and nobody can tell from what is decided and written."""

from __future__ import annotations

import random

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders import Desk, group, node, pod, priority_class, queue
from drawing import drawn
from pumice.framework import dormancy, shortcuts, waking
from pumice.framework.plugin import Plugin
from pumice.framework.points import Reads

SHARED = """
actions: "enqueue, allocate, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}]
- plugins: [{name: overcommit}, {name: drf}, {name: predicates}, {name: proportion}, {name: nodeorder}]
"""
TREE = SHARED.replace("{name: proportion}", "{name: capacity, enableHierarchy: true}")
PLAIN = SHARED.replace(", {name: proportion}", "").replace("{name: overcommit}, ", "")
EVICTS = SHARED.replace("allocate, backfill", "allocate, preempt, reclaim, backfill")
TWICE = SHARED.replace("allocate, backfill", "allocate, backfill, allocate")
AWAKE = msgspec.structs.replace(shortcuts.ALL, dormant_jobs=False)


class Life:
    """Two schedulers that are told the same, one of which looks at everybody in every cycle."""

    def __init__(self, seed, text):
        self.rng = random.Random(seed)  # noqa: S311  reproducible, not secret
        self.desks = [Desk(text), Desk(text, taken=AWAKE)]
        self.version, self.number, self.gangs, self.placed = 10, 0, {}, {}
        self.asleep = 0
        for i in range(3):
            self.feed(self.node(i))
        self.feed(queue("a", weight=2), queue("b"))
        for _ in range(8):
            self.arrive()

    def feed(self, *manifests, event="ADDED"):
        for manifest in manifests:
            self.version += 1
            manifest["metadata"]["resourceVersion"] = str(self.version)
            for desk in self.desks:
                desk.feed(manifest, event=event)

    def node(self, number):
        taints = [{"key": "k", "effect": "NoSchedule"}] if self.rng.random() < 0.1 else []
        return node(f"n{number}", self.rng.choice(["4", "6"]), cordoned=self.rng.random() < 0.1, taints=taints)

    def arrive(self, name=""):
        self.number += 1
        name = name or f"g{self.number}"
        size, cpu = self.rng.randint(1, 3), self.rng.choice(["1", "5", "7", "7", "9"])
        chosen = {"priorityClassName": "high"} if self.rng.random() < 0.2 else {}
        least = self.rng.choice([size, size, 1])
        self.gangs[name] = [f"{name}-{i}" for i in range(size)]
        phase = self.rng.choice(["Inqueue", "Inqueue", "Pending", ""])
        self.feed(group(name, least, queue=self.rng.choice(["a", "b", "a", "late"]), phase=phase, **chosen))
        for i, member in enumerate(self.gangs[name]):
            mixed = self.rng.random() < 0.1
            self.feed(pod(member, name, cpu="1" if mixed else cpu, memory="1Gi" if i % 2 and mixed else None))

    def leave(self, name):
        for member in self.gangs.pop(name):
            self.feed(pod(member, name, uid=f"uid-{member}"), event="DELETED")
            self.placed.pop(member, None)
        self.feed(group(name), event="DELETED")

    def change(self):
        happens = self.rng.random()
        if happens < 0.3:
            self.arrive()
        elif happens < 0.5 and self.gangs:
            name = self.rng.choice(sorted(self.gangs))
            self.leave(name)
            if self.rng.random() < 0.5:
                self.arrive(name)
        elif happens < 0.65:
            number = self.rng.randint(0, 3)
            self.feed(self.node(number), event=self.rng.choice(["ADDED", "MODIFIED", "DELETED"]))
        elif happens < 0.8:
            state = self.rng.choice(["Open", "Open", "Closed"])
            self.feed(queue(self.rng.choice(["a", "b", "late"]), state=state, weight=self.rng.randint(1, 3)))
        elif happens < 0.85:
            self.feed(priority_class("high", self.rng.randint(1, 9)))
        elif happens < 0.92:
            self.resize()
        else:
            self.daemon()

    def resize(self):
        """Let a pod that waits ask for something else, which changes nothing about its group."""
        waiting = [member for members in self.gangs.values() for member in members if member not in self.placed]
        if waiting:
            member = self.rng.choice(waiting)
            made = pod(member, member.rpartition("-")[0], cpu=self.rng.choice(["1", "3", "7"]))
            self.feed(made, event="MODIFIED")

    def daemon(self):
        """Let a pod that goes with its node come or go."""
        where = self.rng.choice(["n0", "n1"])
        owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "uid": "d", "controller": True}
        made = pod(f"daemon-{where}", cpu="1500m", node=where, scheduler="other")
        made["metadata"]["ownerReferences"] = [owner]
        self.feed(made, event=self.rng.choice(["ADDED", "ADDED", "DELETED"]))

    def cycle(self):
        """Run a cycle on both; returns what each has decided, written and told."""
        sent = []
        for desk in self.desks:
            desk.cycle()
            assert not desk.scheduler.failures
            sent.append(sorted(repr(effect) for effect in desk.world.effects))
        self.asleep += len(dormant(self.desks[0]))
        for member, where in self.desks[0].world.binds.items():
            name = member.rpartition("-")[0]
            if name in self.gangs and member not in self.placed:
                self.placed[member] = where
                self.feed(pod(member, name, cpu="1", node=where, phase="Running"), event="MODIFIED")
        for desk in self.desks:
            desk.world.effects.clear()
        return sent


def dormant(desk):
    """Return who would be left out of the next cycle, if nothing happened."""
    return desk.scheduler.engine.lasting["dormancy"].noted


@pytest.fixture(scope="module", autouse=True)
def everybody_awake_is_found():
    """In all lives of this module, whoever waits and is not left out is found, in the order in which they are listed, though not everybody who waits is looked at."""
    real, short = waking.Awake.among, []

    def among(self, cluster, left_out):
        short.append(bool(left_out))
        found = real(self, cluster, left_out)
        assert list(found.items()) == [(key, job) for key, job in cluster.pending_jobs.items() if key not in left_out]
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(waking.Awake, "among", among)
        yield
    assert any(short)


@pytest.mark.parametrize(
    "text", [SHARED, TREE, PLAIN, EVICTS, TWICE], ids=["shares", "tree", "plain", "evicts", "twice"]
)
@settings(max_examples=drawn(40), deadline=None)
@given(seed=st.integers(0, 10**6))
def test_nobody_can_tell_that_jobs_are_left_out(text, seed):
    life = Life(seed, text)
    for turn in range(12):
        with_some_left_out, with_all = life.cycle()
        assert with_some_left_out == with_all, f"cycle {turn}"
        for _ in range(life.rng.randint(0, 2)):
            life.change()


def test_jobs_do_lie_dormant_in_these_lives():
    lives = [Life(seed, SHARED) for seed in range(20)]
    for life in lives:
        for _ in range(6):
            life.cycle()
            life.change()
    assert sum(life.asleep for life in lives) > 50


def waiting(count, text=SHARED):
    made = Desk(text).feed(node("n0", "4"), node("n1", "4"))
    for i in range(count):
        made.feed(group(f"g{i}", 1, phase="Inqueue"), pod(f"g{i}-0", f"g{i}", cpu="4", memory="20Gi"))
    for _ in range(3):
        made.cycle()
    return made


def test_a_cycle_tries_only_whom_something_has_changed_for():
    made = waiting(20)
    made.feed(group("small", 1, phase="Inqueue"), pod("small-0", "small", cpu="1"))
    made.cycle()
    assert made.world.binds == {"small-0": "n0"}
    assert {verdict.job for verdict in made.cache.record.latest} == {"a/small"}


def test_everybody_is_looked_at_where_somebody_asks_why():
    made = waiting(20)
    made.feed(node("n2", "4"))
    made.cycle()
    found = []
    made.feed(group("small", 1, phase="Inqueue"), pod("small-0", "small", cpu="1"))
    made.scheduler.cycle(lambda explainer: found.append(explainer.job("a/g7")))
    assert len(made.cache.record.latest) > 20
    assert "20Gi" in str(found[0])


def test_new_numbers_are_told_to_a_few_in_each_cycle_and_to_all_in_the_end(monkeypatch):
    monkeypatch.setattr(dormancy, "TOLD_AT_ONCE", 3)
    made = waiting(8, PLAIN)
    made.feed(group("small", 1, phase="Inqueue"), pod("small-0", "small", cpu="1", memory="7Gi"))
    told = []
    for _ in range(6):
        made.cycle()
        told.append([verdict.job for verdict in made.cache.record.latest if verdict.job != "a/small"])
    assert [len(each) for each in told if each] == [3, 3, 2]
    assert len({job for each in told for job in each}) == 8
    assert made.cycle().skipped


def test_what_daemons_leave_of_empty_nodes_is_told_to_who_waits():
    made = Desk(PLAIN).feed(*(node(f"n{i}", "4") for i in range(2)))
    made.feed(*(pod(f"old-{i}", cpu="2", node=f"n{i}", scheduler="other") for i in range(2)))
    made.feed(group("g", 2, phase="Inqueue"), *(pod(f"g-{i}", "g", cpu="3") for i in range(2)))
    for _ in range(3):
        made.cycle()
    made.world.effects.clear()
    owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "uid": "d", "controller": True}
    for i in range(2):
        daemon = pod(f"d-{i}", cpu="1500m", node=f"n{i}", scheduler="other")
        daemon["metadata"]["ownerReferences"] = [owner]
        made.feed(daemon)
    made.cycle()
    assert any("even empty nodes hold 0 of the 2" in str(note) for note in made.world.notes)


def test_who_is_refused_for_another_reason_is_kept_once_and_forgotten_when_gone():
    made = Desk(TWICE).feed(node("n0", "4"), queue("tight", capability={"cpu": "3"}))
    made.feed(group("small", 1, queue="tight", phase="Inqueue"), pod("small-0", "small", cpu="2"))
    made.feed(group("large", 1, queue="tight", phase="Inqueue"), pod("large-0", "large", cpu="3"))
    for _ in range(4):
        made.cycle()
    made.delete(pod("large-0", "large"), group("large"))
    for _ in range(4):
        made.cycle()
        assert made.scheduler.failures == []
    assert made.cycle().skipped


class Planner(Plugin):
    """Hears of everybody who is blocked."""

    name = "planner"
    points = frozenset({"JobBlocked"})

    def open(self, session):
        session.job_blocked.add(lambda job: heard.append((session.number, job.key)))


heard = []


def test_who_plans_ahead_hears_of_everybody_who_waits_in_every_cycle():
    heard.clear()
    made = Desk(PLAIN.replace("{name: gang}", "{name: gang}, {name: planner}"), Planner).feed(node("n0", "4"))
    made.feed(group("g", 1, phase="Inqueue"), pod("g-0", "g", cpu="9"))
    for i in range(3):
        made.feed(group(f"s{i}", 1, phase="Inqueue"), pod(f"s{i}-0", f"s{i}", cpu="1"))
        made.cycle()
    assert [number for number, key in heard if key == "a/g"] == [1, 2, 3]


class Unsure(Plugin):
    """Cannot say whether it has settled."""

    name = "unsure"
    points = frozenset()

    def is_settled(self, session):
        raise RuntimeError("no idea")


def test_who_cannot_say_whether_it_has_settled_stops_no_cycle():
    text = 'actions: "allocate"\ntiers:\n- plugins: [{name: gang}, {name: unsure}]\n'
    made = Desk(text, Unsure).feed(node("n0", "4"), group("g", 1, phase="Inqueue"), pod("g-0", "g", cpu="1"))
    made.cycle()
    assert made.world.binds == {"g-0": "n0"}
    assert not made.scheduler.is_settled


def test_a_queue_that_only_counts_what_it_holds_wakes_nobody():
    made = waiting(4)
    held = queue("default")
    held["metadata"]["resourceVersion"] = "77"
    held["status"] = {"state": "Open", "allocated": {"cpu": "3"}}
    made.modify(held)
    made.cycle()
    assert len(dormant(made)) == 4
    assert made.cache.record.latest == []


@pytest.mark.parametrize("where", ["begin", "woken", "stands", "awaits"])
def test_a_plan_that_breaks_down_is_named_and_costs_nobody_a_cycle(where):
    class Prophet(Plugin):
        """Promises nothing, and breaks down when asked one of the questions."""

        name = "prophet"
        points = frozenset({"JobDelay"})
        reads = Reads.COLUMNS

        def open(self, session):
            session.job_delay.add(lambda job: "not yet" if job.key == "a/g" and not broken else None)
            session.announced.standing_plans[self.name] = self

        def _asked(self, question, answer):
            if question == where and broken:
                raise RuntimeError("no idea")
            return answer

        def begin(self):
            self._asked("begin", None)

        def woken(self, delayed):
            return self._asked("woken", list(delayed) if where == "awaits" else [])

        def stands(self, dormant):
            return self._asked("stands", True)

        def awaits(self, job):
            return self._asked("awaits", False)

    broken = []
    text = 'actions: "allocate"\ntiers:\n- plugins: [{name: gang}, {name: prophet}]\n'
    made = Desk(text, Prophet).feed(node("n0", "4"), group("g", 1, phase="Inqueue"), pod("g-0", "g", cpu="1"))
    made.cycle()
    assert made.world.binds == {}
    broken.append(True)
    made.feed(group("h", 1, phase="Inqueue"), pod("h-0", "h", cpu="1"))
    record = made.cycle()
    assert made.world.binds.keys() >= {"h-0"}
    assert "plugin prophet broke down at plan" in "\n".join(record.trace())
    made.feed(group("i", 1, phase="Inqueue"), pod("i-0", "i", cpu="1"))
    made.cycle()  # who was left out is tried by now
    assert made.world.binds == {"g-0": "n0", "h-0": "n0", "i-0": "n0"}
