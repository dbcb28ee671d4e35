from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drawing import drawn
from pumice.api import kinds
from pumice.cache import effects
from pumice.kube.writes import agenda
from pumice.model.volumes import VolumeDecision

CLAIM = VolumeDecision(namespace="a", claim="c", uid="u")


def effect(choice, name, number):
    match choice:
        case "bind":
            return effects.Bind(namespace="a", name=name, uid=str(number), node="n")
        case "volume":
            return effects.Bind(namespace="a", name=name, uid=str(number), node="n", volumes=(CLAIM,))
        case "patch":
            return effects.Patch(kind=kinds.POD, namespace="a", name=name, uid=str(number), body={})
        case "reason" | "nomination" | "end" | "other condition":
            return patch_of_pod(STATUSES[choice](number), name)
        case "running" | "group":
            status = {"phase": str(number), "conditions": [{"type": "Unschedulable", "message": str(number)}]}
            where = {"namespace": "a", "name": name, "uid": name}
            return effects.Patch(kind=kinds.POD_GROUP, **where, body={"status": status}, reports=choice == "running")
    return effects.Evict(namespace="a", name=name, uid=str(number), reason="")


def patch_of_pod(status, name):
    where = {"namespace": "a", "name": name, "uid": name, "subresource": "status"}
    return effects.Patch(kind=kinds.POD, **where, body={"status": status}, strategic=True, reports=True)


def waits(number):
    return {"conditions": [{"type": "PodScheduled", "status": "False", "message": str(number)}]}


STATUSES = {
    "reason": waits,
    "nomination": lambda number: {**waits(number), "nominatedNodeName": f"n{number}"},
    "end": lambda _: {"nominatedNodeName": None},
    "other condition": lambda number: {"conditions": [{"type": "Other", "message": str(number)}]},
}


STEP = st.one_of(
    st.tuples(st.sampled_from(["bind", "volume", "patch", "evict"]), st.sampled_from("pqr")),
    st.sampled_from(["take", "take_patient"]),
    st.integers(0, 5),
)


def work(plan, put, flying, step, numbers):
    """Do one step of a drawn run: queue an effect, take one, or end the n-th that is in flight."""
    if isinstance(step, tuple):
        queued = effect(*step, len(numbers))
        numbers.append(queued)
        put.setdefault(queued.name, []).append(queued)
        plan.put(queued)
    elif isinstance(step, str):
        taken = getattr(plan, step)()
        if taken is not None:
            assert all(other.name != taken.name for other in flying)
            flying.append(taken)
    elif step < len(flying):
        ended = flying.pop(step)
        assert put[ended.name].pop(0) is ended
        plan.done(ended)


@settings(max_examples=drawn(200))
@given(st.lists(STEP, max_size=60))
def test_effects_on_one_object_run_one_at_a_time_in_order_and_none_is_lost(steps):
    plan, put, flying, numbers = agenda.Agenda(), {}, [], []
    for step in steps:
        work(plan, put, flying, step, numbers)
    while any(put.values()):
        for step in ("take", "take_patient", 0):
            work(plan, put, flying, step, numbers)
    assert plan.waiting == 0
    assert plan.is_calm
    assert plan.on_offer == 0
    assert plan._behind == {}  # noqa: SLF001  memory that is given back shows nowhere else


@settings(max_examples=drawn(100))
@given(st.lists(STEP, max_size=40))
def test_clearing_gives_everything_that_is_not_in_flight(steps):
    plan, put, flying, numbers = agenda.Agenda(), {}, [], []
    for step in steps:
        work(plan, put, flying, step, numbers)
    cleared = list(plan.clear())
    assert len(cleared) + len(flying) == sum(map(len, put.values()))
    assert plan.waiting == 0


def test_one_in_four_is_a_patch_while_there_is_both():
    plan = agenda.Agenda()
    for n in range(20):
        plan.put(effect("bind", f"p{n}", n))
        plan.put(effect("patch", f"q{n}", n))
    taken = [type(plan.take()).__name__ for _ in range(16)]
    assert taken == ["Bind", "Bind", "Bind", "Patch"] * 4


# ---- patches that need not be sent any more

ON_POD = st.sampled_from(["reason", "nomination", "end", "other condition", "evict"])
ON_GROUP = st.sampled_from(["group", "running"])
WRITTEN = st.one_of(st.tuples(ON_POD, st.just("p")), st.tuples(ON_GROUP, st.just("g")), st.just("take"))


