"""Nodes drafted for several members, held against choosing one after the other with each in its place."""

from __future__ import annotations

import random
from types import SimpleNamespace

import numpy as np
import pytest

from pumice.framework.drafting import REFUSED, Draft

RESOURCES = 2


class Block:
    """Members of which each rates a node by what it is and holds, at random but for who likes best to be where others are, or where they are not."""

    def __init__(self, seed, members, rows, taste):
        draw = random.Random(seed)  # noqa: S311  the same each time
        self.taste, self.seed, self.reach, self.looks = taste, seed, draw.choice((1, 2, 8, 32)), 0
        self.more = np.array([[draw.randint(1, 3) for _ in range(RESOURCES)] for _ in range(members)])
        self.held = np.array([[draw.randint(0, 2) for _ in range(RESOURCES)] for _ in range(rows)])
        self.room = draw.choice((6, 12, 40))
        self.keys = np.array([[self.rated(m, row, self.held[row]) for row in range(rows)] for m in range(members)])
        self.known = {}

    def rated(self, member, row, amounts):
        """How much a member wants a node that holds some amounts."""
        amounts = np.asarray(amounts) + self.more[member]
        if amounts.sum() > self.room:
            return REFUSED
        own = random.Random(f"{self.seed}/{member}/{row}/{amounts.tolist()}").random()  # noqa: S311  as above
        return own + self.taste * float(amounts.sum())

    def state(self, row, amounts):
        """A node with some amounts."""
        return np.array([row, *amounts], dtype=np.int64).tobytes()

    def look(self, states, rows, amounts):
        """Ask all members about nodes in states."""
        self.looks += 1
        for state, row, held in zip(states, rows.tolist(), amounts, strict=True):
            assert state == self.state(row, held)
            self.known[state] = np.array([self.rated(member, row, held) for member in range(len(self.more))])

    def doubt(self, row):
        """Nothing is remembered of nodes but by their states."""

    def amounts(self, rows):
        """What nodes hold."""
        return self.held[rows].copy()

    def one_by_one(self, members):
        """Where members go that look at all nodes one after the other."""
        held, chosen = self.held.copy(), []
        for member in members:
            rated = [self.rated(member, row, amounts) for row, amounts in enumerate(held)]
            best = max(rated)
            if best == REFUSED:
                break
            chosen.append(rated.index(best))
            held[chosen[-1]] += self.more[member]
        return chosen


@pytest.mark.parametrize("taste", [-1.0, 0.0, 1.0, 0.05], ids=["spreading", "any", "packing", "rather packing"])
@pytest.mark.parametrize("seed", range(12))
def test_members_go_where_they_would_go_one_by_one(seed, taste):
    block = Block(seed, 14, 6, taste)
    places = sorted(random.Random(seed).sample(range(14), 9))  # noqa: S311  the same each time
    expected = block.one_by_one(places)
    table = SimpleNamespace(amounts=block.amounts)
    assert Draft(block, table, places).rows() == expected


@pytest.mark.parametrize("score", [np.nan, np.inf])
def test_a_score_that_is_none_is_refused(score):
    block = Block(1, 3, 2, 0.0)
    block.keys[0, 1] = score
    with pytest.raises(ArithmeticError, match="a score that is no number, or has no end"):
        Draft(block, SimpleNamespace(amounts=block.amounts), [0, 1]).rows()
