"""A simulated cluster on which evicted pods come back as new ones, with a note of every plan that was made."""

from __future__ import annotations

from dataclasses import dataclass

from pumice.api import duration, kinds
from pumice.cache.cache import Cache
from pumice.framework import configuration, registry
from pumice.framework.reservations import Reservations
from pumice.model.statuses import ALLOCATED_LIKE
from pumice.scheduler import Options, Scheduler
from pumice.sim.cluster import SimulatedCluster

KNOWN = registry.catalog()


@dataclass
class Planned:
    """One plan: when, for which job and members, and who had to go."""

    cycle: int
    job: str
    members: tuple[str, ...]
    victims: tuple[str, ...]


class Noted(Reservations):
    """Reservations that remember what they were asked to hold, and whose holds were let go before their time."""

    def __init__(self):
        super().__init__()
        self.cycle = 0
        self.plans = []
        self.dropped = set()

    def add(self, members, victims, *terms):
        members = list(members)
        job = members[0].job.name if members else ""
        self.plans.append(Planned(self.cycle, job, tuple(m.name for m in members), tuple(v.name for v in victims)))
        super().add(members, victims, *terms)

    def drop(self, tasks):
        tasks = list(tasks)
        self.dropped |= {task.name for task in tasks}
        super().drop(tasks)


class Arena:
    """A cluster, a scheduler, and controllers that replace what was evicted."""

    def __init__(self, world, text, *, replaces=True, cluster=SimulatedCluster):
        self.world = world
        self.replaces = replaces
        self.settings = configuration.load(text, KNOWN, "config")
        self.cluster = cluster()
        self.cluster.apply(world.manifests())
        self.cycles = 0
        self.plans = []
        self.dropped = set()
        self.evicted = []
        self.after = {}
        self.lineage = {name: name for name in world.members}
        self.trace = []
        self._gone = set()
        self.start()
        for name in world.leaving:
            self.cluster.delete([f"pod/a/{name}"], grace=duration.SECOND * 3)

    def start(self):
        """Start a scheduler that knows nothing of what was before; what was sent and not yet performed is lost."""
        self.cache = Cache(self.cluster, Options())
        self.scheduler = Scheduler(self.cache, self.settings, self.cluster.clock.now)
        self.scheduler.reservations = Noted()
        self.cluster.restart(self.cache)

    # ---- what happens

    def decide(self):
        """Run one cycle; what it decided is sent, and not yet performed. Returns the plans with victims."""
        self.cycles += 1
        noted = self.scheduler.reservations
        noted.cycle, noted.plans = self.cycles, []
        self.cluster.pump()
        record = self.scheduler.cycle()
        if self.scheduler.failures:
            raise self.scheduler.failures[0]
        self.trace.append((self.cycles, record.trace()))
        made = [plan for plan in noted.plans if plan.victims]
        self.plans += made
        self.dropped |= noted.dropped
        self.after = self.alive()
        return made

    def follow(self):
        """Let the cluster perform what was sent, let a second pass, and replace what is gone. Returns who was evicted."""
        before = set(self.cluster.evicted)
        self.cluster.settle()
        fresh = [pod["metadata"]["name"] for uid, pod in self.cluster.evicted.items() if uid not in before]
        self.evicted += [(self.cycles, name) for name in fresh]
        self.cluster.advance(duration.SECOND)
        if self.replaces:
            self._replace()
        return fresh

    def cycle(self):
        """Run one cycle and let the cluster follow."""
        made = self.decide()
        return made, self.follow()

    def _replace(self):
        there = {pod["metadata"]["uid"] for pod in self.cluster.store.scan(kinds.POD)}
        for uid, manifest in list(self.cluster.evicted.items()):
            if uid in there or uid in self._gone:
                continue
            self._gone.add(uid)
            ancestor = self.lineage[manifest["metadata"]["name"]]
            name = f"{ancestor}x{len(self._gone)}"
            self.lineage[name] = ancestor
            self.cluster.apply([self.world.members[ancestor].manifest(name, fresh=True)])

    # ---- what is seen

    def pods(self):
        """Return the stored pods by name."""
        return {pod["metadata"]["name"]: pod for pod in self.cluster.store.scan(kinds.POD)}

    def waiting(self, names):
        """Return those of some pods that exist and have no node."""
        pods = self.pods()
        return [name for name in names if name in pods and not pods[name]["spec"].get("nodeName")]

    def alive(self):
        """Return, by job, the tasks that hold a node and are not on their way out, as the scheduler knows it."""
        jobs = self.cache.cluster.jobs.values()
        return {job.name: [t for t in job.tasks.values() if t.status in ALLOCATED_LIKE] for job in jobs}

    def told(self):
        """Return the world and the decision traces, for a failure's message."""
        objects = [*self.world.nodes.values(), *self.world.queues, *self.world.groups]
        lines = [f"{o['metadata']['name']}: {o['spec']} {o['status']}" for o in objects]
        lines += [str(member) for member in self.world.members.values()]
        last = None
        for number, decided in self.trace:
            if decided and decided != last:
                lines += [f"cycle {number}: {line}" for line in decided]
            last = decided
        return "\n".join(lines)
