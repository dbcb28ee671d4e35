"""Addresses to listen on, as Go programs write them: `host:port`, `:port` for all interfaces, `[::1]:port`."""

from __future__ import annotations

from typing import NamedTuple


class Address(NamedTuple):
    """Where to listen; an empty host means all interfaces."""

    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


def parse(text: str) -> Address:
    """Read an address, or raise a ValueError that says what is wrong with it."""
    host, colon, port = text.rpartition(":")
    if not colon:
        raise ValueError(f"{text!r} has no port; write 127.0.0.1:8080, or :8080 for all interfaces")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        raise ValueError(f"{text!r}: an IPv6 address stands in brackets, as in [::1]:8080")
    if not (port.isascii() and port.isdigit() and int(port) <= 65535):
        raise ValueError(f"{text!r}: {port!r} is no port (0 to 65535)")
    return Address(host, int(port))
