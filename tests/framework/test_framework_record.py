"""The decision record: what was said last about a job, and in which cycle."""

from __future__ import annotations

import pytest

from builders import GANG, Desk, group, node, pod, settings
from pumice.cache.effects import Bind
from pumice.framework.record import TRACE_LIMIT, CycleRecord

NOBODY = "no pod may be evicted for it"


def test_what_is_said_again_in_a_later_cycle_is_of_that_cycle_though_the_words_are_the_same():
    record = CycleRecord()
    for cycle in (1, 2):
        record.begin(cycle, 0)
        record.judge(f"a/g{cycle}", "preempt", NOBODY)
    assert record.explain("a/g1") == f"  preempt (cycle 1): {NOBODY}"
    assert record.explain("a/g2") == f"  preempt (cycle 2): {NOBODY}"


def test_the_same_words_of_two_sources_stay_apart_and_can_be_taken_back_one_by_one():
    record = CycleRecord()
    record.begin(1, 0)
    for source in ("preempt", "reclaim"):
        for job in ("a/x", "a/y"):
            record.judge(job, source, NOBODY)
    record.acquit("a/x", "preempt")
    assert record.explain("a/x") == f"  reclaim (cycle 1): {NOBODY}"
    assert record.explain("a/y") == f"  preempt (cycle 1): {NOBODY}\n  reclaim (cycle 1): {NOBODY}"


def test_lines_beyond_the_limit_are_counted_whoever_says_them():
    record = CycleRecord()
    record.begin(1, 0)
    for i in range(TRACE_LIMIT + 2):
        record.judge(f"a/{i}", "allocate", "x")
    record.say("cycle", "y")
    assert record.trace()[-1] == "… and 3 more lines"
    assert len(record.trace()) == TRACE_LIMIT + 1


def test_nothing_is_counted_before_the_first_cycle_and_in_each_from_the_start():
    record = CycleRecord()
    assert (record.cycle, record.time, record.binds, record.evictions, record.skipped) == (0, 0, 0, 0, False)
    record.binds = record.evictions = 3
    record.skipped = True
    record.say("cycle", "x")
    record.begin(1, 7)
    assert (record.cycle, record.time, record.binds, record.evictions, record.skipped) == (1, 7, 0, 0, False)
    assert record.trace() == []
    assert [record.next_plan() for _ in range(3)] == [1, 2, 3]


def test_that_a_job_stands_as_it_did_is_no_news():
    record = CycleRecord()
    assert [record.is_news("a/x", how) for how in (1, 1, 2, 2, 1)] == [True, False, True, False, True]
    record.stands("a/x", 3)
    assert [record.is_news("a/x", 3), record.is_news("a/y", 3)] == [False, True]


def test_of_a_job_that_is_gone_nothing_is_known_but_its_bad_objects():
    record = CycleRecord(keeps_figures=True)
    record.begin(1, 0)
    for job in ("a/x", "a/y"):
        record.judge(job, "preempt", NOBODY)
        record.state(job, "waits")
        record.stands(job, 1)
        record.figures[job] = 1
        record.disable(job, "Pod a/p", "bad")
    record.judge("a/x", "reclaim", NOBODY)
    record.forget("a/x")
    assert record.explain("a/x") == "  Pod a/p: bad"
    assert record.explain("a/y") == f"a/y: waits\n  preempt (cycle 1): {NOBODY}\n  Pod a/p: bad"
    assert record.figures == {"a/y": 1}
    assert [record.is_news(job, 1) for job in ("a/x", "a/y")] == [True, False]
    record.judge("a/y", "reclaim", NOBODY)  # who comes later speaks later
    record.judge("a/y", "allocate", NOBODY)
    assert [verdict.source for verdict in record.verdicts("a/y")] == ["preempt", "reclaim", "allocate"]
    CycleRecord().forget("a/x")


def test_bad_objects_are_told_until_they_are_no_longer_bad():
    record = CycleRecord()
    record.begin(1, 0)
    for subject in ("Pod a/p", "Pod a/q"):
        record.disable("a/x", subject, "bad")
    assert record.problems("a/x") == {"Pod a/p": "bad", "Pod a/q": "bad"}
    assert record.trace() == ["cache: Pod a/p: bad", "cache: Pod a/q: bad"]
    record.enable("a/x", "Pod a/p")
    assert record.problems("a/x") == {"Pod a/q": "bad"}
    record.enable("a/x", "Pod a/q")
    record.enable("a/x", "Pod a/q")
    assert record.problems("a/x") == record.problems() == {}


def test_the_lines_of_a_job_are_those_that_are_about_it():
    record = CycleRecord()
    record.begin(1, 0)
    record.say("enqueue", "let in", "a/x")
    record.judge("a/y", "allocate", NOBODY)
    record.say("cycle", "done")
    assert record.lines("a/x") == [("enqueue", "let in")]
    assert record.lines("a/y") == [("allocate", NOBODY)]
    assert record.trace() == ["enqueue: a/x: let in", f"allocate: a/y: {NOBODY}", "cycle: done"]


PREEMPTING = GANG.replace("allocate", "allocate, preempt")


@pytest.mark.parametrize("again", [False, True])
def test_what_a_policy_said_of_a_job_is_true_no_more_under_another_unless_that_says_it_too(again):
    desk = Desk(PREEMPTING).feed(node("n1", "1"), group("g", phase="Inqueue"), pod("p", "g", cpu="2"))
    desk.cycle()
    assert {each.source for each in desk.cache.record.verdicts("a/g")} == {"allocate", "preempt"}
    desk.scheduler.reconfigure(settings(PREEMPTING if again else GANG)[0])
    desk.cycle()
    said = {each.source: each.cycle for each in desk.cache.record.verdicts("a/g")}
    assert said == ({"allocate": 2, "preempt": 2} if again else {"allocate": 2})


def test_a_bind_that_failed_is_still_told_under_another_policy():
    desk = Desk(GANG).feed(node("n1", "1"), group("g", phase="Inqueue"), pod("p", "g", cpu="1"))
    desk.cycle()
    desk.settle(desk.world.of(Bind)[-1], "refused").apply()
    desk.scheduler.reconfigure(settings(GANG)[0])
    assert [each.source for each in desk.cache.record.verdicts("a/g")] == ["bind"]
