"""What a job's own pods and group could ask for less of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
from msgspec import structs

from pumice.api import core, kinds, scheduling
from pumice.model import resources, tolerations
from pumice.study.relaxing.relaxation import Edit, Relaxation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pumice.api.meta import KubeObject
    from pumice.study.relaxing.relaxation import Question

TAINTS: Final = 4
CLASSES: Final = 3
_KEEPS_OFF: Final = ("NoSchedule", "NoExecute")
_OF_THE_SYSTEM: Final = "node.kubernetes.io/"


def find(question: Question) -> Iterator[Relaxation]:
    """Walk over everything that the pods or their group could do without."""
    if not question.waiting:
        yield from _group_alone(question)
        return
    yield from _gates(question)
    yield from _tolerations(question)
    yield from _constraints(question)
    yield from _priorities(question)
    yield from _minimum(question)
    yield from _group_alone(question)
    yield from _requests(question)


def _spec(question: Question, sort: str, said: str, change: Callable[[core.PodSpec], core.PodSpec]) -> Relaxation:
    """Change the spec of every waiting pod."""

    def changed(found: KubeObject | None) -> KubeObject | None:
        return structs.replace(found, spec=change(found.spec)) if isinstance(found, core.Pod) else found

    return Relaxation(
        sort=sort, said=said, edits=tuple(Edit(kinds.POD, task.pod, changed) for task in question.waiting)
    )


def _group(question: Question, sort: str, said: str, **fields: Any) -> Relaxation:
    def changed(found: KubeObject | None) -> KubeObject | None:
        if not isinstance(found, scheduling.PodGroup):
            return found
        return structs.replace(found, spec=structs.replace(found.spec, **fields))

    return Relaxation(sort=sort, said=said, edits=(Edit(kinds.POD_GROUP, question.job.group, changed),))


# -- pods ------------------------------------------------------------------------------------------------------


def _gates(question: Question) -> Iterator[Relaxation]:
    gates = sorted({gate.name for task in question.waiting for gate in task.pod.spec.scheduling_gates})
    if gates:
        said = f"take the scheduling gate {', '.join(gates)} off its pods"
        yield _spec(question, "gate", said, lambda spec: structs.replace(spec, scheduling_gates=()))


def _tolerations(question: Question) -> Iterator[Relaxation]:
    counted: dict[tuple[str, str, str], int] = {}
    owned = [task.pod.spec.tolerations for task in question.waiting]
    for record in question.cluster.nodes.by_name.values():
        for taint in record.object.spec.taints if record.object is not None else ():
            if taint.effect not in _KEEPS_OFF or taint.key.startswith(_OF_THE_SYSTEM):
                continue
            if not all(tolerations.tolerates(each, taint) for each in owned):
                known = (taint.key, taint.value, taint.effect)
                counted[known] = counted.get(known, 0) + 1
    for (key, value, effect), count in sorted(counted.items(), key=lambda entry: (-entry[1], entry[0]))[:TAINTS]:
        toleration = core.Toleration(key=key, operator="Equal", value=value, effect=effect)
        shown = f"{key}={value}:{effect}" if value else f"{key}:{effect}"
        said = f"let its pods tolerate {shown} ({_nodes(count)})"
        yield _spec(question, "toleration", said, _tolerating(toleration))


def _tolerating(toleration: core.Toleration) -> Callable[[core.PodSpec], core.PodSpec]:
    return lambda spec: structs.replace(spec, tolerations=(*spec.tolerations, toleration))


def _constraints(question: Question) -> Iterator[Relaxation]:
    specs = [task.pod.spec for task in question.waiting]
    for key in sorted({key for spec in specs for key in spec.node_selector}):
        values = sorted({spec.node_selector[key] for spec in specs if key in spec.node_selector})
        yield _spec(question, "selector", f"drop {key}={'|'.join(values)} from its nodeSelector", _without_key(key))
    for field, attribute, said in _AFFINITIES:
        if any(_required(spec, field, attribute) for spec in specs):
            yield _spec(question, "affinity", f"drop its required {said}", _without_required(field, attribute))
    if any(spec.topology_spread_constraints for spec in specs):
        said = "drop its topologySpreadConstraints"
        yield _spec(question, "spread", said, lambda spec: structs.replace(spec, topology_spread_constraints=()))
    if any(port.host_port for spec in specs for container in spec.containers for port in container.ports):
        yield _spec(question, "ports", "drop its host ports", _without_ports)
    if any(spec.volumes for spec in specs):
        yield _spec(question, "volumes", "drop its volumes", lambda spec: structs.replace(spec, volumes=()))


_AFFINITIES: Final = (
    ("node_affinity", "required_during_scheduling_ignored_during_execution", "node affinity"),
    ("pod_affinity", "required_during_scheduling_ignored_during_execution", "pod affinity"),
    ("pod_anti_affinity", "required_during_scheduling_ignored_during_execution", "pod anti-affinity"),
)


def _required(spec: core.PodSpec, field: str, attribute: str) -> bool:
    rule = getattr(spec.affinity, field, None)
    return bool(getattr(rule, attribute, None))


def _without_required(field: str, attribute: str) -> Callable[[core.PodSpec], core.PodSpec]:
    def change(spec: core.PodSpec) -> core.PodSpec:
        if spec.affinity is None or not _required(spec, field, attribute):
            return spec
        rule = getattr(spec.affinity, field)
        empty = None if field == "node_affinity" else ()
        less = structs.replace(rule, **{attribute: empty})
        return structs.replace(spec, affinity=structs.replace(spec.affinity, **{field: less}))

    return change


def _without_key(key: str) -> Callable[[core.PodSpec], core.PodSpec]:
    return lambda spec: structs.replace(
        spec, node_selector={name: value for name, value in spec.node_selector.items() if name != key}
    )


def _without_ports(spec: core.PodSpec) -> core.PodSpec:
    return structs.replace(
        spec, containers=tuple(structs.replace(container, ports=()) for container in spec.containers)
    )


# -- the group -------------------------------------------------------------------------------------------------


def _priorities(question: Question) -> Iterator[Relaxation]:
    job = question.job
    classes = sorted(
        (found.value, name)
        for name, found in question.cluster.priority_classes.items()
        if found.value > job.priority and not name.startswith("system-")
    )
    for value, name in classes[:CLASSES]:
        pods = _spec(
            question,
            "priority",
            "",
            lambda spec, name=name, value=value: structs.replace(spec, priority_class_name=name, priority=value),  # type: ignore[misc]
        )
        group = _group(question, "priority", "", priority_class_name=name)
        said = f"give it the priority class {name} ({value} instead of {job.priority})"
        yield Relaxation(sort="priority", said=said, edits=(*group.edits, *pods.edits))


def _minimum(question: Question) -> Iterator[Relaxation]:
    """Lower minMember to as many as would find a place now, else to one."""
    job = question.job
    placed = job.tally.ready
    tried = dict.fromkeys(
        number for number in (placed + question.fitting, placed + 1) if placed < number < job.min_member
    )
    for number in tried:
        yield _group(question, "minimum", f"lower its minMember from {job.min_member} to {number}", min_member=number)


def _group_alone(question: Question) -> Iterator[Relaxation]:
    job = question.job
    if job.group is None:
        return
    spec = job.group.spec
    if spec.network_topology is not None and spec.network_topology.mode != "soft":
        soft = structs.replace(spec.network_topology, mode="soft")
        yield _group(question, "topology", "make its networkTopology soft", network_topology=soft)
    if spec.min_resources:
        listed = ", ".join(f"{name} {amount}" for name, amount in sorted(spec.min_resources.items()))
        yield _group(question, "minResources", f"drop its minResources ({listed})", min_resources=None)


# -- requests --------------------------------------------------------------------------------------------------


def _requests(question: Question) -> Iterator[Relaxation]:
    """Let pods of the first shape ask, in one resource, for what so many nodes have free as there are members."""
    task = max(question.waiting, key=lambda each: sum(each.shape.request.needed.tolist()) if each.shape.request else 0)
    request, view = task.shape.request, question.cluster.nodes.view()
    names = question.cluster.vocabulary.names
    alike = [each for each in question.waiting if each.shape is task.shape]
    wanted = max(1, min(len(alike), question.job.min_member - question.job.tally.ready))
    if request.unoffered or not len(view):
        return
    free = view.idle[:, request.asked]
    fits = free >= request.needed
    for position, column in enumerate(request.asked.tolist()):
        others = np.logical_and.reduce(np.delete(fits, position, axis=1), axis=1)
        there = np.sort(free[others, position])[::-1]
        name = names[column]
        if name == "pods" or len(there) < wanted:
            continue
        enough = _rounded(name, int(there[wanted - 1]))
        if 0 < enough < int(request.needed[position]):
            asked, less = resources.shown(name, int(request.needed[position])), resources.shown(name, enough)
            ratio = (enough, int(request.needed[position]))
            said = f"let its pods ask for {less} {name} instead of {asked}"
            yield _spec(question, "request", said, _smaller(name, *ratio))


def _rounded(name: str, units: int) -> int:
    """Round down to what a person would write: tenths of a cpu, whole Mi of what counts in bytes."""
    step = 100 if name == "cpu" else 2**20 if resources.factor(name) == 1 else 1000
    return units // step * step


def _smaller(name: str, less: int, asked: int) -> Callable[[core.PodSpec], core.PodSpec]:
    """Scale a resource in every container that asks for it, so that the pod asks for no more than the smaller amount."""

    def change(spec: core.PodSpec) -> core.PodSpec:
        return structs.replace(
            spec,
            containers=tuple(map(smaller, spec.containers)),
            init_containers=tuple(map(smaller, spec.init_containers)),
        )

    def smaller(container: core.Container) -> core.Container:
        requests = container.resources.requests
        if name not in requests:
            return container
        units = resources.amount(name, requests[name], name) * less // asked
        lower = {**requests, name: resources.shown(name, units)}
        return structs.replace(container, resources=structs.replace(container.resources, requests=lower))

    return change


def _nodes(count: int) -> str:
    return f"{count} node" if count == 1 else f"{count} nodes"
