"""Which text of a ConfigMap is the configuration: a key of it, or, as kube-batch had it, the map as a whole."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import yaml

if TYPE_CHECKING:
    from collections.abc import Mapping

KEYS: Final = ("volcano-scheduler.conf", "kube-batch-conf.yaml", "scheduler.conf")
WHOLE: Final = ""
"""Stands for all the keys together, kube-batch's flat map."""


def choose(data: Mapping[str, object], key: str = "") -> str | None:
    """Return the key that holds the configuration: the one asked for, else the usual one, else the only one; None if there is none."""
    if key:
        return key if key in data else None
    if "plugins" in data:
        return WHOLE
    usual = next((each for each in KEYS if each in data), None)
    return usual or (next(iter(data)) if len(data) == 1 else None)


def is_usual(data: Mapping[str, object]) -> bool:
    """Tell whether a ConfigMap looks as if it held a configuration."""
    return "plugins" in data or any(key in data for key in KEYS)


def text(data: Mapping[str, str], key: str) -> str:
    """Return the configuration at a key that was chosen."""
    if key:
        return data[key]
    written: str = yaml.safe_dump(dict(data), sort_keys=False, default_style='"')
    return written


def listed(data: Mapping[str, object]) -> str:
    """Name the keys for a message."""
    return f"the keys {', '.join(sorted(data))}" if data else "no data"
