"""What is noted of a breakdown: who broke down and where, about whom, and for how long it is not asked again; by table."""

from __future__ import annotations

import functools
import json
import textwrap
from types import SimpleNamespace

import pytest

from builders import Desk, group, node, pod
from pumice.framework import breakdowns
from pumice.framework.breakdowns import HANDLER, LONGEST_TEXT, Breakdowns, PluginBreakdownError, Rest


def fails(*_):
    raise ValueError("no")


def reads_json(*_):
    json.loads("{")


def calls(*_):
    fails()


class Callable:
    """One that is no function."""

    def __call__(self, *_):
        raise ValueError("no")

    def method(self, *_):
        raise ValueError("no")


def caught(function, *args):
    try:
        function(*args)
    except Exception as error:  # noqa: BLE001  whatever it is
        return error
    raise AssertionError(f"{function} does not break down")


def noted(function, error=None, made=None, about="", point="Somewhere"):
    """Note that a function broke down; gives what is known of it."""
    made = made or Breakdowns()
    return made.note("p", point, function, error or caught(function), about).breakdown


@functools.wraps(fails)
def wraps(*args):
    return fails(*args)


HERE = "test_framework_breakdown_notes.py line "
FUNCTIONS = [
    (fails, "fails"),
    (wraps, "fails"),
    (functools.partial(fails, 1), "fails"),
    (functools.partial(functools.partial(fails, 1), 2), "fails"),
    (Callable().method, "Callable.method"),
    (calls, "fails"),  # the last of its file
    (reads_json, "reads_json"),  # not what it calls elsewhere
]


@pytest.mark.parametrize(("function", "name"), FUNCTIONS, ids=[str(number) for number in range(len(FUNCTIONS))])
def test_a_breakdown_is_told_by_the_last_function_of_its_file_and_the_line_in_it(function, name):
    found = noted(function)
    assert (found.routine, found.place.startswith(HERE)) == (name, True)
    line = int(found.place.removeprefix(HERE))
    trace = found.error.__traceback__
    lines = {trace.tb_lineno}
    while (trace := trace.tb_next) is not None:
        lines.add(trace.tb_lineno)
    assert line in lines
    assert str(found).startswith(f"plugin p broke down at Somewhere ({name}, {HERE}{line}): ")


def test_what_is_no_function_is_told_by_its_type_and_by_where_it_broke_down():
    assert noted(Callable()).routine == "Callable.__call__"
    bare = ValueError("never raised")
    assert (noted(Callable(), bare).routine, noted(Callable(), bare).place) == ("Callable", "")
    assert str(noted(Callable(), bare)) == "plugin p broke down at Somewhere (Callable): ValueError: never raised"
    assert (noted(fails, bare).routine, noted(fails, bare).place) == ("fails", f"{HERE}{fails.__code__.co_firstlineno}")


def test_whoever_wrote_a_function_is_found_below_what_was_wrapped_around_it():
    bare = ValueError("never raised")

    def keeps(*_):
        """Has an attribute of the name that a partial function has."""

    keeps.func = fails
    name = "test_whoever_wrote_a_function_is_found_below_what_was_wrapped_around_it.keeps"
    for function in (keeps, functools.partial(keeps), Rest(functools.partial(keeps), {}, Breakdowns(), 0)):
        assert noted(function, bare).routine == name


def test_a_function_of_another_file_is_told_by_the_last_that_is_not_the_framework_s():
    assert noted(textwrap.dedent, caught(reads_json)).routine == "JSONDecoder.raw_decode"


def test_one_function_is_noted_once_about_everybody():
    made = Breakdowns()
    for about in ("a/j", "a/k", "a/j"):
        noted(fails, made=made, about=about)
    noted(functools.partial(fails, 3), made=made, about="a/j")
    assert [(key[2].partition(":")[0], key[3]) for key in made.found] == [("fails", "a/j"), ("fails", "a/k")]
    assert set(made.blamed) == {"a/j", "a/k"}


@pytest.mark.parametrize(("length", "cut"), [(LONGEST_TEXT, False), (LONGEST_TEXT + 1, True)])
def test_a_text_is_cut_where_it_is_too_long(length, cut):
    text = breakdowns.said(ValueError("x" * (length - len("ValueError: "))))
    assert (len(text), text.endswith("…")) == ((LONGEST_TEXT + 1, True) if cut else (length, False))


