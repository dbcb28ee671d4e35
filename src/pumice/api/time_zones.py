"""Time zones by their IANA names."""

from __future__ import annotations

import zoneinfo
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import datetime as dt


class ZoneError(ValueError):
    """A name that no time zone has."""


def zone_of(name: str) -> dt.tzinfo:
    """Find a time zone by its IANA name, or raise a `ZoneError`."""
    if not name or name.lower() == "local":
        raise ZoneError(f"{name!r} is no time zone that can be used; write an IANA name such as Europe/Berlin")
    try:
        return zoneinfo.ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise ZoneError(f"unknown time zone {name[:60]!r}; write an IANA name such as Europe/Berlin") from None
