"""Whether a test fails when a function is another.

Tests are collected once. Each change is put into a copy of the process (`fork`), which runs the tests themselves without looking for them again: functions keep their identity and get
other code, so that everybody who holds one calls the changed one.
"""

from __future__ import annotations

import contextlib
import gc
import io
import os
import pickle
import resource
import select
import signal
import sys
import time
from collections import Counter, defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

import pytest

from tests.mutants import putting_in, tracing

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from tests.mutants.changing import Mutant
    from tests.mutants.putting_in import Functions
    from tests.mutants.tracing import Run

MEMORY = 8 << 30  # bytes of addresses; whoever asks for more is noticed
TRACED = 1.0  # seconds for which a test is traced, which makes it several times as slow
FAVOURITES = 5  # tests that noticed most in a file, and are asked first
PATIENCE = 120.0  # seconds by the wall, and ten times the usual, after which a change counts as hanging
NOT_PUT_IN, NOBODY = b"?", b"-"


class Verdict(NamedTuple):
    """What became of a change: how many tests could notice it, and the one that did."""

    mutant: Mutant
    asked: int
    by: str | None
    is_put_in: bool = True

    def __str__(self) -> str:
        if self.by is not None:
            return f"noticed by {self.by}: {self.mutant}"
        if not self.is_put_in:
            return f"cannot be put in: {self.mutant}"
        return f"{self.asked} tests do not notice {self.mutant}" if self.asked else f"no test calls {self.mutant}"


class Child:
    """A copy of this process that does one thing and says what comes of it; one that breaks down says no more."""

    def __init__(self, does: Callable[[BinaryIO], object], patience: float = float("inf")) -> None:
        self._end, end = os.pipe()
        self._until = time.monotonic() + patience
        self.told = b""
        self._pid = os.fork()
        if self._pid == 0:
            _live(does, end)
        os.close(end)

    def fileno(self) -> int:
        """Give what can be read once it has said something."""
        return self._end

    def has_ended(self) -> bool:
        """Take in what it says, and tell whether that is all."""
        said = os.read(self._end, 1 << 20)
        self.told += said
        if not said:
            os.close(self._end)
            os.waitpid(self._pid, 0)
        return not said

    def hurry(self) -> None:
        """End it if it should have said everything by now."""
        if time.monotonic() > self._until:
            os.kill(self._pid, signal.SIGKILL)


def first_to_end(children: Collection[Child]) -> list[Child]:
    """Wait until one of them has ended, or several."""
    while True:
        for child in children:
            child.hurry()
        ended = [child for child in select.select(list(children), [], [], 1.0)[0] if child.has_ended()]
        if ended:
            return ended


def _live(does: Callable[[BinaryIO], object], end: int) -> None:
    try:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.dup2(nowhere, 2)
        os.set_inheritable(end, False)
        with os.fdopen(end, "wb") as out:
            does(out)
    finally:
        os._exit(0)


