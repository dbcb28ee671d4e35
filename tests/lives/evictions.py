"""Checks of who is evicted in one cycle, for whom, and whether that was needed."""

from __future__ import annotations

import itertools

from tests.lives import facts
from tests.lives.facts import CRITICAL
from tests.lives.rooms import Rooms, subsets

MOST_VICTIMS = 6
LASTING = 50  # cycles that a hold lasts at least
GANG_FORMS = ("gangpreempt", "gangreclaim")
WITHIN = ("preempt", "gangpreempt")


def planned(view):
    """An eviction exists only inside a plan for a claimant (20, 29), or repeats one that was refused before (30)."""
    for plan in view.plans:
        for pod in plan.victims:
            view.history.planned.setdefault(pod.uid, plan)
    for pod in view.evicted:
        if pod.uid not in view.history.planned and "shuffle" not in view.policy.actions:
            yield f"{pod.key} is evicted for nobody"


def protected(view):
    """Nobody goes who is protected by itself, conformance, or in gang forms its group (23)."""
    for plan, pod in _victims(view):
        group = view.before.groups.get(pod.group)
        if not pod.preemptable:
            yield f"{pod.key} says that it is not preemptable, and goes for {plan.claimant}"
        if view.policy.lists("conformance") and (pod.class_name in CRITICAL or pod.namespace == "kube-system"):
            yield f"{pod.key} is critical, and goes for {plan.claimant}"
        if plan.action in GANG_FORMS and group is not None and group.protected:
            yield f"{pod.key} is of a group that is not preemptable, and goes for {plan.claimant}"


def budgets(view):
    """A disruption budget allows what its status says, less our own evictions since it last changed (23)."""
    if not view.policy.lists("pdb"):
        return
    for key, budget in view.before.budgets.items():
        metadata, status = budget["metadata"], budget.get("status", {})
        wanted = (budget.get("spec", {}).get("selector") or {}).get("matchLabels", {})
        matched = [
            pod
            for pod in view.evicted
            if pod.namespace == metadata["namespace"]
            and pod.labels
            and all(pod.labels.get(name) == value for name, value in wanted.items())
            and pod.name not in status.get("disruptedPods", {})
        ]
        version, spent = view.history.spent.get(key, ("", set()))
        if version != metadata["resourceVersion"] or view.cycle.restarted:
            spent = set()  # nothing in the cluster tells a new scheduler of pods that are gone
        spent |= {pod.uid for pod in matched}
        view.history.spent[key] = (metadata["resourceVersion"], spent)
        if matched and len(spent) > status.get("disruptionsAllowed", 0):
            yield f"budget {key} allows {status.get('disruptionsAllowed', 0)}, and {len(spent)} were evicted"


def right_queue(view):
    """preempt takes inside the queue (actions 4.2), reclaim from other queues that are reclaimable (actions 5, 23)."""
    for plan, pod in _victims(view):
        claimant, victim = (view.before.groups.get(key) for key in (plan.claimant, pod.group))
        if claimant is None or victim is None:
            continue
        same = claimant.queue == victim.queue
        if (plan.action in WITHIN) != same:
            yield f"{plan.action} for {plan.claimant} of {claimant.queue} takes {pod.key} of {victim.queue}"
        queue = view.before.queues.get(victim.queue)
        if not same and queue is not None and not queue.reclaimable:
            yield f"{pod.key} is of queue {queue.name}, which is not reclaimable, and goes for {plan.claimant}"


def lower_priority(view):
    """preempt takes only of lower priority where priority votes alone about that; gangpreempt always (actions 4, 7.3; plugins 16)."""
    votes = view.policy.voters("enablePreemptable", ("priority", "drf"))
    decided = votes == [["priority"]]
    for plan, pod in _victims(view):
        claimant, victim = (view.before.groups.get(key) for key in (plan.claimant, pod.group))
        if plan.action not in WITHIN or claimant is None or victim is None:
            continue
        if plan.claimant == pod.group:
            if decided and plan.members and all(member.priority <= pod.priority for member in plan.members):
                yield f"{pod.key} of priority {pod.priority} goes for no more important member of its own job"
        elif (decided or plan.action == "gangpreempt") and victim.priority >= claimant.priority:
            yield f"{pod.key} of priority {victim.priority} goes for {plan.claimant} of {claimant.priority}"


def never_more_important(view):
    """preempt gives nobody away who is more important, whatever tier priority is listed in (23)."""
    if not view.policy.voters("enablePreemptable", ("priority",)):
        return
    for plan, pod in _victims(view):
        claimant, victim = (view.before.groups.get(key) for key in (plan.claimant, pod.group))
        if plan.action != "preempt" or claimant is None or victim is None:
            continue
        if plan.claimant == pod.group:
            if plan.members and all(member.priority < pod.priority for member in plan.members):
                yield f"{pod.key} of priority {pod.priority} goes for less important members of its own job"
        elif victim.priority > claimant.priority:
            yield f"{pod.key} of priority {victim.priority} goes for {plan.claimant} of {claimant.priority}"


