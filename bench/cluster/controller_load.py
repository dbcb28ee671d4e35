"""What controllers hold in memory for many Jobs, and what they ask of a cluster in which nothing happens."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from bench.cases import Figure
from bench.cluster import job_stage
from pumice.api import kinds

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Mapping

    from pumice.kube.access.connection import Connection

Manifest = dict[str, Any]

JOBS, SIZE, PAGE = 10_000, 10, 500
IDLE = 20.0  # seconds
_MEGABYTE = 1e6


class Listed:
    """An API server's lists of so many Jobs, made up page by page from one that was stored, and watches in which nothing happens."""

    def __init__(self, samples: Mapping[str, Manifest]) -> None:
        self._samples = {plural: json.dumps(manifest) for plural, manifest in samples.items()}

    async def list_page(self, kind: kinds.Kind, *, query: Mapping[str, str]) -> bytes:
        """Return a page of a list."""
        sample = self._samples.get(kind.plural if kind.group != "batch" else "")
        if sample is None or query.get("labelSelector", "").startswith("!"):
            return b'{"metadata": {"resourceVersion": "9"}, "items": []}'
        total = JOBS * (SIZE if kind is kinds.POD else 1)
        first = int(query.get("continue", "0"))
        items = [self._item(sample, kind, number) for number in range(first, min(total, first + PAGE))]
        token = str(first + PAGE) if first + PAGE < total else ""
        page = '{"metadata": {"resourceVersion": "9", "continue": "%s"}, "items": [%s]}'
        return (page % (token, ",".join(items))).encode()

    def _item(self, sample: str, kind: kinds.Kind, number: int) -> str:
        """Give the object of a number: names and uids are its own, as on a real cluster."""
        job, index = divmod(number, SIZE) if kind is kinds.POD else (number, 0)
        own = f"00000000-0000-4000-8000-{number:012}" if kind is kinds.POD else f"00000000-0000-4000-9000-{job:012}"
        text = sample.replace("j-0000-worker-0", f"j-{job:05}-worker-{index}").replace("j-0000", f"j-{job:05}")
        return text.replace("OWN-UID", own).replace("JOB-UID", f"00000000-0000-4000-9000-{job:012}")

    async def request(self, _method: str, path: str, /) -> bytes:
        """Say that nothing else is known."""
        raise RuntimeError(f"nobody asks for {path}")

    async def stream(
        self, _kind: kinds.Kind, *, query: Mapping[str, str], silence: float
    ) -> AsyncGenerator[bytes, None]:
        """Give no event."""
        del query, silence
        await asyncio.Event().wait()
        yield b""


def samples(found: Mapping[str, Manifest]) -> dict[str, Manifest]:
    """Turn objects of one Job that were stored into patterns: what is its own is marked."""
    uid = found["jobs"]["metadata"]["uid"]
    made = {}
    for plural, manifest in found.items():
        text = json.dumps(manifest).replace(uid, "JOB-UID").replace(manifest["metadata"]["uid"], "OWN-UID")
        made[plural] = json.loads(text)
    return made


