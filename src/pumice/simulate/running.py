"""Runs: every policy on the same trace, repeated as often as was asked for, in this process or in several at once.

A run depends on its settings alone, so results are the same on any number of processes.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
import sys
import time
from multiprocessing import connection
from typing import TYPE_CHECKING, Any, Final

import msgspec

from pumice.framework import configuration
from pumice.server.threads import interpreter
from pumice.simulate import isolating, judging, loading
from pumice.simulate.engine import Simulation

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pumice.framework.registry import Registry
    from pumice.simulate.loading import Loaded
    from pumice.simulate.results import Result
    from pumice.simulate.settings import PolicyFile, Settings

_EVERY: Final = 5.0
"""Seconds between two lines of progress; on a terminal, where one line is written over, a tenth of it."""


class Run(msgspec.Struct, frozen=True):
    """One policy on one repetition of the trace, or on the jobs of one queue with its part of the cluster to itself."""

    policy: int
    repetition: int
    queue: str = ""
    share: float = 1.0


class Progress:
    """Tells on stderr how far a run is."""

    def __init__(self, name: str, jobs: int, *, quiet: bool) -> None:
        self._name = name
        self._jobs = jobs
        self._quiet = quiet
        self._live = sys.stderr.isatty()
        self._told = time.monotonic()
        self._dirty = False

    def __call__(self, moment: int, arrived: int) -> None:
        """Tell where a run is, if it is time to."""
        now = time.monotonic()
        if self._quiet or now - self._told < (_EVERY / 10 if self._live else _EVERY):
            return
        self._told = now
        text = f"{self._name}: {arrived:,} of {self._jobs:,} jobs have arrived, day {moment / 86_400e6:.1f}"
        self._dirty = self._live
        sys.stderr.write(f"\r{text}\x1b[K" if self._live else f"{text}\n")
        sys.stderr.flush()

    def end(self) -> None:
        """Leave a clean line behind."""
        if self._dirty:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


def runs(settings: Settings, loaded: Loaded) -> list[Run]:
    """List what is to be run: the trace as it is for every policy, then what was shaken, then queues alone."""
    policies = range(len(settings.policies))
    found = [Run(policy, repetition) for repetition in range(max(1, settings.shake)) for policy in policies]
    if settings.isolated:
        shares = judging.shares(loaded)
        found += [Run(policy, 0, queue, share) for policy in policies for queue, share in shares.items()]
    return found


def one(settings: Settings, run: Run, known: Registry, *, quiet: bool = True) -> Result:
    """Simulate one run."""
    loaded = loading.load(settings, run.repetition)
    if run.queue:
        loaded = isolating.alone(loaded, run.queue, run.share)
    policy = settings.policies[run.policy]
    progress = Progress(policy.name, len(loaded.trace.jobs), quiet=quiet)
    simulation = Simulation(
        loaded.trace,
        loaded.cluster,
        configured(policy, known),
        policy=policy.name,
        known=known,
        period=settings.period,
        progress=progress,
    )
    before = gc.get_threshold()
    gc.set_threshold(*interpreter.THRESHOLDS)  # as in the running scheduler
    try:
        return simulation.run()
    finally:
        gc.set_threshold(*before)
        progress.end()


def configured(policy: PolicyFile, known: Registry) -> configuration.Configuration:
    """Load the configuration of a policy."""
    catalog = known.catalog()
    if not policy.text:
        return configuration.default(catalog)
    return configuration.load(policy.text, catalog, policy.file)


def everything(
    settings: Settings,
    loaded: Loaded,
    registry: Callable[[], Registry],
    *,
    processes: int = 1,
    quiet: bool = True,
) -> list[tuple[Run, Result]]:
    """Simulate all runs. After an interruption the list ends with the run that was interrupted, or those that were."""
    wanted = runs(settings, loaded)
    if processes > 1 and len(wanted) > 1:
        return _spread(settings, wanted, registry, processes, quiet=quiet)
    known = registry()
    done = []
    for run in wanted:
        result = one(settings, run, known, quiet=quiet)
        done.append((run, result))
        if result.interrupted:
            break
    return done


def _spread(
    settings: Settings, wanted: Sequence[Run], registry: Callable[[], Registry], processes: int, *, quiet: bool
) -> list[tuple[Run, Result]]:
    context = multiprocessing.get_context("spawn")
    waiting = list(wanted)
    working: dict[Any, tuple[Run, Any]] = {}
    done: dict[Run, Any] = {}
    while waiting or working:
        try:
            while waiting and len(working) < processes:
                run = waiting.pop(0)
                ours, theirs = context.Pipe(duplex=False)
                process = context.Process(target=_work, args=(theirs, settings, run, registry, quiet))
                process.start()
                theirs.close()
                working[ours] = (run, process)
            for ready in connection.wait(list(working)):
                run, process = working[ready]
                done[run] = _received(ready)
                del working[ready]
                process.join()
        except KeyboardInterrupt:
            waiting.clear()
            for _, process in working.values():
                if process.pid is not None and process.is_alive():
                    os.kill(process.pid, signal.SIGINT)
    failed = [each for each in done.values() if isinstance(each, BaseException)]
    if failed:
        raise failed[0]
    return [(run, done[run]) for run in wanted if run in done]


def _received(ready: Any) -> Result | BaseException:
    try:
        found: Result | BaseException = ready.recv()
    except EOFError:
        return RuntimeError("a process that simulated ended without a result; was there memory for it?")
    return found


def _work(answer: Any, settings: Settings, run: Run, registry: Callable[[], Registry], quiet: bool) -> None:
    try:
        answer.send(one(settings, run, registry(), quiet=quiet))
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001  told by whoever started this process
        answer.send(error)
