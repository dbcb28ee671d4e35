"""GPUs by memory and GPUs by number: the node says how many cards it has and how much memory in all, pods say by an index which are theirs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pumice.api import names, quantity
from pumice.plugins.deviceshare.cards import Card, Choice, Rate, Share, State, best_first, ill

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pumice.api import core
    from pumice.model.task import Task

_MOST_CARDS: Final = 64


def cards_of(node: core.Node) -> tuple[Card, ...]:
    """Return the cards of a node, with equal parts of its memory; none if it does not say both amounts."""
    offered = node.status.capacity or node.status.allocatable
    memory, count = _whole(offered.get(names.GPU_MEMORY)), _whole(offered.get(names.GPU_NUMBER))
    if not memory or not count or count > _MOST_CARDS:
        return ()
    sick = {part.strip() for part in node.metadata.annotations.get(names.GPU_UNHEALTHY_IDS, "").split(",")}
    return tuple(Card(str(index), memory // count, well=str(index) not in sick) for index in range(count))


def _whole(text: quantity.QuantityText | None) -> int:
    try:
        return 0 if text is None else max(0, quantity.whole(text))
    except quantity.QuantityError:
        return 0


def asked_of(task: Task, resource: str) -> int:
    """Return how many whole units a pod asks for."""
    return task.shape.request.amounts.get(resource, 0) // 1000


def by_memory(cards: tuple[Card, ...], state: State, need: int, rate: Rate | None = None) -> Choice:
    """Put a pod on the best card that has enough memory left, the first where nobody rates them."""
    fitting = [
        Share(position, need)
        for position, card in enumerate(cards)
        if card.well and card.memory - state[position].memory >= need
    ]
    if fitting:
        return Choice((best_first(fitting, rate)[0],))
    most = max((card.memory - held.memory for card, held in zip(cards, state, strict=True) if card.well), default=0)
    return Choice(refusal=f"no card has {need} of {names.GPU_MEMORY} left, at most {max(0, most)}{ill(cards)}")


def by_number(cards: tuple[Card, ...], state: State, need: int) -> Choice:
    """Give a pod the first cards that nobody uses."""
    idle = [position for position, card in enumerate(cards) if card.well and not state[position].users]
    if len(idle) < need:
        return Choice(refusal=f"{len(idle)} cards are idle, {need} are asked for{ill(cards)}")
    return Choice(tuple(Share(position) for position in idle[:need]))


def held_by(cards: tuple[Card, ...], index: str, need: int) -> tuple[Share, ...]:
    """Return what a pod holds by the index that it carries; a card that is gone holds nothing any more."""
    positions = {card.id: position for position, card in enumerate(cards)}
    listed = [part.strip() for part in index.split(",")] if index else []
    return tuple(Share(positions[name], need) for name in listed if name in positions)


def stamps(cards: tuple[Card, ...], choice: Choice, now: int) -> Mapping[str, str]:
    """Return the annotations that tell the device plugin of a node which cards a pod has."""
    index = ",".join(cards[share.position].id for share in choice.shares)
    return {names.GPU_INDEX: index, names.PREDICATE_TIME: str(now * 1000)}
