"""The floor of the real process: one of its own that follows the cluster as a scheduler does, binds the pods that wait to the nodes in turn, and decides nothing."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import time
from typing import TYPE_CHECKING

from bench.cluster import load, rig, starting
from pumice.cache.effects import Bind
from pumice.kube.access import connection

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@contextlib.contextmanager
def running(kubeconfig: Path, pods: int) -> Iterator[subprocess.Popen[bytes]]:
    """Run it as a scheduler is run: so many pods are there already."""
    command = [sys.executable, "-m", "bench.cluster.bare_process", str(kubeconfig), str(pods)]
    process = subprocess.Popen(command, env=starting.environment())  # noqa: S603  our own command line
    try:
        yield process
    finally:
        process.terminate()
        process.wait(30)


def binds(made: rig.Rig) -> list[Bind]:
    """Return binds of all pods to the nodes in turn."""
    nodes = [record.name for record in made.cache.cluster.nodes.records]
    return [
        Bind(namespace=load.NAMESPACE, name=task.name, uid=task.uid, node=nodes[number % len(nodes)])
        for number, task in enumerate(made.cache.cluster.tasks.values())
    ]


def main(kubeconfig: str, pods: int) -> None:
    """Bind pods until all are, and follow the cluster until somebody ends it."""
    with rig.Rig(connection.load(kubeconfig)) as made:
        made.catch_up(pods)
        made.bind_only(binds(made))
        while True:
            time.sleep(1)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
