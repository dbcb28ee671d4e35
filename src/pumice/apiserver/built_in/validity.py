"""What makes an object of a built-in kind invalid, in the words of kube-apiserver: names, labels, required values, amounts, what may not change."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final

from pumice.api import quantity
from pumice.sim import structure

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pumice.apiserver.schemas.nodes import Node
    from pumice.apiserver.statuses import Causes

Document = dict[str, Any]
_LABEL: Final = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN: Final = rf"{_LABEL}(\.{_LABEL})*"
_QUALIFIED: Final = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
_IMAGE_FIELDS: Final = frozenset({"image"})
_DNS_LABELS: Final = frozenset({"Namespace"})
_PATH_SEGMENTS: Final = frozenset({"ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"})
_SELECTED: Final = frozenset({"Deployment", "ReplicaSet", "StatefulSet", "DaemonSet"})


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
    for key, value in labels.items():
        found += _label_key(key, "metadata.labels")
        if not isinstance(value, str) or len(value) > 63 or (value and not _QUALIFIED.fullmatch(value)):
            text = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"  # fmt: skip
            found.append(("FieldValueInvalid", "metadata.labels", f"Invalid value: {json.dumps(value)}: {text}"))
    annotations = meta.get("annotations") or {}
    for key in annotations:
        found += _label_key(key.lower(), "metadata.annotations")
    if sum(len(key) + len(str(value)) for key, value in annotations.items()) > 256 * 1024:
        found.append(("FieldValueTooLong", "metadata.annotations", "Too long: may not be more than 262144 bytes"))
    return found


def name_problem(name: str, kind: str) -> str:
    """Say what is wrong with a name, or nothing."""
    if kind in _PATH_SEGMENTS:
        wrong = next((part for part in ("/", "%") if part in name), "")
        return f"may not contain '{wrong}'" if wrong else "may not be '.' or '..'" if name in (".", "..") else ""
    if kind in _DNS_LABELS:
        if len(name) <= 63 and re.fullmatch(_LABEL, name):
            return ""
        return f"a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '{_LABEL}')" if len(name) <= 63 else "must be no more than 63 characters"  # fmt: skip
    if len(name) > 253:
        return "must be no more than 253 characters"
    if re.fullmatch(_SUBDOMAIN, name):
        return ""
    return f"a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '{_SUBDOMAIN}')"  # fmt: skip


def _label_key(key: str, field: str) -> Causes:
    prefix, slash, name = key.rpartition("/")
    good = len(name) <= 63 and _QUALIFIED.fullmatch(name) and (not slash or re.fullmatch(_SUBDOMAIN, prefix))
    if good:
        return []
    text = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"  # fmt: skip
    return [("FieldValueInvalid", field, f"Invalid value: {json.dumps(key)}: {text}")]


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


def built_in(manifest: Mapping[str, Any], group: str, kind: str, old: Mapping[str, Any] | None) -> Causes:
    """Check what a schema cannot say about a built-in kind."""
    found: Causes = []
    if kind == "Pod":
        found += _pod_spec(structure.mapping(manifest, "spec"), "spec")
        if old is not None:
            found += _pod_change(manifest, old)
    elif kind in _SELECTED and group == "apps":
        found += _workload(manifest, old)
    elif kind == "Job" and group == "batch":
        found += _job(manifest, old)
    elif kind == "PriorityClass":
        found += _priority(manifest, old)
    elif kind in {"ConfigMap", "Secret"}:
        found += _immutable(manifest, old)
    elif kind == "PersistentVolumeClaim" and old is not None:
        found += _claim_change(manifest, old)
    elif (
        kind in ("RoleBinding", "ClusterRoleBinding")
        and old is not None
        and manifest.get("roleRef") != old.get("roleRef")
    ):
        found.append(
            ("FieldValueInvalid", "roleRef", f"Invalid value: {_shown(manifest.get('roleRef'))}: cannot change roleRef")
        )
    return found


def _pod_spec(spec: Mapping[str, Any], path: str) -> Causes:
    found: Causes = []
    containers = spec.get("containers")
    if not isinstance(containers, list) or not containers:
        return [("FieldValueRequired", f"{path}.containers", "Required value")]
    names: set[str] = set()
    for field in ("initContainers", "containers"):
        for index, container in enumerate(spec.get(field) or ()):
            where = f"{path}.{field}[{index}]"
            name = container.get("name")
            if name in names:
                found.append(("FieldValueDuplicate", f"{where}.name", f"Duplicate value: {json.dumps(name)}"))
            names.add(name)
            if name and not re.fullmatch(_LABEL, str(name)):
                text = f"a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '{_LABEL}')"  # fmt: skip
                found.append(("FieldValueInvalid", f"{where}.name", f"Invalid value: {json.dumps(name)}: {text}"))
            if not container.get("image"):
                found.append(("FieldValueRequired", f"{where}.image", "Required value"))
            found += _amounts(container, where)
    grace = spec.get("terminationGracePeriodSeconds")
    if isinstance(grace, int) and grace < 0:
        found.append(
            (
                "FieldValueInvalid",
                f"{path}.terminationGracePeriodSeconds",
                f"Invalid value: {grace}: must be greater than or equal to 0",
            )
        )
    return found


def _amounts(container: Mapping[str, Any], where: str) -> Causes:
    found: Causes = []
    limits = structure.mapping(container, "resources", "limits")
    for name, amount in structure.mapping(container, "resources", "requests").items():
        try:
            wanted = quantity.parse(str(amount))
            most = quantity.parse(str(limits[name])) if name in limits else wanted
        except quantity.QuantityError:
            continue
        field = f"{where}.resources.requests"
        if wanted < 0:
            found.append(
                (
                    "FieldValueInvalid",
                    f"{field}[{name}]",
                    f'Invalid value: "{amount}": must be greater than or equal to 0',
                )
            )
        elif wanted > most:
            found.append(
                (
                    "FieldValueInvalid",
                    field,
                    f'Invalid value: "{amount}": must be less than or equal to {name} limit of {limits[name]}',
                )
            )
    return found


_MAY_CHANGE: Final = (
    "activeDeadlineSeconds",
    "terminationGracePeriodSeconds",
    "tolerations",
    "schedulingGates",
    "nodeName",
)


def _pod_change(manifest: Mapping[str, Any], old: Mapping[str, Any]) -> Causes:
    """Refuse any change of a pod's spec but of images, tolerations (added), gates (removed) and its deadline."""
    new, before = dict(structure.mapping(manifest, "spec")), dict(structure.mapping(old, "spec"))
    gated = bool(before.get("schedulingGates"))
    free = {*_MAY_CHANGE} - {"nodeName"} | ({"nodeSelector", "affinity"} if gated else set())
    gates = [each.get("name") for each in before.get("schedulingGates") or ()]
    added = [each for each in new.get("schedulingGates") or () if each.get("name") not in gates]
    if added:
        return [
            (
                "FieldValueForbidden",
                "spec.schedulingGates",
                "Forbidden: only deletion is allowed, but found new scheduling gate",
            )
        ]
    lost = [each for each in before.get("tolerations") or () if each not in (new.get("tolerations") or ())]
    if lost and not all(any(_same_but_seconds(each, one) for one in new.get("tolerations") or ()) for each in lost):
        return [
            (
                "FieldValueForbidden",
                "spec.tolerations",
                "Forbidden: existing toleration can not be modified except its tolerationSeconds",
            )
        ]
    if _without_images({k: v for k, v in new.items() if k not in free}) != _without_images(
        {k: v for k, v in before.items() if k not in free}
    ):
        text = "Forbidden: pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"  # fmt: skip
        return [("FieldValueForbidden", "spec", text)]
    return []


