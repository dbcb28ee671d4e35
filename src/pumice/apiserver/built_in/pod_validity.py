"""What makes the spec of a pod invalid: its containers, their ports, variables, mounts and amounts, its volumes, and changes of a pod that is there."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from pumice.apiserver.built_in import placement_validity, whole_pod_validity, wrong
from pumice.sim import structure

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pumice.apiserver.statuses import Causes

Document = dict[str, Any]
_PLAIN: Final = frozenset({"cpu", "memory", "ephemeral-storage"})
_HUGE: Final = "hugepages-"
_SERVICE: Final = re.compile(r"[-a-z0-9]+")
_LONGEST_SECONDS: Final = 2_147_483_647


def pod_spec(spec: Mapping[str, Any], path: str, more_volumes: Iterable[str] = ()) -> Causes:
    """Check the spec of a pod, or of a template; volumes that others bring are named."""
    if not spec.get("containers"):
        return wrong.required(f"{path}.containers")
    found, names = _volumes(spec, path)
    volumes = {*names, *more_volumes}
    seen: set[str] = set()
    for field in ("initContainers", "containers"):
        for index, container in enumerate(spec.get(field) or ()):
            where = f"{path}.{field}[{index}]"
            found += _container(container, where, volumes)
            name = container.get("name")
            found += wrong.duplicate(f"{where}.name", name) if name in seen else []
            seen.add(name)
    found += _device_claims(spec, path)
    found += _group(spec, path)
    found += whole_pod_validity.whole_pod(spec, path)
    found += wrong.negative(spec.get("terminationGracePeriodSeconds"), f"{path}.terminationGracePeriodSeconds")
    deadline = spec.get("activeDeadlineSeconds")
    if deadline is not None and not 1 <= deadline <= _LONGEST_SECONDS:
        why = f"must be between 1 and {_LONGEST_SECONDS}, inclusive"
        found += wrong.invalid(f"{path}.activeDeadlineSeconds", deadline, why)
    for field in ("hostname", "subdomain"):
        found += wrong.label_name(spec[field], f"{path}.{field}") if spec.get(field) else []
    return found + placement_validity.placement(spec, path)


def _group(spec: Mapping[str, Any], path: str) -> Causes:
    """Check the group of Kubernetes' own that a pod names."""
    stated = spec.get("schedulingGroup")
    if stated is None:
        return []
    name, field = structure.mapping(stated).get("podGroupName"), f"{path}.schedulingGroup.podGroupName"
    if not name:
        return wrong.invalid(field, None, "must specify one of: `podGroupName`")
    return wrong.subdomain(name, field)


def _device_claims(spec: Mapping[str, Any], path: str) -> Causes:
    """Check the claims for devices that a pod names, and that its containers ask for no other."""
    found: Causes = []
    names: dict[str, None] = {}
    for index, each in enumerate(spec.get("resourceClaims") or ()):
        where, name = f"{path}.resourceClaims[{index}]", each.get("name")
        found += wrong.duplicate(f"{where}.name", name) if name in names else wrong.label_name(name, f"{where}.name")
        names[name] = None
        stated = [field for field in ("resourceClaimName", "resourceClaimTemplateName") if each.get(field)]
        if not stated:
            why = "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"
            found += wrong.invalid(where, each, why)
        elif len(stated) > 1:
            why = "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"
            found += wrong.invalid(where, each, why)
    for field in ("initContainers", "containers"):
        for index, container in enumerate(spec.get(field) or ()):
            for place, use in enumerate(structure.mapping(container, "resources").get("claims") or ()):
                where = f"{path}.{field}[{index}].resources.claims[{place}]"
                if use.get("name") not in names:
                    known = f"must be one of the names in pod.spec.resourceClaims: {', '.join(names)}"
                    text = f"Not found: {wrong.shown(use.get('name'))}: {known}"
                    found.append(("FieldValueNotFound", where, text))
    return found


def _volumes(spec: Mapping[str, Any], path: str) -> tuple[Causes, list[str]]:
    found: Causes = []
    names: dict[str, None] = {}
    for index, volume in enumerate(spec.get("volumes") or ()):
        where, name = f"{path}.volumes[{index}]", volume.get("name")
        found += wrong.label_name(name, f"{where}.name")
        found += wrong.duplicate(f"{where}.name", name) if name in names else []
        sources = [each for each in volume if each != "name"]
        for extra in sources[1:]:
            found += wrong.forbidden(f"{where}.{extra}", "may not specify more than 1 volume type")
        names[name] = None
    return found, list(names)


def _container(container: Mapping[str, Any], where: str, volumes: set[str]) -> Causes:
    found = wrong.label_name(container.get("name"), f"{where}.name")
    if not container.get("image"):
        found += wrong.required(f"{where}.image")
    policy = container.get("restartPolicy")
    if policy and policy not in ("Always", "Never", "OnFailure"):
        found += wrong.unsupported(f"{where}.restartPolicy", policy, ("Always", "Never", "OnFailure"))
    found += _ports(container, where) + _variables(container, where)
    for index, mount in enumerate(container.get("volumeMounts") or ()):
        field, name = f"{where}.volumeMounts[{index}]", mount.get("name")
        if not name:
            found += wrong.required(f"{field}.name")
        elif name not in volumes:
            found.append(("FieldValueNotFound", f"{field}.name", f"Not found: {wrong.shown(name)}"))
        if not mount.get("mountPath"):
            found += wrong.required(f"{field}.mountPath")
    return found + resources(container, where)


