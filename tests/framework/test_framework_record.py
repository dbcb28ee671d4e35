"""The decision record: what was said last about a job, and in which cycle."""

from __future__ import annotations

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
