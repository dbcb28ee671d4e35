"""Where few members are placed in every way, each state is looked at once: that finds a way exactly where trying everything does."""

from __future__ import annotations

import pytest
from eviction_crowds import crowd

from drawing import seeds
from pumice.actions.eviction.ways import Ways

SEEDS = seeds(20, 9, 10, 11, 12, 17)
FEW = 3  # members that are placed in every order and on every node, without a memory


def tried(ways, members):
    """Tell whether any order of any of some members, on any nodes, is enough and suits."""
    plan = ways.plan
    mark, count = plan.statement.checkpoint(), len(plan.members)
    for member in members:
        for row in ways.rows(member):
            found = False
            if plan.settle(member, row):
                rest = [task for task in members if task is not member]
                found = ways.suits() if ways.done() else tried(ways, rest)
            plan.back_to(mark, count)
            if found:
                return True
    return False


@pytest.mark.parametrize("name", ["preempt", "preempt, limits", "reclaim, capacity", "reclaim, tree"])
def test_a_way_is_found_where_there_is_one(name, monkeypatch):
    compared = []
    finds = Ways.finds

    def checked(self, members, placed=()):
        if placed or len(members) > FEW:
            return finds(self, members, placed)
        wanted = tried(self, members)
        found = finds(self, members)
        assert found == wanted, members
        compared.append(len(members))
        return found

    monkeypatch.setattr(Ways, "finds", checked)
    for seed in SEEDS:
        desk = crowd(seed, name)
        desk.cycle()
        assert not desk.scheduler.failures, (seed, desk.scheduler.failures)
    assert sum(count > 1 for count in compared) > 10
