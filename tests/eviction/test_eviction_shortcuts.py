"""What is told from numbers, or about one node, is what trying it, or looking at all nodes, gives."""

from __future__ import annotations

import pytest
from eviction_crowds import PLUGINS, crowd

from drawing import seeds
from pumice.actions.eviction import node_bounds, plan, trimming
from pumice.framework.shortcuts import ALL, Shortcuts

pytestmark = pytest.mark.usefixtures("node_by_node")
SEEDS = seeds(8, 0, 2, 3, 6)


def cycles(name):
    """Run crowds, each in one cycle."""
    for seed in SEEDS:
        desk = crowd(seed, name)
        desk.cycle()
        assert not desk.scheduler.failures, desk.scheduler.failures


def bound(bounds, place):
    """Give the bound of a node; nothing else counts where no set of victims is enough."""
    if not bounds.possible[place]:
        return False
    return bounds.rank(place), bool(bounds.settled[place])


def test_the_bound_of_one_node_is_the_one_that_it_has_among_all(monkeypatch):
    compared = []
    assess = node_bounds.Bounds.assess

    def both(self, places, lacking, usable):
        # A node that is asked about more than once is one of several; as many as there are in all would be taken for all.
        times = 3 if 2 * len(places) == len(self.possible) else 2
        assess(self, places.repeat(times), lacking.repeat(times, axis=0), usable)
        for place, short in zip(places.tolist(), lacking, strict=True):
            among_all = bound(self, place)
            self._assess_one(place, short, usable)
            assert bound(self, place) == among_all
            compared.append(among_all)

    monkeypatch.setattr(node_bounds.Bounds, "assess", both)
    for name in PLUGINS:
        cycles(name)
    assert sum(found is False for found in compared) > 20
    assert sum(found is not False and found[0][1] for found in compared) > 20, "no gang had to be broken"
    assert sum(found is not False and found[0][2] == 1 for found in compared) > 20, "no single pod was enough"


def tried(plan, unit):
    """Try to do without a unit, and tell whether it is needed."""
    kinds = list({member.likeness: member for member in plan.members}.values())
    trimming.spare(plan, unit, kinds)
    return unit in plan.units


def test_who_is_needed_by_numbers_is_not_spared_if_that_is_tried(monkeypatch):
    needed = []
    is_needed = trimming.is_needed

    def of_one(plan, unit):
        told = is_needed(plan, unit)
        if told:
            assert tried(plan, unit)
            needed.append(unit)
        return told

    monkeypatch.setattr(trimming, "is_needed", of_one)
    for name in PLUGINS:
        cycles(name)
    monkeypatch.setattr(plan, "SMALL", 0)
    for name in PLUGINS:
        cycles(name)
    assert len(needed) > 5


@pytest.mark.parametrize("name", ["preempt, no vote of gang", "reclaim, proportion"])
def test_what_is_told_by_numbers_decides_nothing(name, monkeypatch):
    def decided(taken=ALL):
        desks = [crowd(seed, name, taken) for seed in SEEDS]
        for desk in desks:
            desk.cycle()
        return [sorted(desk.world.evictions) for desk in desks]

    monkeypatch.setattr(plan, "SMALL", 0)
    quick = decided()
    assert decided(Shortcuts(victims_by_numbers=False)) == quick
    assert any(quick)
