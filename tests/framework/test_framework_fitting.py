"""Why no node takes a pod, counted over all nodes: held against an account of one node after the other, from what was fed."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders import Desk, group, node, pod
from drawing import drawn
from pumice.framework import fitting
from pumice.framework.explaining import placements
from pumice.framework.plugin import Plugin
from pumice.framework.reasons import Code
from pumice.framework.subject import Subject, together

TEXT = 'actions: "allocate"\ntiers:\n- plugins: [{name: first}]\n- plugins: [{name: second}]\n'
CARD = "example/card"
SAYS = ["", "a full disk", "a full bus", "no licence"]
LASTING = {"no licence"}


class First(Plugin):
    """Two filters that say of each node what its label of the same name says."""

    name = "first"
    points = frozenset({"Predicate"})
    filters = ("f0", "f1")

    def open(self, session):
        for label in self.filters:
            session.predicate.add(self.reading(session, label))

    def reading(self, session, label):
        """Make the filter that reads a label."""
        numbers = {
            says: session.reason(self.name, Code.UNRESOLVABLE if says in LASTING else Code.UNSCHEDULABLE, says)
            for says in SAYS[1:]
        }

        def said(_subject, nodes):
            found = [SAYS[int(each.labels[label])] for each in nodes.records()]
            return np.array([numbers.get(says, 0) for says in found], dtype=np.int16) if any(found) else None

        return said


class Second(First):
    """Another filter."""

    name = "second"
    filters = ("s0",)


def nodes(draw):
    """Nodes with what is taken there and what of that goes: cpu, and places for pods."""
    found = []
    for i in range(draw.randint(0, 5)):
        offered = {"cpu": draw.randint(1, 6), "pods": draw.randint(1, 3), CARD: draw.randint(0, 2)}
        stays, goes = draw.randint(0, 2), draw.randint(0, 2)
        labels = {name: str(max(0, draw.randint(-5, len(SAYS) - 1))) for name in ("f0", "f1", "s0")}
        found.append((f"n{i}", offered, stays, goes, labels))
    return found


def expected(found, asked, *, released, most=9):
    """Why nodes refuse a pod: of each what is short first, else what filters say, no more than so much of it, the last word being that there is no place for a pod."""
    counted = Counter()
    for _, offered, stays, goes, labels in found:
        taken = stays if released else stays + goes
        short = next(
            (name for name in ("cpu", CARD) if offered[name] - (taken if name == "cpu" else 0) < asked[name]), ""
        )
        if short:
            counted[f"Insufficient {short}"] += 1
        elif asked["unknown"]:
            counted["Insufficient example/unknown"] += 1
        else:
            counted.update(said(labels)[:most] or (["Insufficient pods"] if offered["pods"] - taken < 1 else []))
    return dict(counted)


def said(labels):
    """What filters say of a node: those of one plugin until one says what lasts, those of the next only if the first had nothing to say."""
    for plugin in (First, Second):
        told = []
        for label in plugin.filters:
            if (text := SAYS[int(labels[label])]) and not LASTING & set(told):
                told.append(text)
        if told:
            return told
    return []


@settings(max_examples=drawn(160))
@given(draw=st.randoms(use_true_random=True))
def test_each_node_is_counted_for_what_keeps_a_pod_off_it(draw):
    found = nodes(draw)
    asked = {"cpu": draw.randint(0, 3), CARD: draw.randint(0, 2), "unknown": draw.randint(0, 9) == 0}
    desk = Desk(TEXT, First, Second)
    for name, offered, stays, goes, labels in found:
        desk.feed(node(name, **{each.replace("/", "__"): str(units) for each, units in offered.items()}, labels=labels))
        for i in range(stays + goes):
            desk.feed(pod(f"{name}-{i}", "old", cpu="1", node=name, deleting=i >= stays))
    wish = {CARD: str(asked[CARD]), **({"example/unknown": "1"} if asked["unknown"] else {})}
    desk.feed(group("old"), group("g"), pod("g", "g", cpu=str(asked["cpu"]), requests=wish))
    for released in (False, True):
        summary = desk.session().evaluate(Subject(desk.task("g"))).failure(released=released)
        assert summary.nodes == len(found)
        assert dict(summary.counts) == expected(found, asked, released=released)
    shown = placements.explain(desk.session(), [desk.task("g")])
    counted = Counter()
    for each in shown.groups:
        counted[each.reason] += each.count
    assert counted == expected(found, asked, released=True, most=1)
    assert (shown.nodes, shown.fitting) == (len(found), len(found) - counted.total())


@settings(max_examples=drawn(240))
@given(draw=st.randoms(use_true_random=True))
def test_a_node_has_room_where_it_has_enough_of_cpu_and_memory_and_of_all_that_is_asked_for_now_and_later(draw):
    """Of whatever else a pod does not ask for, a node may have less than nothing."""
    desk = Desk().feed(group("old"), group("g"))
    free = []
    for i in range(draw.randint(1, 5)):
        offered = {"cpu": draw.randint(1, 4), "pods": draw.randint(2, 4), CARD: draw.randint(int(i == 0), 2)}
        desk.feed(node(f"n{i}", **{each.replace("/", "__"): str(units) for each, units in offered.items()}))
        here = [(name, draw.randint(0, 1)) for name in ("stays", "goes", "comes")]
        for name, cards in draw.sample(here, draw.randint(0, 3)):
            wish = {"cpu": "1", "requests": {CARD: str(cards)}}
            where = {} if name == "comes" else {"node": f"n{i}", "deleting": name == "goes"}
            desk.feed(pod(f"{name}-{i}", "old", **wish, **where))
            held = {"cpu": 1, "pods": 1, CARD: cards}
            offered[name] = {each: held.get(each, 0) for each in offered}
        free.append(offered)
    wishes = [{"cpu": draw.randint(0, 2), CARD: draw.randint(0, 2), "pods": 1} for _ in range(draw.randint(1, 4))]
    for i, wish in enumerate(wishes):
        desk.feed(pod(f"g-{i}", "g", cpu=str(wish["cpu"]), requests={CARD: str(wish[CARD])}))
    desk.feed(pod("odd", "g", requests={"example/unknown": "1"}))
    session = desk.session()
    statement = session.statement()
    for i, offered in enumerate(free):
        if "comes" in offered:
            statement.pipeline([desk.task(f"comes-{i}")], [desk.node(f"n{i}")])
    subjects = [Subject(desk.task(f"g-{i}")) for i in range(len(wishes))]
    for released in (False, True):
        nodes = desk.cluster.nodes.view(released=released)
        room = [[has_room(offered, wish, released=released) for offered in free] for wish in wishes]
        assert [fitting.room(each, nodes).tolist() for each in subjects] == room
        assert not fitting.room(Subject(desk.task("odd")), nodes).any()
        assert fitting.room_for_many(together(subjects, desk.cluster.vocabulary), nodes).tolist() == room


def has_room(offered, wish, *, released):
    """Whether a node takes a pod: once who goes has gone and who comes has come, and if that counts also as things are now."""

    def enough(*gone):
        return all(
            offered[name] - sum(offered[who][name] for who in gone if who in offered) >= units
            for name, units in wish.items()
            if units or name == "cpu"
        )

    return enough("stays", "comes") and (released or enough("stays", "goes"))


# ---- by hand

ROOMS = [
    ("exactly enough", {"cpu": "2"}, "", True, ""),
    ("a little too much", {"cpu": "2001m"}, "", False, "1 Insufficient cpu"),
    ("nothing of that is offered", {"requests": {"example/none": "1"}}, "", False, "1 Insufficient example/none"),
    ("what nobody offers is told where nothing else is short", {"cpu": "9", "requests": {"example/none": "1"}}, "", False, "1 Insufficient cpu"),
    ("nothing asked for", {}, "", True, ""),
    ("what is being released counts later", {"cpu": "4"}, "goes", False, "1 Insufficient cpu"),
]  # fmt: skip


@pytest.mark.parametrize(("wish", "old", "fits", "said"), [row[1:] for row in ROOMS], ids=[row[0] for row in ROOMS])
def test_a_node_has_room_for_what_it_has_left(wish, old, fits, said):
    made = Desk().feed(node("n", "4", "4Gi"), group("g", 1), pod("g-0", "g", **wish))
    made.feed(group("old", 0), pod("old", "old", cpu="2", node="n", deleting=9 if old else False))
    session = made.session()
    subject, table = Subject(made.task("g-0")), made.cluster.nodes
    now, later = table.view(), table.view(released=True)
    assert fitting.room(subject, now).tolist() == [fits]
    assert fitting.room(subject, later).tolist() == [fits or bool(old)]
    functions, reasons = session.evaluator.functions, session.evaluator.reasons
    told = str(fitting.summarise(subject, now, functions, reasons))
    assert told.endswith(f": {said}.") if said else "Insufficient" not in told
    if "requests" not in wish:
        many = together([subject, subject], table.vocabulary)
        assert fitting.room_for_many(many, now).tolist() == [[fits]] * 2
        assert fitting.room_for_many(many, later).tolist() == [[fits or bool(old)]] * 2


def test_that_a_node_has_no_place_for_a_pod_is_said_last():
    made = Desk(TEXT.replace("{name: first}", "{name: gang}").replace("{name: second}", "{name: priority}"))
    made.feed(node("full", "4", pods="1"), node("small", "1", pods="1"), node("open", "4"))
    made.feed(*(pod(f"x-{name}", cpu="100m", node=name, scheduler="else") for name in ("full", "small")))
    made.feed(group("g", 1), pod("g-0", "g", cpu="2"))
    session = made.session()
    functions, reasons = session.evaluator.functions, session.evaluator.reasons
    found = fitting.summarise(Subject(made.task("g-0")), made.cluster.nodes.view(), functions, reasons)
    assert dict(found.counts) == {"Insufficient cpu": 1, "Insufficient pods": 1}
