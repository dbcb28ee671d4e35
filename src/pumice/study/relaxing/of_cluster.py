"""What could be otherwise around a job: another job's end, a queue's limits, a budget, a quota, more nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
from msgspec import structs

from pumice.api import core, kinds, names, scheduling
from pumice.api.meta import ObjectMeta
from pumice.model import resources
from pumice.model.statuses import SETTLED
from pumice.study.relaxing.relaxation import Edit, Relaxation

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pumice.api.meta import KubeObject
    from pumice.model.nodes import NodeRecord
    from pumice.model.queue import Queue
    from pumice.model.resources import Amounts
    from pumice.study.relaxing.relaxation import Question

ENDS: Final = 4  # jobs of the same queue, and of others, whose end is looked at
KINDS_OF_NODES: Final = 3
MOST_NODES: Final = 64
UNCORDONED: Final = 2
OBSTACLES: Final = 3
_WEIGHED: Final = frozenset({"proportion", "drf"})
WEIGHTS: Final = (2, 5, 20)


def find(question: Question) -> Iterator[Relaxation]:
    """Walk over what could be changed around a job."""
    yield from _ends(question)
    yield from _queues(question)
    if question.waiting:
        yield from _obstacles(question)
        yield from _uncordoned(question)
        yield from _nodes(question)


def wanted(question: Question) -> Amounts:
    """Return what the members ask for that the job lacks, or what its group states where it has no pods."""
    lacking = max(1, question.job.min_member - question.job.tally.ready)
    asked: Amounts = {}
    for task in question.waiting[:lacking]:
        asked = resources.add(asked, task.shape.request.amounts)
    return asked if question.waiting else dict(question.job.min_resources or {})


def _changed(kind: kinds.Kind, before: KubeObject, after: KubeObject | None) -> Edit:
    return Edit(kind, before, lambda _found: after)


# -- other jobs ------------------------------------------------------------------------------------------------


def _ends(question: Question) -> Iterator[Relaxation]:
    """Let one running job end: the smallest that hold as much as is wanted, some of the same queue and some of any."""
    jobs = [job for job in question.cluster.jobs.values() if job is not question.job and job.group is not None]
    asked = wanted(question)
    # Ranked by the rarest thing that is asked for: devices before memory and cpu.
    known = question.cluster.vocabulary.columns
    names_asked = [name for name in asked if name in known and name != "pods"]
    names_asked.sort(key=lambda name: (name in ("cpu", "memory"), name))
    if not jobs or not names_asked:
        return
    held = question.cluster.job_sums.allocated[[job.row for job in jobs]][:, [known[name] for name in names_asked]]
    enough = np.logical_and.reduce(held >= np.array([asked[name] for name in names_asked]), axis=1)
    usable = np.flatnonzero(enough) if enough.any() else np.flatnonzero(held.any(axis=1))
    order = sorted(usable.tolist(), key=lambda index: (held[index].tolist(), jobs[index].key))
    own = [jobs[index] for index in order if jobs[index].queue == question.job.queue][:ENDS]
    for job in dict.fromkeys([*own, *(jobs[index] for index in order[:ENDS])]):
        placed = [task for task in job.tasks.values() if task.status in SETTLED]
        edits = tuple(_changed(kinds.POD, task.pod, None) for task in placed)
        yield Relaxation(sort="end", said=f"wait until {job.key} ends ({_pods(len(placed))})", edits=edits)


# -- queues ----------------------------------------------------------------------------------------------------


def _queues(question: Question) -> Iterator[Relaxation]:
    cluster, job = question.cluster, question.job
    queue = cluster.queues.get(job.queue)
    if queue is None:
        made = scheduling.Queue(metadata=ObjectMeta(name=job.queue, uid=f"queue-{job.queue}"))
        yield Relaxation(
            sort="queue", said=f"create the queue {job.queue}", edits=(Edit(kinds.QUEUE, None, lambda _found: made),)
        )
        return
    line = _line(question, queue)
    if queue.object is not None and not queue.is_open:
        status = structs.replace(queue.object.status, state=names.QUEUE_OPEN)
        opened = structs.replace(queue.object, status=status)
        yield Relaxation(
            sort="queue", said=f"open the queue {queue.name}", edits=(_changed(kinds.QUEUE, queue.object, opened),)
        )
    yield from _raised(question, line, "capability")
    if "capacity" in question.plugins:
        yield from _raised(question, line, "deserved")
    if question.plugins & _WEIGHED:
        yield from _weights(queue)


def _line(question: Question, queue: Queue) -> list[Queue]:
    """Return a queue and those above it, each once."""
    line, known = [queue], question.cluster.queues
    while (above := known.get(line[-1].parent)) is not None and above not in line:
        line.append(above)
    return line


def _raised(question: Question, line: Sequence[Queue], field: str) -> Iterator[Relaxation]:
    """Raise a limit of a queue, and of those above it, by what the job wants; then by what all wants that waits there, since others may come first."""
    own = wanted(question)
    waiting = [_sum(question, queue, "pending") for queue in line]
    said = set()
    for asked, note in (
        ([own] * len(line), ""),
        ([resources.highest(own, each) for each in waiting], ", for all that waits there"),
    ):
        raised = [_raise(question, queue, field, each) for queue, each in zip(line, asked, strict=True)]
        told = [text for text, _ in raised if text]
        if told and tuple(told) not in said:
            said.add(tuple(told))
            edits = tuple(edit for _, edit in raised if edit is not None)
            yield Relaxation(sort=field, said=f"raise {field} {', '.join(told)}{note}", edits=edits)


def _raise(question: Question, queue: Queue, field: str, asked: Amounts) -> tuple[str, Edit | None]:
    """Raise a limit of one queue to what is held there and asked for beyond it; nothing where it suffices."""
    limits: Amounts = getattr(queue, field)
    held = _sum(question, queue, "allocated")
    higher = {
        name: held.get(name, 0) + asked[name]
        for name, limit in sorted(limits.items())
        if name in asked and held.get(name, 0) + asked[name] > limit
    }
    if not higher or queue.object is None:
        return "", None
    told = [
        f"{name} of queue {queue.name} from {resources.shown(name, limits[name])} to {resources.shown(name, units)}"
        for name, units in higher.items()
    ]
    written = {**getattr(queue.object.spec, field), **{name: resources.shown(name, higher[name]) for name in higher}}
    return ", ".join(told), _changed(kinds.QUEUE, queue.object, _respecified(queue.object, **{field: written}))


def _sum(question: Question, queue: Queue, column: str) -> Amounts:
    """Return what the jobs of a queue and of those below it hold, or wait for."""
    cluster = question.cluster
    total: Amounts = {}
    for each in cluster.queues.values():
        if queue in _line(question, each):
            row = cluster.queue_sums.rows[each.name]
            total = resources.add(total, cluster.vocabulary.amounts(getattr(cluster.queue_sums, column)[row]))
    return total


def _weights(queue: Queue) -> Iterator[Relaxation]:
    if queue.object is None:
        return
    for times in WEIGHTS:
        weight = min(queue.weight * times, 65535)
        raised = _respecified(queue.object, weight=weight)
        said = f"raise the weight of queue {queue.name} from {queue.weight} to {weight}"
        yield Relaxation(sort="weight", said=said, edits=(_changed(kinds.QUEUE, queue.object, raised),))


def _respecified(queue: scheduling.Queue, **fields: Any) -> scheduling.Queue:
    return structs.replace(queue, spec=structs.replace(queue.spec, **fields))


# -- what stands in the way ------------------------------------------------------------------------------------


def _obstacles(question: Question) -> Iterator[Relaxation]:
    """Do without one budget that protects pods, or one quota of the namespace."""
    kept = question.cluster.objects
    obstacles = [(kinds.RESOURCE_QUOTA, "quota")] if "resourcequota" in question.plugins else []
    obstacles += [(kinds.POD_DISRUPTION_BUDGET, "budget")] if question.evicts else []
    for kind, sort in obstacles:
        own = [
            found
            for _, found in sorted(kept.get(kind.name, {}).items())
            if kind is not kinds.RESOURCE_QUOTA or found.metadata.namespace == question.job.namespace
        ]
        for found in own[:OBSTACLES]:
            said = f"drop the {kind.name} {found.metadata.namespace}/{found.metadata.name}"
            yield Relaxation(sort=sort, said=said, edits=(_changed(kind, found, None),))


# -- nodes -----------------------------------------------------------------------------------------------------


def _uncordoned(question: Question) -> Iterator[Relaxation]:
    """Let a cordoned node take pods again, the one with most room first."""
    table = question.cluster.nodes
    cordoned = [
        record
        for record in table.by_name.values()
        if record.object is not None and record.object.spec.unschedulable and record.row < table.count
    ]
    first = max(question.waiting, key=lambda task: task.key).shape.request.asked
    cordoned.sort(key=lambda record: [-int(table.view().idle[record.row, column]) for column in first] + [record.row])
    for record in cordoned[:UNCORDONED]:
        node = record.object
        if node is None:
            continue
        taints = tuple(taint for taint in node.spec.taints if taint.key != "node.kubernetes.io/unschedulable")
        usable = structs.replace(node, spec=structs.replace(node.spec, unschedulable=False, taints=taints))
        yield Relaxation(
            sort="cordon", said=f"uncordon node {record.name}", edits=(_changed(kinds.NODE, node, usable),)
        )


def _nodes(question: Question) -> Iterator[Relaxation]:
    """Add a node of each kind that could take a pod of the job, then as many as all its members would fill."""
    task = question.waiting[0]
    lacking = max(1, question.job.min_member - question.job.tally.ready)
    for alike in _kinds_of_nodes(question):
        model = alike[0]
        each = _takes(question, model, task.shape.request.amounts)
        if not each or model.object is None:
            continue
        for count in dict.fromkeys((1, min(MOST_NODES, -(-lacking // each)))):
            edits = tuple(_added(model.object, index) for index in range(count))
            said = f"add {count} more node{'s' if count > 1 else ''} like {model.name} ({_offer(question, model)})"
            yield Relaxation(sort="node", said=said, edits=edits)


def _kinds_of_nodes(question: Question) -> list[list[NodeRecord]]:
    """Return the kinds of nodes there are, the most frequent first: equal in what they offer, in taints and in labels that more than one has."""
    table = question.cluster.nodes
    records = [record for record in table.by_name.values() if record.object is not None and record.row < table.count]
    counted: dict[tuple[str, str], int] = {}
    for record in records:
        for label in record.object.metadata.labels.items() if record.object is not None else ():
            counted[label] = counted.get(label, 0) + 1
    grouped: dict[Any, list[NodeRecord]] = {}
    for record in sorted(records, key=lambda each: each.name):
        node = record.object
        if node is None or node.spec.unschedulable or not _is_ready(node):
            continue
        shared = frozenset(label for label in node.metadata.labels.items() if counted[label] > 1)
        offer = tuple(table.allocatable[record.row].tolist())
        grouped.setdefault((offer, node.spec.taints, shared), []).append(record)
    return sorted(grouped.values(), key=lambda alike: (-len(alike), alike[0].name))[:KINDS_OF_NODES]


def _is_ready(node: core.Node) -> bool:
    return all(each.status == "True" for each in node.status.conditions if each.type == names.CONDITION_READY)


def _takes(question: Question, record: NodeRecord, request: Amounts) -> int:
    """Return how many pods of a request an empty node takes."""
    cluster = question.cluster
    offered = cluster.vocabulary.amounts(cluster.nodes.allocatable[record.row])
    return min((offered.get(name, 0) // units for name, units in request.items() if units), default=0)


def _offer(question: Question, record: NodeRecord) -> str:
    cluster = question.cluster
    offered = cluster.vocabulary.amounts(cluster.nodes.allocatable[record.row])
    asked = question.waiting[0].shape.request.amounts
    return ", ".join(
        f"{name} {resources.shown(name, offered[name])}" for name in sorted(asked) if name in offered and name != "pods"
    )


def _added(model: core.Node, index: int) -> Edit:
    """Return a node like another one, empty, under a name that nobody has."""
    name = f"{model.metadata.name}-more-{index}"
    labels = {**model.metadata.labels}
    if names.HOSTNAME in labels:
        labels[names.HOSTNAME] = name
    made = structs.replace(
        model, metadata=structs.replace(model.metadata, name=name, uid=f"node-{name}", labels=labels)
    )
    return Edit(kinds.NODE, None, lambda _found: made)


def _pods(count: int) -> str:
    return f"{count} pod" if count == 1 else f"{count} pods"
