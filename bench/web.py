"""What the page costs the process that serves it, on a large cluster: a second of churn for all viewers together, and the whole scene once."""

from __future__ import annotations

import asyncio
import gzip
import random
import statistics
from time import process_time
from typing import TYPE_CHECKING, Any

import msgspec

from bench import cases, web_beside, worlds
from pumice.api import decoding, kinds
from pumice.server.flags.addresses import Address
from pumice.web import serving
from pumice.web.cluster import Cluster
from pumice.web.guarding import PrintedToken
from testbed import browser

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pumice.api.meta import KubeObject

NODES, JOBS, PODS, QUEUES = 5000, 10_000, 10, 50
CHURN = 100
"""One in so many objects changes in a second."""
SECOND, WHOLE = 0.020, 1.0
RUNS = 3
SIZE = f"{NODES:,} nodes, {JOBS * PODS:,} pods, {JOBS:,} jobs"


def manifests() -> Iterator[dict[str, Any]]:
    """Give 5,000 nodes with 100,000 pods of 10,000 jobs in 50 queues, a tenth of which wait."""
    return worlds.shared(NODES, JOBS, PODS, QUEUES)


def _decoded() -> dict[kinds.Kind, list[KubeObject]]:
    found: dict[kinds.Kind, list[KubeObject]] = {}
    for manifest in manifests():
        manifest["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z"
        kind = kinds.find(manifest["apiVersion"], manifest["kind"])
        made = decoding.decode_json(kind, msgspec.json.encode(manifest)) if kind is not None else None
        if kind is not None and made is not None and not isinstance(made, decoding.Malformed):
            found.setdefault(kind, []).append(made)
    return found


def _cluster() -> tuple[Cluster, dict[kinds.Kind, list[KubeObject]]]:
    objects = _decoded()
    cluster = Cluster("bench", lambda: worlds.START)
    for kind, listed in objects.items():
        for each in listed:
            cluster.objects.feed(kind, "ADDED", each)
    cluster.turn()
    return cluster, objects


def _turn(cluster: Cluster, second: int) -> None:
    """Let it be a second of the run, with everything that is done in one."""
    cluster.now = lambda: worlds.START + second * 1_000_000
    cluster.turn()


def churn() -> list[cases.Figure]:
    """Measure a second in which one pod, job and node in a hundred changes, from the decoded objects to the bytes that every viewer is sent."""
    cluster, objects = _cluster()
    rng, seconds = random.Random(1), []  # noqa: S311  the same one in every run
    groups = list(zip(*[iter(objects[kinds.POD])] * PODS, strict=True))
    for number in range(RUNS):
        jobs = rng.sample(range(JOBS), JOBS // CHURN)
        changed = [(kinds.POD, each) for job in jobs for each in groups[job]]
        changed += [(kinds.POD_GROUP, objects[kinds.POD_GROUP][job]) for job in jobs]
        changed += [(kinds.NODE, each) for each in rng.sample(objects[kinds.NODE], NODES // CHURN)]
        for kind, each in changed:
            cluster.objects.feed(kind, "DELETED", each)  # so that what comes back is a change
        _turn(cluster, 2 * number)
        began = process_time()
        for kind, each in changed:
            cluster.objects.feed(kind, "ADDED", each)
        _turn(cluster, 2 * number + 1)
        seconds.append(process_time() - began)
    began = process_time()
    gzip.compress(cluster.board.whole().data(), 1)
    whole = process_time() - began
    median = statistics.median(seconds)
    return [
        cases.Figure(
            f"web: a second of 1 % churn for all viewers, {SIZE}", median, "s", f"<= {SECOND}", median <= SECOND
        ),
        cases.Figure(f"web: the whole scene, packed, {SIZE}", whole, "s", f"<= {WHOLE}", whole <= WHOLE),
    ]


def page() -> list[cases.Figure]:
    """Measure what the page does with all of that in a real browser: by the time that its main thread is busy, the median of some runs."""
    files = sum(len(each.packed) for each in serving.page_files().values())
    figures = [cases.Figure("web: all files of the page, packed", files / 1000, "kB", "<= 200", files <= 200_000)]
    if browser.find() is None:
        return figures
    runs = [asyncio.run(_used(_cluster()[0])) for _ in range(RUNS)]
    for name, most in {"first view": 1.0, "another view": 0.1, "a second of 1 % churn": 0.05}.items():
        median = statistics.median(run[name] for run in runs)
        figures.append(cases.Figure(f"web: the page, {name}, {SIZE}", median, "s", f"<= {most}", median <= most))
    return figures


async def _used(cluster: Cluster) -> dict[str, float]:
    """Open the page, go through its views, and let things change."""
    guard = PrintedToken()
    server = serving.Server(cluster, guard)
    bound = await server.start(Address("127.0.0.1", 0))
    try:
        async with browser.running() as chromium:
            shown = await chromium.open(f"http://{bound}/#token={guard.token}")
            await shown.call("Performance.enable", timeDomain="threadTicks")  # processor time
            await shown.until("document.querySelector('.share')")
            found = {"first view": await _busy(shown)}
            changes = []
            for view in ("jobs", "queues", "nodes", "evictions", "overview"):
                before = await _busy(shown)
                await shown.evaluate(f"location.hash = '#/{view}'")
                await asyncio.sleep(1)
                changes.append(await _busy(shown) - before)
            found["another view"] = max(changes)
            await shown.evaluate("location.hash = '#/jobs'")
            await asyncio.sleep(1)
            before = await _busy(shown)
            for job in range(JOBS // CHURN):
                cluster.objects.feed(kinds.POD_GROUP, "MODIFIED", _group(job))
            _turn(cluster, 1)
            server.stream.tell()
            await asyncio.sleep(1)
            found["a second of 1 % churn"] = await _busy(shown) - before
            return found
    finally:
        await server.stop()


async def _busy(shown: browser.Page) -> float:
    """Tell for how many seconds the main thread of a page was busy so far."""
    told = await shown.call("Performance.getMetrics")
    return float(next(each["value"] for each in told["metrics"] if each["name"] == "TaskDuration"))


def _group(job: int) -> KubeObject:
    manifest = worlds.group(f"job-{job}", PODS, f"queue-{job % QUEUES}", "Unknown")
    made = decoding.decode_json(kinds.POD_GROUP, msgspec.json.encode(manifest))
    if isinstance(made, decoding.Malformed):
        raise TypeError(made)
    return made


def everything() -> list[Callable[[], list[cases.Figure]]]:
    """Name the measurements."""
    return [churn, page, web_beside.scheduler]
