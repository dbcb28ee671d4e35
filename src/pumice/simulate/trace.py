"""What a trace says, whatever its format: jobs in the order of their arrival, and the cluster if the file describes one.

Times are whole microseconds; submit counts from the trace's own zero. Pod specs are shared between members, and between jobs that ask for the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pumice.api import core, kinds, meta, scheduling
from pumice.cache.reflector import EventType  # noqa: TC001  msgspec reads the annotations at run time

if TYPE_CHECKING:
    from collections.abc import Iterable

Given = tuple[kinds.Kind, meta.KubeObject]
"""An object of the cluster, with its kind."""


class TraceError(Exception):
    """A trace, or a cluster, that cannot be simulated; the message names file, line and field."""

    def __init__(self, file: str, line: int, field: str, message: str) -> None:
        place = f"{file}:{line}" if line else file
        super().__init__(": ".join(part for part in (place, field, message) if part))


class Members(msgspec.Struct, frozen=True, kw_only=True):
    """Equal members of a job: how many, what each needs, and how long each runs (None: for ever)."""

    count: int
    spec: core.PodSpec
    run_time: int | None
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}


class TraceJob(msgspec.Struct, frozen=True, kw_only=True):
    """One job: all of its members arrive at `submit`, and it starts when `min_member` of them run."""

    number: int
    name: str
    submit: int
    members: tuple[Members, ...]
    min_member: int
    run_time: int | None
    namespace: str = "default"
    queue: str = ""
    user: str = ""
    priority: str = ""
    estimate: int | None = None
    checkpoint: int = 0
    failed: bool = False
    group: scheduling.PodGroupSpec | None = None
    """What else its group says, such as a topology."""
    line: int = 0

    @property
    def key(self) -> str:
        """The name of its group."""
        return f"{self.namespace}/{self.name}"

    @property
    def size(self) -> int:
        """How many members it has."""
        return sum(each.count for each in self.members)


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """Something that happens to an object of the cluster at a time of the trace: a node comes, changes or goes."""

    at: int
    kind: kinds.Kind
    event: EventType
    object: meta.KubeObject


class Trace(msgspec.Struct, kw_only=True):
    """A whole trace: jobs by submit, in the order of the file where that is equal; what was left out, and what is to be said about it."""

    source: str
    jobs: list[TraceJob]
    cluster: list[Given] = []
    changes: list[Change] = []
    skipped: int = 0
    notes: list[str] = []
    stays: bool = False
    """Whether pods arrive one by one, each decided before the next: whoever finds no room goes."""
    shown: dict[str, str] = {}
    """What nodes are called whose names say their order."""
    history: list[core.PodSpec] | None = None
    """Pods that are typical, if they are told and not learnt from those that arrive."""


def pod_spec(requests: meta.ResourceList, *, scheduler: str, **more: object) -> core.PodSpec:
    """Make the spec of a pod with one container."""
    container = core.Container(name="main", resources=core.ResourceRequirements(requests=requests))
    return msgspec.structs.replace(core.PodSpec(scheduler_name=scheduler, containers=(container,)), **more)


def node(name: str, offers: meta.ResourceList, labels: dict[str, str] | None = None) -> Given:
    """Make a node that is ready."""
    ready = meta.Condition(type="Ready", status="True")
    metadata = meta.ObjectMeta(name=name, uid=f"node-{name}", labels={"kubernetes.io/hostname": name, **(labels or {})})
    status = core.NodeStatus(allocatable=offers, capacity=offers, conditions=(ready,))
    return kinds.NODE, core.Node(metadata=metadata, status=status)


def ordered(jobs: Iterable[TraceJob]) -> list[TraceJob]:
    """Put jobs into the order of their arrival; those of one instant stay in the order of the trace."""
    return sorted(jobs, key=lambda job: job.submit)
