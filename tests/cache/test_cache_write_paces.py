"""However fast cycles follow each other, so much is written and no more; and what had to wait is written in the end."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders import NOW, SECOND, Desk, group, node, pod, queue
from drawing import drawn
from pumice.api import names
from pumice.cache import mirror
from pumice.cache.budgets import Budget, Spending
from pumice.cache.effects import Bind, Note, Patch
from pumice.cache.options import Options
from pumice.cache.write_paces import BEING_BOUND, LET_IN, REASONS, UNAWAITED

FULL = """
actions: "enqueue, allocate, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}]
- plugins: [{name: predicates}, {name: proportion}, {name: nodeorder}]
"""


@given(st.integers(1, 5), st.integers(1, 50), st.lists(st.integers(0, 40), max_size=60))
def test_a_budget_is_never_exceeded_and_never_withheld(burst, pause, gaps):
    spending, now, taken = Spending(Budget(burst, pause)), 0, []
    for gap in gaps:
        now += gap
        due = spending.next("x", now)
        if spending.take("x", now):
            assert due == now
            taken.append(now)
        else:
            assert due > now
    for first, start in enumerate(taken):
        for count, end in enumerate(taken[first:], start=1):
            assert count <= burst + (end - start) / pause


def test_what_is_remembered_of_budgets_is_bounded():
    spending = Spending(Budget(1, SECOND), memory=10)
    for number in range(100):
        assert spending.take(str(number), NOW)
    assert len(spending) == 10


def test_who_spent_least_recently_is_forgotten_first():
    spending = Spending(Budget(2, SECOND), memory=2)
    for name in ("a", "b", "a", "c"):
        assert spending.take(name, NOW)
    assert not spending.take("a", NOW)
    assert [spending.take("b", NOW) for _ in range(3)] == [True, True, False]


def test_only_a_budget_that_is_whole_again_is_forgotten():
    spending = Spending(Budget(1, SECOND))
    assert spending.take("early", NOW)
    assert spending.take("late", NOW + SECOND // 2)
    spending.tidy(NOW + SECOND)
    assert len(spending) == 1
    assert not spending.take("late", NOW + SECOND)


def queue_writes(made, name="default"):
    return [patch for patch in made.world.patches("Queue") if patch.name == name]


def test_a_queue_is_written_once_a_second_and_its_last_state_without_another_cycle():
    made = Desk().feed(node("n1", cpu="100", pods="500"))
    for number in range(20):  # twenty cycles in a second, each of them with something new for the queue
        made.feed(group(f"g{number}", 1), pod(f"p{number}", f"g{number}", cpu="1", node="n1"))
        made.cycle(seconds=0.05)
    assert len(queue_writes(made)) == 1
    made.now = NOW + SECOND
    assert made.cache.next_wake() == NOW + SECOND
    made.apply()
    assert len(queue_writes(made)) == 2
    assert queue_writes(made)[-1].body["status"]["allocated"]["cpu"] == "20"


def flapping(cycles, seconds, **options):
    """Writes about a pod whose reason changes with every cycle, and the desk."""
    made = Desk(options=Options(**options)).feed(node("n1"), group("g", 1), pod("p", "g", cpu="2", memory="2Gi"))
    for number in range(cycles):
        made.modify(node("n1", cpu="1") if number % 2 else node("n1", memory="1Gi"))
        made.cycle(seconds=seconds)
    return made


def test_faster_cycles_do_not_write_more_reasons():
    slow, fast = flapping(60, 1), flapping(600, 0.1)
    assert len(fast.world.patches("Pod")) == len(slow.world.patches("Pod")) == REASONS.burst
    assert len(fast.world.patches("PodGroup")) <= REASONS.burst + 1


def test_a_reason_that_had_to_wait_is_given_in_the_end():
    made = flapping(11, 1)
    before = len(made.world.patches("Pod"))
    made.now = made.cache.next_wake()
    made.cycle()
    last = made.world.patches("Pod")[before:]
    assert [patch.body["status"]["conditions"][0]["message"] for patch in last] == [
        "no node has 2Gi memory at all: the largest of 1, n1, has 1Gi; 0/1 nodes are unavailable: 1 Insufficient memory."
    ]
    for _ in range(5):
        made.cycle()
    assert len(made.world.patches("Pod")) == before + 1


def test_a_reason_of_a_group_that_had_to_wait_is_given_in_the_end_where_pods_give_none():
    made = flapping(12, 1, pod_reasons=False)
    before = len(made.world.patches("PodGroup"))
    made.now = made.cache.next_wake()
    made.cycle()
    (last,) = made.world.patches("PodGroup")[before:]
    assert "no node has 2 cpu at all" in last.body["status"]["conditions"][0]["message"]
    assert made.cache.next_wake() is None


def test_a_reason_that_was_given_needs_not_stand_again():
    made = Desk(options=Options(reason_patience=SECOND)).feed(node("n1", cpu="1"), group("g"), pod("p", "g", cpu="2"))
    for _ in range(4):
        made.cycle(seconds=2)
    assert made.cache.next_wake() is None
    mirror.report_again(made.cache, made.cluster.jobs["a/g"])
    made.cycle()
    assert made.cache.next_wake() is None


def waiting_desk(*, written_by=None):
    """A full queue with pods that wait; with another desk, as they stand after what that one wrote."""
    made = Desk(FULL).feed(queue("q", capability={"cpu": "2"}), node("n1", cpu="64", pods="500"))
    patches = written_by.world.patches("Pod") if written_by else []
    conditions = {patch.name: patch.body["status"]["conditions"] for patch in patches}
    patches = written_by.world.patches("PodGroup") if written_by else []
    statuses = {patch.name: patch.body["status"] for patch in patches}
    for number in range(40):
        listed = group(f"g{number}", 1, queue="q")
        listed["status"] = statuses.get(f"g{number}", {"phase": "Inqueue"})
        manifest = pod(f"p{number}", f"g{number}", cpu="1", node="n1" if number < 2 else "")
        manifest["status"]["conditions"] = conditions.get(f"p{number}", [])
        made.feed(listed, manifest)
    return made


def test_after_a_restart_what_is_written_already_is_not_written_again_though_the_numbers_are_others():
    first = waiting_desk()
    first.cycle()
    first.cycle()
    assert len(first.world.patches("Pod")) == 38
    second = waiting_desk(written_by=first)
    second.feed(*(pod(f"late-{n}", "g0", cpu="1") for n in range(5)))
    for _ in range(3):
        second.cycle()
    assert {patch.name for patch in second.world.patches("Pod")} == {f"late-{n}" for n in range(5)}
    told = {note.name for note in second.world.of(Note) if note.reason == names.EVENT_FAILED_SCHEDULING}
    assert told == {f"late-{n}" for n in range(5)}
    assert {patch.name for patch in second.world.patches("PodGroup")} <= {"g0", "g1"}


def test_plugins_that_take_turns_in_refusing_a_group_are_each_told_once():
    made = Desk().feed(group("g", 1))
    job = made.session().cluster.jobs["a/g"]
    for number in range(10):
        for reasons in (("cpu", "memory"), ("memory",)):
            session = made.session()
            session.findings.notices += [(job, f"{each} {number} short") for each in reasons]
            made.cache.publish(session)
    assert [note[2] for note in made.world.notes] == ["cpu 0 short", "memory 0 short"]


# ---- reasons that stand for a moment only


def arriving(sizes, gap, *, missing=0, cpu="1"):
    """Gangs whose pods come one by one with a cycle after each, as many at the end of each gang missing as is said; patience is a second."""
    made = Desk(FULL, options=Options(reason_patience=SECOND)).feed(node("n1", cpu="1000", pods="500"))
    for number, size in enumerate(sizes):
        made.feed(group(f"g{number}", size)).cycle(seconds=gap)
        for index in range(size - missing):
            made.feed(pod(f"p{number}-{index}", f"g{number}", cpu=cpu)).cycle(seconds=gap)
    return made


def sleep(made, seconds):
    """Let time pass as the process does: from one moment at which something is due to the next."""
    end = made.now + int(seconds * SECOND)
    while (due := made.cache.next_wake()) is not None and due <= end:
        made.now = max(made.now, due)
        made.cycle(seconds=0.01)
    made.now = max(made.now, end)


def warnings(made):
    return [note for note in made.world.of(Note) if note.type == "Warning"]


@settings(max_examples=drawn(50))
@given(st.lists(st.integers(1, 8), min_size=1, max_size=4), st.floats(0.001, 0.1))
def test_gangs_that_arrive_pod_by_pod_within_a_second_say_nothing_of_their_waiting(sizes, gap):
    made = arriving(sizes, gap)
    sleep(made, 15)
    assert len(made.world.of(Bind)) == sum(sizes)
    assert made.world.patches("Pod") == []
    assert warnings(made) == []
    assert made.cache.publisher.next_wake() is None


@given(st.lists(st.integers(2, 6), min_size=1, max_size=4), st.floats(0.001, 0.07))
def test_gangs_that_stay_incomplete_say_so_once_and_not_before_a_second(sizes, gap):
    made = arriving(sizes, gap, missing=1)
    came, end = {}, made.now
    for number, size in enumerate(sizes):
        steps = sum(sizes[:number])  # cycles before the group came
        came.update({f"p{number}-{index}": NOW + int((steps + 1 + index) * gap * SECOND) for index in range(size - 1)})
    early = {name for name, at in came.items() if end < at + SECOND}
    assert not early & {patch.name for patch in made.world.patches("Pod")}
    sleep(made, 10)
    assert sorted(patch.name for patch in made.world.patches("Pod")) == sorted(came)
    told = sorted(note.name for note in warnings(made) if note.reason == names.EVENT_FAILED_SCHEDULING)
    assert told == sorted(came)
    about_groups = [note.name for note in warnings(made) if note.reason == names.EVENT_UNSCHEDULABLE]
    assert sorted(about_groups) == [f"g{number}" for number in range(len(sizes))]
    assert made.cache.publisher.next_wake() is None


def test_a_reason_that_went_away_in_time_is_not_given_and_the_next_one_waits_anew():
    made = Desk(FULL, options=Options(reason_patience=SECOND)).feed(node("n1", cpu="1"), group("g", 1))
    made.feed(pod("p", "g", cpu="2")).cycle(seconds=0.9)
    made.modify(node("n1", cpu="4")).cycle(seconds=0.2)
    assert [bind.name for bind in made.world.of(Bind)] == ["p"]
    sleep(made, 5)
    assert made.world.patches("Pod") == []
    made.feed(group("h", 1), pod("q", "h", cpu="64"))
    made.cycle(seconds=0.9)
    made.cycle(seconds=0.05)
    assert made.world.patches("Pod") == []
    sleep(made, 1)
    assert [patch.name for patch in made.world.patches("Pod")] == ["q"]


def test_who_had_a_node_meanwhile_waits_anew_until_its_next_reason_is_given():
    made = Desk(FULL, options=Options(reason_patience=SECOND)).feed(node("n1", cpu="1"), group("g", 1))
    made.feed(pod("p", "g", cpu="2")).cycle(seconds=0.5)
    made.modify(node("n1", cpu="4")).cycle(seconds=1)
    (bind,) = made.world.of(Bind)
    made.cycle(seconds=1)
    made.settle(bind, "refused", "not there").modify(node("n1", cpu="1")).cycle(seconds=0.1)
    made.cycle(seconds=0.1)
    reasons = [patch.body["status"]["conditions"][0]["reason"] for patch in made.world.patches("Pod")]
    assert reasons == [names.REASON_SCHEDULER_ERROR]
    sleep(made, 2)
    reasons = [patch.body["status"]["conditions"][0]["reason"] for patch in made.world.patches("Pod")]
    assert reasons == [names.REASON_SCHEDULER_ERROR, names.REASON_UNSCHEDULABLE]


# ---- groups that are written once their pods are bound


def phases(made):
    """Return the phases that were written of each group."""
    written = {}
    for patch in made.world.patches("PodGroup"):
        written.setdefault(patch.name, []).append(patch.body["status"]["phase"])
    return written


@settings(max_examples=drawn(50))
@given(st.data())
def test_a_group_whose_pods_come_with_it_is_written_once_when_they_are_bound_or_after_ten_seconds(data):
    made = Desk(FULL, options=Options(reason_patience=SECOND)).feed(node("n1", cpu="1000", pods="500"))
    sizes = data.draw(st.lists(st.integers(1, 5), min_size=1, max_size=5), label="sizes")
    pods = {}
    for number, size in enumerate(sizes):
        pods |= {f"p{number}-{index}": pod(f"p{number}-{index}", f"g{number}", cpu="1") for index in range(size)}
        made.feed(group(f"g{number}", size))
    start = made.now
    made.feed(*pods.values()).cycle(seconds=0.01)
    binds = data.draw(st.permutations(made.world.of(Bind)), label="order")
    assert len(binds) == sum(sizes)
    seen, written = {}, {}  # when the last pod of a group was seen bound, and when the group was written
    for bind in binds:
        sleep(made, data.draw(st.sampled_from([0.01, 0.2, 3.0]), label="answered after"))
        made.settle(bind).modify({**pods[bind.name], "spec": {**pods[bind.name]["spec"], "nodeName": bind.node}})
        seen[f"g{bind.name[1 : bind.name.index('-')]}"] = made.now
        made.cycle(seconds=0.01)
        for name in phases(made).keys() - written.keys():
            written[name] = made.now
    sleep(made, 15)
    for name, told in phases(made).items():
        late = seen[name] - start >= BEING_BOUND
        assert told == (["Inqueue", "Running"] if late else ["Running"]), name
        assert late or written[name] - seen[name] <= SECOND // 50
    assert made.cache.publisher.next_wake() is None


def owned(manifest, *, controller=True):
    """Return a group that belongs to a Job, which makes its pods once the group is let in if it is the controller."""
    job = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "j", "uid": "j", "controller": controller}
    return {**manifest, "metadata": {**manifest["metadata"], "ownerReferences": [job]}}


@given(st.sampled_from([0.0, 0.05, 0.3]), st.booleans(), st.booleans())
def test_a_group_that_is_let_in_and_not_bound_says_so_at_once_if_its_controller_is_to_make_its_pods(
    gap, has_pods, has_controller
):
    limit = LET_IN if has_controller and not has_pods else UNAWAITED
    made = Desk(FULL, options=Options(reason_patience=SECOND))
    made.feed(node("n1", cpu="1"), owned(group("g", 2), controller=has_controller))
    if has_pods:
        made.feed(pod("p", "g", cpu="1"), pod("q", "g", cpu="1"))
    made.cycle(seconds=gap)
    came = made.now - int(gap * SECOND)
    assert phases(made) == {}
    if (early := limit / SECOND - gap - 0.02) > 0:
        sleep(made, early)
        assert phases(made) == {}
    sleep(made, 0.05)
    assert phases(made) == {"g": ["Inqueue"]}
    assert made.cluster.jobs["a/g"].phase == "Inqueue"
    assert made.now - came <= 3 * limit + gap * SECOND


@pytest.mark.parametrize("controller", [False, True])
@pytest.mark.parametrize(("pods", "room"), [(0, 2), (1, 2), (2, 2), (2, 1)])
def test_nobody_waits_for_the_status_of_a_group_that_has_pods_or_no_controller(pods, room, controller):
    made = Desk(FULL, options=Options(reason_patience=SECOND))
    made.feed(node("n1", cpu=str(room)), owned(group("g", 2), controller=controller))
    made.feed(*(pod(f"p{number}", "g", cpu="1") for number in range(pods)))
    for _ in range(3):
        made.cycle(seconds=0.01)
        sleep(made, 15)
    told = [patch for patch in made.world.of(Patch) if patch.kind.name == "PodGroup"]
    assert told
    assert all(patch.reports == (pods > 0 or not controller) for patch in told)


def test_groups_that_stand_alike_wait_each_by_its_own_controller():
    made = Desk(FULL, options=Options(reason_patience=SECOND))
    made.feed(node("n1"), group("a", 2), owned(group("b", 2)), group("c", 2)).cycle(seconds=0.01)
    sleep(made, 0.3)
    assert phases(made) == {"b": ["Inqueue"]}
    sleep(made, 1)
    assert phases(made) == {name: ["Inqueue"] for name in "abc"}


def test_a_status_that_is_read_while_ours_waits_is_older():
    made = Desk(FULL, options=Options(reason_patience=SECOND)).feed(node("n1", cpu="1"), group("g", 2))
    made.cycle(seconds=0.01)
    made.modify(group("g", 2, annotations={"somebody": "else"})).cycle(seconds=0.01)
    assert made.cluster.jobs["a/g"].phase == "Inqueue"
    sleep(made, 2)
    assert phases(made) == {"g": ["Inqueue"]}


def test_nothing_is_owed_to_a_group_that_is_gone():
    made = Desk(FULL, options=Options(reason_patience=SECOND)).feed(node("n1", cpu="1"), group("g", 2))
    made.cycle(seconds=0.01)
    made.delete(group("g", 2)).cycle(seconds=0.01)
    sleep(made, 2)
    assert phases(made) == {}
    assert made.cache.publisher.next_wake() is None
