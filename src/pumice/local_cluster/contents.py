"""What is in a new cluster: Volcano's kinds, two queues, a default storage class, and nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pumice.api import kinds, names
from pumice.local_cluster import pools
from pumice.manifests import resources as definitions
from pumice.sim.identity import Key

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pumice.apiserver.cluster import Cluster


def define(cluster: Cluster) -> None:
    """Define Volcano's kinds."""
    for resource in definitions.CURRENT:
        cluster.ensure(definitions.definition(resource))


def install(cluster: Cluster) -> None:
    """Make what batch work needs beside nodes, as far as it is not there."""
    define(cluster)
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
