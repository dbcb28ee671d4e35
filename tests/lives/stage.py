"""Where lives are lived: the real scheduler over the simulated cluster, and all that lives know of either.

Nothing else under `tests/lives` touches the code under test; a checkout with other inner names needs another version of this file only.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from pumice.api import duration, kinds
from pumice.cache.cache import Cache
from pumice.framework import configuration, registry
from pumice.scenario.stage import SimulatedStage
from pumice.scheduler import Options
from pumice.sim import errors, faults

KINDS = {
    "Pod": kinds.POD,
    "Node": kinds.NODE,
    "PodGroup": kinds.POD_GROUP,
    "Queue": kinds.QUEUE,
    "PriorityClass": kinds.PRIORITY_CLASS,
    "PodDisruptionBudget": next(kind for kind in kinds.KINDS if kind.name == "PodDisruptionBudget"),
}
KNOWN = registry.installed()


@dataclass
class Objects:
    """What the API server shows at one moment, by kind and name; nobody changes it."""

    now: int
    kinds: dict = field(default_factory=dict)

    def __getitem__(self, kind):
        return self.kinds[kind]


class Stage:
    """A simulated cluster with a scheduler on it that can be started again."""

    def __init__(self, text, given, *, plain=False):
        # A checkout that knows no other way than the one with shortcuts is asked for nothing else.
        self._options = Options(plain=True) if plain else Options()
        self._settings = configuration.load(text, KNOWN.catalog(), "config")
        self._stage = SimulatedStage(self._settings, self._options, KNOWN)
        self._stage.apply(given)
        self._stage.connect()
        self._cluster = self._stage.cluster

    @property
    def cache(self):
        """What the scheduler knows."""
        return self._stage.cache

    @property
    def scheduler(self):
        """The scheduler."""
        return self._stage.scheduler

    @property
    def cluster(self):
        """The simulated cluster."""
        return self._cluster

    def configure(self, text):
        """Replace the configuration."""
        self._stage.configure(text)

    # ---- what happens to it

    def apply(self, manifests):
        """Create objects or replace them."""
        self._stage.apply(manifests)

    def patch(self, manifests):
        """Merge partial manifests; give those that found their object."""
        done = []
        for manifest in manifests:
            try:
                self._cluster.merge([manifest])
                done.append(manifest)
            except errors.ApiError:
                continue
        return done

    def delete(self, references, grace=None):
        """Delete what is there, and give which of the references were."""
        done = []
        span = None if grace is None else duration.parse(grace)
        for reference in references:
            try:
                self._cluster.delete([reference], span)
                done.append(reference)
            except errors.ApiError:
                continue
        return done

    def fail(self, verb, error, object="", times=1):  # noqa: A002  as scenario files call it
        """Let the next matching writes fail."""
        self._cluster.fail(faults.Fault(verb=verb, error=error, object=object, times=times))

    def restart(self):
        """Put a scheduler that knows nothing in the place of the old one."""
        self._stage.take_over(Cache(self._cluster, self._options))
        self._cluster.restart(self._stage.cache)

    # ---- a cycle in two halves

    def decide(self):
        """Run one cycle and let what it decided be carried out; give its trace and what broke."""
        self._cluster.pump()
        record = self._stage.scheduler.cycle()
        broken = [f"{type(error).__name__}: {error}" for error in self._stage.scheduler.failures]
        trace = record.trace()
        self._cluster.settle()
        return trace, broken

    def wait(self, seconds=1):
        """Let time pass."""
        self._cluster.advance(seconds * duration.SECOND)

    # ---- what is seen

    def objects(self):
        """Look at everything as it is now."""
        seen = Objects(self._cluster.clock.now() // duration.SECOND)
        for name, kind in KINDS.items():
            seen.kinds[name] = {_key(manifest): manifest for manifest in self._cluster.store.scan(kind)}
        return seen

    def writes(self):
        """Count the scheduler's writes so far, and its events."""
        counts = self._cluster.counts
        return {
            "binds": counts.binds,
            "evictions": counts.evictions,
            "status": counts.status_writes,
            "events": len(self._cluster.events),
        }

    def events(self, since=0):
        """Give the events recorded since a number of them."""
        return [(e.reference, e.note.reason, e.note.message) for e in self._cluster.events[since:]]

    def evicted(self):
        """Give the uids of the pods that the scheduler evicted so far."""
        return list(self._cluster.evicted)

    @property
    def model(self):
        """The scheduler's own model, for a recount of its sums."""
        return self._stage.cache.cluster


def _key(manifest):
    metadata = manifest["metadata"]
    return f"{metadata['namespace']}/{metadata['name']}" if metadata.get("namespace") else metadata["name"]
