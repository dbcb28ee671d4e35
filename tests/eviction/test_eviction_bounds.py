"""No search without a bound, and where a bound is reached the record of the job says so."""

from __future__ import annotations

import pytest

from builders import Desk, group, node, pod, priority_class
from pumice.actions.eviction import offers, search, successors, trimming, victim_sets, ways
from pumice.framework.plugin import Plugin
from pumice.framework.reads import Reads

CONFIG = """
actions: "enqueue, allocate, preempt"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: fussy}]
- plugins: [{name: predicates}, {name: nodeorder}]
"""


class Fussy(Plugin):
    """Offers nobody of those whom the class names."""

    name = "fussy"
    points = frozenset({"Preemptable"})
    refused: frozenset[str] = frozenset()

    def open(self, session):
        session.preemptable.add(
            lambda _claimant, tasks: [task for task in tasks if task.name not in Fussy.refused], reads=Reads.TASK
        )


def crowded(nodes=2, sizes=(1, 1, 1), asked="1"):
    low = [
        pod(f"low-{n}-{i}", f"low-{n}", cpu=str(cpu), node=f"n{n}", created=n)
        for n in range(nodes)
        for i, cpu in enumerate(sizes)
    ]
    groups = [group(f"low-{n}", 1, priorityClassName="low", phase="Running") for n in range(nodes)]
    asks = [group("high", 1, priorityClassName="high", phase="Inqueue"), pod("high-0", "high", cpu=asked)]
    machines = [node(f"n{n}", cpu=str(sum(sizes))) for n in range(nodes)]
    return [priority_class("low", 1), priority_class("high", 9), *machines, *groups, *low, *asks]


def told(monkeypatch, changes, refused=(), **shape):
    monkeypatch.setattr(Fussy, "refused", frozenset(refused))
    for module, name, value in changes:
        monkeypatch.setattr(module, name, value)
    desk = Desk(CONFIG, Fussy).feed(*crowded(**shape))
    record = desk.cycle()
    assert desk.scheduler.failures == []
    return desk.world.evictions, " ".join(record.trace())


def test_who_took_the_best_of_the_nodes_asked_is_told_that_not_all_were(monkeypatch):
    # The bound of both nodes is the small pod, which is refused: the offer of either is above the bound of the other.
    refused = ["low-0-0", "low-1-0"]
    evicted, words = told(monkeypatch, [(offers, "ASKED", 1)], refused, sizes=(1, 2))
    assert len(evicted) == 1
    assert offers.ENOUGH in words
    evicted, words = told(monkeypatch, [(offers, "ASKED", 100)], refused, sizes=(1, 2))
    assert len(evicted) == 1
    assert offers.ENOUGH not in words


def test_who_is_refused_after_too_many_sets_is_told_so(monkeypatch):
    refused = [f"low-0-{i}" for i in range(3)]
    changes = [(victim_sets, "TRIES", 1)]
    evicted, words = told(monkeypatch, changes, refused, nodes=1, sizes=(1, 1, 1, 1), asked="2")
    assert evicted == []
    assert victim_sets.CUT_SHORT in words
    assert "no set of pods that may be evicted makes enough room" in words


def test_who_is_refused_after_too_many_plans_is_told_so(monkeypatch):
    monkeypatch.setattr(search.ping_pong, "those_who_would_return", lambda plan, _: [plan.units[0].tasks[0]])
    evicted, words = told(monkeypatch, [(search, "ROUNDS", 2)])
    assert evicted == []
    assert "no more than 2 plans were tried" in words
    assert "2 pods could be evicted" in words


def test_a_claimant_to_whom_nobody_is_offered_is_told_at_once(monkeypatch):
    everybody = [f"low-{n}-{i}" for n in range(2) for i in range(3)]
    monkeypatch.setattr(search.Search, "seek", None)  # nobody looks for a plan
    evicted, words = told(monkeypatch, [], everybody)
    assert evicted == []
    assert "no pod may be evicted for it: of 6 pods considered: 6 refused by the rules of" in words


@pytest.mark.parametrize("text", [ways.REACHED, offers.ENOUGH, trimming.PARTS, victim_sets.CUT_SHORT, successors.MORE])
def test_every_bound_is_told_with_its_number(text):
    assert any(character.isdigit() for character in text)
