"""The NUMA cells of one node, read from what its agent says: how many CPUs each has, and how many of them are free."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Final

import msgspec

from pumice.api import quantity

if TYPE_CHECKING:
    from pumice.api import nodeinfo

CPU_MANAGER: Final = "CPUManagerPolicy"
TOPOLOGY_MANAGER: Final = "TopologyManagerPolicy"
STATIC: Final = "static"
MOST_CELLS: Final = 8  # a kubelet with more refuses to start with a topology policy
_MOST_CPUS: Final = 4096
_PART: Final = re.compile(r"(\d{1,5})(?:-(\d{1,5}))?", re.ASCII)


class CellsError(ValueError):
    """What an agent says and cannot be, with the field."""


class Cells(msgspec.Struct, frozen=True):
    """CPUs by cell, the cells in the order of their numbers; `known` are pods whose CPUs are not among the free ones any more."""

    numbers: tuple[int, ...]
    total: tuple[int, ...]
    free: tuple[int, ...]
    policy: str
    is_static: bool
    known: frozenset[str]


def read(found: nodeinfo.Numatopology) -> Cells:
    """Read the cells of a node, or raise a `CellsError`."""
    spec = found.spec
    if len(spec.cpu_detail) > _MOST_CPUS:
        raise CellsError(f"spec.cpuDetail lists {len(spec.cpu_detail)} CPUs; at most {_MOST_CPUS} are read")
    where: dict[int, nodeinfo.CpuDetail] = {}
    for name, detail in spec.cpu_detail.items():
        if not (name.isascii() and name.isdigit() and len(name) <= 5):
            raise CellsError(f"spec.cpuDetail: {name[:40]!r} is no number of a CPU")
        where[int(name)] = detail
    numbers = tuple(sorted({detail.numa for detail in where.values()}))
    if len(numbers) > MOST_CELLS:
        raise CellsError(f"spec.cpuDetail has {len(numbers)} NUMA cells; a kubelet has at most {MOST_CELLS}")
    cells = spec.numares.get("cpu")
    free = cpu_set(cells.allocatable if cells is not None else "") & where.keys()
    free -= _reserved(spec.res_reserved.get("cpu", 0), where)
    return Cells(
        numbers=numbers,
        total=tuple(sum(1 for detail in where.values() if detail.numa == cell) for cell in numbers),
        free=tuple(sum(1 for cpu in free if where[cpu].numa == cell) for cell in numbers),
        policy=spec.policies.get(TOPOLOGY_MANAGER, ""),
        is_static=spec.policies.get(CPU_MANAGER, "") == STATIC,
        known=frozenset(pod.uid for pod in spec.pod_allocations),
    )


def cpu_set(text: str) -> set[int]:
    """Read a list of CPUs such as `0-3,8`, or raise a `CellsError`."""
    found: set[int] = set()
    for part in text.split(",") if text.strip() else ():
        match = _PART.fullmatch(part.strip())
        if match is None:
            raise CellsError(f"spec.numares.cpu.allocatable: {part[:40]!r} is no CPU or range of CPUs")
        first, last = int(match[1]), int(match[2] or match[1])
        if last - first >= _MOST_CPUS:
            raise CellsError(f"spec.numares.cpu.allocatable: {part[:40]!r} has more than {_MOST_CPUS} CPUs")
        found.update(range(first, last + 1))
    return found


def _reserved(amount: object, where: dict[int, nodeinfo.CpuDetail]) -> set[int]:
    """Return the CPUs that the kubelet keeps for itself: the first by socket, core and number."""
    if not isinstance(amount, str | int | float) or isinstance(amount, bool):
        raise CellsError("spec.resReserved.cpu is no amount")
    try:
        count = math.ceil(quantity.parse(amount))
    except quantity.QuantityError as error:
        raise CellsError(f"spec.resReserved.cpu: {error}") from None
    ordered = sorted(where, key=lambda cpu: (where[cpu].socket, where[cpu].core, cpu))
    return set(ordered[: max(0, count)])
