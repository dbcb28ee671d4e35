"""Signs of life of the API server: how old the latest is, and how each watch is doing.

A sign is anything the server itself has said: a line of a watch, a list, an answer about the Lease, a refusal too. With an election there is one every few
seconds; without, a quiet cluster speaks about once a minute, when it tells watches of new versions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Protocol

from pumice.kube import errors

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pumice.api.kinds import Kind
    from pumice.kube.election import LeaseClient
    from pumice.kube.watches.informers import WatchReport
    from pumice.server.health.checks import Line

QUIET: Final = 10.0  # seconds without a sign that are nothing to speak of while the Lease is asked for
QUIET_ALONE: Final = 90.0  # the same where only watches listen
_FAULT: Final = 500


class Reporting(Protocol):
    """The watches."""

    def report(self) -> Sequence[WatchReport]:
        """Say how each watch is doing."""


class ApiSilence:
    """Remembers when the API server was last heard. Never heard counts from the start."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._heard = now()
        self._quiet = QUIET_ALONE
        self._watches: Reporting | None = None

    def watch(self, watches: Reporting) -> None:
        """Name the watches."""
        self._watches = watches

    def listening(self, client: LeaseClient) -> LeaseClient:
        """Return a client of the Lease whose answers count; from now on there should be one every few seconds."""
        self._quiet = QUIET
        return _Listening(client, self.heard)

    def heard(self) -> None:
        """Take note of a sign."""
        self._heard = self._now()

    def silence(self) -> float:
        """Return how many seconds ago the latest sign came."""
        return self._silence(self._reports())

    def lines(self) -> Iterator[Line]:
        """Say how things are, the API server first; none of it makes the process unready, since another one would be no better off."""
        reports = self._reports()
        yield "api-server", *self._server(reports)
        for report in reports:
            yield f"watch {report.watch}", *_watch(report)

    def _reports(self) -> Sequence[WatchReport]:
        return self._watches.report() if self._watches is not None else ()

    def _silence(self, reports: Sequence[WatchReport]) -> float:
        ages = [report.last_heard_age for report in reports if report.last_heard_age is not None]
        # Whoever is refused asks again within seconds.
        ages += [0.0 for report in reports if report.state == "forbidden"]
        return max(0.0, min([self._now() - self._heard, *ages]))

    def _server(self, reports: Sequence[WatchReport]) -> tuple[bool, str]:
        """Judge by the silence; where no watch is up, nobody needs to wait for it to last."""
        silence = self._silence(reports)
        served, lost = followed(reports), down(reports)
        refused = any(report.state == "forbidden" for report in lost)  # which takes a server
        if silence <= self._quiet and (refused or not lost or len(lost) < len(served)):
            return True, f"last sign of life {silence:.0f}s ago"
        return False, f"no sign of life for {silence:.0f}s; {len(lost)} of {len(served)} watches are down"


def followed(reports: Sequence[WatchReport]) -> list[WatchReport]:
    """Return the watches of kinds that the API server serves."""
    return [report for report in reports if report.state != "absent"]


def down(reports: Sequence[WatchReport]) -> list[WatchReport]:
    """Return those that an error keeps from hearing anything."""
    return [report for report in followed(reports) if report.error and report.state != "watching"]


def reason(report: WatchReport) -> str:
    """Return the error of a watch without its name, for lines that begin with it."""
    return report.error.removeprefix(f"{report.watch}: ")


def _watch(report: WatchReport) -> tuple[bool, str]:
    age = "never heard" if report.last_heard_age is None else f"last heard {report.last_heard_age:.0f}s ago"
    if report.state == "absent":
        return True, "the API server does not serve this kind"
    if report.state == "watching" and not report.error:
        return True, f"{report.objects} objects, {age}"
    state = "opened again, nothing heard yet" if report.state == "watching" else report.state
    return False, f"{state}, {report.objects} objects, {age}{'; ' + reason(report) if report.error else ''}"


class _Listening:
    """Hands requests on, and takes note of answers."""

    def __init__(self, client: LeaseClient, heard: Callable[[], None]) -> None:
        self._client = client
        self._heard = heard

    async def get(self, kind: Kind, namespace: str, name: str) -> dict[str, Any]:
        """Read an object."""
        with _Ear(self._heard):
            return await self._client.get(kind, namespace, name)

    async def create(self, kind: Kind, manifest: dict[str, Any]) -> dict[str, Any]:
        """Create an object."""
        with _Ear(self._heard):
            return await self._client.create(kind, manifest)

    async def replace(self, kind: Kind, manifest: dict[str, Any]) -> dict[str, Any]:
        """Replace the version of an object that the manifest names."""
        with _Ear(self._heard):
            return await self._client.replace(kind, manifest)


class _Ear:
    """Hears an answer, also a refusal; an error of the server may be that of a proxy before one that is gone."""

    def __init__(self, heard: Callable[[], None]) -> None:
        self._heard = heard

    def __enter__(self) -> None:
        pass

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if error is None or (isinstance(error, errors.ApiError) and error.status < _FAULT):
            self._heard()