class Trying:
    """A plugin for pytest that runs tests with one change after the other, instead of once."""

    def __init__(
        self,
        found: list[Mutant],
        roots: tuple[str, ...],
        *,
        budget: float,
        longest: float,
        workers: int,
        known: Path | None,
    ) -> None:
        self._found = found
        self._roots = tuple(str(Path(root).resolve()) for root in roots)
        self._budget, self._longest, self._workers, self._known = budget, longest, workers, known
        self._items: dict[str, pytest.Item] = {}
        self._functions: Functions = {}
        self._runs: dict[str, Run] = {}
        self._favourites: dict[str, Counter[str]] = defaultdict(Counter)
        self._failed = False
        self.verdicts: list[Verdict] = []

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection(self) -> None:
        """Let property tests fail at once: nobody reads their smallest example."""
        from hypothesis import Phase, settings  # pytest must be the first to load it

        settings.register_profile("mutants", settings.default, phases=(Phase.explicit, Phase.generate))
        settings.load_profile("mutants")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """See whether a test has failed."""
        self._failed = self._failed or report.failed

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Take down what each test runs, then try every change."""
        self._items = {item.nodeid: item for item in session.items if _is_quick(item)}
        self._functions = putting_in.functions(self._roots)
        self._runs = self._remembered()
        print(f"{len(self._runs)} tests, {sum(run.seconds for run in self._runs.values()):.0f} s", flush=True)  # noqa: T201
        gc.freeze()  # copies share what nobody touches
        busy: dict[Child, Verdict] = {}
        for mutant in self._found:
            tests = self._asked(mutant)
            verdict = Verdict(mutant, len(tests), None)
            if not tests:
                self._end(verdict)
                continue
            patience = PATIENCE + 10 * sum(self._runs[test].seconds for test in tests)
            busy[Child(lambda out, mutant=mutant, tests=tests: out.write(self._noticing(mutant, tests)), patience)] = (
                verdict
            )
            while len(busy) == self._workers:
                self._take(busy)
        while busy:
            self._take(busy)
        return True

    def _remembered(self) -> dict[str, Run]:
        """Read what tests run from a file, if one is named; whoever names it answers for nothing having changed since."""
        if self._known is not None and self._known.exists():
            runs: dict[str, Run] = pickle.loads(self._known.read_bytes())  # noqa: S301  our own
            return {test: run for test, run in runs.items() if test in self._items}
        runs = self._recorded()
        if self._known is not None:
            self._known.write_bytes(pickle.dumps(runs))
        return runs

    def _recorded(self) -> dict[str, Run]:
        """Run the tests, shared out among processes; those that fail or take long are left out."""
        items, count = list(self._items.values()), self._workers
        waiting = [items[place::count] for place in range(count)]
        busy = {Child(lambda out, part=part: self._record(part, out)): part for part in waiting}
        found: dict[str, Run] = {}
        while busy:
            for child in first_to_end(busy):
                # Whoever takes too long ends his copy, and the next goes on behind him.
                part, told = busy.pop(child), _entries(child.told)
                found |= {test: run for test, run in told if run is not None}
                left = part[len(told) + 1 :]
                if left:
                    busy[Child(lambda out, left=left: self._record(left, out))] = left
        return found

    def _record(self, items: list[pytest.Item], out: BinaryIO) -> None:
        for item, following in zip(items, [*items[1:], None], strict=True):
            self._failed = False
            with tracing.Tracer(self._roots) as tracer:
                _limit(tracer, self._longest)
                item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            signal.setitimer(signal.ITIMER_PROF, 0)
            pickle.dump((item.nodeid, None if self._failed else tracer.run()), out)
            out.flush()

    def _asked(self, mutant: Mutant) -> list[str]:
        """Give the tests that could notice, those first that noticed most in that file."""
        tests = tracing.able(mutant, self._runs, self._budget)
        known = self._favourites[mutant.path]
        first = sorted((test for test in tests if known[test]), key=lambda test: -known[test])[:FAVOURITES]
        return first + [test for test in tests if test not in first]

    def _noticing(self, mutant: Mutant, tests: list[str]) -> bytes:
        """Run tests with a change until one fails; one that takes far too much time ends the process."""
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        if not putting_in.put_in(mutant, self._functions):
            return NOT_PUT_IN
        self._failed = False
        for test, following in zip(tests, [*tests[1:], None], strict=True):
            signal.setitimer(signal.ITIMER_PROF, 2 + 10 * self._runs[test].seconds)
            item, later = self._items[test], None if following is None else self._items[following]
            with contextlib.suppress(BaseException):  # whatever breaks down here is noticed
                item.config.hook.pytest_runtest_protocol(item=item, nextitem=later)
                if not self._failed:
                    continue
            return test.encode()
        return NOBODY

    def _take(self, busy: dict[Child, Verdict]) -> None:
        """Take what the first says who has ended."""
        for child in first_to_end(busy):
            verdict, told = busy.pop(child), child.told
            if told == NOT_PUT_IN:
                verdict = verdict._replace(is_put_in=False)
            elif told != NOBODY:
                test = told.decode() or "its end"
                self._favourites[verdict.mutant.path][test] += 1
                verdict = verdict._replace(by=test)
            self._end(verdict)

    def _end(self, verdict: Verdict) -> None:
        self.verdicts.append(verdict)
        print(verdict, flush=True)  # noqa: T201


def _limit(tracer: tracing.Tracer, longest: float) -> None:
    """Trace a test for a while, in which it mostly shows what it runs, then only time it; whoever takes too long ends the process."""

    def leave_alone(*_: object) -> None:
        tracer.stop()
        signal.signal(signal.SIGPROF, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_PROF, max(0.01, longest - TRACED))

    signal.signal(signal.SIGPROF, leave_alone)
    signal.setitimer(signal.ITIMER_PROF, min(TRACED, longest))


def _entries(told: bytes) -> list[tuple[str, Run | None]]:
    """Read what was taken down of each test, as far as it was told."""
    found, stream = [], io.BytesIO(told)
    with contextlib.suppress(EOFError, pickle.UnpicklingError):
        while True:
            found.append(pickle.load(stream))  # noqa: S301  our own
    return found


def _is_quick(item: pytest.Item) -> bool:
    """Tell whether a test takes little, and no API server, which would not start within a copy's share of memory."""
    marked = any(item.get_closest_marker(each) for each in ("long", "kube"))
    return not marked and "api_server" not in getattr(item, "fixturenames", ())


def tried(
    found: list[Mutant],
    tests: list[str],
    roots: tuple[str, ...],
    *,
    budget: float,
    workers: int,
    longest: float = 5.0,
    known: Path | None = None,
) -> list[Verdict]:
    """Try every change with the tests that could notice it."""
    trying = Trying(found, roots, budget=budget, longest=longest, workers=workers, known=known)
    pytest.main(["-q", "-s", "-n", "0", "-p", "no:cacheprovider", *tests], plugins=[trying])
    sys.stdout.flush()
    return trying.verdicts
