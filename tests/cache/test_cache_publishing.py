"""What a cycle found out is told to whom it concerns: once, all that is wrong in one event, and nothing of a group that exists for nobody."""

from __future__ import annotations

import pytest

from builders import SECOND, Desk, group, node, pod, queue
from pumice.api import kinds
from pumice.cache.effects import Note
from pumice.cache.options import Options
from pumice.cache.write_paces import REASONS


def notes(desk, reason):
    return [(each.kind, each.name, each.type, each.message) for each in desk.world.of(Note) if each.reason == reason]


def test_all_that_is_wrong_with_a_group_is_one_event_and_told_once():
    desk = Desk().feed(group("g"), group("h"))
    session, jobs = desk.session(), desk.cluster.jobs
    for key, message in (("a/g", "one"), ("a/h", "other"), ("a/g", "two"), ("a/g", "one")):
        session.findings.warn(jobs[key], message)
    for _ in range(2):
        desk.cache.publish(session)
    told = [("g", "Warning", "one; two"), ("h", "Warning", "other")]
    assert notes(desk, "InvalidSpec") == [(kinds.POD_GROUP, *each) for each in told]


@pytest.mark.parametrize("made", ["shadow", "none"])
def test_what_is_wrong_with_a_group_that_exists_for_nobody_is_not_told(made):
    desk = Desk()
    desk.cache.follow(kube_batch=made == "shadow", now=desk.now)
    session = desk.feed(pod("p", "" if made == "shadow" else "g", cpu="1")).session()
    session.findings.warn(desk.task("p").job, "wrong")
    desk.cache.publish(session)
    assert desk.scheduler.failures == []
    assert notes(desk, "InvalidSpec") == []


@pytest.mark.parametrize("kind", [kinds.QUEUE, kinds.INCUBATOR_QUEUE])
def test_what_is_wrong_with_a_queue_is_told_once_under_the_kind_it_was_read_in(kind):
    desk = Desk().feed({**queue("q"), "apiVersion": kind.api_version})
    session = desk.session()
    session.findings.warn_queue(desk.cluster.queues["q"], "TooMuch", "it asks for too much")
    for _ in range(2):
        desk.cache.publish(session)
    assert notes(desk, "TooMuch") == [(kind, "q", "Warning", "it asks for too much")]


@pytest.mark.parametrize("runs", [False, True])
def test_of_a_group_in_memory_nothing_is_written_and_how_it_stands_is_known(runs):
    desk = Desk()
    desk.cache.follow(kube_batch=True, now=desk.now)
    desk.feed(node("n1"), pod("p", cpu="1" if runs else "99")).cycle()
    if runs:
        desk.modify(pod("p", cpu="1", node="n1")).cycle()
    assert desk.scheduler.failures == []
    assert desk.world.patches("PodGroup") == []
    assert desk.task("p").job.status.phase == ("Running" if runs else "Inqueue")


def test_as_long_as_a_later_status_is_under_way_neither_an_answer_nor_a_failure_brings_back_an_older_one():
    for code in (None, "unavailable"):
        desk = Desk().feed(node("n1"), group("g"), pod("p", "g", cpu="9"))
        desk.cycle()
        desk.modify(pod("p", "g", cpu="9", node="n1")).cycle()
        first, second = desk.world.patches("PodGroup")
        assert (first.body["status"]["phase"], second.body["status"]["phase"]) == ("Inqueue", "Running")
        desk.modify(group("g", phase="Pending", annotations={"by": "others"}))
        desk.settle(first, code).cycle()
        assert desk.cluster.jobs["a/g"].status.phase == "Running"
        assert desk.world.patches("PodGroup") == [first, second]


def test_the_record_names_a_status_that_could_not_be_written():
    desk = Desk().feed(node("n1"), group("g"), pod("p", "g", cpu="9"))
    desk.cycle()
    desk.settle(desk.world.patches("PodGroup")[0], "unavailable", "no such luck")
    assert "a/g: no such luck; it will be written again" in "\n".join(desk.cycle().trace())


@pytest.mark.parametrize(("mode", "shown"), [("", "hard"), ("hard", "hard"), ("soft", "soft")])
def test_a_wish_that_nobody_heeds_is_told_with_its_mode(mode, shown):
    desk = Desk().feed(node("n1"), group("g", networkTopology={"mode": mode} if mode else {}), pod("p", "g", cpu="1"))
    desk.cycle()
    said = [message for *_, message in notes(desk, "SettingHasNoEffect")]
    assert [text.partition(" is not heeded")[0] for text in said] == [f"spec.networkTopology ({shown})"]


