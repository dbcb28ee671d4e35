"""Cards by thousandths: a node offers 1000 of `pumice.dev/gpu-milli` for each, a pod asks for a part of one or for whole ones, and carries their index."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

from pumice.api import names, quantity
from pumice.plugins.deviceshare import cards
from pumice.plugins.deviceshare.cards import Card, Choice, Share
from pumice.plugins.fragmentation import asked
from pumice.plugins.fragmentation.asked import WHOLE

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping

    from pumice.api import core
    from pumice.model.cluster import Cluster
    from pumice.model.nodes import NodeRecord
    from pumice.model.task import Task
    from pumice.plugins.deviceshare.cards import Held, Rate, State

_MOST_CARDS: Final = 64


class OfferError(ValueError):
    """What a node offers and cannot be."""


class MilliCards:
    """Cards that are given out by thousandths; what is held of a card is its `memory`, of which it has 1000."""

    annotations = frozenset({names.CARD_INDEX})

    def offer(self, node: core.Node) -> tuple[tuple[Card, ...], Hashable]:
        """Return the cards of a node, or raise an `OfferError`."""
        status = node.status
        text = (status.capacity or status.allocatable).get(names.CARD_MILLI, status.allocatable.get(names.CARD_MILLI))
        try:
            offered = 0 if text is None else quantity.whole(text)
        except quantity.QuantityError as error:
            raise OfferError(f"{names.CARD_MILLI}: {error}") from None
        if offered < 0 or offered % WHOLE:
            raise OfferError(
                f"{names.CARD_MILLI}: {offered} is no multiple of {WHOLE}; a node offers {WHOLE} for each of its cards"
            )
        if offered > _MOST_CARDS * WHOLE:
            raise OfferError(f"{names.CARD_MILLI}: {offered // WHOLE} cards; at most {_MOST_CARDS} are given out")
        ill = {part.strip() for part in node.metadata.annotations.get(names.CARD_UNHEALTHY_IDS, "").split(",")}
        return tuple(Card(str(at), WHOLE, well=str(at) not in ill) for at in range(offered // WHOLE)), None

    def request(self, task: Task) -> tuple[int, int] | None:
        """Return how many cards a pod asks for, and how much of each."""
        return asked.of_card(task.shape.request.amounts)

    def choose(
        self, of: tuple[Card, ...], about: Hashable, state: State, request: Hashable, rate: Rate | None = None
    ) -> Choice:
        """Choose the best card for a share, the first where nobody rates them; of whole cards the first free ones."""
        del about
        number, milli = cast("tuple[int, int]", request)
        fitting = [
            Share(position, milli)
            for position, card in enumerate(of)
            if card.well and card.memory - state[position].memory >= milli
        ]
        if len(fitting) >= number:
            chosen = fitting if milli == WHOLE else cards.best_first(fitting, rate)
            return Choice(tuple(chosen[:number]))
        if milli == WHOLE:
            return Choice(refusal=f"{len(fitting)} cards are free, {number} are asked for{cards.ill(of)}")
        most = max((self.left(card, held) for card, held in zip(of, state, strict=True)), default=0)
        return Choice(refusal=f"no card has {milli} of {names.CARD_MILLI} left, at most {most}{cards.ill(of)}")

    def left(self, card: Card, held: Held) -> int:
        """Return how much of a card is left."""
        return max(0, card.memory - held.memory) if card.well else 0

    def held(self, cluster: Cluster, task: Task, of: tuple[Card, ...]) -> tuple[Share, ...]:
        """Return the cards whose index a pod carries."""
        request = self.request(task)
        if request is None:
            return ()
        positions = {card.id: position for position, card in enumerate(of)}
        listed = self.listed(cluster, task)[: request[0]]
        return tuple(Share(positions[name], request[1]) for name in listed if name in positions)

    def listed(self, cluster: Cluster, task: Task) -> tuple[str, ...]:
        """Return the index that a pod carries, each card once."""
        if self.request(task) is None:
            return ()
        text = cluster.with_bind.stamped(task, names.CARD_INDEX)
        return tuple(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))

    def stamps(
        self, record: NodeRecord, of: tuple[Card, ...], task: Task, choice: Choice, now: int
    ) -> Mapping[str, Any]:
        """Return the index of the cards."""
        del record, task, now
        return {names.CARD_INDEX: ",".join(of[share.position].id for share in choice.shares)}
