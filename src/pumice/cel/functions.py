"""The functions that Kubernetes adds to CEL, as far as the evaluator does not bring them: quantities, versions, lists, sets, addresses, URLs.

Missing are `indexOf` of lists, whose name the evaluator keeps for texts, `find` and `findAll`, and those of formats.

The evaluator knows no objects of others, so a value is a map with one key, which holds a canonical text: equal values are equal maps.
"""

from __future__ import annotations

import functools
import ipaddress
import itertools
from typing import TYPE_CHECKING, Any, Final

import msgspec

from pumice.api import quantity
from pumice.cel import urls, versions

if TYPE_CHECKING:
    from collections.abc import Callable

QUANTITY: Final = "quantity"
SEMVER: Final = "semver"
IP: Final = "ip"
CIDR: Final = "cidr"
URL: Final = "url"
Value = dict[str, str]


class Function(msgspec.Struct, frozen=True):
    """A function as it is declared: `value` among its types is one of the maps above."""

    name: str
    takes: tuple[str, ...]
    returns: str
    answers: Callable[..., Any]
    is_member: bool = True


# -- quantities ------------------------------------------------------------------------------------------------


def of_quantity(text: quantity.QuantityText) -> Value:
    """Make the value of a quantity."""
    return {QUANTITY: str(_read(text))}


def _read(text: quantity.QuantityText) -> int:
    return int(quantity.parse(text) * quantity.NANO)


def _nanos(value: Value | int) -> int:
    if isinstance(value, int):
        return value * quantity.NANO
    if QUANTITY not in value:
        raise ValueError(f"a {next(iter(value), 'map')} is no quantity")
    return int(value[QUANTITY])


def _is_quantity(text: str) -> bool:
    try:
        quantity.parse(text)
    except quantity.QuantityError:
        return False
    return True


def _as_integer(value: Value) -> int:
    units, rest = divmod(_nanos(value), quantity.NANO)
    if rest or not -(2**63) <= units < 2**63:
        raise ValueError("the quantity is no integer")
    return units


def _is_integer(value: Value) -> bool:
    units, rest = divmod(_nanos(value), quantity.NANO)
    return not rest and -(2**63) <= units < 2**63


def _add(left: Value, right: Value | int) -> Value:
    return {QUANTITY: str(_nanos(left) + _nanos(right))}


def _sub(left: Value, right: Value | int) -> Value:
    return {QUANTITY: str(_nanos(left) - _nanos(right))}


def _sign(value: Value) -> int:
    units = _nanos(value)
    return (units > 0) - (units < 0)


# -- versions --------------------------------------------------------------------------------------------------


def of_version(text: str) -> Value:
    """Make the value of a version."""
    return {SEMVER: versions.canonical(text)}


def _is_version(text: str, normalize: bool = False) -> bool:
    try:
        versions.canonical(versions.normalized(text) if normalize else text)
    except ValueError:
        return False
    return True


def _part(index: int, value: Value) -> int:
    if SEMVER not in value:
        raise ValueError(f"a {next(iter(value), 'map')} is no version")
    return versions.parts(value[SEMVER])[index]


def _compare(left: Value, right: Value) -> int:
    """Compare two quantities, or two versions."""
    if SEMVER in left and SEMVER in right:
        before, after = versions.order(left[SEMVER]), versions.order(right[SEMVER])
        return (before > after) - (before < after)
    difference = _nanos(left) - _nanos(right)
    return (difference > 0) - (difference < 0)


# -- lists and sets --------------------------------------------------------------------------------------------


def _is_sorted(values: list[Any]) -> bool:
    return all(left <= right for left, right in itertools.pairwise(values))


def _chosen(choose: Callable[[list[Any]], Any], values: list[Any]) -> Any:
    if not values:
        raise ValueError("the list is empty")
    return choose(values)


def _slice(values: list[Any], start: int, end: int) -> list[Any]:
    if not 0 <= start <= end <= len(values):
        raise ValueError(f"{start} to {end} is outside a list of {len(values)}")
    return values[start:end]


def _flattened(values: list[Any]) -> list[Any]:
    return [item for value in values for item in (value if isinstance(value, list) else [value])]


def _distinct(values: list[Any]) -> list[Any]:
    found: list[Any] = []
    for value in values:
        if value not in found:
            found.append(value)
    return found


def _includes_all(values: list[Any], wanted: list[Any]) -> bool:
    return all(value in values for value in wanted)


def _intersect(left: list[Any], right: list[Any]) -> bool:
    return any(value in right for value in left)


# -- addresses -------------------------------------------------------------------------------------------------


def _ip(text: str) -> Value:
    address = ipaddress.ip_address(text)
    if "%" in text or getattr(address, "ipv4_mapped", None) is not None:
        raise ValueError("an address with a zone, or one of IPv4 in IPv6, is refused")
    return {IP: str(address)}


def _cidr(text: str) -> Value:
    if "/" not in text:
        raise ValueError(f"{text!r} has no prefix")
    return {CIDR: str(ipaddress.ip_interface(text))}


def _can(make: Callable[[str], Value], text: str) -> bool:
    try:
        make(text)
    except ValueError:
        return False
    return True


def _address(value: Value) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    return ipaddress.ip_address(value[IP])


