"""What is decided for the claims of a pod when it is placed, and what is written of it before the pod is bound."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from pumice.api import meta, resource  # noqa: TC001  msgspec reads the annotations at run time

PODS: Final = "pods"
CONDITION_PATIENCE: Final = 600_000_000
"""How long (microseconds) devices may take until their binding conditions are true."""


class ClaimDecision(msgspec.Struct, frozen=True, kw_only=True):
    """What one claim is to have when its pod is bound.

    A claim that has this allocation already only gets its consumer. `made` is the manifest of a claim that is to be created first, because the pod asks for
    extended resources that a device class stands for; `claim` is then no name of an object, and `mappings` is what the pod's status is to say of it.
    """

    namespace: str
    claim: str
    uid: str
    allocation: resource.Allocation
    consumer: resource.Consumer
    made: dict[str, Any] | None = None
    mappings: tuple[dict[str, str], ...] = ()

    @property
    def key(self) -> str:
        """The claim's namespace and name."""
        return f"{self.namespace}/{self.claim}"

    @property
    def waits(self) -> bool:
        """Whether some device has conditions that must become true before the pod is bound."""
        return any(result.binding_conditions for result in self.allocation.devices.results)


class ClaimReservation(msgspec.Struct, frozen=True):
    """What was decided for the claims of one placed pod, for its node; `problem` says why nothing could be: such a pod must not be bound."""

    node: str
    decisions: tuple[ClaimDecision, ...] = ()
    problem: str = ""

    @property
    def patience(self) -> int:
        """How long carrying it out may take, in microseconds."""
        return CONDITION_PATIENCE if any(decision.waits for decision in self.decisions) else 0


def written(piece: meta.Wire) -> dict[str, Any]:
    """Write a piece of an object as it travels."""
    body: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(piece))
    return body


def has(claim: resource.ResourceClaim, decision: ClaimDecision) -> bool:
    """Tell whether a claim has what was decided for it: the same devices, whenever it got them."""
    found = claim.status.allocation
    return found is not None and found.devices.results == decision.allocation.devices.results


def is_reserved(claim: resource.ResourceClaim, uid: str) -> bool:
    """Tell whether somebody may use what a claim has."""
    return any(consumer.uid == uid for consumer in claim.status.reserved_for)


def unmet_conditions(claim: resource.ResourceClaim) -> tuple[list[str], list[str]]:
    """Say which conditions of a claim's devices are not true yet, and which failures are: `device: condition` each."""
    waiting: list[str] = []
    failed: list[str] = []
    for result in claim.status.allocation.devices.results if claim.status.allocation is not None else ():
        true = {
            condition.type
            for told in claim.status.devices
            if (told.driver, told.pool, told.device) == (result.driver, result.pool, result.device)
            and (told.share_id or None) == (result.share_id or None)
            for condition in told.conditions
            if condition.status == "True"
        }
        waiting += [f"{result.device}: {name}" for name in result.binding_conditions if name not in true]
        failed += [f"{result.device}: {name}" for name in result.binding_failure_conditions if name in true]
    return waiting, failed
