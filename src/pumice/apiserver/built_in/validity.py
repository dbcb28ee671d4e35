"""What makes an object of a built-in kind invalid, in the words of kube-apiserver: names, labels, required values, amounts, what may not change."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from pumice.api import quantity
from pumice.apiserver.built_in import (
    access_validity,
    device_validity,
    gang_validity,
    placement_validity,
    pod_validity,
    policy_validity,
    resize_validity,
    slice_validity,
    webhook_validity,
    workload_validity,
    wrong,
)
from pumice.sim import structure

if TYPE_CHECKING:
    from pumice.apiserver.schemas.nodes import Node
    from pumice.apiserver.statuses import Causes

Document = dict[str, Any]
_DNS_LABELS: Final = frozenset({"Namespace"})
_PATH_SEGMENTS: Final = frozenset({"ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"})


def metadata(manifest: Mapping[str, Any], kind: str) -> Causes:
    """Check names, labels and annotations of any object."""
    found: Causes = []
    meta = manifest["metadata"]
    name = meta.get("name", "")
    if not isinstance(name, str) or not name:
        return [("FieldValueRequired", "metadata.name", "Required value: name or generateName is required")]
    if problem := name_problem(name, kind):
        found.append(("FieldValueInvalid", "metadata.name", f"Invalid value: {json.dumps(name)}: {problem}"))
    labels = meta.get("labels") or {}
    found += wrong.labels(labels, "metadata.labels")
    annotations = meta.get("annotations") or {}
    for key in annotations:
        found += wrong.label_key(key.lower(), "metadata.annotations")
    if sum(len(key) + len(str(value)) for key, value in annotations.items()) > 256 * 1024:
        found.append(("FieldValueTooLong", "metadata.annotations", "Too long: may not be more than 262144 bytes"))
    return found


def name_problem(name: str, kind: str) -> str:
    """Say what is wrong with a name, or nothing."""
    if kind in _PATH_SEGMENTS:
        barred = next((part for part in ("/", "%") if part in name), "")
        return f"may not contain '{barred}'" if barred else "may not be '.' or '..'" if name in (".", "..") else ""
    if kind in _DNS_LABELS:
        if len(name) <= 63 and re.fullmatch(wrong.LABEL, name):
            return ""
        return wrong.NO_LABEL if len(name) <= 63 else "must be no more than 63 characters"
    if len(name) > 253:
        return "must be no more than 253 characters"
    if re.fullmatch(wrong.SUBDOMAIN, name):
        return ""
    return wrong.NO_SUBDOMAIN


def required(value: Any, node: Node, path: str = "") -> Causes:
    """Find required fields that are missing, amounts that are none, and texts that are not among those allowed."""
    found: Causes = []
    if isinstance(value, dict):
        for name in node.required:
            if value.get(name) is None and name not in ("status", "metadata", "lastTransitionTime", "eventTime"):
                found.append(("FieldValueRequired", f"{path}.{name}" if path else name, "Required value"))
        for name, item in value.items():
            below = node.child(name)
            if below is not None and not (path == "" and name in ("status", "metadata")):
                found += _below(item, below, f"{path}.{name}" if path else name)
    elif isinstance(value, list) and node.items is not None:
        for index, item in enumerate(value):
            found += _below(item, node.items, f"{path}[{index}]")
    return found


def _below(item: Any, node: Node, path: str) -> Causes:
    if type(item) is dict or type(item) is list:
        return required(item, node, path)
    if node.type == "quantity":
        try:
            quantity.parse(str(item))
        except quantity.QuantityError:
            text = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
            return [("FieldValueInvalid", path, f"Invalid value: {json.dumps(item)}: {text}")]
    if node.enum is not None and item not in node.enum and item != "":
        supported = ", ".join(json.dumps(each) for each in node.enum)
        return [
            ("FieldValueNotSupported", path, f"Unsupported value: {json.dumps(item)}: supported values: {supported}")
        ]
    return []


def built_in(
    manifest: Mapping[str, Any], group: str, kind: str, old: Mapping[str, Any] | None, subresource: str = ""
) -> Causes:
    """Check what a schema cannot say about a built-in kind; what nobody changes is not held against whoever changes something else."""
    if (group, kind) == (device_validity.GROUP, "ResourceClaim") and (
        found := device_validity.claim_status(manifest, old)
    ):
        return found
    rule = _RULES.get((group, f"{kind}/{subresource}")) or _RULES.get((group, kind))
    if (
        rule is not None
        and old is not None
        and "spec" in manifest
        and structure.same(manifest["spec"], old.get("spec"))
    ):
        return []
    return [] if rule is None else rule(manifest, old)


def _pod(manifest: Mapping[str, Any], old: Mapping[str, Any] | None) -> Causes:
    found = pod_validity.pod_spec(structure.mapping(manifest, "spec"), "spec")
    return found if old is None else found + pod_validity.pod_change(manifest, old)


def _secret(manifest: Mapping[str, Any], old: Mapping[str, Any] | None) -> Causes:
    return access_validity.token_secret(manifest) + _immutable(manifest, old)


def _priority(manifest: Mapping[str, Any], old: Mapping[str, Any] | None) -> Causes:
    value = manifest.get("value", 0)
    name = manifest["metadata"]["name"]
    if old is not None and old.get("value", 0) != value:
        return [("FieldValueForbidden", "value", "Forbidden: may not be changed in an update.")]
    if isinstance(value, int) and value > 1_000_000_000 and not name.startswith("system-"):
        return [
            (
                "FieldValueForbidden",
                "value",
                "Forbidden: maximum allowed value of a user defined priority is 1000000000",
            )
        ]
    if old is None and name.startswith("system-") and name not in ("system-cluster-critical", "system-node-critical"):
        return [
            (
                "FieldValueForbidden",
                "metadata.name",
                f"Forbidden: priority class names with 'system-' prefix are reserved for system use only. error: {name} is not a known system priority class",
            )
        ]
    return []


def _immutable(manifest: Mapping[str, Any], old: Mapping[str, Any] | None) -> Causes:
    if old is None or old.get("immutable") is not True:
        return []
    fields = ("data", "binaryData", "immutable", "type")
    return [
        ("FieldValueForbidden", f, "Forbidden: field is immutable when `immutable` is set")
        for f in fields
        if manifest.get(f) != old.get(f)
    ]


Rule = Callable[["Mapping[str, Any]", "Mapping[str, Any] | None"], "Causes"]


def _alone(judge: Callable[[Mapping[str, Any]], Causes]) -> Rule:
    """Make a rule of what looks at the new object only."""
    return lambda manifest, _: judge(manifest)


def _workload(kind: str) -> Rule:
    return lambda manifest, old: workload_validity.workload(manifest, kind, old)


_RULES: Final[Mapping[tuple[str, str], Rule]] = {
    ("", "Pod"): _pod,
    ("", "Pod/resize"): resize_validity.pod_resize,
    ("", "ConfigMap"): _immutable,
    ("", "Secret"): _secret,
    ("", "Node"): _alone(placement_validity.taints),
    ("", "LimitRange"): _alone(policy_validity.limit_range),
    ("", "ResourceQuota"): _alone(policy_validity.quota),
    ("", "Service"): _alone(policy_validity.service),
    ("", "PersistentVolumeClaim"): policy_validity.claim,
    ("", "ReplicationController"): _workload("ReplicationController"),
    ("apps", "Deployment"): _workload("Deployment"),
    ("apps", "ReplicaSet"): _workload("ReplicaSet"),
    ("apps", "StatefulSet"): _workload("StatefulSet"),
    ("apps", "DaemonSet"): _workload("DaemonSet"),
    ("batch", "Job"): workload_validity.job,
    ("batch", "CronJob"): _alone(workload_validity.cron_job),
    ("policy", "PodDisruptionBudget"): _alone(policy_validity.budget),
    ("scheduling.k8s.io", "PriorityClass"): _priority,
    (gang_validity.GROUP, "PodGroup"): gang_validity.pod_group,
    (gang_validity.GROUP, "Workload"): gang_validity.workload,
    (device_validity.GROUP, "DeviceClass"): _alone(device_validity.device_class),
    (device_validity.GROUP, "DeviceTaintRule"): _alone(slice_validity.taint_rule),
    (device_validity.GROUP, "ResourceClaim"): device_validity.claim,
    (device_validity.GROUP, "ResourceClaimTemplate"): device_validity.template,
    (device_validity.GROUP, "ResourceSlice"): slice_validity.resource_slice,
    (webhook_validity.GROUP, "MutatingWebhookConfiguration"): webhook_validity.configuration,
    (webhook_validity.GROUP, "ValidatingWebhookConfiguration"): webhook_validity.configuration,
    (access_validity.GROUP, "Role"): access_validity.role,
    (access_validity.GROUP, "ClusterRole"): access_validity.role,
    (access_validity.GROUP, "RoleBinding"): access_validity.binding,
    (access_validity.GROUP, "ClusterRoleBinding"): access_validity.binding,
}
