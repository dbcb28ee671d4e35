"""Tiny worlds that go on: whoever is evicted comes back and wants its place again, and evictions have to end (28)."""

from __future__ import annotations

import copy

from eviction_arena import Arena

from tests.lives.policies import Policy

CYCLES = 24
QUIET = 6


class _Comer:
    """A pod that comes back under another name."""

    def __init__(self, manifest):
        self._manifest = manifest

    def manifest(self, name="", *, fresh=False):
        made = copy.deepcopy(self._manifest)
        if fresh:
            made["metadata"] |= {"name": name, "uid": name}
            made["spec"]["nodeName"] = ""
            made["status"] = {"phase": "Pending"}
        made["spec"]["terminationGracePeriodSeconds"] = 2
        return made


class _Told:
    """A tiny world as an arena wants it."""

    leaving = ()

    def __init__(self, world):
        kinds = {
            kind: [m for m in world.manifests if m["kind"] == kind] for kind in ("Node", "Queue", "PodGroup", "Pod")
        }
        self.nodes = {m["metadata"]["name"]: m for m in kinds["Node"]}
        self.queues, self.groups = kinds["Queue"], kinds["PodGroup"]
        self.members = {m["metadata"]["name"]: _Comer(m) for m in kinds["Pod"]}
        self._rest = [m for m in world.manifests if m["kind"] != "Pod"]

    def manifests(self):
        return [*self._rest, *(each.manifest() for each in self.members.values())]


def repeated(world):
    """Let a world go on; give who was evicted for the same job twice, and whether somebody was evicted in the last cycles."""
    # Without allocate nobody would ever have the room that was made.
    actions = dict.fromkeys(["allocate", *world.policy.actions])
    arena = Arena(_Told(world), Policy(world.policy.name, list(actions), world.policy.tiers).text)
    found, pairs, last = [], set(), 0
    for _ in range(CYCLES):
        made, evicted = arena.cycle()
        last = arena.cycles if evicted else last
        for plan in made:
            for name in plan.victims:
                pair = (arena.lineage[name], plan.job)
                if pair in pairs:
                    found.append(pair)
                pairs.add(pair)
    return found, last > CYCLES - QUIET
