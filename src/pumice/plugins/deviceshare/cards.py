"""Cards of a node, what is held of each, and the sums of both: plain values, so that equal nodes are asked about once."""

from __future__ import annotations

from collections.abc import Callable

import msgspec


class Card(msgspec.Struct, frozen=True):
    """One card as the node has it: its id, its memory, how many pods may share it, and of which type it is."""

    id: str
    memory: int
    slots: int = 1
    type: str = ""


class Held(msgspec.Struct, frozen=True):
    """What pods hold of one card; `names` are words by which some of them keep others away, each as often as it was said."""

    memory: int = 0
    cores: int = 0
    users: int = 0
    names: tuple[str, ...] = ()

    def with_share(self, share: Share) -> Held:
        """Return what is held with one more share."""
        names = tuple(sorted((*self.names, *share.names))) if share.names else self.names
        return Held(self.memory + share.memory, self.cores + share.cores, self.users + 1, names)

    def without_share(self, share: Share) -> Held:
        """Return what is held with one share less."""
        names = list(self.names)
        for name in share.names:
            names.remove(name)
        return Held(self.memory - share.memory, self.cores - share.cores, self.users - 1, tuple(names))


class Share(msgspec.Struct, frozen=True):
    """What one container, or a whole pod, takes of the card at a position."""

    position: int
    memory: int = 0
    cores: int = 0
    names: tuple[str, ...] = ()
    container: int = 0


State = tuple[Held, ...]
Change = Callable[[State, tuple[Share, ...]], State]
NOTHING = Held()


class Choice(msgspec.Struct, frozen=True):
    """The cards that a pod gets, and how well they suit it; without any, `refusal` says why."""

    shares: tuple[Share, ...] = ()
    score: float = 0.0
    refusal: str = ""


def taken(state: State, shares: tuple[Share, ...]) -> State:
    """Return what is held once shares are taken."""
    after = list(state)
    for share in shares:
        after[share.position] = after[share.position].with_share(share)
    return tuple(after)


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
            tuple(sorted((*one.names, *(name for name in other.names if name not in one.names)))),
        )
        for one, other in zip(now, later, strict=True)
    )
