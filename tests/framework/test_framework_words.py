"""What is said in a cycle: the same inside a trial as outside, taken back with the trial, and read as it was said."""

from __future__ import annotations

import copy
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drawing import drawn
from pumice.framework import record as records
from pumice.framework.findings import Findings
from pumice.framework.record import CycleRecord

JOBS = [
    SimpleNamespace(key=f"a/{name}", status=SimpleNamespace(phase=phase))
    for name, phase in (("x", "Running"), ("y", ""))
]
TASKS = [SimpleNamespace(uid=f"{job.key}-{i}", job=job) for job in JOBS for i in range(2)]
ALONE = SimpleNamespace(uid="alone", job=None)
WORDS = ("one", "two", "three")
TOLD = [name for name in Findings.__slots__ if name not in {"journal", "dormant"}]


def dormant(job):
    """What a job that lies dormant was told."""
    return SimpleNamespace(failure=f"dormant {job.key}", tried=lambda job: [t.uid for t in TASKS if t.job is job][::-1])


class Spoken:
    """Findings and a record with one journal."""

    def __init__(self):
        self.record = CycleRecord()
        self.record.begin(3, 0)
        self.findings = Findings(self.record.journal)
        self.findings.dormant = {JOBS[0].key: dormant(JOBS[0])}

    def say(self, what, job, task, word):
        """Say one of all things that can be said."""
        told, record, queue = self.findings, self.record, f"q-{word}"
        {
            "phase": lambda: told.set_phase(job, word),
            "attempt": lambda: told.attempt(job),
            "keep out": lambda: told.keep_out(job, word),
            "condition": lambda: told.condition(job, word),
            "conditions": lambda: told.condition_all(JOBS, word),
            "foresee": lambda: told.foresee(job, SimpleNamespace(condition=word)),
            "notice": lambda: told.notice(job, word),
            "warn": lambda: told.warn(job, word),
            "warn queue": lambda: told.warn_queue(queue, word, word),
            "note fit": lambda: told.note_fit([task, ALONE], word),
            "note all": lambda: told.note_fit_of_all(job, [task.uid], word),
            "forget fit": lambda: told.forget_fit(job, [task]),
            "forget all": lambda: told.forget_fit(job),
            "remember": lambda: told.remember(task, word),
            "forget": lambda: told.forget_transaction(task),
            "say": lambda: record.say(word, word, job.key),
            "judge": lambda: record.judge(job.key, word, word),
            "acquit": lambda: record.acquit(job.key, word),
        }[what]()

    def told(self):
        """All that was said so far, with its order."""
        found = {name: copy.copy(getattr(self.findings, name)) for name in TOLD}
        found["fit_errors"] = {key: list(errors.items()) for key, errors in self.findings.fit_errors.items()}
        found["forecasts"] = {key: each.condition for key, each in self.findings.forecasts.items()}
        said = {job.key: sorted((v.source, v.said) for v in self.record.verdicts(job.key)) for job in JOBS}
        return found, self.record.trace(), said


KINDS = [
    "phase",
    "attempt",
    "keep out",
    "condition",
    "conditions",
    "foresee",
    "notice",
    "warn",
    "warn queue",
    "note fit",
    "note all",
    "forget fit",
    "forget all",
    "remember",
    "forget",
    "say",
    "judge",
    "acquit",
]
SAYINGS = st.lists(
    st.tuples(st.sampled_from(KINDS), st.sampled_from(JOBS), st.sampled_from(TASKS), st.sampled_from(WORDS)), max_size=8
)


@settings(max_examples=drawn(400))
@given(SAYINGS, SAYINGS, SAYINGS, st.booleans())
def test_a_trial_takes_back_what_was_said_in_it_and_in_trials_inside_it_and_nothing_else(before, outer, inner, is_kept):
    plain, tried = Spoken(), Spoken()
    journal = tried.findings.journal
    for saying in before:
        plain.say(*saying)
        tried.say(*saying)
    assert journal.mark == 0
    first, mark = tried.told(), journal.begin()
    for saying in outer:
        plain.say(*saying)
        tried.say(*saying)
    assert tried.told() == plain.told()
    second, inside = tried.told(), journal.begin()
    for saying in inner:
        plain.say(*saying)
        tried.say(*saying)
    assert tried.told() == plain.told()
    if not is_kept:
        journal.back_to(inside)
        assert tried.told() == second
    journal.end()
    assert journal.depth == 1
    journal.back_to(mark)
    assert tried.told() == first
    for saying in inner:
        tried.say(*saying)
    last = tried.told()
    journal.end()
    assert (journal.depth, journal.mark) == (0, 0)
    assert tried.told() == last


JOB, TASK = JOBS[1], TASKS[2]
FOUND = [
    ("phase", "phases", {"a/y": "one"}),
    ("phase", "attempted", {"a/y": JOB}),
    ("attempt", "attempted", {"a/y": JOB}),
    ("keep out", "kept_out", {"a/y": "one"}),
    ("condition", "conditions", {"a/y": ("one",)}),
    ("conditions", "conditions", {"a/x": ("one",), "a/y": ("one",)}),
    ("foresee", "conditions", {"a/y": ("one",)}),
    ("foresee", "forecasts", {"a/y": "one"}),
    ("notice", "notices", [(JOB, "one")]),
    ("warn", "warnings", [(JOB, "one")]),
    ("warn queue", "queue_warnings", [("q-one", "one", "one")]),
    ("note fit", "fit_errors", {"a/y": [("a/y-0", "one")]}),
    ("note all", "fit_errors", {"a/y": [("a/y-0", "one")]}),
    ("remember", "last_transactions", {"a/y-0": "one"}),
]


