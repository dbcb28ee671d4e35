"""Binds are looked after alike, however many there are."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from builders import SECOND, Desk, group, node, pod
from pumice.cache import assumptions
from pumice.cache.effects import Bind, Read

PODS = 6
STEP = st.tuples(
    st.sampled_from(["unavailable", "conflict", "unknown", "bound", "gone", "nothing"]),
    st.integers(0, PODS - 1),
    st.sampled_from([0.1, 1.0, 7.0, 31.0]),
)


def told(steps, few):
    """Return what is sent, and when something is to be done again, while binds meet with what is drawn."""
    before, assumptions.FEW = assumptions.FEW, few
    try:
        made = Desk().feed(node("n1", cpu="100"), group("g", PODS))
        pods = [pod(f"p{number}", "g", cpu="1") for number in range(PODS)]
        made.feed(*pods).cycle()
        found = []
        for what, number, gap in steps:
            sent = [bind for bind in made.world.of(Bind) if bind.name == f"p{number}"][-1]
            if what == "gone":
                made.delete(pods[number])
            elif what == "bound":
                made.settle(sent).modify({**pods[number], "spec": {**pods[number]["spec"], "nodeName": sent.node}})
            elif what != "nothing":
                made.settle(sent, what)
            made.cycle(seconds=gap)
            found.append([(type(each).__name__, each.name) for each in made.world.of(Bind, Read)])
            looks = [binding.next_look for binding in made.cache.assumptions._bindings.values()]  # noqa: SLF001  when something is due about each is up to nobody else
            assert not looks or made.cache.assumptions.next_wake() <= min(looks)
        return found
    finally:
        assumptions.FEW = before


@given(st.lists(STEP, max_size=12))
def test_many_binds_are_looked_after_like_few(steps):
    assert told(steps, few=0) == told(steps, few=1000)


def test_binds_that_nobody_confirms_are_asked_about_after_half_a_minute_however_many_they_are():
    count = assumptions.FEW + 30
    made = Desk().feed(node("n1", cpu="1000", pods="500"), group("g", count))
    made.feed(*(pod(f"p{number}", "g", cpu="1") for number in range(count))).cycle(seconds=29)
    made.cycle(seconds=1)
    assert made.world.reads == []
    made.cycle()
    assert len(made.world.reads) == count
    assert made.cache.next_wake() > made.now + 20 * SECOND
