"""A Kubernetes API server to try things on: `python -m testbed` runs one until it is told to stop, and says how to use it."""

from __future__ import annotations

import os
import shlex
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from testbed import processes, provide, server

if TYPE_CHECKING:
    from types import FrameType

_GUIDE = """\
A Kubernetes API server is at {url}, with nothing in it. In every other terminal, first

  export KUBECONFIG={kubeconfig}
  export PATH={path}:$PATH

Then, the second and the third in a terminal of their own, as they go on until Ctrl-C:

  pumice install --print --create-namespace --part scheduler | kubectl apply --server-side -f -
  pumice nodes --count 20
  pumice scheduler --leader-elect=false
  kubectl apply -f docs/examples/pods-gang.yaml
  kubectl get podgroups,pods -o wide

No controllers run, so a Job or a Deployment stays without pods: bring pods of your own, as this gang does.
Ctrl-C ends the server, and everything in it is gone."""


def main() -> int:
    """Run an API server in the foreground; return the exit status."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _end)
    try:
        with server.ApiServer() as running:
            print(_guide(running), flush=True)
            while True:
                signal.pause()
    except KeyboardInterrupt:
        print("the API server has ended", flush=True)
        return 0
    except (server.MissingProgramsError, processes.StartError) as error:
        provide.say(f"error: {error}")
        return 1


def _guide(running: server.ApiServer) -> str:
    """Say how to use a server: where it is, and which commands make a cluster of it."""
    folders = [provide.binaries(), Path(sys.executable).parent]
    path = os.pathsep.join(shlex.quote(str(folder)) for folder in folders if folder)
    return _GUIDE.format(url=running.url, kubeconfig=shlex.quote(str(running.kubeconfig)), path=path)


def _end(_number: int, _frame: FrameType | None) -> None:
    """Leave by the front door, once: who presses Ctrl-C again must not interrupt the ending."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
