"""How long ago something was, in the few letters that tables have room for."""

from __future__ import annotations

from typing import Any

from pumice.api import duration, timestamp


def since(text: Any, now: int) -> str:
    """Say how long ago a moment was."""
    try:
        moment = timestamp.parse(str(text))
    except timestamp.TimestampError:
        return "<unknown>"
    return span((now - moment) // duration.SECOND)


def span(seconds: int) -> str:
    """Say a number of seconds as kubectl does: two units while they matter, then one."""
    if seconds < -1:
        return "<invalid>"
    seconds = max(0, seconds)
    if seconds < 120:
        return f"{seconds}s"
    minutes, hours, days = seconds // 60, seconds // 3600, seconds // 86400
    if minutes < 10:
        return _two(minutes, "m", seconds % 60, "s")
    if minutes < 180:
        return f"{minutes}m"
    if hours < 8:
        return _two(hours, "h", minutes % 60, "m")
    if hours < 48:
        return f"{hours}h"
    if days < 8:
        return _two(days, "d", hours % 24, "h")
    if days < 730:
        return f"{days}d"
    return _two(days // 365, "y", days % 365, "d") if days < 365 * 8 else f"{days // 365}y"


def _two(large: int, unit: str, small: int, other: str) -> str:
    return f"{large}{unit}{small}{other}" if small else f"{large}{unit}"
