"""Regular expressions of cluster objects, matched in a time that no author of a pattern can make long.

Python's own matcher tries one way after another, and there are patterns for which that takes years. It is used only where few ways exist: for almost every
pattern. All others are followed on all ways at once, letter by letter, as Go's package does, whose rules are those of the peers. What needs more than that
(looking around, references back) Go does not have either, and is refused.
"""

from __future__ import annotations

import re
import warnings
from typing import TYPE_CHECKING, Final

from pumice.model.pattern_parsing import Branch, Letters, PatternError, Place, Repeat, parse

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pumice.model.pattern_parsing import Part

LONGEST: Final = 1024
MOST_STATES: Final = 2000
FEW: Final = 2  # choices that Python's matcher may be left with: the square of a name's length is still nothing

_NAMED: Final = re.compile(r"\[:(\^?[a-z]*):\]")
_CLASSES: Final = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "digit": "0-9",
    "lower": "a-z",
    "space": r"\t\n\v\f\r ",
    "upper": "A-Z",
    "word": "0-9A-Za-z_",
    "xdigit": "0-9A-Fa-f",
}


def searcher(pattern: str) -> Callable[[str], bool]:
    """Return what tells whether a pattern is found in a name."""
    if len(pattern) > LONGEST:
        raise PatternError(f"it has {len(pattern)} characters; at most {LONGEST} are read")
    pattern = _NAMED.sub(_letters, pattern)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)
            found = re.compile(pattern).search
        tree = parse(pattern)
        few = _choices(tree, repeated=False) <= FEW
    except (re.error, OverflowError) as error:
        raise PatternError(str(error)) from None
    except RecursionError:
        raise PatternError("it is nested too deeply") from None
    return (lambda name: found(name) is not None) if few else Automaton(tree).search


def automaton(pattern: str) -> Automaton:
    """Return a pattern as an automaton, which is slower for names and takes no longer for a text than its length."""
    try:
        return Automaton(parse(_NAMED.sub(_letters, pattern)))
    except RecursionError:
        raise PatternError("it is nested too deeply") from None


def _letters(named: re.Match[str]) -> str:
    """Write a class such as `[:digit:]`, which Go has and Python has not, as its letters."""
    if named[1] not in _CLASSES:
        raise PatternError(f"the class {named[0]} is not known; known are {', '.join(_CLASSES)}")
    return _CLASSES[named[1]]


def _choices(tree: Iterable[Part], *, repeated: bool) -> int:
    """Count the places at which a matcher may go one way or another; one that is met again and again counts as too many."""
    total = 0
    for part in tree:
        match part:
            case Repeat(least, most, body):
                total += int(least != most) + _choices(body, repeated=True)
                total += (FEW + 1) * repeated
            case Branch(ways):
                total += (FEW + 1 if repeated else 1) + sum(_choices(way, repeated=repeated) for way in ways)
    return total


class Automaton:
    """A pattern as states, all of which are followed at once."""

    def __init__(self, tree: list[Part]) -> None:
        self._states: list[tuple[Letters | Place | None, list[int]]] = [(None, [])]  # the first one is the end
        try:
            self._start = self._sequence(tree, 0)
        except RecursionError:
            raise PatternError("it is nested too deeply") from None

    @property
    def size(self) -> int:
        """How many states there are: the most that is done for each letter."""
        return len(self._states)

    def search(self, name: str) -> bool:
        """Tell whether the pattern is found anywhere in a name."""
        states: dict[int, None] = {}
        for position in range(len(name) + 1):
            self._enter(self._start, states, name, position)
            if 0 in states:
                return True
            if position < len(name):
                following: dict[int, None] = {}
                for state in states:
                    part, targets = self._states[state]
                    if isinstance(part, Letters) and part.accepts(name[position]):
                        self._enter(targets[0], following, name, position + 1)
                states = following
        return False

    def _enter(self, start: int, states: dict[int, None], name: str, position: int) -> None:
        """Take in a state and all that follow from it without a letter."""
        waiting = [start]
        while waiting:
            state = waiting.pop()
            if state in states:
                continue
            states[state] = None
            part, targets = self._states[state]
            if part is None or (isinstance(part, Place) and part.holds(name, position)):
                waiting += targets

    def _add(self, part: Letters | Place | None, targets: list[int]) -> int:
        if len(self._states) >= MOST_STATES:
            raise PatternError(f"it comes to more than {MOST_STATES} states; repeat less")
        self._states.append((part, targets))
        return len(self._states) - 1

    def _sequence(self, tree: list[Part], after: int) -> int:
        """Add the states of a sequence that goes on to a state; returns its first."""
        for part in reversed(tree):
            match part:
                case Branch(ways):
                    after = self._add(None, [self._sequence(way, after) for way in ways])
                case Repeat():
                    after = self._repeat(part, after)
                case _:
                    after = self._add(part, [after])
        return after

    def _repeat(self, repeat: Repeat, after: int) -> int:
        start = after
        if repeat.most is None:
            start = self._add(None, [after])
            self._states[start][1].append(self._sequence(repeat.body, start))
        else:
            for _ in range(repeat.most - repeat.least):
                start = self._add(None, [after, self._sequence(repeat.body, start)])
        for _ in range(repeat.least):
            before, start = start, self._sequence(repeat.body, start)
            if start == before:
                break  # nothing, however often
        return start
