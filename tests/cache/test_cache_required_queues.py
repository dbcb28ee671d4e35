"""The queues that must exist are asked for once, and after a failure again: soon, and then less and less often."""

from __future__ import annotations

import itertools

import pytest

import builders
from pumice.api import kinds
from pumice.cache import cache as caches
from pumice.cache.effects import Create, Failure, Outcome

SECOND = 1_000_000


def asked(cache):
    """Take what was asked for."""
    found = cache.world.of(Create)
    cache.world.effects.clear()
    return found


def lived(cache, code, seconds, now=0):
    """Let time pass from wake to wake, refuse every creation, and give the moments of the attempts at the root queue."""
    moments, end = [], now + seconds * SECOND
    while now < end:
        cache.apply(now)
        for each in asked(cache):
            moments += [now] if each.manifest["metadata"]["name"] == "root" else []
            cache.settled(Outcome(effect=each, failure=Failure(code, "no")))
        cache.apply(now, standby=True)  # only takes the answers
        now = max(now + 1, cache.next_wake())
    return moments


def test_where_the_kind_is_missing_it_is_tried_ten_seconds_apart():
    moments = lived(caches.Cache(builders.World()), "notfound", 300)
    assert 30 <= len(moments) <= 45
    assert max(b - a for a, b in itertools.pairwise(moments)) == 10 * SECOND


def test_who_may_not_create_them_tries_less_and_less_often():
    assert len(lived(caches.Cache(builders.World()), "refused", 3_000)) <= 22


def test_they_are_asked_for_again_when_no_queue_is_left_but_not_when_one_is():
    cache = caches.Cache(builders.World())
    for name in ("root", "default", "own"):
        cache.feed(kinds.QUEUE, "ADDED", builders.queue(name))
    cache.apply(0)
    cache.feed(kinds.QUEUE, "DELETED", builders.queue("default"))
    cache.apply(1)
    assert asked(cache) == []
    for name in ("root", "own"):
        cache.feed(kinds.QUEUE, "DELETED", builders.queue(name))
    cache.apply(2)
    created = asked(cache)
    assert [each.manifest["metadata"]["name"] for each in created] == ["root", "default"]
    cache.settled(Outcome(effect=created[0]))
    cache.settled(Outcome(effect=created[1], failure=Failure("unavailable", "no")))
    cache.apply(3)
    assert [each.manifest["metadata"]["name"] for each in asked(cache)] == ["default"]
    cache.feed(kinds.QUEUE, "ADDED", builders.queue("default"))
    cache.apply(4)
    cache.apply(100 * SECOND)
    assert asked(cache) == []


def test_they_are_asked_for_again_though_somebody_has_made_another_queue_before_it_was_seen_that_all_were_gone():
    """Who was cut off when the kind was taken away hears of both at once."""
    cache = caches.Cache(builders.World())
    for name in ("root", "default", "own"):
        cache.feed(kinds.QUEUE, "ADDED", builders.queue(name))
    cache.apply(0)
    for event, several in (("DELETED", ("root", "default", "own")), ("ADDED", ("own",))):
        for name in several:
            cache.feed(kinds.QUEUE, event, builders.queue(name))
    cache.apply(1)
    assert [each.manifest["metadata"]["name"] for each in asked(cache)] == ["root", "default"]
    cache.apply(2)
    assert asked(cache) == []


@pytest.mark.parametrize("by", ["us", "others"])
def test_a_queue_that_could_be_made_is_tried_without_a_pause_when_it_is_missing_again(by):
    cache, now = caches.Cache(builders.World()), 0

    def fails():
        for each in asked(cache):
            cache.settled(Outcome(effect=each, failure=Failure("unavailable", "no")))
        cache.apply(now, standby=True)
        return cache.next_wake() - now

    pauses = []
    for _ in range(2):
        cache.apply(now)
        for _ in range(3):
            pauses.append(fails())
            now += pauses[-1]
            cache.apply(now)
        for each in asked(cache):
            cache.settled(Outcome(effect=each, failure=Failure("unavailable", "no") if by == "others" else None))
        for event in ("ADDED", "DELETED"):
            cache.apply(now, standby=True)
            now = cache.next_wake() or now
            for name in ("root", "default"):
                cache.feed(kinds.QUEUE, event, builders.queue(name))
            cache.apply(now)
    assert pauses[:3] == pauses[3:]
    assert pauses[2] > pauses[1] > pauses[0]