def _same_but_seconds(left: Mapping[str, Any], right: Mapping[str, Any]) -> bool:
    return {k: v for k, v in left.items() if k != "tolerationSeconds"} == {
        k: v for k, v in right.items() if k != "tolerationSeconds"
    }


def _without_images(spec: Document) -> Document:
    for field in ("containers", "initContainers"):
        if isinstance(spec.get(field), list):
            spec[field] = [{k: v for k, v in each.items() if k not in _IMAGE_FIELDS} for each in spec[field]]
    return spec


def _workload(manifest: Mapping[str, Any], old: Mapping[str, Any] | None) -> Causes:
    found: Causes = []
    spec = structure.mapping(manifest, "spec")
    selector, labels = structure.mapping(spec, "selector"), structure.mapping(spec, "template", "metadata", "labels")
    if not selector.get("matchLabels") and not selector.get("matchExpressions"):
        found.append(("FieldValueRequired", "spec.selector", "Required value"))
    elif any(labels.get(key) != value for key, value in structure.mapping(selector, "matchLabels").items()):
        text = f"Invalid value: {_shown(labels)}: `selector` does not match template `labels`"
        found.append(("FieldValueInvalid", "spec.template.metadata.labels", text))
    found += _pod_spec(structure.mapping(spec, "template", "spec"), "spec.template.spec")
    policy = structure.mapping(spec, "template", "spec").get("restartPolicy")
    if policy not in (None, "Always"):
        found.append(
            (
                "FieldValueNotSupported",
                "spec.template.spec.restartPolicy",
                f'Unsupported value: "{policy}": supported values: "Always"',
            )
        )
    replicas = spec.get("replicas")
    if isinstance(replicas, int) and replicas < 0:
        found.append(
            ("FieldValueInvalid", "spec.replicas", f"Invalid value: {replicas}: must be greater than or equal to 0")
        )
    if old is not None and structure.mapping(old, "spec").get("selector") != spec.get("selector"):
        found.append(
            ("FieldValueInvalid", "spec.selector", f"Invalid value: {_shown(spec.get('selector'))}: field is immutable")
        )
    return found


