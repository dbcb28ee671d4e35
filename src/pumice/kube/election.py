"""Runs a candidate for a Lease on a real API server."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final, Protocol

from pumice.api import kinds
from pumice.kube import errors, lease

if TYPE_CHECKING:
    import random
    from collections.abc import Callable

JITTER: Final = 0.2
RELEASE_PATIENCE: Final = 2.0
_MISSING, _CONFLICT = 404, 409


class LeaseClient(Protocol):
    """The requests that an election makes."""

    async def get(self, kind: kinds.Kind, namespace: str, name: str) -> dict[str, Any]:
        """Read an object."""

    async def create(self, kind: kinds.Kind, manifest: dict[str, Any]) -> dict[str, Any]:
        """Create an object."""

    async def replace(self, kind: kinds.Kind, manifest: dict[str, Any]) -> dict[str, Any]:
        """Replace the version of an object that the manifest names."""


class LostLeaseError(Exception):
    """Another one leads, or nobody knows who does."""


class Election:
    """Takes part in an election until it is lost; `holds` may be asked from any thread."""

    def __init__(
        self,
        client: LeaseClient,
        candidate: lease.Candidate,
        *,
        namespace: str,
        name: str,
        monotonic: Callable[[], int],
        wall: Callable[[], int],
        rng: random.Random,
        tell: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._client = client
        self._candidate = candidate
        self._namespace = namespace
        self._name = name
        self._monotonic = monotonic
        self._wall = wall
        self._rng = rng
        self._tell = tell
        self._told = ""

    def allowance(self) -> float:
        """Say how many seconds a write may take that is sent at this moment; 0 if none may be sent."""
        return self._candidate.allowance(self._monotonic()) / lease.SECOND

    async def run(self, lead: Callable[[str], None], stand_by: Callable[[], None] = lambda: None) -> None:
        """Take part until the Lease is ours, call `lead` with its version, renew it; raise `LostLeaseError` once it is lost.

        `stand_by` is called after each attempt in vain.
        """
        retry = self._candidate.timing.retry / lease.SECOND
        while True:
            if await self._attempt(self._candidate.timing.renew_deadline):
                break
            stand_by()
            await asyncio.sleep(retry * (1 + JITTER * self._rng.random()))
        self._say("")
        lead(self._candidate.known.version if self._candidate.known is not None else "")
        while True:
            left = self._candidate.deadline() - self._monotonic()
            await asyncio.sleep(max(0.0, min(retry, left / lease.SECOND)))
            left = self._candidate.deadline() - self._monotonic()
            if left <= 0:
                raise LostLeaseError(
                    f"Lease {self._namespace}/{self._name} could not be renewed within "
                    f"{self._candidate.timing.renew_deadline / lease.SECOND:g}s{': ' if self._told else ''}{self._told}"
                )
            await self._attempt(left)
            if not self._candidate.leading:
                known = self._candidate.known
                raise LostLeaseError(
                    f"Lease {self._namespace}/{self._name} is held by {known.holder if known and known.holder else 'nobody'}"
                )

    async def release(self) -> None:
        """Stop writing at once, then let the next one lead without waiting; what goes wrong costs only time."""
        write = self._candidate.release(self._wall())
        if write is None:
            return
        try:
            async with asyncio.timeout(RELEASE_PATIENCE):
                await self._store(write)
        except (errors.KubeError, TimeoutError) as error:
            self._say(f"Lease {self._namespace}/{self._name} could not be released: {error or 'no answer'}")

    async def _attempt(self, patience: int) -> bool:
        """Try once to get the Lease, or to keep it; tells whether it is ours now."""
        try:
            async with asyncio.timeout(patience / lease.SECOND):
                return await self._renew() or await self._acquire()
        except errors.KubeError as error:
            self._say(f"Lease {self._namespace}/{self._name}: {error}{_hint(error)}")
        except TimeoutError:
            self._say(f"Lease {self._namespace}/{self._name}: no answer within {patience / lease.SECOND:.1f}s")
        self._candidate.refused()
        return False

    async def _renew(self) -> bool:
        """Write over what we wrote last, which needs no look as long as nobody else did."""
        write = self._candidate.renew(self._monotonic(), self._wall())
        if write is None:
            return False
        try:
            stored = await self._store(write)
        except errors.ApiError as error:
            if error.status not in (_MISSING, _CONFLICT):
                raise
            self._candidate.refused()
            return False
        self._candidate.stored(lease.Record.read(stored), self._monotonic())
        return True

    async def _acquire(self) -> bool:
        """Look at the Lease, and write it if we may."""
        found = await self._find()
        write = self._candidate.look(found, self._monotonic(), self._wall())
        if write is None:
            holder = found.holder if found is not None else "one who lost it"
            self._say(f"Lease {self._namespace}/{self._name} is held by {holder}")
            return False
        stored = await self._store(write)
        self._candidate.stored(lease.Record.read(stored), self._monotonic())
        return True

    async def _find(self) -> lease.Record | None:
        try:
            return lease.Record.read(await self._client.get(kinds.LEASE, self._namespace, self._name))
        except errors.ApiError as error:
            if error.status == _MISSING:
                return None
            raise

    async def _store(self, write: lease.Write) -> dict[str, Any]:
        metadata = {"namespace": self._namespace, "name": self._name}
        manifest: dict[str, Any] = {
            "apiVersion": kinds.LEASE.api_version,
            "kind": kinds.LEASE.name,
            "metadata": metadata,
            "spec": write.spec,
        }
        if not write.replaces:
            return await self._client.create(kinds.LEASE, manifest)
        metadata["resourceVersion"] = write.replaces
        return await self._client.replace(kinds.LEASE, manifest)

    def _say(self, text: str) -> None:
        """Tell what keeps us waiting, once as long as it stays the same."""
        if text and text != self._told:
            self._tell(text)
        self._told = text


def _hint(error: errors.KubeError) -> str:
    """Say what to do where only the namespace can be what is missing: a Lease that is not there is made."""
    missing = isinstance(error, errors.ApiError) and error.status == _MISSING
    return "; create the namespace, or name another with --leader-elect-resource-namespace" if missing else ""
