"""What stands between a valid object and the store: namespaces that must exist, priority classes, limit ranges, quotas, addresses of services."""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING, Any, Final

from pumice.api import kinds
from pumice.apiserver import gangs, quota_scopes, quota_usage, resizing, statuses
from pumice.apiserver.built_in import defaults, pod_validity
from pumice.sim import deletion, priorities, structure
from pumice.sim.identity import Key

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pumice.apiserver.requests import Target
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
        self.gangs = gangs.Gangs(store)
        self.quotas = quota_usage.QuotaUsage(store)
        store.observe(self._seen)

    def check_namespace(self, manifest: Document, resource: Resource, namespace: str) -> None:
        """Refuse a new object whose namespace is not there, or is going."""
        if resource.namespaced:
            self._in_namespace(resource, manifest["metadata"].get("name", ""), namespace)

    def complete(self, manifest: Document, resource: Resource, namespace: str) -> None:
        """Complete a new object, or refuse it."""
        self.check_namespace(manifest, resource, namespace)
        kind = resource.kind
        if kind is kinds.POD:
            self._pod(manifest, namespace)
        elif kind is kinds.SERVICE:
            self._address(manifest)
        elif kind is kinds.PERSISTENT_VOLUME_CLAIM:
            self._storage_class(manifest)
        elif kind is kinds.NATIVE_POD_GROUP:
            self.gangs.admit(manifest, namespace)

    def charge(self, manifest: Document, resource: Resource, namespace: str) -> None:
        """Refuse a new object that a quota has no room for; between this and the writing of it nothing else may be written."""
        for quota in self.quotas.quotas(namespace):
            if _concerns(quota, manifest, resource):
                self._within_quota(manifest, resource, quota)

    def resize(self, manifest: Document, old: Mapping[str, Any], target: Target) -> None:
        """Refuse another size of a pod that its node could never grant, that a range forbids, or that a quota has no room for."""
        resizing.check_node(manifest, self._store)
        if ranges := self._ranges(target.namespace):
            self._limits(structure.copied(manifest), ranges)
        for quota in self.quotas.quotas(target.namespace):
            if _concerns(quota, manifest, target.resource):
                self._within_quota(manifest, target.resource, quota, old)

    def _seen(self, key: Key, _: WatchEventType, __: Mapping[str, Any]) -> None:
        if key.kind is kinds.PRIORITY_CLASS:
            self._classes = None

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
        if ranges := self._ranges(namespace):
            manifest["spec"] = spec = structure.copied(spec)
            self._limits(manifest, ranges)
            _check_amounts(manifest)
            manifest["status"]["qosClass"] = defaults.quality(spec)

    def _ranges(self, namespace: str) -> list[Mapping[str, Any]]:
        return [each for each in self._store.scan(LIMIT_RANGE) if each["metadata"]["namespace"] == namespace]

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

    def _within_quota(
        self, manifest: Document, resource: Resource, quota: Mapping[str, Any], old: Mapping[str, Any] | None = None
    ) -> None:
        wanted, hard = quota_usage.charges(resource.kind, manifest), structure.mapping(quota, "spec", "hard")
        of_pod = resource.kind is kinds.POD
        missing = sorted(each for each in hard if of_pod and each in _MUST_STATE and each not in wanted)
        name = manifest["metadata"].get("name", "")
        if missing:
            container = manifest["spec"]["containers"][0]["name"]
            listed = "; ".join(f"{each} for: {container}" for each in missing)
            why = f"failed quota: {quota['metadata']['name']}: must specify {listed}"
            raise statuses.forbidden(resource.plural, resource.group, name, why)
        if old is not None:
            before = quota_usage.charges(resource.kind, old)
            wanted = {each: more for each in wanted if (more := wanted[each] - before.get(each, 0)) > 0}
        used = self.quotas.used(quota)
        over = [
            each
            for each in sorted(wanted)
            if each in hard and used.get(each, 0) + wanted[each] > quota_usage.thousandths(hard[each])
        ]
        if over:
            why = (
                f"exceeded quota: {quota['metadata']['name']}, requested: {quota_usage.amounts_text(over, wanted)}, "
                f"used: {quota_usage.amounts_text(over, used)}, "
                f"limited: {','.join(f'{each}={hard[each]}' for each in over)}"
            )
            raise statuses.forbidden(resource.plural, resource.group, name, why)

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


def _concerns(quota: Mapping[str, Any], manifest: Mapping[str, Any], resource: Resource) -> bool:
    """Tell whether a quota counts a new object: one with scopes counts the pods that fit them."""
    if not quota_scopes.is_scoped(quota):
        return True
    return resource.kind is kinds.POD and quota_scopes.counts(quota, manifest)


def _check_amounts(pod: Document) -> None:
    """Refuse a pod whose own requests do not go with limits that a range has given it."""
    found: statuses.Causes = []
    for field in ("initContainers", "containers"):
        for index, container in enumerate(pod["spec"].get(field) or ()):
            found += pod_validity.resources(container, f"spec.{field}[{index}]")
    if found:
        raise statuses.invalid("Pod", "", pod["metadata"].get("name", ""), found)


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
    amounts = quota_usage.pod_charges(manifest)

    def total(part: str, name: str) -> str | None:
        amount = amounts.get(f"{part}.{name}")
        return None if amount is None else f"{amount}m"

    _check_bounds(manifest, limit, "Pod", total)


def _check_bounds(manifest: Document, limit: Mapping[str, Any], what: str, stated: Callable[[str, str], Any]) -> None:
    problems = []
    for name, most in structure.mapping(limit, "max").items():
        amount = stated("limits", name)
        if amount is not None and quota_usage.thousandths(amount) > quota_usage.thousandths(most):
            problems.append(f"maximum {name} usage per {what} is {most}, but limit is {amount}")
    for name, least in structure.mapping(limit, "min").items():
        amount = stated("requests", name)
        if amount is not None and quota_usage.thousandths(amount) < quota_usage.thousandths(least):
            problems.append(f"minimum {name} usage per {what} is {least}, but request is {amount}")
    if problems:
        listed = problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]"
        raise statuses.forbidden("pods", "", manifest["metadata"].get("name", ""), listed)
