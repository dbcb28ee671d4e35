"""Queues that are opened and closed, in trees, by people and by their parents, under controllers that are cut off and killed."""

from __future__ import annotations

import random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from volcano_worlds import VolcanoWorld, command, group, killed_anywhere, queue

from drawing import drawn
from pumice.api import duration, kinds, names
from pumice.controllers.queueing.observed import Observed
from pumice.controllers.queueing.requests import Delete, Moment
from pumice.controllers.volcano.queues import group_counts, states
from pumice.controllers.volcano.queues.controlling import Queues

LIVELY = settings(max_examples=drawn(60), deadline=None, suppress_health_check=[HealthCheck.too_slow])


def make():
    return [Queues()]


def tree(parents):
    """Make a world with root and queues q0, q1 …, each below the one of the given number, -1 being root."""
    world = VolcanoWorld(make)
    world.create(queue("root"))
    for place, parent in enumerate(parents):
        world.create(queue(f"q{place}", f"q{parent}" if parent >= 0 else None))
    world.settle()
    return world


def state(world, name):
    return world.get(kinds.QUEUE, name)["status"]["state"]


def mark(world, name):
    return world.get(kinds.QUEUE, name)["metadata"].get("annotations", {}).get(names.CLOSED_BY_PARENT)


class Model:
    """The rules of api.md 3.2 in plain recursion."""

    def __init__(self, parents):
        self.parents = parents
        self.states = ["Open"] * len(parents)
        self.marks = [False] * len(parents)
        self.groups = [0] * len(parents)

    def children(self, place):
        return [child for child, parent in enumerate(self.parents) if parent == place]

    def close(self, place, *, by_parent=False):
        if self.states[place] == "Open":
            self.states[place] = "Closing" if self.groups[place] else "Closed"
            self.marks[place] = by_parent
        for child in self.children(place):
            if self.states[child] == "Open":
                self.close(child, by_parent=True)

    def open(self, place):
        parent = self.parents[place]
        if parent >= 0 and self.states[parent] != "Open":
            return
        self.states[place], self.marks[place] = "Open", False
        for child in self.children(place):
            if self.marks[child]:
                self.open(child)

    def change(self, place, by):
        self.groups[place] += by
        if self.states[place] == "Closing" and not self.groups[place]:
            self.states[place] = "Closed"


trees = st.lists(st.integers(-1, 4), max_size=6).map(
    lambda drawn: [parent if parent < place else -1 for place, parent in enumerate(drawn)]
)
ACTIONS = ("close", "open", "open", "add", "remove")


@LIVELY
@given(trees, st.integers(0, 2**32), st.integers(1, 14), st.sampled_from(("", "lost", "away")), st.booleans())
def test_whatever_is_ordered_of_a_tree_of_queues_ends_as_the_rules_say(parents, number, length, fault, restarts):
    parents = parents or [-1]
    rng = random.Random(number)  # noqa: S311  tells a life again
    world, model = tree(parents), Model(parents)
    plain, count = world.perform, [0]

    def perform(request, _=""):
        count[0] += 1
        return plain(request, fault if count[0] % 3 == 1 else "")

    world.perform = perform
    for turn in range(length):
        place, action = rng.randrange(len(parents)), rng.choice(ACTIONS)
        if action in ("close", "open"):
            world.create(command(f"c{turn}", f"{action.title()}Queue", f"q{place}", rng.choice(("a", "b"))))
            getattr(model, action)(place)
        elif action == "add":
            world.create(group(f"g{turn}", f"q{place}"))
            model.change(place, 1)
        elif model.groups[place]:
            held = [each for each in world.store.scan(kinds.POD_GROUP) if each["spec"]["queue"] == f"q{place}"]
            world.delete(kinds.POD_GROUP, rng.choice(held)["metadata"]["name"])
            model.change(place, -1)
        if restarts:
            world.restart()
        world.settle()
        assert [state(world, f"q{each}") for each in range(len(parents))] == model.states
        assert [mark(world, f"q{each}") == "true" for each in range(len(parents))] == model.marks
    assert not world.complaints
    _check_end(world, parents)