def hold(path: str) -> None:
    """List everything as `pumice controllers` does, look at every Job once, and print the memory of this process."""
    from pumice.controllers.queueing import requests  # noqa: PLC0415  in a process of its own
    from pumice.kube import reconciling  # noqa: PLC0415
    from pumice.kube.watches.informers import Informers  # noqa: PLC0415
    from pumice.server.controlling import part  # noqa: PLC0415
    from pumice.server.flags import controller_settings  # noqa: PLC0415

    source: Any = Listed(msgspec.json.decode(Path(path).read_bytes()))

    async def run() -> None:
        work = controller_settings.read({}).work
        made = reconciling.Reconciler(source, part.chosen(work), **part.kept())
        informers = Informers(source, made.specs, part.Feed(made, None), streaming=False)
        running = asyncio.create_task(informers.run())
        await informers.wait_synced()
        looked = 0
        while made.engine.queue.next_due(0) == 0 and looked < 3 * JOBS:
            turn = made.engine.take(requests.Moment(time.time_ns() // 1000))
            looked += 1
            if turn is not None:
                turn.left.clear()
                made.engine.finish(turn, requests.Moment(time.time_ns() // 1000))
        print(json.dumps({"objects": sum(each.objects for each in informers.report()), "turns": made.engine.turns}))
        _print_memory()
        running.cancel()

    asyncio.run(run())


def _print_memory() -> None:
    print(Path("/proc/self/status").read_text(encoding="ascii"))


def memory(connection: Connection, kubeconfig: Path, folder: Path) -> Figure:
    """Measure the memory of a process that has listed 10,000 Jobs with their pods, which are like one that was made by the controllers."""
    found = asyncio.run(_one_job(connection, kubeconfig, folder))
    path = folder / "samples.json"
    path.write_text(json.dumps(samples(found)), encoding="utf-8")
    command = [sys.executable, "-c", f"from bench.cluster import controller_load; controller_load.hold({str(path)!r})"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603  our own code
    peak = int(re.search(r"VmHWM:\s+(\d+) kB", done.stdout)[1]) * 1024 / _MEGABYTE  # type: ignore[index]
    now = int(re.search(r"VmRSS:\s+(\d+) kB", done.stdout)[1]) * 1024 / _MEGABYTE  # type: ignore[index]
    counted = json.loads(done.stdout.splitlines()[0])
    name = f"memory of the controllers at {JOBS:,} Jobs and {JOBS * SIZE:,} pods"
    note = f"at its peak; {now:,.0f} MB afterwards, {counted['objects']:,} objects, {counted['turns']:,} looks"
    return Figure(name=name, value=peak, unit="MB", target="<= 600", holds=peak <= 600, note=note)


async def _one_job(connection: Connection, kubeconfig: Path, folder: Path) -> dict[str, Manifest]:
    """Let the controllers make the pods of one Job that runs, and give the Job, its group and its first pod as they are stored."""
    async with job_stage.staged(connection) as stage:
        with job_stage.controllers(kubeconfig, folder / "one.log"):
            await stage.client.create(kinds.JOB, job_stage.job("j-0000"))
            await stage.await_pods(SIZE)
            await stage.set_phases("Running")
            await asyncio.sleep(3)
        found = {}
        for kind in (kinds.JOB, kinds.POD_GROUP, kinds.POD):
            page = msgspec.json.decode(await stage.client.list_page(kind, namespace="bench", query={}))
            items = sorted(page["items"], key=lambda each: each["metadata"]["name"])
            found[kind.plural] = items[0]
        await job_stage.clear(stage.client)
    return found


def idle(kubeconfig: Path) -> Figure:
    """Count what controllers ask for while nothing happens, beside their lease and watches."""
    from pumice.server import surroundings  # noqa: PLC0415
    from pumice.server.controlling import part, reporting  # noqa: PLC0415
    from pumice.server.flags import controller_settings  # noqa: PLC0415
    from pumice.server.health import api_silence, overdue  # noqa: PLC0415
    from pumice.server.logs import logs  # noqa: PLC0415

    async def run() -> tuple[int, int]:
        given = {"kubeconfig": str(kubeconfig), "leader-elect-resource-namespace": "default"}
        settings, log, around = controller_settings.read(given), logs.Log(0), surroundings.REAL
        silence = api_silence.ApiSilence(time.monotonic)
        meter = reporting.Reporter(log, around.wall, silence, overdue.Watch()).meter
        made = part.ControllersPart(
            settings, settings.work, "idle", log=log, meter=meter, api_silence=silence, around=around
        )
        running = asyncio.create_task(made.run())
        while not meter.leading():  # noqa: ASYNC110  nobody here could set an event
            await asyncio.sleep(0.1)
        await made.informers.wait_synced()
        await asyncio.sleep(5)
        before = made.requests
        await asyncio.sleep(IDLE)
        after = made.requests
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        return after[0] - before[0], after[1] - before[1]

    others, of_lease = asyncio.run(run())
    note = f"and {of_lease} renewals of the lease, in {IDLE:.0f} s"
    name = "requests of idle controllers, lease and watches aside"
    return Figure(name=name, value=others, unit="", target="0", holds=others == 0, note=note)


def measure(connection: Connection, kubeconfig: Path, folder: Path, tell: Callable[[str], None]) -> list[Figure]:
    """Measure memory and idleness."""
    tell("one Job is made and copied")
    return [memory(connection, kubeconfig, folder), idle(kubeconfig)]
