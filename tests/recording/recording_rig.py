"""Lives on the simulated cluster that are recorded, and recordings that are played."""

from __future__ import annotations

import functools
import time
from collections import deque
from enum import Enum
from fractions import Fraction

import msgspec
import numpy as np

from pumice.api import kinds, meta
from pumice.cache.cache import Cache
from pumice.framework.record import CycleRecord, Verdict
from pumice.model.attributes import Attributes
from pumice.recording import classes, segments
from pumice.recording.player import Player as Replay
from pumice.recording.recorder import Recorder
from tests.lives.player import Player
from tests.lives.stage import KNOWN, Stage

LIMIT = 1 << 30
WHOLE = (int, str, float, type(None), bytes, Fraction, meta.Wire, np.ndarray, kinds.Kind, set, frozenset, Enum)
NOT_KEPT = {(Cache, name) for name in ("world", "inputs", "is_given_up", "_events", "_outcomes", "failures")} | {
    (CycleRecord, "_lines"),
    (Attributes, "derived"),
    (Verdict, "said"),
}


class RecordedStage(Stage):
    """A stage whose scheduler is recorded; a restart begins another run."""

    def __init__(self, text, given, *, folder, every=0, limit=LIMIT, tell=lambda *_: None):
        super().__init__(text, given)
        self.folder = folder
        self.recorders = []
        self._every, self._limit, self._tell = every, limit, tell
        self._attach()

    def _attach(self):
        began = time.time() + len(self.recorders)  # runs of one second are told apart by time
        recorder = Recorder(self.folder, self._limit, self._options, tell=self._tell, began=began)
        self.recorders.append(recorder)
        cache = Cache(recorder.join(self._cluster), self._options)
        cache.inputs = recorder
        self._stage.take_over(cache)
        recorder.follow(self.scheduler)
        self._cluster.restart(cache)

    def restart(self):
        self.recorders[-1].close()
        self._attach()

    def decide(self):
        found = super().decide()
        recorder = self.recorders[-1]
        if self._every and self.scheduler.cycles % self._every == 0:
            recorder.rotate()
        return found

    def end(self):
        self.recorders[-1].close()


def live(script, folder, **rest):
    """Live a life and record it; give the player that lived it."""
    player = Player(script, stage=functools.partial(RecordedStage, folder=folder, **rest))
    try:
        player.play()
    finally:
        player.stage.end()
    return player


def stage(text, given, folder, **rest):
    """Give a stage to play by hand, recorded from its start."""
    return RecordedStage(text, given, folder=folder, **rest)


def replay(paths):
    """Play segments to their end; give the steps that were played, and the first difference, if any."""
    player, played = Replay(paths, KNOWN), []
    for step, _ in player.steps():
        played.append(player.play(step))
        if played[-1].problem:
            return player, played, played[-1]
    return player, played, None


def files(folder):
    return segments.listed(folder)


def differences(left, right, left_out=()):
    """Walk two graphs side by side, and give where they differ: values, orders, classes, and which objects are shared."""
    seen, found, todo = {}, [], [(left, right, "")]
    while todo:
        one, two, path = todo.pop()
        if type(one) is not type(two):
            found.append(f"{path}: {type(one).__name__} and {type(two).__name__}")
            continue
        parts = _parts(one, two, left_out)
        if parts is None:
            same = np.array_equal(one, two) if isinstance(one, np.ndarray) else one == two
            found += [] if same else [f"{path}: {one!r} and {two!r}"]
            continue
        if not isinstance(one, tuple | frozenset | msgspec.Struct):
            known = seen.setdefault(id(one), two)
            if known is not two:
                found.append(f"{path}: shared differently")
            if (id(one), id(two)) in seen:
                continue
            seen[id(one), id(two)] = True
        mine, other = parts
        found += [] if [*mine] == [*other] or len(mine) == len(other) else [f"{path}: {[*mine]} and {[*other]}"]
        todo += [(a, b, f"{path}.{name}") for (name, a), b in zip(mine.items(), other.values(), strict=False)]
    return found


def _parts(one, two, left_out):
    """Give the parts of two objects of one class by name; None for what has none."""
    if isinstance(one, dict):
        return [dict(enumerate(part for pair in each.items() for part in pair)) for each in (one, two)]
    if isinstance(one, list | tuple | deque):
        return dict(enumerate(one)), dict(enumerate(two))
    if isinstance(one, WHOLE):
        return None
    names = (
        one.__struct_fields__
        if isinstance(one, msgspec.Struct)
        else [*getattr(one, "__dict__", ()), *classes.slots_of(type(one))]
    )
    chosen = [name for name in names if (type(one), name) not in left_out and hasattr(one, name)]
    return {name: getattr(one, name) for name in chosen}, {name: getattr(two, name, None) for name in chosen}
