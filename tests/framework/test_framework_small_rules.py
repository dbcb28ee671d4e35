"""Small rules of the framework on their own: who is asked, what is held until when, and what is said and told."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from builders import Desk, group, node, pod
from pumice.cache.effects import Bind
from pumice.framework import (
    closing,
    foresight,
    group_choice,
    observing,
    refusals,
    reservations,
    resting_answers,
    shortcuts,
)
from pumice.framework.explaining import holding, jobs
from pumice.framework.explaining.explainer import Explainer
from pumice.framework.followers import Followers
from pumice.framework.outlet import Sender
from pumice.framework.plugin import Plugin
from pumice.framework.points import Reads
from pumice.framework.reasons import Code
from pumice.framework.record import CycleRecord
from pumice.framework.reservations import Hold, Reservations
from pumice.framework.runs import Run, Step
from pumice.framework.statements import Statements
from pumice.framework.subject import Subject
from pumice.model.resources import CPU, PODS
from pumice.model.statuses import Status

WITH = 'actions: "allocate"\ntiers:\n- plugins: [{name: gang}, {name: WHO}]\n'

SCORED = WITH.replace("WHO", "nodeorder")

# ---- whoever says what he reads is asked


class Picky(Plugin):
    """Takes one node alone, whatever it says of what that rests on."""

    name = "picky"
    points = frozenset({"Predicate"})

    def open(self, session):
        reason = session.reason(self.name, Code.UNSCHEDULABLE, "another node")
        session.predicate.add(
            lambda _, nodes: np.array([reason * (each.name != "n3") for each in nodes.records()], dtype=np.int16)
        )


class Fond(Plugin):
    """Likes one node best, whatever it says of what that rests on."""

    name = "fond"
    points = frozenset({"NodeOrder"})
    normalise = None

    def open(self, session):
        session.score.add(
            lambda _, nodes: np.array([5.0 * (each.name == "n3") for each in nodes.records()]), normalise=self.normalise
        )


class Labelled(Plugin):
    """Likes nodes that say of themselves that they are good."""

    name = "fond"
    points = frozenset({"NodeOrder"})
    reads = Reads.NODE

    def open(self, session):
        session.score.add(
            lambda _, nodes: np.array([5.0 * (each.labels.get("good") == "true") for each in nodes.records()])
        )


@pytest.mark.parametrize("normalised", [False, True])
@pytest.mark.parametrize("reads", [*Reads, Reads.NODE | Reads.COLUMNS, Reads.TASKS | Reads.OTHER_NODES, ~Reads(0)])
@pytest.mark.parametrize("known", [Picky, Fond])
@pytest.mark.parametrize("blocks", [False, True])
def test_filters_and_scores_are_asked_whatever_they_read(known, reads, normalised, blocks):
    """Of shapes together, or of each alone."""
    how = {"reads": reads, "normalise": staticmethod(lambda raw: raw) if normalised else None}
    taken = shortcuts.Shortcuts(blocks=blocks)
    desk = Desk(WITH.replace("WHO", known.name), type(known.__name__, (known,), how), taken=taken)
    desk.feed(*(node(f"n{i}", "64") for i in range(5)), group("g", 3), *(pod(f"g-{i}", "g", cpu="1") for i in range(3)))
    desk.cycle()
    assert desk.world.binds == dict.fromkeys(["g-0", "g-1", "g-2"], "n3")


@pytest.mark.retreats
@pytest.mark.parametrize("given", [lambda raw: raw[:1], lambda raw: raw * float("nan"), lambda raw: raw.tolist()])
def test_a_score_that_brings_to_scale_what_is_no_answer_is_told_of_and_places_nobody(given):
    desk = Desk(WITH.replace("WHO", "fond"), type("Fond", (Fond,), {"normalise": staticmethod(given)}))
    desk.feed(*(node(f"n{i}", "64") for i in range(5)), group("g", 1), pod("g-0", "g", cpu="1")).cycle()
    assert desk.world.binds == {}
    assert [type(each).__name__ for each in desk.scheduler.failures] == ["WrongAnswerError"]


@pytest.mark.parametrize("blocks", [False, True])
def test_a_score_that_goes_by_node_objects_follows_them(blocks):
    desk = Desk(WITH.replace("WHO", "fond"), Labelled, taken=shortcuts.Shortcuts(blocks=blocks))
    desk.feed(*(node(f"n{i}", "64", labels={"good": str(i == 3).lower()}) for i in range(5)))
    for number, where in enumerate((3, 1)):
        desk.modify(*(node(f"n{i}", "64", labels={"good": str(i == where).lower()}) for i in range(5)))
        desk.feed(group(f"g{number}", 1), pod(f"p{number}", f"g{number}", cpu="1")).cycle()
    assert desk.world.binds == {"p0": "n3", "p1": "n1"}


# ---- what is held


def held(**hold):
    """A pod that waits, for which a node is held."""
    desk = Desk().feed(node("n", "4"), group("g", 1), pod("g-0", "g", cpu="1"))
    session = desk.session()
    known = session.reservations
    known.holds[desk.task("g-0").uid] = Hold("n", **hold)
    return desk, session, known


@pytest.mark.parametrize(("now", "holds"), [(14, True), (15, False), (16, False)])
def test_a_hold_ends_when_its_patience_is_over(now, holds):
    desk, _, known = held(clear_since=5, patience=10)
    assert [task.name for task in known.renew(desk.cluster, now)] == ["g-0"] * holds
    assert bool(known.holds) is holds


@pytest.mark.parametrize(
    ("reserved", "status", "holds"),
    [
        (False, Status.PENDING, True),
        (True, Status.PIPELINED, True),
        (False, Status.RUNNING, False),  # it is placed: nothing has to be held any more
    ],
)
def test_room_is_held_for_a_job_as_long_as_a_member_waits_for_it(reserved, status, holds):
    desk, session, known = held()
    task = desk.task("g-0")
    assert session.holds_room(task.job)
    if reserved:
        session.reserved[task.uid] = task
    if status != Status.PENDING:
        session.statement().suppose([task], [desk.node("n")], status)
    assert session.holds_room(task.job) is holds
    known.holds.clear()
    assert not session.holds_room(task.job)


@pytest.mark.parametrize(
    ("count", "more"), [(reservations.NAMED, ""), (reservations.NAMED + 1, "1"), (reservations.NAMED + 7, "7")]
)
def test_so_many_whose_going_is_waited_for_are_named_and_others_counted(count, more):
    desk = Desk().feed(node("n", "64"), group("old", 1), *(pod(f"old-{i:02}", "old", node="n") for i in range(count)))
    desk.feed(group("g", 1), pod("g-0", "g", cpu="1"))
    session = desk.session()
    known = Reservations()
    known.holds[desk.task("g-0").uid] = Hold("n", tuple(desk.task(f"old-{i:02}").uid for i in range(count)))
    told = known.awaited(desk.cluster, desk.task("g-0").job)
    assert told.count("a/old-") == reservations.NAMED
    assert (" more;" in told) is bool(more)
    assert (f" and {more} more;" in told) is bool(more)
    assert session.cluster is desk.cluster


# ---- what is said and told


@pytest.mark.parametrize("taken", [shortcuts.ALL, shortcuts.NONE])
def test_an_observer_is_told_how_long_each_step_took(taken, monkeypatch):
    stages = []
    monkeypatch.setattr(observing.Observer, "mark", lambda _: 7)
    monkeypatch.setattr(observing.Observer, "spent", lambda _, stage, label, since: stages.append((stage, since)))
    Desk(SCORED, taken=taken).feed(node("n", "4"), node("m", "4"), group("g", 1), pod("g-0", "g", cpu="1")).cycle()
    steps = ("open", "plugin open", "action", "plugin close", "predicate", "scoring")
    assert set(stages) == {(step, 7) for step in steps}


class Refusing(Plugin):
    """Follows placements, and refuses all."""

    name = "refusing"

    def open(self, session):
        session.add_handler(lambda run, sign: "not here" if sign > 0 else None, may_refuse=True)


def test_that_a_plugin_refused_a_placement_is_in_the_trace():
    desk = Desk(WITH.replace("WHO", "refusing"), Refusing).feed(node("n", "4"), group("g", 1), pod("g-0", "g", cpu="1"))
    assert any("a/g-0: placement refused: not here" in line for line in desk.cycle().trace())
    assert desk.world.binds == {}


def test_a_pod_that_names_no_group_is_told_so():
    desk = Desk().feed(node("n", "4"), pod("alone", "", cpu="1"))
    found = Explainer(desk.scheduler.engine, desk.session()).pod("a/alone")
    assert found.cause.startswith("it belongs to no group")


@pytest.mark.parametrize(("least", "says"), [(2, "it has no pods yet, minMember is 2"), (0, "")])
def test_a_group_without_pods_is_told_that_it_has_none(least, says):
    session = Desk().feed(node("n", "4"), group("g", least, phase="Inqueue")).session()
    (job,) = session.cluster.jobs.values()
    told = closing.job_text(session, job)
    assert says in told
    assert ("no pods" in told) is bool(says)


def test_each_of_unequal_members_is_told_what_keeps_it_from_every_node():
    """What keeps the first of them is no reason for the second."""
    desk = Desk().feed(node("n", "4", example__card="1"), group("old", 1), group("g", 1))
    desk.feed(pod("old", "old", cpu="2", requests={"example/card": "1"}, node="n"))
    desk.feed(pod("g-0", "g", cpu="3"), pod("g-1", "g", cpu="1", requests={"example/card": "1"}))
    found = []
    desk.scheduler.cycle(lambda explainer: found.extend(explainer.pod(f"a/g-{i}").cause for i in range(2)))
    assert ["cpu free" in cause for cause in found] == [True, False]
    assert ["example/card" in cause for cause in found] == [False, True]


def test_what_is_only_held_for_a_pod_is_shown_and_who_is_placed_holds_nothing_any_more():
    desk = Desk().feed(node("n", "4"), group("old", 1), group("g", 2), group("h", 1))
    desk.feed(pod("old", "old", cpu="2", node="n", deleting=9), pod("h", "h", cpu="1", node="n"))
    desk.feed(*(pod(f"g-{i}", "g", cpu="1", created=i) for i in range(3)))
    found = []
    desk.scheduler.cycle(lambda explainer: found.extend((explainer.node("n"), explainer.job("a/h"))))
    shown, placed = found
    assert {hold.pod: (hold.node, hold.awaits) for hold in shown.holds} == {f"a/g-{i}": ("n", ()) for i in range(3)}
    assert placed.holds == ()


@pytest.mark.parametrize(
    ("usable", "native", "held", "state"),
    [
        (True, False, "", "without pods"),
        (False, False, "", "invalid"),
        (False, True, "", "invalid"),
        (False, False, "waiting for 2 more pods", "invalid"),
        (False, True, "waiting for 2 more pods", "without pods"),  # it will be served once they are there
    ],
)
def test_a_job_that_nobody_serves_is_invalid_unless_it_only_waits_for_its_pods(usable, native, held, state):
    job = SimpleNamespace(tasks={}, tally=SimpleNamespace(counts={}), native=native, held=held)
    assert jobs.state(SimpleNamespace(usable=lambda _: usable), job) == state


class Rising:
    """A rating by groups, of which the points of the first rise with each task there."""

    def __init__(self, groups, together):
        self.groups, self.values, self._together = np.array(groups), np.zeros(max(groups) + 1), together

    def rising(self, _):
        return self._together

    def advance(self, group, count):
        return (float(count) if group == 0 else 0.0), 0.0

    def settle(self):
        pass


@pytest.mark.parametrize("count", range(1, 9))
@pytest.mark.parametrize("together", range(5))
def test_no_more_rows_of_a_group_are_chosen_than_there_are_tasks(count, together):
    rating, room = Rising([0, 0, 1], together), {0: 3, 1: 4, 2: 9}

    def take(row):
        room[row] -= 1
        return 5.0 if room[row] else None

    everything = np.ones(3, dtype=np.bool_)
    followers = Followers(refusing=[], rating=[])
    choice = group_choice.GroupChoice(np.array([5.0, 5.0, 0.0]), ~everything, everything, followers, rating)
    chosen = choice.choose(rating, SimpleNamespace(take=take), count)
    assert chosen == [0, 0, 0, 1, 1, 1, 1, 2][:count]


@pytest.mark.parametrize("count", [1, foresight.BATCH, foresight.BATCH + 7])
@pytest.mark.parametrize("nodes", [foresight.BATCH - 1, foresight.BATCH, foresight.BATCH + 1, 3 * foresight.BATCH])
def test_the_likely_rows_are_those_with_the_best_scores_the_first_among_equals(nodes, count):
    plain, allowed = np.arange(nodes) * 7 % 13 * 1.0, np.arange(nodes) % 5 > 0
    open_to = np.flatnonzero(allowed).tolist()
    best = sorted(open_to, key=lambda row: (-plain[row], row))[: max(count, foresight.BATCH)]
    assert sorted(foresight.likely_rows(plain, allowed, count).tolist()) == sorted(best)


def test_what_a_subject_asks_for_is_laid_out_once_for_it_and_its_equals_until_there_are_more_resources():
    shape = SimpleNamespace(request=SimpleNamespace(vector=np.array([1, 2])), non_zero=(1, 2))
    task = SimpleNamespace(shape=shape, job=None)
    first, equal = Subject(task), Subject(task)
    alone = first.alone(None)
    equal.follow(first)
    assert first.alone(None) is equal.alone(None) is alone
    assert (alone.requests.tolist(), alone.non_zero.tolist(), alone.members) == ([[1, 2]], [[1, 2]], [first])
    shape.request.vector = np.array([1, 2, 0])
    assert first.alone(None).requests.tolist() == [[1, 2, 0]]


SUPPOSED = [
    (Status.PENDING, Status.RUNNING, 1, "targets"),
    (Status.RUNNING, Status.PENDING, -1, "sources"),
    (Status.RUNNING, Status.RUNNING, 0, "targets"),
    (Status.RELEASING, Status.PENDING, 0, "targets"),
]


@pytest.mark.parametrize(("before", "after", "direction", "where"), SUPPOSED)
def test_of_what_is_supposed_the_nodes_are_told_on_which_room_is_taken_or_given_back(before, after, direction, where):
    nodes = {"sources": [object()], "targets": [object()]}
    run = Run(Step.SUPPOSE, before, after, [SimpleNamespace()], nodes["sources"], nodes["targets"])
    assert run.direction == direction
    assert run.told().targets == nodes[where]
    for step, expected in ((Step.ALLOCATE, 1), (Step.PIPELINE, 1), (Step.EVICT, -1)):
        decided = Run(step, before, after, [SimpleNamespace()], nodes["sources"], nodes["targets"])
        assert decided.direction == expected
        assert decided.told() is decided


class Apart(Plugin):
    """Takes one pod to one node, told apart by their names, and has nothing to say about others."""

    name = "apart"
    points = frozenset({"Predicate"})
    reads = Reads.NODE

    def open(self, session):
        reason = session.reason(self.name, Code.UNSCHEDULABLE, "another node")

        def said(subject, nodes):
            if subject.task.name == "usual":
                return None
            return np.array([reason * (each.name != subject.task.name) for each in nodes.records()], dtype=np.int16)

        session.predicate.add(said, apart=lambda each: None if each.task.name.startswith("usual") else each.task.name)


def test_equal_pods_that_a_function_tells_apart_share_no_answers_and_others_do():
    desk = Desk(WITH.replace("WHO", "apart"), Apart).feed(node("n0"), node("n1"), group("g", 1))
    desk.feed(*(pod(name, "g", cpu="1") for name in ("n0", "n1", "usual", "usual-too")))
    session = desk.session()
    keys = {name: session.evaluator.key(Subject(desk.task(name))) for name in ("n0", "n1", "usual", "usual-too")}
    assert keys["usual"] == keys["usual-too"]
    assert len(set(keys.values())) == 3


def test_it_is_known_which_plugin_names_what_it_tells_pods_apart_by():
    desk = Desk(WITH.replace("WHO", "apart}, {name: picky"), Apart, Picky).feed(node("n0"))
    evaluator = desk.session().evaluator
    assert [evaluator.names_apart(name) for name in ("apart", "picky", "gang")] == [True, False, False]


class Changing(Plugin):
    """Sends pods to one node, by functions that are others in every cycle."""

    name = "changing"
    points = frozenset({"Predicate", "NodeOrder"})
    way, chosen = "", "n0"

    def open(self, session):
        reason, chosen = session.reason(self.name, Code.UNSCHEDULABLE, "another node"), self.chosen

        def refusing(_, nodes):
            return np.array([reason * (each.name != chosen) for each in nodes.records()], dtype=np.int16)

        def points_of(_, nodes):
            return np.array([5.0 * (each.name == chosen) for each in nodes.records()])

        if self.way == "by objects":
            session.predicate.add(refusing, reads=Reads.NODE)
        elif self.way == "by amounts":
            session.predicate.add(refusing, reads=Reads.COLUMNS)
        elif self.way == "one by one":
            session.score.add(points_of, reads=Reads.COLUMNS)
        else:
            session.score.add(many=lambda *asked: points_of(*asked)[None, :], reads=Reads.COLUMNS)


@pytest.mark.parametrize("way", ["by objects", "by amounts", "one by one", "together"])
def test_of_what_functions_said_nothing_is_kept_once_they_are_others(way):
    how = type("Changing", (Changing,), {"way": way})
    desk = Desk(WITH.replace("WHO", "changing"), how).feed(node("n0"), node("n1"))
    for number in range(3):
        how.chosen = f"n{number % 2}"
        desk.feed(group(f"g{number}", 1), pod(f"g{number}-0", f"g{number}", cpu="1")).cycle()
    assert desk.world.binds == {"g0-0": "n0", "g1-0": "n1", "g2-0": "n0"}


def test_what_is_held_on_a_node_is_shown_for_pods_that_are_there_still():
    desk, session, known = held()
    known.holds["of a pod that is gone"] = Hold("n")
    (shown,) = holding.on_node(session, desk.node("n"))
    assert (shown.pod, shown.node, shown.request) == ("a/g-0", "n", {"cpu": "1"})
    known.holds[desk.task("g-0").uid] = Hold("elsewhere")
    assert holding.on_node(session, desk.node("n")) == []


@pytest.mark.parametrize(
    ("nodes", "evicted", "waiting", "grows"),
    [
        ("2", "", [{"cpu": "3"}], [0, 0]),  # nobody finds room
        ("2", "", [{"cpu": "3"}, {"requests": {"example/unknown": "1"}}], [0, 0]),
        ("2", "", [{"cpu": "1"}, {"cpu": "3"}], [4000, 2]),  # all that waits, or twice all the room
        ("8", "", [{"cpu": "1"}, {"cpu": "3"}], [4000, 2]),
        ("1", "", [{"cpu": "1"}, {"cpu": "3"}], [2000, 2]),
    ],
)
def test_queues_come_to_hold_no_more_than_waits_and_has_room_and_nothing_if_nobody_finds_any(
    nodes, evicted, waiting, grows
):
    desk = Desk().feed(
        node("n", nodes, pods="2"), group("g", 1), *(pod(f"g-{i}", "g", **w) for i, w in enumerate(waiting))
    )
    session = desk.session()
    assert resting_answers.growth(session.cluster, [])[[CPU, PODS]].tolist() == grows


def test_a_node_that_is_full_adds_nothing_to_what_queues_can_come_to_hold():
    desk = Desk().feed(node("n", "1"), node("full", "1"), pod("else", cpu="1", node="full", scheduler="else"))
    desk.feed(group("g", 1), *(pod(f"g-{i}", "g", cpu="1") for i in range(4)))
    assert resting_answers.growth(desk.session().cluster, [])[CPU] == 2000


REFUSALS = [
    ({}, set(), False, {}),
    ({"g-0": "late"}, set(), False, {"g-0": "late", "g-1": "late"}),  # of a gang all stay
    ({"g-0": "late"}, set(), True, {"g-0": "late"}),
    ({}, {"g-0"}, False, {"g-0": "objected", "g-1": "objected"}),
    ({}, {"g-0"}, True, {"g-0": "objected"}),
    ({}, {"h-0"}, False, {"h-0": "objected"}),  # that one has more than it needs
    ({}, {"h-0", "h-1"}, False, {f"h-{i}": "objected" for i in range(3)}),
    ({"h-0": "late"}, set(), False, {f"h-{i}": "late" for i in range(3)}),
    ({"h-0": "late"}, {"h-0"}, True, {"h-0": "late"}),
    ({}, {"alone"}, False, {"alone": "objected"}),
]


@pytest.mark.parametrize(("overtaken", "objected", "apart", "withheld"), REFUSALS)
def test_where_one_of_a_gang_cannot_be_bound_that_is_needed_all_of_it_stay(overtaken, objected, apart, withheld):
    jobs = {"g": SimpleNamespace(min_member=2, tally=SimpleNamespace(ready=2))}
    jobs["h"] = SimpleNamespace(min_member=2, tally=SimpleNamespace(ready=3))
    tasks = [
        SimpleNamespace(uid=uid, key=uid, node="n", job=jobs.get(uid[0]), job_key=uid[0])
        for uid in ("g-0", "g-1", "h-0", "h-1", "h-2", "alone")
    ]
    record = CycleRecord()
    asked = Asked(lambda task, _: "objected" if task.uid in objected else None, active=bool(objected))
    session = SimpleNamespace(pre_bind=asked, record=record)
    sender = Sender(session, SimpleNamespace(overtaken=lambda _: overtaken))
    assert sender.withheld(tasks, apart=apart) == withheld
    gangs = {uid[0] for uid in withheld if len([each for each in withheld if each[0] == uid[0]]) > 1}
    told = [f"commit: {key}: not bound: " for key in sorted(gangs or {"a"} & {u[0] for u in withheld})]
    assert len(record.trace()) == (1 if withheld else 0)
    assert all(line.startswith(("commit: ", *told)) for line in record.trace())


class Asked:
    """An extension that answers as it is told."""

    def __init__(self, answer, *, active):
        self._answer, self.active = answer, active

    def __call__(self, *args):
        return self._answer(*args)


def test_where_somebody_refuses_that_all_wait_where_they_did_nobody_waits_and_that_is_told():
    said, moved = [], []
    session = SimpleNamespace(cluster="the cluster", tell_of_many=lambda runs, sign: said.append((runs, sign)) or "no")
    block = SimpleNamespace(put=lambda _: moved.append("put"), take=lambda _: moved.append("take"))
    kept = Statements(session)
    assert kept.hold_together(block, {"uid": "run"}) is False
    assert said == [(["run"], 1), (["run"], -1)]
    assert moved == ["put", "take"]
    assert (kept.kept.resting, kept.evicted_for) == ({}, {})
    kept.let_go()
    assert moved == ["put", "take"]


@pytest.mark.parametrize(
    ("reads", "alike"),
    [
        (Reads.NODE, "abcd"),
        (Reads.COLUMNS | Reads.OTHER_NODES, "abcd"),
        (Reads.TASK, "a"),
        (Reads.JOB, "ab"),
        (Reads.QUEUE, "abc"),
        (Reads.JOB | Reads.QUEUE, "ab"),
        (Reads.TIME, "abcd"),
    ],
)
def test_equal_pods_share_answers_unless_more_of_them_is_read(reads, alike):
    desk = Desk(
        WITH.replace("WHO", "picky"), type("Reader", (Picky,), {"reads": reads}), queues=("root", "default", "q")
    )
    desk.feed(node("n"), group("g", 1), group("h", 1), group("k", 1, queue="q"))
    desk.feed(*(pod(name, job, cpu="1") for name, job in zip("abcd", "gghk", strict=True)))
    session = desk.session()
    tasks = {name: desk.task(name) for name in "abcd"}
    keys = {name: session.evaluator.key(Subject(task, session.queue_of(task.job))) for name, task in tasks.items()}
    assert "".join(name for name in "abcd" if keys[name] == keys["a"]) == alike


def test_refusals_are_kept_on_one_basis_and_on_none_nothing_is_kept(monkeypatch):
    monkeypatch.setattr(refusals, "MOST", 2)
    known = refusals.Refusals()
    known.at(None)["kind"] = "no"
    assert known.at(None) == {}
    known.at("basis")["kind"] = "no"
    assert known.at("basis") == {"kind": "no"}
    assert known.at("another") == {}
    known.at("another").update(dict.fromkeys(("one", "two")))
    assert len(known.at("another")) == 2
    known.at("another")["three"] = None
    assert known.at("another") == {}


def test_why_its_last_bind_failed_is_noted_of_a_pod():
    desk = Desk().feed(node("n", "4"), group("g", 1), pod("g-0", "g", cpu="1"))
    desk.cycle(60)
    desk.settle(desk.world.of(Bind)[-1], "refused", "somebody says no")
    found = []
    desk.scheduler.cycle(lambda explainer: found.extend(explainer.pod("a/g-0").notes))
    (note,) = found
    assert note.startswith("its last bind failed: ")
    assert "somebody says no" in note
