"""Room that is held for the members of a plan: until when, for whom, and what is said of it."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders import NOW, SECOND, Desk, group, node, pod, queue, stamp
from drawing import drawn
from pumice.framework import reservations
from pumice.framework.plugin import Plugin
from pumice.framework.reservations import Hold, Reservations
from pumice.model.statuses import Status

PATIENCE = 10


def world(victims=(), **wish):
    """A pod that waits, and others on a node, each to go at some second, or still to be asked to with so many seconds of grace."""
    desk = Desk().feed(node("n", "64"), group("g", 1), pod("g-0", "g", cpu="1", **wish), group("old", 1))
    for i, (goes, grace) in enumerate(victims):
        spec = {} if grace is None else {"terminationGracePeriodSeconds": grace}
        desk.feed(pod(f"v{i}", "old", cpu="1", node="n", deleting=goes or False, **spec))
    return desk.apply()


def departure(goes, grace, made, first):
    """When a victim should be gone: at the time that it was given, by no clock that is ahead, else so long after it was first asked, if that is known."""
    grace = 30 if grace is None else grace
    if goes:
        return min(goes, first + grace)
    return math.inf if made is None else made + grace


SECONDS = st.integers(1, 40)


@settings(max_examples=drawn(100))
@given(
    st.lists(st.tuples(st.none() | SECONDS, st.none() | st.integers(0, 9)), max_size=3),
    st.lists(st.integers(0, 70), min_size=1, max_size=4).map(sorted),
    st.none() | st.integers(0, 9),
    st.lists(st.integers(0, 2), max_size=1),
)
def test_room_is_held_until_a_while_after_the_last_victim_should_be_gone_or_is(victims, times, made, gone):
    desk = world(victims)
    known, task = Reservations(), desk.task("g-0")
    uids = tuple(desk.task(f"v{i}").uid for i in range(len(victims)))
    known.holds[task.uid] = hold = Hold(
        "n",
        (*uids, "of one that is long gone"),
        None if made is None else NOW + made * SECOND,
        patience=PATIENCE * SECOND,
    )
    left, clear = dict(enumerate(victims)), None
    for turn, now in enumerate(times):
        for number in gone if turn == 1 else ():
            if left.pop(number, None):
                desk.delete(pod(f"v{number}", "old")).apply()
        last = max((departure(*victim, made, times[0]) for victim in left.values()), default=None)
        if last is not None and now <= last:
            clear = None
        elif clear is None:
            clear = now if last is None else last
        ends = clear is not None and now - clear >= PATIENCE
        assert [each.name for each in known.renew(desk.cluster, NOW + now * SECOND)] == ([] if ends else ["g-0"])
        if ends:
            assert known.holds == {}
            break
        assert hold.clear_since == (None if clear is None else NOW + clear * SECOND)
        assert hold.gone_by == (None if last in (None, math.inf) else NOW + last * SECOND)
        until = last if clear is None else clear + PATIENCE
        assert hold.unchanged_until == (
            reservations.NEVER if until == math.inf else NOW + until * SECOND - (clear is not None)
        )


def test_without_victims_that_are_known_whoever_leaves_the_node_is_waited_for():
    """That is all that a restart leaves."""
    desk = world([(20, None), (None, None)], phase="Pending")
    known, task = Reservations(), desk.task("g-0")
    known.holds[task.uid] = hold = Hold("n", patience=PATIENCE * SECOND)
    assert known.renew(desk.cluster, NOW + 20 * SECOND) == [task]
    assert (hold.clear_since, hold.gone_by) == (None, NOW + 20 * SECOND)
    assert known.renew(desk.cluster, NOW + 29 * SECOND) == [task]
    assert known.renew(desk.cluster, NOW + 30 * SECOND) == []


@pytest.mark.parametrize("there", [False, True])
def test_a_hold_ends_with_the_node_and_counts_no_more_though_the_pod_still_names_it(there):
    desk = world()
    waiting = pod("h-0", "g", cpu="1")
    waiting["status"]["nominatedNodeName"] = "n"
    desk.feed(waiting).apply()
    known, uid = Reservations(), desk.task("h-0").uid

    def renewed():
        return [task.name for task in known.renew(desk.cluster, NOW)]

    assert renewed() == ["h-0"]
    assert known.holds[uid].node == "n"
    if not there:
        desk.delete(node("n")).apply()
    assert renewed() == ["h-0"] * there
    assert [task.name for task in known.ended(desk.cluster)] == ["h-0"] * (not there)
    desk.feed(node("n")).apply()
    assert renewed() == ["h-0"] * there
    gone = Reservations()
    gone.expired["of a pod that is gone"] = "n"
    assert gone.ended(desk.cluster) == []
    told = pod("h-0", "g", cpu="1")
    desk.modify(told).apply()
    assert renewed() == ["h-0"] * there
    assert known.ended(desk.cluster) == []
    assert known.expired == {}
    told["status"]["nominatedNodeName"] = "n"
    desk.modify(told).apply()
    assert renewed() == ["h-0"]  # a nomination that is new counts


def test_nothing_is_held_for_who_is_gone_who_is_placed_and_of_whom_that_is_known():
    desk = world().feed(*(pod(name, "g", cpu="1") for name in ("gone", "placed", "known"))).apply()
    known, tasks = Reservations(), {name: desk.task(name) for name in ("g-0", "gone", "placed", "known")}
    known.add([], [])
    for task in tasks.values():
        known.holds[task.uid] = Hold("n")
    desk.delete(pod("gone", "g")).modify(pod("placed", "g", cpu="1", node="n")).apply()
    assert known.renew(desk.cluster, NOW, {tasks["known"].uid}) == [tasks["g-0"]]
    assert list(known.holds) == [tasks[name].uid for name in ("g-0", "placed", "known")]


@pytest.mark.parametrize("victim", ["v0", "v1"])
@pytest.mark.parametrize("holds", [False, True])
@pytest.mark.parametrize("status", [Status.PENDING, Status.PIPELINED])
def test_a_victim_is_given_up_if_nobody_waits_for_it_who_did(victim, holds, status):
    desk = world([(20, None), (20, None)])
    session, task = desk.session(), desk.task("g-0")
    statement, known = session.statement(), Reservations()
    statement.pipeline([task], [desk.node("n")])
    known.expired[task.uid] = "n"
    known.add([task], [desk.task("v0")], made=3)
    assert known.expired == {}
    assert known.holds[task.uid] == Hold("n", (desk.task("v0").uid,), 3)
    if not holds:
        known.drop([task])
    if status == Status.PENDING:
        statement.discard()
    expected = victim == "v0" and not (holds and status == Status.PENDING)
    assert known.is_given_up(desk.cluster, desk.task(victim).uid) is expected
    desk.delete(pod(victim, "old")).apply()
    known.renew(desk.cluster, NOW)
    assert not known.is_given_up(desk.cluster, f"a.{victim}")


@pytest.mark.parametrize(
    ("victims", "told"),
    [
        ([], ""),
        ([(20, None)], f"It waits for pods that are evicted for it: a/v0; its room is held until {stamp(30)}"),
        ([(20, None), (25, None)], f"It waits for pods that are evicted for it: a/v0, a/v1; its room is held until {stamp(35)}"),
        (
            [(20, None), (None, 5)],
            "It waits for pods that are evicted for it: a/v0, a/v1; its room is held for 10 s after they are gone",
        ),
    ],
)  # fmt: skip
@pytest.mark.parametrize("members", [1, 2])
def test_whose_going_a_job_waits_for_and_how_long_its_room_is_held_is_said_once_for_all_its_members(
    victims, told, members
):
    desk = world(victims).feed(pod("g-1", "g", cpu="1")).apply()
    known, uids = Reservations(), tuple(desk.task(f"v{i}").uid for i in range(len(victims)))
    for i in range(members):
        known.holds[desk.task(f"g-{i}").uid] = Hold("n", uids, NOW, patience=PATIENCE * SECOND)
    expected = told if uids else ""
    assert known.awaited(desk.cluster, desk.cluster.jobs["a/g"]) == expected
    if not uids:
        return
    by_node = Reservations()
    by_node.holds[desk.task("g-0").uid] = Hold("n", patience=PATIENCE * SECOND)
    leaving = [each for each in victims if each[0]]
    assert by_node.awaited(desk.cluster, desk.cluster.jobs["a/g"]).count("a/v") == len(leaving)


@pytest.mark.parametrize("others", [0, 1])
def test_several_plans_for_a_job_are_told_together_in_the_order_in_which_they_were_made(others):
    desk = world([(20, None), (25, None)]).feed(pod("g-1", "g", cpu="1"), pod("g-2", "g", cpu="1", node="n")).apply()
    known = Reservations()
    for member, victim, patience in [("g-1", "v1", 10), ("g-0", "v0", 60), ("g-2", "v0", 90)][: 2 + others]:
        known.holds[desk.task(member).uid] = Hold("n", (desk.task(victim).uid,), patience=patience * SECOND)
    told = known.awaited(desk.cluster, desk.cluster.jobs["a/g"])
    assert told == f"It waits for pods that are evicted for it: a/v1, a/v0; its room is held until {stamp(85)}"


# ---- who waits where


@settings(max_examples=drawn(100))
@given(st.randoms(use_true_random=True))
def test_those_for_whom_nodes_are_held_wait_there_one_after_the_other_as_far_as_there_is_room(draw):
    """Who has no room beside those before him keeps nobody after him from waiting; all of them are lifted together, and held again."""
    desk = Desk().feed(*(node(f"n{i}", str(draw.randint(1, 4)), nvidia__card="1") for i in range(2)), group("g", 1))
    wishes = [(draw.randint(0, 3), draw.randint(0, 1), draw.choice(["n0", "n1", "n1", "gone", ""])) for _ in range(5)]
    for i, (cpu, cards, _) in enumerate(wishes):
        unknown = {"example/unknown": "1"} if draw.random() < 0.1 else {}
        desk.feed(pod(f"g-{i}", "g", cpu=str(cpu), requests={"nvidia/card": str(cards), **unknown}))
    session = desk.session()
    known = session.reservations
    tasks = [desk.task(f"g-{i}") for i in range(len(wishes))]
    for task, (_, _, where) in zip(tasks, wishes, strict=True):
        if where:
            known.holds[task.uid] = Hold(where)
    free = {name: desk.cluster.nodes.allocatable[desk.node(name).row].copy() for name in ("n0", "n1")}
    expected = {}
    for task, (_, _, where) in zip(tasks, wishes, strict=True):
        request = task.shape.request
        if where in free and not request.unoffered and (free[where] >= request.vector).all():
            free[where] -= request.vector
            expected[task.name] = where
    reservations.put_back(session, known, tasks)
    assert waiting(session, tasks) == expected
    job = desk.cluster.jobs["a/g"]
    lifted = reservations.lift(session, job)
    assert [task.name for task in lifted] == sorted(expected)
    assert waiting(session, tasks) == {}
    reservations.hold_again(session, known, lifted)
    assert waiting(session, tasks) == expected
    session.rollback()
    assert all(task.status == Status.PENDING for task in tasks)


def waiting(session, tasks):
    """Who waits by a reservation, and where."""
    assert {task.uid for task in tasks if task.status == Status.PIPELINED} == session.reserved.keys()
    return {task.name: task.node.name for task in session.reserved.values()}


def holding(desk, *names, where="n"):
    """A session, and reservations of a node for pods."""
    session, known = desk.session(), Reservations()
    for name in names:
        known.holds[desk.task(name).uid] = Hold(where)
    return session, known


@pytest.mark.parametrize(("cpu", "waits"), [("2", True), ("3", False)])
def test_beside_others_that_wait_already_all_begin_to_wait_or_none(cpu, waits):
    """Those others are to be asked first."""
    desk = Desk().feed(node("n", "4"), group("g", 1), *(pod(f"g-{i}", "g", cpu=cpu) for i in range(2)), pod("h", "g"))
    session, known = holding(desk, "g-0", "g-1")
    session.reserved["another"] = desk.task("h")
    assert reservations.apply(session, known) is waits
    assert [desk.task(f"g-{i}").status == Status.PIPELINED for i in range(2)] == [waits, waits]
    del session.reserved["another"]
    if not waits:
        assert reservations.apply(session, known) is True
        assert [desk.task(f"g-{i}").status == Status.PIPELINED for i in range(2)] == [True, False]


class Refusing(Plugin):
    """Lets no pod of a name be placed."""

    name = "refusing"

    def open(self, session):
        session.add_handler(
            lambda run, sign: "not this one" if sign > 0 and run.tasks[0].name == "g-1" else None, may_refuse=True
        )


def test_whom_a_plugin_refuses_takes_no_room_from_those_after_it():
    desk = Desk('actions: "allocate"\ntiers:\n- plugins: [{name: gang}, {name: refusing}]\n', Refusing)
    desk.feed(node("n", "3"), group("g", 1), *(pod(f"g-{i}", "g", cpu="1") for i in range(5)))
    session, known = holding(desk, *(f"g-{i}" for i in range(5)))
    reservations.put_back(session, known, [desk.task(f"g-{i}") for i in range(5)])
    assert [task.name for task in session.reserved.values()] == ["g-0", "g-2", "g-3"]
    assert list(session.statements.evicted_for) == list(session.reserved)


def test_nobody_waits_on_a_node_that_is_gone_though_others_are_there_still():
    desk = Desk().feed(node("m"), node("n"), group("g", 1), pod("old", "g", node="n", cpu="1"), pod("g-0", "g")).apply()
    desk.delete(node("n")).apply()
    session, known = holding(desk, "g-0")
    reservations.put_back(session, known, [desk.task("g-0")])
    assert desk.task("g-0").status == Status.PENDING


@pytest.mark.parametrize(
    ("made", "holds"),
    [
        (pod("p", "g", cpu="1"), True),
        (pod("p", "g", cpu="1", schedulingGates=[{"name": "example/wait"}]), False),
        (pod("p", "unknown", cpu="1"), False),
        (pod("p", "", cpu="1"), False),
    ],
    ids=["usual", "gated", "without its group", "without a group"],
)
def test_room_is_held_for_who_can_be_placed(made, holds):
    desk = Desk().feed(node("n"), group("g", 1), made)
    session, known = holding(desk, "p")
    reservations.apply(session, known)
    assert (desk.task("p").status == Status.PIPELINED) is holds


def test_only_who_waits_by_a_reservation_is_lifted_in_the_order_of_uids_and_who_rests_is_asked_to_speak():
    desk = Desk().feed(node("n"), node("m"), group("g", 1), *(pod(f"g-{i}", "g", cpu="1") for i in (3, 2, 1, 0)))
    session, known = holding(desk, "g-1", "g-2", "g-3")
    tasks = [desk.task(f"g-{i}") for i in range(4)]
    reservations.put_back(session, known, tasks)
    session.statement().pipeline([tasks[0]], [desk.node("n")])
    session.reserved["long bound"] = tasks[0]
    session.statements.release(tasks[1])
    said = []
    session.resting_holders[tasks[3].uid] = said.append
    lifted = reservations.lift(session, tasks[0].job)
    assert [task.name for task in lifted] == ["g-2", "g-3"]
    assert said == [tasks[0].job]
    assert session.resting_holders == {}
    assert set(session.reserved) == {"long bound", tasks[1].uid}
    session.statement().pipeline([tasks[2]], [desk.node("m")])
    reservations.hold_again(session, known, lifted)
    assert set(session.reserved) == {"long bound", *(task.uid for task in tasks[1:])}
    assert [task.node.name for task in tasks[2:]] == ["m", "n"]


@pytest.mark.parametrize(
    ("state", "compatibility", "holds"), [("Open", "", True), ("Closed", "", False), ("Closed", "volcano", True)]
)
def test_a_queue_that_starts_nothing_new_holds_no_room(state, compatibility, holds):
    text = 'actions: "allocate"\ntiers:\n- plugins: [{name: gang}]\n'
    desk = Desk(text + (f"compatibility: {compatibility}\n" if compatibility else ""))
    desk.feed(node("n"), queue("q", state=state), group("g", 1, queue="q"), pod("g-0", "g", cpu="1")).apply()
    known, task = Reservations(), desk.task("g-0")
    known.holds[task.uid] = Hold("n", clear_since=NOW - SECOND, patience=5 * SECOND)
    engine = desk.scheduler.engine
    session = engine.open(desk.cache.record, desk.cache, number=1, now=NOW, reserved=known)
    assert (task.uid in session.reserved) is holds
    assert (task.uid in known.holds) is holds
    assert session.wake == (NOW + 4 * SECOND if holds else None)
