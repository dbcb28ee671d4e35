"""Which Jobs are gangs, what is made for them and when, and that others run as ever."""

from __future__ import annotations

import pytest

from pumice.api import kinds
from pumice.controllers.queueing.observed import Observed
from pumice.controllers.workloads.jobs import gangs

INDEXED = {"completionMode": "Indexed", "parallelism": 4, "completions": 4}


def job(status=None, template=None, **spec):
    metadata = {"name": "j", "namespace": "a", "uid": "u-j"}
    return {"metadata": metadata, "spec": {**INDEXED, "template": {"spec": template or {}}, **spec}, "status": status or {}}  # fmt: skip


def owned(kind, name, controls="u-j", **spec):
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": controls, "controller": True}
    metadata = {"name": name, "namespace": "a", "uid": f"u-{name}", "resourceVersion": "1", "ownerReferences": [owner]}
    return kind, {"metadata": metadata, "spec": spec}


def known(*objects):
    found = Observed()
    for kind, manifest in objects:
        found.feed(kind, "ADDED", manifest)
    return found


WORKLOAD = owned(kinds.WORKLOAD, "w", podGroupTemplates=[{"name": "t", "schedulingPolicy": {"gang": {"minCount": 4}}}])
GROUP = owned(kinds.NATIVE_POD_GROUP, "g")


@pytest.mark.parametrize(
    "other",
    [
        job(parallelism=1, completions=1),
        job(completionMode="NonIndexed"),
        job(completions=8),
        job(completions=None),
        job(template={"schedulingGroup": {"podGroupName": "mine"}}),
        job(status={"startTime": "2026-01-01T00:00:00Z"}),
        job(status={"succeeded": 1}),
        job(status={"conditions": [{"type": "Suspended", "status": "False"}]}),
    ],
)
def test_a_job_that_is_no_gang_or_has_begun_runs_as_ever(other):
    assert gangs.of(other, [], known()) == gangs.Gang()


def test_two_pods_are_a_gang_and_a_job_that_does_not_say_how_many_run_at_once_has_one():
    assert gangs.of(job(parallelism=2, completions=2), [], known()).steps
    assert gangs.of(job(parallelism=None, completions=1), [], known()) == gangs.Gang()
    assert gangs.of(job(parallelism=None, completions=2), [], known()) == gangs.Gang()


def test_a_job_with_pods_runs_as_ever():
    assert gangs.of(job(), [{"metadata": {"name": "p"}}], known()) == gangs.Gang()


def test_a_workload_comes_first_then_a_group_then_pods_that_name_it():
    (step,) = gangs.of(job(), [], known()).steps
    made = step.request.manifest
    (template,) = made["spec"]["podGroupTemplates"]
    assert template == {"name": "j-pgt-0", "schedulingPolicy": {"gang": {"minCount": 4}}}
    (owner,) = made["metadata"]["ownerReferences"]
    assert (owner["name"], owner["controller"], owner["blockOwnerDeletion"]) == ("j", True, True)
    assert step.request.kind is kinds.WORKLOAD
    (again,) = gangs.of(job(), [], known()).steps
    assert again.request.manifest["metadata"]["name"] == made["metadata"]["name"]

    (step,) = gangs.of(job(), [], known(WORKLOAD)).steps
    made = step.request.manifest
    assert step.request.kind is kinds.NATIVE_POD_GROUP
    assert made["spec"]["schedulingPolicy"] == {"gang": {"minCount": 4}}
    assert made["spec"]["podGroupTemplateRef"] == {"workload": {"workloadName": "w", "podGroupTemplateName": "t"}}
    assert [(each["name"], each.get("controller")) for each in made["metadata"]["ownerReferences"]] == [
        ("j", True),
        ("w", None),
    ]

    found = gangs.of(job({"startTime": "now"}), [{}], known(WORKLOAD, GROUP))
    assert (found.group["metadata"]["name"], found.steps) == ("g", [])


@pytest.mark.parametrize(
    "objects",
    [
        (GROUP, owned(kinds.NATIVE_POD_GROUP, "h")),
        (WORKLOAD, owned(kinds.WORKLOAD, "x")),
    ],
)
def test_of_several_groups_or_workloads_none_is_used(objects):
    assert gangs.of(job(), [], known(*objects)) == gangs.Gang()


def test_what_another_job_owns_is_not_used():
    found = gangs.of(job(), [], known(owned(kinds.NATIVE_POD_GROUP, "g", controls="u-other")))
    assert found.group is None
    assert [step.request.kind for step in found.steps] == [kinds.WORKLOAD]
