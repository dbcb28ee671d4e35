"""Property tests draw the same examples in every run, so that a run is repeatable; `make fuzz` draws new ones."""

from __future__ import annotations

import os
import signal

from hypothesis import settings

pytest_plugins = ["testbed.pytest_plugin"]

settings.register_profile("same", derandomize=True, deadline=None)
settings.register_profile("new", deadline=None, print_blob=True)
settings.load_profile("new" if os.environ.get("PUMICE_FUZZ") else "same")

# Whoever is started in the background ignores Ctrl-C, and so would every process that tests start and end with it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
