"""What controllers ask a cluster to do, one record for each request, and what it answers."""

from __future__ import annotations

from collections.abc import Callable  # noqa: TC003  msgspec reads the annotations at run time
from typing import Any, Literal

import msgspec

from pumice.api import kinds  # noqa: TC001  msgspec reads the annotations at run time
from pumice.cache import effects

Manifest = dict[str, Any]
Code = Literal["", "conflict", "exists", "notfound", "refused", "unavailable", "unknown"]
Propagation = Literal["", "Background", "Foreground", "Orphan"]


class Delete(msgspec.Struct, frozen=True, kw_only=True):
    """Delete an object, if it still has this uid; `policy` says what becomes of those it owns."""

    kind: kinds.Kind
    namespace: str
    name: str
    uid: str
    policy: Propagation = "Background"


class Confirm(msgspec.Struct, frozen=True, kw_only=True):
    """Go on only if an object, read from the cluster itself, still has this uid and is not being deleted; without a uid, only if there is none."""

    kind: kinds.Kind
    namespace: str
    name: str
    uid: str


class Apply(msgspec.Struct, frozen=True, kw_only=True):
    """Apply fields to an object that is there, in the name of a field manager; what others have said of them is overruled."""

    kind: kinds.Kind
    namespace: str
    name: str
    uid: str
    body: Manifest
    manager: str
    subresource: Literal["", "status"] = ""

    @property
    def document(self) -> Manifest:
        """What is sent: the fields with the identity of their object."""
        home = {"namespace": self.namespace} if self.namespace else {}
        metadata = {"name": self.name, **home, "uid": self.uid, **self.body.get("metadata", {})}
        return {"apiVersion": self.kind.api_version, "kind": self.kind.name, **self.body, "metadata": metadata}


Request = effects.Create | effects.Patch | effects.Read | Apply | Delete | Confirm


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a request: no code is a success; `object` is what the cluster has now, where it said so."""

    code: Code = ""
    message: str = ""
    object: Manifest | None = None


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """One request, what is said once it is done (reason, message), and the reason of the warning if it is refused."""

    request: Request
    said: tuple[str, str] | None = None
    refused: tuple[str, str] | None = None


def _nothing(_: str) -> list[Step]:
    return []


class Reconciled(msgspec.Struct, kw_only=True):
    """What is to be done about one object, in order; `again` is when it has to be looked at without an event.

    After the refusal of a creation the rest of the steps is left out, and what `when_refused` says to its message is done in their place.
    What cannot go on says why in `stuck`: once its steps are done it is tried again later, as after a refusal. What is `patient` has put something off because
    there was much to do, and is looked at as soon as there is little.
    """

    steps: list[Step] = []
    notes: list[tuple[str, str, str]] = []  # type, reason, message: said when all steps are done
    again: int | None = None
    size: int = 0  # how many objects were looked at: what is large rests longer between two looks
    when_refused: Callable[[str], list[Step]] = _nothing
    stuck: str = ""
    patient: bool = False


class Moment(msgspec.Struct, frozen=True):
    """The time, and how fast it passes for workloads: stamps are the wall clock's, spans may pass faster.

    `refusals` is how often in a row the object that is looked at was refused something, or was stuck; `busy` tells that many others have their turn or wait for it.
    `met` gives the instant of a stamp, or when it was met first if it lay ahead of our clock, given the time.
    """

    now: int
    speed: float = 1.0
    refusals: int = 0
    busy: bool = False
    met: Callable[[int, int], int] = min

    def since(self, stamp: int) -> int:
        """Give since when something is so that says so by a stamp: by a clock ahead of ours, since it was met first."""
        return self.met(stamp, self.now)

    def reaches(self, stamp: int, span: int) -> int:
        """Give the instant at which a span after a stamp is over."""
        return self.since(stamp) + self.spans(span)

    def spans(self, span: int) -> int:
        """Give how long a span takes by the wall clock."""
        return int(span / self.speed) + (self.speed != 1.0)


def target(request: Request) -> tuple[kinds.Kind, str, str]:
    """Give the identity of the object that a request is about."""
    if isinstance(request, effects.Create):
        metadata = request.manifest["metadata"]
        return request.kind, metadata.get("namespace", ""), metadata["name"]
    return request.kind, request.namespace, request.name