def state(performed):
    """What an API server has in the end, of one pod and one group."""
    made = {"conditions": {}, "nominated": None, "group": None}
    for each in performed:
        if isinstance(each, effects.Bind):
            made["conditions"]["PodScheduled"] = "True"
        elif isinstance(each, effects.Patch) and each.kind is kinds.POD:
            made["conditions"] |= {c["type"]: c["message"] for c in each.body["status"].get("conditions", ())}
            made["nominated"] = each.body["status"].get("nominatedNodeName", made["nominated"])
        elif isinstance(each, effects.Patch):
            made["group"] = each.body
    return made


@settings(max_examples=drawn(300))
@given(st.lists(WRITTEN, max_size=40), st.booleans())
def test_what_is_left_out_makes_no_difference_in_the_end(steps, bound):
    plan, all_of_them, performed, left_out = agenda.Agenda(), [], [], []
    if bound:
        steps = [*steps, ("bind", "p")]
    for number, step in enumerate(steps):
        if step == "take":
            if (taken := plan.take()) is not None:
                performed.append(taken)
                plan.done(taken)
        else:
            made = effect(*step, "p" if step[0] == "bind" else number)
            all_of_them.append(made)
            left_out += plan.put(made)
    while (taken := plan.take()) is not None:
        performed.append(taken)
        plan.done(taken)
    assert sorted(map(id, performed + left_out)) == sorted(map(id, all_of_them))
    assert plan.waiting == 0
    assert plan.on_offer == 0
    assert state(performed) == state(all_of_them)
    assert reports_taken_at_once(plan) == agenda.MOST_REPORTS


def reports_taken_at_once(plan):
    """Count how many reports are given to workers before one is done."""
    for number in range(agenda.MOST_REPORTS + 1):
        plan.put(effect("running", f"r{number}", number))
    return len(list(iter(plan.take, None)))


def test_a_status_that_takes_the_place_of_a_report_does_not_wait_for_calm():
    plan = agenda.Agenda()
    plan.put(effect("running", "g", 1))
    for number in range(6):
        plan.put(effect("evict", f"p{number}", number))
    status = effect("group", "g", 2)
    assert [each.reports for each in plan.put(status)] == [True]
    assert plan.on_offer == 7
    assert status in [plan.take() for _ in range(4)]


def test_a_report_that_takes_the_place_of_a_status_waits_for_calm():
    plan = agenda.Agenda()
    plan.put(effect("group", "g", 1))
    evictions = [effect("evict", f"p{number}", number) for number in range(6)]
    for each in evictions:
        plan.put(each)
    report = effect("running", "g", 2)
    assert [each.reports for each in plan.put(report)] == [False]
    assert [plan.take() for _ in range(7)] == [*evictions, None]
    for each in evictions:
        plan.done(each)
    assert plan.take() is report


def test_a_pod_that_is_bound_before_anybody_wrote_why_it_waits_costs_one_request():
    plan = agenda.Agenda()
    reasons = [effect("reason", "p", number) for number in range(3)]
    assert [each for reason in reasons for each in plan.put(reason)] == reasons[:2]
    bind = effect("bind", "p", "p")
    assert plan.put(bind) == reasons[2:]
    assert plan.take() is bind
    assert plan.take() is None


def test_a_reason_that_is_being_written_comes_before_the_bind():
    plan = agenda.Agenda()
    reason, bind = effect("reason", "p", 1), effect("bind", "p", "p")
    plan.put(reason)
    assert plan.take() is reason
    assert plan.put(bind) == []
    assert plan.take() is None
    plan.done(reason)
    assert plan.take() is bind


@pytest.mark.parametrize("report", ["reason", "running"])
def test_reports_wait_for_calm_unless_they_are_given_a_share_of_one_in_thirty_two(report):
    plan = agenda.Agenda()
    for n in range(80):
        plan.put(effect("bind", f"p{n}", n))
        plan.put(effect("group", f"g{n}", n))
        plan.put(effect(report, f"q{n}", n))
    assert not any(plan.take().name.startswith("q") for _ in range(32))
    taken = [plan.take(sharing=True) for _ in range(64)]
    assert [each.name.startswith("q") for each in taken] == ([False] * 31 + [True]) * 2
