"""Volcano's Jobs: pods created per second by the controllers beside the bare rate of creating the same pods, and what a pod costs in writes over its life."""

from __future__ import annotations

import asyncio
import contextlib
import re
import subprocess
import sys
import time
import urllib.request
from typing import TYPE_CHECKING, Any

import msgspec

from bench.cases import Figure
from bench.cluster import load
from pumice.api import kinds
from pumice.kube import errors
from pumice.kube.calls.client import CONCURRENCY, Client
from pumice.kube.watches.informers import Informers
from pumice.kube.watches.watching import WatchSpec

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pumice.kube.access.connection import Connection

Manifest = dict[str, Any]

JOBS, SIZE, ROUNDS = 1000, 10, 2
LIVES = 1000  # Jobs whose pods live to their end
PATIENCE = 600.0
_UNSTORED = ("uid", "resourceVersion", "creationTimestamp", "managedFields", "ownerReferences", "generation")


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

    def __init__(self, client: Client) -> None:
        self.client = client
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
        """Return when so many pods were seen."""
        async with asyncio.timeout(PATIENCE):
            while len(self.pods) < count:
                self._heard.clear()
                await self._heard.wait()

    async def set_phases(self, phase: str) -> None:
        """Write the phase of all pods, with the times that kubelets write."""

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
async def staged(connection: Connection) -> Any:
    """Give a stage that follows the cluster."""
    async with Client(connection, qps=100_000, burst=100_000) as client:
        await clear(client)
        await _make_queue(client)
        stage = Stage(client)
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
    await client.request("DELETE", f"/apis/batch.volcano.sh/v1alpha1/namespaces/{load.NAMESPACE}/jobs")
    await load.clear(client)


async def _created(connection: Connection, kubeconfig: Path, log: Path) -> tuple[float, list[Manifest]]:
    """Create Jobs as fast as the server takes them; gives pods per second from the first Job to the last pod, and the pods."""
    async with staged(connection) as stage:
        with controllers(kubeconfig, log):
            started = time.perf_counter()
            await load.each(range(JOBS), lambda number: stage.client.create(kinds.JOB, job(f"j-{number:04}")))
            await stage.await_pods(JOBS * SIZE)
            rate = JOBS * SIZE / (time.perf_counter() - started)
        found = [msgspec.json.decode(raw) for raw in stage.pods.values()]
        await clear(stage.client)
    return rate, found


async def _bare(connection: Connection, kubeconfig: Path, log: Path, pods: list[Manifest]) -> float:
    """Create equal pods, which are of no Job, with as many connections and the same watches open: those of the controllers too."""
    bodies = []
    for pod in pods:
        metadata = {field: value for field, value in pod["metadata"].items() if field not in _UNSTORED}
        bodies.append({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": pod["spec"]})
    async with staged(connection) as stage:
        with controllers(kubeconfig, log):
            started = time.perf_counter()
            await load.each(bodies, lambda body: stage.client.create(kinds.POD, body))
            await stage.await_pods(len(bodies))
            rate = len(bodies) / (time.perf_counter() - started)
        await clear(stage.client)
    return rate


async def _lives(connection: Connection, kubeconfig: Path, log: Path) -> float:
    """Let Jobs live from their creation to their deletion, and give how many writes of the controllers that took for each pod."""
    async with staged(connection) as stage:
        with controllers(kubeconfig, log) as made:
            before = await asyncio.to_thread(made.writes)
            await load.each(range(LIVES), lambda number: stage.client.create(kinds.JOB, job(f"l-{number:04}")))
            await stage.await_pods(LIVES * SIZE)
            await stage.set_phases("Running")
            await asyncio.sleep(15)  # counts are written when they have been quiet for a while
            await stage.set_phases("Succeeded")
            await _until_all_completed(stage.client)
            await asyncio.sleep(15)
            after = await asyncio.to_thread(made.writes)
        await clear(stage.client)
    return (after - before) / (LIVES * SIZE)


async def _until_all_completed(client: Client) -> None:
    async with asyncio.timeout(PATIENCE):
        while True:
            page = msgspec.json.decode(await client.list_page(kinds.JOB, namespace=load.NAMESPACE, query={}))
            phases = [each.get("status", {}).get("state", {}).get("phase") for each in page["items"]]
            if phases.count("Completed") == LIVES:
                return
            await asyncio.sleep(1)


def measure(connection: Connection, kubeconfig: Path, folder: Path, tell: Callable[[str], None]) -> list[Figure]:
    """Alternate rounds with and without controllers, then let Jobs live."""
    made, bare = [], []
    for number in range(ROUNDS):
        rate, pods = asyncio.run(_created(connection, kubeconfig, folder / f"jobs-{number}.log"))
        made.append(rate)
        bare.append(asyncio.run(_bare(connection, kubeconfig, folder / f"bare-{number}.log", pods)))
        tell(f"round {number + 1} of {ROUNDS}: {made[-1]:,.0f} pods/s for Jobs, {bare[-1]:,.0f} bare")
    share = max(made) / max(bare)
    writes = asyncio.run(_lives(connection, kubeconfig, folder / "lives.log"))
    spread = f"{min(made):,.0f} to {max(made):,.0f} beside {min(bare):,.0f} to {max(bare):,.0f} bare"
    return [
        Figure(
            name=f"{JOBS:,} Jobs of {SIZE} pods, share of the bare rate of creating the pods",
            value=share,
            unit="x",
            target=">= 0.6",
            holds=share >= 0.6,
            note=f"pods/s {spread}, {CONCURRENCY} connections, best of {ROUNDS} rounds each",
        ),
        Figure(
            name="API writes of the controllers per pod over its life, events not counted",
            value=writes,
            unit="",
            target="<= 1.6",
            holds=writes <= 1.6,
            note=f"{LIVES} Jobs of {SIZE} pods that are let in, run and succeed",
        ),
    ]
