"""What came of a scenario."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import msgspec

from pumice.scenario.view import Mismatch

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pumice.scenario.format import ScenarioFile

Status = Literal["passed", "failed", "invalid"]


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """One scenario's outcome, or that of a file that holds no valid one."""

    name: str
    file: str
    line: int = 1
    status: Status = "passed"
    mismatches: tuple[Mismatch, ...] = ()
    trace: tuple[str, ...] = ()
    cycles: int = 0
    binds: int = 0
    evictions: int = 0

    @property
    def failures(self) -> list[str]:
        """Say each failure in one line, beginning with its place."""
        return [f"{self.file}:{mismatch.line}: {sentence(mismatch)}" for mismatch in self.mismatches]


def sentence(mismatch: Mismatch) -> str:
    """Put a mismatch into one line."""
    return (
        f"{mismatch.subject}: expected {mismatch.expected}, found {mismatch.found}"
        if mismatch.expected
        else mismatch.found
    )


def broken(line: int, message: str) -> Mismatch:
    """Make a failure that is no unmet expectation: a bad file, a refused configuration, a step that could not be taken."""
    return Mismatch(line=line, subject="", expected="", found=message)


def invalid(file: ScenarioFile) -> Result:
    """Make the one entry of a file that is not valid."""
    mismatches = tuple(broken(problem.line, problem.message) for problem in file.problems)
    return Result(name=file.file, file=file.file, line=file.problems[0].line, status="invalid", mismatches=mismatches)


def exit_status(results: Iterable[Result]) -> int:
    """Give 0 if all passed, 2 if a file is invalid, else 1."""
    statuses = [result.status for result in results]
    if "invalid" in statuses:
        return 2
    return 1 if "failed" in statuses else 0
