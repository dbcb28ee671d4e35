"""What stands between a valid object and the store: namespaces that must exist, priority classes, limit ranges, quotas, addresses of services."""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING, Any, Final

from pumice.api import kinds, quantity
from pumice.apiserver import quota_scopes, statuses
from pumice.apiserver.built_in import defaults
from pumice.sim import deletion, priorities, structure
from pumice.sim.identity import Key

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pumice.apiserver.resources import Resource
    from pumice.sim.history import WatchEventType
    from pumice.sim.store import ObjectStore

Document = dict[str, Any]
_ADDRESSES: Final = ipaddress.ip_network("10.96.0.0/16")
_DEFAULT_CLASS: Final = "storageclass.kubernetes.io/is-default-class"
LIMIT_RANGE: Final = kinds.Kind(name="LimitRange", group="", version="v1", plural="limitranges", namespaced=True)


class Admission:
    """Judges what is created; it looks at the store, and remembers only what would be slow to count."""

    def __init__(self, store: ObjectStore) -> None:
        self._store = store
        self._classes: priorities.PriorityClasses | None = None
        self._next_address = 10
        self._usage: dict[
            str, dict[str, int]
        ] = {}  # namespace -> resource -> amount in thousandths, of the pods that are counted
        self._quotas: dict[str, None] = {}  # namespaces that have a quota
        store.observe(self._seen)

    def admit(self, manifest: Document, resource: Resource, namespace: str) -> None:
        """Complete a new object, or refuse it."""
        if resource.namespaced:
            self._in_namespace(resource, manifest["metadata"].get("name", ""), namespace)
        kind = resource.kind
        if kind is kinds.POD:
            self._pod(manifest, namespace)
        elif kind is kinds.SERVICE:
            self._address(manifest)
        elif kind is kinds.PERSISTENT_VOLUME_CLAIM:
            self._storage_class(manifest)
        if self._quotas and namespace in self._quotas:
            self._within_quota(manifest, resource, namespace)

    def _seen(self, key: Key, event_type: WatchEventType, _: Mapping[str, Any]) -> None:
        if key.kind is kinds.PRIORITY_CLASS:
            self._classes = None
        elif key.kind is kinds.RESOURCE_QUOTA and event_type != "DELETED":
            self._quotas[key.namespace] = None

    def _in_namespace(self, resource: Resource, name: str, namespace: str) -> None:
        home = self._store.find(Key(kinds.NAMESPACE, "", namespace))
        if home is None:
            raise statuses.not_found("namespaces", "", namespace)
        if deletion.is_terminating(home) and resource.kind is not kinds.EVENT:
            why = f"unable to create new content in namespace {namespace} because it is being terminated"
            problem = statuses.forbidden(resource.plural, resource.group, name, why)
            cause = {
                "reason": "NamespaceTerminating",
                "message": f"namespace {namespace} is being terminated",
                "field": "metadata.namespace",
            }
            problem.details = {**(problem.details or {}), "causes": [cause]}
            raise problem

    # ---- pods

    def _pod(self, manifest: Document, namespace: str) -> None:
        spec = manifest["spec"] = dict(manifest["spec"])  # it may be shared with other pods
        self._priority(manifest, spec)
        ranges = [each for each in self._store.scan(LIMIT_RANGE) if each["metadata"]["namespace"] == namespace]
        if ranges:
            manifest["spec"] = spec = structure.copied(spec)
            self._limits(manifest, ranges)
            manifest["status"]["qosClass"] = defaults.quality(spec)

    def _priority(self, manifest: Document, spec: Document) -> None:
        if self._classes is None:
            self._classes = priorities.PriorityClasses(self._store.scan(kinds.PRIORITY_CLASS))
        name = spec.get("priorityClassName")
        if name and self._store.find(Key(kinds.PRIORITY_CLASS, "", str(name))) is None:
            pod = manifest["metadata"].get("name", "")
            raise statuses.forbidden("pods", "", pod, f"no PriorityClass with name {name} was found")
        stated = spec.pop("priority", None)
        spec.update(self._classes.admit(spec))
        spec.setdefault("priority", 0)
        spec.setdefault("preemptionPolicy", "PreemptLowerPriority")
        if stated is not None and stated != spec["priority"]:
            why = f"the integer value of priority ({stated}) must not be provided in pod spec; priority admission controller computed {spec['priority']} from the given PriorityClass name"  # fmt: skip
            raise statuses.forbidden("pods", "", manifest["metadata"].get("name", ""), why)

    def _limits(self, manifest: Document, ranges: list[Mapping[str, Any]]) -> None:
        for each in ranges:
            for limit in structure.mapping(each, "spec").get("limits") or ():
                if limit.get("type") == "Container":
                    for container in (manifest["spec"].get("initContainers") or []) + manifest["spec"]["containers"]:
                        _limit_container(manifest, container, limit)
                elif limit.get("type") == "Pod":
                    _limit_pod(manifest, limit)

    # ---- quotas

    def _within_quota(self, manifest: Document, resource: Resource, namespace: str) -> None:
        wanted = charges(manifest, resource)
        if not wanted:
            return
        for quota in self._store.scan(kinds.RESOURCE_QUOTA):
            if quota["metadata"]["namespace"] != namespace or not _concerns(quota, manifest, resource):
                continue
            hard = structure.mapping(quota, "spec", "hard")
            missing = sorted(
                name for name in hard if resource.kind is kinds.POD and name in _MUST_STATE and name not in wanted
            )
            name = manifest["metadata"].get("name", "")
            if missing:
                container = manifest["spec"]["containers"][0]["name"]
                listed = "; ".join(f"{each} for: {container}" for each in missing)
                why = f"failed quota: {quota['metadata']['name']}: must specify {listed}"
                raise statuses.forbidden(resource.plural, resource.group, name, why)
            used = self.used(quota)
            over = [
                each
                for each in sorted(wanted)
                if each in hard and used.get(each, 0) + wanted[each] > _thousandths(hard[each])
            ]
            if over:
                why = (
                    f"exceeded quota: {quota['metadata']['name']}, requested: {_amounts(over, wanted)}, "
                    f"used: {_amounts(over, used)}, limited: {','.join(f'{each}={hard[each]}' for each in over)}"
                )
                raise statuses.forbidden(resource.plural, resource.group, name, why)

    def used(self, quota: Mapping[str, Any]) -> dict[str, int]:
        """Add up what the objects of a namespace take, of the resources that a quota names."""
        namespace, scoped = quota["metadata"]["namespace"], quota_scopes.is_scoped(quota)
        used = dict.fromkeys(structure.mapping(quota, "spec", "hard"), 0)
        for pod in self._store.inside(kinds.POD, namespace):
            if not deletion.is_finished(pod) and (not scoped or quota_scopes.counts(quota, pod)):
                for name, amount in pod_charges(pod).items():
                    if name in used:
                        used[name] += amount
        return used if scoped else used | self._counted(namespace, used)

    def _counted(self, namespace: str, names: Mapping[str, int]) -> dict[str, int]:
        """Count objects other than pods, and add up what claims ask for."""
        found: dict[str, int] = {}
        for kind in self._store.known_kinds():
            stated = {f"count/{statuses.qualified(kind.plural, kind.group)}"} | ({kind.plural} & _PLAINLY)
            if kind is not kinds.POD and (asked := stated & names.keys()):
                found |= dict.fromkeys(asked, sum(1000 for _ in self._store.inside(kind, namespace)))
        if _STORAGE in names:
            claims = self._store.inside(kinds.PERSISTENT_VOLUME_CLAIM, namespace)
            found[_STORAGE] = sum(_claimed(claim) for claim in claims)
        return found

    # ---- other kinds

    def _address(self, manifest: Document) -> None:
        spec = manifest["spec"]
        if spec.get("type") == "ExternalName" or spec.get("clusterIP"):
            if spec.get("clusterIP"):
                spec.setdefault("clusterIPs", [spec["clusterIP"]])
            return
        taken = {structure.mapping(each, "spec").get("clusterIP") for each in self._store.scan(kinds.SERVICE)}
        while str(_ADDRESSES[self._next_address]) in taken:
            self._next_address = self._next_address % (_ADDRESSES.num_addresses - 2) + 1
        spec["clusterIP"] = str(_ADDRESSES[self._next_address])
        spec["clusterIPs"] = [spec["clusterIP"]]

    def _storage_class(self, manifest: Document) -> None:
        if manifest["spec"].get("storageClassName") is not None:
            return
        found = [
            each["metadata"]["name"]
            for each in self._store.scan(kinds.STORAGE_CLASS)
            if structure.mapping(each, "metadata", "annotations").get(_DEFAULT_CLASS) == "true"
        ]
        if found:
            manifest["spec"]["storageClassName"] = found[-1]


