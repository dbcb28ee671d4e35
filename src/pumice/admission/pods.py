"""Pods: budgets that can be read, and what the rules of the administrator give to pods of a resource group."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from pumice.admission import laws, patches, surroundings
from pumice.api import documents, names

if TYPE_CHECKING:
    from pumice.admission.remarks import Remarks
    from pumice.admission.requests import PodRule, Request, RuleSettings
    from pumice.admission.surroundings import Surroundings

Document = dict[str, Any]
_BUDGETS: Final = (names.BUDGET_MIN_AVAILABLE, names.BUDGET_MAX_UNAVAILABLE)
_BUDGET: Final = re.compile(r"[1-9][0-9]{0,8}|[1-9][0-9]?%")
_NUMBER: Final = re.compile(r"[+-]?[0-9]{1,40}")
_LARGEST: Final = 2**31 - 1


def judge(request: Request, found: Remarks, _: Surroundings, settings: RuleSettings) -> None:
    """Judge a pod of ours that is created."""
    pod = request.part(found)
    if pod.record("spec").text("schedulerName") not in settings.scheduler_names:
        return
    annotations = pod.record("metadata", "annotations")
    given = [key for key in _BUDGETS if annotations.part(key).value is not None]
    for key in given:
        value = annotations.text(key)
        if not _BUDGET.fullmatch(value):
            law = laws.BUDGET_FORM if _is_budget(value) else laws.BUDGETS
            annotations.breaks(law, f"is {documents.quoted(value)}, and must be a number above 0, or 1% to 99%", key)
    if len(given) > 1:
        annotations.breaks(laws.BUDGETS, f"may not be given together with {given[0]}", given[1])


def _is_budget(value: str) -> bool:
    """Tell whether Volcano reads a budget: a number of 32 bits above 0, or one of 1 to 99 with signs of per cent anywhere."""
    digits = value.replace("%", "")
    if not _NUMBER.fullmatch(digits):
        return False
    number = int(digits)
    return 0 < number < 100 or ("%" not in value and 0 < number <= _LARGEST)


def complete(request: Request, _: Surroundings, settings: RuleSettings) -> Document:
    """Give a pod the gate it asks for, and what the first rule that fits it says."""
    pod: Document = patches.copied(request.object)
    spec = pod.setdefault("spec", {})
    if not isinstance(spec, dict):
        return pod
    annotations = surroundings.below(pod, "metadata", "annotations")
    annotations = annotations if isinstance(annotations, dict) else {}
    if settings.gates_pods and spec.get("schedulerName") in settings.scheduler_names:
        _gate(spec, annotations)
    for rule in settings.pod_rules:
        if _fits(rule, request.namespace, annotations):
            _apply(rule, spec)
            break
    return pod


def _gate(spec: Document, annotations: Document) -> None:
    gates = spec.get("schedulingGates") or []
    if (
        annotations.get(names.QUEUE_GATE) == "true"
        and isinstance(gates, list)
        and {"name": names.QUEUE_GATE} not in gates
    ):
        spec["schedulingGates"] = [*gates, {"name": names.QUEUE_GATE}]


def _fits(rule: PodRule, namespace: str, annotations: Document) -> bool:
    if rule.key == "namespace":
        return namespace in rule.values
    for value in rule.values:
        key, _, wanted = value.partition(":")
        if annotations.get(key.strip()) == wanted.strip():
            return True
    return False


def _apply(rule: PodRule, spec: Document) -> None:
    selector, tolerations = spec.get("nodeSelector") or {}, spec.get("tolerations") or []
    if rule.labels and isinstance(selector, dict):
        spec["nodeSelector"] = {**selector, **rule.labels}
    if rule.affinity is not None and not spec.get("affinity"):
        spec["affinity"] = patches.copied(rule.affinity)
    if rule.tolerations and isinstance(tolerations, list):
        spec["tolerations"] = [*tolerations, *(each for each in rule.tolerations if each not in tolerations)]
    if rule.scheduler:
        spec["schedulerName"] = rule.scheduler
