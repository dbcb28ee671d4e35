"""The environment of a simulated container: its variables, and how commands and scripts refer to them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from pumice.sim import structure

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

LONGEST: Final = 2**17
"""So many characters Linux takes in one argument or variable of a program; more than this does not come of references, in a container as a whole."""
_REFERENCE: Final = re.compile(r"\$\$|\$\(([-._a-zA-Z][-._a-zA-Z0-9]*)\)")
_VARIABLE: Final = re.compile(r"'[^']*'|\\.|\$\{([a-zA-Z_]\w*)\}|\$([a-zA-Z_]\w*)", re.ASCII)
_KEYED: Final = re.compile(r"metadata\.(labels|annotations)\['(.*)'\]")
_PLAIN: Final = re.compile(r"[^'\"\\;&|<>`$()\n]*")


def of_container(container: Mapping[str, Any], pod: Mapping[str, Any]) -> dict[str, str]:
    """Give the variables of a container, those that name fields of its pod included; what stands in other objects is not looked up."""
    found = {"HOSTNAME": str(structure.mapping(pod, "metadata").get("name", ""))}
    left = LONGEST
    for each in container.get("env") or ():
        path = structure.mapping(each, "valueFrom", "fieldRef").get("fieldPath")
        written = "" if path else str(each.get("value") or "")
        value = field(pod, str(path)) if path else referred(written, found, left)
        left -= max(0, len(value) - len(written))
        found[str(each.get("name"))] = value
    return found


def words_of(stated: Sequence[str], known: Mapping[str, str]) -> list[str]:
    """Put variables into the words of a command."""
    found, left = [], LONGEST
    for each in stated:
        found.append(referred(each, known, left))
        left -= max(0, len(found[-1]) - len(each))
    return found


def field(pod: Mapping[str, Any], path: str) -> str:
    """Give a field of a pod as the downward API does."""
    keyed = _KEYED.fullmatch(path)
    if keyed:
        return str(structure.mapping(pod, "metadata", keyed[1]).get(keyed[2], ""))
    *parents, last = path.split(".")
    return str(structure.mapping(pod, *parents).get(last, ""))


def referred(text: str, known: Mapping[str, str], more: int = LONGEST) -> str:
    """Put variables into a command or another variable, where it says `$(NAME)`; one that is not known stays as it is written, and so does a text that would get longer than allowed."""
    if "$" not in text:
        return text
    return _replaced(_REFERENCE, text, lambda found: "$" if found[0] == "$$" else known.get(found[1], found[0]), more)


def _replaced(pattern: re.Pattern[str], text: str, value: Callable[[re.Match[str]], str], more: int) -> str:
    """Replace what a pattern finds, unless that makes the text longer by more than is allowed: variables that name each other twice double it each time."""
    parts: list[str] = []
    end = 0
    for found in pattern.finditer(text):
        put = value(found)
        more -= len(put) - len(found[0])
        if more < 0:
            return text
        parts += (text[end : found.start()], put)
        end = found.end()
    return "".join((*parts, text[end:]))


def expanded(script: str, known: Mapping[str, str]) -> str:
    """Put variables into a script as a shell does: not between single quotes, and nothing for one that is not known."""
    if "$" not in script:
        return script

    def value(found: re.Match[str]) -> str:
        name = found[1] or found[2]
        if not name:
            return found[0]
        said = known.get(name, "")
        return said if _PLAIN.fullmatch(said) else found[0]

    return _replaced(_VARIABLE, script, value, LONGEST)
