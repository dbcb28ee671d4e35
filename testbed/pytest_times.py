"""Say where the processor time of a run of tests went, by folder and by test: `pytest --times 40`.

Processor time is what a change of the tests can be judged by on a machine that others use, too. It counts the process that runs a test and what that has
started and waited for; what several tests share is counted at the first of them.
"""

from __future__ import annotations

import os
from collections import defaultdict
from typing import TYPE_CHECKING, Final

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator

PROPERTY: Final = "processor"
_BEGUN = pytest.StashKey[float]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the option."""
    meaning = "say how much processor time each folder took, and the N tests that took most"
    parser.addoption("--times", type=int, default=0, metavar="N", help=meaning)


def pytest_configure(config: pytest.Config) -> None:
    """Keep account if that is asked for."""
    if config.getoption("--times"):
        config.pluginmanager.register(Times(config.getoption("--times")), "times")


class Times:
    """The processor time of every test."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._seconds: dict[str, float] = defaultdict(float)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, bool | None, bool | None]:
        """See what was used up before a test."""
        item.stash[_BEGUN] = _used()
        return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Write on the last report of a test what it has used up."""
        report = yield
        if call.when == "teardown":
            report.user_properties.append((PROPERTY, _used() - item.stash[_BEGUN]))
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep what a report says."""
        for name, value in report.user_properties:
            if name == PROPERTY and isinstance(value, float):
                self._seconds[report.nodeid] += value

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print both tables."""
        for line in tables(self._seconds, self._most):
            terminalreporter.write_line(line)


def tables(seconds: dict[str, float], most: int) -> list[str]:
    """Write the time of folders, and of the tests that took most, largest first."""
    folders: dict[str, list[float]] = defaultdict(list)
    for test, taken in seconds.items():
        folders["/".join(test.partition("::")[0].split("/")[:-1])].append(taken)
    lines = [f"processor time of {len(seconds)} tests: {sum(seconds.values()):.0f} s"]
    lines += [
        f"{sum(each):9.1f} s  {len(each):6} tests  {folder}"
        for folder, each in sorted(folders.items(), key=lambda entry: -sum(entry[1]))
    ]
    ranked = sorted(seconds.items(), key=lambda entry: -entry[1])[:most]
    return lines + [f"{taken:9.1f} s  {test}" for test, taken in ranked]


def _used() -> float:
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system
