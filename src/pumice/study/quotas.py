"""ResourceQuotas while cycles are rehearsed: what pods take of them as they come and go, and which pods they refuse."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import structs

from pumice.api import core, kinds
from pumice.apiserver import quota_usage
from pumice.model.statuses import FINISHED, from_pod
from pumice.study.state import manifest

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pumice.api.meta import KubeObject
    from pumice.model.cluster import Cluster
    from pumice.study.rehearsal import Replaced
    from pumice.study.state import Manifest

MUST_STATE: Final = frozenset({"cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"})


class Quotas:
    """The quotas of a cluster; what is used of one is what its status says, which is kept up to date here."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def of(self, namespace: str) -> list[core.ResourceQuota]:
        """Return the quotas of a namespace, by name; one for some pods only is left to the API server."""
        known = self._cluster.objects.get(kinds.RESOURCE_QUOTA.name, {})
        return [
            found
            for _, found in sorted(known.items())
            if isinstance(found, core.ResourceQuota) and found.metadata.namespace == namespace and not is_scoped(found)
        ]

    def follow(self, changes: Iterable[Replaced]) -> list[Replaced]:
        """Return how quotas change with pods that come and go."""
        if not self._cluster.objects.get(kinds.RESOURCE_QUOTA.name):
            return []
        taken: dict[str, dict[str, int]] = {}
        for kind, before, after in changes:
            if kind is kinds.POD and not _asks_alike(before, after):
                for pod, sign in ((before, -1), (after, 1)):
                    if isinstance(pod, core.Pod) and not _is_finished(pod):
                        _add(taken.setdefault(pod.metadata.namespace, {}), charges(pod), sign)
        return [
            (kinds.RESOURCE_QUOTA, quota, after)
            for namespace, more in taken.items()
            for quota in self.of(namespace)
            for after in [_used_more(quota, more)]
            if after is not quota
        ]

    def refusal(self, pod: Manifest, beside: Mapping[str, int]) -> str:
        """Say which quota refuses a pod beside what others have just taken; empty if none does."""
        asked = charged(pod)
        for quota in self.of(pod["metadata"].get("namespace", "")):
            name = f"ResourceQuota {quota.metadata.namespace}/{quota.metadata.name}"
            if unstated := unstated_of(quota, asked):
                return f"{name} refuses its pods: they do not state {', '.join(unstated)}, which it limits"
            hard, used = limits(quota), used_of(quota)
            taken = {each: used.get(each, 0) + beside.get(each, 0) for each in hard}
            beyond = [each for each in sorted(hard) if each in asked and taken[each] + asked[each] > hard[each]]
            if beyond:
                numbers = "; ".join(
                    f"{each} {text(each, taken[each])} used + {text(each, asked[each])} asked, limit {text(each, hard[each])}"
                    for each in beyond
                )
                return f"{name} refuses its pods: {numbers}"
        return ""


def unstated_of(quota: core.ResourceQuota, asked: Mapping[str, int]) -> list[str]:
    """Return what a pod has to state because a quota limits it, and does not."""
    return [name for name in sorted(quota.spec.hard) if name in MUST_STATE and name not in asked]


def is_scoped(quota: core.ResourceQuota) -> bool:
    """Tell whether a quota is for some pods only."""
    return bool(quota.spec.scopes or quota.spec.scope_selector)


def limits(quota: core.ResourceQuota) -> dict[str, int]:
    """Return the limits of a quota, in thousandths."""
    return amounts(quota.spec.hard or quota.status.hard)


def used_of(quota: core.ResourceQuota) -> dict[str, int]:
    """Return what is used of a quota, in thousandths."""
    return amounts(quota.status.used)


def charges(pod: KubeObject) -> dict[str, int]:
    """Return what a pod takes of a quota, in thousandths."""
    return charged(manifest(kinds.POD, pod))


def charged(pod: Manifest) -> dict[str, int]:
    """Return what a pod that is written down takes of a quota, in thousandths."""
    return quota_usage.pod_charges(pod)


def text(name: str, amount: int) -> str:
    """Say an amount in thousandths as it would be written."""
    return quota_usage.amount_text(name, amount)


def amounts(listed: Mapping[str, str | int | float]) -> dict[str, int]:
    """Read amounts as they are written, in thousandths."""
    return {name: quota_usage.thousandths(amount) for name, amount in listed.items()}


def _asks_alike(before: KubeObject | None, after: KubeObject | None) -> bool:
    """Tell whether a pod only got on, so that it takes what it took."""
    if not isinstance(before, core.Pod) or not isinstance(after, core.Pod):
        return False
    return before.spec.containers is after.spec.containers and _is_finished(before) == _is_finished(after)


def _is_finished(pod: core.Pod) -> bool:
    return from_pod(pod.status.phase, pod.spec.node_name, deleting=False) in FINISHED


def _add(total: dict[str, int], amounts: Mapping[str, int], sign: int) -> None:
    for name, amount in amounts.items():
        total[name] = total.get(name, 0) + sign * amount


def _used_more(quota: core.ResourceQuota, amounts: Mapping[str, int]) -> core.ResourceQuota:
    used = used_of(quota)
    changed = {name: max(0, used.get(name, 0) + amounts.get(name, 0)) for name in limits(quota)}
    if all(used.get(name, 0) == amount for name, amount in changed.items()):
        return quota
    written = {**quota.status.used, **{name: text(name, amount) for name, amount in changed.items()}}
    return structs.replace(quota, status=structs.replace(quota.status, used=written))
