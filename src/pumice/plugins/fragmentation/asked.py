"""What pods ask for of cards, whichever way they write it: how many, and how many thousandths of each."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

import msgspec

from pumice.api import names, quantity
from pumice.model import requests
from pumice.plugins.deviceshare import cards, gpus, vgpus
from pumice.plugins.fragmentation import typical

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pumice.model.nodes import NodeRecord
    from pumice.model.shape import Shape
    from pumice.plugins.fragmentation.typical import Kind

WHOLE: Final = requests.WHOLE_CARD
_UNITS: Final = 1000  # in which amounts of cards are stored
_VIRTUAL: Final = f"{names.VGPU_NUMBER}="


class Sizes(msgspec.Struct, frozen=True):
    """The memory that most cards have: of those shared by memory, and of virtual GPUs; 0 if there are none."""

    shared: int = 0
    virtual: int = 0


def usual_sizes(records: Iterable[NodeRecord]) -> Sizes:
    """Find the usual sizes of cards among nodes; of equally frequent ones the larger."""
    shared: Counter[int] = Counter()
    virtual: Counter[int] = Counter()
    for node in (record.object for record in records if record.object is not None):
        shared.update(card.memory for card in gpus.cards_of(node))
        try:
            virtual.update(card.memory for card in vgpus.register_of(node).cards)
        except vgpus.RegisterError:
            continue  # told of by the plugin that gives them out
    return Sizes(_most_common(shared), _most_common(virtual))


def _most_common(sizes: Counter[int]) -> int:
    return max(sizes, key=lambda size: (sizes[size], size), default=0)


def kind_of(shape: Shape, whole: Sequence[str], label: str, sizes: Sizes) -> Kind:
    """Return the kind of pods of a shape."""
    number, milli = of_shape(shape, whole, sizes)
    cpu = shape.request.amounts.get(names.CPU, 0)
    return (cpu, milli, number, typical.models_of(shape.constraints, label))


def of_shape(shape: Shape, whole: Sequence[str], sizes: Sizes) -> tuple[int, int]:
    """Return how many cards pods of a shape ask for, and how many thousandths of each."""
    amounts = shape.request.amounts
    if number := whole_cards(amounts, (*whole, names.GPU_NUMBER)):
        return number, WHOLE
    if milli := of_card(amounts):
        return milli
    if memory := amounts.get(names.GPU_MEMORY, 0) // _UNITS:
        return 1, cards.milli(memory, sizes.shared) if sizes.shared else WHOLE
    return _virtual(shape.constraints.devices, sizes.virtual)


def whole_cards(amounts: Mapping[str, int], whole: Sequence[str]) -> int:
    """Return how many cards are asked for by resources that are whole cards."""
    return sum(amounts.get(name, 0) // _UNITS for name in whole)


def of_card(amounts: Mapping[str, int]) -> tuple[int, int] | None:
    """Return what is asked for by thousandths, None if nothing is: all together are counted, and only whole cards are more than one."""
    total = amounts.get(names.CARD_MILLI, 0) // _UNITS
    if not total:
        return None
    return (1, total) if total <= WHOLE else (total // WHOLE, WHOLE)


def _virtual(written: Sequence[str], size: int) -> tuple[int, int]:
    """Read what containers ask for of virtual GPUs: all their cards, and the most that one asks for of each."""
    number = milli = 0
    for text in written:
        if not text.startswith(_VIRTUAL):
            continue
        asked = {name: _units(amount) for name, _, amount in (part.partition("=") for part in text.split(","))}
        memory, percentage = asked[names.VGPU_MEMORY], asked[names.VGPU_MEMORY_PERCENTAGE]
        wanted = asked[names.VGPU_NUMBER] or (1 if memory else 0)
        if wanted:
            part = cards.milli(memory, size) if memory and size else cards.milli(percentage or 100, 100)
            number += wanted
            milli = max(milli, part, cards.milli(asked[names.VGPU_CORES], vgpus.ALL_CORES))
    return number, milli


def _units(text: str) -> int:
    try:
        return max(0, quantity.whole(text))
    except quantity.QuantityError:
        return 0  # not written at all, or of no meaning
