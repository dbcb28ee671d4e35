"""How many devices of a class the claims of a queue may have, and how much of their capacities: `deviceclass/<class>` and `<dimension>.deviceclass/<class>` in its capability."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pumice.api import quantity
from pumice.model import statuses
from pumice.model.devices import amounts, wanted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from pumice.api import resource
    from pumice.framework.runs import Run
    from pumice.framework.subject import Demand
    from pumice.model.cluster import Cluster
    from pumice.model.queue import Queue
    from pumice.model.task import Task

CLASS: Final = "deviceclass/"
_INSIDE: Final = ".deviceclass/"
COUNT: Final = ""
Held = dict[tuple[str, str], int]  # class and dimension, the number of devices being the empty one


def stated(queue: Queue, *, dimensions: bool) -> dict[tuple[str, str], tuple[int, str]]:
    """Read the quotas of a queue: the amount, and how it is written; one that cannot be read is none."""
    found: dict[tuple[str, str], tuple[int, str]] = {}
    for key, text in queue.object.spec.capability.items() if queue.object is not None else ():
        dimension, inside, name = key.rpartition(_INSIDE)
        if key.startswith(CLASS):
            dimension, inside, name = COUNT, CLASS, key.removeprefix(CLASS)
        if not inside or (dimension and not dimensions):
            continue
        try:
            found[name, dimension] = (amounts.nanos(text), str(text))
        except quantity.QuantityError:
            continue
    return found


class DeviceQuotas:
    """What the claims of each queue, and of those above it, ask for or have; a claim that several pods of a queue use counts once."""

    def __init__(self, cluster: Cluster, above: Callable[[str], Sequence[Queue]], *, dimensions: bool) -> None:
        self._cluster = cluster
        self._devices = cluster.devices
        self._above = above
        self.limits = {
            queue.name: quotas for queue in cluster.queues.values() if (quotas := stated(queue, dimensions=dimensions))
        }
        self._dimensions = dimensions
        self._held: dict[str, Held] = {name: {} for name in self.limits}
        self._uses: dict[tuple[str, str], tuple[int, Held]] = {}  # queue and claim -> users, and what was counted
        if self.limits:
            for task in cluster.tasks.values():
                if task.node is not None and task.status in statuses.PLACED:
                    self._count(task, 1)

    # -- counting ----------------------------------------------------------------------------------------------

    def follow(self, runs: Sequence[Run], sign: int) -> None:
        """Count what pods ask for that are placed, and what those give back that are not any more."""
        for run in runs:
            if run.tasks[0].shape.constraint_class.has_device_claims:
                for task in run.tasks:
                    self._count(task, sign)

    def _limited(self, task: Task) -> Iterable[str]:
        queue = task.job.queue if task.job is not None else ""
        return (each.name for each in self._above(queue) if each.name in self.limits)

    def _count(self, task: Task, sign: int) -> None:
        if not task.shape.constraint_class.has_device_claims:
            return
        for use in self._devices.uses_of(task.pod):
            for queue in self._limited(task):
                users, counted = self._uses.get((queue, use.key), (0, {}))
                if not users:
                    counted = self.asked(use)
                if not users or users + sign == 0:
                    held = self._held[queue]
                    for kind, units in counted.items():
                        held[kind] = held.get(kind, 0) + sign * units
                self._uses[queue, use.key] = (users + sign, counted)
                if users + sign == 0:
                    del self._uses[queue, use.key]

    def asked(self, use: wanted.ClaimUse) -> Held:
        """Return what a claim counts for: what it has, else what it asks for: of several options the largest, of all devices one."""
        claim = self._devices.claims.get(use.key)
        spec = claim.spec if claim is not None else use.special.spec if use.special is not None else None
        if spec is None:
            return {}
        found = wanted.read(spec)
        allocation = self._devices.allocation(use.key)
        needs = {need.name: need for request in found.requests for need in request.options}
        total: Held = {}
        if allocation is not None:
            for result in allocation.devices.results:
                need = needs.get(result.request)
                if need is not None:
                    _add(total, need.device_class, 1, _consumed(result) or need.capacity)
            return total
        for request in found.requests:
            need = max(request.options, key=lambda each: each.least)
            _add(total, need.device_class, need.least, need.capacity)
        return total

    # -- judging -----------------------------------------------------------------------------------------------

    def refuse(self, queue: Queue, demand: Demand) -> str | None:
        """Say which quota of a queue, or of one above it, the claims of tasks would exceed."""
        keys = {
            use.key: use
            for task in demand.tasks
            if task.shape.constraint_class.has_device_claims
            for use in self._devices.uses_of(task.pod)
        }
        if not keys:
            return None
        for each in self._above(queue.name):
            quotas = self.limits.get(each.name)
            if quotas is None:
                continue
            asked: Held = {}
            for key, use in keys.items():
                if (each.name, key) not in self._uses:
                    for kind, units in self.asked(use).items():
                        asked[kind] = asked.get(kind, 0) + units
            problem = self._beyond(each, quotas, asked)
            if problem:
                return problem if each is queue else f"{problem} of queue {each.name} above it"
        return None

    def _beyond(self, queue: Queue, quotas: Mapping[tuple[str, str], tuple[int, str]], asked: Held) -> str:
        listed = {name for name, _ in quotas}
        held = self._held[queue.name]
        for (name, dimension), units in asked.items():
            if name not in listed or (dimension and not self._dimensions):
                continue
            key = f"{dimension}{_INSIDE}{name}" if dimension else f"{CLASS}{name}"
            quota = quotas.get((name, dimension))
            if quota is None or (not dimension and not quota[0]):
                if dimension:
                    return f"beyond the limit: its claims ask for {key}, of which the queue's capability says nothing"
                continue
            limit, text = quota
            used = held.get((name, dimension), 0)
            if used + units > limit:
                shown = [amounts.written(each, text) for each in (used, units)]
                return f"beyond the limit: {key} {shown[0]} held, {shown[1]} asked for, {text} allowed"
        return ""


def _add(total: Held, name: str, count: int, capacity: Mapping[str, int]) -> None:
    total[name, COUNT] = total.get((name, COUNT), 0) + count * quantity.NANO
    for dimension, units in capacity.items():
        total[name, dimension] = total.get((name, dimension), 0) + count * units


def _consumed(result: resource.DeviceResult) -> dict[str, int]:
    try:
        return {name: amounts.nanos(text) for name, text in result.consumed_capacity.items()}
    except quantity.QuantityError:
        return {}
