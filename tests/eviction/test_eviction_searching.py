"""What a search for victims knows and says beside its plans: of whom it breaks down, who lies dormant, and plans that would lead back to themselves."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from builders import Desk, group, node, pod, priority_class
from pumice.framework import shortcuts
from pumice.framework.plugin import Plugin
from pumice.framework.points import Reads

CONFIG = """
actions: "%s"
tiers:
- plugins: [{name: priority}]
- plugins: [{name: gang}, {name: predicates}%s]
"""
KEPT = {"volcano.sh/preemptable": "false"}


def full(text, *plugins, annotations=None, **more):
    """A node that is full of a pod that weighs less than whoever asks."""
    desk = Desk(text, *plugins, **more).feed(node("n", "2"), priority_class("low", 1), priority_class("high", 9))
    desk.feed(group("low", 0, phase="Running", priorityClassName="low"))
    return desk.feed(pod("low-0", "low", cpu="2", node="n", annotations=annotations))


class Fragile(Plugin):
    """Breaks down about one job, though it says that it looks at nodes alone."""

    name = "fragile"
    points = frozenset({"Predicate"})

    def open(self, session):
        session.predicate.add(self.fits, reads=Reads.NODE | Reads.COLUMNS)

    def fits(self, subject, nodes):
        return np.zeros(len(nodes), dtype=np.int16) if subject.job.name != "g0" else 1 // 0


def test_a_job_about_which_a_filter_breaks_down_says_nothing_of_its_equals():
    desk = full(CONFIG % ("preempt", ", {name: fragile}"), Fragile)
    for i in range(2):
        desk.feed(group(f"g{i}", 1, phase="Inqueue", priorityClassName="high", created=i))
        desk.feed(pod(f"g{i}-0", f"g{i}", cpu="2"))
    desk.cycle()
    assert desk.world.evictions == ["low-0"]


def test_who_lay_dormant_is_told_as_everybody_else_that_room_is_made_for_it():
    """It is left out of allocate, as no node will have so much; then somebody may go."""
    sent = []
    for dormant in (True, False):
        taken = msgspec.structs.replace(shortcuts.ALL, dormant_jobs=dormant)
        desk = full(CONFIG % ("enqueue, allocate, preempt", ""), annotations=KEPT, taken=taken)
        desk.feed(group("g", 1, phase="Inqueue", priorityClassName="high"), pod("g-0", "g", cpu="2"))
        desk.cycle()
        desk.cluster.changed += 1
        desk.cycle()
        assert desk.world.evictions == []
        desk.modify(pod("low-0", "low", cpu="2", node="n")).cycle()
        assert desk.world.evictions == ["low-0"]
        sent.append([repr(effect) for effect in desk.world.effects])
    assert sent[0] == sent[1]


class Ring(Plugin):
    """Says who may take from whom by the names of jobs."""

    name = "ring"
    points = frozenset({"Preemptable"})
    takes: dict[str, str]

    def open(self, session):
        session.preemptable.add(
            lambda claimant, tasks: [task for task in tasks if task.job.name in self.takes[claimant.job.name]]
        )


@pytest.mark.parametrize(("third", "evicted"), [("a", []), ("", ["b-0"])])
def test_no_plan_is_made_that_leads_back_to_its_claimant_over_a_third_job(third, evicted):
    """For the room of `a` its victim `b` would rather take from `c`, which weighs less; that may be stopped only by `c` taking from `a` in its turn."""
    text = 'actions: "preempt"\ntiers:\n- plugins: [{name: ring}]\n- plugins: [{name: gang, enablePreemptable: false}, {name: predicates}]\n'
    desk = Desk(text, type("Ring", (Ring,), {"takes": {"a": "b", "b": "ac", "c": third}}))
    desk.feed(priority_class("low", 1), priority_class("high", 9))
    for name, rank, where in (("a", "high", ""), ("b", "high", "n0"), ("c", "low", "n1")):
        desk.feed(group(name, 1, phase="Running" if where else "Inqueue", priorityClassName=rank))
        desk.feed(*([node(where, "1")] if where else []), pod(f"{name}-0", name, cpu="1", node=where))
    desk.cycle()
    assert desk.world.evictions == evicted
