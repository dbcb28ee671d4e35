"""Of which jobs there is something new to say at the end of a cycle, and which of them are told the same."""

from __future__ import annotations

import pytest

from builders import GANG, Desk, group, node, pod, priority_class, queue
from pumice.cache.options import Options
from pumice.framework import closing, standings


def news(made):
    """Decide a cycle, and name the jobs of which there is something new."""
    session = made.session()
    made.scheduler.engine.decide(session)
    found = [job.key for job, _ in standings.news(session)]
    session.rollback()
    return found


def scene():
    """A job that waits and one that runs, in a queue each, and some room that is being released."""
    made = Desk().feed(node("n1", "4"), node("n2", "4"), queue("q"), queue("r"))
    made.feed(group("waits", 1, queue="q", phase="Inqueue"), pod("w", "waits", cpu="9"))
    made.feed(group("runs", 1, queue="r", phase="Running"), pod("r", "runs", cpu="1", node="n1"))
    return made


NEWS = [
    ("nothing has changed", lambda made: None, []),
    ("the queue of one that waits is closed", lambda made: made.modify(queue("q", state="Closed")), ["a/waits"]),
    ("the queue of one that runs is closed", lambda made: made.modify(queue("r", state="Closed")), []),
    ("its pod asks for something else", lambda made: made.modify(pod("w", "waits", cpu="8")), ["a/waits"]),
    ("its group says something else", lambda made: made.modify(group("waits", 1, queue="q", phase="Inqueue", minResources={"cpu": "1"})), ["a/waits"]),
    ("a pod comes beside one that runs", lambda made: made.feed(pod("r2", "runs", cpu="1", node="n2")), ["a/runs"]),
    ("a node is large enough for one that waits, but full", lambda made: made.feed(node("n3", "9"), pod("x", cpu="9", node="n3", scheduler="else")), ["a/waits"]),
    ("a node is as small as the others", lambda made: made.feed(node("n3", "4")), ["a/waits"]),  # more nodes refuse it
    ("others take room", lambda made: made.feed(pod("x", cpu="1", node="n2", scheduler="else")), []),
    ("it may run on room that is being released", lambda made: made.feed(node("n3", "9"), pod("x", cpu="9", node="n3", scheduler="else", deleting=9)), ["a/waits"]),
]  # fmt: skip


@pytest.mark.parametrize(("happens", "found"), [row[1:] for row in NEWS], ids=[row[0] for row in NEWS])
def test_there_is_something_new_to_say_of_a_job_if_it_stands_otherwise_than_before(happens, found):
    made = scene()
    assert sorted(news(made)) == ["a/runs", "a/waits"]
    assert news(made) == []
    happens(made)
    assert news(made) == found
    assert news(made) == []


def test_that_one_waits_for_release_on_another_node_is_news():
    made = Desk().feed(node("n1", "4"), node("n2", "4"), group("g", 1, phase="Inqueue"), pod("g-0", "g", cpu="4"))
    made.feed(*(pod(f"x{i}", cpu="4", node=f"n{i}", scheduler="else", deleting=i == 1 and 9) for i in (1, 2)))
    assert news(made) == ["a/g"]
    assert news(made) == []
    made.delete(pod("x1", cpu="4"), node("n1")).modify(pod("x2", cpu="4", node="n2", scheduler="else", deleting=9))
    assert news(made) == ["a/g"]


def reports(made):
    """Give what is reported of each job in a cycle, and whether two are told by one report."""
    session = made.session()
    made.scheduler.engine.decide(session)
    found = {job.name: report for job, report in closing.report(session)}
    session.rollback()
    return found


def test_jobs_that_run_alike_are_told_the_same_and_those_that_wait_each_its_own():
    made = Desk().feed(node("n1", "64", "64Gi"), queue("q"))
    for name, where in (("a", "default"), ("b", "default"), ("c", "q")):
        made.feed(group(name, 1, queue=where, phase="Running"), pod(f"{name}-0", name, cpu="1", node="n1"))
    made.feed(group("two", 2, phase="Running"), *(pod(f"two-{i}", "two", cpu="1", node="n1") for i in range(2)))
    made.feed(group("role", 1, minTaskMember={"r": 1}, phase="Running"), pod("role-0", "role", role="r", node="n1"))
    made.feed(group("cpu", 1, phase="Inqueue"), pod("cpu-0", "cpu", cpu="99"))
    made.feed(group("memory", 1, phase="Inqueue"), pod("memory-0", "memory", memory="99Gi"))
    found = reports(made)
    assert found["a"] is found["b"]
    assert all(found[name] is not found["a"] for name in ("c", "two", "role"))
    assert ("cpu" in found["cpu"].warning, "memory" in found["memory"].warning) == (True, True)
    assert found["cpu"].warning != found["memory"].warning