_MUST_STATE: Final = frozenset({"cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"})
_STORAGE: Final = "requests.storage"
_PLAINLY: Final = frozenset({"configmaps", "persistentvolumeclaims", "replicationcontrollers", "resourcequotas", "secrets", "services"})  # fmt: skip
"""Kinds that a quota may name without `count/`."""


def _concerns(quota: Mapping[str, Any], manifest: Mapping[str, Any], resource: Resource) -> bool:
    """Tell whether a quota counts a new object: one with scopes counts the pods that fit them."""
    if not quota_scopes.is_scoped(quota):
        return True
    return resource.kind is kinds.POD and quota_scopes.counts(quota, manifest)


def charges(manifest: Mapping[str, Any], resource: Resource) -> dict[str, int]:
    """Give what a new object takes of a quota, in thousandths."""
    if resource.kind is kinds.POD:
        return pod_charges(manifest)
    counted = f"count/{statuses.qualified(resource.plural, resource.group)}"
    found = {counted: 1000, resource.plural: 1000}
    if resource.kind is kinds.PERSISTENT_VOLUME_CLAIM:
        found[_STORAGE] = _claimed(manifest)
    return found


def _claimed(claim: Mapping[str, Any]) -> int:
    return _thousandths(structure.mapping(claim, "spec", "resources", "requests").get("storage", 0))