def _ports(container: Mapping[str, Any], where: str) -> Causes:
    found: Causes = []
    names: set[str] = set()
    for index, port in enumerate(container.get("ports") or ()):
        field, name = f"{where}.ports[{index}]", port.get("name")
        if name:
            found += _port_name(name, f"{field}.name")
            found += wrong.duplicate(f"{field}.name", name) if name in names else []
            names.add(name)
        number = port.get("containerPort")
        found += wrong.port(number, f"{field}.containerPort") if number else wrong.required(f"{field}.containerPort")
        found += wrong.port(port["hostPort"], f"{field}.hostPort") if port.get("hostPort") else []
    return found


def _port_name(name: str, field: str) -> Causes:
    if len(name) > 15:
        return wrong.invalid(field, name, "must be no more than 15 characters")
    if not _SERVICE.fullmatch(name):
        return wrong.invalid(field, name, "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if not re.search("[a-z]", name):
        return wrong.invalid(field, name, "must contain at least one letter (a-z)")
    return []


def _variables(container: Mapping[str, Any], where: str) -> Causes:
    found: Causes = []
    for index, each in enumerate(container.get("env") or ()):
        field, name = f"{where}.env[{index}]", each.get("name")
        if not name:
            found += wrong.required(f"{field}.name")
        elif "=" in name or not (name.isascii() and name.isprintable()):
            why = "a valid environment variable name must consist only of printable ASCII characters other than '='"
            found += wrong.invalid(f"{field}.name", name, why)
        if each.get("value") and each.get("valueFrom"):
            found += wrong.invalid(f"{field}.valueFrom", "", "may not be specified when `value` is not empty")
    return found


def resources(container: Mapping[str, Any], where: str) -> Causes:
    """Check what a container asks for and may use."""
    limits = structure.mapping(container, "resources", "limits")
    requests = structure.mapping(container, "resources", "requests")
    found: Causes = []
    for part, amounts in (("limits", limits), ("requests", requests)):
        for name, value in amounts.items():
            found += _amount(name, value, f"{where}.resources.{part}[{name}]")
    field, unlimited = f"{where}.resources.requests", False
    for name, value in requests.items():
        wanted, most = wrong.amount(value), wrong.amount(limits.get(name, value))
        if wanted is None or most is None:
            continue
        shared = _may_overcommit(name)
        unlimited = unlimited or (not shared and name not in limits)
        if shared and wanted > most:
            found += wrong.invalid(field, str(value), f"must be less than or equal to {name} limit of {limits[name]}")
        elif not shared and wanted != most:
            found += wrong.invalid(field, str(value), f"must be equal to {name} limit of {limits[name]}")
    if unlimited:
        why = "Limit must be set for non overcommitable resources"
        found += wrong.required(f"{where}.resources.limits", why)
    return found


def _amount(name: str, value: Any, field: str) -> Causes:
    amount = wrong.amount(value)
    if amount is None:
        return []
    if amount < 0:
        return wrong.invalid(field, str(value), wrong.NOT_NEGATIVE)
    if "/" not in name and name not in _PLAIN and not name.startswith(_HUGE):
        found = wrong.invalid(field, name, "must be a standard resource type or fully qualified")
        return found + wrong.invalid(field, name, "must be a standard resource for containers")
    if not _may_overcommit(name) and amount != int(amount):
        return wrong.invalid(field, wrong.written(value), "must be an integer")
    return []


def _may_overcommit(name: str) -> bool:
    """Tell whether more may be promised than there is: of what Kubernetes itself knows, huge pages aside."""
    return ("/" not in name or "kubernetes.io/" in name) and not name.startswith(_HUGE)


# ---- changes

_MAY_CHANGE: Final = frozenset(
    {"activeDeadlineSeconds", "terminationGracePeriodSeconds", "tolerations", "schedulingGates"}
)
_IMAGE_FIELDS: Final = frozenset({"image"})
_CHANGED: Final = "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"  # fmt: skip


def pod_change(manifest: Mapping[str, Any], old: Mapping[str, Any]) -> Causes:
    """Refuse any change of a pod's spec but of images, tolerations (added), gates (removed) and its deadline."""
    new, before = dict(structure.mapping(manifest, "spec")), dict(structure.mapping(old, "spec"))
    gated = bool(before.get("schedulingGates"))
    free = _MAY_CHANGE | ({"nodeSelector", "affinity"} if gated else set())
    gates = [each.get("name") for each in before.get("schedulingGates") or ()]
    if any(each.get("name") not in gates for each in new.get("schedulingGates") or ()):
        return wrong.forbidden("spec.schedulingGates", "only deletion is allowed, but found new scheduling gate")
    present = new.get("tolerations") or ()
    lost = [each for each in before.get("tolerations") or () if each not in present]
    if not all(any(_same_but_seconds(each, one) for one in present) for each in lost):
        why = "existing toleration can not be modified except its tolerationSeconds"
        return wrong.forbidden("spec.tolerations", why)
    if _fixed(new, free) != _fixed(before, free):
        return wrong.forbidden("spec", _CHANGED)
    return []


def _same_but_seconds(left: Mapping[str, Any], right: Mapping[str, Any]) -> bool:
    return {k: v for k, v in left.items() if k != "tolerationSeconds"} == {
        k: v for k, v in right.items() if k != "tolerationSeconds"
    }


def _fixed(spec: Mapping[str, Any], free: Iterable[str]) -> Document:
    """Give what must stay as it is: the spec without images and what is free to change."""
    kept = {name: value for name, value in spec.items() if name not in free}
    for field in ("containers", "initContainers"):
        if isinstance(kept.get(field), list):
            kept[field] = [{k: v for k, v in each.items() if k not in _IMAGE_FIELDS} for each in kept[field]]
    return kept
