"""The board as somebody sees it: rows, facts and evictions that they may list, and no name of anything else."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

import msgspec

from pumice.study.following.scene import EvictionRow, JobRow
from pumice.web import hiding
from pumice.web.board import Pieces

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

    from pumice.web.board import Batch, Board, Place
    from pumice.web.sight import Sight

MOST_KEPT: Final = 64
_EVICTIONS: Final = msgspec.json.Decoder(EvictionRow)
_JOBS: Final = msgspec.json.Decoder(JobRow)
_WITHOUT_REASON: Final = b'"reason":""'
_FOR_ALL: Final = ("live",)
_QUEUE_FACTS: Final = ("queues", "sharesProblem")
_POLICY_FACTS: Final = ("notes", "scheduler", "sharesProblem")
"""What quotes the policy: names of plugins and files, and what is wrong with them."""
_NODE_FACTS: Final = ("hyperNodes",)


class Views:
    """Gives everybody what they may see; whoever sees everything gets what was encoded for all, and equals get the same."""

    def __init__(self, board: Board, namespaces: Callable[[], Collection[str]], pods_in: Callable[[str], int]) -> None:
        self._board = board
        self._namespaces = namespaces
        self._pods_in = pods_in
        self._kept: dict[tuple[Sight, int], bytes] = {}
        self._kept_of = -1

    def since(self, version: int, sight: Sight) -> list[tuple[int, bytes]] | None:
        """Give what is new since a version, with the versions they come to; None if that is too long ago to say."""
        batches = self._board.since(version)
        if not batches:
            return None if batches is None else []
        if sight.is_whole:
            return [(batch.version, batch.data) for batch in batches]
        return [(self._board.version, self._news(version, batches, sight))]

    def _news(self, version: int, batches: list[Batch], sight: Sight) -> bytes:
        if self._kept_of != self._board.version or len(self._kept) >= MOST_KEPT:
            self._kept, self._kept_of = {}, self._board.version
        key = (sight, version)
        if key not in self._kept:
            self._kept[key] = self.seen(self._board.gathered(batches), sight).data()
        return self._kept[key]

    def hider(self, sight: Sight) -> hiding.Hider:
        """Give whoever hides names from a sight."""
        known = self._namespaces()
        return hiding.Hider(sight, known.__contains__)

    def past(self, moment: int, sight: Sight) -> Pieces:
        """Give what somebody may see of how it was."""
        return self.seen(self._board.at(moment), sight, self._board.pods_more(moment))

    def facts(self, facts: dict[str, Any], sight: Sight) -> dict[str, Any]:
        """Leave out of facts what may not be known."""
        told = [(name, msgspec.json.encode(value)) for name, value in facts.items()]
        return {name: msgspec.Raw(data) for name, data in _facts(told, sight, self.hider(sight))}

    def seen(self, pieces: Pieces, sight: Sight, more: Mapping[str, int] = MappingProxyType({})) -> Pieces:
        """Leave out what may not be seen; there were so many `more` pods in each namespace than now."""
        if sight.is_whole:
            return pieces
        hider = self.hider(sight)
        pods = pieces.head.pods
        if sight.pods is not None:
            pods = sum(self._pods_in(each) + more.get(each, 0) for each in sight.pods)
        head = pieces.head._replace(pods=pods, total=pieces.head.total if sight.nodes else {})
        return Pieces(
            head,
            _rows(pieces.rows, sight, hider),
            _facts(pieces.facts, sight, hider),
            _evictions(pieces.evictions, sight),
            pieces.pulse if sight.nodes else (),
        )


def _rows(
    rows: Iterable[tuple[Place, bytes | None]], sight: Sight, hider: hiding.Hider
) -> Iterator[tuple[Place, bytes | None]]:
    for place, row in rows:
        table, key = place
        if table == "jobs":
            namespace, _, name = key.partition("/")
            if sight.job(namespace, name):
                yield place, row if row is None or _WITHOUT_REASON in row else _job(row, hider)
        elif (table == "nodes" and sight.nodes) or (table == "queues" and sight.queues):
            yield place, row


def _job(row: bytes, hider: hiding.Hider) -> bytes:
    found = _JOBS.decode(row)
    reason = hider.text(found.reason)
    return row if reason == found.reason else msgspec.json.encode(msgspec.structs.replace(found, reason=reason))


def _facts(facts: Iterable[tuple[str, bytes]], sight: Sight, hider: hiding.Hider) -> Iterator[tuple[str, bytes]]:
    for name, data in facts:
        if _may_know(name, sight):
            value: Any = msgspec.json.decode(data)
            yield name, data if name in _NODE_FACTS else msgspec.json.encode(hider.value(value))


def _may_know(name: str, sight: Sight) -> bool:
    return not (
        (name not in _FOR_ALL and sight.is_nothing)
        or (name in _QUEUE_FACTS and not sight.queues)
        or (name in _NODE_FACTS and not sight.nodes)
        or (name in _POLICY_FACTS and not sight.policy)
    )


def _evictions(evictions: Iterable[bytes], sight: Sight) -> Iterator[bytes]:
    for data in evictions:
        shown = hiding.eviction(_EVICTIONS.decode(data), sight)
        if shown is not None:
            yield msgspec.json.encode(shown)
