"""Checks over several cycles: what becomes of claims, and what must be true once nothing changes any more."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

from tests.lives import facts
from tests.lives.evictions import may_take
from tests.lives.rooms import Rooms

PATIENCE = 5  # cycles after the last victim is gone
LONG = 60  # cycles of a tail after which no eviction may follow from another one
CALM = 6  # quiet cycles at the end
MOST_WAYS = 60
MOST_MEMBERS = 6
MOST_STATES = 3000


@dataclass
class Claim:
    """A plan whose members still wait."""

    plan: object
    gone_for: int = 0
    robbed: bool = False


def claims(view):
    """A claimant gets the room that its victims left (22, 27), unless something else changes meanwhile."""
    open_claims = view.history.claims
    open_claims += [Claim(plan) for plan in view.plans if plan.complete and plan.members]
    finished = {pod.uid for pod in view.after.pods.values() if pod.state in ("succeeded", "failed")}
    if view.cycle.changed or finished - view.history.finished:
        open_claims[:] = [claim for claim in open_claims if claim.plan.cycle == view.cycle.number]
    view.history.finished = finished
    for claim in list(open_claims):
        plan = claim.plan
        waiting = [pod for pod in plan.members if _waits(view, pod)]
        if not waiting:
            open_claims.remove(claim)
            continue
        if not any(pod.uid in view.after.by_uid for pod in plan.victims):
            claim.gone_for += 1
        if claim.gone_for > PATIENCE:
            open_claims.remove(claim)
            names = ", ".join(pod.key for pod in waiting)
            yield f"cycle {plan.cycle}: {', '.join(p.key for p in plan.victims)} went by {plan.action} for {plan.claimant}, and {names} still wait"


def robbed(view):
    """Nobody is evicted for a claimant from whom another job takes the room at once (27), unless something else changes meanwhile."""
    for claim in view.history.claims:
        plan = claim.plan
        if view.cycle.number != plan.cycle + 1 or claim.robbed:
            continue
        lost = [pod for pod in plan.members if _waits(view, pod) and not view.after.by_uid[pod.uid].nominated]
        others = {pod.group for pod in view.after.pods.values() if _is_new(view, pod) and pod.group != plan.claimant}
        if lost and others:
            claim.robbed = True
            names = ", ".join(pod.key for pod in lost)
            yield f"{', '.join(p.key for p in plan.victims)} went for {plan.claimant}, and {names} lost it at once to {', '.join(sorted(others))}"


def closed_holds(view):
    """A hold ends when its queue is not Open (27)."""
    if not view.shares:
        return
    for pod in view.after.pods.values():
        old, queue = view.before.pods.get(pod.key), view.before.queues.get(view.before.queue_of(pod))
        waits = old is not None and old.uid == pod.uid and old.state == pod.state == "pending"
        if waits and queue is not None and not queue.is_open and pod.nominated and pod.group not in view.faulted:
            yield f"{pod.key} is nominated to {pod.nominated} though queue {queue.name} is not Open"


def let_in(view):
    """Without enqueue a group of an Open queue that is Pending, or has no phase, is Inqueue at once (17)."""
    if "enqueue" in view.policy.actions:
        return
    for key, group in view.before.groups.items():
        queue = view.before.queues.get(group.queue)
        later = view.after.groups.get(key)
        stays = group.phase == "Pending" and later is not None and later.phase == "Pending"
        if stays and queue is not None and queue.is_open and not _ends_pending(view, key):
            yield f"{key} of the Open queue {queue.name} stays Pending"


def ping_pong(view):
    """Over a static input nobody is evicted twice for the same job (28)."""
    if view.cycle.changed:
        view.history.pairs.clear()
    for plan in view.plans:
        for pod in plan.victims:
            pair = (pod.key, plan.claimant)
            if pair in view.history.pairs and view.history.pairs[pair] != pod.uid and plan.complete:
                yield f"{pod.key} is evicted for {plan.claimant} once more"
            view.history.pairs[pair] = pod.uid


def evictions_end(view):
    """Over a static input evictions end (28); one may open the way to the next, so that a short tail is too short to tell."""
    view.history.tail = max(view.history.tail, view.cycle.remaining)
    if view.history.tail > LONG and 0 <= view.cycle.remaining < 4 and view.evicted:
        yield f"{', '.join(pod.key for pod in view.evicted)} evicted {view.cycle.remaining} cycles before the end of the tail"


def quiet(view):
    """What nobody changed is not written again (31)."""
    history = view.history
    moved = view.cycle.changed or view.bound or view.evicted or view.cycle.writes["binds"] or _moved(view)
    moved = moved or (view.policy.lists("sla") and _phases(view.before) != _phases(view.after))  # whose time has come
    history.still = 0 if moved else history.still + 1
    written = {name: number for name, number in view.cycle.writes.items() if number}
    history.noisy = [*getattr(history, "noisy", []), bool(written and history.still > CALM)][-CALM:]
    if sum(history.noisy) == 3:
        history.noisy = []
        yield f"nothing has changed for {history.still} cycles, and {written} were written: {_what(view)}"


def work_conserving(view):
    """At rest no gang waits that fits however its members are tried, and whose queue may take it (17, 21, 27; actions 2)."""
    for key, waiting in _waiting(view):
        if fits_surely(view.after, key, waiting):
            yield f"{key} waits ({view.after.groups[key].phase}), and {', '.join(pod.key for pod in waiting)} fit in any order"


def lent_last(view):
    """Nobody gets room beyond the due of his queue that somebody could have used who waits within his own (12); asked where nothing else was placed in the cycle."""
    seen, moved = view.before, view.evicted or view.faulted or view.cycle.restarted
    if not view.policy.lends or not view.bound or moved or any(pod.nominated for pod in seen.pods.values()):
        return
    rooms = Rooms(seen)
    dues = rooms.level(rooms.offered)
    if not all(_is_lent(rooms, dues, seen.queue_of(pod), pod) for pod in view.bound if not pod.best_effort):
        return
    for key, waiting in _startable(view, seen):
        if fits_surely(seen, key, waiting, dues=True):
            names = ", ".join(pod.key for pod in view.bound)
            yield f"{names} got room beyond the due of their queue that {key} could have used"


def _is_lent(rooms, dues, queue, pod):
    held = rooms.held[queue]
    return any(value and held.get(key, 0) + value > dues[queue].get(key, 0) for key, value in pod.request.items())


def packing(view):
    """At rest no gang waits that fits in some way; no rule promises to find it, so this is asked only on demand."""
    for key, waiting in _waiting(view):
        if not fits_surely(view.after, key, waiting) and (found := _fitting(view.after, key, waiting)):
            yield found


def _waiting(view):
    """Give, at rest, the groups that may start and the members with requests that wait."""
    if view.cycle.remaining != 0 or not at_rest(view):
        return
    yield from _startable(view, view.after)


def _startable(view, seen):
    """Give the groups that may start and the members with requests that wait."""
    rooms = Rooms(seen)
    for key, group in seen.groups.items():
        queue = seen.queues.get(group.queue)
        if queue is None or not queue.is_open or not rooms.is_placed(group.queue):
            continue
        waiting = [pod for pod in seen.members[key] if pod.state == "pending" and not pod.best_effort]
        if waiting and group.phase != "Pending" and seen.is_valid(key) and key not in view.faulted:
            yield key, waiting


def fits_surely(seen, key, waiting, *, dues=False):
    """Tell whether a gang starts in whatever order its members are tried, on whatever nodes, the minimum first (17).

    Of a gang that has its minimum one member is enough, and each that fits must be tried. What queues are due keeps nobody from idle room (12), unless `dues` count.
    """
    rooms = Rooms(seen, mine=key)
    if seen.is_ready(key) or not seen.policy.lists("gang"):
        alone = [(pod, rooms.place([pod])) for pod in waiting]
        return any(where is not None and may_take(seen, [pod], where, mine=key, dues=dues) for pod, where in alone)
    anywhere = {pod.uid: next(iter(seen.nodes), "") for pod in waiting}
    number, _ = seen.counts(key)
    need = max(seen.groups[key].minimum - number, sum(_lacking(seen, key, ()).values()))
    largest = [max(waiting, key=lambda pod: sum(pod.request.values()))] * need
    tried = waiting[:need] if len({pod.shape for pod in waiting}) == 1 else [*waiting, *largest]
    if not may_take(seen, tried, anywhere, mine=key, dues=dues):
        return False
    if len(waiting) > MOST_MEMBERS:
        return False
    return _never_stuck(rooms, key, waiting, (), {name: dict(free) for name, free in rooms.free.items()}, {})


def _never_stuck(rooms, key, waiting, placed, free, known):  # noqa: PLR0917  a state of a search
    seen = rooms.seen
    if seen.is_ready(key, extra=placed):
        return True
    state = (frozenset(pod.uid for pod in placed), tuple(tuple(sorted(room.items())) for room in free.values()))
    if state not in known:
        lacking = _lacking(seen, key, placed)
        turn = [pod for pod in waiting if pod not in placed and (not any(lacking.values()) or lacking.get(pod.role))]
        ways = [(pod, n) for pod in turn for n in free if rooms.admits(pod, n) and rooms.fits(pod, n, free)]
        known[state] = bool(ways) and len(known) < MOST_STATES
        for pod, name in ways:
            left = {**free, name: facts.plus(free[name], {**pod.request, "pods": 1}, -1)}
            if not known[state] or not _never_stuck(rooms, key, waiting, (*placed, pod), left, known):
                known[state] = False
                break
    return known[state]


def best_effort_bound(view):
    """At rest no pod without requests of a job that is ready waits where a node has a slot for it (17, 18; actions 3)."""
    if view.cycle.remaining != 0 or not at_rest(view) or "backfill" not in view.policy.actions:
        return
    seen = view.after
    rooms = Rooms(seen)
    for key, group in seen.groups.items():
        queue = seen.queues.get(group.queue)
        if (
            queue is None
            or not queue.is_open
            or group.phase == "Pending"
            or not seen.is_valid(key)
            or not seen.is_ready(key)
        ):
            continue
        if not rooms.is_placed(group.queue):
            continue
        for pod in seen.members[key]:
            if pod.state == "pending" and pod.best_effort and key not in view.faulted:
                nodes = [name for name in seen.nodes if rooms.admits(pod, name) and rooms.fits(pod, name)]
                if nodes:
                    yield f"{pod.key} has no requests and waits, and {', '.join(nodes)} have room"


def enqueued(view):
    """At rest a group without minResources is let in (actions 1)."""
    if view.cycle.remaining != 0 or not at_rest(view) or "enqueue" not in view.policy.actions:
        return
    for key, group in view.after.groups.items():
        queue = view.after.queues.get(group.queue)
        stays = group.phase == "Pending" and group.min_resources is None
        if stays and queue is not None and queue.is_open and not _ends_pending(view, key):
            yield f"{key} asks for no minResources and stays Pending"


def phases(view):
    """At rest the phase of a group is what the table of framework 8.1 says."""
    if view.cycle.remaining != 0 or not at_rest(view):
        return
    seen = view.after
    for key, group in seen.groups.items():
        members = seen.members[key]
        if group.queue not in seen.queues:
            continue
        scheduled = [
            pod
            for pod in members
            if pod.state in ("on", "succeeded", "failed") or (pod.state == "leaving" and pod.node)
        ]
        complete = [pod for pod in members if pod.state in ("succeeded", "failed")]
        running = any(pod.state == "on" for pod in members)
        lacking = view.policy.lists("gang") and not seen.is_ready(key)
        idle = any(pod.state == "pending" for pod in members) or len(scheduled) < group.minimum
        if running and lacking and idle:
            wanted = {"Unknown"}
        elif len(scheduled) >= group.minimum and len(scheduled) == len(complete):
            wanted = {"Completed"}
        elif len(scheduled) >= group.minimum:
            wanted = {"Running"}
        else:
            wanted = {"Inqueue", "Pending"}
        if group.phase not in wanted:
            yield f"{key} is {group.phase} with {len(scheduled)} scheduled, {len(complete)} finished of {group.minimum}; {wanted} expected"


# ---- parts


def _waits(view, pod):
    now = view.after.by_uid.get(pod.uid)
    return now is not None and now.state == "pending" and now.group in view.after.groups


def _is_new(view, pod):
    """Tell whether a pod was placed or nominated in this cycle."""
    old = view.before.pods.get(pod.key)
    if old is None or pod.foreign or old.uid != pod.uid:
        return False
    return (pod.node and not old.node) or (pod.nominated and pod.nominated != old.nominated)


def _moved(view):
    """Tell whether pods came, went, started to go or finished in this cycle or since the one before."""
    states = {pod.uid: pod.state for pod in view.after.pods.values()}
    moved = states != getattr(view.history, "states", None) or "leaving" in states.values()
    view.history.states = states
    return moved


def _phases(seen):
    return {key: group.phase for key, group in seen.groups.items()}


def at_rest(view):
    """Tell whether nothing has changed for a while."""
    return view.history.still > CALM


def _what(view):
    lines = []
    for kind in ("pods", "groups", "queues"):
        old, new = getattr(view.before, kind), getattr(view.after, kind)
        lines += [key for key in new if old.get(key) is not new[key]]
    return ", ".join([*lines, *(f"event {e}" for e in view.cycle.events)][:6])


def _ends_pending(view, key):
    """Tell whether the table of framework 8.1 ends a group that has started and lost members as Pending."""
    return any(pod.state in ("on", "leaving", "succeeded", "failed") for pod in view.after.members.get(key, []))


def _fitting(seen, key, waiting):
    """Say which members of a group could start now, or nothing."""
    group = seen.groups[key]
    if seen.is_ready(key) or not seen.policy.lists("gang"):
        return ""
    number, _ = seen.counts(key)
    need = max(group.minimum - number, sum(_lacking(seen, key, ()).values()), 1)
    for chosen in itertools.islice(itertools.combinations(waiting, need), MOST_WAYS):
        if not seen.is_ready(key, extra=chosen):
            continue
        where = Rooms(seen, mine=key).place(chosen)
        if where is not None and may_take(seen, chosen, where, mine=key, dues=False):
            placed = ", ".join(f"{pod.key} on {where[pod.uid]}" for pod in chosen)
            return f"{key} waits ({group.phase}), and could start: {placed}"
    return ""


def _lacking(seen, key, placed):
    _, roles = seen.counts(key, extra=placed)
    return {role: max(0, least - roles[role]) for role, least in seen.groups[key].roles.items()}


CHECKS = (
    quiet,
    claims,
    robbed,
    closed_holds,
    let_in,
    ping_pong,
    evictions_end,
    work_conserving,
    lent_last,
    best_effort_bound,
    enqueued,
    phases,
)
OPTIONAL = (packing,)
