"""Every object of the cluster, kept as small JSON for whoever studies it, and handed on to whoever follows rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from pumice.api import decoding, kinds
from pumice.web import past
from pumice.web.past import Past

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pumice.api.meta import KubeObject
    from pumice.cache.reflector import EventType
    from pumice.study.following.tracking import Tracker
    from pumice.web.asking import Change, Identity

_EACH: Final = 200  # bytes that remembering an object costs beside its JSON


class Objects:
    """Takes every change. What is kept of an object is what a scheduler reads of it: no environment, no secrets."""

    def __init__(self, tracker: Tracker, bounds: past.Bounds = past.HOUR) -> None:
        self._tracker = tracker
        self._kept: dict[Identity, bytes] = {}
        self._before: dict[Identity, bytes | None] = {}  # what changed since the last moment, as it was then
        self._past: Past[dict[Identity, bytes | None]] = Past(bounds.memory, bounds.objects)
        self._began = 0
        self._counts: dict[tuple[str, str], dict[str, int]] = {}
        self.namespaces: set[str] = set()
        """All that were ever seen: texts may still name what is gone."""
        self.changes = 0
        self.heard: Callable[[Identity, Change], None] = lambda _identity, _change: None

    def feed(
        self, kind: kinds.Kind, event_type: EventType, found: KubeObject | decoding.Malformed, raw: bytes = b"", /
    ) -> None:
        """Take a change; an object that cannot be read counts as absent."""
        self._tracker.feed(kind, event_type, found, raw)
        if kind is kinds.EVENT:
            return
        self.changes += 1
        identity = (kind.api_version, kind.name, found.metadata.namespace, found.metadata.name)
        if event_type == "DELETED" or isinstance(found, decoding.Malformed):
            kept = self._kept.pop(identity, b"")
            if kept:
                self._before.setdefault(identity, kept)
                self._count(identity, -1)
                self.heard(identity, (*identity[:2], "DELETED", kept))
            return
        self._before.setdefault(identity, self._kept.get(identity))
        if identity not in self._kept:
            self._count(identity, 1)
        kept = self._kept[identity] = raw if kind is kinds.JOB and raw else msgspec.json.encode(found)
        self.heard(identity, (*identity[:2], event_type, kept))

    @property
    def first(self) -> int:
        """The earliest moment at which all objects are known."""
        return max(self._began, self._past.first)

    def mark(self, now: int) -> None:
        """Let what came since the last moment be of this one."""
        before, self._before = self._before, {}
        if self._began and before:
            self._past.remember(now, before, sum(_EACH + len(old or b"") for old in before.values()))
        self._began = self._began or now

    def back_to(self, moment: int) -> Iterator[Change]:
        """Walk over the changes that lead from what is there now to what was there at a moment."""
        then = dict(self._before)
        for before in self._past.since(moment):
            then.update(before)
        for identity, old in then.items():
            kept = self._kept.get(identity)
            if old is not None:
                yield (*identity[:2], "ADDED" if kept is None else "MODIFIED", old)
            elif kept is not None:
                yield (*identity[:2], "DELETED", kept)

    def _count(self, identity: Identity, sign: int) -> None:
        namespace = identity[2]
        if not namespace:
            return
        counts = self._counts.get(identity[:2])
        if counts is None:
            counts = self._counts[identity[:2]] = {}
        left = counts.get(namespace, 0) + sign
        if left:
            counts[namespace] = left
        else:
            del counts[namespace]
        if left == 1:
            self.namespaces.add(namespace)

    def counted(self, kind: kinds.Kind) -> dict[str, int]:
        """Give how many objects of a kind there are in each namespace that has any."""
        return self._counts.get((kind.api_version, kind.name), {})

    def identities(self) -> list[Identity]:
        """Name everything there is."""
        return list(self._kept)

    def forget(self, identity: Identity) -> None:
        """Take an object away that is known to be gone."""
        kind = kinds.find(*identity[:2])
        found = decoding.decode_json(kind, self._kept[identity]) if kind is not None else None
        if kind is not None and found is not None:
            self.feed(kind, "DELETED", found)

    def whole(self) -> Iterator[Change]:
        """Walk over everything there is."""
        for identity, kept in list(self._kept.items()):
            yield (*identity[:2], "ADDED", kept)
