"""What claims ask for, read once; equal specs are one object, so that equal claims get their answers once."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import msgspec

from pumice.api import affinity, quantity, resource
from pumice.model import resources
from pumice.model.devices import amounts
from pumice.model.devices.extended import SpecialClaim  # noqa: TC001  msgspec reads the annotations at run time

if TYPE_CHECKING:
    from pumice.api import core

EXACT_COUNT = "ExactCount"
ALL = "All"
MODES = (EXACT_COUNT, ALL)
MOST_DEVICES = 32
MOST_REQUESTS = 32
MOST_OPTIONS = 8
MOST_COUNT = 2**31 - 1

_CONTENT = msgspec.msgpack.Encoder()


class Need(msgspec.Struct, frozen=True):
    """One thing that a request may be satisfied with; `name` is `r`, or `r/s` if it is one of several."""

    name: str
    device_class: str
    selectors: tuple[str | None, ...]  # expressions; None is a form that is not known
    mode: str
    count: int
    admin: bool
    tolerations: tuple[affinity.Toleration, ...]
    capacity: dict[str, int]

    @property
    def least(self) -> int:
        """How many devices it needs at the least."""
        return self.count if self.mode == EXACT_COUNT else 1


class Request(msgspec.Struct, frozen=True):
    """One request: the first of its options that can be had."""

    name: str
    options: tuple[Need, ...]
    is_list: bool


class Constraint(msgspec.Struct, frozen=True):
    """An attribute in which devices are to be alike, or to differ; without one it is of a form that is not known."""

    requests: frozenset[str]
    attribute: str
    distinct: bool

    def covers(self, name: str) -> bool:
        """Tell whether devices of a request (`r` or `r/s`) are meant; `r` covers all of its options."""
        return not self.requests or name in self.requests or name.partition("/")[0] in self.requests


class Wanted(msgspec.Struct, frozen=True):
    """What a claim asks for; `content` is the same for equal specs, and `problem` says why it cannot be given anything."""

    content: bytes
    requests: tuple[Request, ...] = ()
    constraints: tuple[Constraint, ...] = ()
    config: tuple[resource.DeviceConfiguration, ...] = ()
    problem: str = ""


class ClaimUse(msgspec.Struct, frozen=True):
    """A claim of a pod: its name there, the key of the object, and the uid of the pod if it must have been made for it.

    Without a key the object is not made yet.
    """

    name: str
    key: str
    owner: str = ""
    special: SpecialClaim | None = None  # what is to be made, if the claim stands for extended resources


def uses_of(pod: core.Pod) -> tuple[ClaimUse, ...]:
    """List the claims of a pod; those that it turned out not to need are left out."""
    if not pod.spec.resource_claims:
        return ()
    made = {each.name: each.resource_claim_name for each in pod.status.resource_claim_statuses}
    namespace, uid = pod.metadata.namespace, pod.metadata.uid
    uses: dict[tuple[str, str], ClaimUse] = {}
    for claim in pod.spec.resource_claims:
        if claim.resource_claim_name:
            found = ClaimUse(claim.name, f"{namespace}/{claim.resource_claim_name}")
        elif claim.name not in made:
            found = ClaimUse(claim.name, "", uid)
        elif name := made[claim.name]:
            found = ClaimUse(claim.name, f"{namespace}/{name}", uid)
        else:
            continue
        uses[found.name, found.key] = found
    return tuple(uses.values())


def read(spec: resource.ResourceClaimSpec) -> Wanted:
    """Read what a claim asks for; what is wrong with it is told by `problem`."""
    return _read(_CONTENT.encode(spec))


@functools.lru_cache(maxsize=4096)
def _read(content: bytes) -> Wanted:
    found = msgspec.msgpack.decode(content, type=resource.ResourceClaimSpec).devices
    try:
        requests = _requests(found.requests)
    except resources.BadValueError as error:
        return Wanted(content, problem=str(error))
    constraints = tuple(
        Constraint(
            frozenset(each.requests),
            each.match_attribute or each.distinct_attribute or "",
            each.distinct_attribute is not None,
        )
        for each in found.constraints
    )
    return Wanted(content, requests, constraints, found.config)


def _requests(found: tuple[resource.DeviceRequest, ...]) -> tuple[Request, ...]:
    if len(found) > MOST_REQUESTS:
        raise resources.BadValueError(
            "spec.devices.requests", f"has {len(found)} entries; at most {MOST_REQUESTS} are read"
        )
    return tuple(_request(each, index) for index, each in enumerate(found))


def _request(found: resource.DeviceRequest, index: int) -> Request:
    field = f"spec.devices.requests[{index}]"
    if not found.name:
        raise resources.BadValueError(f"{field}.name", "must be set, but is absent or empty")
    if found.exactly is not None:
        admin = bool(found.exactly.admin_access)
        return Request(found.name, (_need(found.exactly, found.name, f"{field}.exactly", admin=admin),), is_list=False)
    if not found.first_available:
        raise resources.BadValueError(field, "has neither exactly nor firstAvailable, or a form that is not known")
    if len(found.first_available) > MOST_OPTIONS:
        raise resources.BadValueError(
            f"{field}.firstAvailable", f"has {len(found.first_available)} entries; at most {MOST_OPTIONS} are read"
        )
    options = tuple(
        _need(each, f"{found.name}/{each.name}", f"{field}.firstAvailable[{position}]", admin=False)
        for position, each in enumerate(found.first_available)
    )
    return Request(found.name, options, is_list=True)


def _need(found: resource.DeviceSubRequest, name: str, field: str, *, admin: bool) -> Need:
    if not 0 <= found.count <= MOST_COUNT:
        raise resources.BadValueError(f"{field}.count", f"is {found.count}; it must be 1 or more")
    capacity: dict[str, int] = {}
    for key, text in found.capacity.requests.items() if found.capacity is not None else ():
        try:
            capacity[key] = amounts.nanos(text)
        except quantity.QuantityError as error:
            raise resources.BadValueError(f"{field}.capacity.requests[{key}]", str(error)) from None
    return Need(
        name,
        found.device_class_name,
        tuple(each.cel.expression if each.cel is not None else None for each in found.selectors),
        found.allocation_mode or EXACT_COUNT,
        found.count or 1,
        admin,
        found.tolerations,
        capacity,
    )
