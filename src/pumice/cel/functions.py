"""The functions that Kubernetes adds to CEL, as far as the evaluator does not bring them: quantities, versions, lists, sets, addresses, URLs.

Missing are formats, whose answers are optional, and `string` of addresses. `indexOf` and `lastIndexOf` have names of their own, because the evaluator keeps these for texts.

The evaluator knows no objects of others, so a value is a map with one key, which holds a canonical text: equal values are equal maps.
"""

from __future__ import annotations

import functools
import ipaddress
import itertools
from typing import TYPE_CHECKING, Any, Final

import msgspec

from pumice.api import quantity
from pumice.cel import patterns, urls, versions

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


def _sum(values: list[Any]) -> Any:
    return sum(values[1:], values[0]) if values else 0


def _same(left: Any, right: Any) -> bool:
    """Tell whether two values are equal in CEL, where true is no 1."""
    return isinstance(left, bool) is isinstance(right, bool) and bool(left == right)


def _index(values: list[Any], wanted: Any) -> int:
    return next((place for place, value in enumerate(values) if _same(value, wanted)), -1)


def _last_index(values: list[Any], wanted: Any) -> int:
    found = _index(values[::-1], wanted)
    return -1 if found < 0 else len(values) - 1 - found


def _from(find: Callable[..., int], text: str, wanted: str, start: int | None = None) -> int:
    """Look for a text in another: `find` from a place on, or up to where it may begin."""
    if start is None:
        return find(text, wanted)
    if not 0 <= start <= len(text):
        raise ValueError(f"index out of range: {start}")
    return text.find(wanted, start) if find is str.find else text.rfind(wanted, 0, start + len(wanted))


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


def _is_link_local_multicast(value: Value) -> bool:
    address = _address(value)
    return address in ipaddress.ip_network("224.0.0.0/24" if address.version == 4 else "ff02::/16")


def _is_global_unicast(value: Value) -> bool:
    """Tell whether an address is of one machine beyond its own link, as Go has it: private ones are."""
    address = _address(value)
    broadcast = address == ipaddress.IPv4Address("255.255.255.255")
    local = address.is_unspecified or address.is_loopback or address.is_link_local
    return not (broadcast or local or address.is_multicast)


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
_LISTED: Final = (*_PLAIN, "double", "duration", "timestamp")
INDEX: Final = "IndexOf"
LAST_INDEX: Final = "LastIndexOf"

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
    Function("sum", ("list",), "any", _sum),
    Function("min", ("list",), "any", functools.partial(_chosen, min)),
    Function("max", ("list",), "any", functools.partial(_chosen, max)),
    Function("isSorted", ("list",), "bool", _is_sorted),
    *(Function("includes", (kind, kind), "bool", _same) for kind in _PLAIN),
    *(Function("includes", ("list", kind), "bool", lambda list_, one: _index(list_, one) >= 0) for kind in _PLAIN),
    *(Function(INDEX, ("list", kind), "int", _index) for kind in _LISTED),
    *(Function(LAST_INDEX, ("list", kind), "int", _last_index) for kind in _LISTED),
    *(
        Function(name, ("string", "string", *start), "int", functools.partial(_from, find))
        for name, find in ((INDEX, str.find), (LAST_INDEX, str.rfind))
        for start in ((), ("int",))
    ),
    Function("find", ("string", "string"), "string", patterns.find),
    Function("findAll", ("string", "string"), "list", patterns.find_all),
    Function("findAll", ("string", "string", "int"), "list", patterns.find_all),
    Function("ip", ("string",), "value", _ip, is_member=False),
    Function("isIP", ("string",), "bool", functools.partial(_can, _ip), is_member=False),
    Function("family", ("value",), "int", lambda value: _address(value).version),
    Function("isLoopback", ("value",), "bool", lambda value: _address(value).is_loopback),
    Function("isLinkLocalMulticast", ("value",), "bool", _is_link_local_multicast),
    Function("isLinkLocalUnicast", ("value",), "bool", lambda value: _address(value).is_link_local),
    Function("isGlobalUnicast", ("value",), "bool", _is_global_unicast),
    Function("ip.isCanonical", ("string",), "bool", lambda text: _ip(text)[IP] == text, is_member=False),
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
    Function("ip", ("value",), "value", lambda value: {IP: str(ipaddress.ip_interface(value[CIDR]).ip)}),
    Function("masked", ("value",), "value", lambda value: {CIDR: str(_network(value))}),
    Function("prefixLength", ("value",), "int", lambda value: _network(value).prefixlen),
    Function("containsIP", ("value", "value"), "bool", _contains_ip),
    Function("containsIP", ("value", "string"), "bool", _contains_ip),
    Function("containsCIDR", ("value", "value"), "bool", _contains_cidr),
    Function("containsCIDR", ("value", "string"), "bool", _contains_cidr),
)
