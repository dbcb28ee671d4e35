"""Pools of simulated nodes: their shape, labels, taints, zones, extended resources and hyper-nodes, from a file or from a number."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from pumice import plain_files
from pumice.api import documents
from pumice.fleet import plan

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

Manifest = dict[str, Any]
MOST_BYTES: Final = 1 << 20
_HYPER: Final = "topology.volcano.sh/v1alpha1"


class PoolError(ValueError):
    """A pool that cannot be made, with the field that is wrong."""


class Taint(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A taint of every node of a pool."""

    key: str
    effect: str
    value: str = ""


class Pool(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Equal nodes; `hyper_nodes` puts them into that many hyper-nodes of tier 1."""

    name: str
    count: int = 1
    cpu: str | int = "32"
    memory: str | int = "128Gi"
    pods: str | int = "110"
    resources: dict[str, str | int] = {}
    labels: dict[str, str] = {}
    taints: list[Taint] = []
    zones: int = 1
    hyper_nodes: int = 0

    @property
    def plan(self) -> plan.Plan:
        """The shape of its nodes."""
        return plan.Plan(
            count=self.count,
            prefix=self.name,
            cpu=str(self.cpu),
            memory=str(self.memory),
            pods=str(self.pods),
            resources={name: str(amount) for name, amount in self.resources.items()},
            labels={"pumice.dev/pool": self.name, **self.labels},
            zones=self.zones,
        )


class _File(msgspec.Struct, forbid_unknown_fields=True):
    pools: list[Pool]


def read(path: Path) -> list[Pool]:
    """Read a file of pools."""
    try:
        data = plain_files.read(path, MOST_BYTES)
    except OSError as error:
        raise PoolError(f"{path}: {error.strerror}") from None
    try:
        found = msgspec.convert(documents.load_one(data, str(path)), _File).pools
    except documents.DocumentError as error:
        raise PoolError(str(error)) from None
    except msgspec.ValidationError as error:
        raise PoolError(f"{path}: {error}; write for example pools: [{{name: gpu, count: 4, cpu: 64}}]") from None
    names = [pool.name for pool in found]
    if len(set(names)) < len(names):
        raise PoolError(f"{path}: two pools have the same name; there are {', '.join(names)}")
    for pool in found:
        check(pool)
    return found


def check(pool: Pool) -> None:
    """Refuse a pool that cannot be made."""
    try:
        pool.plan.check()
    except plan.PlanError as error:
        raise PoolError(f"pool {pool.name}: {str(error).replace('--', '')}") from None
    if not 0 <= pool.hyper_nodes <= pool.count:
        raise PoolError(
            f"pool {pool.name}: hyperNodes is {pool.hyper_nodes}; {pool.count} nodes are in 0 to {pool.count} hyper-nodes"
        )
    for taint in pool.taints:
        if taint.effect not in ("NoSchedule", "PreferNoSchedule", "NoExecute"):
            raise PoolError(
                f"pool {pool.name}: taints: effect {taint.effect!r} is none of NoSchedule, PreferNoSchedule, NoExecute"
            )


def nodes(pool: Pool, now: int, first: int) -> Iterator[Manifest]:
    """Give the nodes of a pool as their kubelets register them; `first` numbers their addresses."""
    shape = pool.plan
    for index in range(pool.count):
        node = shape.node(index, now, first + index)
        node["metadata"]["labels"]["node-role.kubernetes.io/simulated"] = ""
        if pool.taints:
            node["spec"] = {
                "taints": [{k: v for k, v in msgspec.to_builtins(each).items() if v} for each in pool.taints]
            }
        yield node


def hyper_nodes(pool: Pool) -> Iterator[Manifest]:
    """Give the hyper-nodes of a pool: runs of neighbours, of equal size as far as that goes."""
    names = pool.plan.names()
    for index in range(pool.hyper_nodes):
        members = names[index * pool.count // pool.hyper_nodes : (index + 1) * pool.count // pool.hyper_nodes]
        yield {
            "apiVersion": _HYPER,
            "kind": "HyperNode",
            "metadata": {"name": f"{pool.name}-hyper-{index}"},
            "spec": {
                "tier": 1,
                "members": [{"type": "Node", "selector": {"exactMatch": {"name": name}}} for name in members],
            },
        }
