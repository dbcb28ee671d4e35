"""Cards of a node, what is held of each, and the sums of both: plain values, so that equal nodes are asked about once."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from pumice.plugins.deviceshare.geometries import Group  # noqa: TC001  msgspec reads the annotations at run time


class Card(msgspec.Struct, frozen=True):
    """One card as the node has it: its id, its memory, how many pods may share it, of which type it is, whether it is well, and into which instances it can be cut."""

    id: str
    memory: int
    slots: int = 1
    type: str = ""
    well: bool = True
    groups: tuple[Group, ...] = ()


class Held(msgspec.Struct, frozen=True):
    """What pods hold of one card; `names` are words by which some of them keep others away, each as often as it was said, `instances` those of a card that is cut."""

    memory: int = 0
    cores: int = 0
    users: int = 0
    names: tuple[str, ...] = ()
    instances: tuple[str, ...] = ()

    def with_share(self, share: Share) -> Held:
        """Return what is held with one more share."""
        names = tuple(sorted((*self.names, *share.names))) if share.names else self.names
        cut = tuple(sorted((*self.instances, share.instance))) if share.instance else self.instances
        return Held(self.memory + share.memory, self.cores + share.cores, self.users + 1, names, cut)

    def without_share(self, share: Share) -> Held:
        """Return what is held with one share less."""
        names = list(self.names)
        for name in share.names:
            names.remove(name)
        cut = list(self.instances)
        if share.instance:
            cut.remove(share.instance)
        return Held(self.memory - share.memory, self.cores - share.cores, self.users - 1, tuple(names), tuple(cut))


class Share(msgspec.Struct, frozen=True):
    """What one container, or a whole pod, takes of the card at a position."""

    position: int
    memory: int = 0
    cores: int = 0
    names: tuple[str, ...] = ()
    container: int = 0
    instance: str = ""


State = tuple[Held, ...]
Rate = Callable[[Share], int]
"""How good a share is, alone, for what is left; whoever has a choice of cards takes the best."""
SHORT, ILL, UNCUT = range(3)
"""Why a pod gets no cards: there is not enough of them, there would be if all were well, or nobody knows how to cut them."""
Change = Callable[[State, tuple[Share, ...]], State]
NOTHING = Held()


class Choice(msgspec.Struct, frozen=True):
    """The cards that a pod gets, and how well they suit it; without any, `refusal` says why, and `cause` of which kind that is."""

    shares: tuple[Share, ...] = ()
    score: float = 0.0
    refusal: str = ""
    cause: int = 0


def taken(state: State, shares: tuple[Share, ...]) -> State:
    """Return what is held once shares are taken."""
    after = list(state)
    for share in shares:
        after[share.position] = after[share.position].with_share(share)
    return tuple(after)


def best_first(shares: list[Share], rate: Rate | None) -> list[Share]:
    """Order shares, of which each would do, by how good they are; those that are equally good stay in their order."""
    return shares if rate is None else sorted(shares, key=rate, reverse=True)


def milli(part: int, whole: int) -> int:
    """Return a part in thousandths of a whole, rounded up."""
    return -(-1000 * part // max(1, whole))


def given_back(state: State, shares: tuple[Share, ...]) -> State:
    """Return what is held once shares are given back."""
    after = list(state)
    for share in shares:
        after[share.position] = after[share.position].without_share(share)
    return tuple(after)


def either(now: State, later: State) -> State:
    """Return what is held at one of two moments: of each card, the more of either."""
    return tuple(
        Held(
            max(one.memory, other.memory),
            max(one.cores, other.cores),
            max(one.users, other.users),
            _both(one.names, other.names),
            _both(one.instances, other.instances),
        )
        for one, other in zip(now, later, strict=True)
    )


def _both(one: tuple[str, ...], other: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(sorted((*one, *(word for word in other if word not in one))))


def ill(of: tuple[Card, ...]) -> str:
    """Say which cards are not well, to be added to a refusal; empty if all are."""
    names = [card.id for card in of if not card.well]
    return f"; {', '.join(names)} {'is' if len(names) == 1 else 'are'} not well" if names else ""


def cured(card: Card) -> Card:
    """Return a card as it would be if it were well."""
    return card if card.well else msgspec.structs.replace(card, well=True)
