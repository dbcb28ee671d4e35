"""Run a command of ours in which one part stands still for ever from the moment at which a file is there: `python stalling.py PART FILE COMMAND …`.

It is noticed as always, only sooner: a test need not wait for half a minute. The process ends if there is a second file, FILE.end: until then whoever tests has
time to look.
"""

from __future__ import annotations

import asyncio
import math
import selectors
import sys
import threading
import time
from pathlib import Path

from pumice.cli import main
from pumice.controllers.queueing import running
from pumice.fleet import kubelets
from pumice.local_cluster import api_thread, journal
from pumice.recording import segments
from pumice.scheduler import Scheduler
from pumice.server.health import overdue
from pumice.server.threads import mailbox

LOOPS = {"io": "io", "api": "api", "webhooks": "MainThread", "controllers": "MainThread", "nodes": "MainThread"}
WAITS = {
    "kubelets": (api_thread, "_stirring"),
    "local-controllers": (running.Runner, "look"),
    "turns": (running.Runner, "_idle"),
    "fleet": (kubelets.Kubelets, "_given"),
}
SOONER = {"LATE_TOLD": 4.0, "LATE_ENDED": math.inf, "BUSY_TOLD": 4.0}
ENDED = 12.0


def stall_at_will(owner, name, file, whose=lambda: True):
    """Let a method wait for ever once the file is there."""
    method = getattr(owner, name)

    def stalling(*arguments, **named):
        if whose() and file.exists():
            threading.Event().wait()
        return method(*arguments, **named)

    setattr(owner, name, stalling)


def wait_at_will(owner, name, file):
    """Let a coroutine wait for ever once the file is there, while its loop goes on."""
    coroutine = getattr(owner, name)

    async def waiting(*arguments):
        if file.exists():
            await asyncio.Event().wait()
        return await coroutine(*arguments)

    setattr(owner, name, waiting)


def end_at_will(file):
    """Let whoever watches end the process once the file is there."""
    while not file.exists():
        time.sleep(0.2)
    overdue.LATE_ENDED = ENDED


def prepare(part, file):
    """Let a part stall at will."""
    if part in WAITS:
        wait_at_will(*WAITS[part], file)
    elif part in LOOPS:
        thread = LOOPS[part]
        whose = lambda: threading.current_thread().name == thread  # noqa: E731
        stall_at_will(selectors.DefaultSelector, "select", file, whose)
    else:
        owner, method = {
            "deciding": (mailbox.Mailbox, "take"),
            "cycle": (Scheduler, "cycle"),
            "journal": (journal.Journal, "_commit"),
            "recording": (segments.SegmentFile, "write"),
        }[part]
        stall_at_will(owner, method, file)


if __name__ == "__main__":
    for name, seconds in SOONER.items():
        setattr(overdue, name, seconds)
    threading.Thread(target=end_at_will, args=(Path(f"{sys.argv[2]}.end"),), daemon=True).start()
    prepare(sys.argv[1], Path(sys.argv[2]))
    del sys.argv[1:3]
    main()
