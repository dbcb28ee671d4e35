"""What pods and groups write in their metadata, read: times, durations, numbers at the end of names, priorities."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from pumice.api import duration, names, timestamp
from pumice.model import resources

if TYPE_CHECKING:
    from pumice.api import core

INT32 = 2**31
INT32_MAX = INT32 - 1


def stays(pod: core.Pod) -> bool:
    """Tell whether a pod belongs to its node: a static pod, whose controller is the node, or one of a daemon set."""
    owners = pod.metadata.owner_references
    return bool(owners) and any(owner.controller and owner.kind in ("Node", "DaemonSet") for owner in owners)


def name_index(name: str) -> int | None:
    """Return the number at the end of a name of three or more parts, such as `mpi-worker-10`."""
    parts = name.split("-")
    last = parts[-1]
    return int(last) if len(parts) >= 3 and last.isascii() and last.isdigit() and len(last) <= 18 else None


@functools.lru_cache(maxsize=4096)  # thousands of pods are made in the same second
def instant(text: str | None) -> int:
    """Read a timestamp, an unreadable one being the oldest."""
    try:
        return timestamp.parse(text) if text else 0
    except timestamp.TimestampError:
        return 0


def positive_duration(text: str | None) -> int | None:
    """Read a duration that must be above zero to mean anything."""
    if not text:
        return None
    try:
        value = duration.parse(text)
    except duration.DurationError:
        return None
    return value if value > 0 else None


def priority(pod: core.Pod) -> int:
    """Return the priority inside the job: the annotation, else the pod's, else 1."""
    text = pod.metadata.annotations.get(names.TASK_PRIORITY)
    if text is not None:
        try:
            value = int(text, 10)
        except ValueError:
            value = None
        if value is not None and -INT32 <= value < INT32:
            return value
    return 1 if pod.spec.priority is None else pod.spec.priority


def count(value: int, field: str) -> int:
    """Check a number of pods."""
    if not 0 <= value <= INT32_MAX:
        raise resources.BadValueError(field, f"{value} is outside 0..{INT32_MAX}")
    return value
