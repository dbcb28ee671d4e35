"""Valid objects to start from, edits of them, and the questions that the tests ask."""

from __future__ import annotations

import copy
from typing import Any

from msgspec import structs

from pumice.admission import remarks, rules, surroundings
from pumice.admission.requests import RuleSettings, written
from pumice.api import kinds

EVERYTHING = rules.named(tuple(rules.BY_PATH))
GONE = object()


def container(**more: Any) -> dict[str, Any]:
    return {"name": "main", "image": "busybox", **more}


def job(**spec: Any) -> dict[str, Any]:
    task = {"name": "worker", "replicas": 2, "template": {"spec": {"containers": [container()]}}}
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": "train", "namespace": "default"},
        "spec": {"minAvailable": 1, "queue": "default", "tasks": [task], **spec},
    }


def queue(name: str = "q", state: str = "", annotations: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    made = {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": name, "annotations": annotations or {}},
        "spec": {"weight": 1, "reclaimable": True, **spec},
    }
    return {**made, "status": {"state": state}} if state else made


def pod_group(**spec: Any) -> dict[str, Any]:
    metadata = {"name": "g", "namespace": "default"}
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": metadata,
        "spec": {"minMember": 1, "queue": "default", **spec},
    }


def hyper_node(*members: dict[str, Any]) -> dict[str, Any]:
    member = {"type": "Node", "selector": {"exactMatch": {"name": "n1"}}}
    return {
        "apiVersion": "topology.volcano.sh/v1alpha1",
        "kind": "HyperNode",
        "metadata": {"name": "rack"},
        "spec": {"tier": 1, "members": list(members or [member])},
    }


def job_flow(**needs: list[str]) -> dict[str, Any]:
    flows = [
        {"name": name, **({"dependsOn": {"targets": targets}} if targets else {})} for name, targets in needs.items()
    ]
    return {
        "apiVersion": "flow.volcano.sh/v1alpha1",
        "kind": "JobFlow",
        "metadata": {"name": "f", "namespace": "default"},
        "spec": {"flows": flows},
    }


def cron_job(**spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "CronJob",
        "metadata": {"name": "nightly", "namespace": "default"},
        "spec": {"schedule": "0 3 * * *", "jobTemplate": {"spec": job()["spec"]}, **spec},
    }


def known(*manifests: dict[str, Any], complete: bool = True) -> surroundings.KnownObjects:
    found = surroundings.KnownObjects(complete=complete)
    for each in (queue("root"), queue("default"), *manifests):
        kind = kinds.find(each["apiVersion"], each["kind"])
        assert kind is not None
        found.put(kind, each)
    return found


def edited(manifest: dict[str, Any], path: tuple[str | int, ...], value: Any) -> dict[str, Any]:
    """Copy an object with one part set, or gone; maps on the way are made."""
    made = copy.deepcopy(manifest)
    place: Any = made
    for step in path[:-1]:
        if isinstance(place, dict) and step not in place:
            place[step] = {}
        place = place[step]
    if value is GONE:
        del place[path[-1]]
    elif isinstance(place, list) and path[-1] == len(place):
        place.append(value)
    else:
        place[path[-1]] = value
    return made


def judged(
    manifest: dict[str, Any],
    *,
    old: dict[str, Any] | None = None,
    around: surroundings.KnownObjects | None = None,
    settings: RuleSettings | None = None,
    operation: str = "",
) -> remarks.Remarks:
    """Complete and judge an object as all paths together would, by strict rules unless settings say otherwise."""
    around, settings = around or known(), settings or RuleSettings(strict=True)
    kind = kinds.find(manifest["apiVersion"], manifest["kind"])
    assert kind is not None
    request = written(operation or ("UPDATE" if old is not None else "CREATE"), manifest, old)
    made = rules.completed(EVERYTHING, kind, request, around, settings)
    return rules.judged(EVERYTHING, kind, structs.replace(request, object=made), around, settings)


def refusals(manifest: dict[str, Any], **more: Any) -> list[tuple[str, str]]:
    return [(each.field, each.message) for each in judged(manifest, **more).refusals]


def warnings(manifest: dict[str, Any], **more: Any) -> list[tuple[str, str]]:
    return [(each.field, each.message) for each in judged(manifest, **more).warnings]
