"""What a pod asks for: containers, init containers, sidecars, pod-level requests, overhead, resizes under way."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from pumice.api import names
from pumice.model import resources

if TYPE_CHECKING:
    from pumice.api import core, meta

DEFAULT_CPU = 100
DEFAULT_MEMORY = 200 * 2**20
WHOLE_CARD = 1000
"""Thousandths of a card that `pumice.dev/gpu-milli` counts."""
_OTHER_CARDS = (
    names.NVIDIA_GPU,
    names.AMD_GPU,
    names.GPU_MEMORY,
    names.GPU_NUMBER,
    names.VGPU_NUMBER,
    names.VGPU_MEMORY,
    names.VGPU_CORES,
)

_Container = Callable[["core.Container", str], resources.Amounts]


def of_pod(pod: core.Pod) -> resources.Amounts:
    """Return what the pod takes on a node, one pod slot included.

    What is stated for the pod as a whole takes the place of what its containers ask for, resource by resource; overhead comes on top. Of a pod with a node what
    its kubelet reports counts too, as long as that is more than what is written: a resize may be under way.
    """
    reported = _reported(pod)
    infeasible = bool(reported or pod.status.resources) and is_resize_infeasible(pod)

    def asked(container: core.Container, field: str) -> resources.Amounts:
        written = resources.parse(container.resources.requests, f"{field}.resources.requests")
        status = reported.get(container.name) if _stays(container, field) else None
        if status is None or status.resources is None:
            return written
        granted = resources.parse(status.allocated_resources, f"{field}.status.allocatedResources")
        in_use = resources.parse(status.resources.requests, f"{field}.status.resources.requests")
        return _larger(written, resources.highest(granted, in_use), infeasible=infeasible)

    amounts = resources.add(_aggregate(pod, asked), {"pods": 1})
    amounts |= _of_whole_pod(pod, infeasible=infeasible)
    amounts = resources.add(amounts, resources.parse(pod.spec.overhead, "spec.overhead"))
    if names.CARD_MILLI in amounts or names.CARD_COUNT in amounts:
        amounts = _of_cards(amounts)
    _check_total(amounts)
    return amounts


def _of_cards(amounts: resources.Amounts) -> resources.Amounts:
    """Count the thousandths of all cards that a pod asks for: what it says of each card, times the number of cards."""
    milli, count = amounts.get(names.CARD_MILLI, 0), amounts.get(names.CARD_COUNT, WHOLE_CARD)
    left = {name: units for name, units in amounts.items() if name not in (names.CARD_MILLI, names.CARD_COUNT)}
    if not milli and not amounts.get(names.CARD_COUNT):
        return left
    whole = resources.factor(names.CARD_MILLI)
    shown, cards = resources.shown(names.CARD_MILLI, milli), resources.shown(names.CARD_COUNT, count)
    if not milli:
        why = f"ask for {cards} of {names.CARD_COUNT} and no {names.CARD_MILLI}; say how much of each card, {WHOLE_CARD} for whole ones"
    elif milli % whole or milli > WHOLE_CARD * whole:
        why = f"ask for {shown} of {names.CARD_MILLI}; it is a whole number of thousandths of one card, from 1 to {WHOLE_CARD}, and {names.CARD_COUNT} says how many cards"
    elif count % whole or not count:
        why = f"ask for {cards} of {names.CARD_COUNT}; it is a whole number of cards, 1 or more"
    elif count > whole and milli < WHOLE_CARD * whole:
        why = f"ask for {shown} of {names.CARD_MILLI} of each of {cards} cards; more than one card is given out whole, with {WHOLE_CARD} of each"
    elif others := [name for name in _OTHER_CARDS if amounts.get(name)]:
        why = f"ask for cards in two ways, by {names.CARD_MILLI} and {others[0]}; keep only one of them"
    else:
        return left | {names.CARD_MILLI: milli * (count // whole)}
    raise resources.BadValueError("spec.containers", why)


def _of_whole_pod(pod: core.Pod, *, infeasible: bool) -> resources.Amounts:
    """Return what is stated for the pod as a whole, of the resources that can be."""
    level = resources.parse(pod_level(pod), "spec.resources.requests")
    if level and pod.spec.node_name and pod.status.resources is not None:
        granted = resources.parse(pod.status.allocated_resources, "status.allocatedResources")
        in_use = resources.parse(pod.status.resources.requests, "status.resources.requests")
        held = resources.highest(granted, in_use)
        level = _larger(level, {name: held.get(name, 0) for name in level}, infeasible=infeasible)
    return {name: units for name, units in level.items() if is_pod_level(name)}


def is_pod_level(name: str) -> bool:
    """Tell whether a resource can be stated for a pod as a whole."""
    return name in ("cpu", "memory") or name.startswith("hugepages-")


def _stays(container: core.Container, field: str) -> bool:
    """Tell whether a container runs as long as its pod: every one but the init containers that are no sidecars, which are never resized."""
    return container.restart_policy == "Always" or not field.startswith("spec.initContainers")


def _reported(pod: core.Pod) -> dict[str, core.ContainerStatus]:
    """Return what the kubelet says of the containers of a pod that has a node."""
    if not pod.spec.node_name:
        return {}
    status = pod.status
    return {each.name: each for each in (*status.init_container_statuses, *status.container_statuses)}


def _larger(written: resources.Amounts, held: resources.Amounts, *, infeasible: bool) -> resources.Amounts:
    """Return the larger of what is asked for and what is held; if the kubelet has refused what is asked for, what is held."""
    return held if infeasible else resources.highest(written, held)


def limits_of(pod: core.Pod) -> resources.Amounts:
    """Return what the pod may use at most, as far as its containers, or the pod as a whole, say."""

    def allowed(container: core.Container, field: str) -> resources.Amounts:
        return resources.parse(container.resources.limits, f"{field}.resources.limits")

    level = resources.parse(pod.spec.resources.limits if pod.spec.resources else {}, "spec.resources.limits")
    return {**_aggregate(pod, allowed), **level}


def is_guaranteed(pod: core.Pod) -> bool:
    """Tell whether a pod is of the class Guaranteed: every container may use exactly what it asks for of cpu and memory, and asks for both."""
    containers = (*pod.spec.containers, *pod.spec.init_containers)
    return all(
        container.resources.limits.get(name) is not None
        and container.resources.requests.get(name, container.resources.limits[name]) == container.resources.limits[name]
        for container in containers
        for name in ("cpu", "memory")
    )


def whole_cpus(container: core.Container) -> int:
    """Return how many whole CPUs a container asks for; 0 if it asks for a part of one."""
    amounts = resources.parse(container.resources.requests, "resources.requests")
    units = amounts.get("cpu", 0)
    return units // 1000 if units % 1000 == 0 else 0


def non_zero(pod: core.Pod, amounts: Mapping[str, int]) -> tuple[int, int]:
    """Return cpu and memory with Kubernetes' stand-ins for containers that ask for nothing; used by scores only.

    Where anything is stated for the pod as a whole, they stand in only for what neither it nor any container asks for.
    """
    if all({"cpu", "memory"} <= container.resources.requests.keys() for container in pod.spec.containers):
        return amounts.get("cpu", 0), amounts.get("memory", 0)
    level = pod_level(pod)
    stated = {name for each in (*pod.spec.containers, *pod.spec.init_containers) for name in each.resources.requests}
    known = {*level, *stated} if level else set()

    def asked(container: core.Container, field: str) -> resources.Amounts:
        written = resources.parse(container.resources.requests, f"{field}.resources.requests")
        return {"cpu": written.get("cpu", DEFAULT_CPU), "memory": written.get("memory", DEFAULT_MEMORY)}

    filled = resources.add(_aggregate(pod, asked), resources.parse(pod.spec.overhead, "spec.overhead"))
    cpu, memory = (amounts.get(name, 0) if name in known else filled.get(name, 0) for name in ("cpu", "memory"))
    return cpu, memory


def pod_level(pod: core.Pod) -> meta.ResourceList:
    """Return the requests stated for the pod as a whole."""
    return pod.spec.resources.requests if pod.spec.resources else {}


def _aggregate(pod: core.Pod, asked: _Container) -> resources.Amounts:
    """Sum containers and sidecars, and raise the sum to the peak of the init phase."""
    total: resources.Amounts = {}
    for index, container in enumerate(pod.spec.containers):
        total = resources.add(total, asked(container, f"spec.containers[{index}]"))
    sidecars: resources.Amounts = {}
    peak: resources.Amounts = {}
    for index, container in enumerate(pod.spec.init_containers):
        own = asked(container, f"spec.initContainers[{index}]")
        if container.restart_policy == "Always":
            total = resources.add(total, own)
            sidecars = resources.add(sidecars, own)
            peak = resources.highest(peak, sidecars)
        else:
            peak = resources.highest(peak, resources.add(sidecars, own))
    return resources.highest(total, peak)


def is_resize_infeasible(pod: core.Pod) -> bool:
    """Tell whether the kubelet has refused the resize that the spec asks for."""
    return any(c.type == "PodResizePending" and c.reason == "Infeasible" for c in pod.status.conditions)


def _check_total(amounts: resources.Amounts) -> None:
    """Refuse sums that no column can hold, however the parts were spread over containers."""
    if len(amounts) > resources.MAX_NAMES:
        raise resources.BadValueError(
            "spec.containers", f"name {len(amounts)} resources; at most {resources.MAX_NAMES} are accepted in one pod"
        )
    for name, units in amounts.items():
        if units > resources.LIMIT:
            raise resources.BadValueError(
                "spec.containers",
                f"ask for more than the largest amount of {name} that is counted ({resources.shown(name, resources.LIMIT)})",
            )