def without_requests(view):
    """For a pod without requests no pod with requests goes (20)."""
    for plan in view.plans:
        fresh = [member for member in plan.members if _is_fresh(view, member)]
        if fresh and all(member.best_effort for member in fresh):
            for pod in plan.victims:
                if not pod.best_effort:
                    yield f"{pod.key} has requests, and goes for {plan.claimant}, whose members have none"


def gangs_whole(view):
    """A gang that loses a pod keeps its minimum or is gone entirely (25, 26)."""
    if not view.policy.lists("gang"):
        return
    for key in {pod.group for pod in view.evicted}:
        if key not in view.after.groups or key in view.faulted:
            continue
        left = view.after.alive(key)
        lost = [pod for pod in view.evicted if pod.group == key]
        own = [m for plan in view.plans if plan.claimant == key for m in plan.members]
        if left and not view.after.is_ready(key, extra=own):
            had, _ = view.before.counts(key)
            number, roles = view.after.counts(key)
            group = view.after.groups[key]
            yield (
                f"{key} has lost {_keys(lost)} and {_keys(left)} stay: {number} of {group.minimum}, "
                f"roles {roles} of {group.roles}; it had {had}"
            )


def nominated(view):
    """The claimant of a plan has its minimum in sight afterwards: placed or nominated members (20, 22, 27)."""
    for plan in view.plans:
        if plan.claimant in view.after.groups and not view.after.is_ready(plan.claimant, extra=plan.members):
            number, roles = view.after.counts(plan.claimant, extra=plan.members)
            group = view.after.groups[plan.claimant]
            yield f"{_keys(plan.victims)} go for {plan.claimant}, which then has {number} of {group.minimum}, roles {roles} of {group.roles}"
        if plan.claimant not in view.after.groups or not (plan.members or _placed(view, plan)):
            yield f"{_keys(plan.victims)} go for {plan.claimant}, none of whose members is nominated or placed"


def open_claimant(view):
    """Nobody is evicted for a job whose queue is not Open (17, 27; plugins 2.3, 17)."""
    if not view.shares:
        return
    for plan in view.plans:
        group = view.before.groups.get(plan.claimant)
        queue = view.before.queues.get(group.queue) if group else None
        if queue is not None and not queue.is_open:
            yield f"{_keys(plan.victims)} go for {plan.claimant} though queue {queue.name} is not Open"


def in_its_place(view):
    """While a hold lasts its claimant takes no victim in the place of one whose eviction was refused (30)."""
    for plan in view.plans:
        fresh = {member.uid for member in plan.members if _is_fresh(view, member)}
        for old in view.history.refused:
            waiting = [pod.key for pod in old.victims if _stays(view, pod)]
            held = all(_is_nominated_before(view, member) for member in old.members)
            lately = view.cycle.number - old.cycle < LASTING and plan.claimant == old.claimant
            if lately and waiting and held and fresh & {member.uid for member in old.members}:
                yield f"{_keys(plan.victims)} go for {plan.claimant} in the place of {', '.join(waiting)}, refused in cycle {old.cycle}"
    if view.cycle.restarted or view.cycle.changed:
        view.history.refused.clear()
    view.history.refused += [plan for plan in view.plans if not plan.complete and plan.members]


def _stays(view, pod):
    now = view.before.by_uid.get(pod.uid)
    return now is not None and now.state == "on"


def _is_nominated_before(view, member):
    now = view.before.by_uid.get(member.uid)
    return now is not None and now.state == "pending" and now.nominated == member.nominated


def minimal(view):
    """No victim can be spared (26), and with none at all the claimant would have had to wait for room that is there (21)."""
    plan = _single(view)
    if plan is None:
        return
    for spared in sorted(_proper(plan.victims), key=len, reverse=True):
        gone = [pod for pod in plan.victims if pod not in spared]
        offered = _is_offered(view, plan, gone)
        if offered and _keeps_gangs(view, gone) and _suffices(view, plan, kept=spared, gone=gone):
            yield f"{plan.action} for {plan.claimant} takes {_keys(plan.victims)}, and {_keys(gone) or 'nobody'} would do"
            return


