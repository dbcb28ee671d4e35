"""How much more a namespace's quotas would have to allow."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import structs

from pumice.api import core, kinds
from pumice.study import quotas
from pumice.study.relaxing import missing_pods, of_pods, relaxation
from pumice.study.relaxing.relaxation import Edit, Relaxation

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pumice.api.meta import KubeObject
    from pumice.study.relaxing.relaxation import Question

_STEPS: Final = 8
_WHOLE: Final = 1000


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

    def at(number: int) -> Relaxation:
        told, edits = [], []
        for quota in quotas.Quotas(question.cluster).of(question.job.namespace):
            higher = _higher(question, quota, number - 1)
            if higher:
                hard, name = quotas.limits(quota), f"{quota.metadata.namespace}/{quota.metadata.name}"
                told += [
                    f"{resource} of ResourceQuota {name} from {quotas.text(resource, hard[resource])} to {quotas.text(resource, amount)}"
                    for resource, amount in higher.items()
                ]
                edits.append(_raised(quota, higher))
        return Relaxation(sort="quota", said=f"raise {', '.join(told)}", edits=tuple(edits))

    if at(_STEPS + 1).edits:
        yield relaxation.graded(_STEPS + 1 if question.rivals else 1, at)


def _higher(question: Question, quota: core.ResourceQuota, steps: int) -> dict[str, int]:
    """Return what a quota would have to allow, of each resource of which it allows too little, with so many parts of what others want of it."""
    hard, used = quotas.limits(quota), quotas.used_of(quota)
    pods = [task.pod for task in (*question.to_be_made, *question.missing)]
    lacking = missing_pods.unstated_of(question.cluster, question.job.namespace, pods)
    made = _charges([structs.replace(pod, spec=missing_pods.stating(pod.spec, lacking)) for pod in pods])
    theirs = _charges([task.pod for task in question.rivals])
    stated: Mapping[str, int] = {}
    group = question.job.group
    if group is not None and "resourcequota" in question.plugins and group.status.phase in ("", "Pending"):
        stated = quotas.amounts(group.spec.min_resources or {})
    needed = {
        name: used.get(name, 0)
        + max(made.get(name, 0), stated.get(name, 0))
        + -(-theirs.get(name, 0) * steps // _STEPS // _WHOLE) * _WHOLE
        for name in hard
    }
    return {name: needed[name] for name in sorted(hard) if needed[name] > hard[name]}


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
