"""What the user may not read, and whether an answer that leaves it out could be wrong.

A kind is wanting where something of the cluster that was read depends on it: claims matter if a pod that waits mounts one, priority classes if a group names one, quotas if the
policy asks for them and a group that waits is in a namespace whose quotas were not read. What nothing depends on is told and left out.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final

import msgspec

from pumice.api import core, kinds, names, scheduling
from pumice.model import native_groups
from pumice.study.state import StudyError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pumice.framework.configuration import Configuration
    from pumice.study.state import Denied, State

STATUS: Final = 3
"""The exit status of commands that refuse an answer for want of rights."""
ROLE: Final = "pumice-vcjob-explainer-role"
_CORE: Final = '""'
_CLUSTER: Final = "what others hold and ask for is unknown"
_NEEDED: Final[dict[kinds.Kind, str]] = {
    kinds.POD: "what other pods hold of the nodes is unknown",
    kinds.NODE: "where there is room is unknown",
    kinds.POD_GROUP: "which other groups wait, and who comes first, is unknown",
    kinds.NATIVE_POD_GROUP: "which other groups wait, and who comes first, is unknown",
    kinds.QUEUE: "what queues may hold is unknown",
    kinds.INCUBATOR_POD_GROUP: _CLUSTER,
    kinds.INCUBATOR_QUEUE: _CLUSTER,
    kinds.SIGS_POD_GROUP: _CLUSTER,
    kinds.SIGS_QUEUE: _CLUSTER,
}
_STORAGE: Final = frozenset({"PersistentVolume", "PersistentVolumeClaim", "StorageClass", "CSINode", "CSIDriver", "CSIStorageCapacity", "VolumeAttachment"})  # fmt: skip
_DEVICES: Final = frozenset(
    {"ResourceClaim", "ResourceClaimTemplate", "ResourceSlice", "DeviceClass", "DeviceTaintRule"}
)


class RightsError(StudyError):
    """An answer that is refused for want of rights."""


def unserved(kind: kinds.Kind) -> str:
    """Say that a cluster does not know a kind, and what to do about it."""
    return (
        f"the cluster does not serve {kind.plural} of {kind.api_version}; install the definitions: "
        "pumice install --print | kubectl apply --server-side -f -"
    )


class Wanting(msgspec.Struct, frozen=True):
    """A right without which the answer could be wrong, and why."""

    denied: Denied
    why: str


class _Look:
    """What was read of a cluster, as far as it says which kinds matter."""

    def __init__(self, state: State, configuration: Configuration | None) -> None:
        self.groups = [each for each in state.of(kinds.POD_GROUP) if isinstance(each, scheduling.PodGroup)]
        self.waiting = [pod for pod in state.pods() if not pod.spec.node_name]
        self.pods = list(state.pods())
        tiers = configuration.tiers if configuration is not None else ()
        self.plugins = {plugin.name for tier in tiers for plugin in tier}

    def quotas(self, denied: Denied) -> str:
        held = [
            each
            for each in self.groups
            if each.status.phase in ("", names.PHASE_PENDING) and each.metadata.namespace != denied.read_in
        ]
        if "resourcequota" not in self.plugins or not held:
            return ""
        return f"{len(held)} groups that wait may be held back by quotas, such as {_key(held[0])}"

    def storage(self, denied: Denied) -> str:
        unread = denied.read_in if denied.kind.namespaced else ""
        mounting = [
            pod
            for pod in self.waiting
            if any(_is_claim(volume) for volume in pod.spec.volumes)
            and not (unread and pod.metadata.namespace == unread)
        ]
        return f"{len(mounting)} pods that wait mount claims, such as {_key(mounting[0])}" if mounting else ""

    def devices(self, _: Denied) -> str:
        asking = [pod for pod in self.waiting if pod.spec.resource_claims]
        return f"{len(asking)} pods that wait ask for devices, such as {_key(asking[0])}" if asking else ""

    def priorities(self, _: Denied) -> str:
        named = [each for each in self.groups if each.spec.priority_class_name]
        return f"{len(named)} groups name a priority class, such as {_key(named[0])}" if named else ""

    def namespaces(self, _: Denied) -> str:
        for pod in self.pods:
            affinity = pod.spec.affinity
            if affinity is not None and b"namespaceSelector" in msgspec.json.encode(affinity):
                return f"pod {_key(pod)} selects namespaces by their labels"
        return ""

    def topology(self, _: Denied) -> str:
        asking = [each for each in self.groups if each.spec.network_topology is not None]
        if asking:
            return f"{len(asking)} groups ask for a network topology, such as {_key(asking[0])}"
        return "the policy places by network topology" if "network-topology-aware" in self.plugins else ""

    def jobs(self, denied: Denied) -> str:
        """Find groups whose pods are not all there: how many more their controller makes, and which, their Jobs say."""
        members = Counter((pod.metadata.namespace, native_groups.name_in_job(pod)) for pod in self.pods)
        short = [
            each
            for each in self.groups
            if each.metadata.namespace != denied.read_in
            and members[each.metadata.namespace, each.metadata.name] < each.spec.min_member
            and any(owner.kind == denied.kind.name for owner in each.metadata.owner_references)
        ]
        return f"{len(short)} groups lack pods that their Job is to make, such as {_key(short[0])}" if short else ""

    def plugin(self, name: str) -> Callable[[Denied], str]:
        return lambda _: f"the policy has the plugin {name}" if name in self.plugins else ""


def wanting(state: State, configuration: Configuration | None, *, given_policy: bool = False) -> list[Wanting]:
    """Give the rights without which an answer about a cluster could be wrong."""
    if not state.denied:
        return []
    look = _Look(state, configuration)
    rules: dict[str, Callable[[Denied], str]] = {
        "ResourceQuota": look.quotas,
        "Job": look.jobs,
        "PriorityClass": look.priorities,
        "Namespace": look.namespaces,
        "HyperNode": look.topology,
        "PodDisruptionBudget": look.plugin("pdb"),
        **dict.fromkeys(_STORAGE, look.storage),
        **dict.fromkeys(_DEVICES, look.devices),
    }
    found = []
    for denied in state.denied:
        kind = denied.kind
        if kind.name == "ConfigMap":
            why = "" if given_policy else "the policy of the scheduler is unknown; --config FILE gives it"
        elif kind in _NEEDED:
            why = _NEEDED[kind]
        else:
            why = rules[kind.name](denied) if kind.name in rules else ""
        if why:
            found.append(Wanting(denied, why))
    return found


def check(state: State, configuration: Configuration | None, *, given_policy: bool) -> None:
    """Refuse an answer about a whole cluster that could be wrong."""
    if missing := wanting(state, configuration, given_policy=given_policy):
        raise RightsError(f"refused, since it could be wrong: {told(missing)}")


def rules_to_add(denied: Iterable[Denied]) -> tuple[str, ...]:
    """Give the rules that would grant what is missing, each in a line of YAML."""
    grouped: dict[tuple[str, tuple[str, ...], tuple[str, ...]], list[str]] = {}
    for each in denied:
        grouped.setdefault((each.kind.group, each.verbs, each.names), []).append(each.kind.plural)
    return tuple(
        "- {"
        f"apiGroups: [{group or _CORE}], resources: [{', '.join(dict.fromkeys(plurals))}]"
        + (f", resourceNames: [{', '.join(called)}]" if called else "")
        + f", verbs: [{', '.join(verbs)}]"
        + "}"
        for (group, verbs, called), plurals in grouped.items()
    )


def told(missing: list[Wanting], why: str = "") -> str:
    """Say in a line why an answer is refused, if not for another reason then for that of the first right, and in another what is to be done."""
    rights = ", ".join(each.denied.right for each in missing)
    rights += "" if all(each.denied.names for each in missing) else ", in all namespaces"
    lines = " ".join(rules_to_add(each.denied for each in missing))
    return (
        f"you may not {rights}: {why or missing[0].why}\n"
        f"the rules to add: {lines}, or bind the role that has all: "
        f"kubectl create clusterrolebinding NAME --clusterrole={ROLE} --user=YOU"
    )


def _is_claim(volume: Any) -> bool:
    return bool(volume.persistent_volume_claim or volume.ephemeral)


def _key(found: core.Pod | scheduling.PodGroup) -> str:
    return f"{found.metadata.namespace}/{found.metadata.name}"
