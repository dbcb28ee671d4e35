"""What is shown of a cluster at one moment: queues, jobs and nodes as rows of numbers. Pure records, and the order they are shown in."""

from __future__ import annotations

from typing import Final, Literal

import msgspec

from pumice.api import names
from pumice.model import resources

Amounts = dict[str, int]
Order = Literal["waiting", "use", "name"]

FIRST: Final = ("cpu", "memory")
HIDDEN: Final = ("pods", "ephemeral-storage", "hugepages-", "attachable-volumes-")


class QueueRow(msgspec.Struct, frozen=True, kw_only=True):
    """A queue; amounts in stored units. `waiting` and `running` count its groups."""

    name: str
    state: str
    parent: str
    weight: int
    allocated: Amounts
    deserved: Amounts
    capability: Amounts
    waiting: int
    running: int
    guarantee: Amounts = {}


class JobRow(msgspec.Struct, frozen=True, kw_only=True):
    """A group with its pods: `ready` of them are placed and have not failed, `minimum` are needed; `since` says since when it waits, in microseconds.

    `held` is what its pods on nodes ask for, `asked` what those without a node do. For `nominated` of these room is held, and `restarts` counts pods that
    came again under their names.
    """

    namespace: str
    name: str
    title: str
    queue: str
    phase: str
    minimum: int
    members: int
    ready: int
    created: int
    since: int | None
    reason: str
    held: Amounts = {}
    asked: Amounts = {}
    nominated: int = 0
    restarts: int = 0

    @property
    def waits(self) -> bool:
        """Whether it has less than its minimum."""
        return self.since is not None


class NodeRow(msgspec.Struct, frozen=True, kw_only=True):
    """A node: what it offers, and what its pods ask for; `state` says what keeps pods away."""

    name: str
    state: str
    allocatable: Amounts
    used: Amounts
    pods: int
    zone: str = ""
    pool: str = ""


class PodRow(msgspec.Struct, frozen=True, kw_only=True):
    """A pod; times in microseconds, None for what has not happened, or is not told."""

    namespace: str
    name: str
    group: str
    node: str
    phase: str
    going: bool
    request: Amounts
    created: int | None
    placed: int | None
    started: int | None
    nominated: str = ""


class EvictionRow(msgspec.Struct, frozen=True, kw_only=True):
    """A pod that had to go, of the group `victim`: for which claimant, of which group and queue, by which action, whose rules and which plan, as far as that is told; `text` is all that is."""

    id: str
    time: int
    namespace: str
    pod: str
    text: str
    action: str = ""
    claimant: str = ""
    group: str = ""
    queue: str = ""
    rules: str = ""
    plan: int | None = None
    victim: str = ""


class Scene(msgspec.Struct, frozen=True, kw_only=True):
    """Everything at one moment; `missing` says what could not be read, and why."""

    time: int
    queues: tuple[QueueRow, ...]
    jobs: tuple[JobRow, ...]
    nodes: tuple[NodeRow, ...]
    pods: int
    total: Amounts
    missing: tuple[str, ...] = ()

    @property
    def waiting(self) -> int:
        """How many jobs wait."""
        return sum(job.waits for job in self.jobs)


def dimensions(scene: Scene) -> tuple[str, ...]:
    """Name the resources that are worth a column: cpu, memory, then devices, those that most is held of first."""
    held: Amounts = {}
    for queue in scene.queues:
        for listed in (queue.allocated, queue.deserved, queue.capability):
            for name, amount in listed.items():
                held[name] = held.get(name, 0) + amount
    for name in scene.total:
        held.setdefault(name, 0)
    others = [name for name in held if name not in FIRST and not name.startswith(HIDDEN)]
    return (*FIRST, *sorted(others, key=lambda name: (-held[name], name)))


def ordered(scene: Scene, order: Order) -> Scene:
    """Put the rows into the order that was asked for; ties are broken by name."""
    return msgspec.structs.replace(
        scene,
        queues=tuple(sorted(scene.queues, key=lambda queue: (*_queue_key(queue, scene.total, order), queue.name))),
        jobs=tuple(sorted(scene.jobs, key=lambda job: (*_job_key(job, order), job.namespace, job.title))),
        nodes=tuple(sorted(scene.nodes, key=lambda node: (*_node_key(node, order), node.name))),
    )


def _queue_key(queue: QueueRow, total: Amounts, order: Order) -> tuple[float, ...]:
    root = float(queue.name != names.ROOT_QUEUE)
    if order == "name":
        return (root,)
    if order == "use":
        return (root, -max((share(queue.allocated, total, name) for name in queue.allocated), default=0.0))
    return (root, -queue.waiting, -queue.running)


def _job_key(job: JobRow, order: Order) -> tuple[float, ...]:
    if order == "name":
        return ()
    if order == "use":
        return (-job.ready,)
    ended = job.phase == names.PHASE_COMPLETED
    return (not job.waits, ended, job.since if job.since is not None else -job.created)


def _node_key(node: NodeRow, order: Order) -> tuple[float, ...]:
    if order == "name":
        return ()
    # What is in trouble first, then the fullest.
    return (not node.state, -max(share(node.used, node.allocatable, name) for name in FIRST))


def share(part: Amounts, whole: Amounts, name: str) -> float:
    """Give the share of a whole in one dimension; of nothing it is 0."""
    return part.get(name, 0) / whole[name] if whole.get(name) else 0.0


def short(name: str, units: int) -> str:
    """Write an amount in a few characters: 1.5 for 1500 millicores, 12.5Gi for bytes."""
    if name == "memory":
        for suffix, size in (("Ti", 1 << 40), ("Gi", 1 << 30), ("Mi", 1 << 20)):
            if units >= size:
                return f"{_decimal(units, size)}{suffix}"
        return str(units)
    return _decimal(units, resources.factor(name))


def _decimal(units: int, size: int) -> str:
    text = f"{units / size:.1f}"
    return text.removesuffix(".0")
