"""What a Job says about pods that fail: the first rule that fits a pod decides whether it counts, is passed over, or ends the Job."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from pumice.api import names
from pumice.controllers.workloads import manifests, pods

if TYPE_CHECKING:
    from collections.abc import Mapping

Manifest = dict[str, Any]
FAIL_JOB: Final = "FailJob"
IGNORE: Final = "Ignore"
COUNT: Final = "Count"
REASON: Final = "PodFailurePolicy"


class Ruling(msgspec.Struct, frozen=True):
    """What is done about a failed pod, and why in words."""

    action: str = COUNT
    message: str = ""


def rule(job: Mapping[str, Any], pod: Mapping[str, Any]) -> Ruling:
    """Find the first rule that fits a pod which has failed; without one it counts."""
    if pods.phase(pod) != names.PHASE_FAILED:
        return Ruling()
    for place, each in enumerate(manifests.items(job, "spec", "podFailurePolicy", "rules")):
        words = _by_exit_code(each, pod) or _by_condition(each, pod)
        if words:
            action = str(manifests.mapping(each).get("action"))
            return Ruling(action, f"{words} matching {action} rule at index {place}")
    return Ruling()


def _by_exit_code(stated: Any, pod: Mapping[str, Any]) -> str:
    wanted = manifests.mapping(stated, "onExitCodes")
    if not wanted:
        return ""
    values = manifests.items(wanted, "values")
    for part in ("initContainerStatuses", "containerStatuses"):
        for container in manifests.items(pod, "status", part):
            name = manifests.mapping(container).get("name")
            code = manifests.mapping(container, "state", "terminated").get("exitCode")
            if not code or wanted.get("containerName") not in (None, name):
                continue
            if (code in values) is (wanted.get("operator") == "In"):
                return f"Container {name} for pod {_full_name(pod)} failed with exit code {code}"
    return ""


def _by_condition(stated: Any, pod: Mapping[str, Any]) -> str:
    status = manifests.mapping(pod, "status")
    for each in manifests.items(stated, "onPodConditions"):
        wanted = manifests.mapping(each)
        kind = str(wanted.get("type"))
        if manifests.condition(status, kind).get("status") == wanted.get("status", "True"):
            return f"Pod {_full_name(pod)} has condition {kind}"
    return ""


def _full_name(pod: Mapping[str, Any]) -> str:
    return f"{pod['metadata'].get('namespace', '')}/{pod['metadata']['name']}"
