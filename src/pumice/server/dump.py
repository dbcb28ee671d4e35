"""What the scheduler knows, as one JSON array of manifests: a scenario takes such a file as its `given`.

Only what the scheduler reads is there: no environment of containers, no Secrets, none of the copy of a manifest that kubectl leaves in an annotation.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import structs

from pumice.api import kinds
from pumice.cache import shadows
from pumice.model.statuses import Status

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pumice.api import core
    from pumice.api.meta import KubeObject
    from pumice.model.cluster import Cluster
    from pumice.model.task import Task

LEFT_OUT: Final = ("kubectl.kubernetes.io/last-applied-configuration",)
_KINDS: Final = {kind.name: kind for kind in reversed(kinds.KINDS)}

Manifest = dict[str, Any]


def write(cluster: Cluster, folder: str, second: int) -> Path:
    """Write what is known to a new file of a folder, whole or not at all, for nobody else to read."""
    target = Path(folder or tempfile.gettempdir()) / f"snapshot-{second}.json"
    handle, name = tempfile.mkstemp(
        prefix=".snapshot-", dir=target.parent
    )  # mkstemp makes it readable by its owner alone
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(encode(cluster))
        Path(name).replace(target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    return target


def encode(cluster: Cluster) -> bytes:
    """Give what is known as JSON, one object per line."""
    encoded = [msgspec.json.encode(manifest) for manifest in manifests(cluster)]
    return b"[\n" + b",\n".join(encoded) + b"\n]\n"


def manifests(cluster: Cluster) -> Iterator[Manifest]:
    """Give every object that is known, what pods may need first."""
    for kind, found in _objects(cluster):
        yield _manifest(kind, found)


def _objects(cluster: Cluster) -> Iterator[tuple[kinds.Kind, KubeObject]]:
    for name, kept in cluster.objects.items():
        yield from ((_KINDS[name], found) for found in kept.values())
    yield from ((kinds.PRIORITY_CLASS, found) for found in cluster.priority_classes.values())
    yield from ((kinds.QUEUE, queue.object) for queue in cluster.queues.values() if queue.object is not None)
    records = cluster.nodes.by_name.values()
    yield from ((kinds.NODE, record.object) for record in records if record.object is not None)
    yield from ((kinds.HYPER_NODE, found) for found in cluster.hyper_nodes.objects())
    for job in cluster.jobs.values():
        if job.group is not None and not shadows.is_shadow(job.group):
            yield kinds.POD_GROUP, structs.replace(job.group, status=job.status)
    yield from ((kinds.POD, _pod(task)) for task in cluster.tasks.values())


def _pod(task: Task) -> core.Pod:
    """Give a pod as it is counted: one whose bind is on its way is on its node already."""
    if task.status != Status.BINDING or task.node is None:
        return task.pod
    return structs.replace(task.pod, spec=structs.replace(task.pod.spec, node_name=task.node.name))


def _manifest(kind: kinds.Kind, found: KubeObject) -> Manifest:
    body: Manifest = msgspec.to_builtins(found)
    metadata = body.get("metadata", {})
    annotations = metadata.get("annotations", {})
    for name in LEFT_OUT:
        annotations.pop(name, None)
    metadata.pop("resourceVersion", None)
    return {"apiVersion": kind.api_version, "kind": kind.name, **body}
