"""Which lines each test runs, and so which tests could notice a change."""

from __future__ import annotations

import sys
import threading
import time
from collections import Counter, defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeVar

if TYPE_CHECKING:
    from types import CodeType, FrameType

    from tests.mutants.changing import Mutant

T = TypeVar("T")
TRACED = 50  # calls of a function in one test whose lines are taken down


class Run(NamedTuple):
    """What a test does: its seconds, and by path the lines that it runs and the functions that it calls."""

    seconds: float
    lines: dict[str, frozenset[int]]
    functions: dict[str, frozenset[str]]


class Tracer:
    """Takes down what is run below some folders, in every thread."""

    def __init__(self, roots: tuple[str, ...]) -> None:
        self._roots = roots
        self._calls: Counter[CodeType] = Counter()
        self._ours: dict[str, bool] = {}
        self._lines: dict[str, set[int]] = defaultdict(set)
        self._began = self._seconds = 0.0

    def __enter__(self) -> Self:
        self._began = time.process_time()
        threading.settrace(self._called)
        sys.settrace(self._called)
        return self

    def stop(self) -> None:
        """Take down no more."""
        sys.settrace(None)
        threading.settrace(None)  # type: ignore[arg-type]  the stubs know no end of it

    def __exit__(self, *_: object) -> None:
        self.stop()
        self._seconds = time.process_time() - self._began

    def run(self) -> Run:
        """Give what was taken down."""
        functions: dict[str, set[str]] = defaultdict(set)
        for code in self._calls:
            functions[code.co_filename].add(code.co_qualname.replace(".<locals>", ""))
        return Run(self._seconds, _frozen(self._lines), _frozen(functions))

    def _called(self, frame: FrameType, _event: str, _: Any) -> Any:
        code = frame.f_code
        path = code.co_filename
        ours = self._ours.get(path)
        if ours is None:
            ours = self._ours[path] = path.startswith(self._roots)
        if not ours:
            return None
        self._calls[code] += 1
        if self._calls[code] > TRACED:
            return None
        seen = self._lines[path]

        def note(frame: FrameType, event: str, _: Any) -> Any:
            if event == "line":
                seen.add(frame.f_lineno)
            return note

        return note


def _frozen(found: dict[str, set[T]]) -> dict[str, frozenset[T]]:
    return {path: frozenset(each) for path, each in found.items()}


def _breadth(run: Run, path: str) -> float:
    """Give how many lines a test runs for each that it runs of a file."""
    return sum(map(len, run.lines.values())) / (len(run.lines.get(path, ())) or 1)


def able(mutant: Mutant, runs: dict[str, Run], budget: float) -> list[str]:
    """Give the tests that run the changed line, as many as the budget of seconds allows; where none is known to, those that call the function.

    Those come first that take little time and run little else than that file: they are about it.
    """
    path = str(Path(mutant.path).resolve())
    found = [test for test, run in runs.items() if mutant.line in run.lines.get(path, ())]
    if not found:
        found = [test for test, run in runs.items() if mutant.function in run.functions.get(path, ())]
    chosen, left = [], budget
    for test in sorted(found, key=lambda test: (runs[test].seconds * _breadth(runs[test], path), test)):
        if left < runs[test].seconds and chosen:
            break
        chosen.append(test)
        left -= runs[test].seconds
    return chosen
