"""kube-batch's implicit groups follow the budgets of their controllers, whatever is known of a budget that goes."""

from __future__ import annotations

import builders
from pumice.api import kinds

OWNER = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "owner", "controller": True}


def budget(minimum, uid="owner"):
    owner = {**OWNER, "uid": uid}
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": builders.metadata("b", "a", ownerReferences=[owner]),
        "spec": {"minAvailable": minimum},
    }


def desk():
    made = builders.Desk()
    made.cache.follow(kube_batch=True, now=made.now)
    pod = builders.pod("p", cpu="1")
    pod["metadata"]["ownerReferences"] = [OWNER]
    return made.feed(pod, budget(3)).apply()


def test_the_minimum_is_that_of_the_budget():
    assert desk().cluster.jobs["a/owner"].min_member == 3


def test_a_budget_of_which_only_the_name_is_left_says_nothing_any_more():
    made = desk()
    tombstone = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "b", "namespace": "a"}}
    made.cache.feed(kinds.POD_DISRUPTION_BUDGET, "DELETED", tombstone)
    assert made.apply().cluster.jobs["a/owner"].min_member == 1


def test_a_budget_that_changes_its_owner_leaves_the_old_one():
    made = desk().modify(budget(3, uid="another")).apply()
    assert made.cluster.jobs["a/owner"].min_member == 1
