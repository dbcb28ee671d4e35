"""Disruption budgets: whom they cover, how many of them there should be, and what may be evicted now."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pumice.api import kinds
from pumice.apiserver import selectors
from pumice.controllers.workloads import manifests
from pumice.sim import deletion, structure

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pumice.sim.store import ObjectStore

Document = dict[str, Any]
_SCALED: Final = frozenset({"ReplicaSet", "StatefulSet", "ReplicationController", "Deployment"})


class UncountedError(Exception):
    """Nobody says how many pods there should be, and why."""


def figures(
    budget: Mapping[str, Any], store: ObjectStore, selector_text: Callable[[Mapping[str, Any]], str]
) -> Document:
    """Count what a budget allows now; one that cannot be counted allows nothing, and `problem` says why."""
    matches = _cover(budget, selector_text)
    pods = [pod for pod in store.inside(kinds.POD, budget["metadata"]["namespace"]) if matches(pod)]
    healthy = sum(is_ready(pod) and not deletion.is_terminating(pod) for pod in pods)
    try:
        expected, desired = _wanted(structure.mapping(budget, "spec"), pods, store)
    except UncountedError as error:
        return {"expectedPods": 0, "currentHealthy": 0, "desiredHealthy": 0, "disruptionsAllowed": 0, "problem": str(error)}  # fmt: skip
    allowed = max(0, healthy - desired) if expected else 0
    return {"expectedPods": expected, "currentHealthy": healthy, "desiredHealthy": desired, "disruptionsAllowed": allowed}  # fmt: skip


def covers(
    budget: Mapping[str, Any], pod: Mapping[str, Any], selector_text: Callable[[Mapping[str, Any]], str]
) -> bool:
    """Tell whether a budget speaks about a pod."""
    return budget["metadata"]["namespace"] == pod["metadata"]["namespace"] and _cover(budget, selector_text)(pod)


def lets_go(budget: Mapping[str, Any], found: Mapping[str, Any], pod: Mapping[str, Any]) -> bool:
    """Tell whether a pod may be evicted; one that is not ready costs nothing while the others are enough, or always if the budget says so."""
    if found["disruptionsAllowed"] > 0:
        return True
    if is_ready(pod):
        return False
    always = structure.mapping(budget, "spec").get("unhealthyPodEvictionPolicy") == "AlwaysAllow"
    return always or 0 < found["desiredHealthy"] <= found["currentHealthy"]


def condition(found: Mapping[str, Any], generation: int, before: Mapping[str, Any], now: str) -> Document:
    """Say in a condition whether anything may be evicted; it is as old as its status."""
    reason = "SufficientPods" if found["disruptionsAllowed"] > 0 else "InsufficientPods"
    status = "True" if found["disruptionsAllowed"] > 0 else "False"
    since = before.get("lastTransitionTime") if before.get("status") == status else None
    return {
        "type": "DisruptionAllowed",
        "status": status,
        "reason": "SyncFailed" if "problem" in found else reason,
        "message": found.get("problem", ""),
        "observedGeneration": generation,
        "lastTransitionTime": since or now,
    }


def is_ready(pod: Mapping[str, Any]) -> bool:
    """Tell whether a pod serves."""
    return structure.mapping(structure.condition(pod, "Ready")).get("status") == "True"


def _cover(
    budget: Mapping[str, Any], selector_text: Callable[[Mapping[str, Any]], str]
) -> Callable[[Mapping[str, Any]], bool]:
    selector = structure.mapping(budget, "spec").get("selector")
    if not isinstance(selector, dict):
        return lambda _: False
    text = selector_text(selector) if selector else ""
    return selectors.labels(text) if text else lambda _: True


def _wanted(spec: Mapping[str, Any], pods: list[Mapping[str, Any]], store: ObjectStore) -> tuple[int, int]:
    """Give how many pods there should be and how many must stay healthy.

    A plain number of those that stay needs nobody's word; a share, or a number of those that may go, is one of what their controllers want.
    """
    least, most = spec.get("minAvailable", 1), spec.get("maxUnavailable")
    if most is not None:
        expected = _expected(pods, store)
        return expected, max(0, expected - manifests.scaled(most, expected, up=True))
    if isinstance(least, int):
        return len(pods), least
    expected = _expected(pods, store)
    return expected, manifests.scaled(least, expected, up=True)


def _expected(pods: list[Mapping[str, Any]], store: ObjectStore) -> int:
    """Add up what the controllers of some pods want; pods without one are nobody's."""
    wanted: dict[str, int] = {}
    for pod in pods:
        found = _controller(pod, store)
        if found is None:
            continue
        above = _controller(found, store) if found["kind"] == "ReplicaSet" else None
        owner = above if above is not None and above["kind"] in _SCALED else found
        replicas = structure.mapping(owner, "spec").get("replicas")
        if not isinstance(replicas, int):
            raise UncountedError(f"{owner['kind']} {owner['metadata']['name']} does not say how many pods it wants")
        wanted[owner["metadata"]["uid"]] = replicas
    return sum(wanted.values())


def _controller(manifest: Mapping[str, Any], store: ObjectStore) -> Mapping[str, Any] | None:
    for reference in manifest["metadata"].get("ownerReferences") or ():
        if reference.get("controller"):
            key = store.owner(reference["uid"])
            return store.find(key) if key is not None else None
    return None
