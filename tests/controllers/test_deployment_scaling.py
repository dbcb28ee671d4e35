"""How large each set of a Deployment is to be: cases of Kubernetes' own rules, and the sums against counting pod by pod."""

from __future__ import annotations

import random

import pytest

from pumice.controllers.workloads.deployments import scaling

TEMPLATE = {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": []}}
OLD = {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "c"}]}}


def made(name, size, *, available=None, before=None, new=False, created=0):
    """A set; `before` is the number of replicas and the most pods that were reckoned with when it was last scaled."""
    notes = {} if before is None else {scaling.DESIRED: str(before[0]), scaling.MOST: str(before[1])}
    stamp = f"2026-01-01T00:00:{created:02}Z"
    template = TEMPLATE if new else OLD
    labels = {**template["metadata"]["labels"], scaling.HASH: name}
    return {
        "metadata": {"name": name, "creationTimestamp": stamp, "annotations": notes, "resourceVersion": "7"},
        "spec": {"replicas": size, "template": {**template, "metadata": {"labels": labels, "creationTimestamp": None}}},
        "status": {"availableReplicas": size if available is None else available},
    }


def sets(replicas, *owned, surge=0, unavailable=1, kind="RollingUpdate"):
    rolling = {"rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}} if kind == "RollingUpdate" else {}
    spec = {"replicas": replicas, "template": TEMPLATE, "strategy": {"type": kind, **rolling}}
    return scaling.Sets({"metadata": {"name": "d"}, "spec": spec}, owned)


def sizes(steps):
    return {step.request.name: step.request.body["spec"]["replicas"] for step in steps if "spec" in step.request.body}


@pytest.mark.parametrize(
    ("replicas", "surge", "unavailable", "bounds"),
    [
        (10, "25%", "25%", (3, 2)),
        (4, "25%", "25%", (1, 1)),
        (1, "25%", "25%", (1, 0)),
        (10, 0, 0, (0, 1)),
        (10, 1, 0, (1, 0)),
        (10, 0, 3, (0, 3)),
        (2, 0, 5, (0, 2)),
        (0, 0, 0, (0, 0)),
    ],
)
def test_a_surge_is_rounded_up_and_who_may_be_missing_down_and_one_of_both_is_allowed(
    replicas, surge, unavailable, bounds
):
    found = sets(replicas, surge=surge, unavailable=unavailable)
    assert (found.surge, found.unavailable, found.most) == (*bounds, replicas + bounds[0])


def test_a_deployment_that_recreates_has_neither_and_one_that_says_nothing_a_quarter_of_both():
    assert (sets(10, kind="Recreate").surge, sets(10, kind="Recreate").unavailable) == (0, 0)
    silent = scaling.Sets({"metadata": {"name": "d"}, "spec": {"template": TEMPLATE}}, [])
    assert (silent.replicas, silent.surge, silent.unavailable) == (1, 1, 0)


# What a Deployment of so many replicas had before, its sets from the newest to the oldest, and what they get.
PROPORTIONS = [
    (12, 10, (10,), {"s0": 12}),
    (5, 10, (10,), {"s0": 5}),
    (10, 5, (2, 3), {"s0": 4, "s1": 6}),
    (3, 5, (2, 3), {"s0": 1, "s1": 2}),
    (4, 9, (8, 1), {"s0": 4, "s1": 0}),
    (10, 7, (2, 3, 2), {"s0": 3, "s1": 4, "s2": 3}),
    (8, 13, (2, 8, 3), {"s0": 1, "s1": 5, "s2": 2}),
    (4, 3, (1, 1, 1), {"s0": 2}),  # what is left over goes to the largest, of equals to the newest
    (2, 3, (1, 1, 1), {"s2": 0}),  # and is taken from the oldest
    (10, 20, (15, 5), {"s0": 7, "s1": 3}),  # halves are rounded up
    (0, 7, (2, 3, 2), {"s0": 0, "s1": 0, "s2": 0}),
    (5, 5, (2, 3), {}),
]


@pytest.mark.parametrize(("replicas", "before", "had", "gets"), PROPORTIONS)
def test_a_change_of_replicas_is_spread_over_sets_by_their_sizes(replicas, before, had, gets):
    owned = [
        made(f"s{place}", size, available=0, before=(before, before), new=place == 0, created=9 - place)
        for place, size in enumerate(had)
    ]
    found = sets(replicas, *owned)
    assert sizes(found.proportional()) == gets
    assert found.is_scaling_event() == (replicas != before)


def test_a_surge_is_spread_too_and_sets_that_do_not_say_what_they_were_reckoned_with_count_by_what_there_is():
    told = made("n", 2, before=(4, 5), new=True, created=2), made("o", 3, before=(4, 5), created=1)
    assert sizes(sets(8, *told, surge=2).proportional()) == {"n": 4, "o": 6}
    assert sizes(sets(1, *told, surge=2).proportional()) == {"n": 1, "o": 2}
    assert sizes(sets(0, *told, surge=2).proportional()) == {"n": 0, "o": 0}
    assert sizes(sets(8, told[1], surge=2).proportional()) == {"o": 8}
    silent = made("n", 2, new=True, created=2), made("o", 3, created=1)
    empty = made("n", 2, before=(0, 0), new=True, created=2), made("o", 3, before=(0, 0), created=1)
    odd = made("n", 2, before=("9" * 5000, "-5"), new=True, created=2), silent[1]
    assert not sets(8, *odd).is_scaling_event()
    for owned in (silent, empty, odd):
        assert sizes(sets(8, *owned, surge=2).proportional()) == {"n": 4, "o": 6}
    assert scaling.wanted({"spec": {}}) == 1
    assert sets(8, silent[1]).rolling() == []
    assert not sets(8, *silent).is_scaling_event()
    assert not sets(8, made("o", 0, before=(4, 5))).is_scaling_event()


def test_sets_of_one_size_that_are_not_changed_are_told_what_they_were_reckoned_with():
    owned = made("n", 2, before=(5, 5), new=True, created=2), made("o", 3, before=(5, 6), created=1)
    steps = sets(5, *owned).proportional()
    assert [(step.request.name, step.request.body) for step in steps] == [
        ("o", {"metadata": {"annotations": {scaling.DESIRED: "5", scaling.MOST: "5"}}})
    ]


def test_with_a_new_set_that_is_whole_the_old_ones_go_and_nobody_spreads_who_recreates():
    whole = made("n", 4, before=(4, 4), new=True, created=2), made("o", 3, before=(4, 4))
    assert sizes(sets(4, *whole).proportional()) == {"o": 0}
    for lacking in (
        made("n", 4, available=3, before=(4, 4), new=True, created=2),
        made("n", 4, before=(5, 4), new=True, created=2),
    ):
        assert sizes(sets(4, lacking, whole[1]).proportional()) != {"o": 0}
        assert sets(4, lacking, whole[1], kind="Recreate").proportional() == []


def test_where_no_set_has_pods_the_new_one_gets_all_and_without_one_nobody():
    assert sizes(sets(4, made("n", 0, new=True), made("o", 0)).proportional()) == {"n": 4}
    assert sets(4, made("o", 0)).proportional() == []


@pytest.mark.parametrize(
    ("replicas", "surge", "had", "first"),
    [(10, 3, 10, 3), (10, 3, 13, 0), (10, 3, 15, 0), (10, 30, 10, 10), (10, 0, 4, 6)],
)
def test_a_new_set_begins_with_what_the_surge_leaves(replicas, surge, had, first):
    assert sets(replicas, made("o", had), surge=surge).first_size() == first
    assert sets(replicas, made("o", had), kind="Recreate").first_size() == replicas


def grown(found):
    """Give the new set what it gets one pod at a time: as many as replicas, while all sets together may have more."""
    size = scaling.wanted(found.new)
    if size > found.replicas:
        return found.replicas
    while size < found.replicas and size + sum(map(scaling.wanted, found.old)) < found.most:
        size += 1
    return size


def shrunk(found):
    """Take old pods one at a time, the oldest sets' first: those that are not available, then others while enough are."""
    least, ready = found.replicas - found.unavailable, sum(map(scaling.available, found.all))
    room = found.total() - least - max(0, scaling.wanted(found.new) - scaling.available(found.new))
    left = {each["metadata"]["name"]: scaling.wanted(each) for each in found.old}
    for each in found.old:
        while (
            left[each["metadata"]["name"]] > 0
            and room > 0
            and scaling.wanted(each) - scaling.available(each) > (scaling.wanted(each) - left[each["metadata"]["name"]])
        ):
            left[each["metadata"]["name"]] -= 1
            room -= 1
    for each in found.old:
        while left[each["metadata"]["name"]] > 0 and room > 0 and ready > least:
            left[each["metadata"]["name"]] -= 1
            room, ready = room - 1, ready - 1
    return left


def test_a_rolling_update_grows_the_new_set_and_then_shrinks_old_ones_as_counting_pods_does():
    chance, grew, shrank = random.Random(5), 0, 0  # noqa: S311  worlds
    for _ in range(400):
        owned = [
            made(f"s{place}", size := chance.randrange(5), available=chance.randint(0, size + 1), new=place == 0)
            for place in range(chance.randint(1, 3))
        ]
        found = sets(chance.randrange(8), *owned, surge=chance.randrange(3), unavailable=chance.randrange(4))
        before = {each["metadata"]["name"]: scaling.wanted(each) for each in owned}
        after = {**before, "s0": grown(found)}
        if after == before:
            after = {**before, **shrunk(found)}
            shrank += after != before
        else:
            grew += 1
        steps = found.rolling()
        assert before | sizes(steps) == after
        assert bool(steps) == (after != before)
    assert grew > 50
    assert shrank > 50


def test_a_new_size_is_written_against_the_version_that_was_read_and_told_with_both_sizes():
    found = sets(4, made("o", 3, before=(4, 4)), made("n", 1, before=(3, 4), new=True))
    (up,), (down,) = found.new_to_full(), found.all_old_down()
    assert up.request.body == {
        "metadata": {"annotations": {scaling.DESIRED: "4", scaling.MOST: "4"}, "resourceVersion": "7"},
        "spec": {"replicas": 4},
    }
    assert down.request.body == {"metadata": {"resourceVersion": "7"}, "spec": {"replicas": 0}}
    assert [step.said for step in (up, down)] == [
        ("ScalingReplicaSet", "Scaled up replica set n from 1 to 4"),
        ("ScalingReplicaSet", "Scaled down replica set o from 3 to 0"),
    ]


def test_a_set_that_stays_is_told_news_only_if_it_has_pods():
    stale, empty, fresh = (
        made("n", 4, before=(3, 4), new=True),
        made("o", 0, before=(3, 4)),
        made("f", 4, before=(4, 4)),
    )
    found = sets(4, stale, empty, fresh)
    (told,) = found.new_to_full()
    assert told.request.body == {"metadata": {"annotations": {scaling.DESIRED: "4", scaling.MOST: "4"}}}
    assert (found.scale(empty, 0), found.scale(fresh, 4)) == ([], [])
    assert sets(4, empty).new_to_full() == []


def test_the_oldest_set_of_the_template_is_the_new_one_and_the_label_of_its_hash_does_not_count():
    older, newer, other = made("b", 1, new=True, created=1), made("a", 1, new=True, created=2), made("o", 1)
    found = sets(1, newer, older, other)
    assert (found.new, found.old, found.all) == (older, [other, newer], [other, older, newer])
    bare = {"metadata": {}, "spec": TEMPLATE["spec"]}
    named = {**older, "spec": {"template": {**bare, "metadata": {"labels": {scaling.HASH: "x"}, "annotations": {}}}}}
    assert scaling.same_template(named, bare)
    assert not scaling.same_template(named, TEMPLATE)
    assert not scaling.same_template(named, {**bare, "metadata": {"annotations": {"a": "b"}}})
