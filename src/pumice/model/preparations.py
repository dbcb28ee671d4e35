"""What has to be written before a pod is bound, and is taken back if it is not.

A plugin says it for a pod that it has placed (`WithBind.prepare`); it leaves with the bind. Each preparation is about one object, is written only if the object does not say it
already, and is done for a pod in the order of the list; taking back goes the other way.
"""

from __future__ import annotations

import zlib
from typing import Any, Final

import msgspec

from pumice.api import timestamp

_LETTERS: Final = "bcdfghjklmnpqrstvwxz2456789"
LOCK_LASTS: Final = 300_000_000
"""Microseconds after which a lock that nobody took off holds nobody up any more."""


class NodeLock(msgspec.Struct, frozen=True, kw_only=True):
    """A node is kept for the pods of one commit until its device plugin has served them: the time is written under an annotation of it.

    `stamp` is given when the bind leaves, the same to all pods that leave together, and tells this lock from any other.
    """

    node: str
    annotation: str
    stamp: str = ""


class NewClaim(msgspec.Struct, frozen=True, kw_only=True):
    """A claim that is made for one pod, which owns it, because its containers ask for devices by the name of a resource; deleted when it is taken back."""

    namespace: str
    claim: str
    pod: str
    pod_uid: str
    manifest: dict[str, Any]


class ClaimGrant(msgspec.Struct, frozen=True, kw_only=True):
    """A claim gets the devices that were chosen for it, and is reserved for a pod; without an allocation it must have got one by then.

    `uid` may be empty for a claim that is made before, which `pod_uid` owns then. Taking back ends the reservation and leaves the devices allocated.
    """

    namespace: str
    claim: str
    uid: str
    pod: str
    pod_uid: str
    allocation: dict[str, Any] | None = None

    @property
    def key(self) -> str:
        """The claim's namespace and name."""
        return f"{self.namespace}/{self.claim}"


class ExtendedClaimStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The status of a pod names the claim that was made for it, and which request of it each container has; it is not taken back."""

    namespace: str
    pod: str
    pod_uid: str
    status: dict[str, Any]


Preparation = NodeLock | NewClaim | ClaimGrant | ExtendedClaimStatus
"""Anything that is written before a bind."""


def suffix(uid: str) -> str:
    """Return five letters that follow from a uid, for the name of what is made for one pod."""
    number, letters = zlib.crc32(uid.encode()), ""
    for _ in range(5):
        number, rest = divmod(number, len(_LETTERS))
        letters += _LETTERS[rest]
    return letters


def is_locked(text: str, now: int) -> bool:
    """Tell whether a lock still holds; one whose time cannot be read, or lies far ahead, would never end and holds nobody."""
    ends = lock_ends(text)
    return ends is not None and now < ends <= now + 2 * LOCK_LASTS


def lock_ends(text: str) -> int | None:
    """Return when a lock ends by itself; None if its time cannot be read. What follows a comma says whose it is."""
    try:
        return timestamp.parse(text.partition(",")[0]) + LOCK_LASTS
    except timestamp.TimestampError:
        return None