@LIVELY
@given(trees, st.integers(0, 2**32), st.integers(0, 80))
def test_however_orders_groups_and_faults_come_no_open_queue_is_below_a_closed_one_and_no_order_is_lost(
    parents, number, length
):
    parents = parents or [-1]
    rng = random.Random(number)  # noqa: S311  tells a life again
    world, last = tree(parents), {}
    for turn in range(length):
        match rng.choice(
            ("deliver", "turn", "turn", "turn", "pass_time", "restart", "order", "order", "add", "remove")
        ):
            case "order":
                place, action = rng.randrange(len(parents)), rng.choice(("OpenQueue", "CloseQueue"))
                world.create(command(f"c{turn}", action, f"q{place}"))
                world.clock.advance(duration.SECOND)
                last[place] = action
            case "add":
                world.create(group(f"g{turn}", f"q{rng.randrange(len(parents))}"))
            case "remove":
                held = list(world.store.scan(kinds.POD_GROUP))
                if held:
                    world.delete(kinds.POD_GROUP, rng.choice(held)["metadata"]["name"])
            case "restart":
                world.restart()
            case event:
                getattr(world, event)(rng.randrange(10_000))
    world.settle()
    assert not world.complaints
    _check_end(world, parents)
    for place, parent in enumerate(parents):
        if parent == -1 and place in last:
            assert (state(world, f"q{place}") == "Open") == (last[place] == "OpenQueue")


def _check_end(world, parents):
    assert not list(world.store.scan(kinds.COMMAND))
    full = {each["spec"]["queue"] for each in world.store.scan(kinds.POD_GROUP)}
    for place, parent in enumerate(parents):
        name = f"q{place}"
        found = world.get(kinds.QUEUE, name)
        assert names.QUEUE_ORDER not in found["metadata"].get("annotations", {})
        assert found["spec"]["parent"] == (f"q{parent}" if parent >= 0 else "root")
        assert state(world, name) != "Closing" or name in full
        if parent >= 0 and state(world, f"q{parent}") != "Open":
            assert state(world, name) != "Open"
        if mark(world, name) == "true":
            assert state(world, name) != "Open"
            assert state(world, f"q{parent}") != "Open"


def test_a_controller_that_is_killed_between_any_two_requests_is_replaced_without_harm():
    def happen(world):
        world.create(group("g", "q1"))
        world.create(command("close", "CloseQueue", "q0"))
        world.settled()
        world.create(command("open", "OpenQueue", "q0"))
        world.settled()
        world.create(command("close-child", "CloseQueue", "q1"))
        world.settled()
        world.delete(kinds.POD_GROUP, "g")
        world.settled()

    world, ends = killed_anywhere(lambda: tree([-1, 0, 1]), happen)
    assert [state(world, f"q{place}") for place in range(3)] == ["Open", "Closed", "Closed"]
    assert len(ends) >= 20
    for number, performed, other in ends:
        assert other.everything() == world.everything(), (number, performed)


@pytest.mark.parametrize(
    ("given_state", "action", "groups", "ends"),
    [
        (None, None, 0, "Open"),
        (None, "CloseQueue", 0, "Closed"),
        (None, "CloseQueue", 2, "Closing"),
        ("Open", "OpenQueue", 1, "Open"),
        ("Open", "CloseQueue", 1, "Closing"),
        ("Closing", "OpenQueue", 1, "Open"),
        ("Closing", "CloseQueue", 0, "Closed"),
        ("Closing", None, 1, "Closing"),
        ("Closing", None, 0, "Closed"),
        ("Closed", "OpenQueue", 1, "Open"),
        ("Closed", "CloseQueue", 1, "Closed"),
        ("Closed", None, 1, "Closed"),
        ("Unknown", "OpenQueue", 1, "Open"),
        ("Unknown", "CloseQueue", 0, "Closed"),
        ("Unknown", "CloseQueue", 1, "Closing"),
        ("Unknown", None, 1, "Unknown"),
    ],
)
def test_states(given_state, action, groups, ends):
    world = VolcanoWorld(make)
    world.create(queue("root"))
    world.create(queue("q", status={"state": given_state} if given_state else {}))
    for number in range(groups):
        world.create(group(f"g{number}", "q"))
    if action:
        world.create(command("c", action, "q"))
    world.settle()
    assert state(world, "q") == ends
    assert state(world, "root") == "Open"


@pytest.mark.parametrize("marked", [False, True])
@pytest.mark.parametrize("child", ["Open", "Closing", "Closed"])
@pytest.mark.parametrize("parent", ["Open", "Closing", "Closed", "Strange"])
def test_a_parent_closes_its_children_with_it_and_opens_those_that_it_closed(parent, child, marked):
    annotations = {names.CLOSED_BY_PARENT: "true"} if marked else {}
    own = {"metadata": {"name": "q", "annotations": annotations}, "status": {"state": child}}
    above = {"metadata": {"name": "p"}, "status": {"state": parent}}
    expected = None
    if parent in ("Closing", "Closed") and child == "Open":
        expected = "CloseQueue"
    elif parent == "Open" and child != "Open" and marked:
        expected = "OpenQueue"
    assert states.wish_of_parent(own, above) == expected
    assert states.wish_of_parent(own, None) is None


