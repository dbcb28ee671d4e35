"""What an explanation costs at full size: the cycle, its record in depth, and the search for the smallest change."""

from __future__ import annotations

import gc
import time
from typing import TYPE_CHECKING, Any

from bench import cases, worlds
from pumice.api import decoding, kinds
from pumice.cache.options import Options
from pumice.framework import configuration, explaining, registry
from pumice.study import search
from pumice.study.rehearsal import Rehearsal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

NODES, JOBS, PODS, WAITING = 5000, 4980, 20, 20


def manifests() -> Iterator[dict[str, Any]]:
    """Give 5,000 nodes that are nearly full of 100,000 pods, and 20 gangs that wait for room on the rest."""
    yield worlds.queue("root")
    yield worlds.queue("default")
    for index in range(NODES):
        yield worlds.node(index, cpu=PODS)
    for job in range(JOBS):
        yield worlds.group(f"job-{job}", PODS, phase="Running")
        for index in range(PODS):
            yield worlds.pod(f"job-{job}", index, "1", "1Gi", f"node-{(job * PODS + index) % NODES:05d}")
    for job in range(WAITING):
        yield worlds.group(f"wait-{job}", PODS, phase="Pending")
        for index in range(PODS):
            yield worlds.pod(f"wait-{job}", index, "4", f"{1 + job % 8}Gi")


def rehearsal(config: str) -> tuple[Rehearsal, float]:
    """Build the model of all objects, decoded before as a list would decode them; returns how much processor time that took.

    As in the command, nothing looks for garbage meanwhile.
    """
    objects = []
    for number, manifest in enumerate(manifests()):
        manifest["metadata"].update(uid=f"u{number:07d}", creationTimestamp="2026-01-01T00:00:00Z")
        kind = kinds.find(manifest["apiVersion"], manifest["kind"])
        if kind is not None:
            objects.append((kind, decoding.decode(manifest)))
    known = registry.installed()
    loaded = configuration.load(config, known.catalog())
    gc.collect()
    gc.disable()
    try:
        start = time.process_time()
        return Rehearsal(objects, loaded, Options(), worlds.START, known), time.process_time() - start
    finally:
        gc.freeze()
        gc.enable()


def explain_job() -> list[cases.Figure]:
    """Explain one gang that waits, with its search for the smallest change."""
    studied, built = rehearsal(cases.SHIPPED)
    target = search.Target("bench/wait-7")
    found: list[search.Search] = []

    def work() -> None:
        with studied.cycle() as (session, _):
            explaining.Explainer(studied.engine, session).job(target.job)
        found.append(search.search(studied, target))

    start = time.process_time()
    work()
    first = time.process_time() - start
    tried = len(found[0].enough) + len(found[0].not_enough)
    note = f"{tried} changes told of, {studied.cycles} cycles run; building the model of the objects took {built:.1f} s before that"
    name = "explain a job and search its smallest change, 5,000 nodes, 100,000 pods, processor time"
    return [cases.Figure(name, first, "s", "<= 2", first <= 2, note=note)]


def everything() -> list[Callable[[], list[cases.Figure]]]:
    """Return all measurements."""
    return [explain_job]
