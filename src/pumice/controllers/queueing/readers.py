"""Which controllers look at which kinds of objects: with what selector a kind is watched, what is kept of it, and which changes of it are none to whom."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pumice.controllers.queueing.controller import is_discerning, is_frugal, orders_to

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pumice.api import kinds
    from pumice.controllers.queueing.controller import Controller, Frugal


class Readers:
    """The controllers by the kinds that they look at, each with its place among them."""

    def __init__(self, controllers: Sequence[Controller]) -> None:
        self._controllers = controllers
        found = {kind: None for each in controllers for kind in (each.kind, *each.watched)}
        self.watched = tuple(found)
        self._orders = tuple(orders_to(each) for each in controllers)
        self._discerning = tuple(each if is_discerning(each) else None for each in controllers)
        self._trimmers = {kind: frugal for kind in self.watched if (frugal := self._only_reader(kind)) is not None}
        self._reading = {kind: self._those_of(kind) for kind in self.watched}

    def _only_reader(self, kind: kinds.Kind) -> Frugal | None:
        readers = [each for each in self._controllers if kind == each.kind or kind in each.watched]
        only = readers[0] if len(readers) == 1 else None
        return only if only is not None and is_frugal(only) and only.kind != kind else None

    def _those_of(self, kind: kinds.Kind) -> list[tuple[int, Controller, bool, bool]]:
        found = [(place, each, each.kind == kind, kind in each.watched) for place, each in enumerate(self._controllers)]
        return [reader for reader in found if reader[2] or reader[3]]

    def of(self, kind: kinds.Kind) -> Sequence[tuple[int, Controller, bool, bool]]:
        """Give who looks at a kind: the place of each, and whether it is its own kind, another one that it reads, or both."""
        return self._reading.get(kind, ())

    def selector(self, kind: kinds.Kind) -> str:
        """Give the label selector with which a kind has to be watched, empty if all of it has to."""
        frugal = self._trimmers.get(kind)
        return frugal.selectors.get(kind, "") if frugal is not None else ""

    def trimmed(self, kind: kinds.Kind, manifest: Mapping[str, Any]) -> Mapping[str, Any]:
        """Give what is kept of an object."""
        frugal = self._trimmers.get(kind)
        return manifest if frugal is None else frugal.trimmed(kind, dict(manifest))

    def obeys(self, place: int, kind: kinds.Kind) -> bool:
        """Tell whether a new object of a kind is an order to a controller, which then begins at once whatever failed before."""
        return kind in self._orders[place]

    def is_same(
        self, place: int, kind: kinds.Kind, before: Mapping[str, Any] | None, after: Mapping[str, Any] | None
    ) -> bool:
        """Tell whether a change of an object is none to a controller."""
        discerning = self._discerning[place]
        if discerning is None or before is None or after is None:
            return False
        same = before["metadata"].get("uid") == after["metadata"].get("uid")
        return same and discerning.is_same(kind, before, after)
