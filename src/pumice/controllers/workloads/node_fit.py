"""Whether a DaemonSet's pod belongs on a node, and how it is pinned there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from pumice.controllers.workloads import manifests
from pumice.model import selectors

if TYPE_CHECKING:
    from collections.abc import Mapping

Manifest = dict[str, Any]
_FIELD: Final = "metadata.name"
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_NODE: Final = "node.kubernetes.io/"
_BORNE: Final = (
    {"key": f"{_NODE}not-ready", "operator": "Exists", "effect": "NoExecute"},
    {"key": f"{_NODE}unreachable", "operator": "Exists", "effect": "NoExecute"},
    {"key": f"{_NODE}disk-pressure", "operator": "Exists", "effect": "NoSchedule"},
    {"key": f"{_NODE}memory-pressure", "operator": "Exists", "effect": "NoSchedule"},
    {"key": f"{_NODE}pid-pressure", "operator": "Exists", "effect": "NoSchedule"},
    {"key": f"{_NODE}unschedulable", "operator": "Exists", "effect": "NoSchedule"},
)
_HOST: Final = {"key": f"{_NODE}network-unavailable", "operator": "Exists", "effect": "NoSchedule"}


class NodeFit(msgspec.Struct, frozen=True):
    """Whether a pod is to be started on a node, and whether one that is there may stay."""

    runs: bool
    stays: bool


NOWHERE: Final = NodeFit(runs=False, stays=False)


def judge(node: Mapping[str, Any], template: Any) -> NodeFit:
    """Judge a node by the rules of the scheduler that need no room: name, selector, affinity, taints."""
    spec = manifests.mapping(template, "spec")
    labels, name = manifests.labels(node), manifests.name(node)
    if spec.get("nodeName") not in (None, "", name):
        return NOWHERE
    if any(labels.get(key) != value for key, value in manifests.mapping(spec, "nodeSelector").items()):
        return NOWHERE
    required = manifests.mapping(spec, "affinity", "nodeAffinity").get(_REQUIRED)
    terms = manifests.items(required, "nodeSelectorTerms")
    if required and not any(_matches(manifests.mapping(term), labels, name) for term in terms):
        return NOWHERE
    borne = tolerations(spec)
    hard = [
        taint
        for taint in manifests.items(node, "spec", "taints")
        if taint.get("effect") in ("NoSchedule", "NoExecute") and not any(_bears(each, taint) for each in borne)
    ]
    return NodeFit(runs=not hard, stays=not any(taint.get("effect") == "NoExecute" for taint in hard))


def tolerations(spec: Mapping[str, Any]) -> list[Manifest]:
    """Give what a DaemonSet's pod bears: what its template says, and what all of them do."""
    own = manifests.items(spec, "tolerations")
    return own + [each for each in (*_BORNE, *((_HOST,) if spec.get("hostNetwork") else ())) if each not in own]


def pinned(spec: Mapping[str, Any], node: str) -> Manifest:
    """Give a pod spec that fits one node alone; the names of nodes that the template asks for give way to it."""
    affinity = dict(manifests.mapping(spec, "affinity"))
    own = dict(manifests.mapping(affinity, "nodeAffinity"))
    here = [{"key": _FIELD, "operator": "In", "values": [node]}]
    terms = [manifests.mapping(each) for each in manifests.items(own, _REQUIRED, "nodeSelectorTerms")]
    own[_REQUIRED] = {"nodeSelectorTerms": [{**term, "matchFields": here} for term in terms] or [{"matchFields": here}]}
    return {**spec, "affinity": {**affinity, "nodeAffinity": own}, "tolerations": tolerations(spec)}


def node_of(pod: Mapping[str, Any]) -> str:
    """Give the node that a pod is on, or is pinned to."""
    spec = manifests.mapping(pod, "spec")
    if spec.get("nodeName"):
        return str(spec["nodeName"])
    for term in manifests.items(spec, "affinity", "nodeAffinity", _REQUIRED, "nodeSelectorTerms"):
        for field in manifests.items(term, "matchFields"):
            if field.get("key") == _FIELD and len(field.get("values") or ()) == 1:
                return str(field["values"][0])
    return ""


def _matches(term: Mapping[str, Any], labels: Mapping[str, Any], name: str) -> bool:
    expressions, fields = manifests.items(term, "matchExpressions"), manifests.items(term, "matchFields")
    if not expressions and not fields:
        return False
    return all(_holds(each, labels.get(each.get("key"))) for each in expressions) and all(
        each.get("key") == _FIELD and _holds(each, name) for each in fields
    )


def _holds(requirement: Mapping[str, Any], found: Any) -> bool:
    return selectors.holds(str(requirement.get("operator")), requirement.get("values") or [], found)


def _bears(toleration: Mapping[str, Any], taint: Mapping[str, Any]) -> bool:
    if toleration.get("effect") not in (None, "", taint.get("effect")):
        return False
    if toleration.get("operator", "Equal") == "Exists":
        return toleration.get("key") in (None, "", taint.get("key"))
    return toleration.get("key") == taint.get("key") and toleration.get("value", "") == taint.get("value", "")
