"""Situations: what a node's cards are and what is held of them, each known by a number, and what pods get in each.

Nodes that are alike are in one situation, so a column of numbers says all about the cards of all nodes, and what a pod would get is worked out once for each. Numbers are never given to anything else until everything is forgotten.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec
import numpy as np

from pumice.plugins.deviceshare import cards

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from pumice.framework.evaluation import Floats
    from pumice.model.nodes import Rows
    from pumice.plugins.deviceshare.cards import Card, Choice, Share, State

    Choose = Callable[[tuple[Card, ...], Hashable, State, Hashable], Choice]

NO_CARDS, REFUSED, UNKNOWN = 0, 1, -1
"""The situations of nodes without cards, and of those that were asked for more than they have; and what was not asked yet."""
_MOST_ANSWERS: Final = 1 << 21


class Answers:
    """What equal pods get: for each situation the one that their node is in afterwards, and how well that suits them."""

    __slots__ = ("_paths", "_request", "_situations", "after", "causes", "choices", "scores")

    def __init__(self, situations: Situations, request: Hashable) -> None:
        self._situations = situations
        self._request = request
        self.after: Rows = np.full(2, (NO_CARDS, REFUSED), dtype=np.int64)
        self.scores: Floats = np.zeros(2)
        self.causes: Rows = np.zeros(2, dtype=np.int64)
        self.choices: dict[int, Choice] = {}
        self._paths: dict[int, list[int]] = {}

    def look(self, at: Rows) -> Rows:
        """Return the situations after one more pod; `REFUSED` where it gets no cards."""
        self._grow()
        after: Rows = self.after[at]
        if np.minimum.reduce(after, initial=0) == UNKNOWN:
            for each in np.unique(at[after == UNKNOWN]).tolist():
                self._ask(each)
            after = self.after[at]
        return after

    def one(self, at: int) -> int:
        """Return the same of one situation."""
        self._grow()
        if self.after[at] == UNKNOWN:
            self._ask(at)
        return int(self.after[at])

    def ahead(self, at: Rows, steps: Rows | None) -> Rows:
        """Return the situations after so many more pods each."""
        if steps is None:
            return at
        return np.array([self._on_the_way(*pair) for pair in zip(at.tolist(), steps.tolist(), strict=True)], np.int64)

    def _on_the_way(self, at: int, step: int) -> int:
        path = self._paths.get(at)
        if path is None:
            path = self._paths[at] = [at]
        while len(path) <= step:
            path.append(self.one(path[-1]))
        return path[step]

    def rates(self, at: Rows) -> Floats:
        """Return how well one more pod is suited in each situation, 0 where it gets no cards."""
        self.look(at)
        rated: Floats = self.scores[at]
        return rated

    def refusal(self, at: int) -> str:
        """Say why a situation has no cards for a pod; empty if it has."""
        self.one(at)
        found = self.choices.get(at)
        return "" if found is None else found.refusal

    def _grow(self) -> None:
        more = len(self._situations) - len(self.after)
        if more > 0:
            more += len(self.after)  # twice as many, so that this is rare
            self.after = np.concatenate((self.after, np.full(more, UNKNOWN, dtype=np.int64)))
            self.scores = np.concatenate((self.scores, np.zeros(more)))
            self.causes = np.concatenate((self.causes, np.zeros(more, dtype=np.int64)))

    def _ask(self, at: int) -> None:
        of, about, state = self._situations.known[at]
        choice = self._situations.choose(of, about, state, self._request)
        if not choice.shares and not all(card.well for card in of):
            cured = self._situations.choose(tuple(map(cards.cured, of)), about, state, self._request)
            choice = msgspec.structs.replace(choice, cause=cards.ILL) if cured.shares else choice
        self.choices[at] = choice
        after = self._situations.number(of, about, cards.taken(state, choice.shares)) if choice.shares else REFUSED
        self._grow()
        self.after[at], self.scores[at], self.causes[at] = after, choice.score, choice.cause


class Situations:
    """All situations that nodes are in, were in, or might come to be in."""

    def __init__(self, choose: Choose) -> None:
        self.choose = choose
        self.known: list[tuple[tuple[Card, ...], Hashable, State]] = [((), None, ()), ((), None, ())]
        self._numbers: dict[tuple[tuple[Card, ...], Hashable, State], int] = {}
        self._answers: dict[Hashable, Answers] = {}

    def __len__(self) -> int:
        return len(self.known)

    def number(self, of: tuple[Card, ...], about: Hashable, state: State) -> int:
        """Return the number of a situation."""
        if not of:
            return NO_CARDS
        key = (of, about, state)
        found = self._numbers.setdefault(key, len(self.known))
        if found == len(self.known):
            self.known.append(key)
        return found

    def changed(self, at: int, shares: tuple[Share, ...], change: Callable[[State, tuple[Share, ...]], State]) -> int:
        """Return the situation with shares taken, or given back."""
        of, about, state = self.known[at]
        return self.number(of, about, change(state, shares))

    def answers(self, request: Hashable) -> Answers:
        """Return what pods with a request get."""
        found = self._answers.get(request)
        if found is None:
            if (len(self._answers) + 1) * len(self.known) > _MOST_ANSWERS:
                self._answers.clear()
            found = self._answers[request] = Answers(self, request)
        return found
