"""What the objects of a namespace take of its quotas, counted once and then followed: a new pod costs the same beside ten pods and beside a hundred thousand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pumice.api import kinds, quantity
from pumice.apiserver import quota_scopes, statuses
from pumice.sim import deletion, structure

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pumice.sim.history import WatchEventType
    from pumice.sim.identity import Key
    from pumice.sim.store import ObjectStore

_STORAGE: Final = "requests.storage"
_EVERY_POD: Final = "count/pods"
_PLAINLY: Final = frozenset({"configmaps", "persistentvolumeclaims", "replicationcontrollers", "resourcequotas", "secrets", "services"})  # fmt: skip
"""Kinds that a quota may name without `count/`."""


class QuotaUsage:
    """Knows the quotas of each namespace and what is used of them; amounts are in thousandths."""

    def __init__(self, store: ObjectStore) -> None:
        self._store = store
        self._quotas: dict[str, dict[str, Mapping[str, Any]]] | None = None  # read when first asked for
        self._tallies: dict[str, dict[str, _Tally]] = {}
        store.observe(self._seen)

    def quotas(self, namespace: str) -> Iterable[Mapping[str, Any]]:
        """Give the quotas of a namespace."""
        if self._quotas is None:
            self._quotas = {}
            for quota in self._store.scan(kinds.RESOURCE_QUOTA):
                metadata = quota["metadata"]
                self._quotas.setdefault(metadata["namespace"], {})[metadata["name"]] = quota
        return self._quotas.get(namespace, {}).values()

    def used(self, quota: Mapping[str, Any]) -> Mapping[str, int]:
        """Give what the objects of a quota's namespace take of the resources that it names."""
        metadata, spec = quota["metadata"], structure.mapping(quota, "spec")
        homes = self._tallies.setdefault(metadata["namespace"], {})
        tally = homes.get(metadata["name"])
        if tally is None or (tally.spec is not spec and tally.spec != spec):
            tally = homes[metadata["name"]] = _Tally(quota)
            tally.count(self._store, metadata["namespace"])
        return tally.totals

    def _seen(self, key: Key, event_type: WatchEventType, manifest: Mapping[str, Any]) -> None:
        if key.kind is kinds.RESOURCE_QUOTA:
            self._follow(key, event_type, manifest)
        for tally in self._tallies.get(key.namespace, {}).values():
            tally.take(key.kind, key.name, None if event_type == "DELETED" else manifest)

    def _follow(self, key: Key, event_type: WatchEventType, quota: Mapping[str, Any]) -> None:
        if event_type == "DELETED":
            self._tallies.get(key.namespace, {}).pop(key.name, None)
        if self._quotas is None:
            return
        if event_type == "DELETED":
            self._quotas.get(key.namespace, {}).pop(key.name, None)
        else:
            self._quotas.setdefault(key.namespace, {})[key.name] = quota


class _Share(NamedTuple):
    """What one object was counted with, and what that was read from."""

    spec: Any
    ended: bool
    amounts: Mapping[str, int]


