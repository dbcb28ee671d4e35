"""What `pumice top` costs on a large cluster: taking in what a list brings, a change, and one picture."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import msgspec
from rich.console import Console

from bench import cases, worlds
from pumice.api import decoding, kinds
from pumice.cli.top.picture import Picture
from pumice.study.following import scene
from pumice.study.following.tracking import Tracker

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

NODES, JOBS, PODS, QUEUES = 5000, 2500, 20, 50
PICTURE = 0.5
"""Seconds: a quarter of the interval between two pictures."""


def manifests() -> Iterator[dict[str, Any]]:
    """Give 5,000 nodes with 50,000 pods of 2,500 jobs in 50 queues, a tenth of which wait."""
    return worlds.shared(NODES, JOBS, PODS, QUEUES)


def refresh() -> list[cases.Figure]:
    """Measure everything from the JSON of a list to a picture of 60 lines."""
    lists = []
    for manifest in manifests():
        manifest["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z"
        kind = kinds.find(manifest["apiVersion"], manifest["kind"])
        if kind is not None:
            lists.append((kind, msgspec.json.encode(manifest)))
    tracker, console = Tracker(), Console(file=io.StringIO(), width=160, height=60)

    def take() -> None:
        for kind, data in lists:
            tracker.feed(kind, "MODIFIED", decoding.decode_json(kind, data), b"")

    def draw() -> None:
        console.print(Picture("bench").draw(scene.ordered(tracker.look(worlds.START), "waiting"), console))

    taken, drawn = cases.seconds(take), min(cases.seconds(draw) for _ in range(3))
    size = f"{NODES:,} nodes, {JOBS * PODS:,} pods"
    return [
        cases.Figure(f"top: one picture, {size}", drawn, "s", f"<= {PICTURE}", drawn <= PICTURE),
        cases.Figure(f"top: take in all lists, {size}", taken, "s", "<= 10", taken <= 10),
        cases.Figure("top: one change", taken / len(lists) * 1e6, "us", "<= 200", taken / len(lists) <= 200e-6),
    ]


def everything() -> list[Callable[[], list[cases.Figure]]]:
    """Name the measurements."""
    return [refresh]
