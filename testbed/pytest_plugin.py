"""Leave tests against a real API server or browser out where there is none, and say so in one line; with CI=true they fail instead."""

from __future__ import annotations

import math
import os
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from _pytest.runner import runtestprotocol

from testbed import browser, old_etcd, provide

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

pytest_plugins = ["testbed.fixtures"]

_IMPLIED = (
    ("fixture", "api_server", "kube"),
    ("fixture", "gated_api_server", "kube"),
    ("fixture", "gated_api_server", "apart"),
    ("fixture", "old_api_server", "old_etcd"),
    ("marker", "old_etcd", "kube"),
    ("marker", "old_etcd", "apart"),
    ("fixture", "helm", "helm"),
    ("fixture", "go_clients", "go_clients"),
    ("fixture", "volcano_programs", "go_clients"),
    ("fixture", "volcano_programs", "controller_manager"),
    ("fixture", "volcano_programs", "volcano"),
    ("marker", "go_clients", "kube"),
    *(("marker", name, "kube") for name in (provide.DEFINITIONS, *provide.OPERATORS)),
)
_NEEDS = {
    "kube": ("a real API server", provide.HOW),
    "old_etcd": ("an API server over an old etcd", provide.how(old_etcd.NAME)),
    "helm": ("helm", provide.how("helm")),
    "browser": ("a real browser", browser.HOW),
    "go_clients": ("kube-scheduler and Kubernetes' controllers", provide.how(*provide.GO_CLIENTS)),
    "controller_manager": ("kube-controller-manager", provide.how("kube-controller-manager")),
    "volcano": ("Volcano's programs", provide.how("volcano")),
    "definitions": ("what operators define", provide.how(provide.DEFINITIONS)),
    **{name: (f"the operator {name}", provide.how(name)) for name in provide.OPERATORS},
}
_BEYOND_CI = frozenset(
    provide.OPERATORS
)  # operators whose compiling would take CI too long: what needs them is left out there, too
_GARBAGE = "400"
"""How much may be thrown away, in percent of what is kept, before programs written in Go look for it: four times what they do by themselves saves a fifth of their time."""
_TRUSTED = os.devnull
"""Whom programs trust that are not told whom: nobody, as reading what this machine trusts takes them a tenth of their start and no test needs it."""
_WAITING = ("tests/up/", "tests/web/")
"""Where most tests start programs and wait for them."""
_LEFT_OUT = pytest.StashKey[dict[str, int]]()
_MISSING = pytest.StashKey[tuple[str, ...]]()


def pytest_configure(config: pytest.Config) -> None:
    """Declare the markers, and say to all programs that tests start how to be cheap."""
    os.environ.setdefault("GOGC", _GARBAGE)
    os.environ["SSL_CERT_FILE"] = _TRUSTED
    config.addinivalue_line("markers", "kube: needs a real API server (implied by the fixture api_server)")
    config.addinivalue_line("markers", "old_etcd: needs an old etcd besides (implied by the fixture old_api_server)")
    config.addinivalue_line(
        "markers",
        "apart: needs an API server besides that of all, and comes after those that do not, so that it lives for a short time",
    )
    config.addinivalue_line("markers", "browser: needs a real browser")
    config.addinivalue_line("markers", "long: takes long, and is begun early, so that nobody waits for it at the end")
    config.addinivalue_line("markers", "helm: needs helm (implied by the fixture helm)")
    config.addinivalue_line(
        "markers", "go_clients: needs kube-scheduler and Kubernetes' controllers (implied by the fixture go_clients)"
    )
    config.addinivalue_line("markers", "controller_manager: needs the whole kube-controller-manager")
    config.addinivalue_line("markers", "volcano: needs Volcano's programs (implied by the fixture volcano_programs)")
    config.addinivalue_line("markers", "definitions: needs what operators define")
    for name in provide.OPERATORS:
        config.addinivalue_line("markers", f"{name}: needs the operator {name}")
    config.stash[_LEFT_OUT] = {}


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark what asks for a server, before `-m` selects."""
    held = {"fixture": set(getattr(item, "fixturenames", ())), "marker": {mark.name for mark in item.iter_markers()}}
    for kind, name, marker in _IMPLIED:
        if name in held[kind]:
            item.add_marker(marker)
            held["marker"].add(marker)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Take out what cannot run; last, so that only what would have run is counted. Workers have an order of their own."""
    config.stash[_MISSING] = missing = _missing(items)
    if _in_ci():
        missing = tuple(marker for marker in missing if marker in _BEYOND_CI)
    counts = config.stash[_LEFT_OUT]
    left_out = [item for item in items if _lacking(item, missing)]
    for item in left_out:
        marker = _lacking(item, missing)
        counts[marker] = counts.get(marker, 0) + 1
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if not _lacking(item, missing)]
    if hasattr(config, "workerinput"):
        items[:] = dealt(items, config.workerinput["workercount"])


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """End the servers of a worker after the last test that needs one: one that nobody asks anything uses up a fiftieth of a processor."""
    if not hasattr(item.config, "workerinput") or _comes_later(item) or nextitem is None or not _comes_later(nextitem):
        return None
    hook = item.ihook
    hook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    runtestprotocol(item, nextitem=None)
    hook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


