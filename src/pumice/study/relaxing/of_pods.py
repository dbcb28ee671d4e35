"""What a job's own pods could do without."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import structs

from pumice.api import core, kinds
from pumice.model import tolerations
from pumice.study import staffing
from pumice.study.relaxing import missing_pods, relaxation
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
    """Walk over everything that the pods could do without."""
    if question.members:
        yield from _requests(question)
        yield from _gates(question)
        yield from _tolerations(question)
        yield from _constraints(question)


def of_specs(question: Question, sort: str, said: str, change: Callable[[core.PodSpec], core.PodSpec]) -> Relaxation:
    """Change the spec of every waiting pod, and of those that are yet to be made."""

    def changed(found: KubeObject | None) -> KubeObject | None:
        return structs.replace(found, spec=change(found.spec)) if isinstance(found, core.Pod) else found

    edits = tuple(Edit(kinds.POD, task.pod, changed) for task in question.waiting)
    job = staffing.changed_template(change) if question.owner is not None else None
    return Relaxation(sort=sort, said=said, edits=edits, job=job)


def _requests(question: Question) -> Iterator[Relaxation]:
    """Let pods ask for something where the policy has no action that places those that ask for nothing."""
    pods = [task.pod for task in (*question.waiting, *question.to_be_made)]
    if not question.backfills and any(missing_pods.asks_for_nothing(pod) for pod in pods):
        said = f"let its pods ask for cpu ({missing_pods.AMOUNTS['cpu']}): the policy has no action backfill, which places pods that ask for nothing"
        yield of_specs(question, "statement", said, _asking)


def _asking(spec: core.PodSpec) -> core.PodSpec:
    asks = any(each.resources.requests or each.resources.limits for each in spec.containers)
    return spec if asks else missing_pods.stating(spec, ("cpu",))


def _gates(question: Question) -> Iterator[Relaxation]:
    gates = sorted({gate.name for task in question.members for gate in task.pod.spec.scheduling_gates})
    if gates:
        said = f"take the scheduling gate {', '.join(gates)} off its pods"
        yield of_specs(question, "gate", said, lambda spec: structs.replace(spec, scheduling_gates=()))


def _tolerations(question: Question) -> Iterator[Relaxation]:
    counted: dict[tuple[str, str, str], int] = {}
    owned = [task.pod.spec.tolerations for task in question.members]
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
        said = f"let its pods tolerate {shown} ({relaxation.nodes(count)})"
        yield of_specs(question, "toleration", said, _tolerating(toleration))


def _tolerating(toleration: core.Toleration) -> Callable[[core.PodSpec], core.PodSpec]:
    return lambda spec: structs.replace(spec, tolerations=(*spec.tolerations, toleration))


def _constraints(question: Question) -> Iterator[Relaxation]:
    specs = [task.pod.spec for task in question.members]
    for key in sorted({key for spec in specs for key in spec.node_selector}):
        values = sorted({spec.node_selector[key] for spec in specs if key in spec.node_selector})
        yield of_specs(question, "selector", f"drop {key}={'|'.join(values)} from its nodeSelector", _without_key(key))
    for field, attribute, said in _AFFINITIES:
        if any(_required(spec, field, attribute) for spec in specs):
            yield of_specs(question, "affinity", f"drop its required {said}", _without_required(field, attribute))
    if any(spec.topology_spread_constraints for spec in specs):
        said = "drop its topologySpreadConstraints"
        yield of_specs(question, "spread", said, lambda spec: structs.replace(spec, topology_spread_constraints=()))
    if any(port.host_port for spec in specs for container in spec.containers for port in container.ports):
        yield of_specs(question, "ports", "drop its host ports", _without_ports)
    if any(spec.volumes for spec in specs):
        yield of_specs(question, "volumes", "drop its volumes", lambda spec: structs.replace(spec, volumes=()))


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
