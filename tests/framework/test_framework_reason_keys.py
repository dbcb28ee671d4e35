"""What is told changes with its reason, never with its numbers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.framework import reasons, standings
from pumice.framework.reason_keys import cause, has_other_numbers, is_general, is_news, joined, parted, reason_key

WAITS = "pod group is not ready, 3 Pending, 3 minAvailable; Pending: 3 Unschedulable"
UNAVAILABLE = "0/3 nodes are unavailable: 3 Insufficient cpu."

SAME = [
    ("how long somebody would be delayed", "would delay a/g-1, planned for 00:01:40, by 1h30m", "would delay a/g-1, planned for 00:02:10, by 2h1s"),
    ("numbers", "pods 0 of 161", "pods 4 of 9"),
    ("quantities", "allocated cpu 500m of 2, memory 1Gi of 1.5Gi deserved", "allocated cpu 1 of 2, memory 0 of 8Gi deserved"),
    ("lists that are sorted by number", "0/3 nodes: 1 a b, 2 c d.", "0/9 nodes: 3 c d, 6 a b."),
    ("which node a member would get", "Pod a/p can possibly be assigned to n1, once x", "Pod a/p can possibly be assigned to n-7.b, once x"),
    ("which member speaks for the others", f"{WAITS}. Origin reason is p-1: no room", f"{WAITS}. Origin reason is p-2: no room"),
    ("which node is the freest", f"no node has 4 cpu free: the freest of 4, n-2, has 1 cpu; {UNAVAILABLE}", f"no node that it may use has 2 cpu free: the freest of 3, a.b, has 500m cpu; {UNAVAILABLE}"),
    ("how many would go before", f"room for 2 of the 3 pods it needs, then no node has 5 cpu free; {UNAVAILABLE}", f"no node has 5 cpu free: the freest of 2, n1, has 1 cpu; {UNAVAILABLE}"),
    ("whose taint is the first", f"all 2 nodes have taints that it does not tolerate, such as a=b:NoSchedule on n1; {UNAVAILABLE}", f"all 3 nodes have taints that it does not tolerate, such as c:NoExecute on n2; {UNAVAILABLE}"),
    ("who has not gone yet", "waits for pods evicted for it to go: a/p, a/q; Pod a/g can possibly be assigned to n1, once x", "waits for pods evicted for it to go: a/q; Pod a/g can possibly be assigned to n1, once x"),
    ("how many members are in which status", WAITS, "pod group is not ready, 1 Running, 2 Pending, 3 minAvailable; Pending: 1 Schedulable, 1 Unschedulable"),
]  # fmt: skip

OTHER = [
    ("another resource", "0/3 nodes: 3 Insufficient cpu.", "0/3 nodes: 3 Insufficient memory."),
    ("one reason more", "0/3 nodes: 3 Insufficient cpu.", "0/3 nodes: 2 Insufficient cpu, 1 Too many pods."),
    ("another queue", "queue q1: full", "queue q2: full"),
    ("another name", "quota team-1 has no room", "quota team-2 has no room"),
    ("another hyper-node", "rack-1 is empty", "rack-2 is empty"),
    ("ready or not", WAITS, WAITS.replace("not ready", "ready")),
    ("another cause", f"no node has 4 cpu free: the freest of 4, n-2, has 1 cpu; {UNAVAILABLE}", f"no node has 4 cpu at all: the largest of 4, n-2, has 1; {UNAVAILABLE}"),
    ("another label", f"no node has the label a=b that its nodeSelector asks for; {UNAVAILABLE}", f"no node has the label a=c that its nodeSelector asks for; {UNAVAILABLE}"),
    ("a cause where there was none", UNAVAILABLE, f"no node has 4 cpu free; {UNAVAILABLE}"),
    ("another origin", f"{WAITS}. Origin reason is p: no room", f"{WAITS}. Origin reason is p: no node"),
]  # fmt: skip


@pytest.mark.parametrize(("case", "left", "right"), SAME, ids=[case for case, _, _ in SAME])
def test_numbers_and_names_of_the_moment_are_no_news(case, left, right):
    assert reason_key(left) == reason_key(right)
    assert not is_news(left, right)


@pytest.mark.parametrize(("case", "left", "right"), OTHER, ids=[case for case, _, _ in OTHER])
def test_another_reason_is_news(case, left, right):
    assert is_news(left, right)
    assert is_news(right, left)


def test_a_sum_without_a_reason_does_not_take_the_place_of_a_reason():
    reason = "0/3 nodes are unavailable: 3 Insufficient cpu."
    assert is_general(WAITS)
    assert not is_news(reason, WAITS)
    assert is_news(WAITS, reason)
    assert is_news("", WAITS)


TEXTS = st.lists(
    st.sampled_from(["Insufficient cpu", "node(s) had taint a: b", "Too many pods"]), min_size=1, unique=True
)


@given(TEXTS, st.lists(st.integers(1, 10**9), min_size=6, max_size=6))
def test_a_summary_over_nodes_has_one_key_for_each_set_of_reasons(texts, numbers):
    left = reasons.summary(numbers[0] + 9, zip(texts, numbers[:3], strict=False))
    right = reasons.summary(numbers[1] + 9, zip(texts, numbers[3:], strict=False))
    assert reason_key(str(left)) == reason_key(str(right))
    if len(texts) > 1:
        assert reason_key(str(left)) != reason_key(str(reasons.summary(9, [(texts[0], 1)])))


def test_by_how_much_a_job_would_delay_another_is_no_news_and_whom_it_would_delay_is():
    first, later, other = (
        standings.essence(reasons.FitSummary(0, (), f"would delay a/{name}, planned for 00:01, by {length}"))
        for name, length in (("g-1", "59s"), ("g-1", "1h1m"), ("g-2", "59s"))
    )
    assert first == later != other


PARTED = [
    ("it waits for b; queue q: full", ("it waits for b", "queue q: full")),
    (f"no node has 4 cpu free; {UNAVAILABLE}", ("no node has 4 cpu free", UNAVAILABLE)),
    (f"no room; 1/3 tasks in gang unschedulable: {WAITS}", ("no room", f"1/3 tasks in gang unschedulable: {WAITS}")),
    (f"no room; {WAITS}", ("no room", WAITS)),
    (UNAVAILABLE, ("", UNAVAILABLE)),
    ("a; b", ("", "a; b")),
]


@pytest.mark.parametrize(("text", "parts"), PARTED)
def test_a_text_is_a_cause_and_a_summary_behind_it(text, parts):
    assert parted(text) == parts
    assert joined(*parts) == text


def test_a_summary_that_begins_with_its_cause_says_it_once():
    assert joined("queue q: full", "queue q: full; more") == "queue q: full; more"
    assert joined("", "queue q: full") == "queue q: full"


CAUSES = [
    (f"no room; {WAITS}. Origin reason is p: no cpu", "no room"),
    (f"{WAITS}. Origin reason is p: no cpu", f"{WAITS.partition(':')[0]}: p: no cpu"),
    (f"1/3 tasks in gang unschedulable: {WAITS}. Origin reason is p: no cpu", "1/3 tasks in gang unschedulable: p: no cpu"),
    (UNAVAILABLE, UNAVAILABLE),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), CAUSES)
def test_the_cause_is_what_a_text_begins_with_or_what_it_gives_as_the_origin_or_all_of_it(text, expected):
    assert cause(text) == expected


GENERAL = [
    (WAITS, True),
    (WAITS.replace("not ready", "ready"), True),
    (f"{WAITS}. Origin reason is p: no cpu", False),
    (f"{WAITS}. It waits for pods that are evicted for it: a/p", False),
    (UNAVAILABLE, False),
    ("", False),
]


@pytest.mark.parametrize(("text", "general"), GENERAL)
def test_a_text_that_sums_a_group_up_and_gives_no_reason_is_general(text, general):
    assert is_general(text) is general


NEWS = [
    ("the same", UNAVAILABLE, UNAVAILABLE, False),
    ("the first words", "", "", False),
    ("a cause is no longer told", f"no room; {UNAVAILABLE}", UNAVAILABLE, True),
    ("nor is a reason", f"no room; {UNAVAILABLE}", WAITS, False),
    ("a cause that comes to words without one", WAITS, f"no room; {WAITS}", True),
    ("one sum after the other", WAITS, WAITS.replace("not ready", "ready"), True),
    ("a sum behind the same cause", f"no room; {UNAVAILABLE}", f"no room; {WAITS}", False),
    ("a reason behind the same cause", f"no room; {WAITS}", f"no room; {UNAVAILABLE}", True),
    ("the same in other numbers", UNAVAILABLE, UNAVAILABLE.replace("3", "9"), False),
]


@pytest.mark.parametrize(("case", "said", "text", "news"), NEWS, ids=[row[0] for row in NEWS])
def test_another_cause_or_another_summary_that_gives_a_reason_is_news(case, said, text, news):
    assert is_news(said, text) is news


def test_the_same_reason_in_other_numbers_is_told_from_the_very_same_words():
    assert has_other_numbers(UNAVAILABLE, UNAVAILABLE.replace("3", "9"))
    assert not has_other_numbers(UNAVAILABLE, UNAVAILABLE)
    assert not has_other_numbers(UNAVAILABLE, WAITS)
