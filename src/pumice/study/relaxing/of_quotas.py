"""How much more a namespace's quotas would have to allow."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import structs

from pumice.api import core, kinds
from pumice.study import quotas
from pumice.study.relaxing import missing_pods, of_pods, raising, relaxation
from pumice.study.relaxing.relaxation import Edit, Relaxation

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pumice.api.meta import KubeObject
    from pumice.study.relaxing.relaxation import Question

_BYTES: Final = ("memory", "storage")
"""The last words of the names of what is given in bytes; hugepages are, too."""


def find(question: Question) -> Iterator[Relaxation]:
    """Walk over what quotas could allow, or pods could state so that quotas do not refuse them."""
    yield from _stated(question)
    yield from _limits(question)


def _stated(question: Question) -> Iterator[Relaxation]:
    """Let pods that are yet to be made state what a quota limits."""
    lacking = missing_pods.unstated_of(
        question.cluster, question.job.namespace, [task.pod for task in question.to_be_made]
    )
    if not lacking:
        return
    listed = ", ".join(f"{name} ({missing_pods.AMOUNTS[name]})" for name in lacking)
    said = f"let its pods state {listed}, which ResourceQuota {', '.join(dict.fromkeys(lacking.values()))} limits"
    yield of_pods.of_specs(question, "statement", said, lambda spec: missing_pods.stating(spec, lacking))


def _limits(question: Question) -> Iterator[Relaxation]:
    """Raise every quota that has no room for the pods that are yet to be made, or for what the group states; where others come first, for theirs too."""
    own, theirs = _own(question), _charges([task.pod for task in question.rivals])
    together = {name: own.get(name, 0) + theirs.get(name, 0) for name in {**own, **theirs}}
    more = raising.Raise((own, together), lambda name: wholes(name)[0])

    def at(number: int) -> Relaxation:
        told, edits = [], []
        for quota in quotas.Quotas(question.cluster).of(question.job.namespace):
            higher = _higher(quota, more.at(number))
            if higher:
                hard, name = quotas.limits(quota), f"{quota.metadata.namespace}/{quota.metadata.name}"
                told += [
                    f"{resource} of ResourceQuota {name} from {quotas.text(resource, hard[resource])} to {quotas.text(resource, amount)}"
                    for resource, amount in higher.items()
                ]
                edits.append(_raised(quota, higher))
        return Relaxation(sort="quota", said=f"raise {', '.join(told)}", edits=tuple(edits))

    if at(len(more)).edits:
        yield relaxation.graded(len(more), at)


def _higher(quota: core.ResourceQuota, asked: Mapping[str, int]) -> dict[str, int]:
    """Return what a quota would have to allow, of each resource of which it allows too little."""
    hard, used = quotas.limits(quota), quotas.used_of(quota)
    needed = {name: used.get(name, 0) + asked.get(name, 0) for name in sorted(hard)}
    return {
        name: raising.rounded(units, hard[name], wholes(name)) for name, units in needed.items() if units > hard[name]
    }


def wholes(name: str) -> tuple[int, ...]:
    """Return what people write whole numbers of, the largest first, in thousandths."""
    in_bytes = name.rpartition(".")[2].endswith(_BYTES) or "hugepages-" in name
    return (2**30 * 1000, 2**20 * 1000, 1000) if in_bytes else (1000,)


def _own(question: Question) -> dict[str, int]:
    """Return what the pods that are yet to be made take of quotas, or what the group states if that is more."""
    pods = [task.pod for task in (*question.to_be_made, *question.missing)]
    lacking = missing_pods.unstated_of(question.cluster, question.job.namespace, pods)
    made = _charges([structs.replace(pod, spec=missing_pods.stating(pod.spec, lacking)) for pod in pods])
    stated: Mapping[str, int] = {}
    group = question.job.group
    if group is not None and "resourcequota" in question.plugins and group.status.phase in ("", "Pending"):
        stated = quotas.amounts(group.spec.min_resources or {})
    return {name: max(made.get(name, 0), stated.get(name, 0)) for name in {**made, **stated}}


def _charges(pods: Sequence[core.Pod]) -> dict[str, int]:
    found: dict[str, int] = {}
    for pod in pods:
        for name, amount in quotas.charges(pod).items():
            found[name] = found.get(name, 0) + amount
    return found


def _raised(quota: core.ResourceQuota, higher: Mapping[str, int]) -> Edit:
    written = {name: quotas.text(name, amount) for name, amount in higher.items()}

    def change(found: KubeObject | None) -> KubeObject | None:
        if not isinstance(found, core.ResourceQuota):
            return found
        status = structs.replace(found.status, hard={**(found.status.hard or found.spec.hard), **written})
        return structs.replace(
            found, spec=structs.replace(found.spec, hard={**found.spec.hard, **written}), status=status
        )

    return Edit(kinds.RESOURCE_QUOTA, quota, change)
