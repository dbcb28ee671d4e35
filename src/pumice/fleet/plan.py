"""What simulated nodes look like: the Node objects that a fleet registers."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from pumice.api import names, quantity, timestamp

Manifest = dict[str, Any]

SIMULATED: Final = "pumice.dev/simulated"
ZONE: Final = "topology.kubernetes.io/zone"
HOST_NAME: Final = "kubernetes.io/hostname"


class PlanError(ValueError):
    """A fleet that cannot be made, with the field that is wrong."""


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """A number of equal nodes; `resources` are offered beside cpu, memory and pods."""

    count: int
    prefix: str = "node"
    cpu: str = "32"
    memory: str = "128Gi"
    pods: str = "110"
    resources: dict[str, str] = {}
    labels: dict[str, str] = {}
    zones: int = 1

    def check(self) -> None:
        """Raise a `PlanError` that names what is wrong."""
        if not 1 <= self.count <= 100_000:
            raise PlanError(f"--count is {self.count}; a fleet has 1 to 100000 nodes")
        if not 1 <= self.zones <= self.count:
            raise PlanError(f"--zones is {self.zones}; {self.count} nodes are in 1 to {self.count} zones")
        for name, text in self.offered().items():
            try:
                amount = quantity.parse(text)
            except quantity.QuantityError as error:
                raise PlanError(f"{name}: {error}") from None
            if amount < 0:
                raise PlanError(f"{name}: {text} is negative")

    def offered(self) -> dict[str, str]:
        """Return what each node offers."""
        return {"cpu": self.cpu, "memory": self.memory, "pods": self.pods, **self.resources}

    def name(self, index: int) -> str:
        """Return the name of a node, of equal length for all, so that they sort by number."""
        return f"{self.prefix}-{index:0{len(str(self.count - 1))}}"

    def names(self) -> list[str]:
        """Return the names of all nodes."""
        return [self.name(index) for index in range(self.count)]

    def node(self, index: int, now: int) -> Manifest:
        """Return the manifest of one node, as its kubelet would register it."""
        name = self.name(index)
        labels = {HOST_NAME: name, ZONE: f"zone-{index % self.zones}", SIMULATED: "true", **self.labels}
        return {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": labels},
            "status": self.status(now),
        }

    def status(self, now: int) -> Manifest:
        """Return the status of a healthy node."""
        when = timestamp.format_timestamp(now // 1_000_000 * 1_000_000)
        ready = {
            "type": names.CONDITION_READY,
            "status": "True",
            "reason": "KubeletReady",
            "message": "simulated kubelet is ready",
            "lastHeartbeatTime": when,
            "lastTransitionTime": when,
        }
        return {"capacity": self.offered(), "allocatable": self.offered(), "conditions": [ready]}
