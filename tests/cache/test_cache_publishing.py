"""What a cycle found out is told to whom it concerns: once, all that is wrong in one event, and nothing of a group that exists for nobody."""

from __future__ import annotations

import pytest

from builders import Desk, group, node, pod, queue
from pumice.api import kinds
from pumice.cache.effects import Note


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
