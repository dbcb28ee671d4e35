"""Placing runs of equal tasks: what plugins tell apart is asked one by one, and one refusal ends nothing but itself."""

from __future__ import annotations

import numpy as np

from builders import GANG, Desk, group, node, pod
from pumice.framework.plugin import Plugin
from pumice.framework.points import POINTS
from pumice.framework.reasons import Code

CONFIG = GANG.replace("{name: nodeorder}", "{name: nodeorder}, {name: mine}")


class Mine(Plugin):
    """Declares nothing about what it reads: the default is everything, which is always right."""

    name = "mine"
    points = frozenset(point.name for point in POINTS)


def desk(plugin, minimum=3, count=3):
    made = Desk(CONFIG, plugin).feed(*(node(f"n-{i}") for i in range(3)), group("g", minimum))
    return made.feed(*(pod(f"g-w-{i}", "g", cpu="1") for i in range(count)))


class ByName(Mine):
    """Sends each member to the node with its number."""

    def open(self, session):
        session.score.add(self.same_number)

    def same_number(self, subject, nodes):
        return np.array([1000.0 * (record.name[-1] == subject.task.name[-1]) for record in nodes.records()])


def test_a_score_that_looks_at_the_task_is_asked_for_every_member():
    made = desk(ByName)
    made.cycle()
    assert made.world.binds == {"g-w-0": "n-0", "g-w-1": "n-1", "g-w-2": "n-2"}


class OnlyMine(Mine):
    """Lets each member go only to the node with its number."""

    def open(self, session):
        self.reason = session.reason(self.name, Code.UNRESOLVABLE, "not my number")
        session.predicate.add(self.other_number)

    def other_number(self, subject, nodes):
        wrong = [record.name[-1] != subject.task.name[-1] for record in nodes.records()]
        return np.where(wrong, self.reason, 0).astype(np.int16)


def test_a_filter_that_looks_at_the_task_is_asked_for_every_member():
    made = desk(OnlyMine, minimum=2, count=4)
    made.cycle()
    assert made.world.binds == {"g-w-0": "n-0", "g-w-1": "n-1", "g-w-2": "n-2"}
    (told,) = [message for name, reason, message in made.world.notes if (name, reason) == ("g-w-3", "FailedScheduling")]
    assert told == "not my number; 0/3 nodes are unavailable: 3 not my number."


class Alternating(Mine):
    """Looks at how much of the job is placed: the first two members on n-2, the others on n-0."""

    def open(self, session):
        session.score.add(self.by_progress)

    def by_progress(self, subject, nodes):
        wanted = "n-2" if subject.job.tally.ready < 2 else "n-0"
        return np.array([1000.0 * (record.name == wanted) for record in nodes.records()])


def test_a_score_that_looks_at_the_job_sees_every_placement_before_the_next():
    made = desk(Alternating)
    made.cycle()
    assert made.world.binds == {"g-w-0": "n-2", "g-w-1": "n-2", "g-w-2": "n-0"}


class Reserving(Mine):
    """Refuses the placement of one member, as a volume that is taken would."""

    def open(self, session):
        session.add_handler(self.follow, may_refuse=True)

    def follow(self, run, sign):
        return "its volume is taken" if sign > 0 and run.tasks[0].name == "g-w-1" else None


def test_a_refused_placement_is_noted_and_the_next_task_is_tried():
    made = desk(Reserving, minimum=2, count=4)
    made.cycle()
    assert set(made.world.binds) == {"g-w-0", "g-w-2", "g-w-3"}
    told = {name: message for name, reason, message in made.world.notes if reason == "FailedScheduling"}
    assert told == {"g-w-1": "its volume is taken"}


def test_a_gang_that_a_refusal_leaves_incomplete_is_not_bound():
    made = desk(Reserving, minimum=3, count=3)
    made.cycle()
    assert made.world.binds == {}
    assert {task.status.name for task in made.cluster.tasks.values()} == {"PENDING"}


class Limited(Mine):
    """Lets a queue take on so many pods in a cycle."""

    def open(self, session):
        self.taken = 0
        session.add_handler(self.follow)
        session.allocatable.add(lambda _queue, demand: "enough" if self.taken + len(demand.tasks) > 2 else None)

    def follow(self, run, sign):
        self.taken += sign * len(run.tasks)


def test_a_limit_cuts_a_run_where_it_is_reached():
    made = desk(Limited, minimum=1, count=5)
    made.cycle()
    assert len(made.world.binds) == 2
    told = [message for _, reason, message in made.world.notes if reason == "FailedScheduling"]
    assert told == ["queue default: enough"] * 3


def test_a_gang_beyond_a_limit_is_not_bound_in_part():
    made = desk(Limited, minimum=3, count=5)
    made.cycle()
    assert made.world.binds == {}
