"""An explanation follows from the state alone, and asking for it changes nothing."""

from __future__ import annotations

import msgspec
from explaining_worlds import asked, desk, questions, worlds
from hypothesis import given, settings
from hypothesis import strategies as st

import recount
from builders import Desk
from drawing import drawn
from pumice.framework.explaining import text


@settings(max_examples=drawn(100))
@given(worlds(), st.data())
def test_the_same_state_gives_the_same_bytes_in_whatever_order_objects_were_heard_of(objects, data):
    shuffled = data.draw(st.permutations(objects))
    told = [asked(desk(each), *questions(objects)) for each in (objects, shuffled)]
    assert msgspec.json.encode(told[0]) == msgspec.json.encode(told[1])
    assert [text(each) for each in told[0]] == [text(each) for each in told[1]]


@settings(max_examples=drawn(100))
@given(worlds())
def test_who_asks_twice_gets_the_same_answer_and_the_cycle_decides_as_if_nobody_had_asked(objects):
    quiet, talkative = desk(objects), desk(objects)
    wanted = questions(objects)
    for _ in range(2):
        asked(quiet)
        answers = asked(talkative, *wanted, *wanted)
        assert answers[: len(wanted)] == answers[len(wanted) :]
    assert talkative.world.effects == quiet.world.effects
    assert talkative.cache.record.trace() == quiet.cache.record.trace()
    recount.check(talkative.cluster)


def test_what_does_not_exist_is_not_explained():
    made = Desk()
    kinds = ("job", "pod", "queue", "node")
    assert asked(made, *((kind, "a/none") for kind in kinds)) == [None] * 4


def test_a_question_is_answered_though_nothing_has_changed_since_a_quiet_cycle():
    made = Desk()
    for _ in range(3):
        made.cycle()
    assert made.cycle().skipped
    assert asked(made, ("queue", "default"))[0].queue == "default"
