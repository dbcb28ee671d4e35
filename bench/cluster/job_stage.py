"""Controllers as users run them, and a stage on which Jobs live: somebody plays scheduler and kubelets as fast as it hears."""

from __future__ import annotations

import asyncio
import contextlib
import re
import subprocess
import sys
import time
import urllib.request
from typing import TYPE_CHECKING, Any

from bench.cluster import load
from pumice.api import kinds
from pumice.kube import errors
from pumice.kube.calls.client import Client
from pumice.kube.watches.informers import Informers
from pumice.kube.watches.watching import WatchSpec

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pumice.kube.access.connection import Connection

Manifest = dict[str, Any]

SIZE = 10  # pods of a Job
PATIENCE = 120.0  # seconds in which nothing goes on
STEP = 10.0  # seconds between two words about how far it is


class Controllers:
    """`pumice controllers` as users run it, and what its metrics say."""

    def __init__(self, process: subprocess.Popen[bytes], log: Path) -> None:
        self.pid = process.pid
        self._log = log

    def writes(self) -> float:
        """Return how many writes it has sent, events aside."""
        counted = re.findall(
            r'pumice_controllers_requests_total\{.*verb="(create|patch|apply|delete)"\} (\S+)', self.text()
        )
        return sum(float(count) for _, count in counted)

    def text(self) -> str:
        """Return its metrics."""
        found = re.search(r"msg=serving what=metrics address=(\S+)", self._log.read_text())
        if found is None:
            return ""
        with urllib.request.urlopen(f"http://{found[1]}/metrics", timeout=10) as answer:
            text: str = answer.read().decode()
        return text


@contextlib.contextmanager
def controllers(kubeconfig: Path, log: Path) -> Iterator[Controllers]:
    """Run the controllers, once they are at work."""
    command = [sys.executable, "-c", "from pumice.cli import main; main()", "controllers"]
    command += ["--kubeconfig", str(kubeconfig), "--leader-elect=false", "--kube-api-qps=100000"]
    command += ["--kube-api-burst=100000", "--enable-metrics", "--listen-address=127.0.0.1:0"]
    with log.open("wb") as file:
        process = subprocess.Popen(command, stderr=file)  # noqa: S603  our own command line
        try:
            made = Controllers(process, log)
            deadline = time.monotonic() + 60
            while "controllers at work" not in log.read_text():
                if process.poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError(f"the controllers do not work: {log.read_text()[-2000:]}")
                time.sleep(0.05)
            yield made
        finally:
            process.terminate()
            process.wait(30)


def job(name: str) -> Manifest:
    """Return a Job of so many pods."""
    container = {"name": "c", "image": "x", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}
    spec = {"restartPolicy": "Never", "terminationGracePeriodSeconds": 0, "containers": [container]}
    return {
        "apiVersion": kinds.JOB.api_version,
        "kind": kinds.JOB.name,
        "metadata": {"name": name, "namespace": load.NAMESPACE},
        "spec": {
            "minAvailable": SIZE,
            "schedulerName": "volcano",
            "queue": "default",
            "tasks": [{"name": "worker", "replicas": SIZE, "template": {"spec": spec}}],
        },
    }


class Stage:
    """Plays scheduler and kubelets as fast as it hears: a group is let in, a pod that is there runs and ends when it is told to."""

    def __init__(self, client: Client, tell: Callable[[str], None]) -> None:
        self.client = client
        self._tell = tell
        self.pods: dict[str, bytes] = {}
        self._heard = asyncio.Event()
        self._letting_in: set[asyncio.Task[Any]] = set()

    def feed(self, kind: kinds.Kind, event_type: str, found: Any, raw: bytes, /) -> None:
        """Let every group in, and take note of every pod."""
        name = found.metadata.name
        if event_type != "ADDED" or found.metadata.namespace != load.NAMESPACE:
            return
        if kind is kinds.POD:
            self.pods[name] = raw
            self._heard.set()
        else:
            task = asyncio.create_task(self._let_in(name))
            self._letting_in.add(task)
            task.add_done_callback(self._letting_in.discard)

    async def _let_in(self, name: str) -> None:
        await self.client.patch(kinds.POD_GROUP, load.NAMESPACE, name, {"status": {"phase": "Inqueue"}})

    async def await_pods(self, count: int) -> None:
        """Return when so many pods were seen, and say now and then how many there are."""
        started = said = time.monotonic()
        while len(self.pods) < count:
            self._heard.clear()
            try:
                async with asyncio.timeout(PATIENCE):
                    await self._heard.wait()
            except TimeoutError:
                text = f"for {PATIENCE:g} s there was no new pod after {len(self.pods):,} of {count:,}"
                raise RuntimeError(text) from None
            now = time.monotonic()
            if now - said >= STEP:
                said = now
                self._tell(f"{len(self.pods):,} of {count:,} pods after {now - started:.0f} s")

    async def set_phases(self, phase: str) -> None:
        """Write the phase of all pods, with the times that kubelets write."""
        self._tell(f"{len(self.pods):,} pods are {phase}")

        async def write(name: str) -> None:
            await self.client.patch(kinds.POD, load.NAMESPACE, name, _pod_status(phase), subresource="status")

        await load.each(list(self.pods), write)


def _pod_status(phase: str) -> Manifest:
    now, running = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), phase == "Running"
    state = {"running": {"startedAt": now}} if running else {"terminated": {"exitCode": 0, "finishedAt": now}}
    container = {"name": "c", "image": "x", "imageID": "", "restartCount": 0, "ready": running, "state": state}
    ready = {"type": "Ready", "status": "True" if running else "False", "lastTransitionTime": now}
    return {"status": {"phase": phase, "conditions": [ready], "containerStatuses": [container]}}


@contextlib.asynccontextmanager
async def staged(connection: Connection, tell: Callable[[str], None] = lambda _: None) -> Any:
    """Give a stage that follows the cluster."""
    async with Client(connection, qps=100_000, burst=100_000) as client:
        await clear(client)
        await _make_queue(client)
        stage = Stage(client, tell)
        watches = Informers(client, [WatchSpec(kind, keep_raw=True) for kind in (kinds.POD_GROUP, kinds.POD)], stage)
        following = asyncio.create_task(watches.run())
        await watches.wait_synced()
        try:
            yield stage
        finally:
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)


async def _make_queue(client: Client) -> None:
    try:
        await client.create(kinds.QUEUE, {**load.queue("default", 1_000_000), "spec": {"weight": 1}})
    except errors.ApiError as error:
        if error.status != 409:
            raise


async def clear(client: Client) -> None:
    """Remove all Jobs, groups and pods."""
    await load.remove_all(client, kinds.JOB)
    await load.clear(client)
