"""No room stays idle for a share: judged in random worlds by a count of what is free, and followed until they settle."""

from __future__ import annotations

import os
import random

import pytest

from builders import GROUP_NAME, group, node, pod, queue
from tests.lives.stage import Stage

WORLDS = 300 if os.environ.get("PUMICE_FUZZ") else 24
CYCLES = 30
CALM = 6
ACTIONS = (
    "allocate",
    "enqueue, allocate, reclaim, backfill",
    "reclaim, allocate",
    "enqueue, allocate, preempt, reclaim",
)
POLICY = """
actions: "{actions}"
tiers:
- plugins: [{{name: priority}}, {{name: gang}}]
- plugins: [{{name: predicates}}, {{name: proportion}}, {{name: nodeorder}}]
"""


class Job:
    """Members of one size in cores, of which some are needed."""

    def __init__(self, pick, number, queues):
        self.name, self.size = f"j{number}", pick.choice([1, 1, 2, 3, 5])
        self.count = pick.randint(1, 6)
        self.least = pick.randint(1, self.count)
        self.queue = pick.choice(queues)

    def pods(self):
        """Give its pods."""
        return [pod(f"{self.name}-{i}", self.name, cpu=str(self.size)) for i in range(self.count)]


class World:
    """Nodes, queues with and without limits, and jobs that ask for more than there is as often as not."""

    def __init__(self, seed):
        pick = random.Random(seed)  # noqa: S311  worlds
        self.actions = pick.choice(ACTIONS)
        self.nodes = {f"n{i}": pick.randint(1, 8) for i in range(pick.randint(1, 4))}
        total = sum(self.nodes.values())
        self.queues = [f"q{i}" for i in range(pick.randint(2, 4))]
        self.weights = {name: pick.randint(1, 3) for name in self.queues}
        self.ceilings = {name: pick.randint(1, total) for name in self.queues if pick.random() < 0.3}
        # At most one, so that nothing has to be scaled down.
        self.guarantees = {}
        if pick.random() < 0.3:
            name = pick.choice(self.queues)
            self.guarantees[name] = pick.randint(1, min(total, self.ceilings.get(name, total)))
        self.jobs = [Job(pick, number, self.queues) for number in range(pick.randint(2, 8))]
        self.late = [job for job in self.jobs if pick.random() < 0.3]

    def objects(self):
        """Give what is there from the start."""
        yield from (node(name, cpu=str(cores)) for name, cores in self.nodes.items())
        for name in self.queues:
            limits = {"capability": {"cpu": str(self.ceilings[name])}} if name in self.ceilings else {}
            if name in self.guarantees:
                limits["guarantee"] = {"resource": {"cpu": str(self.guarantees[name])}}
            yield queue(name, weight=self.weights[name], **limits)
        for number, job in enumerate(self.jobs):
            if job not in self.late:
                yield from self.made(number, job)

    @staticmethod
    def made(number, job):
        """Give the objects of a job."""
        yield group(job.name, job.least, queue=job.queue, created=number)
        yield from job.pods()


class Seen:
    """What pods hold at one moment, counted in whole cores; a nomination holds room like a pod."""

    def __init__(self, world, objects):
        self.world = world
        self.pods = {}
        for manifest in objects["Pod"].values():
            self.pods.setdefault(manifest["metadata"]["annotations"][GROUP_NAME], []).append(manifest)
        self.phases = {m["metadata"]["name"]: m["status"].get("phase", "") for m in objects["PodGroup"].values()}
        self.free = dict(world.nodes)
        self.held = dict.fromkeys(world.queues, 0)
        for job in world.jobs:
            for each in self.pods.get(job.name, ()):
                where = each["spec"]["nodeName"] or each["status"].get("nominatedNodeName", "")
                if where:
                    self.free[where] -= job.size
                    self.held[job.queue] += 0 if "deletionTimestamp" in each["metadata"] else job.size

    def fits(self, job):
        """Tell whether what a job needs next fits the nodes and every limit of its queue but its due."""
        mine = [each for each in self.pods.get(job.name, ()) if "deletionTimestamp" not in each["metadata"]]
        waiting = [each for each in mine if not each["spec"]["nodeName"]]
        placed = len(mine) - len(waiting)
        if self.phases.get(job.name) == "Pending" or len(mine) < job.least or not waiting:
            return False
        if any(each["status"].get("nominatedNodeName") for each in waiting):
            return False
        need = max(1, job.least - placed)
        places = sum(max(0, free) // job.size for free in self.free.values())
        wanted = self.held[job.queue] + need * job.size
        return places >= need and wanted <= self.world.ceilings.get(job.queue, wanted) and self._leaves(job, wanted)

    def _leaves(self, job, wanted):
        """Tell whether a queue leaves the others what they hold or are guaranteed, or stays within its own guarantee."""
        kept = self.world.guarantees
        if not kept or wanted <= kept.get(job.queue, 0):
            return True
        others = sum(max(self.held[name], kept.get(name, 0)) for name in self.world.queues if name != job.queue)
        return wanted <= sum(self.world.nodes.values()) - others


@pytest.mark.parametrize("seed", range(WORLDS))
def test_at_the_end_of_a_cycle_nobody_waits_who_fits_within_every_limit_but_his_due_and_worlds_settle(seed):
    world = World(seed)
    stage = Stage(POLICY.format(actions=world.actions), list(world.objects()))
    still = 0
    for cycle in range(CYCLES + 4 * CALM):
        before, known = stage.writes(), stage.objects()["Pod"]
        stage.decide()
        seen, after = Seen(world, stage.objects()), stage.writes()
        moved = (after["binds"], after["evictions"]) != (before["binds"], before["evictions"])
        # What is evicted counts in its queue no longer, which allocate learns in its next turn.
        if after["evictions"] == before["evictions"]:
            waiting = [job.name for job in world.jobs if seen.fits(job)]
            assert not waiting, f"cycle {cycle}: {waiting} wait, free {seen.free}, held {seen.held}"
        if cycle == 3:
            stage.apply([made for job in world.late for made in world.made(world.jobs.index(job), job)])
        stage.wait(40)
        gone = known.keys() - stage.objects()["Pod"].keys()
        # Whoever was evicted comes back.
        stage.apply([each for job in world.jobs for each in _again(job, gone, cycle)])
        still = 0 if moved or gone or cycle <= 3 else still + 1
        if still >= CALM:
            return
    raise AssertionError(f"still binds or evicts after {CYCLES} cycles: {world.actions}")


def _again(job, gone, cycle):
    for each in job.pods():
        if f"a/{each['metadata']['name']}" in gone:
            each["metadata"]["uid"] += f".{cycle}"
            yield each
