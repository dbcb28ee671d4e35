"""The reason in a text: what it says once the numbers and names of the moment are left out.

What is written on a pod or group, and told in an event, changes when its reason does, with the numbers of that moment. Where nothing but numbers has changed they are written
anew now and then (`cache/renewals.py`); how they stand now is the business of explanations and metrics. The key is found in the text itself, so that what another process wrote before a restart can be compared as well, and so
that the text of any plugin has one.
"""

from __future__ import annotations

import functools
import re

READY = "pod group is ready"
NOT_READY = "pod group is not ready"
ORIGIN = "Origin reason is"
AWAITS = "It waits for pods that are evicted for it"

# A number with its unit, or a length of time such as 1h30m, standing by itself: digits that are part of a name are part of what is said.
_NUMBER = re.compile(
    r"(?<![\w.\-])[-+]?(?:(?:\d+[dhms])+|\d+(?:[.,]\d+)*(?:[eE][-+]?\d+)?(?:[kMGTPEmun]i?|Ki|[µun]?s|min|h|d|%)?)(?![\w\-]|\.\w)"
)
# How many members are in which status, and how many of them could be placed: it moves with everybody's pods.
_TALLY = re.compile(rf"({READY}|{NOT_READY}), [^;.]*(?:; Pending: [^.]*)?(?=\. |$)")
_FIRST_MEMBER = re.compile(rf"{ORIGIN} [^:\s]+: ")
_NODE = re.compile(r"(?<=can possibly be assigned to )[^\s,]+")
_TIME = re.compile(r"\b\d{4}-\d\d-\d\dT[\d:.]+Z")
_CLAUSES = re.compile(r"[,;:.](?:\s+|$)")
# Where the cause ends and what tools read begins.
_SUMMARY = re.compile(
    r"; (?=\d+/\d+ (?:tasks in gang|nodes are|hyper-nodes)|In hyperNode |pod group is |Pod \S+ can possibly|queue \S+: )"
)
# What a cause says of the moment: which node comes nearest, how many members would go, who has not gone yet.
_PASSING = re.compile(
    r": the (?:freest|largest) of .*|, such as .*|(?<=evicted for it to go): .*| that it may use| \([^)]* let in and not placed yet\)"
    r"|room for \d+ of the \d+ pods it (?:still )?needs, then |its pod \S+ has no node to go to: "
)


def parted(text: str) -> tuple[str, str]:
    """Part a text into the cause it begins with and the summary after it; what another version wrote may have no cause."""
    found = _SUMMARY.search(text)
    return ("", text) if found is None else (text[: found.start()], text[found.end() :])


def joined(cause: str, summary: str) -> str:
    """Write a summary behind its cause, unless it says nothing else."""
    return summary if not cause or summary.startswith(cause) else f"{cause}; {summary}"


def cause(text: str) -> str:
    """Return the cause that a text begins with, else what it gives as the reason, which older versions have at the end."""
    found, summary = parted(text)
    head, _, origin = summary.partition(f"{ORIGIN} ")
    return found or (f"{head.partition(':')[0]}: {origin}" if origin else summary)


@functools.lru_cache(maxsize=4096)
def cause_key(text: str) -> str:
    """Return what a cause says without numbers and what it says of the moment."""
    return _without_numbers(_PASSING.sub("", text))


@functools.lru_cache(maxsize=4096)
def reason_key(text: str) -> str:
    """Return what a text says without its numbers; clauses count in any order, since many lists are sorted by number."""
    cause, summary = parted(text)
    return f"{cause_key(cause)} | {_summary_key(summary)}" if cause else _summary_key(summary)


def _summary_key(text: str) -> str:
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
    (old, before), (new, after) = parted(said), parted(text)
    if new and cause_key(old) != cause_key(new):
        return True
    if is_general(after) and (old or not is_general(before)):
        return False
    return bool(old and not new) or _summary_key(before) != _summary_key(after)


def has_other_numbers(said: str, text: str) -> bool:
    """Tell whether a text gives the reason that is written in other numbers or names of the moment."""
    return said != text and reason_key(said) == reason_key(text)
