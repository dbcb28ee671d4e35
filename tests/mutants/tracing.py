"""Which lines each test runs, and so which tests could notice a change."""

from __future__ import annotations

import sys
import threading
import time
from collections import Counter, defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self

if TYPE_CHECKING:
    from types import CodeType, FrameType

    from tests.mutants.changing import Mutant

TRACED = 50  # calls of a function in one test whose lines are taken down


class Run(NamedTuple):
    """What a test does: its seconds, the lines that it runs, and the functions that it calls, as path:line and path:function."""

    seconds: float
    lines: frozenset[str]
    functions: frozenset[str]


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

    def __exit__(self, *_: object) -> None:
        sys.settrace(None)
        threading.settrace(None)  # type: ignore[arg-type]
        self._seconds = time.process_time() - self._began

    def run(self) -> Run:
        """Give what was taken down."""
        lines = frozenset(f"{path}:{line}" for path, found in self._lines.items() for line in found)
        functions = (f"{code.co_filename}:{code.co_qualname.replace('.<locals>', '')}" for code in self._calls)
        return Run(self._seconds, lines, frozenset(functions))

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


def able(mutant: Mutant, runs: dict[str, Run], budget: float) -> list[str]:
    """Give the quickest tests that run the changed line, as many as the budget of seconds allows; where none is known to, those that call the function."""
    path = Path(mutant.path).resolve()
    line, function = f"{path}:{mutant.line}", f"{path}:{mutant.function}"
    found = [(run.seconds, test) for test, run in runs.items() if line in run.lines]
    found = found or [(run.seconds, test) for test, run in runs.items() if function in run.functions]
    chosen, left = [], budget
    for seconds, test in sorted(found):
        if left < seconds and chosen:
            break
        chosen.append(test)
        left -= seconds
    return chosen
