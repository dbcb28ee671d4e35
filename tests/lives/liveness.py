"""Checks of what ought to happen and does not: evictions that are due, cheaper ones, and groups that ought to be let in.

Each speaks only where the rules leave no choice: one victim that may go by every rule is enough, and nobody else waits for the room.
"""

from __future__ import annotations

from fractions import Fraction

from tests.lives import facts
from tests.lives.evictions import GANG_FORMS, WITHIN, may_take
from tests.lives.facts import CRITICAL
from tests.lives.rest import at_rest
from tests.lives.rooms import Rooms

EVICTING = ("preempt", "reclaim", "gangpreempt", "gangreclaim")


def evicts_when_due(view):
    """At rest no gang waits for which one pod may go that is enough (20, 23, 24; actions 4, 5, 7)."""
    if view.cycle.remaining != 0 or not at_rest(view) or view.faulted:
        return
    seen = view.after
    claimant = _only_claimant(seen)
    if not claimant:
        return
    members = _members(seen, claimant)
    if not members or Rooms(seen, mine=claimant).place(members) is not None:
        return
    for action in view.policy.actions:
        for pod in _eligible(seen, action, claimant, members) if action in EVICTING else ():
            if _helps(seen, claimant, members, pod):
                yield f"{claimant} waits, and {pod.key} may go for it by {action}"
                return


def cheapest(view):
    """Of several plans the one with the lowest priority, no broken gang, the fewest victims, the smallest loss is taken (26)."""
    if len(view.plans) != 1 or view.faulted:
        return
    plan = view.plans[0]
    if not plan.complete or plan.claimant not in view.before.groups or not plan.victims:
        return
    if any(pod.state == "leaving" for pod in view.before.pods.values()) or _only_claimant(view.before) != plan.claimant:
        return
    seen = _as_before(view)
    members = _members(seen, plan.claimant)
    taken = _rank(seen, plan.victims)
    for pod in _eligible(seen, plan.action, plan.claimant, members) if members else ():
        if pod.uid in {victim.uid for victim in plan.victims} or not _helps(seen, plan.claimant, members, pod):
            continue
        if (
            all(mine <= theirs for mine, theirs in zip(_rank(seen, [pod])[:2], taken[:2], strict=True))
            and _rank(seen, [pod])[2:] < taken[2:]
        ):
            loss = [str(rank[-1]) for rank in (taken, _rank(seen, [pod]))]
            named = ", ".join(victim.key for victim in plan.victims)
            yield f"{plan.action} for {plan.claimant} takes {named} (loss {loss[0]}), and {pod.key} would do (loss {loss[1]})"
            return


def voted_in(view):
    """At rest a group is let in for which every vote says yes (15; plugins 2.3, 13, 17)."""
    if view.cycle.remaining != 0 or not at_rest(view) or "enqueue" not in view.policy.actions:
        return
    seen = view.after
    rooms = Rooms(seen)
    for key, group in seen.groups.items():
        queue = seen.queues.get(group.queue)
        if group.phase != "Pending" or not group.min_resources or queue is None or not queue.is_open:
            continue
        if not rooms.is_placed(group.queue) or not set(group.min_resources) <= set(rooms.offered):
            continue
        if any(pod.state in ("on", "leaving", "succeeded", "failed") for pod in seen.members[key]):
            continue
        if _overcommit(seen, rooms, group) and _quota(seen, rooms, group):
            yield f"{key} asks {_text(group.min_resources)} and stays Pending, though every vote is yes"


# ---- who may go


def _only_claimant(seen):
    """Give the one group that waits for room and lacks its minimum, if no other pod waits."""
    waiting = {pod.group for pod in seen.pods.values() if pod.state == "pending" and not pod.foreign}
    if len(waiting) != 1:
        return ""
    key = waiting.pop()
    group = seen.groups.get(key)
    if group is None or group.phase == "Pending" or not seen.is_valid(key) or seen.is_ready(key) or group.roles:
        return ""
    queue = seen.queues.get(group.queue)
    return key if queue is not None and queue.is_open else ""


def _members(seen, key):
    """Give the members that the minimum lacks, if it does not matter which."""
    waiting = [pod for pod in seen.members[key] if pod.state == "pending"]
    number, _ = seen.counts(key)
    if len({pod.shape for pod in waiting}) != 1 or waiting[0].best_effort or any(pod.never for pod in waiting):
        return []
    return waiting[: seen.groups[key].minimum - number]