def test_a_queue_in_place_of_one_that_is_gone_is_written_at_once_and_not_for_its_sake():
    desk = Desk().feed(node("n1"), group("g", queue="q"), pod("p", "g", cpu="1", node="n1"), queue("q"))
    desk.cycle(seconds=0)
    (first,) = [each for each in desk.world.patches("Queue") if each.name == "q"]
    desk.settle(first, "unavailable").settle(first, "unavailable").apply()
    assert desk.cache.publisher.next_wake() is not None
    desk.delete(queue("q")).apply()
    assert desk.cache.publisher.next_wake() is None
    desk.feed({**queue("q"), "metadata": {**queue("q")["metadata"], "uid": "another"}}).cycle(seconds=0)
    written = [each for each in desk.world.patches("Queue") if each.name == "q"]
    assert [each.body for each in written] == [first.body] * 2


def full(**options):
    """A desk at which a group waits for room, where reasons may have to stand for a while."""
    desk = Desk(options=Options(queue_statuses=False, pod_reasons=False, **options))
    return desk.feed(node("n1", cpu="2"), pod("x", cpu="1", node="n1"), group("g"), pod("p", "g", cpu="2"))


def cordon(desk, *, on):
    """Change the reason why the group waits."""
    return desk.modify(node("n1", cpu="2", cordoned=on)).cycle(seconds=0)


def warnings(desk):
    told = notes(desk, "Unschedulable")
    return [message for kind, _, type_, message in told if (kind, type_) == (kinds.POD_GROUP, "Warning")]


@pytest.mark.parametrize(("type_", "said"), [("Unschedulable", True), ("Another", False)])
def test_a_group_whose_condition_gives_the_reason_already_is_not_warned_after_a_restart(type_, said):
    before, after = full(), full()
    before.cycle()
    (patch,) = before.world.patches("PodGroup")
    (condition,) = patch.body["status"]["conditions"]
    known = {**patch.body["status"], "conditions": [{**condition, "type": type_}]}
    after.modify({**group("g"), "status": known}).cycle()
    assert warnings(after) == ([] if said else warnings(before))
    assert warnings(before) == [condition["message"]]


def test_a_group_that_is_let_in_is_not_warned_before_the_reason_has_stood():
    desk = full(reason_patience=SECOND)
    for told in (0, 1, 1):
        desk.cycle()
        assert len(warnings(desk)) == told


@pytest.mark.parametrize("end", ["the old reason", "it runs", "it is gone"])
def test_a_reason_that_is_over_before_it_has_stood_is_not_due_any_more(end):
    desk = full(reason_patience=SECOND)
    for _ in range(3):
        desk.cycle()
    publisher = desk.cache.publisher
    assert (len(warnings(desk)), publisher.next_wake()) == (1, None)
    cordon(desk, on=True)
    assert publisher.next_wake() == desk.now + SECOND
    match end:
        case "the old reason":
            desk.modify(node("n1", cpu="2"))
        case "it runs":
            desk.modify(pod("p", "g", cpu="2", node="n1"))
        case _:
            desk.delete(group("g"), pod("p", "g"))
    desk.cycle(seconds=0)
    assert publisher.next_wake() is None
    assert len(warnings(desk)) == 1


def test_a_group_in_place_of_one_that_was_told_much_is_told_at_once():
    desk = full()
    for number in range(2 * REASONS.burst):
        cordon(desk, on=bool(number % 2))
    told = len(desk.world.patches("PodGroup"))
    assert REASONS.burst <= told <= REASONS.burst + 1
    another = {**group("g"), "metadata": {**group("g")["metadata"], "uid": "another"}}
    desk.delete(group("g")).feed(another).cycle(seconds=0)
    for number in range(2):
        cordon(desk, on=bool(number))
    assert len(desk.world.patches("PodGroup")) == told + 3


def test_a_group_in_place_of_another_is_told_anew_why_it_is_kept_out():
    desk = Desk()
    for uid in ("one", "another"):
        desk.feed({**group("g"), "metadata": {**group("g")["metadata"], "uid": uid}})
        session = desk.session()
        for _ in range(2):
            session.findings.notice(desk.cluster.jobs["a/g"], "there is no room")
            desk.cache.publish(session)
        session.rollback()
        desk.delete(group("g")).apply()
    assert notes(desk, "Unschedulable") == [(kinds.POD_GROUP, "g", "Normal", "there is no room")] * 2


def test_a_nomination_that_is_over_makes_another_cycle_worth_while():
    nominated = pod("p", "g", cpu="1")
    nominated["status"]["nominatedNodeName"] = "n1"
    desk = Desk().feed(node("n1"), group("g", phase="Inqueue"), nominated)
    session, task = desk.session(), desk.task("p")
    for over in (False, True):
        session.reservations.expired |= {task.uid: "n1"} if over else {}
        session.progressed = False
        desk.cache.publish(session)
        assert session.progressed is over
    assert task.nominated == ""
