"""The last look before binds leave: what has come in since the cycle began and speaks against them.

A cycle decides on the model as it was when it opened. Events that arrive meanwhile wait until it ends, but a bind that one of them overtakes would
land on a node that is gone, shrunk or taken. They are looked at here without being applied; what they say ends with the cycle.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pumice.api import core, decoding, kinds, meta, names, scheduling
from pumice.model import native_groups, requests, resources

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pumice.model.cluster import Cluster
    from pumice.model.nodes import NodeRecord
    from pumice.model.task import Task


FINISHED = frozenset({names.PHASE_SUCCEEDED, names.PHASE_FAILED})


class Overtaking:
    """Objections to binds, from events that are not applied yet."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._pods: dict[str, str] = {}
        self._nodes: dict[str, str] = {}
        self._groups: dict[str, str] = {}
        self._queues: dict[str, str] = {}
        self._arrivals: dict[str, dict[str, core.Pod]] = {}  # node -> pods by uid that the model does not count there
        self._arrived: dict[str, str] = {}  # uid of such a pod -> node

    def clear(self) -> None:
        """Forget everything: it is applied now."""
        for kept in (self._pods, self._nodes, self._groups, self._queues, self._arrivals, self._arrived):
            kept.clear()

    def note(self, kind: kinds.Kind, found: meta.KubeObject | decoding.Malformed, *, gone: bool) -> None:
        """Take in one event that waits."""
        metadata = found.metadata
        match kind.name:
            case "Pod":
                self._note_pod(found, gone=gone)
            case "Node":
                self._note_node(found, gone=gone)
            case "PodGroup" if kind is kinds.NATIVE_POD_GROUP:
                self._note_native(metadata, gone=gone)
            case "PodGroup":
                self._note_group(f"{metadata.namespace}/{metadata.name}", found, gone=gone)
            case "Queue" if gone and metadata.name in self._cluster.queues:
                self._queues[metadata.name] = f"queue {metadata.name} has been deleted"

    def objections(self, tasks: Sequence[Task]) -> dict[str, str]:
        """Say by uid which of these tasks, each on the node chosen for it, can no longer be bound, and why."""
        if not (self._pods or self._nodes or self._groups or self._queues or self._arrivals):
            return {}
        crowded: dict[str, str] = {}
        found: dict[str, str] = {}
        for task in tasks:
            node = "" if task.node is None else task.node.name
            if task.node is not None and node in self._arrivals and node not in crowded:
                crowded[node] = self._crowded(task.node)
            text = (
                self._pods.get(task.uid)
                or self._nodes.get(node)
                or crowded.get(node)
                or self._groups.get(task.job_key)
                or (self._queues.get(task.job.queue) if task.job is not None else None)
            )
            if text:
                found[task.uid] = text
        return found

    def _note_pod(self, found: meta.KubeObject | decoding.Malformed, *, gone: bool) -> None:
        uid, name = found.metadata.uid, f"{found.metadata.namespace}/{found.metadata.name}"
        if (before := self._arrived.pop(uid, None)) is not None:
            del self._arrivals[before][uid]
        known = self._cluster.tasks.get(uid)
        if known is not None and (gone or found.metadata.deletion_timestamp):
            self._pods[uid] = f"pod {name} has been deleted"
        if gone or not isinstance(found, core.Pod) or not found.spec.node_name or found.status.phase in FINISHED:
            return
        node = found.spec.node_name
        if known is None or known.node is None or known.node.name != node:
            self._arrived[uid] = node
            self._arrivals.setdefault(node, {})[uid] = found
            self._pods.setdefault(uid, f"pod {name} was bound to node {node} by somebody else")

    def _note_node(self, found: meta.KubeObject | decoding.Malformed, *, gone: bool) -> None:
        name = found.metadata.name
        record = self._cluster.nodes.by_name.get(name)
        if record is None or record.object is None:
            return
        if gone or not isinstance(found, core.Node):
            self._nodes[name] = f"node {name} {'has been deleted' if gone else 'can no longer be read'}"
        elif changed := _changed(record, found):
            self._nodes[name] = f"{changed} of node {name} changed"
        else:
            self._nodes.pop(name, None)

    def _note_group(self, key: str, found: meta.KubeObject | decoding.Malformed, *, gone: bool) -> None:
        job = self._cluster.jobs.get(key)
        if job is None or job.group is None:
            return
        if gone:
            self._groups[key] = f"PodGroup {key} has been deleted"
        elif not isinstance(found, scheduling.PodGroup):
            self._groups[key] = f"PodGroup {key} can no longer be read"
        elif found.spec.min_member != job.group.spec.min_member:
            counts = f"from {job.group.spec.min_member} to {found.spec.min_member}"
            self._groups[key] = f"minMember of PodGroup {key} changed {counts}"
        elif found.spec != job.group.spec and job.queue != (found.spec.queue or self._cluster.default_queue):
            self._groups[key] = f"PodGroup {key} moved from queue {job.queue} to {found.spec.queue}"
        else:
            self._groups.pop(key, None)

    def _note_native(self, metadata: meta.ObjectMeta, *, gone: bool) -> None:
        """Note a group of Kubernetes' own, of which nothing can change but that it goes, or that another takes its place."""
        key = native_groups.key_of(metadata.namespace, metadata.name)
        job = self._cluster.jobs.get(key)
        if job is None or job.group is None:
            return
        if gone or metadata.deletion_timestamp:
            self._groups[key] = f"PodGroup {key} has been deleted"
        elif metadata.uid != job.group.metadata.uid:
            self._groups[key] = f"PodGroup {key} was replaced"

    def _crowded(self, record: NodeRecord) -> str:
        """Say what is short on a node once the pods that appeared there are counted too."""
        pods = self._arrivals[record.name]
        total: resources.Amounts = {}
        for pod in pods.values():
            try:
                total = resources.add(total, requests.of_pod(pod))
            except resources.BadValueError:
                continue  # such a pod counts for nothing
        nodes = self._cluster.nodes
        left = nodes.idle_at(record.row).tolist()
        idle = dict(zip(self._cluster.vocabulary.names, left, strict=False))
        for resource, units in total.items():
            if units > 0 and resource in idle and idle[resource] < units:
                first = next(iter(pods.values())).metadata
                more = f" and {len(pods) - 1} more" if len(pods) > 1 else ""
                shown = f"{resources.shown(resource, units)} {resource}"
                return f"pod {first.namespace}/{first.name}{more} with {shown} appeared on node {record.name}"
        return ""


def still_stands(task: Task, decided_on: core.Node, cluster: Cluster) -> bool:
    """Tell whether a task may be bound to the node that it counts on: nothing that the decision rested on has changed since."""
    record, job = task.node, task.job
    if record is None or record.object is None or job is None or job.group is None:
        return False
    if record.object is not decided_on and _differs(decided_on, record.object, ready=True):
        return False
    table, request = cluster.nodes, task.shape.request
    idle = table.idle_at(record.row)
    return not request.unoffered and bool((idle[request.asked] >= 0).all())


def _changed(record: NodeRecord, found: core.Node) -> str:
    """Name what a node says differently than what is known, as far as a bind could mind."""
    return "" if record.object is None else _differs(record.object, found, ready=record.ready)


def _differs(known: core.Node, found: core.Node, *, ready: bool) -> str:
    if known.metadata.uid != found.metadata.uid:
        return "the identity"
    if known.status.allocatable != found.status.allocatable:
        return "the allocatable amounts"
    if known.spec != found.spec:
        return "taints or cordon"
    if known.metadata.labels != found.metadata.labels:
        return "labels"
    if ready and any(c.type == "Ready" and c.status != "True" for c in found.status.conditions):
        return "readiness"
    return ""
