"""What a controller is to those who run it, and what it may be beside that, which is told by what it has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeGuard

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pumice.api import kinds
    from pumice.controllers.queueing.observed import Observed
    from pumice.controllers.queueing.requests import Moment, Reconciled


class Controller(Protocol):
    """A rule about objects of one kind."""

    @property
    def kind(self) -> kinds.Kind:
        """The kind it reconciles."""

    @property
    def watched(self) -> tuple[kinds.Kind, ...]:
        """The other kinds that it reads."""

    def concerns(self, kind: kinds.Kind, manifest: Mapping[str, Any], observed: Observed) -> Iterable[tuple[str, str]]:
        """Name the objects that a change of one of another kind concerns."""

    def reconcile(self, namespace: str, name: str, observed: Observed, moment: Moment) -> Reconciled:
        """Say what is to be done about an object, which may be gone."""


class Remembering(Controller, Protocol):
    """A controller that has to know what vanished since it last looked, not only what is there."""

    @property
    def remembered(self) -> tuple[kinds.Kind, ...]:
        """The kinds of which it has to know that."""


class Obeying(Controller, Protocol):
    """A controller that people give orders to: these cut a pause short."""

    @property
    def orders(self) -> tuple[kinds.Kind, ...]:
        """The kinds that are orders."""


class Discerning(Controller, Protocol):
    """A controller that tells changes that matter from those that do not."""

    def is_same(self, kind: kinds.Kind, before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
        """Tell whether an object of another kind is what it was, as far as this controller looks at it."""


class Frugal(Controller, Protocol):
    """A controller that reads little of large or many objects."""

    @property
    def selectors(self) -> Mapping[kinds.Kind, str]:
        """Label selectors of other kinds of which it need not know all; a runner may tell it of more."""

    def trimmed(self, kind: kinds.Kind, manifest: dict[str, Any]) -> dict[str, Any]:
        """Give what it reads of an object of another kind, which is all that is kept if nobody else looks at the kind."""


# Asking by name costs a hundredth of what `isinstance` of a protocol costs, and every simulated cluster asks.


def remembered_by(controller: Controller) -> tuple[kinds.Kind, ...]:
    """Give the kinds of which a controller has to know what vanished; none if it is not `Remembering`."""
    found: tuple[kinds.Kind, ...] = getattr(controller, "remembered", ())
    return found


def orders_to(controller: Controller) -> tuple[kinds.Kind, ...]:
    """Give the kinds that are orders to a controller; none if it is not `Obeying`."""
    found: tuple[kinds.Kind, ...] = getattr(controller, "orders", ())
    return found


def is_discerning(controller: Controller) -> TypeGuard[Discerning]:
    """Tell whether a controller is `Discerning`."""
    return hasattr(controller, "is_same")


def is_frugal(controller: Controller) -> TypeGuard[Frugal]:
    """Tell whether a controller is `Frugal`."""
    return hasattr(controller, "selectors") and hasattr(controller, "trimmed")
