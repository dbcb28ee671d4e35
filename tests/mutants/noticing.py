"""Which tests call which functions, and whether one of them fails when a function is another.

A change is put into a copy of the process (`fork`): functions keep their identity and get other code, so that everybody who holds one calls the changed one.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading
import time
from pathlib import Path
from types import CodeType, FrameType, FunctionType
from typing import Any

import pytest

from tests.mutants.changing import Mutant, changed

Called = dict[str, tuple[float, list[str]]]  # by test: seconds, functions as path:function


class Recorder:
    """A plugin for pytest that takes down which functions each test calls."""

    def __init__(self, roots: tuple[str, ...]) -> None:
        self._roots = roots
        self._codes: set[CodeType] = set()
        self.found: Called = {}

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Any:
        self._codes = set()
        began = time.process_time()
        threading.setprofile(self._note)
        sys.setprofile(self._note)
        try:
            return (yield)
        finally:
            sys.setprofile(None)
            threading.setprofile(None)  # type: ignore[arg-type]
            names = {f"{code.co_filename}:{code.co_qualname}" for code in self._codes}
            self.found[item.nodeid] = (time.process_time() - began, sorted(n for n in names if self._is_ours(n)))

    def _note(self, frame: FrameType, event: str, _: Any) -> None:
        if event == "call":
            self._codes.add(frame.f_code)

    def _is_ours(self, name: str) -> bool:
        return name.startswith(self._roots)


def record(tests: list[str], roots: tuple[str, ...]) -> Called:
    """Run tests and give what each calls; what is loaded stays for `is_noticed`."""
    recorder = Recorder(tuple(str(Path(root).resolve()) for root in roots))
    pytest.main(["-q", "-n", "0", "-p", "no:cacheprovider", *tests], plugins=[recorder])
    return recorder.found


def those_who_call(mutant: Mutant, called: Called, budget: float) -> list[str]:
    """Give the quickest tests that call a function, as many as the budget of seconds allows."""
    whole = f"{Path(mutant.path).resolve()}:{mutant.function}"
    able = sorted((seconds, test) for test, (seconds, names) in called.items() if _names(whole, names))
    chosen, left = [], budget
    for seconds, test in able:
        if left < seconds and chosen:
            break
        chosen.append(test)
        left -= seconds
    return chosen


def _names(whole: str, names: list[str]) -> bool:
    return any(name.replace(".<locals>", "") == whole for name in names)


def is_noticed(mutant: Mutant, tests: list[str], patience: float) -> bool:
    """Tell whether one of these tests fails with a change, or does not end within so many seconds."""
    child = os.fork()
    if child == 0:
        _try(mutant, tests)
    until = time.monotonic() + patience
    while time.monotonic() < until:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status) != 0
        time.sleep(0.02)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return True


def _try(mutant: Mutant, tests: list[str]) -> None:
    status = 3
    try:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.dup2(nowhere, 2)
        put_in(mutant)
        status = int(pytest.main(["-x", "-q", "-n", "0", "-p", "no:cacheprovider", "-p", "no:randomly", *tests]))
    finally:
        os._exit(status)


def put_in(mutant: Mutant) -> int:
    """Give functions of this process the code of a changed file; returns how many have other code now."""
    path = str(Path(mutant.path).resolve())
    new = {_key(code): code for code in _codes(compile(changed(mutant.path, mutant.number), path, "exec"))}
    count = 0
    gc.unfreeze()  # what is taken as there to stay is not listed
    for function in [each for each in gc.get_objects() if isinstance(each, FunctionType)]:
        code = function.__code__
        other = new.get(_key(code)) if code.co_filename == path else None
        if other is not None and other.co_freevars == code.co_freevars and not _same(code, other):
            function.__code__ = other
            count += 1
    return count


def _key(code: CodeType) -> tuple[str, int]:
    return code.co_qualname, code.co_firstlineno


def _codes(code: CodeType) -> list[CodeType]:
    inner = [each for each in code.co_consts if isinstance(each, CodeType)]
    return [code, *(found for each in inner for found in _codes(each))]


def _same(one: CodeType, other: CodeType) -> bool:
    if one.co_code != other.co_code or len(one.co_consts) != len(other.co_consts):
        return False
    pairs = zip(one.co_consts, other.co_consts, strict=True)
    return all(
        _same(a, b) if isinstance(a, CodeType) and isinstance(b, CodeType) else (type(a), a) == (type(b), b)
        for a, b in pairs
    )
