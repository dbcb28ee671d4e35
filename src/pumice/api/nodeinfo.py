"""What the agent of a node says of its NUMA cells."""

from typing import Any

import msgspec

from pumice.api.meta import KubeObject, Wire


class CpuDetail(Wire, frozen=True, kw_only=True):
    """Where one CPU is."""

    numa: int = 0
    socket: int = 0
    core: int = 0


class Cells(Wire, frozen=True, kw_only=True):
    """What there is of a resource: of cpu, `allocatable` is the list of CPUs that are free."""

    allocatable: str = ""
    capacity: int = 0


class PodAllocation(Wire, frozen=True, kw_only=True):
    """A pod that the agent has seen with what it holds."""

    uid: str = ""


class NumatopologySpec(Wire, frozen=True, kw_only=True):
    """Policies of the kubelet, and the cells."""

    policies: dict[str, str] = msgspec.field(default_factory=dict)
    res_reserved: dict[str, Any] = msgspec.field(default_factory=dict)
    numares: dict[str, Cells] = msgspec.field(default_factory=dict)
    cpu_detail: dict[str, CpuDetail] = msgspec.field(default_factory=dict)
    pod_allocations: tuple[PodAllocation, ...] = ()


class Numatopology(KubeObject, frozen=True, kw_only=True):
    """The NUMA cells of the node of the same name."""

    spec: NumatopologySpec = NumatopologySpec()
