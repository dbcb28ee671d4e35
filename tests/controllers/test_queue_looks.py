"""One look at a queue, case by case: what orders do to it, what its parent does, and what is written and told of that."""

from __future__ import annotations

import pytest
from volcano_worlds import command, group, queue

from builders import NOW, SECOND, stamp
from pumice.api import kinds, names, timestamp
from pumice.controllers.queueing import requests
from pumice.controllers.queueing.observed import Observed
from pumice.controllers.volcano.queues import orders, states
from pumice.controllers.volcano.queues.controlling import Queues

AT = NOW + 100 * SECOND
UNTIL = 164 * SECOND


def order(action, until=AT + UNTIL, uid="u-c"):
    return f"{action} {timestamp.format_timestamp(until)} {uid}"


def made(name="q", state="Open", parent="above", *, ordered="", mark="", **metadata):
    """Make a queue in a state; nothing is said of a state that is empty."""
    annotations = {names.QUEUE_ORDER: ordered} if ordered else {}
    annotations |= {names.CLOSED_BY_PARENT: mark} if mark else {}
    found = queue(name, parent, status={"state": state} if state else {})
    found["metadata"] |= {"uid": f"u-{name}", "annotations": annotations, **metadata}
    return found


def ordering(action, name="c", target="q", second=0):
    found = command(name, action, target)
    found["metadata"] |= {"uid": f"u-{name}", "creationTimestamp": stamp(second)}
    return found


def looked(*queues, commands=(), groups=(), name="q", at=AT):
    observed = Observed()
    for kind, listed in ((kinds.QUEUE, queues), (kinds.COMMAND, commands), (kinds.POD_GROUP, groups)):
        for each in listed:
            observed.feed(kind, "ADDED", each)
    return Queues().reconcile("", name, observed, requests.Moment(at))


def done(plan):
    """Give what is written: a state, annotations, a parent, or the name of what is deleted."""
    found = []
    for request in (step.request for step in plan.steps):
        if isinstance(request, requests.Apply):
            found.append(request.body["status"]["state"])
        elif isinstance(request, requests.Delete):
            found.append(f"-{request.name}")
        else:
            found.append(request.body.get("metadata", {}).get("annotations", request.body.get("spec")))
    return found


ORDER, MARK = names.QUEUE_ORDER, names.CLOSED_BY_PARENT
OPEN_ABOVE, SHUT_ABOVE = made("above", "Open", "root"), made("above", "Closed", "root")
INSIDE = [group("g", "q")]


@pytest.mark.parametrize(
    ("below", "above", "groups", "written"),
    [
        # what it is ordered to do
        (made(ordered=order("CloseQueue")), OPEN_ABOVE, [], ["Closed", {ORDER: None}]),
        (made(ordered=order("CloseQueue")), OPEN_ABOVE, INSIDE, ["Closing", {ORDER: None}]),
        (made(state="Closed", ordered=order("CloseQueue")), OPEN_ABOVE, [], [{ORDER: None}]),
        (made(state="Closed", ordered=order("OpenQueue")), OPEN_ABOVE, [], ["Open", {ORDER: None, MARK: "false"}]),
        (made(ordered=order("OpenQueue")), OPEN_ABOVE, [], [{ORDER: None, MARK: "false"}]),
        # a mark that would undo it goes
        (
            made(ordered=order("CloseQueue"), mark="true"),
            OPEN_ABOVE,
            [],
            ["Closed", {ORDER: None, MARK: "false"}],
        ),
        (made(ordered=order("CloseQueue"), mark="true"), SHUT_ABOVE, [], ["Closed", {ORDER: None}]),
        (made(mark="true"), OPEN_ABOVE, [], [{MARK: "false"}]),
        # what its parent does to it
        (made(), SHUT_ABOVE, [], [{MARK: "true"}, "Closed"]),
        (made(), SHUT_ABOVE, INSIDE, [{MARK: "true"}, "Closing"]),
        (made(state="Closed"), SHUT_ABOVE, [], []),
        (made(state="Closed", mark="true"), SHUT_ABOVE, [], []),
        (made(state="Closed", mark="true"), OPEN_ABOVE, [], ["Open", {MARK: "false"}]),
        (made(state="Closed"), OPEN_ABOVE, [], []),
        # what it does by itself
        (made(state="Closing"), OPEN_ABOVE, INSIDE, []),
        (made(state="Closing"), OPEN_ABOVE, [], ["Closed"]),
        (made(state=""), OPEN_ABOVE, [], ["Open"]),
        (made(), OPEN_ABOVE, INSIDE, []),
    ],
)
def test_a_queue_does_what_it_is_ordered_to_then_what_its_parent_does(below, above, groups, written):
    plan = looked(below, above, groups=groups)
    assert done(plan) == written
    assert (plan.notes, plan.again) == ([], None)


@pytest.mark.parametrize(
    ("state", "ordered", "refused", "said"),
    [
        ("Open", "CloseQueue", ("CloseQueue", "Close queue failed: "), ("CloseQueue", "Close queue succeed")),
        ("Closed", "OpenQueue", ("OpenQueue", "Open queue failed: "), None),
        ("Closing", "", ("CloseQueue", "Close queue failed: "), None),
    ],
)
def test_a_state_that_is_reached_or_refused_is_told_of(state, ordered, refused, said):
    plan = looked(made(state=state, ordered=order(ordered) if ordered else ""), OPEN_ABOVE)
    (step,) = [each for each in plan.steps if isinstance(each.request, requests.Apply)]
    assert (step.refused, step.said) == (refused, said)


