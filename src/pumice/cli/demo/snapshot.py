"""What can be seen of the cluster at one moment: queues, jobs and nodes as rows, read from the stored objects and the decision record."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any

import msgspec

from pumice.api import duration, kinds, names, timestamp
from pumice.framework import reason_keys
from pumice.scenario import manifests, requests

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pumice.sim.store import ObjectStore

FRESH = 4 * duration.SECOND  # for how long a placement counts as new


class State(Enum):
    """How a member of a job stands."""

    WAITING = "waiting"
    PLACED = "just placed"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"


class Member(msgspec.Struct, frozen=True):
    """A pod of a job; `cpu` in millicores, `started` in microseconds since the start of the demonstration."""

    name: str
    state: State
    node: str
    cpu: int
    started: int | None


class Job(msgspec.Struct, frozen=True):
    """A PodGroup with its pods."""

    key: str
    title: str
    queue: str
    minimum: int
    phase: str
    created: int
    members: tuple[Member, ...]
    reason: str
    condition: str

    def count(self, *states: State) -> int:
        """Count the members that are in one of these states."""
        return sum(member.state in states for member in self.members)

    @property
    def waits(self) -> bool:
        """Tell whether the job has less than its minimum."""
        return len(self.members) - self.count(State.WAITING) < self.minimum


class Node(msgspec.Struct, frozen=True):
    """A node; `parts` are the jobs and millicores of the pods on it."""

    name: str
    cpu: int
    parts: tuple[tuple[str, int], ...]

    @property
    def used(self) -> int:
        """The millicores in use."""
        return sum(cpu for _, cpu in self.parts)


class Queue(msgspec.Struct, frozen=True):
    """A queue with what its status says: millicores allocated, and groups by phase."""

    name: str
    allocated: int
    groups: dict[str, int]


class Snapshot(msgspec.Struct, frozen=True):
    """Everything at one moment, in microseconds since the start."""

    time: int
    cycle: int
    binds: int
    evictions: int
    jobs: tuple[Job, ...]
    nodes: tuple[Node, ...]
    queues: tuple[Queue, ...]


class Look(msgspec.Struct, frozen=True, kw_only=True):
    """When and how a cluster is looked at: the present and the start as its objects write time, and how much of the story passes in a second."""

    now: int
    start: int
    speed: float = 1.0
    cycle: int = 0
    binds: int = 0
    evictions: int = 0
    why: Callable[[str], str] | None = None  # what the decision record says of a job; else its group's condition does

    def since(self, moment: int) -> int:
        """Give how much of the story had passed at a moment."""
        return round((moment - self.start) * self.speed)


def look(store: ObjectStore, how: Look) -> Snapshot:
    """Read the cluster as it is now."""
    pods = list(store.scan(kinds.POD))
    by_group: dict[str, list[Mapping[str, Any]]] = {}
    for pod in pods:
        group = manifests.dig(pod, "metadata", "annotations", names.GROUP_NAME) or ""
        by_group.setdefault(f"{pod['metadata']['namespace']}/{group}", []).append(pod)
    groups = sorted(store.scan(kinds.POD_GROUP), key=lambda g: (_moment(g), _key(g)))
    return Snapshot(
        time=how.since(how.now),
        cycle=how.cycle,
        binds=how.binds,
        evictions=how.evictions,
        jobs=tuple(_job(group, by_group.get(_key(group), []), how) for group in groups),
        nodes=tuple(_node(node, pods) for node in store.scan(kinds.NODE)),
        queues=tuple(_queue(q) for q in store.scan(kinds.QUEUE) if q["metadata"]["name"] != names.ROOT_QUEUE),
    )


def clock(time: int) -> str:
    """Write a time as minutes and seconds."""
    minutes, seconds = divmod(time // duration.SECOND, 60)
    return f"{minutes:02}:{seconds:02}"


def _job(group: Mapping[str, Any], pods: list[Mapping[str, Any]], how: Look) -> Job:
    key = _key(group)
    owner = next((o for o in group["metadata"].get("ownerReferences", []) if o["kind"] == "Pod"), None)
    condition = _condition(group, names.CONDITION_UNSCHEDULABLE)
    return Job(
        key=key,
        title=f"{group['metadata']['namespace']}/{owner['name']}" if owner else key,
        queue=manifests.dig(group, "spec", "queue") or names.DEFAULT_QUEUE,
        minimum=manifests.dig(group, "spec", "minMember") or 0,
        phase=manifests.dig(group, "status", "phase") or names.PHASE_PENDING,
        created=how.since(_moment(group)),
        members=tuple(_member(pod, how) for pod in sorted(pods, key=lambda p: (_moment(p), _key(p)))),
        reason=how.why(key) if how.why is not None else reason_keys.cause(condition.partition(": ")[2]),
        condition=condition,
    )


def _member(pod: Mapping[str, Any], how: Look) -> Member:
    began = manifests.dig(pod, "status", "startTime")
    started = how.since(timestamp.parse(began)) if began else None
    node = manifests.dig(pod, "spec", "nodeName") or ""
    match manifests.dig(pod, "status", "phase"):
        case names.PHASE_SUCCEEDED:
            state = State.DONE
        case names.PHASE_FAILED:
            state = State.FAILED
        case _ if not node:
            state = State.WAITING
        case _:
            state = State.PLACED if started is None or how.since(how.now) - started < FRESH else State.RUNNING
    return Member(pod["metadata"]["name"], state, node, _cpu(pod), started)


def _node(node: Mapping[str, Any], pods: list[Any]) -> Node:
    name = node["metadata"]["name"]
    here = [p for p in pods if manifests.dig(p, "spec", "nodeName") == name and not _is_finished(p)]
    parts = []
    for pod in sorted(here, key=lambda p: (manifests.dig(p, "status", "startTime") or "", _key(p))):
        group = manifests.dig(pod, "metadata", "annotations", names.GROUP_NAME)
        parts.append((f"{pod['metadata']['namespace']}/{group}", _cpu(pod)))
    return Node(name, _milli(requests.amounts(manifests.dig(node, "status", "allocatable"))), tuple(parts))


def _queue(queue: Mapping[str, Any]) -> Queue:
    status = manifests.mapping(queue.get("status"))
    counts = {phase: int(status.get(phase) or 0) for phase in ("pending", "inqueue", "running", "completed")}
    return Queue(queue["metadata"]["name"], _milli(requests.amounts(status.get("allocated"))), counts)


def _condition(group: Mapping[str, Any], wanted: str) -> str:
    """Give reason and message of a group's condition."""
    for condition in manifests.sequence(manifests.dig(group, "status", "conditions")):
        if condition.get("type") == wanted and condition.get("status") == "True":
            return f"{wanted} ({condition.get('reason')}): {condition.get('message')}"
    return ""


def _is_finished(pod: Mapping[str, Any]) -> bool:
    return manifests.dig(pod, "status", "phase") in (names.PHASE_SUCCEEDED, names.PHASE_FAILED)


def _cpu(pod: Mapping[str, Any]) -> int:
    return _milli(requests.of_pod(pod))


def _milli(amounts: requests.Amounts) -> int:
    return int(amounts["cpu"] * 1000) if "cpu" in amounts else 0


def _moment(manifest: Mapping[str, Any]) -> int:
    return timestamp.parse(manifest["metadata"]["creationTimestamp"])


def _key(manifest: Mapping[str, Any]) -> str:
    return f"{manifest['metadata']['namespace']}/{manifest['metadata']['name']}"
