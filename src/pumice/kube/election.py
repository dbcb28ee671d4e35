"""Runs a candidate for a Lease on a real API server."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol

import msgspec

from pumice.api import kinds
from pumice.kube import errors, lease

if TYPE_CHECKING:
    import random
    from collections.abc import Callable

    from pumice.kube.rivals import Lookout

JITTER: Final = 0.2
RELEASE_PATIENCE: Final = 2.0
REMIND: Final = 60 * lease.SECOND  # how often an error that lasts is told of again

Situation = Literal["held", "untaken", "unrenewed", "renewed", "unreleased"]
"""What is told: another one holds the Lease, an error keeps us from taking or from keeping it, that error is gone, or one came when it was given back."""
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
        lookout: Lookout | None = None,
        tell: Callable[[Situation, str], None] = lambda _situation, _text: None,
    ) -> None:
        self._client = client
        self._candidate = candidate
        self._namespace = namespace
        self._name = name
        self._monotonic = monotonic
        self._wall = wall
        self._rng = rng
        self._lookout = lookout
        self._looked = lookout is None
        self._tell = tell
        self._told: tuple[Situation, str] | None = None
        self._told_at = 0
        self.leading = False
        self.holder = ""  # the other one, as far as is known
        self.trouble = ""  # the error of the latest attempt

    def allowance(self) -> float:
        """Say how many seconds a write may take that is sent at this moment; 0 if none may be sent."""
        return self._candidate.allowance(self._monotonic()) / lease.SECOND if self.leading else 0.0

    async def run(self, lead: Callable[[str], None], stand_by: Callable[[], None] = lambda: None) -> None:
        """Take part until the Lease is ours, call `lead` with its version, renew it; raise `LostLeaseError` once it is lost.

        `stand_by` is called after each attempt in vain. Raises `rivals.ServedError` if somebody with another Lease serves the same pods.
        """
        retry = self._candidate.timing.retry / lease.SECOND
        while True:
            if await self._take():
                break
            stand_by()
            await asyncio.sleep(retry * (1 + JITTER * self._rng.random()))
        self.leading, self.holder = True, ""
        lead(self._candidate.known.version if self._candidate.known is not None else "")
        while True:
            left = self._candidate.deadline() - self._monotonic()
            await asyncio.sleep(max(0.0, min(retry, left / lease.SECOND)))
            left = self._candidate.deadline() - self._monotonic()
            if left <= 0:
                raise LostLeaseError(
                    f"Lease {self._namespace}/{self._name} could not be renewed within "
                    f"{self._candidate.timing.renew_deadline / lease.SECOND:g}s{': ' if self.trouble else ''}{self.trouble}"
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
        self.leading = False
        if write is None:
            return
        try:
            async with asyncio.timeout(RELEASE_PATIENCE):
                await self._give_back(write)
        except (errors.KubeError, TimeoutError) as error:
            self._say(
                "unreleased", f"Lease {self._namespace}/{self._name} could not be released: {error or 'no answer'}"
            )

    async def _give_back(self, write: lease.Write) -> None:
        """Store a release; over the last renewal, if that was given up and had arrived all the same."""
        try:
            await self._store(write)
        except errors.ApiError as error:
            if error.status != _CONFLICT:
                raise
            manifest = await self._find()
            found = None if manifest is None else lease.Record.read(manifest)
            if found is not None and found.holder == self._candidate.identity:
                await self._store(msgspec.structs.replace(write, replaces=found.version))

    async def _take(self) -> bool:
        """Try once to get the Lease with nobody else serving our pods: asked first, and again when others can see that it is ours."""
        self._looked = self._looked or await self._alone()
        ours = self._looked and await self._attempt(self._candidate.timing.renew_deadline)
        return ours and await self._alone() and self._candidate.holds(self._monotonic())

    async def _alone(self) -> bool:
        """Tell whether nobody with another Lease may serve our pods."""
        if self._lookout is None:
            return True
        patience = self._candidate.timing.renew_deadline / lease.SECOND
        try:
            async with asyncio.timeout(patience):
                rival = await self._lookout.look()
        except errors.KubeError as error:
            self._fail(f"the Leases of other schedulers: {error}")
            return False
        except TimeoutError:
            self._fail(f"the Leases of other schedulers: no answer within {patience:.1f}s")
            return False
        self._recover()
        if rival:
            self.holder = rival
            self._say("held", rival)
        return not rival

    async def _attempt(self, patience: int) -> bool:
        """Try once to get the Lease, or to keep it; tells whether it is ours now."""
        try:
            async with asyncio.timeout(patience / lease.SECOND):
                ours = await self._renew() or await self._acquire()
                self._recover()
                return ours
        except errors.KubeError as error:
            if not self.leading and isinstance(error, errors.ApiError) and error.status == _CONFLICT:
                self._recover()
                self._say("held", f"Lease {self._namespace}/{self._name} was written by another one first")
            else:
                self._fail(f"Lease {self._namespace}/{self._name}: {error}{_hint(error)}")
        except TimeoutError:
            self._fail(f"Lease {self._namespace}/{self._name}: no answer within {patience / lease.SECOND:.1f}s")
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
        manifest = await self._find()
        found = None if manifest is None else lease.Record.read(manifest)
        write = self._candidate.look(found, self._monotonic(), self._wall())
        if write is None:
            self.holder = found.holder if found is not None else "one who lost it"
            if manifest is not None and self._lookout is not None:
                self.holder += self._lookout.misplaced(manifest)
            if not self.leading:
                self._say("held", f"Lease {self._namespace}/{self._name} is held by {self.holder}")
            return False
        stored = await self._store(write)
        self._candidate.stored(lease.Record.read(stored), self._monotonic())
        return True

    async def _find(self) -> dict[str, Any] | None:
        try:
            return await self._client.get(kinds.LEASE, self._namespace, self._name)
        except errors.ApiError as error:
            if error.status == _MISSING:
                return None
            raise

    async def _store(self, write: lease.Write) -> dict[str, Any]:
        metadata: dict[str, Any] = {"namespace": self._namespace, "name": self._name}
        if self._lookout is not None:
            metadata |= self._lookout.marks
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

    def _fail(self, text: str) -> None:
        self.trouble = text
        self._say("unrenewed" if self.leading else "untaken", text)

    def _recover(self) -> None:
        """Take note of an answer: what was wrong before it is over."""
        if self.trouble and self.leading and self._candidate.leading:
            self._say("renewed", f"{self._namespace}/{self._name}")
        self.trouble = ""

    def _say(self, situation: Situation, text: str) -> None:
        """Tell what the matter is, once as long as it stays the same; of errors somebody is reminded."""
        now = self._monotonic()
        lasts = (situation, text) == self._told
        if not lasts or (situation != "held" and now - self._told_at >= REMIND):
            self._told, self._told_at = (situation, text), now
            self._tell(situation, text)


def _hint(error: errors.KubeError) -> str:
    """Say what to do where only the namespace can be what is missing: a Lease that is not there is made."""
    missing = isinstance(error, errors.ApiError) and error.status == _MISSING
    return "; create the namespace, or name another with --leader-elect-resource-namespace" if missing else ""
