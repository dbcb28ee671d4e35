"""A pod belongs to the group that was made for it alone as soon as that is there, whether or not the pod says so yet."""

from __future__ import annotations

import itertools

import pytest

from builders import Desk, group, node, pod
from pumice.cache.effects import Bind

COMPANION = "podgroup-u1"


def alone(**more):
    return pod("p", uid="u1", cpu="1", **more)


@pytest.mark.parametrize(
    "order",
    list(itertools.permutations((node("n1"), alone(), group(COMPANION)))),
    ids=lambda each: "-".join(m["kind"] for m in each),
)
def test_it_is_bound_whichever_comes_first(order):
    made = Desk()
    for each in order:
        made.feed(each)
        made.apply()
    made.cycle()
    assert made.world.binds == {"p": "n1"}


def test_without_the_group_it_waits_and_another_group_is_not_its_own():
    made = Desk().feed(node("n1"), alone(), group("podgroup-u2"), group(COMPANION, namespace="b"), group("u1"))
    made.cycle()
    assert made.world.binds == {}
    assert made.task("p").job is None


def test_what_it_says_later_changes_nothing_while_it_is_being_bound():
    made = Desk().feed(node("n1", cpu="1"), alone(), group(COMPANION))
    made.cycle()
    says = pod("p", COMPANION, uid="u1", cpu="1")
    made.modify(says).cycle()
    assert len(made.world.of(Bind)) == 1
    assert (made.task("p").job_key, made.task("p").node.name) == (f"a/{COMPANION}", "n1")
    made.settle(made.world.of(Bind)[0], "refused").cycle()
    assert made.task("p").job_key == f"a/{COMPANION}"


def test_a_group_that_a_person_names_is_the_one_that_counts():
    made = Desk().feed(node("n1"), group(COMPANION), group("own", 2), pod("p", "own", uid="u1", cpu="1"))
    made.cycle()
    assert made.world.binds == {}
    assert made.task("p").job_key == "a/own"


def test_when_the_group_goes_the_pod_waits_for_the_next_one():
    made = Desk().feed(node("n1", cpu="1"), pod("q", node="n1", cpu="1", scheduler="other"), alone(), group(COMPANION))
    made.cycle()
    made.delete(group(COMPANION), pod("q", node="n1", cpu="1", scheduler="other")).cycle()
    assert made.world.binds == {}
    made.feed(group(COMPANION)).cycle()
    assert made.world.binds == {"p": "n1"}


def test_under_rules_of_kube_batch_its_job_is_its_own():
    made = Desk()
    made.cache.follow(kube_batch=True, now=made.now)
    made.feed(alone(), group(COMPANION)).apply()
    assert made.task("p").job_key == "a/u1"