def test_of_jobs_that_have_as_many_of_each_kind_one_whose_pod_leaves_its_node_is_told_apart_from_one_whose_pod_had_none():
    made = Desk(GANG.replace(", {name: gang}", "")).feed(node("n1", "64"))
    for name, place in (("a", {"node": "n1"}), ("b", {})):
        made.feed(group(name, 2, phase="Running"), pod(f"{name}-0", name, cpu="1", node="n1"))
        made.feed(pod(f"{name}-1", name, cpu="1", deleting=9, **place))
    found = reports(made)
    assert {name: report.status.phase for name, report in found.items()} == {"a": "Running", "b": "Pending"}


def test_that_a_queue_goes_on_to_close_and_that_one_of_a_group_without_pods_closes_is_news():
    made = Desk().feed(queue("q"), group("empty", 3, queue="q", phase="Pending"), group("let-in", 3, queue="q"))
    made.feed(node("n1"), group("waits", 1, queue="q", phase="Inqueue"), pod("w", "waits", cpu="99"))
    news(made)
    for state in ("Closing", "Closed", "Open"):
        assert "a/waits" in news(made.modify(queue("q", state=state)))
        assert news(made) == []


def test_where_somebody_follows_numbers_those_in_the_reason_count_and_how_full_nodes_are():
    text = GANG.replace("{name: predicates}", "{name: predicates}, {name: proportion}")
    made = Desk(text).feed(node("n1", "4"), queue("q", capability={"cpu": "2"}))
    made.feed(group("g", 1, queue="q", phase="Inqueue"), pod("g-0", "g", cpu="9"))
    made.cache.record.figures = {}
    found = []
    for change in (None, None, pod("x", cpu="1", node="n1", scheduler="else"), None):
        session = (made if change is None else made.modify(change)).session()
        made.scheduler.engine.decide(session)
        standings.news(session)
        found.append([job.key for job in session.findings.figures])
        session.rollback()
    assert found == [[], [], ["a/g"], []]


def said_of_group(made, name):
    """Return what was written of a group while it waits."""
    patches = [each.body["status"]["conditions"] for each in made.world.patches("PodGroup") if each.name == name]
    return [each["message"] for found in patches for each in found if each["type"] == "Unschedulable"]


def test_numbers_of_what_is_said_of_a_job_as_a_whole_are_written_anew_though_nothing_else_has_changed():
    text = GANG.replace("{name: predicates}", "{name: predicates}, {name: proportion}")
    made = Desk(text, options=Options(renews_numbers=True)).feed(node("n1", "4"))
    made.feed(queue("q", capability={"cpu": "2"}), group("g", 1, queue="q", minResources={"cpu": "9"}))
    for number, most in enumerate((2, 2, 3, 3)):
        made.modify(queue("q", capability={"cpu": str(most)})).feed(group(f"late{number}", 1)).cycle(400)
    assert [text.rpartition(", ")[2] for text in said_of_group(made, "g")] == ["limit 2", "limit 3"]


def test_that_one_of_the_pods_is_gone_that_are_waited_for_is_news():
    made = Desk(
        'actions: "allocate, preempt"\ntiers:\n- plugins: [{name: priority}, {name: gang}, {name: predicates}]\n'
    )
    made.feed(priority_class("low", 1), priority_class("high", 9), node("n", "4"))
    made.feed(group("old", 0, phase="Running", priorityClassName="low"))
    made.feed(*(pod(name, "old", cpu="2", node="n") for name in ("left", "right")))
    made.feed(group("g", 1, phase="Inqueue", priorityClassName="high"), pod("g-0", "g", cpu="4")).cycle(20)
    made.delete(pod("left", "old", cpu="2", node="n")).cycle()
    told = [[name for name in ("left", "right") if name in text] for text in said_of_group(made, "g")]
    assert told == [["left", "right"], ["right"]]
