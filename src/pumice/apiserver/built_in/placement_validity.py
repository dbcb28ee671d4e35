"""What makes invalid where a pod wants to run: selectors, affinities, tolerations, spreading, gates; and the taints of nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pumice.apiserver.built_in import wrong
from pumice.sim import structure

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pumice.apiserver.statuses import Causes

_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
_NODE_OPERATORS: Final = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
_EVERY_KEY: Final = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
_GATED: Final = "cannot be set until all schedulingGates have been cleared"


def placement(spec: Mapping[str, Any], path: str) -> Causes:
    """Check where a pod wants to run."""
    found = wrong.labels(spec.get("nodeSelector"), f"{path}.nodeSelector")
    if affinity := spec.get("affinity"):
        found += _node_affinity(structure.mapping(affinity, "nodeAffinity"), f"{path}.affinity.nodeAffinity")
        for name in ("podAffinity", "podAntiAffinity"):
            found += _pod_affinity(structure.mapping(affinity, name), f"{path}.affinity.{name}")
    for index, constraint in enumerate(spec.get("topologySpreadConstraints") or ()):
        found += _spread(constraint, f"{path}.topologySpreadConstraints[{index}]")
    for index, toleration in enumerate(spec.get("tolerations") or ()):
        found += _toleration(toleration, f"{path}.tolerations[{index}]")
    gates = [each.get("name") for each in spec.get("schedulingGates") or ()]
    known: set[Any] = set()
    for index, name in enumerate(gates):
        found += wrong.label_key(name or "", f"{path}.schedulingGates[{index}]")
        found += wrong.duplicate(f"{path}.schedulingGates[{index}]", name) if name in known else []
        known.add(name)
    if gates and spec.get("nodeName"):
        found += wrong.forbidden(f"{path}.nodeName", _GATED)
    return found


def _node_affinity(stated: Mapping[str, Any], field: str) -> Causes:
    found: Causes = []
    if stated.get(_REQUIRED) is not None:
        terms = stated[_REQUIRED].get("nodeSelectorTerms") or ()
        where = f"{field}.{_REQUIRED}.nodeSelectorTerms"
        if not terms:
            found += wrong.required(where, "must have at least one node selector term")
        for index, term in enumerate(terms):
            found += _node_term(term, f"{where}[{index}]")
    for index, each in enumerate(stated.get(_PREFERRED) or ()):
        where = f"{field}.{_PREFERRED}[{index}]"
        found += _weight(each, where) + _node_term(structure.mapping(each, "preference"), f"{where}.preference")
    return found


def _node_term(term: Mapping[str, Any], field: str) -> Causes:
    found: Causes = []
    for index, each in enumerate(term.get("matchExpressions") or ()):
        found += wrong.requirement(each, f"{field}.matchExpressions[{index}]", _NODE_OPERATORS)
    return found


def _pod_affinity(stated: Mapping[str, Any], field: str) -> Causes:
    found: Causes = []
    for index, term in enumerate(stated.get(_REQUIRED) or ()):
        found += _pod_term(term, f"{field}.{_REQUIRED}[{index}]")
    for index, each in enumerate(stated.get(_PREFERRED) or ()):
        where = f"{field}.{_PREFERRED}[{index}]"
        found += _weight(each, where)
        found += _pod_term(structure.mapping(each, "podAffinityTerm"), f"{where}.podAffinityTerm")
    return found


def _pod_term(term: Mapping[str, Any], field: str) -> Causes:
    found = wrong.selector(term.get("labelSelector"), f"{field}.labelSelector")
    if not (key := term.get("topologyKey")):
        return found + wrong.required(f"{field}.topologyKey", "can not be empty")
    return found + wrong.label_key(key, f"{field}.topologyKey")


def _weight(stated: Mapping[str, Any], field: str) -> Causes:
    weight = stated.get("weight", 0)
    return [] if 1 <= weight <= 100 else wrong.invalid(f"{field}.weight", weight, "must be in the range 1-100")


def _spread(constraint: Mapping[str, Any], field: str) -> Causes:
    skew = constraint.get("maxSkew", 0)
    found = wrong.invalid(f"{field}.maxSkew", skew, "must be greater than zero") if skew <= 0 else []
    if not constraint.get("topologyKey"):
        found += wrong.required(f"{field}.topologyKey", "can not be empty")
    return found + wrong.selector(constraint.get("labelSelector"), f"{field}.labelSelector")


def _toleration(stated: Mapping[str, Any], field: str) -> Causes:
    key, operator, value = stated.get("key"), stated.get("operator") or "Equal", stated.get("value")
    found = wrong.label_key(key, f"{field}.key") if key else []
    if not key and operator != "Exists":
        found += wrong.invalid(f"{field}.operator", stated.get("operator") or "", _EVERY_KEY)
    if operator == "Exists" and value:
        found += wrong.invalid(f"{field}.operator", value, "value must be empty when `operator` is 'Exists'")
    elif operator == "Equal" and value:
        found += wrong.label_value(value, f"{field}.operator")
    if stated.get("tolerationSeconds") is not None and stated.get("effect") != "NoExecute":
        why = "effect must be 'NoExecute' when `tolerationSeconds` is set"
        found += wrong.invalid(f"{field}.effect", stated.get("effect") or "", why)
    return found


def taints(node: Mapping[str, Any]) -> Causes:
    """Check the taints of a node."""
    found: Causes = []
    seen: set[tuple[Any, Any]] = set()
    for index, taint in enumerate(structure.mapping(node, "spec").get("taints") or ()):
        field = f"metadata.taints[{index}]"  # Kubernetes says so, though they are in the spec
        found += wrong.label_key(taint.get("key") or "", f"{field}.key")
        found += wrong.label_value(taint.get("value") or "", f"{field}.value")
        identity = (taint.get("key"), taint.get("effect"))
        found += wrong.duplicate(f"{field}.key", taint.get("key")) if identity in seen else []
        seen.add(identity)
    return found
