"""Settings of the interpreter for a process in which one thread computes and another one serves sockets."""

from __future__ import annotations

import gc
import sys
from typing import Final

SWITCH_SECONDS: Final = 0.0005
"""How long a thread that computes may keep another one from running; with Python's own 5 ms, binds would crawl while a cycle decides."""

THRESHOLDS: Final = (50_000, 20, 50)
"""Objects of the model live long: looking for garbage as often as Python does by itself costs more than it finds."""


def tune() -> None:
    """Tune the interpreter of this process."""
    sys.setswitchinterval(SWITCH_SECONDS)
    gc.set_threshold(*THRESHOLDS)


def settle() -> None:
    """Take what there is now as there to stay: what was listed at the start lives for long, and nobody needs to look for rubbish in it again and again."""
    gc.freeze()
