"""What a kubelet of a local cluster makes of a pod that is resized: it grants what its node has room for, at once, and says why it does not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pumice.controllers import usage
from pumice.sim import deletion, structure
from pumice.sim.kubelets import reports

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

Document = dict[str, Any]
PENDING: Final = "PodResizePending"
_LISTS: Final = (("containers", "containerStatuses"), ("initContainers", "initContainerStatuses"))


class Verdict(NamedTuple):
    """Why a size is not granted: Infeasible if it never can be, Deferred if others have to go first; nothing if it is."""

    reason: str = ""
    message: str = ""


def is_wanted(pod: Mapping[str, Any]) -> bool:
    """Tell whether a running pod asks for other amounts than its kubelet has granted."""
    status = structure.mapping(pod, "status")
    if status.get("phase") != "Running" or deletion.is_terminating(pod):
        return False
    spec = structure.mapping(pod, "spec")
    listed = [each for field, _ in _LISTS for each in spec.get(field) or ()]
    return (
        any(reports.asked(each) != reports.granted(pod, each) for each in listed)
        or bool(spec.get("resources") and reports.asked(spec) != reports.amounts(status))
        or structure.condition(pod, PENDING) is not None
    )


def judge(pod: Mapping[str, Any], node: Mapping[str, Any], others: Iterable[Mapping[str, Any]]) -> Verdict:
    """Say whether a node has room for the amounts that a pod asks for, beside what the other pods there were granted."""
    spec, offered = structure.mapping(pod, "spec"), usage.readable(structure.mapping(node, "status", "allocatable"))
    wanted, before = usage.of_pod(spec, "requests"), usage.of_pod(_granted_spec(pod), "requests")
    taken: dict[str, int] = {}
    for other in others:
        for name, amount in usage.of_pod(_granted_spec(other), "requests").items():
            taken[name] = taken.get(name, 0) + amount
    for name, amount in wanted.items():
        if amount <= before.get(name, 0) or name not in offered:
            continue
        asked, most = usage.written(name, amount), usage.written(name, offered[name])
        if amount > offered[name]:
            return Verdict("Infeasible", f"{asked} of {name} are asked for, and the node has {most}")
        if amount + taken.get(name, 0) > offered[name]:
            held = usage.written(name, taken[name])
            return Verdict("Deferred", f"{asked} of {name} are asked for; other pods have {held} of the node's {most}")
    return Verdict()


def report(pod: Mapping[str, Any], verdict: Verdict, when: str) -> Document | None:
    """Give the status that tells of a verdict, None if it is told already."""
    generation = pod["metadata"].get("generation", 1)
    told = structure.condition(pod, PENDING)
    if verdict.reason:
        if told is not None and (told.get("reason"), told.get("message")) == verdict:
            return None
        condition = reports.condition(PENDING, when, reason=verdict.reason)
        condition |= {"message": verdict.message, "observedGeneration": generation}
        return {"conditions": [condition]}
    status: Document = {"observedGeneration": generation}
    if told is not None:
        status["conditions"] = [{"type": PENDING, "$patch": "delete"}]
    for field, reported in _LISTS:
        asked = {each["name"]: reports.asked(each) for each in structure.mapping(pod, "spec").get(field) or ()}
        listed = structure.mapping(pod, "status").get(reported) or ()
        if listed:
            status[reported] = [{**each, **asked.get(each.get("name"), {})} for each in listed]
    if structure.mapping(pod, "spec", "resources"):
        status |= reports.asked(pod["spec"])
    return status


def _granted_spec(pod: Mapping[str, Any]) -> Document:
    """Give the spec of a pod as it would be if it asked for what it was granted."""
    found = dict(structure.mapping(pod, "spec"))
    for field, _ in _LISTS:
        if found.get(field):
            found[field] = [{**each, **_as_stated(reports.granted(pod, each))} for each in found[field]]
    if found.get("resources"):
        found |= _as_stated(reports.amounts(structure.mapping(pod, "status")) or reports.asked(found))
    return found


def _as_stated(granted: Mapping[str, Any]) -> Document:
    return {"resources": {"requests": granted.get("allocatedResources", {})}}
