"""A life keeps the rules, and comes to the same on every machine, with every Python and for ever; whoever means to change that writes it down anew."""

from __future__ import annotations

import pytest

from tests.lives import pinned

PINNED = pinned.read()


@pytest.mark.parametrize("seed", PINNED)
def test_a_life_comes_to_what_is_written_down(seed):
    (found, broken), told = pinned.of_seed(seed), PINNED[seed]
    assert not broken
    changed = [part for part in told if found[part] != told[part]]
    assert not changed, f"seen by {pinned.SHOWN} {seed}; if it is meant: python -m tests.lives.pinned"
