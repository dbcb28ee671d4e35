"""What the scheduler asks a cluster to do, as plain records, and the protocols that carry it out.

No protocol method blocks or fails: each one hands the record over, and the `Outcome` comes back later through `Cache.settled`.
An outcome whose failure code is ``unknown`` says that the write may or may not have happened; what it would use stays held until the
watch, or a read of the object, has spoken.
"""

from __future__ import annotations

from typing import Any, Literal, Protocol

import msgspec

from pumice.api import kinds  # noqa: TC001  msgspec reads the annotations at run time
from pumice.model.volumes import VolumeDecision  # noqa: TC001  as above

FailureCode = Literal["conflict", "refused", "unavailable", "unknown", "notfound"]


class Bind(msgspec.Struct, frozen=True, kw_only=True):
    """Bind a pod to a node; annotations are only those that plugins added.

    `volumes` comes first: each volume named is claimed (its `claimRef`), each claim without one gets the node as its `selected-node`, and the pod
    is bound once all these claims are bound. If they are not within `volume_patience` (microseconds), or one of these writes fails, the
    bind has failed.
    """

    namespace: str
    name: str
    uid: str
    node: str
    annotations: dict[str, str] = {}
    volumes: tuple[VolumeDecision, ...] = ()
    volume_patience: int = 0


class Evict(msgspec.Struct, frozen=True, kw_only=True):
    """Mark a pod as disrupted and delete it with its own grace period."""

    namespace: str
    name: str
    uid: str
    reason: str
    grace_seconds: int | None = None


class Patch(msgspec.Struct, frozen=True, kw_only=True):
    """Merge a body into an object; `strategic` merges `status.conditions` by type instead of replacing the list."""

    kind: kinds.Kind
    namespace: str
    name: str
    uid: str
    body: dict[str, Any]
    subresource: Literal["", "status"] = ""
    strategic: bool = False


class Note(msgspec.Struct, frozen=True, kw_only=True):
    """A Kubernetes Event about an object."""

    kind: kinds.Kind
    namespace: str
    name: str
    uid: str
    type: Literal["Normal", "Warning"]
    reason: str
    message: str


class Create(msgspec.Struct, frozen=True, kw_only=True):
    """Create an object; one that exists already is a success."""

    kind: kinds.Kind
    manifest: dict[str, Any]


class Read(msgspec.Struct, frozen=True, kw_only=True):
    """Read one object; the outcome carries it, or says that it is gone. `uid` says which one was meant: another may have its name by now."""

    kind: kinds.Kind
    namespace: str
    name: str
    uid: str = ""


Effect = Bind | Evict | Patch | Note | Create | Read


class Failure(msgspec.Struct, frozen=True):
    """Why a write did not happen, or why nobody knows."""

    code: FailureCode
    message: str


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to one effect."""

    effect: Effect
    failure: Failure | None = None
    object: dict[str, Any] | None = None


class Binder(Protocol):
    """Carries out binds."""

    def bind(self, effect: Bind) -> None:
        """Hand a bind over."""


class Evictor(Protocol):
    """Carries out evictions."""

    def evict(self, effect: Evict) -> None:
        """Hand an eviction over."""


class StatusUpdater(Protocol):
    """Carries out patches of exactly our fields."""

    def patch(self, effect: Patch) -> None:
        """Hand a patch over."""


class Recorder(Protocol):
    """Publishes events."""

    def record(self, effect: Note) -> None:
        """Hand an event over; it may be dropped, and never delays a bind."""


class Reader(Protocol):
    """Reads single objects whose state is in doubt."""

    def read(self, effect: Read) -> None:
        """Ask for one object."""


class Creator(Protocol):
    """Creates objects the scheduler cannot work without, such as its queues."""

    def create(self, effect: Create) -> None:
        """Hand a creation over."""


class World(Binder, Evictor, StatusUpdater, Recorder, Reader, Creator, Protocol):
    """A whole cluster, real or simulated."""
