"""What a scheduler loads when it starts: nothing that only some of its flags need, since the first bind waits for it."""

from __future__ import annotations

import subprocess
import sys

SELDOM = (
    "aiohttp",
    "cryptography",
    "pumice.controllers.volcano.registry",
    "pumice.recording",
    "rich",
)


def test_a_scheduler_loads_no_server_no_controllers_no_recorder_and_nothing_that_draws_before_a_flag_asks_for_them():
    code = f"import sys, pumice.server.process; print(sorted(set({SELDOM!r}) & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
