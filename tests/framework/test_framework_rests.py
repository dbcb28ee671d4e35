"""For how long a function rests that breaks down, about whom, and what is told of it meanwhile: held against the rules, without a scheduler around it."""

from __future__ import annotations

import functools

import pytest

from builders import Desk, group, node, pod, queue
from pumice.framework import breakdowns
from pumice.framework.breakdowns import Breakdown, Breakdowns, PluginBreakdownError, Rest, WrongAnswerError
from pumice.framework.subject import Subject

CALLED = [1, 2, 4, 8, 16, 32, 64, 128, 192, 256]  # each rest is as long again and one more, and none longer than 63


def asked(*_):
    """Stand for a function of a plugin."""


def lived(cycles, breaks=lambda _cycle: True, streaks=None, point="predicate"):
    """Let a function break down about a job whenever it is called; give the cycles in which it was."""
    streaks, called = {} if streaks is None else streaks, []
    for cycle in cycles:
        found = Breakdowns(cycle, streaks)
        if "a/g" not in found.resting("p", point, asked):
            called.append(cycle)
            if breaks(cycle):
                found.note("p", point, asked, ValueError("no"), "a/g")
        found.end()
    return called


def test_rests_double_up_to_the_longest():
    assert lived(range(1, 300)) == CALLED


@pytest.mark.parametrize("healed", [4, 8, 16])
def test_who_does_not_break_down_again_starts_afresh(healed):
    streaks = {}
    called = lived(range(1, healed + 10), lambda cycle: cycle != healed, streaks)
    before = [cycle for cycle in CALLED if cycle <= healed]
    after = [healed + cycle for cycle in CALLED if cycle < 10]
    assert called == before + after


@pytest.mark.parametrize("point", ["", breakdowns.HANDLER])
def test_handlers_and_steps_never_rest(point):
    assert lived(range(1, 20), point=point) == [*range(1, 20)]


def test_a_rest_is_about_one_function_at_one_point_and_one_job():
    streaks = {}
    lived(range(1, 3), streaks=streaks)
    found = Breakdowns(3, streaks)
    assert found.is_resting
    (known,) = found.resting("p", "predicate", asked).values()
    assert (known.resting, known.about, known.said, str(known.error)) == (
        True,
        "a/g",
        "ValueError: no",
        "ValueError: no",
    )
    for other in (("q", "predicate", asked), ("p", "score", asked), ("p", "predicate", lived)):
        assert found.resting(*other) == {}
    for same in (functools.partial(asked, 1), Rest(asked, {}, found, 0), functools.wraps(asked)(lambda: None)):
        assert found.resting("p", "predicate", same).keys() == {"a/g"}
    assert [str(each) for each in found.unasked()] == [str(known)]
    assert all(each.resting for each in found.unasked())
    found.note("p", "predicate", asked, PluginBreakdownError(known), "a/g")
    assert found.unasked() == []
    assert Breakdowns(4, streaks).resting("p", "predicate", asked) == {}
    assert Breakdowns(4, streaks).unasked() == []


@pytest.mark.parametrize(("gone", "left"), [("a/g", 0), ("a/h", 1), ("", 1)])
def test_what_is_gone_is_forgotten(gone, left):
    streaks = {}
    lived(range(1, 3), streaks=streaks)
    Breakdowns(3, streaks).forget(lambda about: about == gone)
    assert len(streaks) == left


def test_a_function_at_rest_is_called_about_everybody_else_and_is_itself():
    made = Desk().feed(node("n"), queue("q"), group("g"), pod("p", "g"), group("h"), pod("o", "h")).apply()
    known = Breakdown(ValueError("no"), plugin="p", about="a/g", resting=True)
    noted = Breakdowns()
    rest = Rest(lambda job: job.key, {"a/g": known}, noted, 0)
    jobs = made.cluster.jobs
    assert rest(jobs["a/h"]) == "a/h"
    with pytest.raises(PluginBreakdownError) as caught:
        rest(jobs["a/g"])
    assert caught.value.breakdown is known
    same, others = Rest(rest.asked, {"a/g": known}, noted, 0), [Rest(asked, {"a/g": known}, noted, 0)]
    others += [Rest(rest.asked, {}, noted, 0), rest.asked]
    assert rest == same
    assert hash(rest) == hash(same)
    assert all(rest != other for other in others)


