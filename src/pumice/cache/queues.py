"""The status of queues: what their jobs hold, ancestors included, and how many groups are in which phase."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from pumice.api import kinds, names, quantity
from pumice.cache.effects import Patch
from pumice.model import resources

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pumice.model.cluster import Cluster
    from pumice.model.queue import Queue

COUNTED = {
    "pending": names.PHASE_PENDING,
    "inqueue": names.PHASE_INQUEUE,
    "running": names.PHASE_RUNNING,
    "unknown": names.PHASE_UNKNOWN,
    "completed": names.PHASE_COMPLETED,
}


def patches(cluster: Cluster, read_as: Mapping[str, kinds.Kind], may_write: Callable[[str], bool]) -> list[Patch]:
    """Return the writes that bring the status of queues up to date, each under the kind it was read as, and assume them done.

    A queue that may not be written now is left as it is.
    """
    allocated = {name: cluster.queue_sums.allocated[queue.row].copy() for name, queue in cluster.queues.items()}
    for queue in cluster.queues.values():
        own = cluster.queue_sums.allocated[queue.row]
        if own.any():
            for ancestor in ancestors(cluster, queue):
                allocated[ancestor] += own
    written = []
    for name, queue in cluster.queues.items():
        if queue.object is None or not queue.object.metadata.uid:
            # A namespace that is a queue has no object to write to.
            continue
        amounts = {
            resource: resources.shown(resource, units)
            for resource, units in cluster.vocabulary.amounts(allocated[name]).items()
        }
        patch = _patch(queue, {"cpu": "0", "memory": "0", **amounts}, cluster.phases.counts.get(name, {}), may_write)
        if patch is not None:
            kind = read_as.get(name)
            # Older kinds have no status subresource.
            written.append(patch if kind is None else msgspec.structs.replace(patch, kind=kind, subresource=""))
    return written


def ancestors(cluster: Cluster, queue: Queue) -> list[str]:
    """Return the queues above one, nearest first; a queue without a parent hangs under root, if there is one."""
    found: dict[str, None] = {}
    name = queue.name
    while name != names.ROOT_QUEUE:
        above = cluster.queues[name].parent or names.ROOT_QUEUE
        if above not in cluster.queues or above in found or above == queue.name:
            break
        found[above] = None
        name = above
    return list(found)


def _patch(
    queue: Queue, allocated: dict[str, str], phases: dict[str, int], may_write: Callable[[str], bool]
) -> Patch | None:
    known = queue.status
    counts = {field: phases.get(phase, 0) for field, phase in COUNTED.items()}
    # A name that is absent reads as 0, so a queue that never held anything needs no write.
    held = {name: _value(text) for name, text in allocated.items()}
    stated = {name: _value(text) for name, text in known.allocated.items()}
    same = all(held.get(name, 0) == stated.get(name, 0) for name in {**held, **stated})
    if same and all(getattr(known, field) == count for field, count in counts.items()):
        return None
    if not may_write(queue.name):
        return None
    body: dict[str, Any] = {**dict.fromkeys(known.allocated), **allocated}
    queue.status = msgspec.structs.replace(known, allocated=allocated, **counts)
    return Patch(
        kind=kinds.QUEUE,
        namespace="",
        name=queue.name,
        uid=queue.object.metadata.uid if queue.object else "",
        body={"status": {"allocated": body, **counts}},
        subresource="status",
    )


def _value(text: quantity.QuantityText) -> object:
    try:
        return quantity.parse(text)
    except quantity.QuantityError:
        return text
