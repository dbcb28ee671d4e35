"""Figures for pods with volumes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bench import worlds
from bench.cases import Figure, seconds

if TYPE_CHECKING:
    from collections.abc import Iterable

HOST = "kubernetes.io/hostname"


def _storage_class() -> dict[str, Any]:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": "local"},
        "provisioner": "kubernetes.io/no-provisioner",
        "volumeBindingMode": "WaitForFirstConsumer",
    }


def _volume(index: int, host: str) -> dict[str, Any]:
    wanted = [{"key": HOST, "operator": "In", "values": [host]}]
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": f"disk-{index:05d}"},
        "spec": {
            "storageClassName": "local",
            "accessModes": ["ReadWriteOnce"],
            "capacity": {"storage": f"{10 + index % 3}Gi"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": wanted}]}},
        },
        "status": {"phase": "Available"},
    }


def _claim(name: str, volume: str = "") -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {
            "name": name,
            "namespace": "bench",
            "annotations": {"pv.kubernetes.io/bind-completed": "yes"} if volume else {},
        },
        "spec": {
            "storageClassName": "local",
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "10Gi"}},
            **({"volumeName": volume} if volume else {}),
        },
        "status": {"phase": "Bound" if volume else "Pending"},
    }


def _uses(claim: str) -> dict[str, Any]:
    return {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": claim}}]}


def _decided(objects: Iterable[dict[str, Any]], pods: int) -> float:
    bench = worlds.Bench()
    bench.feed(objects)
    bench.apply()
    spent = seconds(bench.decide)
    if len(bench.world.binds) != pods:
        raise RuntimeError(f"{len(bench.world.binds)} of {pods} pods were bound")
    return spent


def local_volumes() -> Figure:
    """1,000 pods in 50 gangs, each with a claim of its own, on 1,000 nodes with 5 local volumes each."""
    objects = [_storage_class(), *(worlds.node(i) for i in range(1000))]
    objects += [_volume(i, f"node-{i % 1000:05d}") for i in range(5000)]
    for gang in range(50):
        objects.append(worlds.group(f"gang-{gang}", 20))
        for member in range(20):
            objects.append(_claim(f"data-{gang}-{member}"))
            objects.append(worlds.pod(f"gang-{gang}", member, "1", "1Gi", **_uses(f"data-{gang}-{member}")))
    rate = 1000 / _decided(objects, 1000)
    name = "1,000 pods, a claim each, 1,000 nodes, 5,000 local volumes"
    return Figure(name, rate, "pods/s", ">= 300", rate >= 300)


def shared_volume() -> Figure:
    """10,000 pods in one gang that share one bound volume, on 1,000 nodes."""
    objects = [_storage_class(), *(worlds.node(i) for i in range(1000)), worlds.group("gang", 10_000)]
    objects += [_volume(0, "node-00000"), _claim("data", "disk-00000")]
    objects[-2]["spec"]["nodeAffinity"] = {
        "required": {"nodeSelectorTerms": [{"matchExpressions": [{"key": HOST, "operator": "Exists"}]}]}
    }
    objects += [worlds.pod("gang", i, "1", "1Gi", **_uses("data")) for i in range(10_000)]
    spent = _decided(objects, 10_000)
    return Figure("one gang of 10,000 pods that share a volume, 1,000 nodes", spent, "s", "<= 0.5", spent <= 0.5)
