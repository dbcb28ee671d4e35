"""Follows what `pumice top` shows: takes every change as it comes, keeps sums by node and group, and gives a scene when asked.

A change costs the same whatever the size of the cluster; a scene costs a look at queues, groups and nodes, never at pods.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from msgspec import structs

from pumice.api import core, decoding, kinds, names, native, scheduling, timestamp
from pumice.api.printable import printable
from pumice.cli.top.scene import Amounts, JobRow, NodeRow, QueueRow, Scene
from pumice.framework import causes, reason_keys
from pumice.model import group_meaning, native_groups, requests, resources

if TYPE_CHECKING:
    from pumice.api.meta import KubeObject, ObjectMeta, ResourceList
    from pumice.cache.reflector import EventType

Key = tuple[str, str]
K = TypeVar("K")
V = TypeVar("V")

OPEN: Final = "Open"
_WAITING: Final = frozenset({"", names.PHASE_PENDING, names.PHASE_INQUEUE})


class Use(NamedTuple):
    """What one pod counts for; `ended` is how it ended, if it has."""

    node: str
    group: Key | None
    amounts: Amounts
    placed: bool
    ended: str


class Tally:
    """Sums over some pods."""

    __slots__ = ("amounts", "members", "pods", "ready")

    def __init__(self) -> None:
        self.amounts: Amounts = {}
        self.members = 0
        self.pods = 0
        self.ready = 0

    def add(self, use: Use, sign: int) -> None:
        """Add a pod, or take it away."""
        self.members += sign
        self.ready += sign * (use.placed and use.ended != names.PHASE_FAILED)
        if use.node and not use.ended:
            self.pods += sign
            for name, amount in use.amounts.items():
                self.amounts[name] = self.amounts.get(name, 0) + sign * amount


class Tracker:
    """Knows the cluster as far as it was told."""

    def __init__(self) -> None:
        self._pods: dict[Key, Use] = {}
        self._by_node: dict[str, Tally] = {}
        self._by_group: dict[Key, Tally] = {}
        self._groups: dict[Key, scheduling.PodGroup] = {}
        self._queues: dict[Key, scheduling.Queue] = {}
        self._nodes: dict[Key, NodeRow] = {}

    def feed(
        self, kind: kinds.Kind, event_type: EventType, found: KubeObject | decoding.Malformed, _raw: bytes = b"", /
    ) -> None:
        """Take a change; an object that cannot be read counts as absent."""
        key = (found.metadata.namespace, found.metadata.name)
        gone = event_type == "DELETED" or isinstance(found, decoding.Malformed)
        if kind is kinds.POD:
            self._pod(key, None if gone or not isinstance(found, core.Pod) else _use(found))
        elif kind is kinds.NODE:
            _put(self._nodes, key, None if gone or not isinstance(found, core.Node) else _node(found))
        elif kind is kinds.QUEUE:
            _put(self._queues, key, None if gone or not isinstance(found, scheduling.Queue) else found)
        elif kind is kinds.POD_GROUP:
            _put(self._groups, key, None if gone or not isinstance(found, scheduling.PodGroup) else found)
        elif kind is kinds.NATIVE_POD_GROUP:
            key = (key[0], f"{key[1]}{native_groups.MARK}")
            _put(self._groups, key, None if gone or not isinstance(found, native.PodGroup) else _native(found))

    @property
    def objects(self) -> int:
        """How many objects are known."""
        return len(self._pods) + len(self._groups) + len(self._queues) + len(self._nodes)

    def look(self, now: int, missing: tuple[str, ...] = ()) -> Scene:
        """Give the cluster as it is now."""
        nodes = tuple(self._used(node) for node in self._nodes.values())
        total: Amounts = {}
        for node in nodes:
            for name, amount in node.allocatable.items():
                total[name] = total.get(name, 0) + amount
        waiting, running = self._counted()
        return Scene(
            time=now,
            queues=tuple(_queue(queue, waiting, running) for queue in self._queues.values()),
            jobs=tuple(_job(group, self._by_group.get(key)) for key, group in self._groups.items()),
            nodes=nodes,
            pods=len(self._pods),
            total=total,
            missing=missing,
        )

    def _pod(self, key: Key, new: Use | None) -> None:
        old = self._pods.get(key)
        if old is not None:
            self._account(old, -1)
        if new is not None:
            self._account(new, +1)
        _put(self._pods, key, new)

    def _account(self, use: Use, sign: int) -> None:
        if use.node:
            _tally(self._by_node, use.node, use, sign)
        if use.group is not None:
            _tally(self._by_group, use.group, use, sign)

    def _used(self, node: NodeRow) -> NodeRow:
        tally = self._by_node.get(node.name)
        if tally is None:
            return node
        return NodeRow(
            name=node.name, state=node.state, allocatable=node.allocatable, used=dict(tally.amounts), pods=tally.pods
        )

    def _counted(self) -> tuple[dict[str, int], dict[str, int]]:
        """Count the groups of each queue that wait, and that run."""
        waiting: dict[str, int] = {}
        running: dict[str, int] = {}
        for group in self._groups.values():
            queue, phase = group.spec.queue or names.DEFAULT_QUEUE, group.status.phase
            if phase in _WAITING:
                waiting[queue] = waiting.get(queue, 0) + 1
            elif phase == names.PHASE_RUNNING:
                running[queue] = running.get(queue, 0) + 1
        return waiting, running


def _put(known: dict[K, V], key: K, new: V | None) -> None:
    if new is None:
        known.pop(key, None)
    else:
        known[key] = new


def _tally(tallies: dict[K, Tally], key: K, use: Use, sign: int) -> None:
    """Change a sum; one over nothing is forgotten."""
    tally = tallies.get(key)
    if tally is None:
        tally = tallies[key] = Tally()
    tally.add(use, sign)
    if not tally.members:
        del tallies[key]


def _use(pod: core.Pod) -> Use:
    group = native_groups.name_in_job(pod)
    try:
        amounts = requests.of_pod(pod)
    except resources.BadValueError:
        amounts = {}  # it counts for nothing, as for the scheduler
    ended = pod.status.phase if pod.status.phase in (names.PHASE_SUCCEEDED, names.PHASE_FAILED) else ""
    return Use(
        node=pod.spec.node_name,
        group=(pod.metadata.namespace, group) if group else None,
        amounts=amounts,
        placed=bool(pod.spec.node_name),
        ended=ended,
    )


def _node(node: core.Node) -> NodeRow:
    ready = next((each.status for each in node.status.conditions if each.type == "Ready"), "True")
    states = [*(["NotReady"] if ready != "True" else []), *(["Cordoned"] if node.spec.unschedulable else [])]
    return NodeRow(
        name=node.metadata.name,
        state=",".join(states),
        allocatable=_amounts(node.status.allocatable),
        used={},
        pods=0,
    )


def _native(found: native.PodGroup) -> scheduling.PodGroup:
    """Give a group of Kubernetes' own as one of Volcano's, as far as a row shows it: the condition stands for phase and verdict."""
    group, _ = group_meaning.described(found, [], {})
    stated = next((c for c in found.status.conditions if c.type == names.CONDITION_POD_GROUP_SCHEDULED), None)
    verdict = scheduling.PodGroupCondition(
        type=names.CONDITION_UNSCHEDULABLE,
        status="False" if stated is None or stated.status == "True" else "True",
        reason="" if stated is None else stated.reason,
        message="" if stated is None else stated.message,
        last_transition_time=None if stated is None else stated.last_transition_time,
    )
    scheduled = stated is not None and stated.status == "True"
    return scheduling.PodGroup(
        metadata=structs.replace(found.metadata, name=native_groups.name_of_job(found)),
        spec=scheduling.PodGroupSpec(min_member=group.spec.min_member, queue=group.spec.queue),
        status=scheduling.PodGroupStatus(
            phase=names.PHASE_RUNNING if scheduled else names.PHASE_PENDING, conditions=(verdict,)
        ),
    )


def _queue(queue: scheduling.Queue, waiting: dict[str, int], running: dict[str, int]) -> QueueRow:
    name = queue.metadata.name
    return QueueRow(
        name=name,
        state=queue.status.state or OPEN,
        parent=queue.spec.parent,
        weight=queue.spec.weight,
        allocated=_amounts(queue.status.allocated),
        deserved=_amounts(queue.spec.deserved),
        capability=_amounts(queue.spec.capability),
        waiting=waiting.get(name, 0),
        running=running.get(name, 0),
    )


def _job(group: scheduling.PodGroup, tally: Tally | None) -> JobRow:
    created = _moment(group.metadata.creation_timestamp) or 0
    lost = group.status.phase == names.PHASE_UNKNOWN
    waits = lost or group.status.phase in _WAITING
    verdict = next(
        (
            each
            for each in group.status.conditions
            if each.type == names.CONDITION_UNSCHEDULABLE and each.status == "True"
        ),
        None,
    )
    since = (_moment(verdict.last_transition_time) if verdict and lost else None) or created
    return JobRow(
        namespace=group.metadata.namespace,
        name=group.metadata.name,
        title=_owner(group.metadata),
        queue=group.spec.queue or names.DEFAULT_QUEUE,
        phase=group.status.phase or names.PHASE_PENDING,
        minimum=group.spec.min_member,
        members=tally.members if tally else 0,
        ready=tally.ready if tally else 0,
        created=created,
        since=since if waits else None,
        reason=printable(_reason(group, verdict, tally)) if waits else "",
    )


def _reason(group: scheduling.PodGroup, verdict: scheduling.PodGroupCondition | None, tally: Tally | None) -> str:
    """Give the cause that a verdict begins with; a group that was let in and has no pods has no verdict."""
    if verdict is not None:
        return reason_keys.cause(verdict.message or verdict.reason)
    if group.status.phase == names.PHASE_INQUEUE and tally is None and group.spec.min_member > 0:
        return f"{causes.NO_PODS}, minMember is {group.spec.min_member}"
    return ""


def _owner(metadata: ObjectMeta) -> str:
    """Name a group as its user does: by the job or pod that it was made for."""
    owner = next((each for each in metadata.owner_references if each.kind in ("Job", "Pod")), None)
    return printable(owner.name if owner is not None else metadata.name)


def _amounts(listed: ResourceList) -> Amounts:
    """Read amounts; one that cannot be read is left out."""
    read: Amounts = {}
    for name, text in listed.items():
        if resources.is_counted(name):
            try:
                read[name] = resources.amount(name, text, name)
            except resources.BadValueError:
                continue
    return read


def _moment(text: str | None) -> int | None:
    try:
        return timestamp.parse(text) if text else None
    except timestamp.TimestampError:
        return None