def test_a_question_is_about_the_job_that_it_names_else_about_the_one_that_is_tried():
    made = Desk().feed(node("n"), queue("q"), group("g"), pod("p", "g"), group("h")).apply()
    task, job, other = made.task("p"), made.cluster.jobs["a/g"], made.cluster.jobs["a/h"]
    found, where = Breakdowns(), made.cluster.queues["q"]
    for about in (job, task, Subject(task, where), task.sub_job):
        assert found.about([about], 0) == "a/g"
        assert found.about([other, about], 1) == "a/g"
    assert (found.about([where], 0), found.about([where, task], 0), found.about([3], 0)) == ("queue q", "queue q", "")
    assert found.about([job], 1) == ""
    found.trying = other
    assert (found.about([where], 0), found.about([where, task], 0), found.about([3], 0)) == ("queue q", "a/h", "a/h")
    assert found.about([job], 0) == "a/g"


class MuteError(Exception):
    """Breaks down when it is to say something."""

    def __str__(self):
        raise RuntimeError


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ValueError("two\n lines"), "ValueError: two lines"),
        (WrongAnswerError("not a number"), "not a number"),
        (MuteError(), "MuteError"),
        (WrongAnswerError("x" * 200), "x" * 200),
        (WrongAnswerError("x" * 201), "x" * 200 + "…"),
    ],
)
def test_an_exception_is_told_in_one_line(error, said):
    assert breakdowns.said(error) == said


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({}, "a step broke down: ValueError: no"),
        ({"plugin": "p", "point": "score"}, "plugin p broke down at score: ValueError: no"),
        ({"routine": "f"}, "a step broke down (f): ValueError: no"),
        ({"place": "x.py line 3"}, "a step broke down (x.py line 3): ValueError: no"),
        ({"routine": "f", "place": "x.py line 3"}, "a step broke down (f, x.py line 3): ValueError: no"),
    ],
)
def test_a_breakdown_says_who_and_where(fields, said):
    assert str(Breakdown(ValueError("no"), **fields)) == said


def test_the_first_that_broke_down_about_a_job_is_blamed():
    found = Breakdowns()
    first = found.note("p", "score", asked, ValueError("one"), "a/g").breakdown
    found.note("q", "score", lived, ValueError("two"), "a/g")
    assert found.note("p", "score", asked, ValueError("three"), "a/g").breakdown is first
    assert found.blamed == {"a/g": first}
    assert [str(each.error) for each in found.found.values()] == ["one", "two"]
    assert found.note_unknown(ValueError("four"), "", "a/g") is first
    assert str(found.note_unknown(ValueError("five"), "r", "a/h").error) == "five"


# -- who and where -----------------------------------------------------------------------------------------------


class Author:
    """A plugin of this module, as far as breakdowns know plugins."""

    def __init__(self, name):
        self.name = name

    def fail(self):
        broken()


def broken():
    raise ValueError("no")


def caught(function):
    with pytest.raises(ValueError, match="no") as found:
        function()
    return found.value


def test_the_plugin_is_blamed_whose_method_ran_last_else_the_only_one_of_the_module():
    one, two, elsewhere = Author("one"), Author("two"), type("Far", (), {"name": "far", "__module__": "else"})()
    assert breakdowns.culprit(caught(one.fail), [two, one, elsewhere]) == "one"
    assert breakdowns.culprit(caught(two.fail), [two, one, elsewhere]) == "two"
    assert breakdowns.culprit(caught(broken), [elsewhere, one]) == "one"
    assert breakdowns.culprit(caught(broken), [one, two, elsewhere]) == ""
    assert breakdowns.culprit(caught(broken), [elsewhere]) == ""
    assert breakdowns.culprit(ValueError("no"), [one]) == ""


@functools.wraps(broken)
def wrapped():
    broken()


def test_a_breakdown_names_the_function_and_the_line():
    line = broken.__code__.co_firstlineno + 1
    here = f"test_framework_rests.py line {line}"
    for function in (broken, wrapped, functools.partial(broken), Author("one").fail, Rest(broken, {}, Breakdowns(), 0)):
        (found,) = _noted(function, caught(function))
        assert (found.routine, found.place) == ("broken", here)
    (never_ran,) = _noted(broken, ValueError("no"))
    assert (never_ran.routine, never_ran.place) == ("broken", f"test_framework_rests.py line {line - 1}")
    (answered,) = _noted(Author.fail, WrongAnswerError("no"))
    assert answered.routine == "Author.fail"
    (built_in,) = _noted(len, ValueError("no"))
    assert (built_in.routine, built_in.place) == ("len", "")
    (called_back,) = _noted(map, caught(broken))
    assert (called_back.routine, called_back.place) == ("broken", here)


def _noted(function, error):
    found = Breakdowns()
    found.note("p", "score", function, error, "a/g")
    again = Breakdowns()
    again.note("p", "score", asked, PluginBreakdownError(found.blamed["a/g"]), "a/h")
    assert again.blamed == {"a/h": found.blamed["a/g"]}
    return found.found.values()
