"""The page of a local cluster: `pumice web` as a process of its own, so that nobody who looks slows the cluster down."""

from __future__ import annotations

import subprocess
import sys
import threading
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from pumice.local_cluster.access_files import AccessFiles
    from pumice.local_cluster.options import Options

_PATIENCE: Final = 3.0  # seconds that it gets to end
_ADDRESS: Final = "http://"


class Page:
    """Runs the page while the cluster runs; `tell` hears where it is."""

    def __init__(self, options: Options, access: AccessFiles, tell: Callable[[str], None]) -> None:
        self._tell = tell
        command = [sys.executable, "-c", "from pumice.cli import main; main()", "web", "--until-input-ends"]
        command += ["--kubeconfig", str(access.kubeconfig), "--listen", f"127.0.0.1:{options.web_port}"]
        command += ["--config", options.config] if options.config else []
        command += ["--plugins-dir", options.plugins_dir] if options.plugins_dir else []
        self._process = subprocess.Popen(  # noqa: S603  our own program
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        self._listening = threading.Thread(target=self._listen, name="page", daemon=True)
        self._listening.start()

    def _listen(self) -> None:
        """Tell where the page is once it is there, or why it never will be."""
        assert self._process.stdout is not None  # noqa: S101  it was started with pipes
        assert self._process.stderr is not None  # noqa: S101  as above
        for line in self._process.stdout:
            if _ADDRESS in line:
                self._tell(f"Look at it in a browser: {line.strip()}")
        problem = self._process.stderr.read().strip().splitlines()
        if self._process.wait() > 0 and problem:
            self._tell(f"There is no page: {problem[-1]}")

    def stop(self) -> None:
        """End it."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        self._process.terminate()
        try:
            self._process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._listening.join(_PATIENCE)
        for stream in (self._process.stdout, self._process.stderr):
            if stream is not None:
                stream.close()
