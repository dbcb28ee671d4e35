"""Reports: lines, JSON, JUnit."""

from __future__ import annotations

import json
from xml.etree import ElementTree as ET

import pytest

from pumice.scenario import format as scenario_format
from pumice.scenario import report, results
from pumice.scenario.results import Result
from pumice.scenario.view import Mismatch


def mismatch(subject, found="bound: false", line=7):
    return Mismatch(line=line, subject=subject, expected="bound: true", found=found)


PASSED = Result(name="it works", file="a.yaml", cycles=1, binds=3)
FAILED = Result(
    name="it does <not>",
    file="a.yaml",
    line=5,
    status="failed",
    mismatches=(mismatch("pods a/g-0"), mismatch("pods a/g-1"), mismatch("pods a/g-2", "no such pod")),
    trace=("allocate: a/g waits\x07",),
    cycles=2,
    evictions=1,
)
INVALID = results.invalid(scenario_format.parse("scenario: n\nsteps: 3\n", "b.yaml"))
ALL = [PASSED, FAILED, INVALID]


@pytest.mark.parametrize(
    ("fancy", "lines"),
    [
        (
            False,
            [
                "ok       it works       1 cycle, 3 binds, 0 evictions",
                "FAIL     it does <not>  2 cycles, 0 binds, 1 eviction",
                "INVALID  b.yaml         2 problems",
            ],
        ),
        (
            True,
            [
                "✓  it works       1 cycle, 3 binds, 0 evictions",
                "✗  it does <not>  2 cycles, 0 binds, 1 eviction",
                "✗  b.yaml         2 problems",
            ],
        ),
    ],
)
def test_each_scenario_is_one_aligned_line(fancy, lines):
    writer = report.Writer([result.name for result in ALL], fancy=fancy)
    assert [writer.line(result) for result in ALL] == lines


def test_details_say_expected_found_and_the_last_trace_and_put_equal_mismatches_together():
    assert "\n".join(report.Writer([], fancy=False).details(FAILED)).splitlines() == [
        "",
        "failed: it does <not> (a.yaml:5)",
        "  a.yaml:7: pods a/g-0, pods a/g-1",
        "    expected  bound: true",
        "    found     bound: false",
        "  a.yaml:7: pods a/g-2",
        "    expected  bound: true",
        "    found     no such pod",
        "  decision trace of the last cycle (2):",
        "    allocate: a/g waits\x07",
    ]


@pytest.mark.parametrize(("cycles", "last"), [(0, "  no cycle was run"), (3, "    nothing was decided")])
def test_details_without_a_trace_say_so(cycles, last):
    silent = Result(name="x", file="a.yaml", status="failed", mismatches=(mismatch("p"),), cycles=cycles)
    assert list(report.Writer([], fancy=False).details(silent))[-1] == last


def test_details_of_an_invalid_file_list_all_its_problems():
    lines = list(report.Writer([], fancy=False).details(INVALID))
    assert lines[1] == "not a valid scenario file: b.yaml"
    assert [line[:12] for line in lines[2:]] == ["  b.yaml:1: ", "  b.yaml:2: "]


def test_many_equal_mismatches_are_told_once():
    many = Result(
        name="x", file="a.yaml", status="failed", mismatches=tuple(mismatch(f"p{number}") for number in range(1000))
    )
    lines = list(report.Writer([], fancy=False).details(many))
    assert len(lines) == 6
    assert lines[2].endswith("p9 and 990 more")
    assert len(many.failures) == 1000


@pytest.mark.parametrize(
    ("done", "line", "status"),
    [
        ([PASSED], "1 passed, 0 failed", 0),
        ([PASSED, FAILED], "1 passed, 1 failed", 1),
        ([PASSED, INVALID], "1 passed, 0 failed, 1 invalid file", 2),
        ([FAILED, INVALID, INVALID], "0 passed, 1 failed, 2 invalid files", 2),
    ],
)
def test_summary_and_exit_status(done, line, status):
    assert report.summary(done) == line
    assert results.exit_status(done) == status


def test_json_has_the_documented_shape():
    assert json.loads(report.as_json(ALL)) == {
        "scenarios": [
            {
                "name": "it works",
                "file": "a.yaml",
                "passed": True,
                "failures": [],
                "cycles": 1,
                "binds": 3,
                "evictions": 0,
            },
            {
                "name": "it does <not>",
                "file": "a.yaml",
                "passed": False,
                "failures": FAILED.failures,
                "cycles": 2,
                "binds": 0,
                "evictions": 1,
            },
            {
                "name": "b.yaml",
                "file": "b.yaml",
                "passed": False,
                "failures": INVALID.failures,
                "cycles": 0,
                "binds": 0,
                "evictions": 0,
            },
        ]
    }
    assert FAILED.failures[0] == "a.yaml:7: pods a/g-0: expected bound: true, found bound: false"


def test_junit_tells_failures_from_errors_and_holds_no_control_characters():
    suite = ET.fromstring(report.as_junit(ALL))[0]  # noqa: S314  our own output
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("3", "1", "1")
    passed, failed, invalid = suite
    assert (passed.get("classname"), passed.get("name"), len(passed)) == ("a.yaml", "it works", 0)
    assert failed[0].tag == "failure"
    assert failed[0].get("message") == "pods a/g-0: expected bound: true, found bound: false"
    assert failed[0].text.splitlines()[-1] == "allocate: a/g waits"
    assert invalid[0].tag == "error"
