"""How objects are read: one, all that match, or page by page as they were when the first page was given."""

from __future__ import annotations

import base64
import binascii
from bisect import bisect_right
from collections import OrderedDict
from typing import TYPE_CHECKING, Any, Final

import msgspec

from pumice.apiserver import requests, selectors, statuses
from pumice.sim import errors
from pumice.sim.identity import Key

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pumice.api import kinds
    from pumice.apiserver.requests import Target
    from pumice.apiserver.resources import Resource
    from pumice.apiserver.selectors import Matches
    from pumice.sim.store import ObjectStore

Stored = "Mapping[str, Any]"
Place = tuple[str, str]
_SNAPSHOTS: Final = 8
_FUTURE: Final = "Timeout: Too large resource version: {}, current: {}"


class Page(msgspec.Struct, frozen=True, kw_only=True):
    """Some objects, the version they are of, and how to go on."""

    items: list[Any]
    version: str
    following: str = ""
    remaining: int | None = None


class Token(msgspec.Struct, frozen=True, rename={"version": "rv", "format": "v"}):
    """Where the next page starts, as clients carry it around without looking at it."""

    version: int
    start: Place
    format: str = "meta.k8s.io/v1"


_TOKENS: Final = msgspec.json.Decoder(Token)


class Snapshot(msgspec.Struct, frozen=True):
    """All objects of a kind in the order of their names, as of a version."""

    places: list[Place]
    items: list[Any]


class Reading:
    """Reads the store; what it gives are the stored objects themselves."""

    def __init__(self, store: ObjectStore) -> None:
        self._store = store
        self._snapshots: OrderedDict[tuple[kinds.Kind, int], Snapshot] = OrderedDict()
        self._changed: dict[kinds.Kind, int] = {}
        store.observe(
            lambda key, _, manifest: self._changed.update({key.kind: int(manifest["metadata"]["resourceVersion"])})
        )

    def get(self, target: Target) -> Mapping[str, Any]:
        """Give one object."""
        resource = target.resource
        found = self._store.find(Key(resource.kind, target.namespace, target.name))
        if found is None:
            raise statuses.not_found(resource.plural, resource.group, target.name)
        return found

    def page(self, target: Target, query: Mapping[str, str]) -> Page:
        """Give the objects that a query selects, or a page of them."""
        matches, resource = selection(target, query), target.resource
        now = int(self._store.resource_version)
        limit = requests.number(query, "limit", signed=False) or 0
        token = _token(query.get("continue", ""))
        self._check_version(query, now, token)
        version = token.version if token is not None else now
        name = selectors.named(query.get("fieldSelector", ""))
        if name and target.namespace and token is None:
            found = self._store.find(Key(resource.kind, target.namespace, name))
            return Page(items=[found] if found is not None and matches(found) else [], version=str(now))
        snapshot = self._snapshot(resource.kind, version)
        start = bisect_right(snapshot.places, token.start) if token is not None else 0
        return _page(snapshot, start, limit, target.namespace, matches, version)

    def selected(self, target: Target, query: Mapping[str, str]) -> list[Mapping[str, Any]]:
        """Give all objects that a query selects, as they are now."""
        return self.page(target, {**query, "limit": "", "continue": ""}).items

    def _check_version(self, query: Mapping[str, str], now: int, token: Token | None) -> None:
        stated, match = query.get("resourceVersion", ""), query.get("resourceVersionMatch", "")
        if token is not None:
            if stated not in ("", "0"):
                raise statuses.bad_request("specifying resource version is not allowed when using continue")
            return
        version = parse_version(stated)
        if version > now:
            raise too_new(version, now)
        if match == "Exact" and version not in (0, now):
            raise statuses.expired(f"The resourceVersion for the provided list is too old: {version}, current: {now}")

    def _snapshot(self, kind: kinds.Kind, version: int) -> Snapshot:
        """Give a kind as of a version: sorted once, and rolled back by the events since."""
        latest = self._changed.get(kind, 0)
        now = int(self._store.resource_version)
        version = min(version, now)
        key = (kind, min(latest, version))
        found = self._snapshots.get(key)
        if found is None:
            found = self._snapshots[key] = self._rolled_back(kind, version)
            while len(self._snapshots) > _SNAPSHOTS:
                self._snapshots.popitem(last=False)
        self._snapshots.move_to_end(key)
        return found

    def _rolled_back(self, kind: kinds.Kind, version: int) -> Snapshot:
        state = {place(each): each for each in self._store.scan(kind)}
        if version < self._changed.get(kind, 0):
            try:
                events = self._store.since(kind, version)
            except errors.GoneError:
                raise statuses.expired("The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter.") from None  # fmt: skip
            for event in reversed(events):
                if event.previous is None:
                    state.pop(place(event.object), None)
                else:
                    state[place(event.object)] = event.previous
        places = sorted(state)
        return Snapshot(places, [state[each] for each in places])


