"""The simulated cluster, as the contract sees it."""

from __future__ import annotations

import copy

from pumice.cache import effects
from pumice.sim.cluster import SimulatedCluster
from pumice.sim.faults import Fault
from pumice.sim.identity import Key


class Seen(effects.EffectObserver):
    """Writes down what an observer is told."""

    def __init__(self):
        self.told = []

    def sent(self, effect):
        self.told.append(("sent", effect))

    def performed(self, effect, work, seconds, *, failed):
        assert seconds >= 0
        self.told.append((f"{work} {'failed' if failed else 'done'}", effect))

    def answered(self, outcome):
        self.told.append((f"answered {outcome.failure.code if outcome.failure else 'well'}", outcome.effect))

    def of(self, effect):
        """Give what was told of an effect, in order."""
        return [what for what, told in self.told if told is effect]


class SimHarness:
    """Nothing takes time here, and volumes are bound by the simulation itself."""

    def __init__(self):
        self.namespace = "contract"
        self._outcomes = []
        self.seen = Seen()
        self._cluster = SimulatedCluster(observer=self.seen)
        self._cluster.connect(self, ())

    def feed(self, *_):
        """Take a watch event; there are none."""

    def now(self):
        """Give the time in this cluster, in microseconds."""
        return self._cluster.clock.now()

    def settled(self, outcome):
        self._outcomes.append(outcome)

    def apply(self, *manifests):
        self._cluster.apply(copy.deepcopy(list(manifests)))

    def find(self, kind, name):
        found = self._cluster.store.find(Key(kind, self.namespace if kind.namespaced else "", name))
        return None if found is None else copy.deepcopy(dict(found))

    def delete(self, kind, name):
        """Delete with the grace that the object asks for."""
        self._cluster.store.delete(Key(kind, self.namespace, name))

    def perform(self, *wanted, control_volumes=()):
        """Hand effects over and give their outcomes in the order of the effects."""
        self._outcomes.clear()
        for effect in wanted:
            self._cluster.send(effect)
        self._cluster.settle()
        return ordered(wanted, self._outcomes)

    def lose_reply(self, verb, name):
        """Let the next write of a verb to a pod or group be done and its answer be lost."""
        self._cluster.fail(Fault(verb=verb, error="lost-reply", object=f"*/{self.namespace}/{name}"))

    def events(self, kind, name):
        """Give type, reason and message of the events about an object."""
        return [
            (recorded.note.type, recorded.note.reason, recorded.note.message)
            for recorded in self._cluster.events
            if (recorded.note.kind, recorded.note.name) == (kind, name)
        ]


def ordered(wanted, outcomes):
    """Give the outcomes in the order of the effects; effects are told apart as objects, for two may be equal."""
    by_identity = {id(outcome.effect): outcome for outcome in outcomes}
    return [by_identity[id(effect)] for effect in wanted if not isinstance(effect, effects.Note)]