@pytest.mark.parametrize(("what", "where", "found"), FOUND, ids=[f"{row[0]} {row[1]}" for row in FOUND])
def test_what_is_said_is_found_and_what_is_forgotten_is_not(what, where, found):
    spoken = Spoken()
    spoken.say(what, JOB, TASK, "one")
    assert spoken.told()[0][where] == found
    if where == "fit_errors":
        spoken.say("note fit", JOB, TASKS[3], "two")
        assert spoken.told()[0][where] == {"a/y": [("a/y-0", "one"), ("a/y-1", "two")]}
        spoken.say("forget fit", JOB, TASK, "")
        assert spoken.told()[0][where] == {"a/y": [("a/y-1", "two")]}
        spoken.say("forget all", JOB, TASK, "")
    spoken.say("forget", JOB, TASK, "")
    if where in {"fit_errors", "last_transactions"}:
        assert spoken.told()[0][where] == {}


def test_a_record_begins_with_nothing():
    record = CycleRecord()
    assert (record.cycle, record.time, record.binds, record.evictions, record.plans) == (0, 0, 0, 0, 0)
    assert (record.skipped, record.trace(), record.figures, record.is_followed) == (False, [], None, True)


@pytest.mark.parametrize("inside", [False, True])
@pytest.mark.parametrize("how", ["say", "judge"])
def test_only_so_many_lines_are_kept_and_the_others_counted(how, inside, monkeypatch):
    monkeypatch.setattr(records, "TRACE_LIMIT", 2)
    record = CycleRecord()
    record.begin(1, 7)
    if inside:
        record.journal.begin()
    for number in range(4):
        if how == "say":
            record.say("source", f"line {number}")
        else:
            record.judge("a/x", "source", f"line {number}")
        lines = record.trace()
        assert len(lines) == min(number + 1, 3)
    assert lines[0].endswith("line 0")
    assert lines[-1] == "… and 2 more lines"
    record.begin(2, 8)
    assert record.trace() == []
    assert (record.cycle, record.time, record.binds, record.evictions, record.skipped) == (2, 8, 0, 0, False)


@pytest.mark.parametrize("keeps_figures", [False, True])
def test_of_a_job_that_is_gone_only_its_bad_objects_are_told_still(keeps_figures):
    record = CycleRecord(keeps_figures=keeps_figures)
    record.begin(4, 0)
    for key in ("a/x", "a/y"):
        record.judge(key, "allocate", "no room")
        record.say("enqueue", "let in", key)
        record.state(key, "Inqueue")
        record.disable(key, f"pod {key}-0", "spec is bad")
        assert record.is_news(key, "how it stands")
        if keeps_figures:
            record.figures[key] = 5
    record.judge("a/x", "enqueue", "let in")
    told = ["allocate: a/x: no room", "enqueue: a/x: let in"]
    assert "cache: pod a/x-0: spec is bad" in record.trace()
    assert [line for line in record.trace() if ": a/x: " in line] == [*told, "enqueue: a/x: let in"]
    assert record.lines("a/x") == [("allocate", "no room"), ("enqueue", "let in"), ("enqueue", "let in")]
    assert record.explain("a/x").splitlines() == [
        "a/x: Inqueue",
        "  allocate (cycle 4): no room",
        "  enqueue (cycle 4): let in",
        "  pod a/x-0: spec is bad",
    ]
    record.forget("a/x")
    assert record.explain("a/x") == "  pod a/x-0: spec is bad"
    assert (record.verdict("a/x", "allocate"), record.verdict("a/x", "enqueue")) == (None, None)
    assert record.verdict("a/y", "allocate").text == "no room"
    assert record.figures == ({"a/y": 5} if keeps_figures else None)
    assert record.is_news("a/x", "how it stands")
    assert not record.is_news("a/y", "how it stands")
    assert record.is_news("a/y", "otherwise")
    record.enable("a/x", "pod a/x-0")
    record.enable("a/y", "pod a/other")
    record.enable("a/z", "pod a/z-0")
    assert record.problems("a/x") == {}
    assert record.problems("a/y") == {"pod a/y-0": "spec is bad"}


def test_plans_are_numbered_from_the_start_of_the_process():
    record = CycleRecord()
    assert [record.next_plan() for _ in range(2)] == [1, 2]
    record.begin(1, 0)
    assert record.next_plan() == 3


@pytest.mark.parametrize("tried", [False, True])
def test_who_lies_dormant_and_is_tried_begins_with_what_it_was_told_and_keeps_what_it_is_told_then(tried):
    spoken = Spoken()
    told = spoken.findings
    if tried:
        told.note_fit([TASKS[0]], "earlier")
        told.attempted[JOBS[0].key] = JOBS[0]
    told.attempt(JOBS[0])
    told.attempt(JOBS[1])
    dormant_said = {TASKS[1].uid: "dormant a/x", TASKS[0].uid: "dormant a/x"}
    assert told.errors(JOBS[0]) == ({TASKS[0].uid: "earlier"} if tried else dormant_said)
    assert list(told.errors(JOBS[0])) == ([TASKS[0].uid] if tried else list(dormant_said))
    assert told.errors(JOBS[1]) == {}
    assert told.phase(JOBS[0]) == "Running"
    assert told.phase(JOBS[1]) == "Pending"
    told.set_phase(JOBS[0], "Inqueue")
    assert (told.phase(JOBS[0]), told.phase(JOBS[1])) == ("Inqueue", "Pending")
    told.forget_fit(JOBS[0], [TASKS[0]])
    assert TASKS[0].uid not in told.errors(JOBS[0])