def _network(value: Value | str) -> ipaddress.IPv4Network | ipaddress.IPv6Network:
    return ipaddress.ip_network(_cidr(value)[CIDR] if isinstance(value, str) else value[CIDR], strict=False)


def _contains_ip(network: Value, address: Value | str) -> bool:
    return _address(_ip(address) if isinstance(address, str) else address) in _network(network)


def _contains_cidr(network: Value, other: Value | str) -> bool:
    outer, inner = _network(network), _network(other)
    return outer.version == inner.version and inner.prefixlen >= outer.prefixlen and inner.network_address in outer


def _url(text: str) -> Value:
    urls.Parts(text)
    return {URL: text}


def _of_url(part: str) -> Callable[[Value], Any]:
    def answer(value: Value) -> Any:
        if URL not in value:
            raise ValueError(f"a {next(iter(value), 'map')} is no URL")
        return getattr(urls.Parts(value[URL]), part)

    return answer


def _numbered(kind: str, wanted: Callable[[int], bool]) -> Function:
    return Function(kind, ("value", "value"), "bool", lambda left, right: wanted(_compare(left, right)))


_PLAIN: Final = ("string", "int", "bool", "value")

FUNCTIONS: Final[tuple[Function, ...]] = (
    Function("quantity", ("string",), "value", of_quantity, is_member=False),
    Function("isQuantity", ("string",), "bool", _is_quantity, is_member=False),
    Function("isInteger", ("value",), "bool", _is_integer),
    Function("asInteger", ("value",), "int", _as_integer),
    Function("asApproximateFloat", ("value",), "double", lambda value: _nanos(value) / quantity.NANO),
    Function("sign", ("value",), "int", _sign),
    Function("add", ("value", "value"), "value", _add),
    Function("add", ("value", "int"), "value", _add),
    Function("sub", ("value", "value"), "value", _sub),
    Function("sub", ("value", "int"), "value", _sub),
    Function("semver", ("string",), "value", of_version, is_member=False),
    Function(
        "semver",
        ("string", "bool"),
        "value",
        lambda text, normalize: of_version(versions.normalized(text) if normalize else text),
        is_member=False,
    ),
    Function("isSemver", ("string",), "bool", _is_version, is_member=False),
    Function("isSemver", ("string", "bool"), "bool", _is_version, is_member=False),
    Function("major", ("value",), "int", functools.partial(_part, 0)),
    Function("minor", ("value",), "int", functools.partial(_part, 1)),
    Function("patch", ("value",), "int", functools.partial(_part, 2)),
    Function("compareTo", ("value", "value"), "int", _compare),
    _numbered("isGreaterThan", lambda sign: sign > 0),
    _numbered("isLessThan", lambda sign: sign < 0),
    Function("sum", ("list",), "any", sum),
    Function("min", ("list",), "any", functools.partial(_chosen, min)),
    Function("max", ("list",), "any", functools.partial(_chosen, max)),
    Function("isSorted", ("list",), "bool", _is_sorted),
    Function("slice", ("list", "int", "int"), "list", _slice),
    Function("flatten", ("list",), "list", _flattened),
    Function("distinct", ("list",), "list", _distinct),
    Function("sort", ("list",), "list", sorted),
    Function("sets.contains", ("list", "list"), "bool", _includes_all, is_member=False),
    Function("sets.intersects", ("list", "list"), "bool", _intersect, is_member=False),
    Function(
        "sets.equivalent",
        ("list", "list"),
        "bool",
        lambda left, right: _includes_all(left, right) and _includes_all(right, left),
        is_member=False,
    ),
    *(Function("includes", (kind, kind), "bool", lambda left, right: left == right) for kind in _PLAIN),
    *(Function("includes", ("list", kind), "bool", lambda values, wanted: wanted in values) for kind in _PLAIN),
    Function("ip", ("string",), "value", _ip, is_member=False),
    Function("isIP", ("string",), "bool", functools.partial(_can, _ip), is_member=False),
    Function("family", ("value",), "int", lambda value: _address(value).version),
    Function("isLoopback", ("value",), "bool", lambda value: _address(value).is_loopback),
    Function("isUnspecified", ("value",), "bool", lambda value: _address(value).is_unspecified),
    Function("url", ("string",), "value", _url, is_member=False),
    Function("isURL", ("string",), "bool", functools.partial(_can, _url), is_member=False),
    Function("getScheme", ("value",), "string", _of_url("scheme")),
    Function("getHost", ("value",), "string", _of_url("host")),
    Function("getHostname", ("value",), "string", _of_url("hostname")),
    Function("getPort", ("value",), "string", _of_url("port")),
    Function("getEscapedPath", ("value",), "string", _of_url("escaped_path")),
    Function("getQuery", ("value",), "any", _of_url("queries")),
    Function("cidr", ("string",), "value", _cidr, is_member=False),
    Function("isCIDR", ("string",), "bool", functools.partial(_can, _cidr), is_member=False),
    Function("prefixLength", ("value",), "int", lambda value: _network(value).prefixlen),
    Function("containsIP", ("value", "value"), "bool", _contains_ip),
    Function("containsIP", ("value", "string"), "bool", _contains_ip),
    Function("containsCIDR", ("value", "value"), "bool", _contains_cidr),
    Function("containsCIDR", ("value", "string"), "bool", _contains_cidr),
)
