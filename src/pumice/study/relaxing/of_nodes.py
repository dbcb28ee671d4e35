"""What could be otherwise about nodes: labels that pods ask for, one that is cordoned, more of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from msgspec import structs

from pumice.api import core, kinds, names
from pumice.model import resources
from pumice.study.relaxing import relaxation
from pumice.study.relaxing.relaxation import Edit, Relaxation

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pumice.api.meta import KubeObject
    from pumice.model.nodes import NodeRecord
    from pumice.model.resources import Amounts
    from pumice.study.relaxing.relaxation import Question

KINDS_OF_NODES: Final = 3
MOST_NODES: Final = 64
UNCORDONED: Final = 8
NAMED: Final = 3


def find(question: Question) -> Iterator[Relaxation]:
    """Walk over what could be changed about nodes."""
    if question.members:
        yield from _labelled(question)
        yield from _uncordoned(question)
        yield from _nodes(question)


def _roomy(question: Question, records: list[NodeRecord]) -> list[NodeRecord]:
    """Order nodes by how many of the largest members they could take now, then by how many they could take at all."""
    table = question.cluster.nodes
    idle = table.view().idle
    asked = question.members[0].shape.request.amounts

    def room(record: NodeRecord) -> tuple[int, int, str]:
        free = question.cluster.vocabulary.amounts(idle[record.row])
        return -_fits(free, asked), -_takes(question, record, asked), record.name

    return sorted(records, key=room)


def _usable(question: Question) -> list[NodeRecord]:
    table = question.cluster.nodes
    return [record for record in table.by_name.values() if record.object is not None and record.row < table.count]


# -- labels ----------------------------------------------------------------------------------------------------


def _labelled(question: Question) -> Iterator[Relaxation]:
    """Give nodes the labels that the pods ask for, those with most room first."""
    wanted = _wanted_labels(question)
    if not wanted:
        return
    lacking = [
        record for record in _usable(question) if _open(record) and not wanted.items() <= _labels(record).items()
    ]
    ranked = _roomy(question, lacking)[: min(MOST_NODES, question.lacking)]
    if ranked:
        yield relaxation.graded(len(ranked), lambda number: _labelling(ranked[:number], wanted))


def _wanted_labels(question: Question) -> dict[str, str]:
    """Return the labels that pods of the job ask for; where they contradict each other those of the largest."""
    wanted: dict[str, str] = {}
    for task in question.members:
        wanted |= {key: value for key, value in _asked_labels(task.pod.spec).items() if key not in wanted}
    wanted.pop(names.HOSTNAME, None)
    return wanted


def _labelling(records: list[NodeRecord], wanted: dict[str, str]) -> Relaxation:
    listed = ", ".join(f"{key}={value}" for key, value in sorted(wanted.items()))
    named = ", ".join(record.name for record in records[:NAMED])
    more = f" and {len(records) - NAMED} more" if len(records) > NAMED else ""

    def change(found: KubeObject | None) -> KubeObject | None:
        if not isinstance(found, core.Node):
            return found
        return structs.replace(
            found, metadata=structs.replace(found.metadata, labels={**found.metadata.labels, **wanted})
        )

    what = "node" if len(records) == 1 else "nodes"
    edits = tuple(Edit(kinds.NODE, record.object, change) for record in records)
    return Relaxation(sort="label", said=f"label {what} {named}{more} {listed}", edits=edits)


def _labels(record: NodeRecord) -> dict[str, str]:
    return record.object.metadata.labels if record.object is not None else {}


def _open(record: NodeRecord) -> bool:
    return record.object is not None and not record.object.spec.unschedulable


def _asked_labels(spec: core.PodSpec) -> dict[str, str]:
    """Return labels that would satisfy a pod's selector, and the first term of its node affinity as far as labels can."""
    found = dict(spec.node_selector)
    affinity = spec.affinity.node_affinity if spec.affinity is not None else None
    required = affinity.required_during_scheduling_ignored_during_execution if affinity is not None else None
    for term in (required.node_selector_terms if required is not None else ())[:1]:
        for rule in term.match_expressions:
            if rule.operator == "In" and rule.values:
                found.setdefault(rule.key, rule.values[0])
            elif rule.operator == "Exists":
                found.setdefault(rule.key, "true")
    return found


# -- nodes that are closed -------------------------------------------------------------------------------------


def _uncordoned(question: Question) -> Iterator[Relaxation]:
    """Let cordoned nodes take pods again, those with most room first."""
    cordoned = [
        record for record in _usable(question) if record.object is not None and record.object.spec.unschedulable
    ]
    ranked = _roomy(question, cordoned)[:UNCORDONED]
    if ranked:
        yield relaxation.graded(len(ranked), lambda number: _uncordoning(ranked[:number]))


