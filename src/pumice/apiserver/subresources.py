"""The subresources of objects: binding, eviction, scale, the finalizing of a namespace."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from pumice.api import kinds
from pumice.apiserver import budgets, deleting, statuses
from pumice.apiserver.webhooks.consulting import Asked
from pumice.sim import deletion, errors, structure
from pumice.sim.identity import Key

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pumice.apiserver.requests import Options, Target
    from pumice.apiserver.resources import Resource
    from pumice.apiserver.webhooks.asking import Asking
    from pumice.apiserver.webhooks.consulting import Consulting
    from pumice.apiserver.writing import Writing
    from pumice.sim.store import ObjectStore

Document = dict[str, Any]
SUCCESS: Document = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}


class Subresources:
    """Serves them."""

    def __init__(
        self, store: ObjectStore, writing: Writing, deleter: deleting.Deleting, consulting: Consulting
    ) -> None:
        self._store = store
        self._writing = writing
        self._deleting = deleter
        self._consulting = consulting

    def asking(
        self,
        target: Target,
        body: Any,
        options: Options,
        warnings: list[str],
        *,
        old: Document | None = None,
    ) -> Asking[Any]:
        """Ask webhooks about what comes through a subresource, and give what they make of it."""
        operation = "CREATE" if old is None else "UPDATE"
        if not isinstance(body, dict) or not self._consulting.concerns(operation, target):
            return body
        asked = self._asked(operation, target, body, old, options)
        yield from self._consulting.changed(asked, warnings)
        yield from self._consulting.judged(asked, warnings)
        return asked.new

    def _asked(self, operation: str, target: Target, body: Document, old: Document | None, options: Options) -> Asked:
        group, version, kind = _sort(target)
        body = {"apiVersion": f"{group}/{version}" if group else version, "kind": kind, **body}
        body["metadata"] = {"name": target.name, "namespace": target.namespace, **structure.mapping(body, "metadata")}
        return Asked(
            operation=operation,
            target=target,
            name=target.name,
            new=body,
            old=old,
            kind=(group, version, kind),
            user=options.user,
            options={
                "kind": "CreateOptions" if operation == "CREATE" else "UpdateOptions",
                "apiVersion": "meta.k8s.io/v1",
            },
            dry_run=options.dry_run,
        )

    # ---- binding

    def bind(self, target: Target, body: Any, *, dry_run: bool) -> Document:
        """Assign a pod to a node."""
        key = Key(kinds.POD, target.namespace, target.name)
        if self._store.find(key) is None:
            raise statuses.not_found("pods", "", target.name)
        wanted = structure.mapping(body, "target")
        if wanted.get("kind") not in (None, "", "Node"):
            cause = (
                "FieldValueNotSupported",
                "target.kind",
                f'Unsupported value: "{wanted.get("kind")}": supported values: "Node"',
            )
            raise statuses.invalid("Binding", "", target.name, [cause])
        if not wanted.get("name"):
            raise statuses.invalid(
                "Binding", "", target.name, [("FieldValueRequired", "target.name", "Required value")]
            )
        metadata = structure.mapping(body, "metadata")
        held = structure.mapping(self._store.peek(key), "spec").get("nodeName")
        if held:
            why = f'pod {target.name} is already assigned to node "{held}"'
            raise statuses.conflict("pods/binding", "", target.name, why)
        if not dry_run:
            try:
                self._store.bind(
                    key,
                    uid=metadata.get("uid") or "",
                    node=wanted["name"],
                    annotations=structure.mapping(metadata, "annotations") or None,
                )
            except errors.ConflictError as error:
                raise statuses.conflict("pods/binding", "", target.name, str(error)) from None
        return SUCCESS

    # ---- eviction

    def evict(self, target: Target, body: Any, *, dry_run: bool) -> Mapping[str, Any]:
        """Delete a pod as far as the budgets of those it belongs to allow."""
        key = Key(kinds.POD, target.namespace, target.name)
        pod = self._store.find(key)
        if pod is None:
            raise statuses.not_found("pods", "", target.name)
        options = structure.mapping(body, "deleteOptions")
        ready = deletion.is_bound(pod) and not deletion.is_finished(pod) and not deletion.is_terminating(pod)
        if ready:
            self._check_budgets(key, pod)
            if not dry_run:
                self._tell_eviction(key, pod)
        self._deleting.delete(target, options, dry_run=dry_run)
        return SUCCESS

    def _tell_eviction(self, key: Key, pod: Mapping[str, Any]) -> None:
        """Say on a pod why it goes, so that whoever made it can tell an eviction from a failure."""
        told = {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "EvictionByEvictionAPI",
            "message": "Eviction API: evicting",
            "lastTransitionTime": self._writing.stamp(),
        }
        self._store.overwrite(key, structure.with_condition(dict(pod), told))

    def _check_budgets(self, key: Key, pod: Mapping[str, Any]) -> None:
        stated = self._store.scan(kinds.POD_DISRUPTION_BUDGET)
        covering = [each for each in stated if budgets.covers(each, pod, selector_text)]
        if len(covering) > 1:
            raise statuses.Problem(
                500, "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
            )
        for budget in covering:
            figures = budget_figures(budget, self._store)
            if budgets.lets_go(budget, figures, pod):
                continue
            name = budget["metadata"]["name"]
            message = f"The disruption budget {name} needs {figures['desiredHealthy']} healthy pods and has {figures['currentHealthy']} currently"
            details = {"causes": [{"reason": "DisruptionBudget", "message": message}]}
            text = "Cannot evict pod as it would violate the pod's disruption budget."
            raise statuses.Problem(429, text, details=details)
        del key

    # ---- scale

    def scale(self, target: Target) -> Document:
        """Give the scale of an object."""
        resource = target.resource
        found = self._store.find(Key(resource.kind, target.namespace, target.name))
        if found is None:
            raise statuses.not_found(resource.plural, resource.group, target.name)
        return scale_of(found, resource)

    def rescale(self, target: Target, wanted: Document, options: Options, warnings: list[str]) -> Document:
        """Write the number of replicas."""
        resource = target.resource
        replicas = structure.mapping(wanted, "spec").get("replicas", 0)
        if isinstance(replicas, bool) or not isinstance(replicas, int) or replicas < 0:
            cause = (
                "FieldValueInvalid",
                "spec.replicas",
                f"Invalid value: {replicas!r}: must be greater than or equal to 0",
            )
            raise statuses.invalid("Scale", "autoscaling", target.name, [cause])
        body: Document = {}
        path = _path(resource, "specReplicasPath", "spec.replicas")
        inner: Any = replicas
        for part in reversed(path):
            inner = {part: inner}
        body = inner
        metadata = {
            k: v for k, v in structure.mapping(wanted, "metadata").items() if k in ("uid", "resourceVersion") and v
        }
        whole = type(target)(resource=resource, namespace=target.namespace, name=target.name)
        written, _ = self._writing.patch(
            whole,
            ("merge", {**body, **({"metadata": metadata} if metadata else {})}),
            msgspec.structs.replace(options, through="scale", asks=False),
            warnings,
        )
        return scale_of(written, resource)

    # ---- namespaces

    def finalizing(self, target: Target, body: Any, options: Options, warnings: list[str]) -> Asking[Mapping[str, Any]]:
        """Write the finalizers of a namespace; the last one lets a terminating one go."""
        key = Key(kinds.NAMESPACE, "", target.name)
        old = self._store.find(key)
        if old is None:
            raise statuses.not_found("namespaces", "", target.name)
        asking = self.asking(target, _finalized(old, body), options, warnings, old=dict(old))
        finalizers = structure.mapping((yield from asking), "spec").get("finalizers") or []
        old = self._store.find(key)
        if old is None:
            raise statuses.not_found("namespaces", "", target.name)
        new = _finalized(old, {"spec": {"finalizers": finalizers}})
        if options.dry_run:
            return new
        self._store.overwrite(key, new)
        left = self._store.find(key)
        if left is not None and deletion.is_terminating(left) and not finalizers and not deletion.finalizers(left):
            self._store.remove(key)
        return new


def _sort(target: Target) -> tuple[str, str, str]:
    """Give group, version and kind of what comes through a subresource."""
    own = (target.resource.group, target.resource.version, target.resource.kind_name)
    kind = target.resource.subresources[target.subresource]["responseKind"] if target.subresource else {}
    return (kind.get("group", ""), kind["version"], kind["kind"]) if kind.get("version") else own


def _finalized(namespace: Mapping[str, Any], body: Any) -> Document:
    """Give a namespace with the finalizers that a body states."""
    finalizers = structure.mapping(body, "spec").get("finalizers") or []
    spec = {**structure.mapping(namespace, "spec"), "finalizers": list(finalizers)}
    if not finalizers:
        spec.pop("finalizers")
    return {**namespace, "spec": spec}


def scale_of(manifest: Mapping[str, Any], resource: Resource) -> Document:
    """Give an object's scale."""
    metadata = {
        k: v
        for k, v in manifest["metadata"].items()
        if k in ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    }
    status: Document = {"replicas": _at(manifest, _path(resource, "statusReplicasPath", "status.replicas")) or 0}
    selector = _at(manifest, _path(resource, "labelSelectorPath", "spec.selector")) if resource.scale is None or resource.scale.get("labelSelectorPath") else None  # fmt: skip
    if selector:
        status["selector"] = selector if isinstance(selector, str) else selector_text(selector)
    spec = {"replicas": _at(manifest, _path(resource, "specReplicasPath", "spec.replicas")) or 0}
    return {"kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": metadata, "spec": spec, "status": status}


def selector_text(selector: Mapping[str, Any]) -> str:
    """Say a selector as a query has it."""
    if "matchLabels" not in selector and "matchExpressions" not in selector:
        return ",".join(f"{key}={value}" for key, value in sorted(selector.items()))
    parts = [f"{key}={value}" for key, value in sorted((selector.get("matchLabels") or {}).items())]
    for each in selector.get("matchExpressions") or ():
        values = ",".join(sorted(each.get("values") or ()))
        word = {"In": f"{each['key']} in ({values})", "NotIn": f"{each['key']} notin ({values})", "Exists": each["key"]}
        parts.append(word.get(each["operator"], f"!{each['key']}"))
    return ",".join(parts)


def _path(resource: Resource, field: str, default: str) -> tuple[str, ...]:
    stated = (resource.scale or {}).get(field, f".{default}")
    return tuple(str(stated).strip(".").split("."))


def _at(manifest: Mapping[str, Any], path: tuple[str, ...]) -> Any:
    return structure.mapping(manifest, *path[:-1]).get(path[-1])


def budget_figures(budget: Mapping[str, Any], store: ObjectStore) -> Document:
    """Count what a disruption budget allows now."""
    return budgets.figures(budget, store, selector_text)
