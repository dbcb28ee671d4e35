"""Patterns of schemas and rules, held against values of any length in a time that no author of either can make long."""

from __future__ import annotations

import functools
import re
import warnings
from typing import Final

from pumice.model import pattern_parsing, patterns

MOST_STEPS: Final = 2_000_000
_SHORT: Final = 253  # as long as names are, for which `patterns` chooses how to match


class BoundedPattern:
    """A pattern of Go. One that needs more than is read here (thousands of states) is not held against anything."""

    def __init__(self, pattern: str) -> None:
        pattern = _python_pattern(pattern)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)
            re.compile(pattern)
        self._automaton: patterns.Automaton | None = None
        try:
            self._find = patterns.searcher(pattern)
            self._automaton = patterns.automaton(pattern)
        except pattern_parsing.PatternError:
            self._automaton = None

    def search(self, text: str) -> bool:
        """Tell whether the pattern is found in a text; it is not in one that is too long to be looked through."""
        if self._automaton is None:
            return True
        if len(text) <= _SHORT:
            return self._find(text)
        return len(text) * self._automaton.size <= MOST_STEPS and self._automaton.search(text)


@functools.lru_cache(maxsize=1024)
def compiled(pattern: str) -> BoundedPattern:
    """Compile a pattern; raises `re.error` if it is none."""
    try:
        return BoundedPattern(pattern)
    except (OverflowError, RecursionError, ValueError) as error:  # as for a number of thousands of digits
        raise re.error(str(error)) from None


def _python_pattern(pattern: str) -> str:
    """Say a pattern of Go in Python's words; its `$` is the very end of the text."""
    return re.sub(r"(?<!\\)\$(?=$|\))", r"\\Z", pattern)
