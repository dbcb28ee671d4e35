"""Text that others wrote, made fit to be shown: on a terminal, in a log, in `kubectl describe`."""

from __future__ import annotations


def printable(text: str) -> str:
    """Return a text with everything written out that a terminal would obey instead of showing: control characters, line ends, marks that turn text around."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)
