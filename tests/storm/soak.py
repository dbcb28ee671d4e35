"""A soak: a cluster that works for a month of virtual time, with a fault every minute, and is looked at whenever it has come to rest: then nothing may be left of what has gone.

Kubelets say nothing as long as nothing changes, so heartbeats cost nothing; everything else happens as it would.
"""

from __future__ import annotations

import argparse
import gc
import inspect
import json
import resource
import sys
import tempfile
import time
from pathlib import Path

from pumice.local_cluster import event_notes
from tests.containers import entries
from tests.storm import device_objects, objects, world
from tests.storm import loop as loops
from tests.storm.disasters import Disasters
from tests.storm.plain_people import asked

MINUTE, HOUR = 60.0, 3600.0
LONGEST = 600  # seconds that pods run
KEPT = 30  # seconds for which a Job is kept that has ended
REST = 180.0  # seconds without jobs and faults, after which everything has ended and is gone: and three times as long as pods run, for who must wait or is started again
QUIET = 20.0
DEVICES = ("small", "small", "large", "large")  # of a node: as many as a pod asks for at most, by name and by claim
WORK = ("Job", "Pod", "PodGroup", "Workload", "ResourceClaim")
NOT_COUNTED = (  # what has a bound of its own and fills up to it, or is cleared at its next use
    "_stages",
    "_histograms",
    "._lines",
    "_changes",
    ".listings._rows",
    ".evaluator.",
    ".sharing.",
    ".watching._encoded",
    "._events._told",
    "._full_at",
    ".placed",
    ".queue._resting",
    ".queue._ready",
    "._reader._specs",
    ".writing.specs",
    "._history._logs",
    "_sums._free",
    "._device_rules._answers.",
    "._device_rules._claims._read",
    ".devices.changes",
    ".observed._taken",
)


class Soak:
    """A cluster that works; `sample` lets it come to rest and tells what is kept."""

    def __init__(self, seed, folder, *, nodes, jobs_per_hour, faults_per_hour=60, longest=LONGEST):
        self.world = world.World(f"soak-{seed}")
        self._seed = seed
        self._rng = loops.chance(seed, "soak")
        self._longest = longest
        self._rate = jobs_per_hour / HOUR
        self._fault_rate = faults_per_hour / HOUR
        self.jobs = self.lines = 0
        self._folder = folder
        for each in objects.everything():
            self.world.create(each)
        for number in range(nodes):
            self.world.create(objects.node(f"n{number}", 8, gpus=2))
            for each in device_objects.slices(f"n{number}", DEVICES, 1, 1):
                self.world.create(each)
        self.world.api.keep(folder)
        self._disasters = Disasters(self.world)
        self.world.start()
        self._pass(30.0)

    @property
    def faults(self):
        return sum(self.world.weather.counts.values())

    def work(self, seconds):
        """Let jobs come and faults strike for a while."""
        end = self.world.loop.now + seconds
        self.world.oracle.economy.fair_since = None  # whoever is not answered writes again
        job, fault = self._next(self._rate), self._next(self._fault_rate)
        while (moment := min(job, fault)) < end:
            self._pass(moment - self.world.loop.now)
            if moment == job:
                self._submit()
                job = self._next(self._rate)
            else:
                self._strike()
                fault = self._next(self._fault_rate)
        self._pass(end - self.world.loop.now)

    def sample(self):
        """Come to rest, and give how much every part keeps; raises what the oracle found."""
        made = self.world
        self._disasters.end(over=False)
        self._pass(REST + 3 * self._longest)
        event_notes.EventNotes(made.cluster).forget(made.api.now() + event_notes.KEPT)
        self._pass(2.0)
        made.oracle.judge(made.loop.now - QUIET)
        assert not made.oracle.broken, made.oracle.broken[:3]
        assert not self.left(), self.left()[:10]
        made.oracle.forget()
        made.lines.clear()
        return {
            "hour": round(made.loop.now / HOUR, 2),
            **{part: sum(sizes.values()) for part, sizes in self.containers().items()},
            "timers and tasks": self._timers_and_tasks(),
            "connections": len(made.host.open),
            "bytes on disk": sum(each.stat().st_size for each in Path(self._folder).rglob("*") if each.is_file()),
            "blocks in use": _in_use(),
            "MB in memory": round(_resident() / 1e6, 1),
            "lines in logs": self._take_lines(),
        }

    def left(self):
        """Give the jobs and pods that are there: whatever was asked for can be had, so all have run and are gone once it is calm."""
        return sorted(
            f"{key.kind.name} {key.name}" for key, _ in self.world.store.everything() if key.kind.name in WORK
        )

    def containers(self):
        """Give the entries of containers by part and path; those of replicas together."""
        parts = [(part, roots) for program in self.world.programs for part, roots in program.parts().items()]
        parts.append(("API server", self.world.api.parts()))
        found, beyond = {}, [each for _, roots in parts for each in roots]
        for part, roots in parts:
            kept = found.setdefault(part, {})
            for path, size in entries(*roots, beyond=beyond).items():
                if not any(each in path for each in NOT_COUNTED):
                    kept[path] = kept.get(path, 0) + size
        return found

    def _timers_and_tasks(self):
        """Count those of programs that run; what the dead have left falls due and does nothing."""
        loop = self.world.loop
        timers = loop.timers_of()
        return sum(timers[each.run] + loop.tasks_of(each.run) for each in self.world.programs)

    def _take_lines(self):
        count = sum(program.take_said().count("\n") for program in self.world.programs)
        self.lines += count
        return count

    def _next(self, rate):
        return self.world.loop.now + self._rng.expovariate(rate)

    def _submit(self):
        rng = self._rng
        name = f"j{self.jobs}"
        self.jobs += 1
        if rng.random() < 0.3:
            count, indexed = rng.randint(1, 6), rng.random() < 0.5
            job = objects.batch_job(name, count, count, rng.randint(5, self._longest), asked(rng), indexed=indexed)
        else:
            job = self._job(name, rng)
        job["spec"]["ttlSecondsAfterFinished"] = KEPT
        if not self.world.api.crashed:
            self.world.create(job)

    def _job(self, name, rng):
        tasks = [
            (rng.randint(1, 6), rng.choice((1, 2, 4)), rng.randint(5, self._longest)) for _ in range(rng.randint(1, 2))
        ]
        total = sum(each[0] for each in tasks)
        queue, priority = rng.choice(("default", "other")), rng.choice(("", "low", "high"))
        return objects.job(name, tasks, rng.choice((total, 1)), queue=queue, priority=priority)

    def _strike(self):
        strike = self._rng.choice([*self._disasters.kinds(clocks=False), self._be_rough])
        strike(self._rng)

    def _be_rough(self, rng):
        weather = self.world.weather
        weather.rough = rng.choice((0.05, 0.2))
        outside = loops.context_of("world")
        self.world.loop.at(self.world.loop.now + rng.uniform(1, 20), setattr, weather, "rough", 0.0, context=outside)

    def _pass(self, seconds):
        """Let time pass, and somebody start what has ended."""
        end = self.world.loop.now + seconds
        while self.world.loop.now < end:
            self.world.run_until(min(end, self.world.loop.now + 2.0))
            self._disasters.restart(self._rng)


