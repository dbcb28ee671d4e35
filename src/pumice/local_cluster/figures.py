"""Figures that objects state about others: what budgets allow, what quotas have used, when a node's kubelet was last heard of."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from pumice.api import kinds, timestamp
from pumice.apiserver import budgets, quota_usage, subresources
from pumice.sim import structure
from pumice.sim.identity import Key

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pumice.apiserver.cluster import Cluster
    from pumice.sim.history import WatchEventType

Document = dict[str, Any]
EVERY: Final = 1.0
LEASES: Final = "kube-node-lease"
LEASE_SECONDS: Final = 40
MOST_LEASES: Final = 500  # more nodes than that beat no heart: nobody here listens, and the writes would be felt
_UNCOUNTED: Final = frozenset({kinds.EVENT, kinds.LEASE, kinds.NODE})  # they change all the time


class Figures:
    """Keeps the figures of budgets and quotas, a second behind at the most."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._changed = True
        cluster.store.observe(self._seen)

    def _seen(self, key: Key, _: WatchEventType, __: Mapping[str, Any]) -> None:
        if key.kind not in _UNCOUNTED:
            self._changed = True

    async def keep(self) -> None:
        """Write the figures that have changed, until cancelled."""
        while True:
            self.write()
            await asyncio.sleep(EVERY)

    def write(self) -> None:
        """Write what has changed since the last time."""
        if not self._changed:
            return
        self._changed = False
        for budget in list(self._cluster.store.scan(kinds.POD_DISRUPTION_BUDGET)):
            self._put(kinds.POD_DISRUPTION_BUDGET, budget, self._of_budget(budget))
        for quota in list(self._cluster.store.scan(kinds.RESOURCE_QUOTA)):
            hard = structure.mapping(quota, "spec", "hard")
            used = self._cluster.admission.quotas.used(quota)
            told = {name: quota_usage.amount_text(name, amount) for name, amount in used.items()}
            self._put(kinds.RESOURCE_QUOTA, quota, {"hard": dict(hard), "used": told})

    def _of_budget(self, budget: Mapping[str, Any]) -> Document:
        figures = subresources.budget_figures(budget, self._cluster.store)
        generation = budget["metadata"].get("generation", 1)
        before = structure.mapping(structure.condition(budget, "DisruptionAllowed"))
        told = budgets.condition(figures, generation, before, self._cluster.writing.stamp())
        figures.pop("problem", None)
        return {**figures, "observedGeneration": generation, "conditions": [told]}

    def _put(self, kind: kinds.Kind, manifest: Mapping[str, Any], status: Document) -> None:
        before = structure.mapping(manifest, "status")
        if any(before.get(name) != value for name, value in status.items()):
            key = Key(kind, manifest["metadata"]["namespace"], manifest["metadata"]["name"])
            self._cluster.store.overwrite(key, {**manifest, "status": {**before, **status}})


async def beat(cluster: Cluster, is_served: Callable[[str], bool]) -> None:
    """Renew the leases of nodes as their kubelets do, until cancelled."""
    while True:
        names = [node["metadata"]["name"] for node in cluster.store.scan(kinds.NODE)]
        if len(names) <= MOST_LEASES:
            for name in filter(is_served, names):
                renew(cluster, name)
        await asyncio.sleep(LEASE_SECONDS / 2)


def renew(cluster: Cluster, node: str) -> None:
    """Renew the lease of one node."""
    key = Key(kinds.LEASE, LEASES, node)
    now = timestamp.format_timestamp(cluster.now())
    spec = {"holderIdentity": node, "leaseDurationSeconds": LEASE_SECONDS, "renewTime": now}
    found = cluster.store.find(key)
    if found is None:
        metadata = {"name": node, "namespace": LEASES}
        cluster.store.adopt(
            {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec}, key
        )
    else:
        cluster.store.overwrite(key, {**found, "spec": {**structure.mapping(found, "spec"), **spec}})
