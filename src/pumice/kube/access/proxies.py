"""Which proxy stands between us and a server, by the kubeconfig or by the environment, as Go programs read it."""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING, Final
from urllib.parse import SplitResult, urlsplit

from pumice.kube.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Mapping

SCHEMES: Final = ("http", "https")


def choose(server: str, configured: str, field: str, environ: Mapping[str, str]) -> str:
    """Return the proxy for a server, empty for none: the configured one, else the environment's unless NO_PROXY exempts the server."""
    if configured:
        return _checked(configured, field)
    parts = urlsplit(server)
    name = f"{parts.scheme.upper()}_PROXY"
    found = environ.get(name) or environ.get(name.lower()) or ""
    # Behind CGI a header "Proxy:" becomes HTTP_PROXY: whoever sent the request would choose.
    if not found or (name == "HTTP_PROXY" and "REQUEST_METHOD" in environ):
        return ""
    port = parts.port or (443 if parts.scheme == "https" else 80)
    if exempt(parts.hostname or "", port, environ.get("NO_PROXY") or environ.get("no_proxy") or ""):
        return ""
    return _checked(found if "://" in found else f"http://{found}", f"${name}")


def exempt(host: str, port: int, rules: str) -> bool:
    """Whether a host is spoken to directly: itself loopback, or matched by a rule (`*`, name, .domain, address, CIDR, each with a port or not)."""
    address = _address(host)
    if host == "localhost" or (address is not None and address.is_loopback):
        return True
    return any(_matches(rule.strip().lower(), host.lower(), port, address) for rule in rules.split(",") if rule.strip())


def _matches(rule: str, host: str, port: int, address: ipaddress.IPv4Address | ipaddress.IPv6Address | None) -> bool:
    if rule == "*":
        return True
    if "/" in rule:
        try:
            return address is not None and address in ipaddress.ip_network(rule, strict=False)
        except ValueError:
            return False
    name, wanted = rule, ""
    if _address(rule.strip("[]")) is None and rule.rpartition(":")[2].isdigit():
        name, _, wanted = rule.rpartition(":")
    if wanted and wanted != str(port):
        return False
    exact = _address(name.strip("[]"))
    if exact is not None:
        return exact == address
    bare = name.removeprefix("*").removeprefix(".")
    return host.endswith(f".{bare}") or (host == bare and name == bare)


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None


def split(url: str) -> SplitResult:
    """Take an address apart; one that makes no sense has no parts."""
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        return urlsplit("")
    return parts


def _checked(url: str, field: str) -> str:
    parts = split(url)
    if parts.scheme not in SCHEMES or not parts.hostname:
        kind = (
            f"{parts.scheme}:// is not supported" if parts.scheme and parts.hostname else "not the address of a proxy"
        )
        raise ConfigurationError(f"{field}: {kind}; write it as http://HOST:PORT")
    return url
