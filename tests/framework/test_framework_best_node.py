"""BestNode chooses a position among the candidates it is shown."""

import numpy as np
import pytest

from builders import Desk, group, node, pod
from pumice.framework.plugin import Plugin

TEXT = """
actions: "allocate"
tiers:
- plugins: [{name: gang}, {name: predicates}, {name: chooser}]
"""


def chooser(position):
    class Chooser(Plugin):
        """Choose by position."""

        name = "chooser"
        points = frozenset({"BestNode"})

        def open(self, session):
            session.best_node.add(lambda _subject, nodes, _scores: position(nodes))

    return Chooser


def played(position):
    """Two of four nodes are candidates: the second and the fourth by row."""
    made = Desk(TEXT, chooser(position)).feed(
        *(node(f"n{i}", labels={"ok": "yes" if i in (1, 3) else "no"}) for i in range(4)), group("g")
    )
    made.feed(pod("p", "g", cpu="1", nodeSelector={"ok": "yes"})).cycle()
    return made


@pytest.mark.parametrize(("position", "chosen"), [(0, "n1"), (1, "n3")])
def test_the_node_at_the_position_is_taken(position, chosen):
    assert played(lambda _: position).world.binds == {"p": chosen}


def test_who_abstains_leaves_it_to_the_scores():
    assert set(played(lambda _: None).world.binds.values()) < {"n1", "n3"}


@pytest.mark.parametrize("position", [-1, 2, 3])
def test_a_position_that_nobody_was_shown_is_a_wrong_answer(position):
    made = played(lambda _: position)
    assert made.world.binds == {}
    told = "\n".join(made.cache.record.trace())
    assert f"asked about 2 nodes, it chooses the one at position {position}" in told


def test_the_scores_that_it_sees_are_those_of_all_plugins_together():
    class Scoring(chooser(None)):
        points = frozenset({"BestNode", "Score"})

        def open(self, session):
            session.score.add(lambda _, nodes: np.array([10.0, 9.0]) if len(nodes) == 2 else np.zeros(len(nodes)))
            session.score.add(lambda _, nodes: np.arange(len(nodes)) * 5.0, normalise=lambda raw: raw)
            session.best_node.add(lambda _subject, _nodes, scores: int(scores.argmax()))

    made = Desk(TEXT, Scoring).feed(*(node(f"n{i}") for i in range(2)), group("g"), pod("p", "g", cpu="1"))
    made.cycle()
    assert made.world.binds == {"p": "n1"}
