from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

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
    return effects.Evict(namespace="a", name=name, uid=str(number), reason="")


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


@settings(max_examples=200)
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
    assert not plan.has_work
    assert plan._behind == {}


@settings(max_examples=100)
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