def _eligible(seen, action, key, members):
    """Give the pods that may go by every rule, each alone."""
    group = seen.groups[key]
    for pod in seen.pods.values():
        other = seen.groups.get(pod.group)
        if (
            other is None
            or pod.foreign
            or pod.state != "on"
            or pod.group == key
            or not pod.preemptable
            or pod.best_effort
        ):
            continue
        critical = pod.class_name in CRITICAL or pod.namespace == "kube-system"
        if critical or (action in GANG_FORMS and other.protected) or _is_budgeted(seen, pod):
            continue
        if not _is_spare(seen, action, pod):
            continue
        if action in WITHIN:
            allowed = (
                other.queue == group.queue and other.priority < group.priority and pod.priority < members[0].priority
            )
            votes = seen.policy.voters("enablePreemptable", ("drf",))
            if allowed and not votes:
                yield pod
        elif other.queue != group.queue and _may_reclaim(seen, action, group, members, pod):
            yield pod


def _is_spare(seen, action, pod):
    """Tell whether a gang can do without a pod, or is this pod only and may go whole."""
    group = seen.groups[pod.group]
    if not seen.policy.lists("gang"):
        return True
    if seen.is_ready(pod.group) and seen.is_ready(pod.group, less=[pod]) and not group.roles:
        return True
    if seen.members[pod.group] != [pod] or not seen.is_ready(pod.group):
        return False
    return action in GANG_FORMS or (action == "reclaim" and _falls_through(seen, pod))


def _falls_through(seen, pod):
    """Tell whether gang gives nobody on a node, so that a later tier decides (framework 4.4)."""
    tiers = [[plugin["name"] for plugin in tier] for tier in seen.policy.tiers]
    sharing = [index for index, tier in enumerate(tiers) if "capacity" in tier or "proportion" in tier]
    gang = [index for index, tier in enumerate(tiers) if "gang" in tier]
    here = [other for other in seen.pods.values() if other.node == pod.node and other.group in seen.groups]
    spare = [each for each in here if each.state == "on" and seen.is_ready(each.group, less=[each])]
    return bool(sharing and gang and gang[0] < sharing[0]) and not spare


def _is_budgeted(seen, pod):
    return seen.policy.lists("pdb") and any(
        budget["metadata"]["namespace"] == pod.namespace for budget in seen.budgets.values()
    )


def _may_reclaim(seen, action, group, members, pod):
    """Tell whether a queue is within its due with the members, and another above its due with a pod (23; plugins 2.3, 17)."""
    policy, queue = seen.policy, seen.queue_of(pod)
    if queue not in seen.queues or not seen.queues[queue].reclaimable or policy.level:
        return False
    if not (policy.lists("capacity") or policy.lists("proportion")):
        return False
    if not any(value and members[0].request.get(key) for key, value in pod.request.items()):
        return False
    rooms = Rooms(seen, mine=group.key)
    asked = {key for member in members for key, value in member.request.items() if value}
    more = facts.plus(rooms.held[group.queue], facts.total(member.request for member in members))
    if policy.lists("capacity"):
        mine, theirs = rooms.due(group.queue), rooms.due(queue)
    else:
        mine, theirs = rooms.level(rooms.offered)[group.queue], rooms.level(rooms.usable)[queue]
    # capacity asks only about what it says a queue deserves, proportion about everything.
    if policy.lists("capacity"):
        asked = {key for key in asked if mine.get(key)}
    if not asked or not all(more.get(key, 0) <= mine.get(key, 0) for key in asked):
        return False
    held = rooms.held[queue]
    named = [key for key, value in pod.request.items() if value]
    judged = [key for key in named if theirs.get(key)] if policy.lists("capacity") else named
    if not all(held.get(key, 0) > theirs.get(key, 0) for key in judged):
        return False
    claimants = rooms.branch(group.queue)
    return all(
        rooms.held[name].get(key, 0) - pod.request[key] >= rooms.guarantees[name].get(key, 0)
        for name in rooms.branch(queue)
        if name not in claimants
        for key in named
    )


def _helps(seen, key, members, pod):
    rooms = Rooms(seen, gone=[pod], later=True, mine=key)
    if not any(rooms.admits(member, pod.node) for member in members if pod.node in seen.nodes):
        return False
    where = rooms.place(members)
    return where is not None and may_take(seen, members, where, gone=[pod], mine=key)


def _rank(seen, victims):
    """Give what plans are ranked by: both readings of priority, broken gangs, number, loss."""
    broken = any(
        seen.groups[pod.group].minimum > 1
        and not seen.is_ready(pod.group, less=[v for v in victims if v.group == pod.group])
        for pod in victims
        if pod.group in seen.groups
    )
    whole = facts.total(node.room for node in seen.nodes.values())
    loss = sum(
        max((Fraction(value) / whole[key] for key, value in pod.request.items() if whole.get(key)), default=Fraction(0))
        for pod in victims
    )
    return (
        max(pod.priority for pod in victims),
        max(seen.groups[pod.group].priority for pod in victims if pod.group in seen.groups),
        broken,
        len(victims),
        loss,
    )


