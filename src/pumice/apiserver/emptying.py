"""The deletion of namespaces: everything in one goes first, then the namespace itself; and a new one is given its default account and the certificate to trust."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from pumice.api import kinds
from pumice.sim import deletion, structure
from pumice.sim.identity import Key

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pumice.apiserver.resources import Registry
    from pumice.sim.history import WatchEventType
    from pumice.sim.store import ObjectStore

Document = dict[str, Any]
_ACCOUNT: Final = kinds.Kind(name="ServiceAccount", group="", version="v1", plural="serviceaccounts", namespaced=True)
_TRUSTED: Final = "kube-root-ca.crt"


def _conditions(left: Counter[str], finalizers: Counter[str]) -> list[Document]:
    """Give what Kubernetes says about a namespace that waits for its content to go."""
    remaining = ", ".join(f"{name} has {count} resource instances" for name, count in sorted(left.items()))
    held = ", ".join(f"{name} in {count} resource instances" for name, count in sorted(finalizers.items()))
    told = [
        ("NamespaceDeletionDiscoveryFailure", "False", "ResourcesDiscovered", "All resources successfully discovered"),
        ("NamespaceDeletionGroupVersionParsingFailure", "False", "ParsedGroupVersions", "All legacy kube types successfully parsed"),
        ("NamespaceDeletionContentFailure", "False", "ContentDeleted", "All content successfully deleted, may be waiting on finalization"),
        ("NamespaceContentRemaining", "True", "SomeResourcesRemain", f"Some resources are remaining: {remaining}"),
        ("NamespaceFinalizersRemaining", "True", "SomeFinalizersRemain", f"Some content in the namespace has finalizers remaining: {held}")
        if held
        else ("NamespaceFinalizersRemaining", "False", "ContentHasNoFinalizers", "All content-preserving finalizers finished"),
    ]  # fmt: skip
    return [dict(zip(("type", "status", "reason", "message"), each, strict=True)) for each in told]


class Emptier:
    """Looks again at a namespace that is going whenever something in it has gone."""

    def __init__(
        self, store: ObjectStore, registry: Registry, stamp: Callable[[], str], authority: bytes = b""
    ) -> None:
        self._store = store
        self._trusted = {"ca.crt": authority.decode()}
        self._stamp = stamp
        self._registry = registry
        self._going: dict[str, None] = {}
        self._look: dict[str, None] = {each["metadata"]["name"]: None for each in store.scan(kinds.NAMESPACE)}
        store.observe(self._seen)

    def _seen(self, key: Key, event_type: WatchEventType, manifest: Mapping[str, Any]) -> None:
        if key.kind is kinds.NAMESPACE:
            self._look[key.name] = None
            if event_type == "DELETED":
                self._going.pop(key.name, None)
        elif (key.kind is kinds.CONFIG_MAP and key.name == _TRUSTED) or (
            event_type != "MODIFIED" and (key.namespace in self._going or key.kind == _ACCOUNT)
        ):
            self._look[key.namespace] = None
        del manifest

    def empty(self) -> int:
        """Delete what is in namespaces that are going, remove those that are empty, and give how much was done."""
        look, self._look = self._look, {}
        return sum(self._emptied(name) for name in look)

    def _emptied(self, name: str) -> int:
        key = Key(kinds.NAMESPACE, "", name)
        manifest = self._store.find(key)
        if manifest is None:
            return 0
        if not deletion.is_terminating(manifest):
            return self._furnished(name)
        self._going[name] = None
        count, left, finalizers = 0, Counter[str](), Counter[str]()
        for kind in dict.fromkeys(each.kind for each in self._registry if each.namespaced):
            for found in list(self._store.inside(kind, name)):
                left[f"{kind.plural}.{kind.group}"] += 1
                finalizers.update(found["metadata"].get("finalizers") or ())
                if not deletion.is_terminating(found):
                    count += 1
                    self._store.delete(Key(kind, name, found["metadata"]["name"]))
        if count:
            self._look[name] = None  # most of it is gone by now
        elif not left:
            return self._finished(key, manifest)
        else:
            return self._told(key, manifest, left, finalizers)
        return count

    def _told(self, key: Key, manifest: Mapping[str, Any], left: Counter[str], finalizers: Counter[str]) -> int:
        """Say in the status of a namespace what keeps it from going."""
        status = structure.mapping(manifest, "status")
        before = {each.get("type"): each for each in status.get("conditions") or ()}
        told = []
        for entry in _conditions(left, finalizers):
            old = before.get(entry["type"], {})
            same = old.get("status") == entry["status"]
            told.append({**entry, "lastTransitionTime": old["lastTransitionTime"] if same else self._stamp()})
        if told == status.get("conditions"):
            return 0
        self._store.overwrite(key, {**manifest, "status": {**status, "conditions": told}})
        return 1

    def _finished(self, key: Key, manifest: Mapping[str, Any]) -> int:
        """Take our finalizer off an empty namespace; one that nobody else holds goes."""
        spec = structure.mapping(manifest, "spec")
        others = [each for each in spec.get("finalizers") or () if each != "kubernetes"]
        if others or manifest["metadata"].get("finalizers"):
            if others == (spec.get("finalizers") or []):
                return 0
            self._store.overwrite(key, {**manifest, "spec": {**spec, "finalizers": others}})
        else:
            self._store.remove(key)
        return 1

    def _furnished(self, name: str) -> int:
        """Give a namespace what every one has: its default account, and the certificate by which the server is known, which nobody else may change."""
        account, trusted = Key(_ACCOUNT, name, "default"), Key(kinds.CONFIG_MAP, name, _TRUSTED)
        count = 0
        if self._store.find(account) is None:
            self._store.adopt({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": _called(account)}, account)
            count += 1
        if (found := self._store.find(trusted)) is None:
            made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": _called(trusted), "data": dict(self._trusted)}
            self._store.adopt(made, trusted)
            count += 1
        elif found.get("data") != self._trusted and not deletion.is_terminating(found):
            self._store.overwrite(trusted, {**found, "data": dict(self._trusted)})
            count += 1
        return count


def _called(key: Key) -> Document:
    return {"name": key.name, "namespace": key.namespace}
