"""Numbers in what is said of whoever waits are those of a while ago at most: they are written anew once a minute, a bounded number at a time, and not at all if they are the same."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import NOW, SECOND, Desk, group, node, pod, queue
from pumice.api import names
from pumice.cache import mirror
from pumice.cache.effects import Note
from pumice.cache.options import Options
from pumice.cache.renewals import AT_ONCE, GRID, WAIT, Renewals

WATCHED = Options(renews_numbers=True)
LIMITED = """
actions: "enqueue, allocate, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}]
- plugins: [{name: predicates}, {name: capacity}, {name: nodeorder}]
"""


@given(st.lists(st.tuples(st.integers(0, 3 * GRID), st.integers(0, 400)), max_size=40))
def test_names_are_due_a_minute_after_they_asked_or_later_and_never_too_many_at_once(steps):
    renewals, now, asked, told = Renewals(), NOW, {}, 0
    for gap, names_asking in steps:
        now += gap
        found = renewals.due(now)
        for name in found:
            assert now - asked.pop(name) >= WAIT
            assert renewals.may_write(name)
        told += len(found)
        renewals.is_over()
        for number in range(names_asking):
            renewals.ask(str(number), now)
            asked.setdefault(str(number), now)
        assert (renewals.next_wake() is None) == (not asked)
    while (due := renewals.next_wake()) is not None:
        assert due % GRID == 0
        found = renewals.due(due)
        assert 0 < len(found) <= AT_ONCE or due <= now
        for name in found:
            del asked[name]
    assert not asked


def test_whoever_asks_gets_the_next_place_and_each_is_filled():
    renewals = Renewals()
    for number in range(3 * AT_ONCE):
        renewals.ask(str(number), NOW)
    counts = []
    while (due := renewals.next_wake()) is not None:
        counts.append(len(renewals.due(due)))
    assert counts == [AT_ONCE] * 3


def written(made, name):
    """Return what was written of a group while it waits, in this order."""
    patches = [each.body["status"]["conditions"] for each in made.world.patches("PodGroup") if each.name == name]
    return [each for found in patches for each in found if each["type"] == names.CONDITION_UNSCHEDULABLE]


def condition_of(made, name):
    return written(made, name)[-1]


def said_on_pod(made, name):
    patches = [each.body["status"].get("conditions") for each in made.world.patches("Pod") if each.name == name]
    return [each[0]["message"].partition("; ")[0] for each in patches if each]


def told_of(made, name):
    return [note.message for note in made.world.of(Note) if note.name == name]


def sleep(made, seconds):
    """Let time pass as the process does: from one moment at which something is due to the next."""
    end = made.now + int(seconds * SECOND)
    while (due := made.cache.next_wake()) is not None and due <= end:
        made.now = max(made.now, due)
        made.cycle(seconds=0.01)
    made.now = max(made.now, end)


def full_nodes(*, free):
    """A gang of nine that finds room for as many as nodes are free."""
    made = Desk(options=WATCHED).feed(group("g", 9), *(pod(f"p{n}", "g", cpu="2") for n in range(9)))
    for number in range(9):
        made.feed(node(f"n{number}", cpu="2"), group(f"o{number}", 1))
        if number >= free:
            made.feed(pod(f"o{number}", f"o{number}", cpu="2", node=f"n{number}"))
    return made


def end_of(made, number):
    return made.delete(pod(f"o{number}", f"o{number}", cpu="2", node=f"n{number}"))


def test_a_group_whose_numbers_changed_says_so_after_a_minute_and_no_event_tells_of_it():
    made = full_nodes(free=1)
    made.cycle()
    assert made.cache.next_wake() is None
    (first,) = written(made, "g")
    assert first["message"].startswith("room for 1 of the 9 pods it needs, ")
    events = told_of(made, "g")
    for number in range(1, 7):
        end_of(made, number).cycle()
    assert len(written(made, "g")) == 1
    sleep(made, 80)
    _, second = written(made, "g")
    assert second["message"].startswith("room for 7 of the 9 pods it needs, ")
    assert {**first, "message": ""} == {**second, "message": ""}
    assert told_of(made, "g") == events
    assert made.cache.next_wake() is None


def test_numbers_that_change_all_the_time_are_written_once_a_minute():
    made = Desk(options=WATCHED).feed(node("n1", cpu="8"), group("o", 1), group("g", 1), pod("p", "g", cpu="8"))
    minutes, other = 10, pod("o", "o", cpu="4", node="n1")
    made.feed(other)
    for second in range(60 * minutes):
        made.delete(other)
        other = pod("o", "o", cpu=str(second % 6 + 1), node="n1")
        made.feed(other).cycle()
    assert minutes // 2 < len(written(made, "g")) <= minutes + 1
    assert minutes // 2 < len(said_on_pod(made, "p")) <= minutes + 1


def test_pods_say_how_near_the_freest_node_comes_by_now_and_keep_since_when_they_wait():
    made = Desk(options=WATCHED).feed(node("n1", cpu="8"), group("o", 1), group("g", 1), pod("p", "g", cpu="8"))
    made.feed(pod("o1", "o", cpu="4", node="n1"), pod("o2", "o", cpu="3", node="n1")).cycle()
    told = "no node has 8 cpu free: the freest of 1, n1, has {} cpu"
    assert said_on_pod(made, "p") == [told.format(1)]
    made.delete(pod("o2", "o", cpu="3", node="n1")).cycle()
    sleep(made, 80)
    assert said_on_pod(made, "p") == [told.format(1), told.format(4)]
    last = made.world.patches("Pod")[-1].body["status"]["conditions"][0]
    assert "lastTransitionTime" not in last
    assert condition_of(made, "g")["message"].startswith(told.format(4))


def test_what_a_queue_holds_is_written_anew_on_those_who_wait_for_it():
    made = Desk(LIMITED, options=WATCHED).feed(queue("q", capability={"cpu": "8"}), node("n1", cpu="64"))
    made.feed(group("o", 1, queue="q"), *(pod(f"o{n}", "o", cpu="2", node="n1") for n in range(4)))
    made.feed(group("g", 1, queue="q", phase="Inqueue"), pod("p", "g", cpu="8")).cycle()
    assert "holds 8" in condition_of(made, "g")["message"]
    made.delete(pod("o3", "o", cpu="2", node="n1")).cycle()
    sleep(made, 80)
    assert "holds 6" in condition_of(made, "g")["message"]


@pytest.mark.parametrize("minutes", [0, 1, 100])
def test_nothing_is_written_and_nobody_wakes_where_nothing_changes(minutes):
    made = full_nodes(free=1)
    for _ in range(3):
        made.cycle()
    writes = len(made.world.effects)
    for _ in range(minutes):
        made.now += WAIT
        made.cycle()
    assert made.cache.next_wake() is None
    assert len(made.world.effects) == writes


def test_of_many_who_wait_a_hundred_are_written_in_ten_seconds():
    many = 3 * AT_ONCE // 2
    made = Desk(options=WATCHED).feed(node("n1", cpu="8", pods="500"), group("o", 1))
    made.feed(pod("o1", "o", cpu="4", node="n1"), pod("o2", "o", cpu="3", node="n1"))
    for number in range(many):
        made.feed(group(f"g{number}", 1), pod(f"p{number}", f"g{number}", cpu="8"))
    made.cycle()
    made.delete(pod("o2", "o", cpu="3", node="n1")).cycle()
    found, before = [], len(made.world.patches("PodGroup"))
    while (due := made.cache.next_wake()) is not None:
        made.now = due
        made.cycle(seconds=0)
        found.append(len(made.world.patches("PodGroup")) - before)
        before += found[-1]
    assert [count for count in found if count] == [AT_ONCE, many - AT_ONCE]


def test_who_starts_or_goes_before_its_turn_is_written_no_more():
    made = full_nodes(free=1)
    made.cycle()
    end_of(made, 1).cycle()
    assert made.cache.next_wake() is not None
    made.delete(group("g", 9), *(pod(f"p{n}", "g", cpu="2") for n in range(9))).cycle()
    assert made.cache.next_wake() is None


def test_where_nobody_looks_numbers_are_left_as_they_are():
    made = Desk().feed(node("n1", cpu="8"), group("o", 1), group("g", 1), pod("p", "g", cpu="8"))
    made.feed(pod("o1", "o", cpu="4", node="n1"), pod("o2", "o", cpu="3", node="n1")).cycle()
    made.delete(pod("o2", "o", cpu="3", node="n1")).cycle()
    assert made.cache.next_wake() is None


def test_where_nobody_looks_numbers_are_left_as_they_are_though_the_group_is_looked_at_again():
    made = Desk().feed(node("n1", cpu="4"), group("o", 1), *(pod(f"o{n}", "o", cpu="1", node="n1") for n in range(3)))
    made.feed(group("g", 1), pod("p", "g", cpu="4")).cycle()
    made.delete(pod("o0", "o")).feed(pod("q", "g", cpu="4")).cycle()
    assert made.cache.next_wake() is None


def test_what_a_queue_holds_is_written_anew_on_a_gang_of_unequal_pods_too():
    made = Desk(LIMITED, options=WATCHED).feed(queue("q", capability={"cpu": "9"}), node("n1", cpu="64"))
    made.feed(group("o", 1, queue="q"), *(pod(f"o{n}", "o", cpu="2", node="n1") for n in range(4)))
    made.feed(group("g", 2, queue="q", phase="Inqueue"), pod("p", "g", cpu="5"), pod("r", "g", cpu="4")).cycle()
    assert "holds 8" in condition_of(made, "g")["message"]
    made.delete(pod("o3", "o", cpu="2", node="n1")).cycle()
    assert "holds 8" in condition_of(made, "g")["message"]
    sleep(made, 80)
    assert "holds 6" in condition_of(made, "g")["message"]
    assert made.cache.next_wake() is None


def test_numbers_that_were_written_anew_are_not_written_again():
    made = full_nodes(free=1)
    made.cycle()
    end_of(made, 1).cycle()
    sleep(made, 80)
    before = len(made.world.effects)
    mirror.report_again(made.cache, made.cluster.jobs["a/g"])
    made.cycle()
    sleep(made, 200)
    assert len(made.world.effects) == before


def test_pods_that_are_reported_on_for_another_reason_have_their_numbers_written_anew_too():
    made = Desk(options=WATCHED).feed(
        node("n1", cpu="4"), group("o"), *(pod(f"o{n}", "o", cpu="1", node="n1") for n in range(3))
    )
    made.feed(group("g"), pod("p", "g", cpu="4")).cycle()
    made.delete(pod("o0", "o"))
    mirror.report_again(made.cache, made.apply().cluster.jobs["a/g"])
    made.cycle()
    sleep(made, 80)
    told = "no node has 4 cpu free: the freest of 1, n1, has {} cpu"
    assert said_on_pod(made, "p") == [told.format(1), told.format(2)]


def test_who_is_due_may_be_written_until_that_is_over_or_it_is_gone():
    renewals = Renewals()
    for name in "ab":
        renewals.ask(name, 0)
    assert not renewals.may_write("a")
    assert renewals.next_wake() == WAIT
    assert (renewals.due(WAIT - 1), renewals.due(WAIT), renewals.due(WAIT)) == ([], ["a", "b"], [])
    renewals.forget("b")
    assert (renewals.may_write("a"), renewals.may_write("b")) == (True, False)
    renewals.is_over()
    assert not renewals.may_write("a")
    assert renewals.next_wake() is None


def test_numbers_that_were_just_written_are_not_written_again_in_the_next_cycle():
    made = full_nodes(free=1)
    made.cycle()
    end_of(made, 1).cycle()
    sleep(made, 80)
    before = len(written(made, "g")), len(said_on_pod(made, "p0"))
    end_of(made, 2).cycle()
    assert (len(written(made, "g")), len(said_on_pod(made, "p0"))) == before
    sleep(made, 80)
    assert len(written(made, "g")) == before[0] + 1


def test_a_group_is_looked_at_when_the_time_of_one_of_its_pods_has_come_and_one_that_is_gone_harms_nobody():
    made = Desk(options=WATCHED).feed(node("n1"), group("g", 1), pod("p", "g", cpu="9"))
    made.cycle()
    renewals = made.cache.publisher.pods.renewals
    for uid in ("gone", made.task("p").uid):
        renewals.ask(uid, made.now)
    made.now = renewals.next_wake()
    assert list(made.apply().cluster.dirty_jobs) == ["a/g"]
    assert made.cache.failures == []