def surplus_instead(view):
    """A gang does not go whole where pods that it can spare would do (25, 26)."""
    plan = _single(view)
    if plan is None or not view.policy.lists("gang"):
        return
    for key in {pod.group for pod in plan.victims}:
        lost = [pod for pod in plan.victims if pod.group == key]
        others = [pod for pod in plan.victims if pod.group != key]
        mine = view.before.alive(key) if key in view.before.groups else []
        if len(lost) < 2 or len(lost) < len(mine) or not view.before.is_ready(key) or key == plan.claimant:
            continue
        for size in range(1, len(lost)):
            for fewer in itertools.combinations(lost, size):
                kept = [pod for pod in lost if pod not in fewer]
                if not view.before.is_ready(key, less=fewer) or not _on_nodes(view, plan, fewer):
                    continue
                gone = [*fewer, *others]
                if _is_offered(view, plan, gone) and _suffices(view, plan, kept=kept, gone=gone):
                    yield f"{plan.action} for {plan.claimant} takes {key} whole ({_keys(lost)}), and {_keys(fewer)} would do"
                    return


def dues(view):
    """A queue that is not above its due loses nothing to another queue, and no guarantee is broken (23)."""
    if not view.shares:
        return
    for plan in view.plans:
        if plan.action in WITHIN or plan.claimant not in view.before.groups or not plan.complete or len(view.plans) > 1:
            continue
        if _may_wait_for_room(view, plan):
            continue  # pods that wait for room count in their queue as if they ran (16)
        rooms = Rooms(_settled(view, plan), mine="*")
        yield from _guarantees_broken(view, plan, rooms)
        yield from _not_above(view, plan, rooms)


def _guarantees_broken(view, plan, rooms):
    claimants = rooms.branch(view.before.groups[plan.claimant].queue)
    lost = {}
    for pod in plan.victims:
        for name in rooms.branch(view.before.queue_of(pod)):
            lost.setdefault(name, []).append(pod)
    for name, pods in lost.items():
        if name in claimants:
            continue
        taken = facts.total(pod.request for pod in pods)
        for key, value in taken.items():
            kept, had = rooms.guarantees[name].get(key, 0), rooms.held[name].get(key, 0)
            if value and had - value < kept:
                yield f"queue {name} had {had} {key}, loses {value} for {plan.claimant}, and {kept} are guaranteed to it"


def _not_above(view, plan, rooms):
    """Try every order in which the victims of a queue could go, gangs that go whole as one."""
    units = {}
    for pod in plan.victims:
        queue = view.before.queue_of(pod)
        whole = pod.group in view.before.groups and not view.after.alive(pod.group)
        units.setdefault(queue, {}).setdefault(pod.group if whole else pod.key, []).append(pod)
    for queue, by_name in units.items():
        parts = list(by_name.values())
        if queue not in view.before.queues or len(parts) > 5:
            continue
        due = _due(view, rooms, queue)
        if not any(_goes(order, rooms.held[queue], due, view.policy) for order in itertools.permutations(parts)):
            named = {key: (str(rooms.held[queue].get(key, 0)), str(value)) for key, value in due.items()}
            yield f"queue {queue} is not above its due (held, due): {named}, and loses {_keys(itertools.chain(*parts))} for {plan.claimant}"


def _due(view, rooms, queue):
    return rooms.due(queue) if view.policy.lists("capacity") else rooms.level(rooms.usable)[queue]


def _goes(order, held, due, policy):
    for unit in order:
        taken = facts.total(pod.request for pod in unit)
        asked = {key for key, value in taken.items() if value}
        if policy.lists("capacity"):
            named = {key for key in asked if due.get(key, 0) > 0 or (key in due and key not in ("cpu", "memory"))}
            above = not {key for key in asked if due.get(key, 0) > 0} or any(
                held.get(key, 0) > due[key] for key in named
            )
        else:
            above = any(held.get(key, 0) > due.get(key, 0) for key in held)
        if asked and not above:
            return False
        held = facts.plus(held, facts.plus(taken, {"pods": len(unit)}), -1)
    return True


# ---- what a plan could have done without


def _single(view):
    """Give the plan of the cycle, if there is one only, it was carried out, and it is small enough to try everything."""
    if len(view.plans) != 1:
        return None
    plan = view.plans[0]
    fresh = [member for member in plan.members if _is_fresh(view, member)]
    if (
        not plan.complete
        or len(plan.victims) > MOST_VICTIMS
        or len(fresh) != plan.count
        or len(plan.members) > len(fresh)
    ):
        return None
    if plan.claimant not in view.before.groups or plan.claimant in view.faulted:
        return None
    return None if _may_wait_for_room(view, plan) else plan


def _may_wait_for_room(view, plan):
    """Tell whether room that is being released may be kept in this cycle for pods of others, which nobody can see from outside."""
    others = any(
        pod.state == "pending" and not pod.foreign and pod.group != plan.claimant for pod in view.after.pods.values()
    )
    return others and any(pod.state == "leaving" for pod in view.before.pods.values())


