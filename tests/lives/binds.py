"""Checks of what is bound in one cycle. Each takes the judge's view of the cycle and gives texts of what is wrong."""

from __future__ import annotations

from tests.lives import facts
from tests.lives.rooms import Rooms


def node_room(view):
    """No node that gets a pod is over-committed in what is asked (6) or in pods (18), terminating pods included."""
    for name in {pod.node for pod in view.bound}:
        node = view.after.nodes.get(name)
        if node is None:
            yield f"{_names(view, name)} bound to {name}, which is not there"
            continue
        here = [pod for pod in view.after.pods.values() if pod.node == name and pod.is_in_room]
        used = facts.plus(facts.total(pod.request for pod in here), {"pods": len(here)})
        fresh = [pod for pod in view.bound if pod.node == name]
        asked = {"pods"} | {key for pod in fresh for key, value in pod.request.items() if value}
        if any(not pod.best_effort for pod in fresh):
            asked |= {"cpu", "memory"}
        for key in sorted(asked):
            if used.get(key, 0) > node.room.get(key, 0):
                yield f"{name} holds {used[key]} {key} of {node.room.get(key, 0)} after {_names(view, name)} was bound"


def node_filters(view):
    """A pod goes only where its selector, the taints, the cordon and readiness let it (kube-predicates)."""
    if not view.policy.lists("predicates"):
        return
    rooms = Rooms(view.before)
    for pod in view.bound:
        if pod.node in view.before.nodes and pod.group not in view.faulted and not rooms.admits(pod, pod.node):
            yield f"{pod.key} is bound to {pod.node}, whose filters refuse it"


def gang_minimum(view):
    """Below its minimum nothing of a gang is bound (17), roles included (core 4.3), unless it is evicted in the same cycle."""
    if not view.policy.lists("gang"):
        return
    for key in {pod.group for pod in view.bound} - view.faulted - {pod.group for pod in view.evicted}:
        if key in view.after.groups and not view.after.is_ready(key):
            number, roles = view.after.counts(key)
            group = view.after.groups[key]
            yield f"{key} has {number} of {group.minimum} members, roles {roles} of {group.roles}, after some were bound"


def queue_state(view):
    """A queue that is not Open starts nothing (17; plugins 2.3 and 17)."""
    if not view.shares:
        return
    for pod in view.bound:
        queue = view.before.queues.get(view.before.queue_of(pod))
        if queue is not None and not queue.is_open and pod.group not in view.faulted:
            yield f"{pod.key} is bound though queue {queue.name} is not Open"


def queue_ceiling(view):
    """No bind takes a queue or an ancestor above its ceiling (11, 30; plugins 2.3 and 17)."""
    if not view.shares:
        return
    rooms = Rooms(view.after, mine="*")
    for queue, asked in _asked(view).items():
        for name, key in rooms.above_ceiling(queue, asked):
            held, most = _held(view, rooms, name, key), view.after.queues[name].capability[key]
            if held > most:
                yield f"queue {name} holds {held} {key} of at most {most} after binds in {queue}"


def guarantees(view):
    """Guarantees hold jointly (11): no bind takes a queue above its room, unless it stays within its own guarantee."""
    if not view.shares:
        return
    rooms = Rooms(_without_holds(view.after), mine="*")
    for queue, asked in _asked(view).items():
        for name, key in rooms.above_room(queue, asked):
            room = rooms.room(name).get(key, 0)
            yield f"queue {name} holds {rooms.held[name][key]} {key} where its room is {room} after binds in {queue}"


def held_room(view):
    """What is held for a claimant, on some node and below the ceilings of its queue, is bound to nobody else (27)."""
    held = [pod for pod in view.after.pods.values() if _is_held(view, pod)]
    # A hold may move to another node before that is written.
    if not held or Rooms(_without_holds(view.after), later=True, mine="*").place(held) is not None:
        return
    before, after = (Rooms(Only(seen, held), later=True) for seen in (view.before, view.after))
    for name in {pod.nominated for pod in held} & set(view.before.nodes) & set(view.after.nodes):
        mine = {pod.group for pod in held if pod.nominated == name}
        fresh = [pod for pod in view.bound if pod.node == name and pod.group not in mine | view.faulted]
        fresh = [pod for pod in fresh if view.before.pods[pod.key].nominated != name]  # which holds room itself
        for key in sorted({key for pod in fresh for key, value in pod.request.items() if value}):
            if after.free[name].get(key, 0) < 0 <= before.free[name].get(key, 0):
                yield f"{_names(view, name)} is bound to {name}, where {key} is held for {', '.join(sorted(mine))}"
    for queue, asked in _asked(view).items() if view.shares else ():
        for name, key in after.above_ceiling(queue, asked):
            was, now = before.held.get(name, {}).get(key, 0), after.held[name][key]
            most = view.after.queues[name].capability[key]
            if now > max(most, was) and not any(view.after.queue_of(pod) == queue for pod in held):
                yield f"queue {name} holds {now} {key} of at most {most} with what is held there, after binds in {queue}"


def _is_held(view, pod):
    """Tell whether a pod is nominated to the same node before and after a cycle, and waits."""
    old = view.before.pods.get(pod.key)
    same = old is not None and old.uid == pod.uid and old.nominated == pod.nominated
    return same and bool(pod.nominated) and pod.state == "pending" and old.state == "pending" and not pod.foreign


class Only:
    """The same facts with the nominations of some pods alone."""

    def __init__(self, seen, held):
        self._seen = seen
        uids = {pod.uid for pod in held}
        self.pods = {
            key: pod if pod.uid in uids or not pod.nominated else _plain(pod) for key, pod in seen.pods.items()
        }

    def __getattr__(self, name):
        return getattr(self._seen, name)


def _asked(view):
    """Give, by queue, the resources that pods bound in this cycle ask for; those bound again after a fault are left out."""
    found = {}
    for pod in view.bound:
        queue = view.after.queue_of(pod)
        if queue and pod.group not in view.faulted and queue in view.after.queues:
            found.setdefault(queue, set()).update(key for key, value in pod.request.items() if value)
    return found


def _held(view, rooms, name, key):
    """Give what a queue holds for certain: nominations may be those of pods that wait behind the limit."""
    return Rooms(_without_holds(view.after), mine="*").held[name].get(key, 0)


class _without_holds:  # noqa: N801  reads as a function
    """The same facts, nominations aside."""

    def __init__(self, seen):
        self._seen = seen
        self.pods = {
            key: pod if not pod.nominated or pod.state != "pending" else _plain(pod) for key, pod in seen.pods.items()
        }

    def __getattr__(self, name):
        return getattr(self._seen, name)


def _plain(pod):
    return facts.Pod(**{**vars(pod), "nominated": ""})


def _names(view, node):
    return ", ".join(sorted(pod.key for pod in view.bound if pod.node == node))


CHECKS = (node_room, node_filters, gang_minimum, queue_state, queue_ceiling, guarantees, held_room)
