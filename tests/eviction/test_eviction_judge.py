"""The judge of plans alone: of every combination of victims of a tiny world, and every placement, it says what the exhaustive reference says."""

from __future__ import annotations

import pytest
import tiny_runs
import tiny_worlds
from tiny_reference import Plan, Reference
from tiny_scene import Scene
from tiny_worlds import CLAIMANT

from drawing import drawn
from pumice.actions.eviction import judge, units
from tests.lives.rooms import subsets

WORLDS = drawn(1000, 24)
FIRST = 30_000
MOST_PODS = 5
judged = judge.passes


class Asking:
    """Stands before the judge: the first time that a plan for the claimant is proposed, everything else is proposed instead, and nothing passes."""

    def __init__(self, world):
        self.seen = world.seen()
        self.reference = Reference(
            Scene(world, self.seen), CLAIMANT, lambda scene, key, gone: tiny_runs.place(world, scene, key, gone)
        )
        self.answers = []  # a plan, and what is left of it if it passes, else None

    def __call__(self, plan, done):
        if plan.job.key != CLAIMANT:
            return judged(plan, done)
        plan.start_again()
        if not self.answers:
            running = [pod for pod in self.seen.pods.values() if pod.state == "on"]
            for gone in subsets(running, proper=False):
                for each in self.reference.placements(gone) if gone else ():
                    self.answers.append((each, self._answer(plan, done, each)))
        return False

    def _answer(self, plan, done, wanted):
        tasks = {task.key: task for task in plan.session.cluster.tasks.values()}
        for unit in _units(plan, [tasks[pod.key] for pod in wanted.gone]):
            plan.evict(unit)
        for member, node in wanted.where:
            if not plan.settle(tasks[member.key], plan.session.cluster.nodes.by_name[node].row):
                plan.start_again()
                return None
        plan.is_admitted = False
        left = None
        if judged(plan, done):
            gone = tuple(self.seen.pods[task.key] for unit in plan.units for task in unit.tasks)
            left = Plan(gone, tuple((self.seen.pods[member.key], member.node.name) for member in plan.members))
        plan.start_again()
        return left


def _units(plan, gone):
    """Put victims together: a job that loses everything and its minimum with it goes as one."""
    made = []
    for job in {id(task.job): task.job for task in gone}.values():
        lost = tuple(task for task in gone if task.job is job)
        if not units.rest_of(job, lost) and not units.keeps_its_minimum(job, lost):
            made.append(units.whole_job(job, lost))
        else:
            made += [units.Unit((task,), whole=False) for task in lost]
    return made


def _is_plain(world):
    """Tell whether one job waits, has no pod of its own that could go, few others run, and nobody moves before the action."""
    seen = world.seen()
    waiting = {pod.group for pod in seen.pods.values() if pod.state == "pending"}
    running = sum(pod.state == "on" for pod in seen.pods.values())
    alone = waiting == {CLAIMANT} and not seen.alive(CLAIMANT)
    return alone and running <= MOST_PODS and "allocate" not in world.policy.actions


@pytest.mark.parametrize("action", tiny_worlds.ACTIONS)
def test_the_judge_says_what_the_reference_says_of_every_combination(action, monkeypatch):
    let = refused = 0
    for seed in range(FIRST, FIRST + WORLDS):
        world = tiny_worlds.draw(seed, action)
        if not _is_plain(world):
            continue
        asking = Asking(world)
        with monkeypatch.context() as patched:
            patched.setattr(judge, "passes", asking)
            tiny_runs.act(world)
        for plan, left in asking.answers:
            wrong = next(asking.reference.objections(left, strict=False), "") if left and left.gone else ""
            assert not wrong, f"world {seed}: {plan} passes as {left}, and {wrong}"
            due = asking.reference.is_sound(plan, strict=True)
            assert left is not None or not due, f"world {seed}: {plan} does not pass"
            let, refused = let + (left is not None), refused + (left is None)
    assert let > WORLDS // 6, "the worlds have no plans"
    assert refused > WORLDS // 6, "the worlds have nothing to refuse"
