"""What writing to a cluster is made of: the calls it needs and the parts that may be replaced.

A part answers an effect with its `Outcome`, or raises a `KubeError`, which becomes the failure of that effect. It writes through the client that it is given, which is the
fence: one that wrote past it would write without the lease. Everything here runs on the
event loop of the I/O thread.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from pumice.cache import effects
from pumice.kube import errors
from pumice.model.volumes import VolumeDecision  # noqa: TC001  msgspec reads the annotations at run time

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pumice.api import kinds

Manifest = dict[str, Any]

_CONFLICT, _INVALID = 409, 422


class Api(Protocol):
    """The calls of the client that writing needs; all raise `KubeError`."""

    async def request(self, method: str, path: str) -> bytes:
        """Send a request, give the body of the answer."""

    async def get(self, kind: kinds.Kind, namespace: str, name: str) -> Manifest:
        """Read one object."""

    async def create(self, kind: kinds.Kind, manifest: Mapping[str, Any]) -> Manifest:
        """Create an object, give it as stored."""

    async def patch(
        self,
        kind: kinds.Kind,
        namespace: str,
        name: str,
        body: Mapping[str, Any],
        *,
        subresource: str = "",
        strategic: bool = False,
    ) -> Manifest:
        """Merge a body into an object, give it as stored."""

    async def delete(
        self, kind: kinds.Kind, namespace: str, name: str, *, uid: str = "", grace_seconds: int | None = None
    ) -> None:
        """Delete an object, if it has this uid."""

    async def bind(self, namespace: str, name: str, uid: str, node: str, annotations: Mapping[str, str]) -> None:
        """Post the binding of a pod."""


class Binder(Protocol):
    """Binds pods whose volumes are in place."""

    async def bind(self, effect: effects.Bind) -> effects.Outcome:
        """Bind a pod."""


class Preparer(Protocol):
    """Writes what has to be there before pods are bound."""

    async def prepare(self, effect: effects.Prepare) -> effects.Outcome:
        """Write it, as far as it is not there."""

    async def take_back(self, effect: effects.TakeBack) -> effects.Outcome:
        """Take it back, as far as it is there."""


class Evictor(Protocol):
    """Evicts pods."""

    async def evict(self, effect: effects.Evict) -> effects.Outcome:
        """Mark a pod as disrupted and delete it."""


class StatusUpdater(Protocol):
    """Writes exactly our fields."""

    async def patch(self, effect: effects.Patch) -> effects.Outcome:
        """Merge a body into an object."""


class BegunClaim(msgspec.Struct, frozen=True, kw_only=True):
    """What was begun for one claim: a volume was claimed, or a node was selected."""

    claim: VolumeDecision
    node: str


class VolumeBinder(Protocol):
    """Brings a pod's claims and volumes together before the pod is bound."""

    async def prepare(self, effect: effects.Bind) -> list[BegunClaim]:
        """Carry out the decisions of a bind and wait until its claims are bound; if that fails, undo what was begun and raise."""

    async def roll_back(self, begun: list[BegunClaim]) -> None:
        """Undo what was begun, the last first; a claim that is bound stays bound."""


async def patch_only(
    api: Api,
    kind: kinds.Kind,
    uid: str,
    where: tuple[str, str],
    body: Mapping[str, Any],
    *,
    subresource: str = "",
    strategic: bool = False,
) -> Manifest:
    """Patch the object of a name only if it has this uid; another one is a conflict.

    To the server a uid in a patch is a wish to change it, which is an invalid one unless it is the same.
    """
    if uid:
        body = {**body, "metadata": {**body.get("metadata", {}), "uid": uid}}
    try:
        return await api.patch(kind, *where, body, subresource=subresource, strategic=strategic)
    except errors.ApiError as error:
        if error.status != _INVALID or not uid or "metadata.uid:" not in error.message:
            raise
        raise errors.ApiError(_CONFLICT, "Conflict", error.message) from None


def failure_of(error: Exception) -> effects.Failure:
    """Say an exception as the failure of an effect; what is no answer of the client leaves open what happened."""
    if isinstance(error, errors.KubeError):
        return error.failure
    return effects.Failure("unknown", f"{type(error).__name__}: {error}")
