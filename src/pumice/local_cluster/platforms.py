"""What a local cluster needs of the system it runs on: parts that some have not, and room for many connections."""

from __future__ import annotations

import importlib.util
import signal
import socket
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pumice.local_cluster.options import Options

_FILES: Final = 10_240  # open files, of which each connection is one; macOS allows no more, and begins with 256


def missing(options: Options) -> str:
    """Say what keeps a cluster from running here and what to do about it, or nothing."""
    if options.data is not None and not _has_module("sqlite3"):
        return "this Python has no sqlite3, in which --data keeps its objects; leave --data out, or use another Python"
    if options.scheduler != "pumice":
        return ""
    lacking = [f"module {name}" for name in ("resource",) if not _has_module(name)]
    lacking += [f"signal {name}" for name in ("SIGUSR1", "SIGUSR2") if not hasattr(signal, name)]
    lacking += [] if hasattr(socket, "AF_UNIX") else ["sockets of the file system"]
    if not lacking:
        return ""
    return (
        f"the scheduler needs Linux or macOS: this system has no {', no '.join(lacking)}; "
        "run pumice up in WSL or in a container, or with --scheduler none and the scheduler elsewhere"
    )


def _has_module(name: str) -> bool:
    return importlib.util.find_spec(name) is not None


def allow_many_files() -> int:
    """Raise how many files may be open, as far as that is allowed; gives how many may be, 0 where nobody counts."""
    if not _has_module("resource"):
        return 0
    import resource  # noqa: PLC0415  not on every system

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= _FILES:
        return soft
    wanted = _FILES if hard == resource.RLIM_INFINITY else min(_FILES, hard)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    except (OSError, ValueError):
        return soft  # a system that has a bound of its own
    return wanted
