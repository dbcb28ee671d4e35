"""Pods that name no group and the one that is made for them: they are served when it is there, and name it with their bind."""

from __future__ import annotations

import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

import builders
from pumice.api import names
from pumice.cache import assignment
from pumice.cache.cache import Cache
from pumice.cache.effects import Bind
from pumice.model.statuses import Status

OWNERS = {"p0": "", "p1": "", "p2": "rs", "p3": "rs"}


def bare(name, owner="", **fields):
    manifest = builders.pod(name, cpu="1", uid=f"uid-{name}", **fields)
    if owner:
        reference = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": owner, "controller": True}
        manifest["metadata"]["ownerReferences"] = [reference]
    return manifest


def companion(name):
    return f"podgroup-{OWNERS[name] or f'uid-{name}'}"


def annotated(manifest, group):
    made = copy.deepcopy(manifest)
    made["metadata"].setdefault("annotations", {})[names.GROUP_NAME] = group
    return made


class Told:
    """What the watches have said, and who belongs where by that."""

    def __init__(self):
        self.desk = builders.Desk().feed(builders.node("n1", cpu="64"))
        self.pods, self.groups, self.bound = {}, {}, set()

    def pod(self, name, *, named=False):
        manifest = self.pods.get(name) or bare(name, OWNERS[name])
        event = "MODIFIED" if name in self.pods else "ADDED"
        self.pods[name] = annotated(manifest, companion(name)) if named else manifest
        self.desk.feed(self.pods[name], event=event)

    def group(self, name):
        made = builders.group(companion(name), queue="default")
        self.desk.feed(made, event="MODIFIED" if made["metadata"]["name"] in self.groups else "ADDED")
        self.groups[made["metadata"]["name"]] = made

    def lose_pod(self, name):
        if (gone := self.pods.pop(name, None)) is not None:
            self.desk.delete(gone)
            self.bound.discard(name)

    def lose_group(self, name):
        if (gone := self.groups.pop(companion(name), None)) is not None:
            self.desk.delete(gone)

    def cycle(self):
        """Let binds be sent, and half of them be seen."""
        before = len(self.desk.world.of(Bind))
        self.desk.cycle()
        for number, effect in enumerate(self.desk.world.of(Bind)[before:]):
            unnamed = names.GROUP_NAME not in self.pods[effect.name]["metadata"].get("annotations", {})
            assert effect.annotations == ({names.GROUP_NAME: companion(effect.name)} if unnamed else {})
            if number % 2:
                self.desk.settle(effect, "refused")
                continue
            self.desk.settle(effect)
            seen = annotated(self.pods[effect.name], companion(effect.name))
            seen["spec"]["nodeName"] = effect.node
            self.pods[effect.name] = seen
            self.bound.add(effect.name)
            self.desk.modify(seen)

    def check(self):
        self.desk.apply()
        for name in self.pods:
            task, group = self.desk.task(name), companion(name)
            job = task.job if task.job is not None and task.job.group is not None else None
            assert (job is not None) == (group in self.groups)
            if job is not None:
                assert job.key == f"a/{group}"
                assert job.tasks[task.uid] is task


steps = st.lists(
    st.tuples(st.sampled_from(["pod", "name", "group", "lose_pod", "lose_group", "cycle"]), st.sampled_from([*OWNERS])),
    max_size=30,
)


@given(steps)
def test_a_pod_belongs_to_the_group_made_for_it_in_whatever_order_they_come_and_names_it_with_its_bind(steps):
    told = Told()
    for step, name in steps:
        match step:
            case "cycle":
                told.cycle()
            case "name":
                told.pod(name, named=True)
            case _:
                getattr(told, step)(name)
        told.check()


def test_a_bind_that_fails_leaves_the_pod_in_its_group_and_the_next_one_names_it_again():
    desk = builders.Desk().feed(builders.node("n1"), bare("p0"), builders.group("podgroup-uid-p0"))
    desk.cycle()
    (first,) = desk.world.of(Bind)
    desk.settle(first, "refused").apply()
    assert desk.task("p0").status == Status.PENDING
    assert desk.task("p0").job.key == "a/podgroup-uid-p0"
    desk.cycle(600)
    desk.cycle()
    assert [bind.annotations for bind in desk.world.of(Bind)] == 2 * [{names.GROUP_NAME: "podgroup-uid-p0"}]


def test_a_pod_that_names_its_group_as_it_is_bound_stays_the_task_it_is():
    desk = builders.Desk().feed(builders.node("n1"), bare("p0"), builders.group("podgroup-uid-p0"))
    desk.cycle()
    task, seen = desk.task("p0"), annotated(bare("p0"), "podgroup-uid-p0")
    seen["spec"]["nodeName"] = "n1"
    desk.modify(seen).apply()
    assert desk.task("p0") is task
    assert task.status == Status.BOUND
    assert task.pod.metadata.annotations[names.GROUP_NAME] == "podgroup-uid-p0"


@pytest.mark.parametrize("spec", [{"schedulingGroup": {"podGroupName": "x"}}, {"schedulerName": "else"}])
def test_pods_of_others_and_of_groups_of_kubernetes_own_are_left_alone(spec):
    manifest = bare("p0")
    manifest["spec"] |= spec
    desk = builders.Desk().feed(builders.node("n1"), manifest, builders.group("podgroup-uid-p0"))
    desk.cycle()
    assert not desk.cluster.jobs["a/podgroup-uid-p0"].tasks
    assert not desk.world.binds


def test_schedulers_that_share_pods_by_the_names_of_groups_wait_until_one_is_named():
    cache = Cache(builders.World(), assignment=assignment.Assignment("s-0", 1))
    for manifest in (bare("p0"), builders.group("podgroup-uid-p0")):
        cache.feed(builders.kind_of(manifest), "ADDED", manifest)
    cache.apply(builders.NOW)
    (task,) = cache.cluster.tasks.values()
    assert task.job is None


def test_a_pod_of_a_group_in_memory_names_none_though_its_namespace_is_called_like_those_that_are_made_for_pods():
    desk = builders.Desk().feed(builders.node("n1"))
    desk.cache.follow(kube_batch=True, now=desk.now)
    desk.feed(bare("p0", namespace="podgroup-uid")).cycle()
    assert [(each.name, each.annotations) for each in desk.world.of(Bind)] == [("p0", {})]
