"""Runs one scenario: takes its steps in order and stops at the first that does not hold.

An unmet expectation ends the scenario like a failed assertion ends a test: what follows would only report its consequences, and the
decision trace shown is the one of the cycle just before it.
"""

from __future__ import annotations

import traceback
from typing import TYPE_CHECKING

from pumice.framework.configuration import ConfigurationError
from pumice.scenario import expectations, manifests, results, stage, steps
from pumice.scenario.results import Result
from pumice.scenario.stage import Stage, StepError
from pumice.scenario.view import Counts

if TYPE_CHECKING:
    from collections.abc import Callable

    from pumice.scenario.expectations import Expectation
    from pumice.scenario.policies import Policy
    from pumice.scenario.view import Mismatch

_INNERMOST = 3


def run(scenario: steps.Scenario, build: Callable[[steps.Scenario], Stage] = stage.build) -> Result:
    """Run a scenario on a cluster of its own; whatever breaks is its failure, never that of the whole run."""
    line = scenario.config_line or scenario.line
    try:
        player = Player(scenario, build(scenario))
    except ConfigurationError as error:
        return _failed(scenario, refusals(line, error, scenario.policy, scenario.file))
    except StepError as error:
        return _failed(scenario, [results.broken(scenario.line, str(error))])
    except Exception as error:  # noqa: BLE001  a broken scheduler fails this scenario, and the others still run
        return _failed(scenario, [results.broken(scenario.line, _crash(error))])
    return player.play()


class Player:
    """Plays the steps of one scenario on a stage."""

    def __init__(self, scenario: steps.Scenario, on: Stage) -> None:
        self._scenario = scenario
        self._stage = on
        self._cycles = 0
        self._counted = Counts()

    def play(self) -> Result:
        """Take the steps until one fails."""
        for step in self._scenario.steps:
            if mismatches := self._attempt(step):
                return self._result(mismatches)
        return self._result([])

    def _attempt(self, step: steps.Step) -> list[Mismatch]:
        try:
            return self._take(step)
        except StepError as error:
            return [results.broken(step.line, str(error))]
        except Exception as error:  # noqa: BLE001  a broken scheduler fails this scenario, and the others still run
            return [results.broken(step.line, _crash(error))]

    def _take(self, step: steps.Step) -> list[Mismatch]:
        match step:
            case steps.Expect():
                return self._expect(step.expectation)
            case steps.Until():
                return self._until(step)
            case steps.Configure():
                return self._configure(step)
            case steps.Cycles():
                for _ in range(step.count):
                    self._cycle()
            case _:
                self._change(step)
        return []

    def _change(self, step: steps.Advance | steps.Apply | steps.Patch | steps.Delete | steps.Fail) -> None:
        """Take a step that can only go wrong by a `StepError`."""
        match step:
            case steps.Advance():
                self._stage.advance(step.duration)
            case steps.Apply():
                self._stage.apply(manifests.expand(step.entries))
            case steps.Patch():
                self._stage.patch(manifests.expand(step.entries))
            case steps.Delete():
                self._stage.delete([reference.pattern for reference in step.references], step.grace)
            case steps.Fail():
                self._stage.fail(step)

    def _cycle(self) -> None:
        self._cycles += 1
        self._stage.cycle(self._scenario.period)

    def _until(self, step: steps.Until) -> list[Mismatch]:
        """Ask first, so that what holds already needs no cycle."""
        for _ in range(step.within):
            if not self._check(step.expectation):
                return []
            self._cycle()
        mismatches = self._check(step.expectation)
        if mismatches:
            mismatches.append(results.broken(step.line, f"until did not hold within {step.within} cycles"))
        return mismatches

    def _expect(self, expectation: Expectation) -> list[Mismatch]:
        mismatches = self._check(expectation)
        if expectation.counts:
            self._counted = self._stage.counts()
        return mismatches

    def _check(self, expectation: Expectation) -> list[Mismatch]:
        return expectations.check(expectation, self._stage.view(self._stage.counts().since(self._counted)))

    def _configure(self, step: steps.Configure) -> list[Mismatch]:
        try:
            self._stage.configure(step.text)
        except ConfigurationError as error:
            return [] if step.rejected else refusals(step.line, error, step.policy, self._scenario.file)
        if step.rejected:
            return [
                results.broken(step.line, "the configuration is accepted, and `rejected: true` demands that it is not")
            ]
        return []

    def _result(self, mismatches: list[Mismatch]) -> Result:
        total = self._stage.counts()
        return Result(
            name=self._scenario.name,
            file=self._scenario.file,
            line=self._scenario.line,
            status="failed" if mismatches else "passed",
            mismatches=tuple(mismatches),
            trace=tuple(self._stage.trace()) if mismatches else (),
            cycles=self._cycles,
            binds=total.binds,
            evictions=total.evictions,
        )


def refusals(line: int, error: ConfigurationError, policy: Policy | None, file: str) -> list[Mismatch]:
    """Give everything that is wrong with a configuration: lines of the file it was read from, or of its own text inside a scenario."""
    told = [str(problem) if policy is None else policy.told(problem, file) for problem in error.problems]
    return [results.broken(line, f"the configuration is refused: {problem}") for problem in told]


def _failed(scenario: steps.Scenario, mismatches: list[Mismatch]) -> Result:
    return Result(
        name=scenario.name, file=scenario.file, line=scenario.line, status="failed", mismatches=tuple(mismatches)
    )


def _crash(error: Exception) -> str:
    """Say what broke and where, by module and function; paths would differ between machines."""
    frames = traceback.extract_tb(error.__traceback__)[-_INNERMOST:]
    where = " > ".join(
        f"{frame.filename.rpartition('/src/')[2] or frame.filename}:{frame.lineno} {frame.name}" for frame in frames
    )
    return f"the scheduler broke: {type(error).__name__}: {error} (in {where})"
