"""What the configuration says about strategies, read strictly: there is one, lowNodeUtilization."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from pumice.api import documents

if TYPE_CHECKING:
    from collections.abc import Iterable

LOW_NODE_UTILIZATION: Final = "lowNodeUtilization"
_ENTRY: Final = ("name", "params")
_LIMITS: Final = ("thresholds", "targetThresholds")
# Documented by the peer and read by nobody, there and here.
_UNREAD: Final = (
    "nodeFit",
    "thresholdPriorityClassName",
    "numberOfNodes",
    "useDeviationThresholds",
    "evictableNamespaces",
)
UNREAD_STRATEGIES: Final = (
    "offlineOnly",
    "lowPriorityFirst",
    "shortLifeTimeFirst",
    "bigObjectFirst",
    "moreReplicasFirst",
)
_RESOURCES: Final = ("cpu", "memory")
_UNREAD_RESOURCES: Final = ("pods",)
_ALL: Final = 100


class Limits(msgspec.Struct, frozen=True):
    """Below which percentage a node is idle, and above which it is busy, of cpu and of memory."""

    low: tuple[int, int] = (_ALL, _ALL)
    high: tuple[int, int] = (_ALL, _ALL)


def limits_of(strategies: list[Any]) -> Limits:
    """Return the limits of the strategy that is read; of what is not written, everything is allowed."""
    params = next((each.get("params") or {} for each in strategies if each.get("name") == LOW_NODE_UTILIZATION), {})
    low, high = (params.get(key) or {} for key in _LIMITS)
    return Limits(
        low=(low.get("cpu", _ALL), low.get("memory", _ALL)), high=(high.get("cpu", _ALL), high.get("memory", _ALL))
    )


def problems(strategies: list[Any]) -> Iterable[tuple[documents.Path, str]]:
    """Say what cannot be read, and where."""
    first = True
    for index, entry in enumerate(strategies):
        if not isinstance(entry, dict):
            yield (index,), f"expected a map with name and params, found {documents.described(entry)}"
            continue
        yield from (((index, key), why) for key, why in _unknown(entry, _ENTRY))
        name = entry.get("name")
        if name in UNREAD_STRATEGIES:
            continue
        if name != LOW_NODE_UTILIZATION:
            yield (index, "name"), f"expected {LOW_NODE_UTILIZATION}, found {documents.described(name)}"
        if not first:
            yield (index,), f"{LOW_NODE_UTILIZATION} is there already; keep only one of them"
        first = False
        params = entry.get("params") or {}
        if not isinstance(params, dict):
            yield (index, "params"), f"expected a map, found {documents.described(params)}"
            continue
        yield from (((index, "params", key), why) for key, why in _unknown(params, (*_LIMITS, *_UNREAD)))
        for key in _LIMITS:
            yield from (((index, "params", key, *where), why) for where, why in _bad_limits(params.get(key)))


def unread(strategies: list[Any]) -> Iterable[tuple[documents.Path, str]]:
    """Say what is documented and read by nobody, there and here."""
    for index, entry in enumerate(strategies):
        if entry.get("name") in UNREAD_STRATEGIES:
            yield (index, "name"), f"nobody reads {entry['name']}: the one strategy is {LOW_NODE_UTILIZATION}"
            continue
        params = entry.get("params") or {}
        yield from (((index, "params", key), f"nobody reads {key}") for key in _UNREAD if key in params)
        for key in _LIMITS:
            for each in _UNREAD_RESOURCES:
                if each in (params.get(key) or {}):
                    yield (
                        (index, "params", key, each),
                        f"nobody reads {each}: nodes are compared by {' and '.join(_RESOURCES)}",
                    )


def _bad_limits(written: Any) -> Iterable[tuple[documents.Path, str]]:
    if written is None:
        return
    if not isinstance(written, dict):
        yield (), f"expected a map of percentages, found {documents.described(written)}"
        return
    yield from (((key,), why) for key, why in _unknown(written, (*_RESOURCES, *_UNREAD_RESOURCES)))
    for key in _RESOURCES:
        value = written.get(key, 0)
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= _ALL:
            yield (key,), f"expected a whole percentage from 0 to {_ALL}, found {documents.described(value)}"


def _unknown(written: dict[Any, Any], known: tuple[str, ...]) -> Iterable[tuple[str, str]]:
    for key in written:
        if key not in known:
            near = documents.nearest(str(key), known)
            yield str(key), f"unknown key {documents.quoted(str(key))}" + (f"; did you mean {near}?" if near else "")