def pod_charges(pod: Mapping[str, Any]) -> dict[str, int]:
    """Give what a pod takes of a quota, in thousandths."""
    found = {"pods": 1000, "count/pods": 1000}
    spec = structure.mapping(pod, "spec")
    for part in ("requests", "limits"):
        running: dict[str, int] = {}
        for container in spec.get("containers") or ():
            for name, amount in structure.mapping(container, "resources", part).items():
                running[name] = running.get(name, 0) + _thousandths(amount)
        for container in spec.get("initContainers") or ():
            for name, amount in structure.mapping(container, "resources", part).items():
                running[name] = max(running.get(name, 0), _thousandths(amount))
        found |= {f"{part}.{name}": amount for name, amount in running.items()}
        if part == "requests":
            found |= running
    return found


def _thousandths(amount: Any) -> int:
    try:
        return int(quantity.parse(str(amount)) * 1000)
    except quantity.QuantityError:
        return 0


def _amounts(names: list[str], amounts: Mapping[str, int]) -> str:
    return ",".join(f"{name}={amount_text(name, amounts.get(name, 0))}" for name in names)


def _amount(thousandths: int) -> str:
    return f"{thousandths}m" if thousandths % 1000 else str(thousandths // 1000)


def amount_text(name: str, thousandths: int) -> str:
    """Say how much is used of a resource, in the unit that its name suggests."""
    if "memory" in name or "storage" in name:
        return quantity.format_bytes(thousandths // 1000)
    return _amount(thousandths)


def _limit_container(manifest: Document, container: Document, limit: Mapping[str, Any]) -> None:
    resources = container.setdefault("resources", {})
    for part, source in (("limits", "default"), ("requests", "defaultRequest")):
        stated = resources.setdefault(part, {})
        for name, amount in structure.mapping(limit, source).items():
            if (
                part == "requests"
                and name not in stated
                and name in resources["limits"]
                and name not in structure.mapping(limit, "default")
            ):
                stated[name] = resources["limits"][name]
            stated.setdefault(name, amount)
        if not stated:
            del resources[part]
    _check_bounds(manifest, limit, "Container", lambda part, name: structure.mapping(resources, part).get(name))


def _limit_pod(manifest: Document, limit: Mapping[str, Any]) -> None:
    amounts = pod_charges(manifest)

    def total(part: str, name: str) -> str | None:
        amount = amounts.get(f"{part}.{name}")
        return None if amount is None else f"{amount}m"

    _check_bounds(manifest, limit, "Pod", total)


def _check_bounds(manifest: Document, limit: Mapping[str, Any], what: str, stated: Callable[[str, str], Any]) -> None:
    problems = []
    for name, most in structure.mapping(limit, "max").items():
        amount = stated("limits", name)
        if amount is not None and _thousandths(amount) > _thousandths(most):
            problems.append(f"maximum {name} usage per {what} is {most}, but limit is {amount}")
    for name, least in structure.mapping(limit, "min").items():
        amount = stated("requests", name)
        if amount is not None and _thousandths(amount) < _thousandths(least):
            problems.append(f"minimum {name} usage per {what} is {least}, but request is {amount}")
    if problems:
        listed = problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]"
        raise statuses.forbidden("pods", "", manifest["metadata"].get("name", ""), listed)