def _job(manifest: Mapping[str, Any], old: Mapping[str, Any] | None) -> Causes:
    spec = structure.mapping(manifest, "spec")
    found = _pod_spec(structure.mapping(spec, "template", "spec"), "spec.template.spec")
    policy = structure.mapping(spec, "template", "spec").get("restartPolicy")
    if policy not in ("OnFailure", "Never"):
        found.append(
            (
                "FieldValueRequired",
                "spec.template.spec.restartPolicy",
                'Required value: valid values: "OnFailure", "Never"',
            )
        )
    for field in ("parallelism", "completions", "backoffLimit", "ttlSecondsAfterFinished", "activeDeadlineSeconds"):
        value = spec.get(field)
        if isinstance(value, int) and value < 0:
            found.append(
                ("FieldValueInvalid", f"spec.{field}", f"Invalid value: {value}: must be greater than or equal to 0")
            )
    if old is None:
        return found
    before = structure.mapping(old, "spec")
    fixed = ["selector", "completionMode"] + (["completions"] if before.get("completionMode") != "Indexed" else [])
    fixed += [] if before.get("suspend") and not structure.mapping(old, "status").get("startTime") else ["template"]
    for field in fixed:
        if before.get(field) != spec.get(field):
            found.append(
                ("FieldValueInvalid", f"spec.{field}", f"Invalid value: {_shown(spec.get(field))}: field is immutable")
            )
    return found


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
                "Forbidden: priority class names with 'system-' prefix are reserved for system use only",
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


def _claim_change(manifest: Mapping[str, Any], old: Mapping[str, Any]) -> Causes:
    new, before = dict(structure.mapping(manifest, "spec")), dict(structure.mapping(old, "spec"))
    free = {"resources", "volumeAttributesClassName"} | ({"volumeName"} if not before.get("volumeName") else set())
    if {k: v for k, v in new.items() if k not in free} == {k: v for k, v in before.items() if k not in free}:
        return []
    text = "Forbidden: spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"
    return [("FieldValueForbidden", "spec", text)]


def _shown(value: Any) -> str:
    text = json.dumps(value, separators=(",", ":"))
    return text if len(text) <= 200 else text[:197] + "..."
