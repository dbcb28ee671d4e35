"""What simulated nodes look like: the Node objects that a fleet registers."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from pumice.api import names, quantity, timestamp

Manifest = dict[str, Any]

SIMULATED: Final = "pumice.dev/simulated"
ZONE: Final = "topology.kubernetes.io/zone"
HOST_NAME: Final = "kubernetes.io/hostname"
DISK: Final = "100Gi"  # unless `resources` say how much ephemeral-storage there is


class PlanError(ValueError):
    """A fleet that cannot be made, with the field that is wrong."""


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """A number of equal nodes; `resources` are offered beside cpu, memory, pods and ephemeral-storage."""

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
        usual = {"cpu": self.cpu, "memory": self.memory, "pods": self.pods, "ephemeral-storage": DISK}
        return {**usual, **self.resources}

    def name(self, index: int) -> str:
        """Return the name of a node, of equal length for all, so that they sort by number."""
        return f"{self.prefix}-{index:0{len(str(self.count - 1))}}"

    def names(self) -> list[str]:
        """Return the names of all nodes."""
        return [self.name(index) for index in range(self.count)]

    def address(self, index: int, number: int | None = None) -> str:
        """Return the address of a node."""
        place = index + 1 if number is None else number
        return f"10.{10 + place // 65536 % 200}.{place // 256 % 256}.{place % 256}"

    def addresses(self) -> dict[str, str]:
        """Return the addresses of all nodes, by name."""
        return {self.name(index): self.address(index) for index in range(self.count)}

    def node(self, index: int, now: int, number: int | None = None) -> Manifest:
        """Return the manifest of one node, as its kubelet would register it; `number` makes its address, where several plans are one cluster."""
        name = self.name(index)
        labels = {HOST_NAME: name, **_PLATFORM, ZONE: f"zone-{index % self.zones}", SIMULATED: "true", **self.labels}
        return {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": labels},
            "status": self.status(index, now, number),
        }

    def status(self, index: int, now: int, number: int | None = None) -> Manifest:
        """Return the status of a healthy node."""
        name, address = self.name(index), self.address(index, number)
        when = timestamp.format_timestamp(now // 1_000_000 * 1_000_000)
        stamps = {"lastHeartbeatTime": when, "lastTransitionTime": when}
        return {
            "capacity": self.offered(),
            "allocatable": self.offered(),
            "addresses": [{"type": "InternalIP", "address": address}, {"type": "Hostname", "address": name}],
            "conditions": [{**each, **stamps} for each in _CONDITIONS],
            "nodeInfo": {**_INFO, "machineID": name, "systemUUID": name},
        }


_PLATFORM: Final = {
    "kubernetes.io/os": "linux",
    "kubernetes.io/arch": "amd64",
    "beta.kubernetes.io/os": "linux",
    "beta.kubernetes.io/arch": "amd64",
}
"""What a kubelet and the node controller of a cluster write on every node."""
_CONDITIONS: Final = tuple(
    {"type": kind, "status": status, "reason": reason, "message": message}
    for kind, status, reason, message in (
        ("MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
        ("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
        ("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
        (names.CONDITION_READY, "True", "KubeletReady", "simulated kubelet is ready"),
    )
)
_INFO: Final = {
    "architecture": "amd64",
    "bootID": "",
    "containerRuntimeVersion": "simulated://1",
    "kernelVersion": "simulated",
    "kubeProxyVersion": "",
    "kubeletVersion": "v1.36.3",
    "operatingSystem": "linux",
    "osImage": "Simulated",
}
