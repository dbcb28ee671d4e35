"""One moment of a tiny world, and who may be asked about in it: jobs that may ask, members that are lacking, candidates, protections, limits of queues.

Written from ours.md 11, 12, 17, 20, 23, framework 4.2 and plugins 2, 16, 17; it knows manifests and rules, and nothing of the scheduler's own model.
"""

from __future__ import annotations

import itertools
from fractions import Fraction
from functools import cached_property

from tiny_worlds import WITHIN

from tests.lives import facts
from tests.lives.candidates import Supposed
from tests.lives.rooms import Rooms

CRITICAL = facts.CRITICAL


class Scene:
    """The cluster as a plan finds it, for one action; dues are those of the session's beginning, whatever has moved since."""

    def __init__(self, world, seen, begun=None, evicted=(), placed=()):
        self.world = world
        self.seen = seen
        self.policy = world.policy
        self.action = world.action
        self.begun = begun or self
        self.placed = set(
            placed
        )  # keys of pods that were placed a moment ago, which nobody takes but with the rest of their gang
        self.evicted = list(evicted)  # before, in this session: budgets have not learnt of them
        self.on = [pod for pod in seen.pods.values() if pod.state == "on"]
        self.total = facts.total(n.room for n in seen.nodes.values())

    def moved(self, *, gone=(), placed=()):
        """Give the scene in which some pods wait again and others run."""
        pods = dict(self.seen.pods)
        for each in gone:
            pods[each.key] = facts.Pod(**{**vars(each), "node": "", "state": "pending"})
        for each, where in placed:
            pods[each.key] = facts.Pod(**{**vars(each), "node": where, "state": "on"})
        return Scene(self.world, Supposed(self.seen, pods), self.begun, [*self.evicted, *gone])

    # ---- who may ask (20)

    def is_starving(self, key):
        """Ask the first tier that answers JobStarving; inside it all must say yes."""
        ready = len(self.seen.alive(key))
        answers = {"gang": ready < self.seen.groups[key].minimum, "priority": ready < len(self.seen.members[key])}
        for tier in self.policy.tiers:
            said = [answers[p["name"]] for p in tier if p["name"] in answers and p.get("enableJobStarving", True)]
            if said:
                return all(said)
        return False

    def lacking(self, key):
        """Give the smallest sets of waiting members with which the job is pipelined; a job that has its minimum asks for one more at a time."""
        waiting = [p for p in self.seen.members[key] if p.state == "pending" and not p.never and not p.best_effort]
        least = 1 if self.seen.is_ready(key) else 0
        for size in range(max(1, least), len(waiting) + 1):
            found = [c for c in itertools.combinations(waiting, size) if self.seen.is_ready(key, extra=c)]
            if found:
                return found
        return []

    def may_ask(self, key, members, *, strict):
        """Tell whether a queue may claim for some members: Overused and Preemptive (actions 5, 7; plugins 2.3, 17), an Open queue.

        Strictly gangreclaim asks about all who wait (actions 7.1).
        """
        queue = self.seen.groups[key].queue
        if strict and self.action == "gangreclaim":
            members = [p for p in self.seen.members[key] if p.state == "pending"]
        if not self.seen.queues[queue].is_open:
            return False
        if self.action in WITHIN:
            return True
        rooms = self.rooms()
        held, asked = rooms.held[queue], facts.total(m.request for m in members)
        future = facts.plus(held, asked)
        if self.policy.lists("proportion"):
            due = self.begun.levels_offered[queue]
            overused = all(value <= held.get(name, 0) for name, value in due.items())
            return not overused and all(future[k] <= due.get(k, 0) for k, v in asked.items() if v)
        if self.policy.lists("capacity"):
            due = rooms.due(queue)
            named = [k for k, v in asked.items() if v and (future[k] or due.get(k, 0))]
            most = self.begun.real_capability(queue)
            return any(future[k] <= due.get(k, 0) for k in named) and all(
                future[k] <= most.get(k, future[k]) for k in named
            )
        return True

    # ---- candidates, and protections that stand for one pod alone (23)

    def candidates(self, key, member):
        """Give the pods that the action may take for a member and no protection of their own keeps."""
        mine = self.seen.groups[key]
        known = [pod for pod in self.on if pod.key not in self.placed and self.is_asked_about(mine, pod)]
        return [pod for pod in known if not self.protection(mine, member, pod)]

    def is_asked_about(self, mine, pod):
        """Tell whether an action asks about a pod at all for a job (actions 4.2, 5, 7.3)."""
        group = self.seen.groups.get(pod.group)
        if group is None or pod.foreign:
            return False
        if self.action == "preempt":
            return group.queue == mine.queue
        if self.action == "gangpreempt":
            return group.queue == mine.queue and group.key != mine.key and group.priority < mine.priority
        return group.queue != mine.queue

    def protection(self, mine, member, pod):
        """Say what protects a pod, or nothing."""
        group = self.seen.groups[pod.group]
        if not pod.preemptable:
            return "its own preemptable=false"
        if self.action.startswith("gang") and group.protected:
            return "its group's preemptable=false"
        if self.policy.lists("conformance") and pod.class_name in CRITICAL:
            return "conformance"
        if self.policy.lists("cdp") and pod.key in self.world.cooling:
            return "cdp"
        if self.policy.lists("pdb") and self.budgets_broken([pod]):
            return "pdb"
        if self.action == "preempt" and self.policy.voters("enablePreemptable", ("priority",)):
            above = pod.priority > member.priority if group.key == mine.key else group.priority > mine.priority
            if above:
                return "being more important"
        if group.queue != mine.queue and not self.seen.queues[group.queue].reclaimable:
            return "its queue's reclaimable=false"
        return ""

    def budgets_broken(self, pods):
        """Give the budgets that do not allow so many to go."""
        found = []
        for key, budget in self.seen.budgets.items():
            wanted = budget["spec"]["selector"]["matchLabels"]
            matched = [
                p for p in (*self.evicted, *pods) if p.labels and all(p.labels.get(k) == v for k, v in wanted.items())
            ]
            if len(matched) > budget["status"]["disruptionsAllowed"]:
                found.append(key)
        return found

    # ---- queues

    def rooms(self, *, placed=(), gone=()):
        """Give room on nodes and in queues with some pods gone and others placed."""
        return Rooms(self.seen, placed=placed, gone=gone, later=True, mine="*")

    @cached_property
    def levels_offered(self):
        """What proportion says each queue deserves of what the nodes offer."""
        rooms = self.rooms()
        return rooms.level(rooms.offered)

    @cached_property
    def levels_usable(self):
        """The same, of what the nodes offer less what foreign pods hold (12)."""
        rooms = self.rooms()
        return rooms.level(rooms.usable)

    def real_capability(self, name):
        """Give capacity's flat ceiling of plugins 2.1."""
        rooms = self.rooms()
        kept = facts.total(rooms.guarantees.values())
        own = self.seen.queues[name].capability
        mine = rooms.guarantees.get(name, {})
        room = {k: max(0, v - kept.get(k, 0)) + mine.get(k, 0) for k, v in rooms.offered.items()}
        return {k: min(v, own.get(k, v)) for k, v in room.items()}

    def limits(self, key, where, gone):
        """Say which limit of its queue the members break once the victims are gone (11, 12, 22), or nothing."""
        if not (self.policy.lists("capacity") or self.policy.lists("proportion")):
            return ""
        queue = self.seen.groups[key].queue
        asked = {k for m in where for k, v in m.request.items() if v}
        rooms = self.rooms(placed=list(where.items()), gone=gone)
        broken = rooms.above_ceiling(queue, asked) or rooms.above_room(queue, asked)
        if broken:
            return f"{broken[0][0]} above its ceiling or room in {broken[0][1]}"
        if self.policy.lists("proportion"):
            # A queue that was lent room may exchange what it holds beyond its due, inside itself (12).
            due, before = self.begun.levels_offered[queue], self.rooms().held[queue]
            above = [k for k in asked if rooms.held[queue].get(k, 0) > max(due.get(k, 0), before.get(k, 0))]
            return f"{queue} above what it deserves in {above[0]}" if above else ""
        return ""

    def takes_from(self, key, gone, whole, *, strict):
        """Say which queue may not lose its victims to another one: not above its due, or below what is guaranteed to it (23).

        A gang that goes whole is judged once. The order in which the others go is the victim order; leniently any order will do, strictly every order must.
        """
        if not (self.policy.lists("capacity") or self.policy.lists("proportion")):
            return ""
        mine, rooms = self.seen.groups[key].queue, self.rooms()
        units = {}
        for pod in gone:
            queue = self.seen.queue_of(pod)
            if queue != mine:
                units.setdefault(queue, {}).setdefault(pod.group if pod.group in whole else pod.key, []).append(pod)
        for queue, by_name in units.items():
            parts = list(by_name.values())
            taken = facts.total(p.request for unit in parts for p in unit)
            for name, value in taken.items():
                if value and rooms.held[queue].get(name, 0) - value < rooms.guarantees[queue].get(name, 0):
                    return f"guarantee of {queue}"
            orders = [self._goes(order, rooms.held[queue], queue) for order in itertools.permutations(parts)]
            if not (all if strict else any)(orders):
                return f"{queue} is not above its due"
        return ""

    def _goes(self, order, held, queue):
        for unit in order:
            if not self.is_above(queue, held, facts.total(p.request for p in unit)):
                return False
            held = facts.plus(held, facts.plus(facts.total(p.request for p in unit), {"pods": len(unit)}), -1)
        return True

    def is_above(self, queue, held, taken):
        """Tell whether a queue that holds so much is above its due, as far as what would go is concerned (plugins 2.3 step 3, 17)."""
        if self.policy.lists("proportion"):
            due = self.begun.levels_usable[queue]
            return any(value > due.get(name, 0) for name, value in held.items())
        due = self.begun.rooms().due(queue)
        named = {k for k, v in taken.items() if v}
        if not {k for k in named if due.get(k, 0) > 0}:
            return True
        judged = {k for k in named if due.get(k, 0) > 0 or (k in due and k not in ("cpu", "memory"))}
        return any(held.get(k, 0) > due[k] for k in judged)

    # ---- nodes

    def fits(self, members, gone):
        """Yield every way to place members once victims are gone: member to node, in the members' order."""
        yield from self._fit(list(members), dict(self.rooms(gone=gone).free))

    def _fit(self, members, free):
        if not members:
            yield {}
            return
        member = members[0]
        asked = {"cpu": 0, "memory": 0, **member.request, "pods": 1}
        for name, left in free.items():
            if all(left.get(k, 0) >= v for k, v in asked.items()):
                for rest in self._fit(members[1:], {**free, name: facts.plus(left, asked, -1)}):
                    yield {member: name, **rest}

    def share(self, request):
        """Give the largest share of the cluster in any dimension but pods (26)."""
        return max(
            (Fraction(v) / self.total[k] for k, v in request.items() if v and self.total.get(k)), default=Fraction(0)
        )
