"""Services and the owners of pods, as far as spreading by default needs them: which pods belong together when their spec does not say so."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pumice.api import apps, core
from pumice.model import pickers
from pumice.model.bonds import Spread
from pumice.model.pickers import Picker

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping

    from pumice.api import meta
    from pumice.model.pickers import Requirements

# Kind and name of the controller of a pod.
Owner = tuple[str, str]

HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
# What Kubernetes spreads by when neither pod nor administrator says anything: label and how uneven it may be.
DEFAULTS = ((HOSTNAME, 3), (ZONE, 5))
OWNERS = {"ReplicationController": "v1", "ReplicaSet": "apps/v1", "StatefulSet": "apps/v1"}
KEPT = 4096


class Selecting:
    """What services and owners of one namespace select by."""

    __slots__ = ("by_label", "keys", "known")

    def __init__(self) -> None:
        self.known: dict[Owner, Requirements] = {}
        # The labels that are, or once were, looked at; a namespace has few of them.
        self.keys: dict[str, None] = {}
        # Services by the first label they ask for.
        self.by_label: dict[tuple[str, str], dict[str, Requirements]] = {}

    def put(self, key: Owner, wanted: Requirements) -> None:
        """Take a selector in."""
        self.known[key] = wanted
        self.keys |= dict.fromkeys(name for name, _, _ in wanted)
        if key[0] == "Service":
            self.by_label.setdefault(_first(wanted), {})[key[1]] = wanted

    def drop(self, key: Owner) -> None:
        """Let a selector go."""
        wanted = self.known.pop(key, None)
        if wanted is not None and key[0] == "Service":
            services = self.by_label[_first(wanted)]
            del services[key[1]]
            if not services:
                del self.by_label[_first(wanted)]

    def merged(self, labels: Mapping[str, str], owner: Owner | None) -> Requirements:
        """Add up the selectors of the services that select a pod and of its owner."""
        merged = [
            requirement
            for pair in labels.items()
            for wanted in self.by_label.get(pair, {}).values()
            if pickers.meet(wanted, labels)
            for requirement in wanted
        ]
        if owner is not None:
            merged += self.known.get(owner, ())
        return pickers.canonical(merged)


class Workloads:
    """The selectors of services and owners, by namespace."""

    def __init__(self) -> None:
        self._selecting: dict[str, Selecting] = {}
        self._defaults: dict[Hashable, tuple[Spread, ...]] = {}
        self.version = 0

    def consider(self, kind: str, metadata: meta.ObjectMeta, found: meta.KubeObject | None) -> bool:
        """Take over what an object selects, and tell whether it looks at a label of pods that nobody looked at before."""
        if kind != "Service" and kind not in OWNERS:
            return False
        key = (kind, metadata.name)
        wanted = None if found is None else _selects(found)
        selecting = self._selecting.get(metadata.namespace) or Selecting()
        if selecting.known.get(key) == wanted:
            return False
        self._selecting[metadata.namespace] = selecting
        self._defaults.clear()
        self.version += 1
        before = len(selecting.keys)
        selecting.drop(key)
        if wanted is not None:
            selecting.put(key, wanted)
        elif not selecting.known:
            del self._selecting[metadata.namespace]
        return len(selecting.keys) > before

    def keys(self, namespace: str) -> Mapping[str, None]:
        """Return the labels that services and owners of a namespace look at."""
        selecting = self._selecting.get(namespace)
        return {} if selecting is None else selecting.keys

    def defaults(self, namespace: str, labels: Mapping[str, str], owner: Owner | None) -> tuple[Spread, ...]:
        """Return the constraints of a pod that declares none: spread among its fellows, if it has any."""
        selecting = self._selecting.get(namespace)
        if selecting is None:
            return ()
        key = (namespace, tuple(labels.items()), owner)
        found = self._defaults.get(key)
        if found is None:
            if len(self._defaults) >= KEPT:
                self._defaults.clear()
            found = self._defaults[key] = _spreads(namespace, labels, selecting.merged(labels, owner))
        return found


def owner_of(metadata: meta.ObjectMeta) -> Owner | None:
    """Return the controller of a pod, if it is of a kind whose selector says which pods belong together."""
    for reference in metadata.owner_references:
        if reference.controller:
            known = OWNERS.get(reference.kind) == reference.api_version
            return (reference.kind, reference.name) if known else None
    return None


def _spreads(namespace: str, labels: Mapping[str, str], wanted: Requirements) -> tuple[Spread, ...]:
    if not wanted:
        return ()
    picker = Picker((namespace,), None, wanted)
    matches = pickers.meet(wanted, labels)
    return tuple(Spread(picker, topology, skew, matches) for topology, skew in DEFAULTS)


def _selects(found: meta.KubeObject) -> Requirements | None:
    """Return what a service or an owner selects by; one that selects by nothing has no say."""
    match found:
        case core.Service() | core.ReplicationController():
            wanted = pickers.canonical(pickers.equalities(found.spec.selector))
        case apps.ReplicaSet() | apps.StatefulSet():
            wanted = pickers.requirements(found.spec.selector) or ()
        case _:
            return None
    return wanted or None


def _first(wanted: Requirements) -> tuple[str, str]:
    name, _, values = wanted[0]
    return name, values[0]