def slope(samples, part):
    """Give by how much a part grows in a day, by the straight line that fits best, and its mean."""
    hours = [each["hour"] for each in samples]
    sizes = [each[part] for each in samples]
    middle, mean = sum(hours) / len(hours), sum(sizes) / len(sizes)
    spread = sum((hour - middle) ** 2 for hour in hours)
    if not spread:
        return 0.0, mean
    grows = sum((hour - middle) * (size - mean) for hour, size in zip(hours, sizes, strict=True)) / spread
    return 24 * grows, mean


def _in_use():
    """Give how many pieces of memory Python has in use once garbage is collected: what leaks stays among them, whatever was used at a peak."""
    gc.collect()
    return sys.getallocatedblocks()


def _resident():
    """Give the memory of this process, in bytes: as much as was ever in use at a time, and what lies between."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


def main():
    """Soak until a month is over or the time is up, and tell how much every part keeps each time, and how it grows."""
    parser = argparse.ArgumentParser(prog="make soak")
    parser.add_argument(
        "--hours", type=float, default=6.0, help="of real time; it ends with the first sample after that"
    )
    parser.add_argument("--days", type=float, default=30.0, help="of virtual time")
    parser.add_argument("--every", type=float, default=6.0, help="virtual hours of work before each sample")
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--jobs", type=float, default=200.0, help="in an hour")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    sys.unraisablehook = _overhear
    with tempfile.TemporaryDirectory() as folder:
        _soak(options, folder)


def _overhear(found):
    """Tell of what cannot be raised, but not of what a killed process leaves behind: that is collected in no order."""
    if not (inspect.iscoroutine(found.object) or inspect.isasyncgen(found.object)):
        sys.__unraisablehook__(found)


def _soak(options, folder):
    began, samples = time.monotonic(), []
    made = Soak(options.seed, Path(folder), nodes=options.nodes, jobs_per_hour=options.jobs)
    while made.world.loop.now < options.days * 24 * HOUR and time.monotonic() - began < options.hours * HOUR:
        made.work(options.every * HOUR)
        samples.append(made.sample())
        print(  # noqa: T201
            f"{time.monotonic() - began:.0f} s: {made.jobs} jobs, {made.faults} faults, {json.dumps(samples[-1])}",
            flush=True,
        )
    days = made.world.loop.now / 24 / HOUR
    print(f"{days:.2f} days, {made.jobs} jobs, {made.faults} faults, {made.lines} lines in logs; in a day grows:")  # noqa: T201
    for part in samples[0]:
        grows, mean = slope(samples[1:] or samples, part)
        print(f"  {part}: {grows:+.1f}, {100 * grows / (mean or 1):+.2f} % of {mean:.0f}")  # noqa: T201


if __name__ == "__main__":
    main()
