"""Scenario files on the real scheduler: what they say holds, and its opposite does not."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from pumice.scenario import format as scenario_format
from pumice.scenario import runner, steps
from pumice.scenario.expectations import Expectation

FILES = sorted(Path(__file__).parent.glob("files/*.yaml"))
LOADED = [scenario_format.load(path) for path in FILES]
SCENARIOS = [scenario for file in LOADED for scenario in file.scenarios]


def test_files_are_valid():
    assert [file.problems for file in LOADED] == [()] * len(FILES)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=[scenario.name for scenario in SCENARIOS])
def test_scenario_passes(scenario):
    result = runner.run(scenario)
    assert (result.failures, result.status) == ([], "passed"), "\n".join(result.trace)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=[scenario.name for scenario in SCENARIOS])
def test_opposite_of_its_last_expectation_fails(scenario):
    last = scenario.steps[-1]
    assert isinstance(last, steps.Expect)
    opposite = steps.Expect(line=last.line, expectation=Expectation(line=last.line, negated=last.expectation))
    result = runner.run(msgspec.structs.replace(scenario, steps=(*scenario.steps[:-1], opposite)))
    assert [mismatch.subject for mismatch in result.mismatches] == ["not"]


def test_every_section_is_checked_by_itself():
    (scenario,) = next(file.scenarios for file in LOADED if file.file.endswith("expectations.yaml"))
    last = scenario.steps[-1]
    assert sorted(last.expectation.sections) == sorted(
        ["pods", "podgroups", "queues", "nodes", "counts", "events", "apart", "sameLabel", "explain"]
    )


def test_same_scenario_gives_the_same_result():
    for scenario in SCENARIOS:
        assert runner.run(scenario) == runner.run(scenario)


def test_refused_first_configuration_fails_with_the_reason():
    text = "scenario: x\nconfig: 'actions: alocate'\nsteps:\n- expect: {}\n"
    (scenario,) = scenario_format.parse(text, "x.yaml").scenarios
    result = runner.run(scenario)
    assert result.status == "failed"
    assert result.failures[0].startswith("x.yaml:2: the configuration is refused: line 1: ")


def test_delete_of_what_is_not_there_fails_the_scenario():
    (scenario,) = scenario_format.parse("scenario: x\nsteps:\n- delete: [pod/a/b]\n- expect: {}\n", "x.yaml").scenarios
    assert runner.run(scenario).failures[0].startswith("x.yaml:3: delete: pod/a/b")


def test_trace_after_quiet_cycles_still_shows_the_last_decisions():
    (scenario,) = next(file.scenarios for file in LOADED if file.file.endswith("example.yaml"))
    fails = scenario_format.parse("scenario: x\nsteps:\n- expect: {counts: {binds: 9}}\n", "x.yaml").scenarios[0].steps
    quiet = steps.Cycles(line=1, count=4)
    result = runner.run(msgspec.structs.replace(scenario, steps=(*scenario.steps, quiet, *fails)))
    assert result.trace[0] == "nothing was decided; the last decisions were those of cycle 3:"
    assert "a/g" in result.trace[1]


def test_plugin_that_breaks_fails_the_scenario_instead_of_being_passed_over(monkeypatch):
    def broken(self, session):
        raise ZeroDivisionError("weights sum up to 0")

    monkeypatch.setattr("pumice.actions.allocate.Allocate.execute", broken)
    (scenario,) = scenario_format.parse("scenario: x\nsteps:\n- cycles: 1\n- expect: {}\n", "x.yaml").scenarios
    (told,) = runner.run(scenario).failures
    assert told.startswith("x.yaml:3: the scheduler broke: ZeroDivisionError: weights sum up to 0")