@pytest.mark.parametrize(
    ("above", "why"), [([SHUT_ABOVE], "its parent above is Closed"), ([], "its parent above does not exist")]
)
def test_an_order_to_open_below_a_parent_that_is_not_open_stands_until_it_is_given_up(above, why):
    below = made(state="Closed", ordered=order("OpenQueue"))
    before = looked(below, *above)
    assert (done(before), before.again) == ([], AT + (UNTIL if above else 30 * SECOND))
    after = looked(below, *above, at=AT + UNTIL)
    assert done(after) == [{ORDER: None}]
    assert after.notes == [("Warning", "OpenQueue", f"Open queue failed: {why}; open that first")]


def test_a_queue_whose_parent_is_not_there_looks_for_it_every_half_minute():
    plan = looked(made())
    assert (done(plan), plan.again) == ([], AT + 30 * SECOND)


@pytest.mark.parametrize("parent", [None, "", 5])
def test_a_queue_that_names_no_parent_is_given_the_root(parent):
    below = made(parent=None)
    below["spec"] = {} if parent is None else {"parent": parent}
    root = made("root", "Open", None)
    assert states.parent_of(below) == "root"
    written = done(looked(below, root))
    assert written == ([{"parent": "root"}] if not parent else [])
    assert done(looked(below, root, name="root")) == []


# ---- Commands


@pytest.mark.parametrize(
    ("standing", "written"),
    [
        ("", [{ORDER: order("CloseQueue")}, "-c"]),
        (order("CloseQueue"), ["-c"]),
        (order("OpenQueue", uid="u-old"), ["Open", {ORDER: None, MARK: "false"}]),  # first come, first served
        ("CloseQueue soon u-c", [{ORDER: order("CloseQueue")}, "-c"]),
        ("CloseQueue 2026-01-01T00:00:00Z", [{ORDER: order("CloseQueue")}, "-c"]),
        ("SyncQueue 2026-01-01T00:00:00Z u-c", [{ORDER: order("CloseQueue")}, "-c"]),
    ],
)
def test_a_command_is_taken_down_and_deleted_before_it_is_carried_out(standing, written):
    below = made(state="Closed" if "Open" in standing else "Open", ordered=standing)
    assert done(looked(below, OPEN_ABOVE, commands=[ordering("CloseQueue")])) == written


@pytest.mark.parametrize(
    ("action", "reason", "told"),
    [
        ("Sync", "Sync", "Command c: Sync is nothing that a queue can do; it is OpenQueue or CloseQueue"),
        ("", "SyncQueue", "Command c:  is nothing that a queue can do; it is OpenQueue or CloseQueue"),
    ],
)
def test_a_command_that_makes_no_sense_is_deleted_with_a_warning(action, reason, told):
    plan = looked(made(), OPEN_ABOVE, commands=[ordering(action)])
    assert (done(plan), plan.notes) == (["-c"], [("Warning", reason, told)])


@pytest.mark.parametrize(("action", "taken"), [("CloseQueue", False), ("OpenQueue", True)])
def test_the_root_can_be_opened_and_not_closed(action, taken):
    plan = looked(made("root", "Open", None), commands=[ordering(action, target="root")], name="root")
    assert done(plan) == ([{ORDER: order(action)}, "-c"] if taken else ["-c"])
    assert [reason for _, reason, _ in plan.notes] == ([] if taken else ["CloseQueue"])


@pytest.mark.parametrize(("second", "old"), [(90, True), (91, False)])
def test_a_command_for_no_queue_is_deleted_after_ten_seconds(second, old):
    plan = looked(commands=[ordering("OpenQueue", second=second)])
    assert (done(plan), plan.again) == ((["-c"], None) if old else ([], NOW + 101 * SECOND))


@pytest.mark.parametrize(
    ("kind", "change", "concerned"),
    [
        (kinds.POD_GROUP, group("g", "closing"), ["closing"]),
        (kinds.POD_GROUP, group("g", "open"), []),
        (kinds.POD_GROUP, group("g", "nowhere"), []),
        (kinds.POD_GROUP, group("g", None), []),
        (kinds.COMMAND, ordering("OpenQueue", target="open"), ["open"]),
        (kinds.COMMAND, command("c", "AbortJob", "j", kind=kinds.JOB), []),
        (kinds.QUEUE, made("closing", "Closed"), ["open"]),
        (kinds.QUEUE, made("closing", "Open"), []),
    ],
)
def test_a_change_concerns_queues_that_wait_for_it(kind, change, concerned):
    observed = Observed()
    for each in (made("closing", "Closing"), made("open", "Open", "closing"), made("default", "Open")):
        observed.feed(kinds.QUEUE, "ADDED", each)
    assert [name for _, name in Queues().concerns(kind, change, observed)] == concerned


@pytest.mark.parametrize(("named", "found"), [("q", "q"), ("", "default"), (None, "default"), (5, "default")])
def test_a_group_that_names_no_queue_is_in_the_default_one(named, found):
    assert states.queue_of(group("g", named)) == found


def test_commands_wait_in_the_order_in_which_they_were_given():
    observed = Observed()
    for name, second in (("b", 2), ("a", 2), ("c", 1)):
        observed.feed(kinds.COMMAND, "ADDED", ordering("OpenQueue", name, second=second))
    assert [each["metadata"]["name"] for each in orders.waiting("q", observed)] == ["c", "a", "b"]
