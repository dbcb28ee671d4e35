"""A cluster of `pumice up` as a process of its own, and kubectl beside it."""

from __future__ import annotations

import base64
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import yaml

from testbed import calling, provide

SECONDS = 60.0


class RunningCluster:
    """Starts the command, reads where it is, and ends it."""

    def __init__(self, folder, *arguments):
        self.folder = folder
        self._arguments = arguments
        self.process = None
        self.text = ""

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.stop()

    def start(self):
        command = [sys.executable, "-c", "from pumice.cli import main; main()", "up", *self._arguments]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        lines = []
        for line in self.process.stdout:
            lines.append(line)
            if "Ctrl-C ends it" in line:
                break
        self.text = "".join(lines)
        found = re.search(r"KUBECONFIG=(\S+)", self.text)
        if not found:
            self.process.wait(timeout=SECONDS)
            self.process.stdout.close()
            raise AssertionError(self.text)
        self.kubeconfig = found[1]

    def stop(self, number=signal.SIGINT):
        """End it; returns the exit status."""
        self.process.send_signal(number)
        status = self.process.wait(timeout=SECONDS)
        self.process.stdout.close()
        return status

    @property
    def caller(self):
        """Ask it with the standard library."""
        document = yaml.safe_load(Path(self.kubeconfig).read_text())
        cluster = document["clusters"][0]["cluster"]
        authority = self.folder / "ca.crt"
        authority.write_bytes(base64.b64decode(cluster["certificate-authority-data"]))
        token = next(each["user"]["token"] for each in document["users"] if "token" in each["user"])
        return calling.Caller(int(cluster["server"].rpartition(":")[2]), token, authority)

    def kubectl(self, *arguments, input=None, check=True):  # noqa: A002  # as subprocess names it
        """Run kubectl; returns what it printed, what it complained about included if it may fail."""
        environment = {
            **os.environ,
            "KUBECONFIG": self.kubeconfig,
            "KUBECACHEDIR": str(self.folder / "cache"),
            "KUBERC": "off",
        }
        command = [str(provide.program("kubectl")), *arguments]
        done = subprocess.run(
            command, input=input, env=environment, capture_output=True, text=True, check=False, timeout=120
        )
        if check:
            assert done.returncode == 0, f"kubectl {' '.join(arguments)}: {done.stdout}{done.stderr}"
        return done.stdout if check else done.stdout + done.stderr


def until(condition, seconds=SECONDS):
    """Ask again and again until something is so."""
    end = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < end, "it did not come to be in time"
        time.sleep(0.05)
    return found