# ---- about whom


def questions():
    made = Desk().feed(node("n"), group("g", 1), pod("g-0", "g"))
    made.apply()
    return made.cluster


def test_about_whom_a_question_is():
    cluster = questions()
    job, queue, task = cluster.jobs["a/g"], cluster.queues["default"], next(iter(cluster.tasks.values()))
    made = Breakdowns()
    asked = [((job,), 0), ((task,), 0), ((queue,), 0), ((queue, job), 0), ((queue, job), 1), ((), 0), ((3, 4), 1)]
    untried = [made.about(*each) for each in asked]
    assert untried == ["a/g", "a/g", "queue default", "queue default", "a/g", "", ""]
    made.trying = SimpleNamespace(key="a/other")
    tried = [made.about(*each) for each in asked]
    assert tried == ["a/g", "a/g", "queue default", "a/other", "a/g", "a/other", "a/other"]


class Author:
    """Stands for a plugin."""

    name = "author"

    def works(self):
        raise ValueError("no")


class Other(Author):
    name = "other"


def test_the_plugin_whose_code_ran_last_is_to_blame():
    author, other = Author(), Other()
    assert breakdowns.culprit(caught(author.works), [other, author]) == "author"
    assert breakdowns.culprit(caught(other.works), [other, author]) == "other"
    assert breakdowns.culprit(caught(fails), [author]) == "author"  # the only one of this module
    assert breakdowns.culprit(caught(fails), [author, other]) == ""
    assert breakdowns.culprit(caught(fails), [SimpleNamespace(name="elsewhere")]) == ""
    assert breakdowns.culprit(caught(author.works), []) == ""


# ---- rest


def test_a_function_rests_twice_as_long_each_time_about_whom_it_breaks_down_and_for_nobody_else():
    streaks, rests = {}, []
    for cycle in range(9):
        made = Breakdowns(cycle, streaks)
        resting = made.resting("p", "Somewhere", fails)
        assert made.resting("p", "Somewhere", reads_json) == made.resting("q", "Somewhere", fails) == {}
        if "a/j" in resting:
            assert resting["a/j"].resting
            assert [(str(each), each.resting) for each in made.unasked()] == [(str(resting["a/j"]), True)]
            made.note("p", "Somewhere", fails, PluginBreakdownError(resting["a/j"]), "a/j")
            assert (made.unasked(), list(made.blamed)) == ([], ["a/j"])
            assert [each.resting for each in made.found.values()] == [True]
        else:
            assert made.unasked() == []
            noted(fails, made=made, about="a/j")
            rests.append(cycle)
        made.end()
        assert made.is_resting
    assert rests == [0, 1, 3, 7]


@pytest.mark.parametrize("point", ["", HANDLER])
def test_who_follows_placements_or_is_not_asked_at_a_point_never_rests(point):
    streaks = {}
    made = Breakdowns(0, streaks)
    noted(fails, made=made, point=point)
    made.end()
    assert streaks == {}


def test_a_function_at_rest_breaks_down_as_it_did_for_whom_it_rests_and_is_called_for_others():
    cluster = questions()
    job, made = cluster.jobs["a/g"], Breakdowns()
    known = noted(fails, about="a/g")
    found = Rest(lambda item: ("called", item), {"a/g": known}, made, 0)
    with pytest.raises(PluginBreakdownError) as raised:
        found(job)
    assert raised.value.breakdown is known
    assert found("anybody") == ("called", "anybody")
    assert found == Rest(found.asked, {"a/g": known}, made, 0)
    assert found != Rest(found.asked, {"a/h": known}, made, 0)
    assert found != Rest(fails, {"a/g": known}, made, 0)


def test_who_is_gone_is_forgotten_and_what_is_about_nobody_is_not():
    streaks = {}
    made = Breakdowns(0, streaks)
    for about in ("", "a/gone", "a/there"):
        noted(fails, made=made, about=about)
    made.end()
    made.forget(lambda key: key != "a/there")
    assert sorted(key[3] for key in streaks) == ["", "a/there"]