def _uncordoning(records: list[NodeRecord]) -> Relaxation:
    named = ", ".join(record.name for record in records)
    edits = tuple(Edit(kinds.NODE, record.object, _opened) for record in records)
    return Relaxation(sort="cordon", said=f"uncordon node{'s' if len(records) > 1 else ''} {named}", edits=edits)


def _opened(found: KubeObject | None) -> KubeObject | None:
    if not isinstance(found, core.Node):
        return found
    taints = tuple(taint for taint in found.spec.taints if taint.key != "node.kubernetes.io/unschedulable")
    return structs.replace(found, spec=structs.replace(found.spec, unschedulable=False, taints=taints))


# -- more nodes ------------------------------------------------------------------------------------------------


def _nodes(question: Question) -> Iterator[Relaxation]:
    """Add nodes of a kind that could take every pod of the job; where there is none, nodes that are made for them."""
    waiting = sum(len(job.pending) for job in question.cluster.pending_jobs.values() if job is not question.job)
    most = min(MOST_NODES, question.lacking + waiting)  # who comes first may take what is added
    shapes = list({id(task.shape): task.shape for task in question.members}.values())
    for alike in _kinds_of_nodes(question):
        if all(_takes(question, alike[0], shape.request.amounts) for shape in shapes):
            model = alike[0]
            yield relaxation.graded(most, lambda number, model=model: _more(question, model, number))  # type: ignore[misc]
    yield from _made_to_measure(question, most)


def _more(question: Question, model: NodeRecord, count: int) -> Relaxation:
    assert model.object is not None  # noqa: S101  only such are looked at
    node = model.object
    edits = tuple(_added(node, index, dict(node.status.allocatable)) for index in range(count))
    said = f"add {count} more node{'s' if count > 1 else ''} like {model.name} ({_offer(question, model)})"
    return Relaxation(sort="node", said=said, edits=edits)


def _made_to_measure(question: Question, most: int) -> Iterator[Relaxation]:
    """Add nodes that offer what the largest pod asks for, with the labels it asks for, like none that is there."""
    usable = [record for record in _usable(question) if record.object is not None and _is_ready(record.object)]
    if not usable:
        return
    asked: Amounts = {}
    for task in question.members:
        asked = resources.highest(asked, task.shape.request.amounts)
    model = min(usable, key=lambda record: (bool(_taints(record)), record.name))
    node = model.object
    assert node is not None  # noqa: S101  only such are looked at
    labels = _wanted_labels(question)
    offered = {name: resources.shown(name, units) for name, units in sorted(asked.items()) if name != "pods"}
    whole = {"memory": "1Gi", **offered, "pods": "110"}
    bare = structs.replace(
        node,
        metadata=structs.replace(node.metadata, name="node", labels={names.HOSTNAME: "", **labels}),
        spec=structs.replace(node.spec, taints=(), unschedulable=False),
    )
    listed = ", ".join(
        [*(f"{name} {amount}" for name, amount in offered.items()), *(f"{k}={v}" for k, v in labels.items())]
    )

    def at(number: int) -> Relaxation:
        edits = tuple(_added(bare, index, whole) for index in range(number))
        said = f"add {number} node{'s' if number > 1 else ''} with {listed or 'room for a pod'}"
        return Relaxation(sort="larger", said=said, edits=edits)

    yield relaxation.graded(most, at)


def _taints(record: NodeRecord) -> tuple[core.Taint, ...]:
    return record.object.spec.taints if record.object is not None else ()


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
    return _fits(cluster.vocabulary.amounts(cluster.nodes.allocatable[record.row]), request)


def _fits(offered: Amounts, request: Amounts) -> int:
    return max(0, min((offered.get(name, 0) // units for name, units in request.items() if units), default=0))


def _offer(question: Question, record: NodeRecord) -> str:
    cluster = question.cluster
    offered = cluster.vocabulary.amounts(cluster.nodes.allocatable[record.row])
    asked = question.members[0].shape.request.amounts
    return ", ".join(
        f"{name} {resources.shown(name, offered[name])}" for name in sorted(asked) if name in offered and name != "pods"
    )


def _added(model: core.Node, index: int, offer: dict[str, Any]) -> Edit:
    """Return a node like another one, empty, under a name that nobody has."""
    name = f"{model.metadata.name}-more-{index}"
    labels = {**model.metadata.labels}
    if names.HOSTNAME in labels:
        labels[names.HOSTNAME] = name
    made = structs.replace(
        model,
        metadata=structs.replace(model.metadata, name=name, uid=f"node-{name}", labels=labels),
        status=structs.replace(model.status, allocatable=offer),
    )
    return Edit(kinds.NODE, None, lambda _found: made)
