"""What is in a new cluster: Volcano's kinds, two queues, a default storage class, nodes, and what was loaded from a dump."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from pumice.api import kinds, names
from pumice.local_cluster import pools
from pumice.manifests import resources as definitions
from pumice.sim import structure
from pumice.sim.identity import Key

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from pumice.apiserver.cluster import Cluster

Manifest = dict[str, Any]
MOST_BYTES: Final = 1 << 30


class LoadError(ValueError):
    """A dump that cannot be loaded, with the object and why."""


def install(cluster: Cluster) -> None:
    """Make what batch work needs beside nodes."""
    for resource in definitions.CURRENT:
        cluster.ensure(definitions.definition(resource))
    queue = {"apiVersion": kinds.QUEUE.api_version, "kind": "Queue"}
    cluster.ensure({**queue, "metadata": {"name": names.ROOT_QUEUE}, "spec": {"weight": 1, "reclaimable": False}})
    cluster.ensure({**queue, "metadata": {"name": names.DEFAULT_QUEUE}, "spec": {"weight": 1, "reclaimable": True}})
    cluster.ensure(
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": {"name": "standard", "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
            "provisioner": "pumice.dev/simulated",
            "volumeBindingMode": "WaitForFirstConsumer",
        }
    )
    cluster.ensure(
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {
                "name": "kubernetes",
                "namespace": "default",
                "labels": {"component": "apiserver", "provider": "kubernetes"},
            },
            "spec": {"clusterIP": "10.96.0.1", "ports": [{"name": "https", "port": 443, "targetPort": 443}]},
        }
    )


def register(cluster: Cluster, wanted: Iterable[pools.Pool]) -> int:
    """Register the nodes of pools, and their hyper-nodes; those that are there stay as they are."""
    count = number = 0
    resource = cluster.registry.of_kind("v1", "Node")
    for pool in wanted:
        for node in pools.nodes(pool, cluster.now(), number + 1):
            key = Key(kinds.NODE, "", node["metadata"]["name"])
            if resource is not None and cluster.store.find(key) is None:
                # nodes that this process registers itself need no judge, and ten thousand of them no long start
                node["metadata"]["creationTimestamp"] = cluster.writing.stamp()
                cluster.store.adopt(node, key)
                count += 1
            number += 1
        for hyper_node in pools.hyper_nodes(pool):
            cluster.ensure(hyper_node)
    return count


def load(cluster: Cluster, path: Path) -> int:
    """Load a dump of a scheduler: every object with the status it had; gives how many there were."""
    try:
        size = path.stat().st_size
        if size > MOST_BYTES:
            raise LoadError(f"{path} has {size} bytes; a dump has at most {MOST_BYTES}")
        found = msgspec.json.decode(path.read_bytes())
    except OSError as error:
        raise LoadError(f"{path}: {error.strerror}") from None
    except msgspec.MsgspecError as error:
        raise LoadError(f"{path} is no dump of a scheduler: {error}") from None
    if not isinstance(found, list):
        raise LoadError(f"{path} is no dump of a scheduler: it is no list of objects")
    for number, manifest in enumerate(found):
        _load(cluster, manifest, f"{path}: object {number}")
    return len(found)


def _load(cluster: Cluster, manifest: Any, where: str) -> None:
    stated = structure.mapping(manifest)
    resource = cluster.registry.of_kind(str(stated.get("apiVersion")), str(stated.get("kind")))
    metadata = structure.mapping(stated, "metadata")
    name = metadata.get("name")
    if resource is None or not isinstance(name, str) or not name:
        raise LoadError(
            f"{where} is a {stated.get('apiVersion')} {stated.get('kind')} named {name!r}: that is not served here"
        )
    namespace = str(metadata.get("namespace") or "default") if resource.namespaced else ""
    if namespace:
        cluster.ensure({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
    key = Key(resource.kind, namespace, name)
    if cluster.store.find(key) is None:
        new = structure.copied(manifest)
        new["metadata"].pop("resourceVersion", None)
        cluster.store.adopt(new, key)
