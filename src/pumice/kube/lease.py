"""Who leads: the rules of a Lease, without a clock or a network of their own.

```
             GET                    held by another, changed lately
 ┌──────┐  ───────▶  ┌─────────┐ ─────────────────────────────────▶ wait
 │ idle │            │ look at │   absent, free, ours, or unchanged for a whole lease
 └──────┘  ◀───────  └─────────┘ ─────────────────────────────────▶ write ──▶ leading ──▶ write again …
```

What this rests on. Others' clocks are never read: a record counts as alive for one lease after *this* candidate saw it change. A renewal counts from the moment before
its request was sent, and only if the answer came. So a leader stops writing (`holds`) a renew deadline after it last asked, and nobody else can follow before a whole
lease, which is longer, has passed since the server stored what it asked for. Every write names the version it replaces, so of two who write at once one is refused.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from pumice.api import timestamp

SECOND: Final = 1_000_000


class Timing(msgspec.Struct, frozen=True, kw_only=True):
    """How long a lease lasts, when a leader gives up, and how long to wait between attempts; microseconds."""

    lease: int = 15 * SECOND
    renew_deadline: int = 10 * SECOND
    retry: int = 2 * SECOND


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """What a Lease says, and its version."""

    version: str
    holder: str = ""
    transitions: int = 0
    acquired: str = ""
    renewed: str = ""

    @classmethod
    def read(cls, manifest: dict[str, Any]) -> Record:
        """Read a Lease as the API server gave it; a field of the wrong type counts as absent."""
        metadata, spec = (fields(manifest.get(field)) for field in ("metadata", "spec"))
        transitions = spec.get("leaseTransitions")
        return cls(
            version=str(metadata.get("resourceVersion", "")),
            holder=str(spec.get("holderIdentity") or ""),
            transitions=transitions if isinstance(transitions, int) else 0,
            acquired=str(spec.get("acquireTime") or ""),
            renewed=str(spec.get("renewTime") or ""),
        )


class Write(msgspec.Struct, frozen=True):
    """A Lease to store: in place of a version, or, without one, as a new object."""

    spec: dict[str, Any]
    replaces: str = ""


class Candidate:
    """One of several that want to lead. `now` is always a monotonic clock of its own, `wall` only what is written down."""

    def __init__(self, identity: str, timing: Timing) -> None:
        self.identity = identity
        self.timing = timing
        self.leading = False
        self.known: Record | None = None
        self._seen_at = 0
        self._certain = False
        self._asked_at = 0
        self._answered_at: int | None = None

    # -- asking ------------------------------------------------------------------------------------------------

    def look(self, found: Record | None, now: int, wall: int) -> Write | None:
        """Take in what the API server says; returns what to write, None to wait."""
        if found is None:
            return self._look_at_nothing(now, wall)
        if found != self.known:
            self.known, self._seen_at = found, now
        self._certain = True
        if found.holder != self.identity:
            self._step_down()
            if found.holder and now < self._seen_at + self.timing.lease:
                return None
        return self._write(found, now, wall)

    def _look_at_nothing(self, now: int, wall: int) -> Write | None:
        """Make the Lease; one that somebody deleted under another's hands is left alone for as long as that one may believe in it."""
        if self.known is not None and self.known.version:
            self.known, self._seen_at = msgspec.structs.replace(self.known, version=""), now
        holder = self.known.holder if self.known is not None else ""
        if holder not in ("", self.identity) and now < self._seen_at + self.timing.lease:
            return None
        self._asked_at = now
        return Write(self._spec(wall, acquired="", transitions=0))

    def renew(self, now: int, wall: int) -> Write | None:
        """Return what to write to stay the leader, as far as is known; None if the Lease must be looked at first."""
        if self.known is None or not self._certain or not self.leading:
            return None
        return self._write(self.known, now, wall)

    def _write(self, over: Record, now: int, wall: int) -> Write:
        self._asked_at = now
        mine = over.holder == self.identity
        return Write(
            self._spec(wall, acquired=over.acquired if mine else "", transitions=over.transitions + (0 if mine else 1)),
            over.version,
        )

    def _spec(self, wall: int, *, acquired: str, transitions: int) -> dict[str, Any]:
        moment = micro_time(wall)
        return {
            "holderIdentity": self.identity,
            "leaseDurationSeconds": max(1, self.timing.lease // SECOND),
            "acquireTime": acquired or moment,
            "renewTime": moment,
            "leaseTransitions": transitions,
        }

    # -- answers -----------------------------------------------------------------------------------------------

    def stored(self, record: Record, now: int) -> None:
        """Take the answer that a write was stored; it counts from when it was asked for."""
        self.known, self._seen_at = record, now
        self._certain = True
        self._answered_at = self._asked_at
        self.leading = True

    def refused(self) -> None:
        """Take any other answer, or none: the Lease may say something else by now and must be looked at."""
        self._certain = False

    def holds(self, now: int) -> bool:
        """Tell whether writing is safe: the last renewal that was answered was asked for less than a renew deadline ago."""
        answered = self._answered_at
        return answered is not None and now < answered + self.timing.renew_deadline

    def allowance(self, now: int) -> int:
        """Return how long a write may take that is sent now: it must have ended before anybody else can take the Lease."""
        answered = self._answered_at
        return answered + self.timing.lease - now if answered is not None and self.holds(now) else 0

    def deadline(self) -> int:
        """Return when `holds` ends unless a renewal is answered."""
        return (self._answered_at or 0) + self.timing.renew_deadline

    def release(self, wall: int) -> Write | None:
        """Stop leading, from this moment on; returns what to write so that another need not wait."""
        was, known = self.leading, self.known
        self._step_down()
        if not was or known is None:
            return None
        spec = self._spec(wall, acquired=known.acquired, transitions=known.transitions)
        return Write({**spec, "holderIdentity": "", "leaseDurationSeconds": 1}, known.version)

    def _step_down(self) -> None:
        self.leading = False
        self._answered_at = None


def fields(value: object) -> dict[str, Any]:
    """Take a value for an object; anything else counts as an empty one."""
    return value if isinstance(value, dict) else {}


def micro_time(wall: int) -> str:
    """Write a time as Kubernetes' MicroTime, which always has six digits after the point."""
    text = timestamp.format_timestamp(wall)
    return text if "." in text else f"{text[:-1]}.000000Z"
