"""Events that kubelets write, and the forgetting of old ones: a cluster keeps them for an hour."""

from __future__ import annotations

import asyncio
import secrets
from typing import TYPE_CHECKING, Any, Final

from pumice.api import duration, kinds, timestamp
from pumice.sim.identity import Key

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pumice.apiserver.cluster import Cluster

KEPT: Final = duration.HOUR
MOST: Final = 50_000
_LOOK: Final = 30.0


class EventNotes:
    """Writes Events as the kubelets' own; beyond the most that are kept, the oldest go first."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def warn(self, key: Key, manifest: Mapping[str, Any], reason: str, message: str) -> None:
        """Write a warning."""
        self._write(key, manifest, "Warning", reason, message)

    def tell(self, key: Key, manifest: Mapping[str, Any], reason: str, message: str) -> None:
        """Write what is normal."""
        self._write(key, manifest, "Normal", reason, message)

    def _write(self, key: Key, manifest: Mapping[str, Any], kind: str, reason: str, message: str) -> None:
        now = self._cluster.writing.stamp()
        metadata = manifest["metadata"]
        name = f"{key.name[:200]}.{secrets.token_hex(8)}"
        namespace = key.namespace or "default"
        event = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": name, "namespace": namespace, "creationTimestamp": now},
            "involvedObject": {
                "apiVersion": manifest["apiVersion"],
                "kind": manifest["kind"],
                "name": key.name,
                "namespace": key.namespace,
                "uid": metadata["uid"],
            },
            "type": kind,
            "reason": reason,
            "message": message[:1024],
            "count": 1,
            "firstTimestamp": now,
            "lastTimestamp": now,
            "source": {"component": "kubelet", "host": (manifest.get("spec") or {}).get("nodeName", "")},
            "reportingComponent": "kubelet",
            "reportingInstance": (manifest.get("spec") or {}).get("nodeName", ""),
        }
        self._cluster.store.adopt(event, Key(kinds.EVENT, namespace, name))

    async def forget_old(self) -> None:
        """Forget events that are old, or too many, until cancelled."""
        while True:
            await asyncio.sleep(_LOOK)
            self.forget(self._cluster.now())

    def forget(self, now: int) -> int:
        """Forget events from before an hour ago, and the oldest beyond the most that are kept; gives how many."""
        found = list(self._cluster.store.scan(kinds.EVENT))
        limit = timestamp.format_timestamp(now - KEPT)
        beyond = max(0, len(found) - MOST)
        old = [
            each
            for place, each in enumerate(found)
            if place < beyond or str(each.get("lastTimestamp") or each["metadata"].get("creationTimestamp", "")) < limit
        ]
        for each in old:
            self._cluster.store.remove(Key(kinds.EVENT, each["metadata"]["namespace"], each["metadata"]["name"]))
        return len(old)
