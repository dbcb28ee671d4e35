"""Checks of what ought to happen and does not: evictions that are due, cheaper ones, and groups that ought to be let in.

Each speaks only where the rules leave no choice: pods that may go by every rule are enough, and nobody else waits for the room.
"""

from __future__ import annotations

from fractions import Fraction

from tests.lives import candidates, facts
from tests.lives.evictions import GANG_FORMS
from tests.lives.rest import at_rest
from tests.lives.rooms import Rooms

EVICTING = ("preempt", "reclaim", "gangpreempt", "gangreclaim")


def evicts_when_due(view):
    """At rest no gang waits for which a pod, a gang that goes whole, or two of these may go that are enough (20, 23-25; actions 4, 5, 7)."""
    if view.cycle.remaining != 0 or not at_rest(view) or view.faulted:
        return
    seen = view.after
    claimant = candidates.only_claimant(seen)
    members = candidates.members(seen, claimant) if claimant else []
    if not members or Rooms(seen, mine=claimant).place(members) is not None:
        return
    for action in view.policy.actions:
        for victims in candidates.sufficient(seen, action, claimant, members) if action in EVICTING else ():
            yield f"{claimant} waits, and {_keys(victims)} may go for it by {action}"
            return


def cheapest(view):
    """Of several plans the one with the lowest priority, no broken gang, the fewest victims, the smallest loss is taken (26)."""
    if len(view.plans) != 1 or view.faulted:
        return
    plan = view.plans[0]
    if not plan.complete or plan.claimant not in view.before.groups or not plan.victims:
        return
    seen = candidates.AsBefore(view)
    if any(pod.state == "leaving" for pod in view.before.pods.values()):
        return
    members = candidates.members(seen, plan.claimant) if candidates.only_claimant(seen) == plan.claimant else []
    taken = _rank(seen, plan.victims)
    for victims in candidates.sufficient(seen, plan.action, plan.claimant, members) if members else ():
        rank = _rank(seen, victims)
        # Inside a domain the gang forms take bundles in their own order (actions 7.5), those that break no gang first.
        end = 3 if plan.action in GANG_FORMS else 5
        if all(mine <= theirs for mine, theirs in zip(rank[:2], taken[:2], strict=True)) and rank[2:end] < taken[2:end]:
            named, other = _keys(plan.victims), _keys(victims)
            yield f"{plan.action} for {plan.claimant} takes {named} (loss {taken[-1]}), and {other} would do (loss {rank[-1]})"
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


def _keys(pods):
    return ", ".join(sorted(pod.key for pod in pods))


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
    real = max(max(0, above - kept) + rooms.guarantees[name].get(key, 0), rooms.written[name].get(key, 0))
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
