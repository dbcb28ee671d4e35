"""The numbers of queues: what they hold and ask for, and what the sharing plugins make of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pumice.model.resources import CPU, MEMORY
from pumice.plugins import capacity, proportion
from pumice.plugins.sharing import admission, queue_limits

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pumice.framework.plugin import Plugin
    from pumice.model.cluster import Cluster
    from pumice.model.queue import Queue
    from pumice.model.resources import Vector
    from pumice.server.metrics.series import Sample


class QueueSamples:
    """Gathers the samples of queues; a resource once seen for a queue is given as 0 afterwards, until the queue goes."""

    def __init__(self) -> None:
        self._seen: dict[tuple[str, str], dict[int, None]] = {}
        self._admitted = admission.Admitted()

    def samples(self, cluster: Cluster, plugins: Sequence[Sequence[Plugin]]) -> Iterator[Sample]:
        """Return every sample about queues as things stand."""
        for key in [key for key in self._seen if key[0] not in cluster.queues]:
            del self._seen[key]
        every = [plugin for tier in plugins for plugin in tier]
        sharing = next((plugin for plugin in every if isinstance(plugin, proportion.Proportion)), None)
        dividing = next((plugin for plugin in every if isinstance(plugin, capacity.Capacity)), None)
        for queue in cluster.queues.values():
            if queue.bad:
                continue
            yield "volcano_queue_weight", (queue.name,), queue.weight
            if dividing is not None and dividing.accounts.get(queue.name) is not None:
                yield from self._divided(cluster, queue, dividing)
            else:
                held = cluster.queue_sums.allocated[queue.row]
                yield from self._amounts(cluster, queue, "allocated", held)
                yield from self._amounts(cluster, queue, "request", held + cluster.queue_sums.pending[queue.row])
            if sharing is not None and sharing.inputs is not None and queue.row < len(sharing.deserved):
                yield from self._shared(cluster, queue, sharing)
        yield from self._let_in(cluster, sharing, dividing)

    def _shared(self, cluster: Cluster, queue: Queue, plugin: proportion.Proportion) -> Iterator[Sample]:
        deserved = plugin.deserved[queue.row]
        if len(deserved) == len(cluster.vocabulary) and plugin.inputs is not None:
            yield from self._amounts(cluster, queue, "deserved", deserved)
            yield "volcano_queue_share", (queue.name,), plugin.share(queue)
            yield (
                "volcano_queue_overused",
                (queue.name,),
                int(queue.row in plugin.inputs.rows and plugin.overused(queue) is not None),
            )

    def _divided(self, cluster: Cluster, queue: Queue, plugin: capacity.Capacity) -> Iterator[Sample]:
        account = plugin.accounts[queue.name]
        held = account.held
        if len(held) != len(cluster.vocabulary) or len(account.deserved) != len(held):
            return  # a node brought a resource that nobody offered before: the next cycle opens the accounts anew
        yield from self._amounts(cluster, queue, "allocated", held)
        yield from self._amounts(cluster, queue, "request", held + cluster.queue_sums.pending[queue.row])
        yield from self._amounts(cluster, queue, "deserved", account.deserved)
        yield from self._amounts(cluster, queue, "capacity", cluster.vocabulary.vector(queue.capability))
        yield from self._amounts(cluster, queue, "real_capacity", account.limit)
        yield "volcano_queue_share", (queue.name,), account.share
        yield "volcano_queue_overused", (queue.name,), int(account.share > 1)

    def _let_in(
        self, cluster: Cluster, sharing: proportion.Proportion | None, dividing: capacity.Capacity | None
    ) -> Iterator[Sample]:
        if sharing is None and dividing is None:
            return
        tree = dividing.tree if dividing is not None else None
        self._admitted.open(cluster, tree.rows_above() if tree is not None else None)
        inqueue = self._admitted.inqueue
        for queue in cluster.queues.values():
            if not queue.bad:
                yield from self._amounts(cluster, queue, "inqueue", inqueue[queue.row])

    def _amounts(self, cluster: Cluster, queue: Queue, what: str, vector: Vector) -> Iterator[Sample]:
        seen = self._seen.setdefault((queue.name, what), {})
        for column, (name, units) in enumerate(zip(cluster.vocabulary.names, vector.tolist(), strict=True)):
            if units >= queue_limits.UNLIMITED:
                continue
            if column == CPU:
                yield f"volcano_queue_{what}_milli_cpu", (queue.name,), units
            elif column == MEMORY:
                yield f"volcano_queue_{what}_memory_bytes", (queue.name,), units
            elif units or column in seen:
                seen[column] = None
                yield f"volcano_queue_{what}_scalar_resources", (queue.name, name), units
