"""What the group of a job could ask for less of, and what is missing beside it: the group itself, pods below its minimum, a priority class."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from msgspec import structs

from pumice.api import kinds, names, native, scheduling, timestamp
from pumice.api.meta import ObjectMeta
from pumice.model import native_groups
from pumice.study.relaxing import of_pods, relaxation
from pumice.study.relaxing.relaxation import Edit, Relaxation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pumice.api.meta import KubeObject
    from pumice.study.relaxing.relaxation import Question
    from pumice.study.state import Manifest

CLASSES: Final = 3
_VALUE: Final = 1000
"""What a priority class that has to be made is above all that run."""


def find(question: Question) -> Iterator[Relaxation]:
    """Walk over what the group could do without, or lacks."""
    if question.job.group is None:
        yield from _created(question)
        return
    yield from _missing_pods(question)
    if question.job.native:
        return  # nothing of a group of Kubernetes' own may change
    yield from _priorities(question)
    yield from _missing_class(question)
    yield from _minimum(question)
    yield from _topology(question)
    yield from _minimum_resources(question)


def of_group(
    question: Question, sort: str, said: str, job: Callable[[Manifest], Manifest] | None = None, **fields: Any
) -> Relaxation:
    """Change the spec of the group; that of a Volcano Job follows the Job, which is changed instead."""
    if question.owner is not None:
        return Relaxation(sort=sort, said=said, edits=(), job=job)

    def changed(found: KubeObject | None) -> KubeObject | None:
        if not isinstance(found, scheduling.PodGroup):
            return found
        return structs.replace(found, spec=structs.replace(found.spec, **fields))

    return Relaxation(sort=sort, said=said, edits=(Edit(kinds.POD_GROUP, question.job.group, changed),))


def _respecified(**fields: Any) -> Callable[[Manifest], Manifest]:
    return lambda job: {**job, "spec": {**job["spec"], **fields}}


# -- what is missing -------------------------------------------------------------------------------------------


def _created(question: Question) -> Iterator[Relaxation]:
    """Create the group that pods name and nobody has made, with room for each of them to start alone."""
    namespace, _, name = question.job.key.partition("/")
    if not question.waiting or native_groups.is_older(question.job.key):
        return
    if native_groups.is_native(question.job.key):
        yield _created_native(question, namespace, name.removesuffix(native_groups.MARK))
        return
    made = scheduling.PodGroup(
        metadata=ObjectMeta(
            name=name,
            namespace=namespace,
            uid=f"group-{namespace}-{name}",
            creation_timestamp=timestamp.format_timestamp(question.now),
        ),
        spec=scheduling.PodGroupSpec(min_member=1),
    )
    said = f"create the PodGroup {namespace}/{name} that its pods name (minMember 1, the default queue)"
    yield Relaxation(sort="group", said=said, edits=(Edit(kinds.POD_GROUP, None, lambda _found: made),))


def _created_native(question: Question, namespace: str, name: str) -> Relaxation:
    made = native.PodGroup(
        metadata=ObjectMeta(
            name=name,
            namespace=namespace,
            uid=f"group-{namespace}-{name}",
            creation_timestamp=timestamp.format_timestamp(question.now),
        ),
        spec=native.PodGroupSpec(scheduling_policy=native.SchedulingPolicy(basic=native.BasicPolicy())),
    )
    said = f"create the PodGroup {namespace}/{name} of scheduling.k8s.io that its pods name (policy basic, the default queue)"
    return Relaxation(sort="group", said=said, edits=(Edit(kinds.NATIVE_POD_GROUP, None, lambda _found: made),))


def _missing_pods(question: Question) -> Iterator[Relaxation]:
    """Create the pods that are missing below minMember."""
    pods = [task.pod for task in question.missing]
    if not pods:
        return
    what = "is" if len(pods) == 1 else "are"
    said = (
        f"create the {relaxation.pods(len(pods))} that {what} missing below its minMember of {question.job.min_member}"
    )
    roles = sorted({pod.metadata.annotations.get(names.TASK_SPEC, "") for pod in pods} - {""})
    said += f", of {'roles' if len(roles) > 1 else 'role'} {', '.join(roles)}" if roles else ""
    edits = tuple(Edit(kinds.POD, None, lambda _found, pod=pod: pod) for pod in pods)  # type: ignore[misc]
    yield Relaxation(sort="pods", said=said, edits=edits)


def _missing_class(question: Question) -> Iterator[Relaxation]:
    """Create the priority class that the group names and nobody has made, above all that run."""
    group, known = question.job.group, question.cluster.priority_classes
    named = group.spec.priority_class_name if group is not None else ""
    if not named or named in known:
        return
    value = max((job.priority for job in question.cluster.jobs.values()), default=0) + _VALUE
    made = scheduling.PriorityClass(metadata=ObjectMeta(name=named, uid=f"class-{named}"), value=value)
    said = f"create the priority class {named} that its group names (value {value})"
    yield Relaxation(sort="class", said=said, edits=(Edit(kinds.PRIORITY_CLASS, None, lambda _found: made),))


# -- what it could do without ----------------------------------------------------------------------------------


def _priorities(question: Question) -> Iterator[Relaxation]:
    job = question.job
    classes = sorted(
        (found.value, name)
        for name, found in question.cluster.priority_classes.items()
        if found.value > job.priority and not name.startswith("system-")
    )[:CLASSES]
    if not classes:
        return

    def at(number: int) -> Relaxation:
        value, name = classes[number - 1]
        pods = of_pods.of_specs(
            question, "priority", "", lambda spec: structs.replace(spec, priority_class_name=name, priority=value)
        )
        group = of_group(question, "priority", "", _respecified(priorityClassName=name), priority_class_name=name)
        said = f"give it the priority class {name} ({value} instead of {job.priority})"
        both = relaxation.joined((pods, group))
        return structs.replace(both, sort="priority", said=said)

    yield relaxation.graded(len(classes), at)


def _minimum(question: Question) -> Iterator[Relaxation]:
    """Lower the minimum, by as little as will do."""
    job = question.job
    placed = job.tally.ready
    most = job.min_member - placed - 1
    if most <= 0:
        return
    field = "minAvailable" if question.owner is not None else "minMember"

    def at(number: int) -> Relaxation:
        minimum = job.min_member - number
        said = f"lower its {field} from {job.min_member} to {minimum}"
        found = of_group(question, "minimum", said, _respecified(minAvailable=minimum), min_member=minimum)
        return structs.replace(found, drastic=minimum * 2 < job.min_member)

    yield relaxation.graded(most, at)


def _topology(question: Question) -> Iterator[Relaxation]:
    group = question.job.group
    topology = group.spec.network_topology if group is not None else None
    if topology is None or topology.mode == "soft":
        return
    soft = structs.replace(topology, mode="soft")
    stated = (question.owner or {}).get("spec", {}).get("networkTopology") or {}
    job = _respecified(networkTopology={**stated, "mode": "soft"})
    yield of_group(question, "topology", "make its networkTopology soft", job, network_topology=soft)


def _minimum_resources(question: Question) -> Iterator[Relaxation]:
    """Drop minResources; those of a Job are what its pods ask for, and its controller would write them again."""
    group = question.job.group
    if group is not None and group.spec.min_resources and question.owner is None:
        listed = ", ".join(f"{name} {amount}" for name, amount in sorted(group.spec.min_resources.items()))
        yield of_group(question, "minResources", f"drop its minResources ({listed})", min_resources=None)
