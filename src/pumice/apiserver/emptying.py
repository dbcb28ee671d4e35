"""The deletion of namespaces: everything in one goes first, then the namespace itself; and a new one is given its default account."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pumice.api import kinds
from pumice.sim import deletion, structure
from pumice.sim.identity import Key

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pumice.apiserver.resources import Registry
    from pumice.sim.history import WatchEventType
    from pumice.sim.store import ObjectStore

Document = dict[str, Any]
_ACCOUNT: Final = kinds.Kind(name="ServiceAccount", group="", version="v1", plural="serviceaccounts", namespaced=True)


class Emptier:
    """Looks again at a namespace that is going whenever something in it has gone."""

    def __init__(self, store: ObjectStore, registry: Registry) -> None:
        self._store = store
        self._registry = registry
        self._going: dict[str, None] = {}
        self._look: dict[str, None] = {each["metadata"]["name"]: None for each in store.scan(kinds.NAMESPACE)}
        store.observe(self._seen)

    def _seen(self, key: Key, event_type: WatchEventType, manifest: Mapping[str, Any]) -> None:
        if key.kind is kinds.NAMESPACE:
            self._look[key.name] = None
            if event_type == "DELETED":
                self._going.pop(key.name, None)
        elif event_type != "MODIFIED" and (key.namespace in self._going or key.kind == _ACCOUNT):
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
            return self._with_account(name)
        self._going[name] = None
        count = left = 0
        for kind in dict.fromkeys(each.kind for each in self._registry if each.namespaced):
            for found in list(self._store.inside(kind, name)):
                left += 1
                if not deletion.is_terminating(found):
                    count += 1
                    self._store.delete(Key(kind, name, found["metadata"]["name"]))
        if count:
            self._look[name] = None  # most of it is gone by now
        elif not left:
            return self._finished(key, manifest)
        return count

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

    def _with_account(self, name: str) -> int:
        key = Key(_ACCOUNT, name, "default")
        if self._store.find(key) is not None:
            return 0
        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": name}}
        self._store.adopt(account, key)
        return 1
