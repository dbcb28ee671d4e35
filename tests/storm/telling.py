"""Living many seeds, each in a process of its own that is forked when everything is loaded, so that a life costs what happens in it."""

from __future__ import annotations

import gc
import hashlib
import json
import os
import tempfile
import traceback
from pathlib import Path

from tests.storm import life

_QUICK = "/dev/shm" if Path("/dev/shm").is_dir() else None  # noqa: S108  disks whose data nobody needs afterwards
_BEGUN = []  # the world that every life goes on with, if there is one already


def prepare():
    """Make the beginning of every life, in which everything is loaded, and never look at it again for garbage."""
    _BEGUN.append(life.begun())
    gc.collect()
    gc.freeze()


def lived(seed, without=(), trace=None, storm=life.STORM):
    """Live a seed in a process of its own; gives what was broken, how many faults there were and what happened. `trace` is a file for every step that was stored, `storm` how many seconds the weather is bad."""

    def live(folder):
        made = life.Life(seed, folder, without, *_BEGUN[:1], storm=storm)
        try:
            broken = made.live()
        except Exception:  # noqa: BLE001  a life that breaks down is a finding
            broken = [*made.world.oracle.broken, ("crash", traceback.format_exc()[-1500:])]
        lines = "\n".join(made.world.lines)
        if trace:
            Path(trace).write_text(lines)
        return {
            "broken": broken,
            "faults": dict(made.world.weather.counts),
            "happened": made.happened,
            "digest": hashlib.sha256(lines.encode()).hexdigest(),
            "steps": made.world.loop.steps,
            "scenario": made.as_scenario(),
        }

    nothing = {"faults": {}, "happened": [], "digest": "", "steps": 0, "scenario": None}
    return apart(live) or {"broken": [["crash", f"the life of seed {seed} ended without a word"]], **nothing}


def apart(work):
    """Do something in a process of its own, with a folder for disks, and give what it gives; it leaves without clearing up, for a world that was left in the middle has nothing to say."""
    with tempfile.TemporaryFile() as told, tempfile.TemporaryDirectory(dir=_QUICK) as folder:
        child = os.fork()
        if child == 0:
            gc.disable()  # a life is short, and ends with its process
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # what the interpreter says of tasks that never ended
            try:
                told.write(json.dumps(work(Path(folder))).encode())
                told.flush()
            finally:
                os._exit(0)
        os.waitpid(child, 0)
        told.seek(0)
        text = told.read()
    return json.loads(text) if text else None


def shrunk(seed, rule, storm=life.STORM):
    """Leave out what is not needed for a rule to be broken; gives what is left out."""
    without = set()
    found = lived(seed, storm=storm)
    for each in ("fates", *reversed(found["happened"])):
        tried = lived(seed, without | {each}, storm=storm)
        if any(name == rule for name, _ in tried["broken"]):
            without.add(each)
    return sorted(without)
