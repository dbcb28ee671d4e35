"""Several schedulers side by side: which gangs and which nodes are this one's.

The members `<base>-0 … <base>-(n-1)` stand on a ring of checksums, and a name belongs to the next member on it; when a member is added, few names
change hands. A pod that names a group follows that group, so that no gang is ever split between two schedulers, whoever owns its pods.
"""

from __future__ import annotations

import bisect
import zlib
from typing import TYPE_CHECKING

from pumice.model import native_groups

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pumice.api import core

POINTS = 20  # of each member on the ring


class Assignment:
    """What belongs to one member of a set of schedulers."""

    def __init__(self, member: str, members: int) -> None:
        base, dash, index = member.rpartition("-")
        if not dash or not base or not index.isdecimal() or int(index) >= members:
            raise ValueError(f"scheduler {member!r} is none of <name>-0 … <name>-{members - 1}")
        self.member = member
        self.members = members
        ring = sorted(
            (zlib.crc32(f"{point}{name}".encode()), name)
            for name in (f"{base}-{i}" for i in range(members))
            for point in range(POINTS)
        )
        self._points = [point for point, _ in ring]
        self._names = [name for _, name in ring]

    def holds(self, name: str) -> bool:
        """Tell whether a name is this member's."""
        position = bisect.bisect_right(self._points, zlib.crc32(name.encode()))
        return self._names[position % len(self._names)] == self.member

    def holds_pod(self, pod: core.Pod) -> bool:
        """Tell whether a pod is this member's: by its group, else by its first owner, else by itself."""
        metadata = pod.metadata
        group = native_groups.job_key(pod).partition("/")[2].removesuffix(native_groups.MARK)
        owner = metadata.owner_references[0].name if metadata.owner_references else metadata.name
        return self.holds(group or owner)


def from_environment(environment: Mapping[str, str]) -> Assignment | None:
    """Read what the peers' StatefulSet sets; None if this scheduler stands alone. A value that makes no sense is a ValueError."""
    if environment.get("MULTI_SCHEDULER_ENABLE", "").lower() != "true":
        return None
    text = environment.get("SCHEDULER_NUM", "1")
    if not text.isdecimal() or not 1 <= int(text) <= 1000:
        raise ValueError(f"SCHEDULER_NUM is {text!r}, which is not a number of schedulers from 1 to 1000")
    try:
        return Assignment(environment.get("SCHEDULER_POD_NAME", ""), int(text))
    except ValueError as error:
        raise ValueError(f"SCHEDULER_POD_NAME: {error} (SCHEDULER_NUM is {text})") from None
