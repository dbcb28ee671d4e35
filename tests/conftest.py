"""Property tests draw the same examples in every run, so that a run is repeatable; `make fuzz` draws new ones."""

from __future__ import annotations

import gc
import logging
import os
import signal
import sysconfig
import traceback
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pumice
from drawing import drawn
from pumice.cache.cache import Cache
from pumice.framework import observing
from pumice.framework.breakdowns import PluginBreakdownError
from pumice.server.threads import interpreter

pytest_plugins = ["testbed.pytest_plugin", "testbed.pytest_times"]

settings.register_profile("same", derandomize=True, deadline=None, max_examples=drawn(100))
settings.register_profile("new", deadline=None, print_blob=True)
settings.load_profile("new" if os.environ.get("PUMICE_FUZZ") else "same")

# Whoever is started in the background ignores Ctrl-C, and so would every process that tests start and end with it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


# Looking for garbage as often as Python does by itself costs a good part of the processor time: so do it as seldom as the scheduler.
gc.set_threshold(*interpreter.THRESHOLDS)


def pytest_collection_finish():
    """Take what was collected as there to stay: otherwise every test would pay for all others."""
    # From its first property on Hypothesis keeps a generator, and warns if it cannot see who holds it: not in what is frozen.
    given(st.none())(lambda _: None)()
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def libraries():
    """Give libraries back what they write to: a process that a test runs lets them write to a stream that is closed after it."""
    found = [(each, each.handlers, each.propagate) for each in map(logging.getLogger, ("aiohttp", "asyncio"))]
    yield
    for library, handlers, propagate in found:
        library.handlers, library.propagate = handlers, propagate


# ---- nothing of ours breaks down in silence

OURS = (str(Path(pumice.__file__).parent), sysconfig.get_path("stdlib"), sysconfig.get_path("purelib"))
RETREATS = []


def pytest_configure(config):
    config.addinivalue_line(
        "markers",
        "retreats: a fast way may be left here, or something break down in the cache, because of what the test does",
    )
    observing.Observer.retreated = lambda _observer, way, error: RETREATS.append(
        (f"the fast way of {way} was left", error)
    )
    note = Cache.broke

    def broke(cache, what, error):
        RETREATS.append((what, error))
        note(cache, what, error)

    Cache.broke = broke


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    """Fail a test in which our own code broke down on a fast way, or in the cache: the long one hides it, and the cache goes on with what comes next."""
    RETREATS.clear()
    result = yield
    unwanted = [(way, error) for way, error in RETREATS if not is_of_the_test(error)]
    if unwanted and item.get_closest_marker("retreats") is None:
        what, error = unwanted[0]
        told = "".join(traceback.format_exception(error))
        pytest.fail(f"{what}; mark the test with `retreats` if it means that\n{told}")
    return result


def is_of_the_test(error):
    """Tell whether an exception comes from a plugin that the test has made."""
    if isinstance(error, PluginBreakdownError):
        if error.breakdown.resting:
            return True  # it was told of when the function was called
        error = error.breakdown.error
    return any(not frame.filename.startswith((*OURS, "<")) for frame in traceback.extract_tb(error.__traceback__))