def place(manifest: Mapping[str, Any]) -> Place:
    """Give where an object stands in a list."""
    metadata = manifest["metadata"]
    return metadata.get("namespace", ""), metadata["name"]


def selection(target: Target, query: Mapping[str, str]) -> Matches:
    """Give what a query asks of an object, the namespace aside."""
    labels, fields = query.get("labelSelector", ""), query.get("fieldSelector", "")
    by_label = selectors.labels(labels) if labels.strip() else None
    by_field = selectors.fields(fields, target.resource) if fields.strip() else None
    if by_label is None:
        return by_field or selectors.everything
    if by_field is None:
        return by_label
    return lambda manifest: by_label(manifest) and by_field(manifest)


def parse_version(text: str) -> int:
    """Read a resourceVersion; none is 0."""
    if text and not (text.isdecimal() and len(text) < 20):
        raise statuses.bad_request(
            f'resourceVersion: Invalid value: "{text[:50]}": strconv.ParseUint: parsing "{text[:50]}": invalid syntax'
        )
    return int(text or 0)


def too_new(version: int, now: int) -> statuses.Problem:
    """Refuse a version that nobody has written yet; the client may try again."""
    details = {
        "causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}],
        "retryAfterSeconds": 1,
    }
    return statuses.Problem(504, _FUTURE.format(version, now), details=details)


def _page(  # noqa: PLR0917  what a page is made of
    snapshot: Snapshot, start: int, limit: int, namespace: str, matches: Matches, version: int
) -> Page:
    items: list[Any] = []
    places, stored = snapshot.places, snapshot.items
    end = len(places)
    if namespace:
        start = max(start, bisect_right(places, (namespace, "")))
        end = bisect_right(places, (namespace, "\U0010ffff"))
    if not limit and matches is selectors.everything:
        return Page(items=stored[start:end], version=str(version))
    for at in range(start, end):
        if matches(stored[at]):
            items.append(stored[at])
            if limit and len(items) == limit:
                if at + 1 == end:
                    break
                left = end - at - 1 if matches is selectors.everything else None
                return Page(
                    items=items, version=str(version), following=_encoded(Token(version, places[at])), remaining=left
                )
    return Page(items=items, version=str(version))


def _token(text: str) -> Token | None:
    if not text:
        return None
    try:
        return _TOKENS.decode(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
    except (msgspec.MsgspecError, binascii.Error, ValueError):
        raise statuses.bad_request("continue key is not valid: it is no token that this server has given") from None


def _encoded(token: Token) -> str:
    return base64.urlsafe_b64encode(msgspec.json.encode(token)).decode().rstrip("=")


def of_list(resource: Resource, page: Page, items: list[Any]) -> dict[str, Any]:
    """Give a page as the list object that clients expect; `items` are as they are to be told."""
    metadata: dict[str, Any] = {"resourceVersion": page.version}
    if page.following:
        metadata["continue"] = page.following
        if page.remaining is not None:
            metadata["remainingItemCount"] = page.remaining
    return {"kind": resource.list_kind, "apiVersion": resource.api_version, "metadata": metadata, "items": items}
