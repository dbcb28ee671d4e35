"""Run a program beside the tests: its output in a file, its life bound to ours."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_POLL_SECONDS = 0.05
_TAIL_LINES = 30


class StartError(Exception):
    """A program ended, or was not ready in time; the message holds the end of its log."""


class PortTakenError(StartError):
    """Somebody else took the port between our choosing it and the program's listening on it."""


class Process:
    """A running program.

    A shell waits beside it for the end of this process, however that comes about, and kills the program then. Both have a session of their own, so that Ctrl-C
    reaches only the tests, which stop their servers in order.
    """

    def __init__(self, command: Sequence[str | Path], log: Path, *, cwd: Path) -> None:
        self.log = log
        self._name = Path(command[0]).name
        with log.open("ab") as file:
            self._from = file.tell()
            self._process = subprocess.Popen(
                [str(word) for word in command],
                cwd=cwd,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._guard = subprocess.Popen(
            ["/bin/sh", "-c", 'read -r _; kill -9 "$1" 2>/dev/null', "guard", str(self.pid)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    @property
    def pid(self) -> int:
        """Return the program's process id."""
        return self._process.pid

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the program, if it still runs."""
        self._process.send_signal(number)

    def freeze(self) -> None:
        """Stop the program in its tracks; return when none of its threads does anything any more."""
        self.signal(signal.SIGSTOP)
        os.waitid(os.P_PID, self.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)

    def stop(self, *, grace: float = 0.0) -> None:
        """End the program: at once, or asked first and given so many seconds."""
        if grace > 0:
            self._process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(grace)
        self._process.kill()
        self._process.wait()
        # only now: a guard that outlived the program could kill whoever got its number next
        self._guard.kill()
        self._guard.communicate()

    def wait_until(self, ready: Callable[[], bool], seconds: float) -> None:
        """Return when `ready` says so; raise with the end of the log if the program ends first, or takes too long."""
        deadline = time.monotonic() + seconds
        while not ready():
            if self._process.poll() is not None:
                error = PortTakenError if "address already in use" in self.output() else StartError
                raise error(f"{self._name} ended with {self._process.returncode}:\n{self._tail()}")
            if time.monotonic() > deadline:
                raise StartError(f"{self._name} was not ready after {seconds:g} s:\n{self._tail()}")
            time.sleep(_POLL_SECONDS)

    def output(self) -> str:
        """Return what the program has printed."""
        with self.log.open("rb") as file:
            file.seek(self._from)
            return file.read().decode(errors="replace")

    def _tail(self) -> str:
        return "\n".join([str(self.log), *self.output().splitlines()[-_TAIL_LINES:]])


def free_port() -> int:
    """Return a port of loopback that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
