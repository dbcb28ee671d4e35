"""The exhaustive reference: every set of victims, and every placement of the members in the room it leaves, held against ours.md 20-28.

Where the rules leave the order of things open, a plan is *allowed* if some order passes, and *due* if every order does: what is committed has to be allowed,
and only what is due is missed.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

from tiny_votes import Votes

from tests.lives.rooms import subsets

MOST_UNITS = 8


@dataclass(frozen=True)
class Plan:
    """Victims, and members with their nodes."""

    gone: tuple
    where: tuple  # (member, node)

    def __str__(self):
        names = ", ".join(sorted(pod.name for pod in self.gone)) or "nobody"
        return f"{names} for {', '.join(f'{m.name} on {n}' for m, n in self.where)}"


class Reference:
    """What the rules say about plans for one job in one scene."""

    def __init__(self, scene, key, place):
        self.scene = scene
        self.key = key
        self._place = place  # allocate's own search: scene, job and victims to nodes by member
        self.group = scene.seen.groups[key]

    # ---- one plan

    def objections(self, plan, *, strict):
        """Yield what is wrong with a plan by 20 and 22-26, with the name of the rule; not whether somebody could be spared."""
        members = [member for member, _ in plan.where]
        whole = self._whole(plan)
        scene = self.scene
        for pod in plan.gone:
            if not scene.is_asked_about(self.group, pod) or (pod.key in scene.placed and pod.group not in whole):
                yield f"candidates (actions 4, 5, 7): {pod.name} is none of {scene.action}"
            guard = self._guard(pod, plan)
            if guard:
                yield f"protection (23): {pod.name} is kept by {guard}"
        if scene.policy.lists("pdb") and scene.budgets_broken(plan.gone):
            yield "protection (23): pdb allows fewer"
        if scene.action not in ("preempt", "gangpreempt"):
            # A job with a minimum of one is no gang (26), which would be judged once.
            gangs = {job for job in whole if scene.seen.groups[job].minimum > 1}
            reason = scene.takes_from(self.key, plan.gone, gangs, strict=strict)
            if reason:
                yield f"protection (23): {reason}"
        yield from self._minimums(plan, whole, members)
        limit = scene.limits(self.key, dict(plan.where), plan.gone)
        if limit:
            yield f"limits (22): {limit}"
        if not scene.may_ask(self.key, members, strict=strict):
            yield "claim (20): its queue may not ask"
        if plan.gone and not self._votes(plan, whole, strict=strict):
            yield "tier (24): the deciding tier of a node or domain does not let its set go"

    def is_sound(self, plan, *, strict):
        """Tell whether nothing is wrong with a plan."""
        return next(self.objections(plan, strict=strict), None) is None

    def _guard(self, pod, plan):
        """Say what protects a victim: of its own job, from the members on its node; leniently from the most important one."""
        here = [m for m, node in plan.where if node == pod.node] or [m for m, _ in plan.where]
        strongest = max(here, key=lambda m: m.priority)
        return self.scene.protection(self.group, strongest, pod)

    def _whole(self, plan):
        gone, seen = {pod.uid for pod in plan.gone}, self.scene.seen
        gangs = {pod.group for pod in plan.gone if seen.groups[pod.group].minimum}
        return {job for job in gangs if all(p.uid in gone for p in seen.alive(job))}

    def _minimums(self, plan, whole, members):
        seen = self.scene.seen
        for job in sorted({pod.group for pod in plan.gone}):
            lost = [pod for pod in plan.gone if pod.group == job]
            if job in whole and job != self.key:
                continue
            if not seen.is_ready(job, extra=members if job == self.key else (), less=lost):
                yield f"minimum (26): {job} keeps some pods and not its minimum"
        if not seen.is_ready(self.key, extra=members, less=plan.gone):
            yield f"claim (20): {self.key} does not have its minimum afterwards"

    # ---- votes

    def _votes(self, plan, whole, *, strict):
        if self.scene.action.startswith("gang"):
            return self._domain_votes(plan, strict=strict)
        orders = list(itertools.permutations(plan.where))
        return (all if strict else any)(self._node_votes(order, plan, whole, strict=strict) for order in orders)

    def _domain_votes(self, plan, *, strict):
        member = plan.where[0][0]
        votes = Votes(self.scene, self.key)
        tiers = votes.tiers_for(member, self._unprotected(member, ()))
        pods = votes.in_order(plan.gone)
        return (all if strict else any)(tier is not None and votes.lets_go(tier, member, pods) for tier in tiers)

    def _unprotected(self, member, gone):
        """Give the candidates that no protection takes away once some victims have gone, those of queues and budgets included."""
        left = {pod.uid for pod in gone}
        found = []
        for pod in self.scene.candidates(self.key, member):
            mine = [p for p in gone if self.scene.seen.queue_of(p) == self.scene.seen.queue_of(pod)]
            held = self.scene.rooms(gone=mine).held
            if pod.uid in left or not self._may_lose(pod, held) or self.scene.budgets_broken([*gone, pod]):
                continue
            found.append(pod)
        return found

    def _may_lose(self, pod, held):
        if self.scene.action in ("preempt", "gangpreempt"):
            return True
        if not (self.scene.policy.lists("capacity") or self.scene.policy.lists("proportion")):
            return True
        return self.scene.is_above(self.scene.seen.queue_of(pod), held[self.scene.seen.queue_of(pod)], pod.request)

    def _node_votes(self, order, plan, whole, *, strict):
        """Ask node by node, in an order of members: plain victims stand on members' nodes and are let go there; of a gang that goes whole enough are."""
        nodes = list(dict.fromkeys(node for _, node in order))
        plain = [p for p in plan.gone if p.group not in whole]
        if any(p.node not in nodes for p in plain):
            return False
        rest = [p for p in plan.gone if p.group in whole and p.node in nodes]
        if whole - {p.group for p in rest}:
            return False
        choices = [c for c in ([rest] if strict else subsets(rest, proper=False)) if self._breaks(c, whole)]
        return any(self._asked(order, nodes, [*plain, *chosen], plan, strict=strict) for chosen in choices)

    def _breaks(self, chosen, whole):
        """Tell whether what is offered of each gang that goes whole takes it below its minimum, or is all of it."""
        for job in whole:
            mine = [p for p in chosen if p.group == job]
            if not mine:
                return False
            left = len(self.scene.seen.alive(job)) - len(mine)
            if left and self.scene.seen.is_ready(job, less=mine):
                return False
        return True

    def _asked(self, order, nodes, offered, plan, *, strict):
        gone = []
        for node in nodes:
            here = [p for p in offered if p.node == node]
            mine = [i for i, (_, where) in enumerate(order) if where == node]
            asked = (self._lets_go_here(order, place, node, here, gone, strict=strict) for place in mine)
            if here and not (all if strict else any)(asked):
                return False
            gone += [p for p in here if p not in gone]
            gone += [] if strict else self._rest(gone, plan)
        return True

    def _rest(self, gone, plan):
        """Give the rest of the gangs that are below their minimum with those who have gone (25)."""
        found = []
        for job in {p.group for p in gone} & self._whole(plan):
            lost = [p for p in gone if p.group == job]
            if not self.scene.seen.is_ready(job, less=lost):
                found += [p for p in plan.gone if p.group == job and p not in gone]
        return found

    def _lets_go_here(self, order, position, node, here, gone, *, strict):
        member = order[position][0]
        fresh = [p for p in here if p not in gone]
        if not fresh:
            return True
        votes = Votes(self.scene, self.key, gone, [m for m, _ in order[:position]])
        asked = [p for p in self._unprotected(member, gone) if p.node == node]
        found = False
        # other jobs and the own one are asked about one after the other (actions 4.2, 4.3), and nobody has to make way for an equal of his own job
        own = [p for p in fresh if p.group == self.key]
        if strict and own and (len(own) < len(fresh) or any(p.priority >= member.priority for p in own)):
            return False
        for tiers in (votes.tiers_for(member, each) for each in self._sources(asked, fresh)):
            passed = [t is not None and votes.lets_go(t, member, votes.in_order(fresh)) for t in tiers]
            found = found or any(passed)
            if strict and not all(passed):
                return False
        return found

    def _sources(self, asked, fresh):
        """Give whom preempt asks about at once: first other jobs, then the claimant's own (actions 4.2, 4.3); or all of them."""
        own = [p for p in asked if p.group == self.key]
        others = [p for p in asked if p.group != self.key]
        if not own:
            return [asked]
        if all(p.group == self.key for p in fresh):
            return [own]
        return [others] if all(p.group != self.key for p in fresh) else [asked]

    # ---- all plans

    def sets(self):
        """Yield the sets of pods that could go at all, the smallest first: gangs stay at their minimum or go whole."""
        lacking = self.scene.lacking(self.key)
        if not lacking or not self.scene.is_starving(self.key):
            return
        strongest = max((m for chosen in lacking for m in chosen), key=lambda m: m.priority)
        for gone in subsets(self.scene.candidates(self.key, strongest), proper=False):
            if self._keeps_gangs(gone):
                yield gone

    def _keeps_gangs(self, gone):
        seen = self.scene.seen
        for job in {pod.group for pod in gone} - {self.key}:
            lost = [pod for pod in gone if pod.group == job]
            if len(lost) < len(seen.alive(job)) and not seen.is_ready(job, less=lost):
                return False
        return True

    def units(self):
        """Count what could go: pods alone, and gangs whole."""
        pods = {p.uid: p for gone in self.sets() for p in gone}
        jobs = {p.group for p in pods.values()}
        return len(pods) + sum(len(self.scene.seen.alive(job)) > 1 for job in jobs)

    def placements(self, gone):
        """Yield every plan that takes some victims."""
        for members in self.scene.lacking(self.key):
            for where in self.scene.fits(members, gone):
                yield Plan(tuple(gone), tuple(where.items()))

    def plans(self, *, strict=False):
        """Yield every sound plan."""
        for gone in self.sets():
            for plan in self.placements(gone):
                if self.is_sound(plan, strict=strict):
                    yield plan

    def due(self, gone, members=None):
        """Give the plan for some victims that allocate's own search finds and that passes however the rules are read, if there is one."""
        if not any(self.is_sound(plan, strict=True) for plan in self.placements(gone)):
            return None
        nodes = self._place(self.scene, self.key, gone)
        for chosen in self.scene.lacking(self.key):
            if (members is None or set(chosen) == set(members)) and all(m.key in nodes for m in chosen):
                plan = Plan(tuple(gone), tuple((m, nodes[m.key]) for m in chosen))
                if self.is_sound(plan, strict=True):
                    return plan
        return None

    # ---- which of several plans is the better one

    def rank(self, plan, *, of_jobs=False, counting=True):
        """Give what plans are ranked by: highest victim priority (of pods, or of jobs), broken gangs, number, jobs left without their minimum, loss."""
        seen = self.scene.seen
        highest = max((seen.groups[p.group].priority if of_jobs else p.priority for p in plan.gone), default=-(2**31))
        members = [m for m, _ in plan.where]
        lost = {}
        for pod in plan.gone:
            lost.setdefault(pod.group, []).append(pod)
        below = [
            job
            for job, pods in lost.items()
            if seen.is_ready(job) and not seen.is_ready(job, extra=members if job == self.key else (), less=pods)
        ]
        broken = any(seen.groups[job].minimum > 1 for job in below)
        loss = sum((self.scene.share(p.request) for p in plan.gone), start=0)
        return (highest, broken, len(plan.gone), len(below) if counting else 0, loss)

    def is_better(self, one, other, *, counting=True):
        """Tell whether a plan is to be taken before another one, however priority is read; jobs left without their minimum may be left out."""
        return all(
            self.rank(one, of_jobs=way, counting=counting) < self.rank(other, of_jobs=way, counting=counting)
            for way in (False, True)
        )

    # ---- what lasts (28)

    def would_take(self, pods, *, further):
        """Tell whether this job's search would take some of these pods: True or False where that is certain, else None.

        A plan that takes others is made only if it lasts itself, which is followed one step further; those others may take these pods in their turn.
        Whether one lasts that is further away is not certain: if it does not, whoever made it may go on to these pods.
        """
        names = {pod.key for pod in pods}
        if not self.scene.is_starving(self.key):
            return False
        allowed = list(self.plans())
        taking = [plan for plan in allowed if any(p.key in names for p in plan.gone)]
        if not taking:
            return False
        if self.due(()) is not None:
            # Whoever finds no room beside them may ask next.
            waiting = {pod.key for pod in self.scene.seen.members[self.key] if pod.state == "pending"}
            return False if waiting <= set(self._place(self.scene, self.key, ())) else None
        # other jobs are asked about before the own one (actions 4.2, 4.3)
        others = [plan for plan in allowed if not any(p.group == self.key for p in plan.gone)]
        if not any(self.due(plan.gone) for plan in others):
            if others:
                return None
            others = allowed
        best = [plan for plan in others if not any(self.is_better(other, plan) for other in others)]
        ours = [plan for plan in best if plan in taking]
        if ours and not any(not plan.gone for plan in allowed) and len(ours) == len(best):
            return True if any(self.due(plan.gone) for plan in ours) else None
        made = [] if ours else [plan for plan in best if self.due(plan.gone) is not None]
        if not made or not further:
            return None
        if any(self.comes_back(plan, further=False) is not False for plan in made):
            return None
        led = {self.comes_back(plan, further=False, pods=pods) for plan in made}
        return led.pop() if len(led) == 1 else None

    def comes_back(self, plan, *, further=True, pods=()):
        """Tell whether a victims' job would take the claimant's pods in turn, or those of another: True or False where that is certain, else None."""
        after = self.scene.moved(gone=plan.gone, placed=plan.where)
        wanted = pods or [m for m, _ in plan.where]
        answers = [
            Reference(after, job, self._place).would_take(wanted, further=further)
            for job in sorted({p.group for p in plan.gone})
        ]
        if True in answers:
            return True
        return None if None in answers else False
