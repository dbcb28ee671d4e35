"""Who waits for victims is judged, held and tried by short cuts; the long way decides, says and sends the same, in the same order."""

from __future__ import annotations

from collections import Counter

import pytest
from eviction_holders import POLICIES, Life

from drawing import seeds
from pumice.actions.eviction import equal_holders, takeover
from pumice.actions.placing import held_back
from pumice.framework import reservations, resting
from pumice.framework.handlers import Handlers

SEEDS = seeds(4, 0, 2)


# What is patched so that the long way is gone, for each short cut.
LONG_WAYS = [
    (equal_holders.EqualHolders, "_kind", lambda *_: None),
    (held_back.HeldBack, "known", lambda *_: None),
    (Handlers, "look_around", property(lambda _: True, lambda *_: None)),
    (takeover.Found, "is_any_offered", True),  # each claimant is asked about all who hold room
]


def told(name, *ways):
    """Say what happens in some lives, in which everybody is tried in every cycle, if some short cuts are not taken."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(resting, "_may_rest", lambda _: False)
        for way in ways:
            patched.setattr(*way)
        return [Life(seed, name).told() for seed in SEEDS]


@pytest.mark.parametrize("name", POLICIES)
def test_no_short_cut_changes_a_word_of_a_life(name):
    assert told(name) == told(name, *LONG_WAYS)


def test_what_is_said_of_a_kind_of_holders_is_what_asking_about_each_would_give(monkeypatch):
    said = Counter()
    shared = equal_holders.EqualHolders.could_be_evicted

    def compared(self, tasks):
        known = bool(self._known)
        told = shared(self, tasks)
        assert told == takeover.could_evict(self._session, self._rules, self._claimant, tasks), tasks
        said[told, known] += 1
        return told

    monkeypatch.setattr(equal_holders.EqualHolders, "could_be_evicted", compared)
    for name in POLICIES:
        for seed in SEEDS:
            Life(seed, name).told()
    assert min(said[True, True], said[False, True]) > 10, said


def test_who_is_like_a_claimant_to_whom_nobody_with_held_room_is_offered_is_not_asked_about_again(monkeypatch):
    calls, asked = Counter(), takeover.holders

    def counting(*args):
        calls[len(stories)] += 1
        return asked(*args)

    monkeypatch.setattr(takeover, "holders", counting)
    stories = []
    stories.append(told("shared"))
    stories.append(told("shared", LONG_WAYS[-1]))
    assert stories[0] == stories[1]
    assert calls[0] < calls[1], calls


def test_every_short_cut_is_taken_in_these_lives(monkeypatch):
    counts = Counter()

    def count(owner, name, kind=bool):
        original = getattr(owner, name)

        def counting(*args):
            answer = original(*args)
            if answer:
                counts[name, kind(answer)] += 1
            return answer

        monkeypatch.setattr(owner, name, counting)

    count(equal_holders.EqualHolders, "_kind")
    count(held_back.HeldBack, "known", lambda stays: stays.refusal is not None)
    count(reservations, "_have_room")
    for seed in SEEDS:
        Life(seed, "shared").told()
    assert len(counts) == 4
    assert min(counts.values()) > 5, counts
