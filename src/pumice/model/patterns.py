"""Regular expressions of cluster objects, matched in a time that no author of a pattern can make long.

Python's own matcher tries one way after another, and there are patterns for which that takes years. It is used only where few ways exist: for almost every
pattern. All others are followed on all ways at once, letter by letter, as Go's package does, whose rules are those of the peers. What needs more than that
(looking around, references back) Go does not have either, and is refused.
"""

from __future__ import annotations

import re
import warnings
from re import _constants as ops  # type: ignore[attr-defined]  # what re itself is made of: patterns as trees
from re import _parser  # type: ignore[attr-defined]
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

LONGEST: Final = 1024
MOST_STATES: Final = 2000
FEW: Final = 2  # choices that Python's matcher may be left with: the square of a name's length is still nothing

_REPEATS: Final = (ops.MAX_REPEAT, ops.MIN_REPEAT)
_LETTERS: Final = (ops.LITERAL, ops.NOT_LITERAL, ops.ANY, ops.IN)
_CATEGORIES: Final[dict[Any, Callable[[str], bool]]] = {
    ops.CATEGORY_DIGIT: str.isdecimal,
    ops.CATEGORY_SPACE: str.isspace,
    ops.CATEGORY_WORD: lambda letter: letter.isalnum() or letter == "_",
    ops.CATEGORY_NOT_DIGIT: lambda letter: not letter.isdecimal(),
    ops.CATEGORY_NOT_SPACE: lambda letter: not letter.isspace(),
    ops.CATEGORY_NOT_WORD: lambda letter: not (letter.isalnum() or letter == "_"),
}

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


class PatternError(ValueError):
    """A pattern that cannot be used, and why."""


def searcher(pattern: str) -> Callable[[str], bool]:
    """Return what tells whether a pattern is found in a name."""
    if len(pattern) > LONGEST:
        raise PatternError(f"it has {len(pattern)} characters; at most {LONGEST} are read")
    pattern = _NAMED.sub(_letters, pattern)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)
            tree = _parser.parse(pattern)
            if _choices(tree, repeated=False) <= FEW:
                found = re.compile(pattern).search
                return lambda name: found(name) is not None
    except (re.error, OverflowError, RecursionError) as error:
        raise PatternError(str(error)) from None
    return Automaton(tree).search


def _letters(named: re.Match[str]) -> str:
    """Write a class such as `[:digit:]`, which Go has and Python has not, as its letters."""
    if named[1] not in _CLASSES:
        raise PatternError(f"the class {named[0]} is not known; known are {', '.join(_CLASSES)}")
    return _CLASSES[named[1]]


def _choices(tree: Iterable[Any], *, repeated: bool) -> int:
    """Count the places at which a matcher may go one way or another; one that is met again and again counts as too many."""
    total = 0
    for operation, argument in tree:
        if operation in _REPEATS:
            least, most, body = argument
            total += int(least != most) + _choices(body, repeated=True)
            total += (FEW + 1) * repeated
        elif operation is ops.SUBPATTERN:
            total += _choices(argument[3], repeated=repeated)
        elif operation is ops.BRANCH:
            total += (FEW + 1 if repeated else 1) + sum(_choices(way, repeated=repeated) for way in argument[1])
        elif operation not in _LETTERS and operation is not ops.AT:
            raise PatternError("it looks around or refers back, which patterns of names cannot")
    return total


class Automaton:
    """A pattern as states, all of which are followed at once."""

    def __init__(self, tree: Any) -> None:
        self._steps: list[tuple[Any, Any, list[int]]] = [(None, None, [])]  # the first one is the end
        try:
            self._start = self._sequence(tree, tree.state.flags, 0)
        except RecursionError:
            raise PatternError("it is nested too deeply") from None

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
                    accepts, flags, targets = self._steps[state]
                    if accepts is not None and _accepts(accepts, name[position], flags):
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
            accepts, place, targets = self._steps[state]
            if accepts is None and (place is None or _is_at(place, name, position)):
                waiting += targets

    def _add(self, accepts: Any, detail: Any, targets: list[int]) -> int:
        if len(self._steps) >= MOST_STATES:
            raise PatternError(f"it comes to more than {MOST_STATES} states; repeat less")
        self._steps.append((accepts, detail, targets))
        return len(self._steps) - 1

    def _sequence(self, tree: Any, flags: int, after: int) -> int:
        """Add the states of a sequence that goes on to a state; returns its first."""
        for operation, argument in reversed(list(tree)):
            if operation in _LETTERS:
                after = self._add((operation, argument), flags, [after])
            elif operation is ops.AT:
                after = self._add(None, argument, [after])
            elif operation is ops.SUBPATTERN:
                _, more, fewer, body = argument
                after = self._sequence(body, (flags | more) & ~fewer, after)
            elif operation is ops.BRANCH:
                ways = argument[1]
                after = self._add(None, None, [self._sequence(way, flags, after) for way in ways])
            else:
                after = self._repeat(argument, flags, after)
        return after

    def _repeat(self, argument: Any, flags: int, after: int) -> int:
        least, most, body = argument
        start = after
        if most is ops.MAXREPEAT:
            start = self._add(None, None, [after])
            self._steps[start][2].append(self._sequence(body, flags, start))
        else:
            for _ in range(most - least):
                start = self._add(None, None, [after, self._sequence(body, flags, start)])
        for _ in range(least):
            start = self._sequence(body, flags, start)
        return start


def _accepts(step: tuple[Any, Any], letter: str, flags: int) -> bool:
    operation, argument = step
    if operation is ops.ANY:
        return letter != "\n" or bool(flags & re.DOTALL)
    members = argument if operation is ops.IN else [(ops.LITERAL, argument)]
    letters = {letter: None, letter.lower(): None, letter.upper(): None} if flags & re.IGNORECASE else (letter,)
    found = any(_is_member(kind, value, each) for each in letters for kind, value in members)
    inverted = operation is ops.NOT_LITERAL or members[0][0] is ops.NEGATE
    return found != inverted


def _is_member(kind: Any, value: Any, letter: str) -> bool:
    if kind is ops.LITERAL:
        return bool(ord(letter[0]) == value)
    if kind is ops.RANGE:
        return bool(value[0] <= ord(letter[0]) <= value[1])
    return bool(kind is ops.CATEGORY and _CATEGORIES[value](letter))


def _is_at(place: Any, name: str, position: int) -> bool:
    if place in (ops.AT_BEGINNING, ops.AT_BEGINNING_STRING):
        return position == 0
    if place in (ops.AT_END, ops.AT_END_STRING):
        return position == len(name)
    is_word = _CATEGORIES[ops.CATEGORY_WORD]
    before = position > 0 and is_word(name[position - 1])
    behind = position < len(name) and is_word(name[position])
    return (before != behind) == (place is ops.AT_BOUNDARY)
