"""One tiny world: what the scheduler did in a cycle, held against the reference."""

from __future__ import annotations

import collections
from dataclasses import dataclass

import tiny_runs
from tiny_reference import MOST_UNITS, Plan, Reference
from tiny_scene import Scene
from tiny_worlds import CLAIMANT, draw

MOST_PODS = 9


@dataclass(frozen=True)
class Finding:
    """A rule that one world shows broken."""

    seed: int
    rule: str
    text: str

    def __str__(self):
        return f"world {self.seed}: {self.rule}: {self.text}"


class Check:
    """Plays one world and gathers what is wrong."""

    def __init__(self, seed, action=""):
        self.world = draw(seed, action)
        self.ran = tiny_runs.act(self.world)
        self.findings = []
        self.notes = collections.Counter()
        start = self.world.seen()
        begun = Scene(self.world, start)
        self.scene = Scene(self.world, tiny_runs.with_binds(start, self.ran.binds), begun, placed=self.ran.binds)
        self._check()

    def _place(self, scene, key, gone):
        return tiny_runs.place(self.world, scene, key, gone)

    def _say(self, rule, text):
        self.findings.append(Finding(self.world.seed, f"{self.world.action} {rule}", text))

    def _check(self):
        self.notes["worlds"] += 1
        waiting = {p.group for p in self.scene.seen.pods.values() if p.state == "pending"}
        if len(self.ran.plans) > 1:
            self.notes["several plans"] += 1
        if self.ran.evictions:
            self.notes["evictions"] += 1
            self._check_plans()
        elif self.ran.plans:
            self._say("told", "a plan is told and nobody is evicted")
        elif waiting == {CLAIMANT}:
            self._check_missed()

    # ---- plans that were made

    def _check_plans(self):
        scene = self.scene
        listed = sorted(name for _, victims, _, _ in self.ran.plans for name in victims)
        if listed != self.ran.evictions:
            self._say("told", f"{self.ran.evictions} are evicted, {listed} are told")
            return
        placed, served = set(self.ran.binds), set()
        for claimant, victims, number, first in self.ran.plans:
            if claimant in self.ran.seated:
                self.notes["plans beside members for whom there was room"] += 1  # which of them is not told
                return
            plan = self._plan(scene, claimant, victims, number, first)
            if plan is None or any(pod.group in served for pod in plan.gone):
                self.notes["plans that cannot be told apart" if plan is None else "takes from who waits"] += 1
                return
            placed |= {member.key for member, _ in plan.where}
            served.add(claimant)
            self._check_plan(scene, claimant, plan)
            scene = scene.moved(placed=plan.where)
            for pod in plan.gone:
                del scene.seen.pods[pod.key]
            scene = Scene(
                self.world,
                type(scene.seen)(scene.seen, scene.seen.pods),
                scene.begun,
                scene.evicted + list(plan.gone),
                placed,
            )

    def _plan(self, scene, claimant, victims, number, first):
        """Put a plan together from what was told and written; members are known if the plan has all that were nominated, or one."""
        members = [p for p in scene.seen.members[claimant] if p.key in self.ran.nominated and p.state == "pending"]
        if len(members) != number:
            members = [p for p in members if p.key == first] if number == 1 else []
        if not members:
            return None
        gone = tuple(scene.seen.pods[name] for name in victims)
        return Plan(gone, tuple((m, self.ran.nominated[m.key]) for m in members))

    def _check_plan(self, scene, claimant, plan):
        reference = Reference(scene, claimant, self._place)
        self.notes["plans"] += 1
        for text in reference.objections(plan, strict=False):
            rule, _, what = text.partition(": ")
            self._say(rule, f"{plan}: {what}")
        if not scene.is_starving(claimant):
            self._say("claim (20)", f"{plan}: {claimant} is not starving")
        asked = [m for m, _ in plan.where]
        if not any(set(asked) == set(chosen) for chosen in scene.lacking(claimant)):
            self._say("claim (20)", f"{plan}: the plan is for other members than are lacking")
        if not any(True for _ in self._fits(scene, plan)):
            self._say("room (22)", f"{plan}: the members do not fit there")
        if self._alone(scene, claimant):
            self._check_spared(reference, plan)
            self._check_lasting(reference, plan)
            self._check_rank(reference, plan)

    def _alone(self, scene, claimant):
        return not any(p.state == "pending" and p.group != claimant for p in scene.seen.pods.values())

    def _fits(self, scene, plan):
        wanted = dict(plan.where)
        return (where for where in scene.fits(list(wanted), plan.gone) if where == wanted)

    def _check_spared(self, reference, plan):
        """No victim can be spared (26); with nobody at all gone the members would wait for what is there (21)."""
        for gone in reference.sets():
            if set(gone) < set(plan.gone):
                found = reference.due(gone, [m for m, _ in plan.where])
                if found is not None:
                    self._say("spared victim (26)" if gone else "room is there (21)", f"{plan}: {found} would do")
                    return

    def _check_lasting(self, reference, plan):
        back = reference.comes_back(plan)
        self.notes[f"comes back: {back}"] += 1
        if back:
            self._say("ping-pong (28)", f"{plan}: a victim's job would take it back")

    def _check_rank(self, reference, plan):
        if reference.units() > MOST_UNITS:
            return
        for gone in reference.sets():
            better = [
                p
                for p in reference.placements(gone)
                if gone and self._claims_alike(p, plan) and reference.is_better(p, plan)
            ]
            found = reference.due(gone, [m for m, _ in plan.where]) if better else None
            if found is not None and reference.is_better(found, plan) and self._source(found) == self._source(plan):
                self.notes["not the best"] += 1
                if len(plan.where) == 1 and reference.comes_back(found) is False:
                    counted = not reference.is_better(found, plan, counting=False)
                    self._say(
                        "rank (26), jobs without their minimum" if counted else "rank (26)",
                        f"{plan}: {found} is better",
                    )
                return

    def _claims_alike(self, one, other):
        return {m for m, _ in one.where} == {m for m, _ in other.where}

    def _source(self, plan):
        return {p.group == CLAIMANT for p in plan.gone}

    # ---- plans that were missed

    def _check_missed(self):
        reference = Reference(self.scene, CLAIMANT, self._place)
        if not self.scene.is_starving(CLAIMANT) or reference.units() > MOST_UNITS:
            self.notes["not asked"] += 1
            return
        # where room is there already allocate has to use it
        if any(True for _ in reference.placements(())):
            self.notes["room is there"] += 1
            return
        self.notes["nobody evicted"] += 1
        for plan in smallest(reference):
            back = reference.comes_back(plan)
            if back is False:
                self._say("missed (26)", f"{plan} is not made")
                return
            self.notes[f"due, comes back: {back}"] += 1


def smallest(reference):
    """Yield the plans that are due and in which nobody could be spared."""
    working = []
    for gone in reference.sets():
        if any(set(less) < set(gone) for less in working):
            continue
        if any(reference.is_sound(plan, strict=False) for plan in reference.placements(gone)):
            working.append(gone)
        plan = reference.due(gone)
        if plan is not None:
            yield plan


def search(seeds, action=""):
    """Check many worlds; give what was counted and what was found."""
    notes, findings = collections.Counter(), []
    for seed in seeds:
        check = Check(seed, action)
        notes.update(check.notes)
        findings += check.findings
    return notes, findings
