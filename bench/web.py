"""What the page costs the process that serves it, on a large cluster: a second of churn for all viewers together, and the whole scene once."""

from __future__ import annotations

import gzip
import random
import statistics
from time import process_time
from typing import TYPE_CHECKING, Any

import msgspec

from bench import cases, worlds
from pumice.api import decoding, kinds
from pumice.web.cluster import Cluster

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pumice.api.meta import KubeObject

NODES, JOBS, PODS, QUEUES = 5000, 10_000, 10, 50
CHURN = 100
"""One in so many objects changes in a second."""
SECOND, WHOLE = 0.020, 1.0
RUNS = 3


def manifests() -> Iterator[dict[str, Any]]:
    """Give 5,000 nodes with 100,000 pods of 10,000 jobs in 50 queues, a tenth of which wait."""
    for index in range(QUEUES):
        yield worlds.queue(f"queue-{index}", deserved={"cpu": "1000"}, capability={"cpu": "4000"})
    for index in range(NODES):
        yield worlds.node(index)
    for job in range(JOBS):
        waits = job % 10 == 0
        yield worlds.group(f"job-{job}", PODS, f"queue-{job % QUEUES}", "Inqueue" if waits else "Running")
        for index in range(PODS):
            place = "" if waits else f"node-{(job * PODS + index) % NODES:05d}"
            yield worlds.pod(f"job-{job}", index, "1", "1Gi", place)


def _decoded() -> dict[kinds.Kind, list[KubeObject]]:
    found: dict[kinds.Kind, list[KubeObject]] = {}
    for manifest in manifests():
        manifest["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z"
        kind = kinds.find(manifest["apiVersion"], manifest["kind"])
        made = decoding.decode_json(kind, msgspec.json.encode(manifest)) if kind is not None else None
        if kind is not None and made is not None and not isinstance(made, decoding.Malformed):
            found.setdefault(kind, []).append(made)
    return found


def churn() -> list[cases.Figure]:
    """Measure a second in which one pod, job and node in a hundred changes, from the decoded objects to the bytes that every viewer is sent."""
    objects = _decoded()
    cluster = Cluster("bench", lambda: worlds.START)
    for kind, listed in objects.items():
        for each in listed:
            cluster.objects.feed(kind, "ADDED", each)
    cluster.turn()
    rng, seconds = random.Random(1), []  # noqa: S311  the same one in every run
    groups = list(zip(*[iter(objects[kinds.POD])] * PODS, strict=True))
    for number in range(RUNS):
        jobs = rng.sample(range(JOBS), JOBS // CHURN)
        changed = [(kinds.POD, each) for job in jobs for each in groups[job]]
        changed += [(kinds.POD_GROUP, objects[kinds.POD_GROUP][job]) for job in jobs]
        changed += [(kinds.NODE, each) for each in rng.sample(objects[kinds.NODE], NODES // CHURN)]
        gone = changed[: len(changed) // 2]
        for kind, each in gone:
            cluster.objects.feed(kind, "DELETED", each)  # so that what comes back is a change
        cluster.board.update(worlds.START + 2 * number * 1_000_000)
        began = process_time()
        for kind, each in changed:
            cluster.objects.feed(kind, "ADDED", each)
        cluster.board.update(worlds.START + (2 * number + 1) * 1_000_000)
        seconds.append(process_time() - began)
    began = process_time()
    gzip.compress(cluster.board.whole(), 1)
    whole = process_time() - began
    size = f"{NODES:,} nodes, {JOBS * PODS:,} pods, {JOBS:,} jobs"
    median = statistics.median(seconds)
    return [
        cases.Figure(
            f"web: a second of 1 % churn for all viewers, {size}", median, "s", f"<= {SECOND}", median <= SECOND
        ),
        cases.Figure(f"web: the whole scene, packed, {size}", whole, "s", f"<= {WHOLE}", whole <= WHOLE),
    ]


def everything() -> list[Callable[[], list[cases.Figure]]]:
    """Name the measurements."""
    return [churn]