def dealt(items: Sequence[pytest.Item], workers: int) -> list[pytest.Item]:
    """Order tests for workers, each of whom gets a run of equal length and takes from the ends of others later on.

    The first one begins with what needs a server, the last one with what takes long or waits for programs: meanwhile others compute, and who is done last has
    short tests left.
    """
    served = sorted((item for item in items if not _comes_later(item)), key=_order)
    slow = sorted((item for item in items if _comes_later(item) and _is_slow(item)), key=_order)
    quick = [item for item in items if _comes_later(item) and not _is_slow(item)]
    before = max(0, len(items) - math.ceil(len(items) / workers) - len(served))
    return [*served, *quick[:before], *slow, *quick[before:]]


def _order(item: pytest.Item) -> tuple[bool, bool]:
    """Put what takes long first, and what needs a server of its own after what needs that of all."""
    return item.get_closest_marker("apart") is not None, item.get_closest_marker("long") is None


def _is_slow(item: pytest.Item) -> bool:
    return item.get_closest_marker("long") is not None or item.nodeid.startswith(_WAITING)


def _comes_later(item: pytest.Item) -> bool:
    """Tell whether a test needs no server: those that do stand together, so that few workers start one."""
    return item.get_closest_marker("kube") is None


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Fail what cannot run where it has to."""
    if marker := _lacking(item, item.config.stash[_MISSING]):
        what, how = _NEEDS[marker]
        raise pytest.fail.Exception(f"this test needs {what}, and CI=true: {how}", pytrace=False)


def _missing(items: Sequence[pytest.Item]) -> tuple[str, ...]:
    """Return the markers that nothing here can serve; look only for what some test needs."""
    carried = {mark.name for item in items for mark in item.iter_markers()}
    wanted = [marker for marker in _NEEDS if marker in carried]
    found: dict[str, Callable[[], object]] = {
        "kube": provide.binaries,
        "old_etcd": old_etcd.find,
        "helm": lambda: provide.program("helm"),
        "browser": browser.find,
        "go_clients": partial(_all_of, provide.GO_CLIENTS),
        "controller_manager": partial(provide.program, "kube-controller-manager"),
        "volcano": partial(_all_of, provide.VOLCANO),
        **{name: partial(provide.program, name) for name in (provide.DEFINITIONS, *provide.OPERATORS)},
    }
    return tuple(marker for marker in wanted if found[marker]() is None)


def _all_of(programs: Sequence[str]) -> Path | None:
    """Return where one of some programs is, if all are there."""
    places = [provide.program(name) for name in programs]
    return places[0] if all(places) else None


def _lacking(item: pytest.Item, missing: tuple[str, ...]) -> str:
    return next((marker for marker in missing if item.get_closest_marker(marker)), "")


def _in_ci() -> bool:
    return os.environ.get("CI") == "true"


# ---- a worker of pytest-xdist counts, and its controller reports


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Hand the counts of a worker to its controller."""
    output: dict[str, Any] | None = getattr(session.config, "workeroutput", None)
    if output is not None:
        output["left_out"] = session.config.stash[_LEFT_OUT]


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Take the counts of a worker; each of them has collected every test."""
    node.config.stash[_LEFT_OUT].update(getattr(node, "workeroutput", {}).get("left_out", {}))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Say how many tests were left out, and how to get what they need."""
    for marker, count in config.stash[_LEFT_OUT].items():
        what, how = _NEEDS[marker]
        tests, were = ("test", "was") if count == 1 else ("tests", "were")
        terminalreporter.write_line(f"{count} {tests} against {what} {were} left out: {how}")
