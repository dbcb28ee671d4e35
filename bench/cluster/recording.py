"""What `--record` costs a scheduler that binds pods on a real API server: processor time of the whole process, with and without, and bytes on disk.

Processor time for each pod does not hang on how fast the pods come, so it is measured at whatever rate the machine reaches. Two runs differ by more than a recording
costs; the process itself says what the thread that writes took. What the deciding thread does for it, appending to lists, is not in that: `make bench` measures both together.
"""

from __future__ import annotations

import asyncio
import gzip
import os
import re
import time
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING

from bench.cases import Figure
from bench.cluster import load, starting
from pumice.framework import registry
from pumice.kube.calls.client import Client
from pumice.recording import segments
from pumice.recording.player import Player

if TYPE_CHECKING:
    from collections.abc import Callable

    from pumice.kube.access.connection import Connection

GANGS, SIZE, ROUNDS = 200, 10, 2
PODS = GANGS * SIZE
PATIENCE = 300.0


def measure(connection: Connection, kubeconfig: Path, folder: Path, tell: Callable[[str], None]) -> list[Figure]:
    """Bind gangs with a recording, and without for comparison, by turns; replay the last recording."""
    plain: list[float] = []
    shares: list[float] = []
    place = folder
    for number in range(2 * ROUNDS):
        place = folder / f"recording-{number}"
        flags = [f"--record={place}", "--enable-metrics=true", "--listen-address=127.0.0.1:0"] if number % 2 else []
        cpu, recording, rate = asyncio.run(_bind(connection, kubeconfig, folder / "recording.log", flags))
        told = f"{recording / PODS * 1e6:.0f} us of it by the recording" if flags else "without a recording"
        tell(f"{cpu / PODS * 1e6:.0f} us of processor time for each pod, {told}, {rate:.0f} pods/s")
        shares += [recording / (cpu - recording)] if flags else []
        plain += [] if flags else [cpu / PODS * 1e6]
    share = sorted(shares)[len(shares) // 2]
    size = sum(path.stat().st_size for path in segments.listed(place))
    events = sum(gzip.decompress(path.read_bytes()).count(b'["v1/Pod","') for path in segments.listed(place))
    problem, seconds = _replay(place)
    note = (
        f"{min(plain):.0f} us for each pod without; the replay took {seconds:.1f} s and {problem or 'decided the same'}"
    )
    return [
        Figure("--record, share of the scheduler's processor time", share * 100, "%", "<= 10", share <= 0.1, note=note),
        Figure("--record on disk, per pod event", size / events, "bytes", "<= 1024", size / events <= 1024),
    ]


async def _bind(connection: Connection, kubeconfig: Path, log: Path, flags: list[str]) -> tuple[float, float, float]:
    """Return the seconds of processor time that binding takes, those of the recording's thread, and the rate."""
    async with Client(connection) as client:
        await load.clear(client)
        with starting.scheduler(kubeconfig, log, *flags) as process:
            await load.gangs(client, 1, 1, prefix="first")
            await _until(log, 1)
            before, started = _cpu(process.pid), time.perf_counter()
            recording = _recording(log) if flags else 0.0
            await load.gangs(client, GANGS, SIZE)
            await _until(log, PODS + 1)
            rate = PODS / (time.perf_counter() - started)
            await asyncio.sleep(3)  # the last answers and statuses
            recording = _recording(log) - recording if flags else 0.0
            spent = _cpu(process.pid) - before
        await load.clear(client)
    return spent, recording, rate


def _recording(log: Path) -> float:
    """Ask the scheduler for the processor time of the thread that writes."""
    address = re.search(r"what=metrics address=(\S+)", log.read_text())
    if address is None:
        raise RuntimeError("the scheduler serves no metrics")
    with urllib.request.urlopen(f"http://{address[1]}/metrics", timeout=10) as answer:
        found = re.search(r"^pumice_recording_seconds_total (\S+)$", answer.read().decode(), re.MULTILINE)
    return 0.0 if found is None else float(found[1])


async def _until(log: Path, binds: int) -> None:
    """Wait until so many binds were decided."""
    deadline = time.monotonic() + PATIENCE
    while log.read_bytes().count(b"msg=bind ") < binds:  # noqa: ASYNC240  a file of our own
        if time.monotonic() > deadline:
            raise RuntimeError(f"not all of {binds} pods were bound in {PATIENCE:.0f} s")
        await asyncio.sleep(0.2)


def _cpu(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _replay(place: Path) -> tuple[str, float]:
    player = Player(segments.listed(place), registry.installed())
    started = time.perf_counter()
    problem = next((played.problem for step, _ in player.steps() if (played := player.play(step)).problem), "")
    return problem, time.perf_counter() - started