class _Tally:
    """What is used of one quota, and by whom."""

    def __init__(self, quota: Mapping[str, Any]) -> None:
        self._quota = quota
        self.spec = structure.mapping(quota, "spec")
        self.totals: dict[str, int] = dict.fromkeys(structure.mapping(self.spec, "hard"), 0)
        self._scoped = quota_scopes.is_scoped(quota)
        self._named: dict[kinds.Kind, bool] = {}
        self._shares: dict[tuple[kinds.Kind, str], _Share] = {}

    def count(self, store: ObjectStore, namespace: str) -> None:
        """Count what is there."""
        for kind in list(store.known_kinds()):
            if self._concerns(kind):
                for manifest in store.inside(kind, namespace):
                    self.take(kind, manifest["metadata"]["name"], manifest)

    def take(self, kind: kinds.Kind, name: str, manifest: Mapping[str, Any] | None) -> None:
        """Count an object as it is now, None if it is gone."""
        if not self._concerns(kind):
            return
        before = self._shares.get((kind, name))
        now = None if manifest is None else self._share(kind, manifest, before)
        if now is before:
            return
        for share, sign in ((before, -1), (now, 1)):
            for resource, amount in share.amounts.items() if share is not None else ():
                self.totals[resource] += sign * amount
        if now is None:
            self._shares.pop((kind, name), None)
        else:
            self._shares[kind, name] = now

    def _share(self, kind: kinds.Kind, manifest: Mapping[str, Any], before: _Share | None) -> _Share:
        spec, ended = manifest.get("spec"), kind is kinds.POD and deletion.is_finished(manifest)
        if before is not None and before.spec is spec and before.ended == ended:
            return before
        amounts = charges(kind, manifest)
        if ended:
            amounts = {_EVERY_POD: amounts[_EVERY_POD]}  # a pod that has ended is an object, and takes nothing else
        if self._scoped and not quota_scopes.counts(self._quota, manifest):
            amounts = {}
        return _Share(spec, ended, {name: amount for name, amount in amounts.items() if name in self.totals})

    def _concerns(self, kind: kinds.Kind) -> bool:
        found = self._named.get(kind)
        if found is None:
            stated = kind is kinds.POD or (not self._scoped and not self.totals.keys().isdisjoint(_resources(kind)))
            found = self._named[kind] = stated
        return found


def _resources(kind: kinds.Kind) -> list[str]:
    """Name what an object of a kind other than pods may take of a quota."""
    found = [f"count/{statuses.qualified(kind.plural, kind.group)}"]
    if kind.plural in _PLAINLY and kind.group == "":
        found.append(kind.plural)
    return [*found, _STORAGE] if kind is kinds.PERSISTENT_VOLUME_CLAIM else found


def charges(kind: kinds.Kind, manifest: Mapping[str, Any]) -> dict[str, int]:
    """Give what an object takes of a quota, in thousandths."""
    if kind is kinds.POD:
        return pod_charges(manifest)
    found = dict.fromkeys(_resources(kind), 1000)
    if _STORAGE in found:
        requested = structure.mapping(manifest, "spec", "resources", "requests")
        found[_STORAGE] = thousandths(requested.get("storage", 0))
    return found


def pod_charges(pod: Mapping[str, Any]) -> dict[str, int]:
    """Give what a pod takes of a quota, in thousandths."""
    found = {"pods": 1000, _EVERY_POD: 1000}
    spec = structure.mapping(pod, "spec")
    for part in ("requests", "limits"):
        running: dict[str, int] = {}
        for container in spec.get("containers") or ():
            for name, amount in structure.mapping(container, "resources", part).items():
                running[name] = running.get(name, 0) + thousandths(amount)
        for container in spec.get("initContainers") or ():
            for name, amount in structure.mapping(container, "resources", part).items():
                running[name] = max(running.get(name, 0), thousandths(amount))
        for name, amount in structure.mapping(spec, "resources", part).items():
            running[name] = thousandths(amount)
        found |= {f"{part}.{name}": amount for name, amount in running.items()}
        if part == "requests":
            found |= running
    return found


def thousandths(amount: Any) -> int:
    """Read an amount, 0 if it is none."""
    try:
        return int(quantity.parse(str(amount)) * 1000)
    except quantity.QuantityError:
        return 0


def amount_text(name: str, amount: int) -> str:
    """Say how much is used of a resource, in the unit that its name suggests."""
    if "memory" in name or "storage" in name:
        return quantity.format_bytes(amount // 1000)
    return f"{amount}m" if amount % 1000 else str(amount // 1000)


def amounts_text(names: Iterable[str], amounts: Mapping[str, int]) -> str:
    """Say how much is used of some resources."""
    return ",".join(f"{name}={amount_text(name, amounts.get(name, 0))}" for name in names)
