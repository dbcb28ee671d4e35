"""Webhooks as their configurations state them, and which requests each of them concerns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from pumice.api import kinds
from pumice.apiserver.access import roles
from pumice.sim import structure

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pumice.apiserver.resources import Registry, Resource
    from pumice.sim.history import WatchEventType
    from pumice.sim.identity import Key
    from pumice.sim.store import ObjectStore

Document = dict[str, Any]
GROUP: Final = "admissionregistration.k8s.io"
MUTATING: Final = kinds.Kind(
    name="MutatingWebhookConfiguration", group=GROUP, version="v1", plural="mutatingwebhookconfigurations", namespaced=False
)  # fmt: skip
VALIDATING: Final = kinds.Kind(
    name="ValidatingWebhookConfiguration", group=GROUP, version="v1", plural="validatingwebhookconfigurations", namespaced=False
)  # fmt: skip
_UNASKED: Final = frozenset({GROUP, "authentication.k8s.io", "authorization.k8s.io"})
DEFAULT_SECONDS: Final = 10


class Hook(msgspec.Struct, frozen=True, eq=False, kw_only=True):
    """One webhook of a configuration."""

    configuration: str
    name: str
    client: Mapping[str, Any]
    rules: tuple[Mapping[str, Any], ...]
    exact: bool
    namespaces: Mapping[str, Any]
    objects: Mapping[str, Any]
    conditions: tuple[Mapping[str, Any], ...]
    lenient: bool  # one that cannot be asked is passed over
    seconds: int
    side_effects: str
    reinvoked: bool
    review_version: str
    judging: bool  # and changing nothing

    def speaks_of(self, operation: str, resource: Resource, subresource: str) -> bool:
        """Tell whether one of its rules is about a resource in that very version."""
        return any(_fits(rule, operation, resource, subresource) for rule in self.rules)


class Hooks:
    """All webhooks, in the order in which they are asked; it follows the store."""

    def __init__(self, store: ObjectStore, registry: Registry) -> None:
        self._store = store
        self._registry = registry
        self._generation = -1
        self._listed: dict[kinds.Kind, list[Hook]] = {}
        self._found: dict[tuple[kinds.Kind, str, Resource, str], tuple[tuple[Hook, Resource], ...]] = {}
        store.observe(self._seen)

    def _seen(self, key: Key, _: WatchEventType, __: Mapping[str, Any]) -> None:
        if key.kind.group == GROUP:
            self._generation = -1

    def about(
        self, kind: kinds.Kind, operation: str, resource: Resource, subresource: str
    ) -> tuple[tuple[Hook, Resource], ...]:
        """Give the webhooks whose rules are about a request, each with the version of the resource that it wants to see."""
        if self._generation != self._registry.generation:
            self._read()
        if not self._listed[kind]:
            return ()
        key = (kind, operation, resource, subresource)
        found = self._found.get(key)
        if found is None:
            found = self._found[key] = tuple(self._chosen(*key))
        return found

    def _chosen(
        self, kind: kinds.Kind, operation: str, resource: Resource, subresource: str
    ) -> Iterator[tuple[Hook, Resource]]:
        if resource.group in _UNASKED:
            return
        for hook in self._listed[kind]:
            if hook.speaks_of(operation, resource, subresource):
                yield hook, resource
            elif not hook.exact:
                for other in self._registry:
                    same = (other.group, other.plural) == (resource.group, resource.plural)
                    if same and hook.speaks_of(operation, other, subresource):
                        yield hook, other
                        break

    def _read(self) -> None:
        self._found.clear()
        self._generation = self._registry.generation
        for kind in (MUTATING, VALIDATING):
            stated = sorted(self._store.scan(kind), key=lambda each: each["metadata"]["name"])
            self._listed[kind] = [hook for each in stated for hook in _hooks(each)]


def _hooks(configuration: Mapping[str, Any]) -> Iterator[Hook]:
    for stated in configuration.get("webhooks") or ():
        versions = [each for each in stated.get("admissionReviewVersions") or () if each in ("v1", "v1beta1")]
        yield Hook(
            configuration=configuration["metadata"]["name"],
            name=stated["name"],
            client=structure.mapping(stated, "clientConfig"),
            rules=tuple(stated.get("rules") or ()),
            exact=stated.get("matchPolicy") == "Exact",
            namespaces=structure.mapping(stated, "namespaceSelector"),
            objects=structure.mapping(stated, "objectSelector"),
            conditions=tuple(stated.get("matchConditions") or ()),
            lenient=stated.get("failurePolicy") == "Ignore",
            seconds=stated.get("timeoutSeconds") or DEFAULT_SECONDS,
            side_effects=stated.get("sideEffects", ""),
            reinvoked=stated.get("reinvocationPolicy") == "IfNeeded",
            review_version=versions[0] if versions else "v1",
            judging=configuration["kind"] == VALIDATING.name,
        )


def _fits(rule: Mapping[str, Any], operation: str, resource: Resource, subresource: str) -> bool:
    scope = rule.get("scope") or "*"
    return (
        _has(rule.get("operations"), operation)
        and _has(rule.get("apiGroups"), resource.group)
        and _has(rule.get("apiVersions"), resource.version)
        and (scope == "*" or (scope == "Namespaced") is resource.namespaced)
        and any(_names(each, resource.plural, subresource) for each in rule.get("resources") or ())
    )


def _has(listed: Any, wanted: str) -> bool:
    return isinstance(listed, list) and ("*" in listed or wanted in listed)


def _names(stated: str, plural: str, subresource: str) -> bool:
    """Tell whether a rule's resource stands for one: `*` for all that are no subresources, `pods/*` for all of pods with theirs."""
    resource, _, below = stated.partition("/")
    return resource in ("*", plural) and below in (subresource, "*")


def selects(hook: Hook, labels: Mapping[str, Any] | None, objects: list[Mapping[str, Any]]) -> bool:
    """Tell whether a webhook's selectors fit the labels of a namespace, if there is one, and of one of the objects."""
    if hook.namespaces and labels is not None and not roles.selects(hook.namespaces, labels):
        return False
    return not hook.objects or any(
        roles.selects(hook.objects, structure.mapping(each, "metadata", "labels")) for each in objects
    )
