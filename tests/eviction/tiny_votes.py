"""What plugins answer about victims, and which tier decides: framework 4.4 and 5.3, plugins 2.3, 6, 8, 14, 16, 17, with ours.md 23 and 24."""

from __future__ import annotations

import functools
from fractions import Fraction

from tests.lives import facts

POINTS = {
    "preempt": ("enablePreemptable", ("priority", "gang", "drf", "conformance", "pdb", "cdp")),
    "reclaim": ("enableReclaimable", ("gang", "conformance", "pdb", "cdp", "proportion", "capacity")),
    "gangpreempt": ("", ("priority", "gang", "conformance", "capacity")),
    "gangreclaim": ("", ("priority", "gang", "conformance", "capacity")),
}
NEAR = Fraction(1, 10**6)


class Votes:
    """The answers for one claimant in the state that a plan has reached: who is gone already, and which members stand."""

    def __init__(self, scene, key, gone=(), placed=()):
        self.scene = scene
        self.key = key
        self.gone = list(gone)
        self.placed = list(placed)
        switch, names = POINTS[scene.action]
        self.tiers = scene.policy.voters(switch, names)

    # ---- which tier decides

    def tiers_for(self, member, candidates):
        """Give the tiers that may be said to decide about all candidates of a node or domain; more than one where the rules can be read in two ways."""
        listed = self.in_order(candidates)
        found = set()
        for pods in (listed, self._within_budgets(listed)):
            for quarrel in (False, True):
                deciding = (i for i in range(len(self.tiers)) if self._decision(i, member, pods, quarrel=quarrel))
                found.add(next(deciding, None))
        return found

    def _within_budgets(self, pods):
        if not self.scene.policy.lists("pdb"):
            return pods
        kept = []
        for pod in pods:
            if not self.scene.budgets_broken([*self.gone, *kept, pod]):
                kept.append(pod)
        return kept

    def _decision(self, tier, member, pods, *, quarrel):
        """Combine the answers of a tier; with `quarrel` those whom each plugin would let go alone are asked about where the answers share nobody."""
        decision, fought = None, False
        answers = [self.answer(plugin, member, pods) for plugin in self.tiers[tier]]
        for answer in answers:
            if not answer:
                return []
            if decision is None:
                decision = None if fought and len(answer) == len(pods) else answer
            else:
                decision = [p for p in decision if p in answer] or None
                fought = fought or decision is None
        if decision is None and quarrel and pods:
            alone = [p for p in pods if all(self.answer(plugin, member, [p]) for plugin in self.tiers[tier])]
            if alone and len(alone) < len(pods):
                return self._decision(tier, member, alone, quarrel=False)
        return decision or []

    def answer(self, plugin, member, pods):
        """Give whom a plugin lets go of pods in victim order."""
        return getattr(self, f"_{plugin}")(member, pods)

    def _conformance(self, _member, pods):
        return pods

    _cdp = _pdb = _conformance  # protections, which took away before (23)

    def _priority(self, member, pods):
        if self.scene.action == "gangreclaim":
            return pods
        groups = self.scene.seen.groups
        mine = groups[self.key].priority
        return [
            p
            for p in pods
            if (p.priority < member.priority if p.group == self.key else groups[p.group].priority < mine)
        ]

    def _gang(self, _member, pods):
        if self.scene.action.startswith("gang"):
            return pods
        given = []
        for pod in pods:
            lost = [p for p in (*self.gone, *given, pod) if p.group == pod.group]
            if self.scene.seen.is_ready(pod.group, less=lost):
                given.append(pod)
        return given

    def _drf(self, member, pods):
        mine, running, given = self._drf_share(self.key, [member]), [], []
        for pod in pods:
            running.append(pod)
            theirs = self._drf_share(pod.group, less=running)
            if mine < theirs or abs(mine - theirs) <= NEAR:
                given.append(pod)
        return given

    def _drf_share(self, key, extra=(), less=()):
        gone = {p.uid for p in (*self.gone, *less)}
        mine = [p for p in self.scene.seen.alive(key) if p.uid not in gone]
        mine += [p for p in self.placed if p.group == key] + list(extra)
        held = facts.total({**p.request, "pods": 1} for p in mine)
        return max(
            (Fraction(held.get(k, 0)) / v if v else Fraction(bool(held.get(k))) for k, v in self.scene.total.items())
        )

    def _proportion(self, member, pods):
        return self._above(member, pods, named=False)

    def _capacity(self, member, pods):
        if self.scene.action == "gangpreempt":
            return pods
        return self._above(member, pods, named=self.scene.action == "reclaim")

    def _above(self, member, pods, *, named):
        held = self.scene.rooms(gone=self.gone).held
        kept = self.scene.rooms().guarantees
        given = []
        for pod in pods:
            queue = self.scene.seen.queue_of(pod)
            if named and not any(v and member.request.get(k) for k, v in pod.request.items()):
                continue
            left = facts.plus(held[queue], {**pod.request, "pods": 1}, -1)
            safe = all(left.get(k, 0) >= v for k, v in kept.get(queue, {}).items())
            if (safe or self.scene.policy.lists("proportion")) and self.scene.is_above(queue, held[queue], pod.request):
                given.append(pod)
                held[queue] = left
        return given

    # ---- sets

    def lets_go(self, tier, member, pods):
        """Tell whether a tier lets a set go: each plugin gives every pod of it. Queues' dues are asked apart, of the plan."""
        for plugin in self.tiers[tier]:
            if plugin in ("proportion", "capacity"):
                shared = all(any(v and member.request.get(k) for k, v in p.request.items()) for p in pods)
                if self.scene.action == "reclaim" and plugin == "capacity" and not shared:
                    return False
            elif len(self.answer(plugin, member, pods)) < len(pods):
                return False
        return True

    # ---- victim order (framework 5.3, ours 24)

    def in_order(self, pods):
        """Sort pods: between queues as one likes, inside a queue by reverse job order, then reverse task order."""
        return sorted(pods, key=functools.cmp_to_key(self._compare))

    def _compare(self, left, right):
        if left.group != right.group:
            groups = self.scene.seen.groups
            one, other = groups[left.group], groups[right.group]
            if one.queue != other.queue:
                return -1 if one.queue > other.queue else 1
            return -self._job_order(one, other) or (-1 if _age(one) > _age(other) else 1)
        mine, theirs = (left.priority, _reversed(left.uid)), (right.priority, _reversed(right.uid))
        return (mine > theirs) - (mine < theirs)

    def _job_order(self, one, other):
        for tier in self.scene.policy.tiers:
            for plugin in tier:
                keys = [self._job_key(plugin["name"], each) for each in (one, other)]
                if keys[0] != keys[1]:
                    return -1 if keys[0] < keys[1] else 1
        return 0

    def _job_key(self, plugin, group):
        if plugin == "priority":
            return -group.priority
        if plugin == "gang":
            return self.scene.seen.is_ready(group.key, less=self.gone)
        return self._drf_share(group.key) if plugin == "drf" else 0


def _age(group):
    return group.key  # jobs are made in the order of their names


def _reversed(uid):
    return tuple(-ord(c) for c in uid)
