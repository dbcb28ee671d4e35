"""What containers have said: which lines of it a request wants, at once or as they are said."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pumice.api import duration, kinds, names, timestamp
from pumice.apiserver import requests, statuses
from pumice.sim import deletion, structure
from pumice.sim.identity import Key

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping

    from pumice.apiserver.requests import Target
    from pumice.sim.store import ObjectStore

EVERY: Final = 0.2  # seconds between two looks at a container that is followed

Line = tuple[int, str]
"""When something was said, and what."""


class _Wanted(NamedTuple):
    """A container, and which of its lines are asked for."""

    key: Key
    uid: str
    container: str
    previous: bool
    since: int
    timestamps: bool


class Logs:
    """Gives what containers have said; the kubelets provide `said`."""

    def __init__(self, store: ObjectStore, now: Callable[[], int]) -> None:
        self._store = store
        self._now = now
        self.said: Callable[[Mapping[str, Any], str, bool], list[Line]] | None = None

    def read(self, target: Target, query: Mapping[str, str]) -> str:
        """Give what has been said so far."""
        wanted = self._wanted(target, query)
        text = _written(_tail(self._lines(wanted), query), wanted)
        return text[: requests.number(query, "limitBytes", signed=False)]

    async def follow(self, target: Target, query: Mapping[str, str]) -> AsyncIterator[str]:
        """Give what has been said, and what is said until the container ends; an empty text says that nothing is new."""
        wanted = self._wanted(target, query)
        lines = self._lines(wanted)
        told = len(lines)
        yield _written(_tail(lines, query), wanted)
        while self._runs(wanted):
            await asyncio.sleep(EVERY)
            lines = self._lines(wanted)
            yield _written(lines[told:], wanted)
            told = len(lines)

    def _wanted(self, target: Target, query: Mapping[str, str]) -> _Wanted:
        key = Key(kinds.POD, target.namespace, target.name)
        pod = self._store.find(key)
        if pod is None:
            raise statuses.not_found("pods", "", target.name)
        container = _container(pod, query.get("container") or "")
        if not deletion.is_bound(pod):
            raise statuses.bad_request(f"pod {target.name} does not have a host assigned")
        previous = requests.is_true(query.get("previous"))
        if previous and not _status(pod, container).get("restartCount"):
            why = f'previous terminated container "{container}" in pod "{target.name}" not found'
            raise statuses.bad_request(why)
        shown = requests.is_true(query.get("timestamps"))
        return _Wanted(key, pod["metadata"]["uid"], container, previous, self._since(query), shown)

    def _since(self, query: Mapping[str, str]) -> int:
        """Read from when on lines are wanted."""
        seconds = requests.number(query, "sinceSeconds", signed=False)
        if seconds is not None:
            return self._now() - seconds * duration.SECOND
        try:
            return timestamp.parse(query["sinceTime"]) if query.get("sinceTime") else 0
        except timestamp.TimestampError as error:
            raise statuses.bad_request(f"sinceTime: {error}") from None

    def _lines(self, wanted: _Wanted) -> list[Line]:
        pod = self._store.find(wanted.key)
        if pod is None or pod["metadata"]["uid"] != wanted.uid or self.said is None:
            return []
        return [line for line in self.said(pod, wanted.container, wanted.previous) if line[0] >= wanted.since]

    def _runs(self, wanted: _Wanted) -> bool:
        """Tell whether a container may have more to say."""
        pod = self._store.find(wanted.key)
        if wanted.previous or pod is None or pod["metadata"]["uid"] != wanted.uid:
            return False
        starts = structure.mapping(pod, "status").get("phase") in (None, names.PHASE_PENDING)
        return starts or "running" in structure.mapping(_status(pod, wanted.container), "state")


def _container(pod: Mapping[str, Any], stated: str) -> str:
    """Find the container that is meant."""
    spec, name = structure.mapping(pod, "spec"), pod["metadata"]["name"]
    containers = [each["name"] for each in [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]]
    if not stated and len(spec.get("containers") or ()) > 1:
        listed = " ".join(containers)
        raise statuses.bad_request(f"a container name must be specified for pod {name}, choose one of: [{listed}]")
    if stated and stated not in containers:
        raise statuses.bad_request(f"container {stated} is not valid for pod {name}")
    found: str = stated or containers[0]
    return found


def _status(pod: Mapping[str, Any], container: str) -> Mapping[str, Any]:
    found = structure.mapping(pod, "status").get("containerStatuses") or ()
    return next((each for each in found if each.get("name") == container), {})


def _tail(lines: list[Line], query: Mapping[str, str]) -> list[Line]:
    tail = requests.number(query, "tailLines", signed=False)
    return lines if tail is None else lines[len(lines) - tail :] if tail < len(lines) else lines


def _written(lines: list[Line], wanted: _Wanted) -> str:
    if wanted.timestamps:
        return "".join(f"{timestamp.format_timestamp(at)} {text}\n" for at, text in lines)
    return "".join(f"{text}\n" for _, text in lines)
