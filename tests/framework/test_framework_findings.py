"""What a trial takes back of what was said, held against copies from before it."""

from __future__ import annotations

import copy
import random
from types import SimpleNamespace

import pytest

from pumice.framework.findings import Findings, Journal


class Said:
    """Things that are written through a journal, and what they were when each trial that runs began."""

    def __init__(self, draw):
        self.draw, self.journal = draw, Journal()
        self.things = {"first": {}, "second": {}, "list": []}
        self.before = []

    def write(self):
        """Write or drop something."""
        mapping, key = self.things[self.draw.choice(("first", "second"))], self.draw.randint(0, 3)
        match self.draw.randint(0, 2):
            case 0:
                self.journal.put(mapping, key, self.draw.randint(0, 9))
            case 1:
                self.journal.drop(mapping, key)
            case _:
                self.journal.append(self.things["list"], self.draw.randint(0, 9))

    def begin(self):
        """Start a trial, maybe in another one."""
        mark = self.journal.begin()
        assert mark == self.journal.mark
        self.before.append((mark, copy.deepcopy(self.things)))

    def end(self):
        """End a trial, and take it back or keep what it said."""
        mark, things = self.before.pop()
        if self.draw.random() < 0.6:
            self.journal.back_to(mark)
            assert self.things == things
        self.journal.end()


@pytest.mark.parametrize("seed", range(40))
def test_what_is_taken_back_is_as_it_was_before_each_trial_and_nothing_is_kept_outside_of_them(seed):
    said = Said(random.Random(seed))  # noqa: S311  the same each time
    for _ in range(120):
        said.write()
        if len(said.before) < 3 and said.draw.random() < 0.3:
            said.begin()
        elif said.before and said.draw.random() < 0.4:
            said.end()
        if not said.before:
            assert said.journal.mark == 0
    while said.before:
        said.end()
    assert (said.journal.mark, said.journal.depth) == (0, 0)


# ---- what is said of jobs and pods

JOBS = [SimpleNamespace(key=f"a/g{i}", status=SimpleNamespace(phase="Running" if i else "")) for i in range(3)]
TASKS = [SimpleNamespace(uid=f"u{i}", job=job) for i, job in enumerate((*JOBS, JOBS[0], None))]
SAYINGS = {
    "a phase": lambda said: said.set_phase(JOBS[0], "Inqueue"),
    "an attempt": lambda said: said.attempt(JOBS[0]),
    "a vote": lambda said: said.keep_out(JOBS[0], "no"),
    "a condition": lambda said: said.condition(JOBS[0], "c"),
    "one condition of many": lambda said: said.condition_all(JOBS, "all"),
    "a forecast": lambda said: said.foresee(JOBS[0], SimpleNamespace(condition="soon")),
    "a notice": lambda said: said.notice(JOBS[0], "text"),
    "a warning": lambda said: said.warn(JOBS[0], "text"),
    "a warning of a queue": lambda said: said.warn_queue("q", "Reason", "text"),
    "why pods found no node": lambda said: said.note_fit(TASKS, "full"),
    "why all pods found no node": lambda said: said.note_fit_of_all(JOBS[1], ["x", "y"], "full"),
    "that it is not known": lambda said: said.forget_fit(JOBS[0]),
    "that it is not known of some": lambda said: said.forget_fit(JOBS[0], TASKS[:1]),
    "where a pod was": lambda said: said.remember(TASKS[0], "n1"),
    "that it was nowhere": lambda said: said.forget_transaction(TASKS[0]),
}


def words(said):
    """What is known: of each job and pod, and of a job that of its pods in the order in which it was said."""
    found = {name: getattr(said, name) for name in Findings.__slots__ if name != "journal"}
    return {
        name: {key: repr(value) for key, value in each.items()} if isinstance(each, dict) else repr(each)
        for name, each in found.items()
    }


@pytest.mark.parametrize("earlier", ["", *SAYINGS])
@pytest.mark.parametrize("name", SAYINGS)
def test_whatever_is_said_in_a_trial_is_taken_back_with_it(name, earlier):
    said = Findings(Journal())
    if earlier:
        SAYINGS[earlier](said)
    before = words(said)
    mark = said.journal.begin()
    SAYINGS[name](said)
    in_trial = words(said)
    said.journal.back_to(mark)
    said.journal.end()
    assert words(said) == before
    SAYINGS[name](said)
    assert words(said) == in_trial


def test_a_condition_of_many_jobs_stands_beside_what_some_of_them_have_already():
    said = Findings(Journal())
    said.condition(JOBS[0], "own")
    said.condition_all(JOBS, "all")
    assert said.conditions == {"a/g0": ("own", "all"), "a/g1": ("all",), "a/g2": ("all",)}


def test_the_phase_is_that_of_the_cycle_before_that_of_the_group_before_none():
    said = Findings(Journal())
    assert [said.phase(job) for job in JOBS] == ["Pending", "Running", "Running"]
    said.set_phase(JOBS[0], "Inqueue")
    assert [said.phase(job) for job in JOBS] == ["Inqueue", "Running", "Running"]
    assert said.attempted == {"a/g0": JOBS[0]}


def test_why_pods_found_no_node_is_known_of_those_of_whom_it_was_said_and_not_forgotten():
    said = Findings(Journal())
    said.note_fit(TASKS, "full")
    said.note_fit(TASKS[:1], "fuller")
    assert said.errors(JOBS[0]) == {"u0": "fuller", "u3": "full"}
    said.forget_fit(JOBS[0], TASKS[:1])
    said.forget_fit(JOBS[1])
    assert [said.errors(job) for job in JOBS] == [{"u3": "full"}, {}, {"u2": "full"}]


class Told(SimpleNamespace):
    """What jobs that wait were told."""

    failure = "full"

    def tried(self, job):
        return [f"{job.key}-0"]


def test_who_is_left_out_and_then_looked_at_all_the_same_is_told_once_what_it_was_told():
    said = Findings(Journal())
    said.dormant = {"a/g0": Told()}
    for job in (*JOBS, JOBS[0]):
        said.attempt(job)
    assert [said.errors(job) for job in JOBS] == [{"a/g0-0": "full"}, {}, {}]
    said.forget_fit(JOBS[0])
    said.attempt(JOBS[0])
    assert said.errors(JOBS[0]) == {}
