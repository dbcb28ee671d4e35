"""Settings of the interpreter for a process in which one thread computes and another one serves sockets."""

from __future__ import annotations

import gc
import sys
from typing import Final

SWITCH_SECONDS: Final = 0.0001
"""How long a thread that computes may keep another one from running; with Python's own 5 ms, binds would crawl while a cycle decides.

A request gives the interpreter up at every call of the system, so the rest of a cycle delays a bind by several times this. Switching ten times as often was not found to cost anything.
"""

THRESHOLDS: Final = (50_000, 20, 50)
"""Objects of the model live long: looking for garbage as often as Python does by itself costs more than it finds."""


def tune() -> None:
    """Tune the interpreter of this process."""
    sys.setswitchinterval(SWITCH_SECONDS)
    gc.set_threshold(*THRESHOLDS)


def settle() -> None:
    """Take what there is now as there to stay: what was listed at the start lives for long, and nobody needs to look for rubbish in it again and again."""
    gc.freeze()
