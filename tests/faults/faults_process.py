"""`pumice scheduler` as a process of its own, talking to the API server through a proxy."""

from __future__ import annotations

import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from testbed import waiting

COMMAND = [sys.executable, "-c", "from pumice.cli import main; main()", "scheduler"]


class Scheduler:
    """One process and its log, used inside `with`."""

    def __init__(self, proxy, *flags):
        self.proxy = proxy
        self._log = tempfile.NamedTemporaryFile("w+", prefix="pumice-log-")  # noqa: SIM115  closed by __exit__
        command = [*COMMAND, "--master", proxy.url, "--schedule-period=100ms", "-v=3", *flags]
        self._process = subprocess.Popen(command, stdout=self._log, stderr=self._log)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        self._log.close()

    @property
    def log(self):
        return Path(self._log.name).read_text()

    def says(self, text):
        """Wait until the log has a text."""
        waiting.until(lambda: text in self.log, tell=lambda: self.log)

    def signal(self, number):
        self._process.send_signal(number)

    def kill(self):
        """End it as a power cut would."""
        self._process.kill()
        self._process.wait()

    def stop(self):
        """End it in good order."""
        self.signal(signal.SIGTERM)
        return self.wait()

    def wait(self):
        return self._process.wait(waiting.PATIENCE)