class _as_before:  # noqa: N801  reads as a function
    """The state in which the plan of a cycle was made: what was bound in the cycle is there, and its victims still are."""

    def __init__(self, view):
        self._seen = view.after
        old = {pod.key: pod for plan in view.plans for pod in plan.victims}
        self.pods = {
            key: old.get(key)
            or (facts.Pod(**{**vars(pod), "nominated": ""}) if pod.nominated and not pod.node else pod)
            for key, pod in view.after.pods.items()
        }
        self.members = {key: [] for key in self.groups}
        for pod in self.pods.values():
            if not pod.foreign and pod.group in self.members:
                self.members[pod.group].append(pod)

    def __getattr__(self, name):
        return getattr(self._seen, name)

    def counts(self, key, extra=(), less=()):
        """As in the facts."""
        return facts.Facts.counts(self, key, extra, less)

    def is_ready(self, key, extra=(), less=()):
        """As in the facts."""
        return facts.Facts.is_ready(self, key, extra, less)

    def is_valid(self, key):
        """As in the facts."""
        return facts.Facts.is_valid(self, key)


# ---- votes


def _overcommit(seen, rooms, group):
    if not seen.policy.lists("overcommit"):
        return True
    used = facts.total({**pod.request} for pod in seen.pods.values() if pod.is_in_room and pod.node in seen.nodes)
    waiting = facts.total(_reserved(seen, key, full=True) for key in seen.groups if _counts(seen, rooms, key))
    return all(
        waiting.get(key, 0) + value <= rooms.offered.get(key, 0) * Fraction(6, 5) - used.get(key, 0)
        for key, value in group.min_resources.items()
    )


def _quota(seen, rooms, group):
    if not (seen.policy.lists("capacity") or seen.policy.lists("proportion")):
        return True
    for name in [*rooms.branch(group.queue), *(["root"] if seen.policy.tree else [])]:
        below = [key for key in seen.groups if name in [*rooms.branch(seen.groups[key].queue), "root"]]
        waiting = facts.total(_reserved(seen, key) for key in below if _counts(seen, rooms, key))
        for key, value in group.min_resources.items():
            most = _real_capability(seen, rooms, name, key)
            if most is not None and value + rooms.held[name].get(key, 0) + waiting.get(key, 0) > most:
                return False
    return True


def _real_capability(seen, rooms, name, key):
    """Give the static ceiling of plugins 2.1 and 2.2, or None where there is none."""
    own = seen.queues[name].capability.get(key)
    if name == "root":
        return own
    parent = rooms.parents[name]
    if seen.policy.tree:
        above = _real_capability(seen, rooms, parent, key) if parent in seen.queues else None
    else:
        above = rooms.offered.get(key, 0)
    if above is None:
        return own
    kept = sum(rooms.guarantees[child].get(key, 0) for child in rooms.children(parent))
    real = max(0, above - kept) + rooms.guarantees[name].get(key, 0)
    return real if own is None else min(real, own)


def _counts(seen, rooms, key):
    """Tell whether a group takes budget from others: let in, or running with something to come; one that can never run does not (15)."""
    group = seen.groups[key]
    return group.phase in ("Inqueue", "Running") and bool(group.min_resources) and not _never_runs(seen, rooms, key)


def _never_runs(seen, rooms, key):
    group = seen.groups[key]
    if any(pod.state != "pending" for pod in seen.members[key]):
        return False
    limited = seen.policy.lists("capacity") or seen.policy.lists("proportion")
    if limited and any(
        value > seen.queues[name].capability.get(resource, value)
        for name in [*rooms.branch(group.queue), "root"]
        if name in seen.queues
        for resource, value in group.min_resources.items()
    ):
        return True
    waiting = [pod for pod in seen.members[key] if pod.state == "pending"]
    if len(waiting) < group.minimum:
        return any(value > rooms.offered.get(resource, 0) for resource, value in group.min_resources.items())
    empty = Rooms(seen, gone=list(seen.pods.values()), mine="*")
    empty.holds = lambda _: False
    return len({pod.shape for pod in waiting}) == 1 and empty.place(waiting[: group.minimum]) is None


def _reserved(seen, key, *, full=False):
    group = seen.groups[key]
    if group.phase == "Inqueue" and full:
        return group.min_resources
    held = facts.total(pod.request for pod in seen.alive(key))
    return {name: max(0, value - held.get(name, 0)) for name, value in group.min_resources.items()}


def _text(amounts):
    return ", ".join(f"{value} {name}" for name, value in amounts.items())


CHECKS = (evicts_when_due, cheapest, voted_in)
