"""The rows of groups that wait, by when each is expected to start: what the scheduler says in their condition `StartForecast`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from pumice.api import names, timestamp
from pumice.cli.volcano import columns
from pumice.cli.volcano.columns import Column
from pumice.framework import reason_keys
from pumice.sim import structure

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    Manifest = Mapping[str, Any]

_MESSAGE: Final = re.compile(r"expected at (?:(\d{4}-\d\d-\d\d) )?(\d\d:\d\d(?::\d\d)?) on ([^;]*)")
_NEVER: Final = 2**62


def forecast(group: Manifest) -> Mapping[str, Any]:
    """Give the forecast of a group that waits; nothing if it has none."""
    return _holding(group, names.CONDITION_START_FORECAST)


def _holding(group: Manifest, kind: str) -> Mapping[str, Any]:
    """Give the condition of a type if it holds."""
    listed = structure.mapping(group, "status").get("conditions")
    for condition in listed if isinstance(listed, list) else []:
        if isinstance(condition, dict) and condition.get("type") == kind:
            return condition if condition.get("status") == "True" else {}
    return {}


def chosen(groups: Iterable[Manifest], *, queue_name: str, part: str) -> list[Any]:
    """Choose the groups that wait, the next to start first, those without a known start last."""
    found = [group for group in groups if forecast(group) or _waits(group)]
    found = [group for group in found if part in _name(group) and queue_name in ("", _queue(group))]
    return sorted(found, key=lambda group: (_instant(group), columns.namespace(group), columns.name(group)))


def _waits(group: Manifest) -> bool:
    return structure.mapping(group, "status").get("phase") in (None, "", names.PHASE_PENDING, names.PHASE_INQUEUE)


def _told(group: Manifest) -> re.Match[str] | None:
    return _MESSAGE.match(str(forecast(group).get("message") or ""))


def _instant(group: Manifest) -> int:
    found = _told(group)
    if found is None:
        return _NEVER
    day = found[1] or str(forecast(group).get("lastTransitionTime") or "").partition("T")[0]
    try:
        return timestamp.parse(f"{day}T{found[2] if found[2].count(':') > 1 else found[2] + ':00'}Z")
    except timestamp.TimestampError:
        return _NEVER


def _expected(group: Manifest, _: int) -> str:
    moment = _instant(group)
    return timestamp.format_timestamp(moment) if moment < _NEVER else "unknown"


def _name(group: Manifest, _: int = 0) -> str:
    """Name a group, one that was made for the pods of a workload by that: `Job/train`."""
    own = columns.name(group)
    owners = structure.mapping(group, "metadata").get("ownerReferences")
    for owner in owners if own.startswith(names.POD_GROUP_PREFIX) and isinstance(owners, list) else []:
        if isinstance(owner, dict) and owner.get("controller") and owner.get("name"):
            return f"{owner.get('kind')}/{owner['name']}"
    return own


def _queue(group: Manifest, _: int = 0) -> str:
    return str(structure.mapping(group, "spec").get("queue") or names.DEFAULT_QUEUE)


def _basis(group: Manifest, _: int) -> str:
    return str(forecast(group).get("reason") or "Unknown")


def _nodes(group: Manifest, _: int) -> str:
    found = _told(group)
    return found[3] if found is not None else str(forecast(group).get("message") or _cause(group) or columns.NONE)


def _cause(group: Manifest) -> str:
    """Give why a group waits of which no start is told: no policy with `timeline`, or it is not planned yet."""
    return reason_keys.cause(str(_holding(group, names.CONDITION_UNSCHEDULABLE).get("message") or ""))


NAMESPACE: Final = Column("Namespace", columns.namespace, gap=3)
COLUMNS: Final = (
    Column("Name", _name, gap=3),
    Column("Queue", _queue, gap=3),
    Column("Size", columns.count("spec", "minMember"), gap=3),
    Column("Submitted", columns.field("metadata", "creationTimestamp"), gap=3),
    Column("Expected", _expected, gap=3),
    Column("Basis", _basis, gap=3),
    Column("Nodes", _nodes, gap=0),
)
