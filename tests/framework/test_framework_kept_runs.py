"""Runs that stay applied: in the order in which they were kept, and each task of them by itself once it is taken out."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from pumice.framework.kept_runs import KeptRuns

TASKS = {name: SimpleNamespace(uid=name) for name in "abcdef"}


class Made:
    """A run of some tasks, as far as keeping goes."""

    def __init__(self, names, *, evicted=False):
        self.tasks, self.evicted = [TASKS[name] for name in names], evicted

    def pick(self, places):
        return Made([self.tasks[place].uid for place in places], evicted=self.evicted)

    def __repr__(self):
        return "".join(task.uid for task in self.tasks)


def kept(*runs):
    known = KeptRuns()
    for run in runs:
        known.add(Made(run))
    return known


def told(known):
    return [repr(run) for run in known]


TAKEN = [
    ("nobody", "", ["abc", "d", "ef"]),
    ("the first of several", "a", ["b", "c", "d", "ef"]),
    ("one of the middle", "b", ["a", "c", "d", "ef"]),
    ("the only one", "d", ["abc", "ef"]),
    ("all of several", "cab", ["d", "ef"]),
    ("one of each", "bde", ["a", "c", "f"]),
    ("everybody", "abcdef", []),
]


@pytest.mark.parametrize(("names", "left"), [row[1:] for row in TAKEN], ids=[row[0] for row in TAKEN])
def test_whoever_is_taken_out_is_a_run_of_its_own_and_the_others_stay_in_order(names, left):
    known = kept("abc", "d", "ef")
    assert [repr(known.take(TASKS[name])) for name in names] == [*names]
    assert told(known) == left
    assert [known.take(TASKS[name]) for name in names] == [None] * len(names)
    assert told(known) == left


def test_a_task_of_several_runs_is_looked_for_in_the_latest():
    known = kept("ab", "c", "b")
    assert repr(known.take(TASKS["b"])) == "b"
    assert told(known) == ["ab", "c"]


def test_those_that_are_undone_together_are_found_too_and_are_none_of_the_order():
    known = kept("a")
    known.resting["b"] = Made("b")
    assert told(known) == ["a"]
    assert repr(known.take(TASKS["b"])) == "b"
    assert known.take(TASKS["b"]) is None
    assert known.resting == {}


@pytest.mark.parametrize("evicted", [False, True])
def test_whoever_is_put_last_is_the_last_from_then_on(evicted):
    known = kept("ab", "c")
    known.put_last(TASKS["a"], evicted=evicted)
    known.put_last(TASKS["f"], evicted=True)  # it is in none
    assert told(known) == ["b", "c", "a"]
    assert [run.evicted for run in known] == [False, False, evicted]
    assert repr(known.take(TASKS["a"])) == "a"


def test_when_all_are_taken_none_is_left_and_others_may_follow():
    known = kept("ab", "c")
    known.take(TASKS["a"])
    assert [repr(run) for run in known.take_all()] == ["b", "c"]
    assert told(known) == []
    assert [known.take(TASKS[name]) for name in "abc"] == [None] * 3
    known.add(Made("b"))
    assert told(known) == ["b"]
