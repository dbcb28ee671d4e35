"""kube-batch's implicit groups follow the budgets of their controllers, whatever is known of a budget that goes."""

from __future__ import annotations

import pytest

import builders
from pumice.api import kinds, names

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


@pytest.mark.parametrize(("minimum", "counted"), [(0, 0), (2**31 - 1, 2**31 - 1), (2**31, 1), (-1, 1), ("50%", 1)])
def test_a_budget_counts_as_far_as_kubernetes_can_count(minimum, counted):
    assert desk().modify(budget(minimum)).apply().cluster.jobs["a/owner"].min_member == counted


def test_an_implicit_group_is_there_though_somebody_else_waits_for_one_of_its_name():
    made = builders.Desk().feed(builders.pod("named", "owner"))
    made.cache.follow(kube_batch=True, now=made.now)
    owned = builders.pod("p", cpu="1")
    owned["metadata"]["ownerReferences"] = [OWNER]
    assert made.apply().cluster.jobs["a/owner"].group is None
    made.feed(owned).apply()
    assert made.task("p").job.group is not None


def test_a_budget_of_which_only_the_name_is_left_says_nothing_any_more():
    made = desk()
    tombstone = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "b", "namespace": "a"}}
    made.cache.feed(kinds.POD_DISRUPTION_BUDGET, "DELETED", tombstone)
    assert made.apply().cluster.jobs["a/owner"].min_member == 1


def test_a_budget_that_changes_its_owner_leaves_the_old_one():
    made = desk().modify(budget(3, uid="another")).apply()
    assert made.cluster.jobs["a/owner"].min_member == 1


def keys(made):
    return {task.name: task.job_key for task in made.cluster.tasks.values()}


def test_only_pods_without_a_group_belong_to_others_once_the_rules_are_others():
    made = builders.Desk().feed(builders.group("g"), builders.pod("alone"), builders.pod("member", "g")).apply()
    apart = {"alone": "", "member": "a/g"}
    assert keys(made) == apart
    for kube_batch, expected in ((True, {"alone": "a/a.alone", "member": "a/g"}), (False, apart)):
        made.cache.follow(kube_batch=kube_batch, now=made.now)
        assert keys(made.apply()) == expected
        assert ("a/a.alone" in made.cluster.jobs) is kube_batch


def test_an_implicit_group_stays_until_its_last_pod_has_gone():
    made = desk()
    second = builders.pod("second", cpu="1")
    second["metadata"]["ownerReferences"] = [OWNER]
    made.feed(second).delete(builders.pod("p", cpu="1")).apply()
    assert made.cluster.jobs["a/owner"].group is not None
    made.delete(second).apply()
    assert "a/owner" not in made.cluster.jobs


def test_the_largest_of_several_budgets_counts_while_it_is_there():
    larger = budget(5)
    larger["metadata"]["name"] = "larger"
    made = desk().feed(larger).apply()
    assert made.cluster.jobs["a/owner"].min_member == 5
    assert made.delete(larger).apply().cluster.jobs["a/owner"].min_member == 3
    assert made.delete(budget(3)).apply().cluster.jobs["a/owner"].min_member == 1
    assert made.feed(larger).apply().cluster.jobs["a/owner"].min_member == 5


@pytest.mark.parametrize(
    ("text", "minimum"),
    [("3", 3), ("2147483647", 2**31 - 1), ("2147483648", 1), ("00000000002", 1), ("-1", 1), ("x", 1)],
)
def test_without_a_budget_a_pod_may_say_how_many_must_run_together_as_far_as_kubernetes_can_count(text, minimum):
    made = builders.Desk()
    made.cache.follow(kube_batch=True, now=made.now)
    made.feed(builders.pod("p", annotations={names.KUBE_BATCH_GROUP_MIN_MEMBER: text})).apply()
    assert made.task("p").job.min_member == minimum
