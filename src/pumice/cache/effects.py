"""What the scheduler asks a cluster to do, as plain records, and the one method that hands them over.

`World.send` neither blocks nor fails: it takes the effect, and the `Outcome` comes back later through `Cache.settled`. An outcome whose failure code
is ``unknown`` says that the write may or may not have happened; what it would use stays held until the watch, or a read of the object, has spoken.

```
               deciding thread │ where the world performs
  cache ──send(effect)──▶ world ──▶ Binder, Evictor, StatusUpdater, VolumeBinder
                 │             │            │                  │
               sent            │        performed          answered ──▶ Cache.settled
                 └─────────────┴─── EffectObserver ───────────┘
```
"""

from __future__ import annotations

from typing import Any, Final, Literal, Protocol

import msgspec

from pumice.api import kinds
from pumice.model.preparations import Preparation  # noqa: TC001  msgspec reads the annotations at run time
from pumice.model.volumes import VolumeDecision  # noqa: TC001  msgspec reads the annotations at run time

FailureCode = Literal["conflict", "refused", "unavailable", "unknown", "notfound"]


class Bind(msgspec.Struct, frozen=True, kw_only=True):
    """Bind a pod to a node; annotations are only those that plugins added, and the group of a pod that named none.

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


class Prepare(msgspec.Struct, frozen=True, kw_only=True):
    """Write what has to be there before a pod is bound, one after the other; done again it changes nothing.

    If one of them cannot be written, the effect has failed and what was written before it stays, to be taken back.
    """

    namespace: str
    name: str
    uid: str
    node: str
    preparations: tuple[Preparation, ...]


class TakeBack(msgspec.Struct, frozen=True, kw_only=True):
    """Take back what was prepared for a pod that is not bound, the last first, as far as it is there; what others have written since stays."""

    namespace: str
    name: str
    uid: str
    preparations: tuple[Preparation, ...]


class Evict(msgspec.Struct, frozen=True, kw_only=True):
    """Mark a pod, of this generation if it has one, as disrupted and delete it with its own grace period."""

    namespace: str
    name: str
    uid: str
    reason: str
    grace_seconds: int | None = None
    generation: int = 0


class Patch(msgspec.Struct, frozen=True, kw_only=True):
    """Merge a body into an object; `strategic` merges `status.conditions` by type instead of replacing the list. For one that `reports` nobody waits."""

    kind: kinds.Kind
    namespace: str
    name: str
    uid: str
    body: dict[str, Any]
    subresource: Literal["", "status"] = ""
    strategic: bool = False
    reports: bool = False


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


def pod_read(sent: Bind | Evict) -> Read:
    """Return what reads the pod that something was sent about."""
    return Read(kind=kinds.POD, namespace=sent.namespace, name=sent.name, uid=sent.uid)


Answerable = Bind | Prepare | TakeBack | Evict | Patch | Create | Read
"""Effects that are answered, each by one outcome."""

Effect = Answerable | Note
"""Everything that can be sent; an event has no answer, may be dropped, and never delays a bind."""

Verb = Literal["bind", "prepare", "take back", "evict", "patch", "queue", "create", "read"]
VERBS: Final[dict[type, Verb]] = {
    Bind: "bind",
    Prepare: "prepare",
    TakeBack: "take back",
    Evict: "evict",
    Patch: "patch",
    Create: "create",
    Read: "read",
}


def verb(effect: Answerable) -> Verb:
    """Name what an effect does; the statuses of queues, which have a pace of their own, are counted apart from other patches."""
    if isinstance(effect, Patch) and effect.kind.name == kinds.QUEUE.name:
        return "queue"
    return VERBS[type(effect)]


class Failure(msgspec.Struct, frozen=True):
    """Why a write did not happen, or why nobody knows."""

    code: FailureCode
    message: str


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to one effect."""

    effect: Answerable
    failure: Failure | None = None
    object: dict[str, Any] | None = None


class World(Protocol):
    """A whole cluster, real or simulated."""

    def send(self, effect: Effect, /) -> None:
        """Take an effect over; what becomes of it is told later."""


Work = Literal["volumes", "request"]
"""What performing consists of: bringing the volumes of a bind in place, then the request itself."""


class EffectObserver:
    """Hears from a world of everything that passes through it; whoever measures, counts or logs overrides what it has a use for.

    `sent` is called by whoever sends, the other two where the world performs. None of them may fail or block.
    """

    def sent(self, effect: Effect, /) -> None:
        """Take note of an effect that is handed over."""

    def performed(self, effect: Answerable, work: Work, seconds: float, *, failed: bool) -> None:
        """Take note of work that has ended; the last of an effect is its request, or the volumes if they failed."""

    def answered(self, outcome: Outcome, /) -> None:
        """Take note of an answer, before the cache gets it."""


NOBODY: Final = EffectObserver()
