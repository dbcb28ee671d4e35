"""Amounts of resources that containers ask for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pumice.admission import laws, naming, parts
from pumice.api import names, quantity

if TYPE_CHECKING:
    from fractions import Fraction

    from pumice.admission.parts import Part

_COMPUTED: Final = (names.CPU, names.MEMORY)
_SHARED: Final = (*_COMPUTED, names.EPHEMERAL_STORAGE)


def judge(resources: Part) -> None:
    """Judge requests and limits of a container."""
    limits = read(resources, "limits")
    requests = read(resources, "requests")
    for name, (_, part) in (*requests.items(), *limits.items()):
        if name not in _SHARED and "/" not in name and not name.startswith(names.HUGE_PAGES_PREFIX):
            part.refuse("is no resource of a container: cpu, memory, ephemeral-storage, hugepages-SIZE or DOMAIN/NAME")
    for name, (wanted, part) in requests.items():
        most = limits.get(name)
        if most is not None and wanted > most[0]:
            part.refuse(f"is {part.value}, above the limit of {most[1].value}")
        elif most is None and _whole_only(name):
            part.refuse("needs a limit of the same amount: what is not shared cannot be overcommitted")
        elif most is not None and _whole_only(name) and wanted != most[0]:
            part.refuse(f"is {part.value}, and must equal its limit of {most[1].value}: it cannot be overcommitted")
    paged = [part for name, (_, part) in limits.items() if name.startswith(names.HUGE_PAGES_PREFIX)]
    if paged and not any(name in amounts for name in _COMPUTED for amounts in (requests, limits)):
        paged[0].refuse("needs cpu or memory beside it")


def read(resources: Part, name: str, *, shared: bool = False) -> dict[str, tuple[Fraction, Part]]:
    """Read a map of amounts; those that are none, or negative, are refused and left out. `shared` ones may be parts of a device."""
    found = {}
    for key, part in resources.entries(name):
        if problem := naming.key(key):
            law = laws.RESOURCES if shared else laws.TEMPLATE
            part.breaks(law, f"is no name of a resource: {problem}")
            continue
        amount = read_one(part)
        if amount is None:
            continue
        if not shared and _whole_only(key) and amount.denominator != 1:
            part.refuse(f"is {part.value}, and must be a whole number")
            continue
        found[key] = (amount, part)
    return found


def of(value: object) -> Fraction | None:
    """Give the amount that a value is, or None where it is none."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        return quantity.parse(value)
    except quantity.QuantityError:
        return None


def read_one(part: Part) -> Fraction | None:
    """Read an amount, or refuse what is none."""
    value = part.value
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        part.refuse(f"must be an amount such as 500m, 2 or 4Gi, not {parts.type_of(value)}")
        return None
    try:
        amount = quantity.parse(value)
    except quantity.QuantityError as error:
        part.refuse(str(error))
        return None
    if amount < 0:
        part.refuse(f"is {value}, and must be at least 0")
        return None
    return amount


def _whole_only(name: str) -> bool:
    return name.startswith(names.HUGE_PAGES_PREFIX) or ("/" in name and "kubernetes.io/" not in name)
