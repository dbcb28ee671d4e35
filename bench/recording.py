"""What recording costs, and how fast a recording is replayed.

A stream of gangs lives through the cache as a watch would bring it: each pod is added, bound, seen running, seen done, and deleted. The scheduler's requests are
not made, so the share of recording is larger here than in a process that talks to an API server; `make bench-cluster` measures that one.
"""

from __future__ import annotations

import tempfile
import time
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from bench import cases, worlds
from pumice.api import decoding, kinds
from pumice.cache import effects
from pumice.cache.cache import Cache
from pumice.cache.options import Options
from pumice.framework import configuration, registry
from pumice.recording import segments, state
from pumice.recording.effects import Ledger
from pumice.recording.player import Player
from pumice.recording.recorder import Recorder
from pumice.recording.redaction import Redaction
from pumice.scheduler import Scheduler

if TYPE_CHECKING:
    from collections.abc import Callable

SECOND = 1_000_000
GANG = 10
NODES = 200
RUN_TIME = 3  # seconds that a pod runs


class Stream:
    """A world in which so many pods arrive each second, start when they are bound, and end a few seconds later."""

    def __init__(self, rate: int, recorder: Recorder | None) -> None:
        self._rate = rate
        self._answers: list[effects.Outcome] = []
        self._bound: deque[tuple[int, dict[str, Any]]] = deque()
        self._waiting: dict[str, dict[str, Any]] = {}
        self._version = 0
        self._made = 0
        self.pod_events = 0
        self.second = 0
        known = registry.installed()
        self.cache = Cache(self if recorder is None else recorder.join(self), Options())
        if recorder is not None:
            self.cache.inputs = recorder
        self.scheduler = Scheduler(self.cache, configuration.default(known.catalog()), self.now, known=known)
        if recorder is not None:
            recorder.follow(self.scheduler)
        for name in ("root", "default"):
            self._feed(kinds.QUEUE, "ADDED", worlds.queue(name))
        for index in range(NODES):
            self._feed(kinds.NODE, "ADDED", worlds.node(index))

    def now(self) -> int:
        """Return the time of the stream."""
        return worlds.START + self.second * SECOND

    def send(self, effect: effects.Effect, /) -> None:
        """Perform at once, and answer with the next second."""
        if isinstance(effect, effects.Note):
            return
        self._answers.append(effects.Outcome(effect=effect))
        if isinstance(effect, effects.Bind):
            pod = self._waiting.pop(effect.uid)
            pod["spec"]["nodeName"] = effect.node
            pod["status"]["conditions"] = [_condition("PodScheduled")]
            self._bound.append((self.second, pod))

    def step(self) -> None:
        """Let a second pass: what was decided is seen, new gangs arrive, one cycle runs."""
        self.second += 1
        answers, self._answers = self._answers, []
        for answer in answers:
            self.cache.settled(answer)
        self._move_on()
        for _ in range(self._rate // GANG):
            self._arrive()
        self.scheduler.cycle()

    def _move_on(self) -> None:
        for since, pod in self._bound:
            if since == self.second - 1:
                self._feed(kinds.POD, "MODIFIED", pod)
                pod["status"] |= {"phase": "Running", "startTime": "2026-01-01T00:00:00Z"}
                pod["status"]["conditions"] += [
                    _condition(name) for name in ("Initialized", "Ready", "ContainersReady")
                ]
                self._feed(kinds.POD, "MODIFIED", pod)
        while self._bound and self._bound[0][0] <= self.second - RUN_TIME:
            _, pod = self._bound.popleft()
            pod["status"]["phase"] = "Succeeded"
            self._feed(kinds.POD, "MODIFIED", pod)
            self._feed(kinds.POD, "DELETED", pod)

    def _arrive(self) -> None:
        self._made += 1
        name = f"gang-{self._made}"
        self._feed(kinds.POD_GROUP, "ADDED", worlds.group(name, GANG))
        for index in range(GANG):
            pod = _pod(name, index)
            self._waiting[pod["metadata"]["uid"]] = pod
            self._feed(kinds.POD, "ADDED", pod)

    def _feed(self, kind: kinds.Kind, event_type: Any, manifest: dict[str, Any]) -> None:
        """Feed what an informer would: an object that was read from JSON."""
        self._version += 1
        manifest["metadata"].setdefault("uid", f"u{self._version:09d}")
        manifest["metadata"].setdefault("creationTimestamp", "2026-01-01T00:00:00Z")
        manifest["metadata"]["resourceVersion"] = str(self._version)
        self.pod_events += kind is kinds.POD
        self.cache.feed(kind, event_type, decoding.decode_json(kind, msgspec.json.encode(manifest)))


def _condition(name: str) -> dict[str, str]:
    return {"type": name, "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}


def _pod(group: str, index: int) -> dict[str, Any]:
    """Return a pod with what pods usually carry."""
    pod = worlds.pod(group, index, "1", "2Gi")
    pod["metadata"]["uid"] = f"{abs(hash((group, index))):032x}"
    pod["metadata"]["labels"] = {"app": "train", "job": group, "index": str(index)}
    pod["metadata"]["annotations"]["volcano.sh/task-spec"] = "worker"
    pod["spec"]["tolerations"] = [
        {"key": f"node.kubernetes.io/{key}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
        for key in ("not-ready", "unreachable")
    ]
    pod["spec"]["containers"][0]["env"] = [{"name": f"VARIABLE_{i}", "value": "x" * 30} for i in range(10)]
    pod["status"] = {"phase": "Pending"}
    return pod


def _live(rate: int, seconds: int, recorder: Recorder | None) -> tuple[float, Stream]:
    """Let a stream live, and return the processor time it took, that of the recorder's thread included; making the manifests is not counted."""
    stream = Stream(rate, recorder)
    started = time.process_time()
    for _ in range(seconds):
        stream.step()
    if recorder is not None:
        recorder.close()
    return time.process_time() - started, stream


def recording() -> list[cases.Figure]:
    """Measure recording at 1,000 pods a second."""
    with tempfile.TemporaryDirectory() as name:
        plain = spent = 1e9
        for attempt in range(3):  # by turns, since others use the machine too
            plain = min(plain, _live(1000, 20, None)[0])
            folder = Path(name, str(attempt))
            took, stream = _live(1000, 20, Recorder(folder, 1 << 30, Options()))
            spent = min(spent, took)
        size = sum(path.stat().st_size for path in segments.listed(folder))
        per_event = size / stream.pod_events
    share = (spent - plain) / plain
    note = (
        f"{plain:.2f} s of processor time without, {spent:.2f} s with, requests to an API server not counted in either"
    )
    return [
        cases.Figure("recording at 1,000 pods/s, share of the deciding", share * 100, "%", "-", True, note=note),
        cases.Figure("recording on disk, per pod event", per_event, "bytes", "<= 1024", per_event <= 1024),
    ]


def replay() -> cases.Figure:
    """Measure the replay of a minute at 300 pods a second."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _live(300, 60, Recorder(folder, 1 << 30, Options()))
        player = Player(segments.listed(folder), registry.installed())
        problems: list[str] = []
        started = time.perf_counter()
        problems += [played.problem for step, _ in player.steps() if (played := player.play(step)).problem]
        spent = time.perf_counter() - started
    if problems:
        raise RuntimeError(f"the replay differs: {problems[0]}")
    times = 60 / spent
    return cases.Figure("replay of 60 s at 300 pods/s, times real time", times, "x", ">= 4", times >= 4)


def beginning() -> cases.Figure:
    """Measure what the deciding thread pays when a segment begins, with 1,000 nodes and 20,000 running pods."""
    bench = worlds.Bench(cases.FOUNDATION)
    bench.feed(worlds.node(i) for i in range(1000))
    for g in range(1000):
        bench.feed([worlds.group(f"job-{g}", 20, phase="Running")])
        bench.feed(worlds.pod(f"job-{g}", i, "1", "1Gi", f"node-{(g * 20 + i) % 1000:05d}") for i in range(20))
    bench.apply()
    bench.scheduler.cycle()

    def begin() -> float:
        started = time.process_time()
        bench.scheduler.renew()
        state.capture(bench.scheduler, Ledger(), Redaction())
        return time.process_time() - started

    spent = min(begin() for _ in range(3))
    name = "beginning a segment of a recording, 20,000 pods, for each of them"
    return cases.Figure(
        name, spent / 20_000 * 1e6, "us", "<= 20", spent / 20_000 <= 20e-6, note=f"{spent:.2f} s in all"
    )


def everything() -> list[Callable[[], cases.Figure | list[cases.Figure]]]:
    """Return all measurements."""
    return [recording, replay, beginning]