def _is_fresh(view, member):
    old = view.before.pods.get(member.key)
    return old is None or old.nominated != member.nominated


def _proper(victims):
    return [spared for spared in subsets(victims, proper=False) if spared]


def _keeps_gangs(view, gone):
    """Tell whether every gang that loses a pod stays complete or goes entirely; one that is broken already goes whole or not at all."""
    if not view.policy.lists("gang"):
        return True
    for key in {pod.group for pod in gone}:
        lost = [pod for pod in gone if pod.group == key]
        started = [
            pod for pod in view.bound if pod.group == key
        ]  # before the plan was made, as far as anybody can tell
        there = {pod.uid for pod in (*view.before.alive(key), *started)}
        if len(lost) < len(there) and not view.before.is_ready(key, extra=started, less=lost):
            return False
    return True


def _is_offered(view, plan, gone):
    """Tell whether pods are offered for certain: in preempt and reclaim one that its gang needs is only where gang gives nobody, which others decide (25)."""
    if plan.action in GANG_FORMS or not view.policy.lists("gang"):
        return True
    return all(view.before.is_ready(pod.group, less=[p for p in gone if p.group == pod.group]) for pod in gone)


def _on_nodes(view, plan, victims):
    """Tell whether pods run on nodes that some member may use."""
    rooms = Rooms(view.before)
    return all(
        pod.node in view.before.nodes and any(rooms.admits(member, pod.node) for member in plan.members)
        for pod in victims
    )


def _suffices(view, plan, *, kept, gone):
    """Tell whether the plan's members fit, nodes and queue, if only some of the victims go.

    Members that differ are asked about where the plan puts them: no rule promises that every other way is tried (21).
    """
    rooms = Rooms(view.after, kept=kept, gone=gone, later=True, mine=plan.claimant)
    alike = len({member.shape for member in plan.members}) == 1
    where = rooms.place(plan.members) if alike else rooms.as_nominated(plan.members)
    if where is None:
        return False
    # What needs no victim is placed beyond the due, too.
    dues = bool(gone) or not view.policy.lends
    return may_take(view.after, plan.members, where, kept=kept, gone=gone, mine=plan.claimant, dues=dues)


def may_take(seen, members, where, *, kept=(), gone=(), mine="", dues=True):
    """Tell whether the queue of some pods may take them, by ceilings (11), room (11) and, with proportion, what it deserves (12), unless `dues` do not count."""
    policy = seen.policy
    if not (policy.lists("capacity") or policy.lists("proportion")):
        return True
    queue = seen.queue_of(members[0])
    if queue not in seen.queues or not seen.queues[queue].is_open:
        return False
    asked = {key for pod in members for key, value in pod.request.items() if value}
    placed = [(pod, where[pod.uid]) for pod in members]
    rooms = Rooms(seen, placed=placed, kept=kept, gone=gone, later=True, mine=mine)
    if policy.tree and rooms.children(queue):
        return False
    if rooms.above_ceiling(queue, asked) or rooms.above_room(queue, asked):
        return False
    if policy.lists("proportion") and dues:
        due = Rooms(seen, kept=kept, gone=gone, mine=mine).level(rooms.offered)[queue]
        # What was lent beyond it may change hands inside the queue.
        before = Rooms(seen, kept=[*kept, *gone], later=True, mine=mine).held[queue] if gone else {}
        return all(rooms.held[queue].get(key, 0) <= max(due.get(key, 0), before.get(key, 0)) for key in asked)
    return True


class _settled:  # noqa: N801  reads as a function
    """The state in which a plan was made: what was bound in the cycle is there, and its victims still are."""

    def __init__(self, view, plan):
        self._seen = view.after
        self.pods = {**view.after.pods, **{pod.key: pod for pod in plan.victims}}
        self.pods = {
            key: pod if not (pod.nominated and pod.state == "pending") else facts.Pod(**{**vars(pod), "nominated": ""})
            for key, pod in self.pods.items()
        }

    def __getattr__(self, name):
        return getattr(self._seen, name)


def _placed(view, plan):
    return [pod for pod in view.bound if pod.group == plan.claimant]


def _victims(view):
    return [(plan, pod) for plan in view.plans for pod in plan.victims]


def _keys(pods):
    return ", ".join(sorted(pod.key for pod in pods))


CHECKS = (
    planned,
    protected,
    budgets,
    right_queue,
    lower_priority,
    never_more_important,
    without_requests,
    gangs_whole,
    nominated,
    open_claimant,
    in_its_place,
    minimal,
    surplus_instead,
    dues,
)
