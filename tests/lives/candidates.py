"""Who may go for a claimant by every rule, where the rules leave no choice: single pods, gangs that go whole, and pairs of these."""

from __future__ import annotations

from tests.lives import facts
from tests.lives.evictions import GANG_FORMS, WITHIN, may_take
from tests.lives.facts import CRITICAL
from tests.lives.rooms import Rooms

MOST_UNITS = 8  # pairs are tried of no more units than these


def only_claimant(seen):
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


def members(seen, key):
    """Give the members that the minimum lacks, if it does not matter which."""
    waiting = [pod for pod in seen.members[key] if pod.state == "pending"]
    number, _ = seen.counts(key)
    if len({pod.shape for pod in waiting}) != 1 or waiting[0].best_effort or any(pod.never for pod in waiting):
        return []
    return waiting[: seen.groups[key].minimum - number]


def sufficient(seen, action, key, wanted):
    """Give the sets of one unit, then of two, that may go and after which the wanted members fit."""
    alone = list(_units(seen, action, key, wanted))
    helping = [unit for unit in alone if _helps(seen, key, wanted, unit)]
    yield from helping
    if len(alone) > MOST_UNITS:
        return
    for first in alone:
        for second in () if first in helping else _units(Without(seen, first), action, key, wanted):
            both = [*first, *second]
            if not any(set(unit) <= set(both) for unit in helping) and _helps(seen, key, wanted, both):
                yield both


def _units(seen, action, key, wanted):
    """Give the pods that may go by every rule, each alone, and the gangs that may go whole."""
    for name, group in seen.groups.items():
        here = seen.alive(name)
        if name == key or not here or (action in GANG_FORMS and group.protected):
            continue
        for pod in here:
            if _is_spare(seen, action, pod) and _may_go(seen, action, key, wanted, [pod]):
                yield [pod]
        if len(here) > 1 and _goes_whole(seen, action, here) and _may_go(seen, action, key, wanted, here):
            yield here


def _may_go(seen, action, key, wanted, unit):
    group, other = seen.groups[key], seen.groups[unit[0].group]
    if any(_is_protected(seen, pod) for pod in unit) or _is_budgeted(seen, unit[0]):
        return False
    if action not in WITHIN:
        return other.queue != group.queue and _may_reclaim(seen, group, wanted, unit)
    lower = other.priority < group.priority and all(pod.priority < wanted[0].priority for pod in unit)
    return other.queue == group.queue and lower and not seen.policy.voters("enablePreemptable", ("drf",))


def _is_protected(seen, pod):
    critical = pod.class_name in CRITICAL or pod.namespace == "kube-system"
    return critical or pod.foreign or not pod.preemptable or pod.best_effort


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


def _goes_whole(seen, action, here):
    """Tell whether a gang that has nothing to spare may go whole: in gang forms, or where a later tier offers its pods (25)."""
    key = here[0].group
    if not seen.policy.lists("gang") or len(seen.members[key]) > len(here) or not seen.is_ready(key):
        return False
    if any(seen.is_ready(key, less=[pod]) for pod in here):
        return False
    return action in GANG_FORMS or (action == "reclaim" and all(_falls_through(seen, pod) for pod in here))


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


def _may_reclaim(seen, group, wanted, unit):
    """Tell whether a queue is within its due with the members, and another above its due with what goes (23; plugins 2.3, 17)."""
    policy, queue = seen.policy, seen.queue_of(unit[0])
    if queue not in seen.queues or not seen.queues[queue].reclaimable or policy.level:
        return False
    if not (policy.lists("capacity") or policy.lists("proportion")):
        return False
    if not all(any(value and wanted[0].request.get(key) for key, value in pod.request.items()) for pod in unit):
        return False
    rooms = Rooms(seen, mine=group.key)
    if policy.lists("capacity"):
        mine, theirs = rooms.due(group.queue), rooms.due(queue)
    else:
        mine, theirs = rooms.level(rooms.offered)[group.queue], rooms.level(rooms.usable)[queue]
    return _is_within(rooms, group, wanted, mine) and _is_above(rooms, group, queue, unit, theirs)


def _is_within(rooms, group, wanted, due):
    asked = {key for member in wanted for key, value in member.request.items() if value}
    more = facts.plus(rooms.held[group.queue], facts.total(member.request for member in wanted))
    # capacity asks only about what it says a queue deserves, proportion about everything.
    if rooms.seen.policy.lists("capacity"):
        asked = {key for key in asked if due.get(key)}
    return bool(asked) and all(more.get(key, 0) <= due.get(key, 0) for key in asked)


def _is_above(rooms, group, queue, unit, due):
    """Tell whether a queue is above its due before a unit goes, and keeps what is guaranteed to it and its ancestors afterwards."""
    taken = {key: value for key, value in facts.total(pod.request for pod in unit).items() if value}
    judged = [key for key in taken if due.get(key)] if rooms.seen.policy.lists("capacity") else list(taken)
    if not all(rooms.held[queue].get(key, 0) > due.get(key, 0) for key in judged):
        return False
    claimants = rooms.branch(group.queue)
    return all(
        rooms.held[name].get(key, 0) - value >= rooms.guarantees[name].get(key, 0)
        for name in rooms.branch(queue)
        if name not in claimants
        for key, value in taken.items()
    )


def _helps(seen, key, wanted, unit):
    rooms = Rooms(seen, gone=unit, later=True, mine=key)
    if not any(rooms.admits(member, pod.node) for pod in unit if pod.node in seen.nodes for member in wanted):
        return False
    where = rooms.place(wanted)
    return where is not None and may_take(seen, wanted, where, gone=unit, mine=key)


class Supposed:
    """Facts with other pods than the API server shows."""

    def __init__(self, seen, pods):
        self._seen = seen
        self.pods = pods
        self.members = {key: [] for key in seen.groups}
        for pod in pods.values():
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

    def alive(self, key):
        """As in the facts."""
        return facts.Facts.alive(self, key)


class Without(Supposed):
    """The same facts without some pods."""

    def __init__(self, seen, gone):
        super().__init__(seen, {key: pod for key, pod in seen.pods.items() if pod not in gone})


class AsBefore(Supposed):
    """The state in which the plan of a cycle was made: what was bound in the cycle is there, and its victims still are."""

    def __init__(self, view):
        old = {pod.key: pod for plan in view.plans for pod in plan.victims}
        super().__init__(view.after, {key: old.get(key) or _plain(pod) for key, pod in view.after.pods.items()})


def _plain(pod):
    return facts.Pod(**{**vars(pod), "nominated": ""}) if pod.nominated and not pod.node else pod
