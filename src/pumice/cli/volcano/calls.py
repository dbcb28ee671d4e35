"""What commands ask a cluster for: lists in pages, single objects, creations and deletions, with the user's own rights."""

from __future__ import annotations

import asyncio
import contextlib
import difflib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec

from pumice.api.meta import ObjectMeta
from pumice.cache import reflector
from pumice.cli.volcano import failing
from pumice.kube import errors
from pumice.kube.access import connection
from pumice.kube.calls.client import Client
from pumice.kube.calls.retrying import RetryPolicy
from pumice.kube.calls.scoped import Scoped
from pumice.kube.watches import arrivals, lists
from pumice.kube.watches.watching import WatchSpec

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from pumice.api.kinds import Kind

T = TypeVar("T")
Manifest = dict[str, Any]
Wanted = Callable[[ObjectMeta], bool]

PAGE: Final = 500
RETRIES: Final = RetryPolicy(attempts=3)
"""A person waits: an API server that is away is reported after a moment."""


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """How a cluster is reached; what is empty is found as kubectl finds it."""

    kubeconfig: str = ""
    context: str = ""
    master: str = ""
    timeout: float = 30.0

    def client(self) -> Client:
        """Give a client, to be used inside `async with`."""
        where = connection.load(self.kubeconfig, self.context, self.master)
        return Client(where, timeout=self.timeout, retry=RETRIES)


class Chosen(reflector.Listing[arrivals.Arrival]):
    """A list of which only what is wanted is kept."""

    def __init__(self, wanted: Wanted | None) -> None:
        super().__init__({}, arrivals.identify)
        self._wanted = wanted

    def add(self, listed: arrivals.Arrival) -> None:
        """Take an object, or merely count it."""
        if self._wanted is None or self._wanted(listed.object.metadata):
            super().add(listed)
        else:
            key, edition = arrivals.identify(listed)
            self.found[key] = edition


class Cluster:
    """The cluster that a command talks to; an error it meets is a `CommandError` that names the object and the next step."""

    def __init__(self, client: Client) -> None:
        self.client = client

    async def listed(
        self, kind: Kind, namespace: str = "", *, labels: str = "", fields: str = "", wanted: Wanted | None = None
    ) -> list[Manifest]:
        """List objects in pages; of those that are not wanted nothing is kept, however many there are."""
        spec = WatchSpec(kind, label_selector=labels, field_selector=fields, keep_raw=True)
        pages = lists.PagedList(Scoped(self.client, namespace), spec, PAGE)
        try:
            listing, _ = await pages.read(lambda: Chosen(wanted))
        except errors.KubeError as error:
            raise _error(error, kind, "list", namespace=namespace) from error
        return [decoded(kind, each.raw) for each in listing.changed.values()]

    async def get(self, kind: Kind, namespace: str, name: str) -> Manifest:
        """Read an object."""
        try:
            return await self.client.get(kind, namespace, name)
        except errors.KubeError as error:
            raise await self._missed(error, kind, "get", name, namespace) from error

    async def create(self, kind: Kind, manifest: Manifest) -> Manifest:
        """Create an object and return what was stored."""
        metadata = manifest["metadata"]
        named = {"name": metadata.get("name", ""), "namespace": metadata.get("namespace", "")}
        try:
            return await self.client.create(kind, manifest)
        except errors.KubeError as error:
            raise _error(error, kind, "create", **named) from error

    async def patch(self, kind: Kind, namespace: str, name: str, body: Manifest) -> Manifest:
        """Merge a body into an object."""
        try:
            return await self.client.patch(kind, namespace, name, body)
        except errors.KubeError as error:
            raise await self._missed(error, kind, "patch", name, namespace) from error

    async def delete(self, kind: Kind, namespace: str, name: str) -> None:
        """Delete an object; what it owns goes after it."""
        try:
            await self.client.delete(kind, namespace, name, policy="Background")
        except errors.KubeError as error:
            raise await self._missed(error, kind, "delete", name, namespace) from error

    async def _missed(
        self, error: errors.KubeError, kind: Kind, verb: str, name: str, namespace: str
    ) -> failing.CommandError:
        """Say why nothing could be done with an object; if there is none of that name, which one was probably meant."""
        told = failing.told(error, kind, verb, name=name, namespace=namespace)
        if isinstance(error, errors.ApiError) and error.status == 404:
            with contextlib.suppress(errors.KubeError):
                page = arrivals.page(await self.client.list_page(kind, namespace=namespace, query={"limit": PAGE}))
                names = [arrivals.arrival(kind, raw, keep=False).object.metadata.name for raw in page.items]
                if near := difflib.get_close_matches(name, names, n=1):
                    told += f"; did you mean {near[0]!r}?"
        return failing.CommandError(told)


def run(place: Place, work: Callable[[Cluster], Awaitable[T]]) -> T:
    """Do something with a cluster."""

    async def inside() -> T:
        async with place.client() as client:
            return await work(Cluster(client))

    try:
        return asyncio.run(inside())
    except errors.KubeError as error:
        raise failing.CommandError(str(error)) from error


def decoded(kind: Kind, raw: bytes) -> Manifest:
    """Read an object of a list, which does not name its kind there."""
    found: Manifest = msgspec.json.decode(raw, type=Manifest)
    return {"apiVersion": kind.api_version, "kind": kind.name, **found}


def _error(
    error: errors.KubeError, kind: Kind, verb: str, *, name: str = "", namespace: str = ""
) -> failing.CommandError:
    denied = isinstance(error, errors.ApiError) and error.status == 403 and f"cannot {verb} resource" in error.message
    made = failing.ForbiddenError if denied else failing.CommandError
    return made(failing.told(error, kind, verb, name=name, namespace=namespace))
