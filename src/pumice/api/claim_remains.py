"""What can still be read of a claim that cannot be read as a whole: the devices it has, which are nobody else's for all that."""

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

from pumice.api import resource
from pumice.api.meta import ObjectMeta

T = TypeVar("T", bound=msgspec.Struct)


def read(manifest: object, metadata: ObjectMeta) -> resource.ResourceClaim:
    """Read who has which devices; it asks for nothing, and is used by nobody but those it is reserved for."""
    status = _mapping(_mapping(manifest).get("status"))
    allocation = _mapping(status.get("allocation"))
    results = tuple(
        found
        for each in _list(_mapping(allocation.get("devices")).get("results"))
        if (found := _whole(each, resource.DeviceResult) or _named_device(each)) is not None
    )
    consumers = (_whole(each, resource.Consumer) for each in _list(status.get("reservedFor")))
    return resource.ResourceClaim(
        metadata=metadata,
        status=resource.ResourceClaimStatus(
            allocation=resource.Allocation(devices=resource.DeviceAllocation(results=results)) if results else None,
            reserved_for=tuple(each for each in consumers if each is not None),
        ),
    )


def _named_device(entry: object) -> resource.DeviceResult | None:
    """Read which device an entry is about: how much of it cannot be told, so all of it is meant."""
    named = _mapping(entry)
    driver, pool, device = named.get("driver"), named.get("pool"), named.get("device")
    if not (isinstance(driver, str) and isinstance(pool, str) and isinstance(device, str) and device):
        return None
    return resource.DeviceResult(driver=driver, pool=pool, device=device)


def _whole(entry: object, struct: type[T]) -> T | None:
    try:
        return msgspec.convert(entry, struct)
    except (msgspec.ValidationError, RecursionError):
        return None


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _list(value: object) -> list[Any] | tuple[Any, ...]:
    return value if isinstance(value, list | tuple) else []
