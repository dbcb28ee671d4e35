"""A change of nodes is news to a waiting job only if it changes what nodes could ever do for it."""

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from builders import Desk, group, node, pod
from drawing import drawn
from pumice.framework import standings

TEXT = """
actions: "enqueue, allocate, backfill"
tiers:
- plugins: [{name: gang}, {name: overcommit}, {name: predicates}, {name: proportion}]
"""


def epoch(session, _job, _nevers):
    """Take every change of any node for news to everybody."""
    return *session.outlooks.epoch, session.cluster.nodes.claims


class Life:
    """Waiting gangs beside nodes that come, go and change."""

    def __init__(self, seed):
        self.rng = random.Random(seed)  # noqa: S311  reproducible, not secret
        self.desks = [Desk(TEXT), Desk(TEXT)]
        self.number = 0
        self.feed(node("n0", "4"))
        for _ in range(6):
            self.gang()

    def feed(self, *manifests, event="ADDED"):
        for desk in self.desks:
            desk.feed(*manifests, event=event)

    def gang(self):
        self.number += 1
        name, size = f"g{self.number}", self.rng.randint(1, 3)
        least = {"minResources": {"cpu": "9"}} if self.rng.random() < 0.4 else {}
        self.feed(group(name, self.rng.randint(1, size), phase=self.rng.choice(["Inqueue", "Pending"]), **least))
        for i in range(self.rng.randint(0, size)):
            selector = {"nodeSelector": {"disk": "fast"}} if self.rng.random() < 0.3 else {}
            self.feed(pod(f"{name}-{i}", name, cpu=self.rng.choice(["3", "5", "9"]), **selector))

    def change(self):
        name = f"n{self.rng.randint(0, 2)}"
        if self.rng.random() < 0.2:
            self.gang()
        elif self.rng.random() < 0.2:
            self.feed(node(name), event="DELETED")
        else:
            labels = {"disk": self.rng.choice(["fast", "slow"])}
            cordoned = self.rng.random() < 0.2
            self.feed(node(name, self.rng.choice(["1", "4", "6", "10"]), labels=labels, cordoned=cordoned))

    def sent(self, desk):
        desk.cycle()
        found = sorted(repr(effect) for effect in desk.world.effects)
        desk.world.effects.clear()
        return found


@settings(max_examples=drawn(40), deadline=None)
@given(seed=st.integers(0, 10**6))
def test_whatever_is_written_is_what_would_be_if_every_change_of_a_node_were_news(seed):
    life, real = Life(seed), standings.outlook_of
    try:
        for turn in range(6):
            standings.outlook_of = real
            found = life.sent(life.desks[0])
            standings.outlook_of = epoch
            assert found == life.sent(life.desks[1]), f"cycle {turn}"
            life.change()
    finally:
        standings.outlook_of = real


def _news(made, monkeypatch):
    """Count the jobs that are looked at again in the next cycle."""
    counts, real = [], standings.news_of_cycle

    def counting(session):
        found = real(session)
        counts.append(len(found))
        return found

    monkeypatch.setattr(standings, "news_of_cycle", counting)
    made.cycle()
    return counts[-1]


def waiting(count):
    made = Desk(TEXT).feed(node("n0", "4"))
    for i in range(count):
        made.feed(group(f"g{i}", 2, phase="Inqueue"), *(pod(f"g{i}-{j}", f"g{i}", cpu="9") for j in range(2)))
    made.cycle()
    made.cycle()
    return made


def test_a_node_that_helps_no_gang_is_news_to_none(monkeypatch):
    made = waiting(5)
    made.feed(node("n1", "4"))
    assert _news(made, monkeypatch) <= 5  # the counts of nodes that refuse are another, once
    made.modify(node("n1", "4", labels={"disk": "fast"}))
    assert _news(made, monkeypatch) == 0


def test_a_node_that_could_take_a_gang_is_news(monkeypatch):
    made = waiting(5)
    made.feed(node("n1", "16", cordoned=True))
    assert _news(made, monkeypatch) == 5
