"""Room on nodes and in queues, computed the slow and obvious way from the rules."""

from __future__ import annotations

import itertools
from fractions import Fraction
from functools import cached_property

from tests.lives import facts

MOST_TRIALS = 20_000


class Rooms:
    """What is free in one state of a cluster.

    The state is that of some facts, with `placed` pods put on nodes (pod, node name), `gone` pods taken away, and either what is on its way out taken as
    gone (`later`) or not. Pods of `mine` are not counted as holding room by a nomination; those of everybody else are.
    """

    def __init__(self, seen, *, placed=(), gone=(), kept=(), later=False, mine=""):
        self.seen = seen
        self.later = later
        self.gone = {pod.uid for pod in gone}
        self.kept = {pod.uid for pod in kept}
        self.mine = mine
        self.placed = list(placed)

    # ---- nodes

    def counts_on_node(self, pod):
        """Tell whether a pod takes room on its node (14, 18)."""
        if pod.uid in self.kept:
            return True
        return pod.is_in_room and pod.uid not in self.gone and not (self.later and pod.state == "leaving")

    def holds(self, pod):
        """Tell whether room is held for a pod of somebody else (27)."""
        return bool(pod.nominated) and pod.state == "pending" and not pod.foreign and pod.group != self.mine

    @cached_property
    def free(self):
        """What is free on each node, `pods` included."""
        left = {name: dict(node.room) for name, node in self.seen.nodes.items()}
        used = [(pod, pod.node) for pod in self.seen.pods.values() if self.counts_on_node(pod)]
        used += [(pod, pod.nominated) for pod in self.seen.pods.values() if self.holds(pod)]
        for pod, name in [*used, *self.placed]:
            if name in left:
                left[name] = facts.plus(left[name], {**pod.request, "pods": 1}, -1)
        return left

    def admits(self, pod, name):
        """Tell whether a node passes a pod's filters (kube-predicates), if predicates is listed."""
        node = self.seen.nodes[name]
        if not self.seen.policy.lists("predicates"):
            return True
        if not node.ready or ((node.tainted or node.cordoned) and not pod.tolerates):
            return False
        return all(node.labels.get(key) == value for key, value in pod.selector.items())

    def fits(self, pod, name, free=None):
        """Tell whether a node has room for what a pod asks (6)."""
        left = (free or self.free)[name]
        asked = {"cpu": 0, "memory": 0, **pod.request, "pods": 1}
        return all(left.get(key, 0) >= value for key, value in asked.items())

    def place(self, pods):
        """Try every way to give pods nodes; give one that works, or None."""
        self._trials = 0
        return self._place(
            sorted(pods, key=lambda p: p.shape, reverse=True), {n: dict(f) for n, f in self.free.items()}
        )

    def as_nominated(self, pods):
        """Give pods the nodes to which they are nominated, or None if that does not work."""
        free = {name: dict(room) for name, room in self.free.items()}
        for pod in pods:
            name = pod.nominated
            if name not in free or not self.admits(pod, name) or not self.fits(pod, name, free):
                return None
            free[name] = facts.plus(free[name], {**pod.request, "pods": 1}, -1)
        return {pod.uid: pod.nominated for pod in pods}

    def _place(self, pods, free):
        if not pods:
            return {}
        self._trials += 1
        if self._trials > MOST_TRIALS:
            return None
        pod = pods[0]
        tried = set()
        for name in sorted(free):
            alike = tuple(sorted(free[name].items()))
            if (
                not self.admits(pod, name)
                or not self.fits(pod, name, free)
                or (alike, name if pod.selector else "") in tried
            ):
                continue
            tried.add((alike, name if pod.selector else ""))
            before = free[name]
            free[name] = facts.plus(before, {**pod.request, "pods": 1}, -1)
            rest = self._place(pods[1:], free)
            free[name] = before
            if rest is not None:
                return {pod.uid: name, **rest}
        return None

    # ---- queues

    @cached_property
    def parents(self):
        """Each queue's parent; flat queues are children of root (11)."""
        tree = self.seen.policy.tree
        return {q.name: (q.parent or "root") if tree else "root" for q in self.seen.queues.values() if q.name != "root"}

    def branch(self, name):
        """Give a queue and its ancestors below root."""
        found = []
        while name != "root" and name in self.parents and name not in found:
            found.append(name)
            name = self.parents[name]
        return found

    def is_placed(self, name):
        """Tell whether jobs may stand in a queue: in a tree it hangs under root and has no children (10)."""
        if not self.seen.policy.tree:
            return True
        branch = self.branch(name)
        return bool(branch) and self.parents[branch[-1]] == "root" and not self.children(name)

    def children(self, name):
        """Give the queues directly below one."""
        return [child for child, parent in self.parents.items() if parent == name]

    @cached_property
    def held(self):
        """What each queue holds, its descendants' share included: pods on nodes that are not on their way out (14), and what is held (27)."""
        sums = {name: {} for name in self.seen.queues}
        for pod in self.seen.pods.values():
            queue = self.seen.queue_of(pod)
            here = pod.uid in self.kept or (pod.state == "on" and pod.uid not in self.gone)
            if queue in sums and (here or self.holds(pod)):
                self._count(sums, queue, pod)
        for pod, _ in self.placed:
            self._count(sums, self.seen.queue_of(pod), pod)
        return sums

    def _count(self, sums, queue, pod):
        for name in [*self.branch(queue), "root"]:
            if name in sums:
                sums[name] = facts.plus(sums[name], {**pod.request, "pods": 1})

    @cached_property
    def offered(self):
        """What the nodes offer."""
        return facts.total(node.room for node in self.seen.nodes.values())

    @cached_property
    def usable(self):
        """What the nodes offer less what foreign pods hold, node by node, never below 0 (12)."""
        left = {name: dict(node.room) for name, node in self.seen.nodes.items()}
        for pod in self.seen.pods.values():
            if pod.node in left and pod.state == "on" and not self.seen.queue_of(pod):
                left[pod.node] = facts.plus(left[pod.node], {**pod.request, "pods": 1}, -1)
        return facts.total({key: max(0, value) for key, value in room.items()} for room in left.values())

    @cached_property
    def written(self):
        """What is guaranteed to each queue before siblings' guarantees are scaled down (11)."""
        return {name: self._wanted(name) for name in self.seen.queues if name != "root"}

    @cached_property
    def guarantees(self):
        """What is guaranteed to each queue, as far as it counts (11)."""
        counted = {}
        self._scale("root", self.written, counted, self._root_room())
        return counted

    def _wanted(self, name):
        queue = self.seen.queues[name]
        below = facts.total(self._wanted(child) for child in self.children(name))
        own = {key: min(value, queue.capability.get(key, value)) for key, value in queue.guarantee.items()}
        own = {key: 0 if value > self.usable.get(key, 0) else value for key, value in own.items()}
        found = {key: max(own.get(key, 0), below.get(key, 0)) for key in {**own, **below}}
        return {key: min(value, queue.capability.get(key, value)) for key, value in found.items()}

    def _root_room(self):
        root = self.seen.queues.get("root")
        ceiling = root.capability if root else {}
        return {key: min(value, ceiling.get(key, value)) for key, value in self.usable.items()}

    def _scale(self, parent, wanted, counted, room):
        mine = self.children(parent)
        sums = facts.total(wanted[child] for child in mine)
        for child in mine:
            counted[child] = {
                key: value if sums[key] <= room.get(key, 0) else Fraction(value * max(0, room.get(key, 0))) / sums[key]
                for key, value in wanted[child].items()
            }
        for child in mine:
            own = self.seen.queues[child].capability
            others = facts.total(counted[sibling] for sibling in mine if sibling != child)
            left = {key: min(value - others.get(key, 0), own.get(key, value)) for key, value in room.items()}
            self._scale(child, wanted, counted, left)

    def room(self, name):
        """Give how much a queue may hold (11): the smaller of its ceiling and its parent's room less what is guaranteed to, or held by, its siblings.

        Up to its guarantee as written, where that was scaled down, only what they hold counts.
        """
        if name == "root":
            return self._root_room()
        parent, own = self.parents[name], self.seen.queues[name].capability
        siblings = [sibling for sibling in self.children(parent) if sibling != name]
        found = {}
        for key, above in self.room(parent).items():
            left = above - sum(self._taken(sibling, key) for sibling in siblings)
            written = self.written[name].get(key, 0)
            if written > self.guarantees[name].get(key, 0):
                left = max(left, min(written, above - sum(self.held[each].get(key, 0) for each in siblings)))
            found[key] = min(left, own.get(key, left))
        return found

    def _taken(self, name, key):
        """Give what a queue keeps from its siblings: what one child has borrowed is not what another is guaranteed, so that borrowers never take that together (11)."""
        below = sum(self._taken(child, key) for child in self.children(name))
        kept = max(self.guarantees[name].get(key, 0), below)
        kept = min(kept, self.seen.queues[name].capability.get(key, kept))
        return max(self.held[name].get(key, 0), kept)

    def above_ceiling(self, queue, asked):
        """Give (queue, resource) where a queue or an ancestor holds more than its ceiling, in resources that were asked for."""
        return [
            (name, key)
            for name in [*self.branch(queue), "root"]
            if name in self.seen.queues
            for key, most in self.seen.queues[name].capability.items()
            if key in asked and self.held[name].get(key, 0) > most
        ]

    def above_room(self, queue, asked):
        """Give (queue, resource) where a queue or an ancestor holds more than its room (11).

        One that stays within its own guarantee is not refused by this, and not by those above it either.
        """
        judged = {key for kept in self.written.values() for key, value in kept.items() if value} & set(asked)
        found = []
        for name in self.branch(queue):
            held, kept, room = self.held[name], self.guarantees[name], self.room(name)
            judged = {key for key in judged if held.get(key, 0) > kept.get(key, 0)}
            found += [(name, key) for key in sorted(judged) if held[key] > room.get(key, 0)]
        return found

    # ---- dues

    def due(self, name):
        """Give what capacity says a queue deserves (plugins 2.1, 2.2), with guarantees as they count."""
        queue = self.seen.queues[name]
        kept = self.guarantees.get(name, {})
        found = dict(queue.deserved)
        if not self.seen.policy.tree:
            others = facts.total(self.guarantees.values())
            for key, value in queue.deserved.items():
                most = max(0, self.offered.get(key, 0) - others.get(key, 0)) + kept.get(key, 0)
                most = max(most, self.written[name].get(key, 0))
                found[key] = min(value, most, queue.capability.get(key, most))
        return {key: max(found.get(key, 0), kept.get(key, 0)) for key in {**found, **kept}}

    def level(self, whole, requests=None):
        """Give what proportion says each queue deserves: the exact water level over a total (12)."""
        names = sorted(set(self.seen.queues) - {"root"})
        asked = requests or {name: self.requested(name) for name in names}
        others = facts.total(self.guarantees.get(name, {}) for name in names)
        dues = {name: {} for name in names}
        for key in whole:
            parts = []
            for name in names:
                kept = self.guarantees.get(name, {}).get(key, 0)
                most = max(max(0, whole[key] - others.get(key, 0)) + kept, self.written.get(name, {}).get(key, 0))
                most = min(most, self.seen.queues[name].capability.get(key, most), asked[name].get(key, 0))
                parts.append((name, max(1, self.seen.queues[name].weight), most, kept))
            for name, value in _level(whole[key], parts).items():
                dues[name][key] = value
        return dues

    def requested(self, name):
        """Give what the pods of a queue hold or wait for."""
        return facts.total(
            {**pod.request, "pods": 1}
            for pod in self.seen.pods.values()
            if self.seen.queue_of(pod) == name and pod.state in ("on", "pending") and pod.uid not in self.gone
        )


def _level(whole, parts):
    """Fill queues evenly by weight until the total is used up; parts are (name, weight, most, least)."""

    def filled(level):
        return {name: max(min(level * weight, most), least) for name, weight, most, least in parts}

    edges = [Fraction(edge) / weight for _, weight, most, least in parts for edge in (most, least)]
    steps = sorted({Fraction(0), *edges})
    low = steps[0]
    for high in steps:
        if sum(filled(high).values()) > whole:
            break
        low = high
    else:
        return filled(steps[-1])
    if sum(filled(low).values()) >= whole:
        return filled(low)
    # Between two steps the sum is a straight line.
    below, above = sum(filled(low).values()), sum(filled(high).values())
    return filled(low + (high - low) * (whole - below) / (above - below))


def subsets(items, *, proper=True):
    """Give the subsets of some items, the smallest first."""
    for size in range(len(items) if proper else len(items) + 1):
        yield from itertools.combinations(items, size)
