"""The plain search: every set of victims and every placement, on clusters small enough for that.

It knows the manifests only, and the rules: who may go by the action and the plugins, which sets leave gangs whole, what fits, what a queue may hold.
"""

from __future__ import annotations

import itertools

from eviction_worlds import CLASSES


class Reference:
    """Tries everything for one claimant job of a world, by the rules of preempt; `tiers` name the plugins that vote about victims."""

    def __init__(self, world, job, tiers):
        self.world = world
        self.job = job
        self.tiers = tiers
        self.groups = {g["metadata"]["name"]: g["spec"] for g in world.groups}
        self.queues = {q["metadata"]["name"]: q["spec"] for q in world.queues}
        self.placed = [m for m in world.members.values() if m.node and not m.leaving]
        self.waiting = [m for m in world.members.values() if m.group == job and not m.node]

    # ---- who may go

    def priority(self, job):
        return CLASSES[self.groups[job]["priorityClassName"]]

    def is_candidate(self, member):
        spec, own = self.groups[member.group], self.groups[self.job]
        return not member.fixed and member.group != self.job and spec["queue"] == own["queue"]

    def answer(self, plugin, candidates):
        """Return whom one plugin would give, of candidates of which each job's last member comes first."""
        if plugin == "priority":
            return [m for m in candidates if self.priority(m.group) < self.priority(self.job)]
        if plugin == "gang":
            given = []
            for m in candidates:
                mine = [p for p in self.placed if p.group == m.group and p not in given]
                if len(mine) > self.groups[m.group]["minMember"] and self.can_spare_role(m, mine):
                    given.append(m)
            return given
        return list(candidates)

    def offered(self, node):
        """Return who is offered on a node while nobody has gone: intersect inside a tier, else agree on whom nobody refuses, fall through."""
        candidates = [m for m in self.placed if m.node == node and self.is_candidate(m)]
        candidates.sort(key=lambda m: m.name, reverse=True)
        for tier in self.tiers:
            decision = self.agreed(tier, candidates)
            if not decision and all(self.answer(plugin, candidates) for plugin in tier):
                undisputed = [m for m in candidates if self.agreed(tier, [m])]
                decision = self.agreed(tier, undisputed) if undisputed else []
            if decision:
                return decision
        return []

    def agreed(self, tier, candidates):
        """Return whom all plugins of a tier would give; none of these tiers has one that limits more than the two before it agree on."""
        answers = [self.answer(plugin, candidates) for plugin in tier]
        return [m for m in candidates if all(m in answer for answer in answers)]

    def roles(self, job):
        """Return the minimums of roles, which count only if the gang is at least as large as their sum."""
        spec = self.groups[job]
        roles = spec.get("minTaskMember", {})
        return roles if sum(roles.values()) <= spec["minMember"] else {}

    def can_spare_role(self, member, mine):
        return sum(m.role == member.role for m in mine) > self.roles(member.group).get(member.role, -1)

    def stands(self, job, left):
        """Tell whether a gang is complete with the members that are left."""
        enough = all(sum(m.role == role for m in left) >= least for role, least in self.roles(job).items())
        return enough and len(left) >= self.groups[job]["minMember"]

    def is_fair(self, gone, nodes):
        """Tell whether victims may go for members on some nodes: each is offered there, or belongs to a gang that those who are would break."""
        offered = {m.name for node in nodes for m in self.offered(node)}
        for job in {m.group for m in gone}:
            mine = [m for m in self.placed if m.group == job]
            lost = [m for m in gone if m.group == job]
            left = [m for m in mine if m not in lost]
            if left and (not self.stands(job, left) or any(m.name not in offered for m in lost)):
                return False
            if not left and not self.goes_whole(job, mine, nodes):
                return False
        return True

    def goes_whole(self, job, mine, nodes):
        """Tell whether a gang may go entirely: losing what is offered would break it, and nobody in it is protected.

        What gang offers on one node it no longer offers on the next: beyond what the job can spare somebody must be offered on one node.
        """
        if any(m.fixed for m in mine):
            return False
        spare = len(mine) - self.groups[job]["minMember"]
        there = [[m for m in self.offered(node) if m.group == job] for node in nodes]
        if spare >= len(mine):
            return sum(map(len, there)) == len(mine)
        votes = any("gang" in tier for tier in self.tiers)
        offered = max(there, key=len) if votes else [m for part in there for m in part]
        left = [m for m in mine if m not in offered]
        return len(left) < len(mine) and not self.stands(job, left)

    def keeps_gangs(self, gone):
        """Tell whether every gang that loses a pod is still complete, or gone."""
        for job in {m.group for m in gone}:
            left = [m for m in self.placed if m.group == job and m not in gone]
            if left and not self.stands(job, left):
                return False
        return True

    def sets(self):
        """Return all sets of pods that could go, the smallest first."""
        pods = [m for m in self.placed if self.is_candidate(m)]
        for size in range(len(pods) + 1):
            yield from itertools.combinations(pods, size)

    # ---- what fits

    def fits(self, member, node, there):
        spec = self.world.nodes[node]
        offered = spec["status"]["allocatable"]
        if member.zone and spec["metadata"]["labels"]["zone"] != member.zone:
            return False
        if sum(m.cpu for m in there) + member.cpu > int(offered["cpu"]) or len(there) + 1 > int(offered["pods"]):
            return False
        return not (member.port and any(m.port == member.port for m in there))

    def limit(self):
        """Return how much cpu the claimant's queue may hold if it is the only queue: what there is, what it wants, its capability."""
        queue = self.groups[self.job]["queue"]
        total = sum(int(n["status"]["allocatable"]["cpu"]) for n in self.world.nodes.values())
        wanted = sum(
            m.cpu for m in self.world.members.values() if self.groups[m.group]["queue"] == queue and not m.leaving
        )
        capability = self.queues[queue].get("capability", {}).get("cpu")
        return min(total, wanted, int(capability) if capability else total)

    def placements(self, members, gone, limit=None):
        """Yield every way to place members once the victims are gone, as node names."""
        there = {node: [m for m in self.placed if m.node == node and m not in gone] for node in self.world.nodes}
        if limit is not None and sum(m.cpu for m in self.placed if m not in gone) + sum(m.cpu for m in members) > limit:
            return
        yield from self._place(list(members), there)

    def _place(self, members, there):
        if not members:
            yield ()
            return
        for node in there:
            if self.fits(members[0], node, there[node]):
                rest = {**there, node: [*there[node], members[0]]}
                for others in self._place(members[1:], rest):
                    yield (node, *others)

    # ---- plans

    def lacking(self):
        """Return the sets of waiting members that would complete the claimant."""
        here = [m for m in self.placed if m.group == self.job]
        for size in range(1, len(self.waiting) + 1):
            found = [c for c in itertools.combinations(self.waiting, size) if self.stands(self.job, [*here, *c])]
            if found:
                return found
        return []

    def works(self, gone, members=None, limit=None):
        """Tell whether a set of victims makes room for the claimant (or for some members of it) and may go for it."""
        for chosen in self.lacking() if members is None else [members]:
            for nodes in self.placements(chosen, gone, limit):
                if self.is_fair(gone, set(nodes)):
                    return True
        return False

    def plans(self, members=None, limit=None):
        """Return every set of victims that works."""
        return [gone for gone in self.sets() if self.works(gone, members, limit)]


class GangReference(Reference):
    """The same for gangpreempt: of each job any pods it can spare, or everything; on any nodes."""

    def pieces(self, job):
        """Return the sets of pods that one job may lose."""
        mine = [m for m in self.placed if m.group == job]
        free = [m for m in mine if self.is_candidate(m)]
        if self.priority(job) >= self.priority(self.job):
            return [()]
        found = [chosen for size in range(len(free) + 1) for chosen in itertools.combinations(free, size)]
        return [lost for lost in found if self.keeps_gangs(lost)]

    def sets(self):
        """Return all unions of what jobs may lose, the smallest first."""
        parts = [self.pieces(job) for job in self.groups if job != self.job]
        unions = [tuple(itertools.chain(*chosen)) for chosen in itertools.product(*parts)]
        return sorted(unions, key=len)

    def is_fair(self, gone, nodes):
        """Allow everything that `sets` gives."""
        return True