@pytest.mark.parametrize(("ends", "concerned"), [("Open", []), ("Closing", ["child"]), ("Closed", ["child"])])
def test_a_queue_concerns_its_children_when_it_is_shut(ends, concerned):
    known = Observed()
    for each in (queue("p", status={"state": ends}), queue("child", "p"), queue("other")):
        known.feed(kinds.QUEUE, "ADDED", each)
    found = Queues().concerns(kinds.QUEUE, queue("p", status={"state": ends}), known)
    assert [name for _, name in found] == concerned


def test_nothing_is_written_when_nothing_has_changed():
    world = tree([-1, 0])
    before = world.store.resource_version, world.requests
    world.create(group("g", "q1"))
    world.patch(kinds.POD_GROUP, "g", {"status": {"phase": "Running"}})
    version = world.store.resource_version
    world.restart()
    world.settle()
    assert (world.store.resource_version, world.requests) == (version, before[1])


def test_a_queue_first_says_below_which_one_it_is():
    """Whatever else is refused of it then, sums follow the tree."""
    known = Observed()
    for each in (queue("root"), queue("q")):
        known.feed(kinds.QUEUE, "ADDED", each)
    steps = Queues().reconcile("", "q", known, Moment(0)).steps
    assert [each.request.body for each in steps] == [{"spec": {"parent": "root"}}, {"status": {"state": "Open"}}]


@pytest.mark.parametrize("action", ["AbortJob", "", 3, None])
def test_a_command_that_makes_no_sense_for_a_queue_is_deleted_and_told_of(action):
    world = tree([-1])
    world.create(command("c", action, "q0"))
    world.settle()
    assert state(world, "q0") == "Open"
    assert not list(world.store.scan(kinds.COMMAND))
    assert [note.type for note in world.notes if "is nothing that a queue can do" in note.message] == ["Warning"]


def test_commands_for_jobs_and_for_queues_that_do_not_exist():
    world = tree([-1])
    world.create(command("job", "AbortJob", "q0", kind=kinds.JOB))
    world.create(command("nobody", "CloseQueue", "none"))
    world.settle()
    assert [each["metadata"]["name"] for each in world.store.scan(kinds.COMMAND)] == ["job"]
    assert state(world, "q0") == "Open"


def test_groups_are_counted_by_queue_and_phase():
    observed = Observed()
    for name in ("q", "default"):
        observed.feed(kinds.QUEUE, "ADDED", queue(name))
    phases = [("q", "Running"), ("q", "Running"), ("q", ""), ("default", "Inqueue"), ("gone", "Running"), ("q", "Odd")]
    for number, (where, phase) in enumerate(phases):
        stated = {"status": {"phase": phase}} if phase else {}
        observed.feed(kinds.POD_GROUP, "ADDED", group(f"g{number}", where, **stated))
    none = dict.fromkeys(group_counts.PHASES, 0)
    assert group_counts.by_queue(observed) == {
        "q": {**none, "running": 2, "pending": 1},
        "default": {**none, "inqueue": 1},
    }


@pytest.mark.parametrize("standing", ["", "first", "second", "of one that is gone"])
def test_of_commands_that_wait_that_one_goes_first_which_stands_on_the_queue_already(standing):
    """One that stands there is not taken down again; while another one stands that is gone, none of them is."""
    made = queue("q", status={"state": "Closed"})
    if standing:
        made["metadata"]["annotations"] = {names.QUEUE_ORDER: f"CloseQueue 2026-01-01T01:00:00Z {standing}"}
    known = Observed()
    for each in (queue("root", status={"state": "Open"}), made):
        known.feed(kinds.QUEUE, "ADDED", each)
    for place, uid in enumerate(("first", "second")):
        each = command(uid, "CloseQueue", "q")
        each["metadata"] |= {"uid": uid, "creationTimestamp": f"2026-01-01T00:00:0{place}Z"}
        known.feed(kinds.COMMAND, "ADDED", each)
    found = Queues().reconcile("", "q", known, Moment(1_767_225_700_000_000))
    deleted = [each.request.name for each in found.steps if isinstance(each.request, Delete)]
    written = [each for each in found.steps if not isinstance(each.request, Delete)]
    assert deleted == {"": ["first"], "of one that is gone": []}.get(standing, [standing])
    assert bool(written) is (standing in {"", "of one that is gone"})
