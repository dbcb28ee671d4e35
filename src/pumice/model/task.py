"""A task: one pod, as the scheduler sees it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from pumice.api import duration, names, timestamp
from pumice.model import marks, requests, shape, statuses

if TYPE_CHECKING:
    from collections.abc import Hashable

    from pumice.api import core
    from pumice.model.job import Job, SubJob, Tally
    from pumice.model.nodes import NodeRecord

_INT32 = 2**31


class Signed(Protocol):
    """What other pods mean to a pod, and it to them (`kinship.Bond`)."""

    def signature(self) -> Hashable:
        """Return what verdicts and scores depend on beside shape and nodes; None if nothing of other pods matters."""


class Task:
    """One pod; `status` and `node` are what this scheduler believes, which may run ahead of `pod`."""

    __slots__ = (
        "asks_queue",
        "best_effort",
        "bond",
        "creation",
        "eviction_refused",
        "externally_gated",
        "gated",
        "index",
        "job",
        "job_key",
        "name",
        "namespace",
        "node",
        "nominated",
        "pod",
        "preemptable",
        "priority",
        "refusal",
        "retry_at",
        "role",
        "shape",
        "status",
        "stays",
        "sub_job",
        "tallies",
        "uid",
    )

    def __init__(self, pod: core.Pod, interned: shape.Shape) -> None:
        meta = pod.metadata
        annotations = meta.annotations
        self.pod = pod
        self.uid = meta.uid
        self.namespace = meta.namespace
        self.name = meta.name
        group = annotations.get(names.GROUP_NAME, "")
        self.job_key = f"{meta.namespace}/{group}" if group else ""
        self.role = annotations.get(names.TASK_SPEC) or meta.labels.get(names.TASK_SPEC, "")
        self.priority = _priority(pod)
        self.shape = interned
        self.best_effort = interned.request.best_effort
        self.preemptable = marks.is_preemptable(annotations, meta.labels, default=True)
        gates = [gate.name for gate in pod.spec.scheduling_gates]
        self.gated = bool(gates)
        self.externally_gated = self.gated and gates != [names.QUEUE_GATE]
        self.asks_queue = annotations.get(names.QUEUE_GATE) == "true"
        self.creation = instant(meta.creation_timestamp)
        self.index = name_index(meta.name)
        self.status = statuses.from_pod(pod.status.phase, pod.spec.node_name, deleting=bool(meta.deletion_timestamp))
        self.stays = _stays(pod)
        self.nominated = pod.status.nominated_node_name
        self.node: NodeRecord | None = None
        self.bond: Signed | None = None
        self.job: Job | None = None
        self.sub_job: SubJob | None = None
        self.tallies: tuple[Tally, ...] = ()
        self.retry_at = 0
        self.refusal = ""  # what the failure of its last bind said
        self.eviction_refused: int | None = None  # when an eviction was given up that the API server refused

    @property
    def key(self) -> str:
        """Namespace and name."""
        return f"{self.namespace}/{self.name}"

    @property
    def likeness(self) -> tuple[int, Hashable]:
        """What filters and scores see of the task: its shape, and what other pods mean to it and it to them."""
        return self.shape.serial, None if self.bond is None else self.bond.signature()

    def __repr__(self) -> str:
        return f"<task {self.key} {self.status.title}>"


def _stays(pod: core.Pod) -> bool:
    """Tell whether a pod belongs to its node: a static pod, whose controller is the node, or one of a daemon set."""
    return any(owner.controller and owner.kind in ("Node", "DaemonSet") for owner in pod.metadata.owner_references)


def build(pod: core.Pod, shapes: shape.Shapes) -> Task:
    """Make a task of a pod, or raise the `BadValueError` that disables it."""
    blueprint = shape.blueprint_of(pod)
    interned = None if blueprint is None else shapes.recall(blueprint)
    if interned is None:
        amounts = requests.of_pod(pod)
        interned = shapes.intern(shape.constraints_of(pod), amounts, requests.non_zero(pod, amounts))
        if blueprint is not None:
            shapes.remember(blueprint, interned)
    return Task(pod, interned)


def name_index(name: str) -> int | None:
    """Return the number at the end of a name of three or more parts, such as `mpi-worker-10`."""
    parts = name.split("-")
    last = parts[-1]
    return int(last) if len(parts) >= 3 and last.isascii() and last.isdigit() and len(last) <= 18 else None


def instant(text: str | None) -> int:
    """Read a timestamp, an unreadable one being the oldest."""
    try:
        return timestamp.parse(text) if text else 0
    except timestamp.TimestampError:
        return 0


def positive_duration(text: str | None) -> int | None:
    """Read a duration that must be above zero to mean anything."""
    if not text:
        return None
    try:
        value = duration.parse(text)
    except duration.DurationError:
        return None
    return value if value > 0 else None


def _priority(pod: core.Pod) -> int:
    """Return the priority inside the job: the annotation, else the pod's, else 1."""
    text = pod.metadata.annotations.get(names.TASK_PRIORITY)
    if text is not None:
        try:
            value = int(text, 10)
        except ValueError:
            value = None
        if value is not None and -_INT32 <= value < _INT32:
            return value
    return 1 if pod.spec.priority is None else pod.spec.priority
