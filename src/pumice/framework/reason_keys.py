"""The reason in a text: what it says once the numbers and names of the moment are left out.

What is written on a pod, a group or into an event changes only when its reason does, and keeps the numbers of that moment; how the numbers stand now is the
business of explanations and metrics. The key is found in the text itself, so that what another process wrote before a restart can be compared as well, and so
that the text of any plugin has one.
"""

from __future__ import annotations

import functools
import re

READY = "pod group is ready"
NOT_READY = "pod group is not ready"
ORIGIN = "Origin reason is"
AWAITS = "It waits for pods that are evicted for it"

# A number with its unit, standing by itself: digits that are part of a name are part of what is said.
_NUMBER = re.compile(
    r"(?<![\w.\-])[-+]?\d+(?:[.,]\d+)*(?:[eE][-+]?\d+)?(?:[kMGTPEmun]i?|Ki|[µun]?s|min|h|d|%)?(?![\w\-]|\.\w)"
)
# How many members are in which status, and how many of them could be placed: it moves with everybody's pods.
_TALLY = re.compile(rf"({READY}|{NOT_READY}), [^;.]*(?:; Pending: [^.]*)?(?=\. |$)")
_FIRST_MEMBER = re.compile(rf"{ORIGIN} [^:\s]+: ")
_NODE = re.compile(r"(?<=can possibly be assigned to )[^\s,]+")
_TIME = re.compile(r"\b\d{4}-\d\d-\d\dT[\d:.]+Z")
_CLAUSES = re.compile(r"[,;:.](?:\s+|$)")


@functools.lru_cache(maxsize=4096)
def reason_key(text: str) -> str:
    """Return what a text says without its numbers; clauses count in any order, since many lists are sorted by number."""
    return _without_numbers(_NODE.sub("#", _FIRST_MEMBER.sub(f"{ORIGIN}: ", _TALLY.sub(r"\1", text))))


@functools.lru_cache(maxsize=4096)
def _without_numbers(text: str) -> str:
    """Return the key of a text that names neither a member nor a node any more: thousands of jobs wait for the same."""
    text = _NUMBER.sub("#", _TIME.sub("#", text))
    return "; ".join(sorted(set(filter(None, _CLAUSES.split(text)))))


def is_general(text: str) -> bool:
    """Tell whether a text only sums a group up: no member was tried, so there is nothing to say that was not known."""
    return (NOT_READY in text or READY in text) and ORIGIN not in text and AWAITS not in text


def is_news(said: str, text: str) -> bool:
    """Tell whether a text gives another reason than the one that is written; a sum that names none never takes the place of one that does."""
    if said == text:
        return False
    if not said:
        return True
    if is_general(text) and not is_general(said):
        return False
    return reason_key(said) != reason_key(text)
