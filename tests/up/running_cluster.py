"""A cluster of `pumice up` as a process of its own, and kubectl beside it."""

from __future__ import annotations

import base64
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import yaml

from testbed import calling, provide, waiting


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
        page = [] if "--web" in self._arguments else ["--no-web"]  # nobody looks
        command = [sys.executable, "-c", "from pumice.cli import main; main()", "up", *page, *self._arguments]
        # To a file, not to a pipe: whoever writes to a pipe that nobody reads stops sooner or later.
        with tempfile.NamedTemporaryFile(dir=self.folder, prefix="output-", delete=False) as output:
            self.process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
        self.output = Path(output.name)
        self.lines = self._lines()
        lines = []
        for line in self.lines:
            lines.append(line)
            if "Ctrl-C ends it" in line:
                break
        self.text = "".join(lines)
        found = re.search(r"KUBECONFIG=(\S+)", self.text)
        if not found:
            self.process.wait(timeout=waiting.PATIENCE)
            raise AssertionError(self.text)
        self.kubeconfig = found[1]
        self._document = yaml.safe_load(Path(self.kubeconfig).read_text())
        self._authority = self.folder / "ca.crt"
        self._authority.write_bytes(
            base64.b64decode(self._document["clusters"][0]["cluster"]["certificate-authority-data"])
        )
        self.caller = self._caller()

    def _lines(self):
        """Give what is printed, line by line as it comes, until the process ends."""
        with self.output.open() as file:
            begun = ""
            while True:
                ended = self.process.poll() is not None
                begun += file.readline()
                if begun.endswith("\n"):
                    yield begun
                    begun = ""
                elif ended:
                    return
                else:
                    time.sleep(0.01)

    def stop(self, number=signal.SIGINT):
        """End it; returns the exit status."""
        self.process.send_signal(number)
        status = self.process.wait(timeout=waiting.PATIENCE)
        self.lines.close()
        return status

    def _caller(self):
        """Ask it with the standard library."""
        cluster = self._document["clusters"][0]["cluster"]
        token = next(each["user"]["token"] for each in self._document["users"] if "token" in each["user"])
        return calling.Caller(int(cluster["server"].rpartition(":")[2]), token, self._authority)

    @property
    def environment(self):
        """What kubectl has to be told."""
        return {"KUBECONFIG": self.kubeconfig, "KUBECACHEDIR": str(self.folder / "cache"), "KUBERC": "off"}

    def kubectl(self, *arguments, input=None, check=True):  # noqa: A002  # as subprocess names it
        """Run kubectl; returns what it printed, what it complained about included if it may fail."""
        command = [str(provide.program("kubectl")), *arguments]
        environment = {**os.environ, **self.environment}
        done = subprocess.run(
            command, input=input, env=environment, capture_output=True, text=True, check=False, timeout=waiting.PATIENCE
        )
        if check and done.returncode:
            printed = f"{done.stdout}{done.stderr}\nThe cluster printed:\n{self.output.read_text()[-4000:]}"
            raise AssertionError(f"kubectl {' '.join(arguments)}: {printed}")
        return done.stdout if check else done.stdout + done.stderr
