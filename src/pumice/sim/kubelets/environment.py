"""The environment of a simulated container: its variables, and how commands and scripts refer to them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from pumice.sim import structure

if TYPE_CHECKING:
    from collections.abc import Mapping

_REFERENCE: Final = re.compile(r"\$\$|\$\(([-._a-zA-Z][-._a-zA-Z0-9]*)\)")
_VARIABLE: Final = re.compile(r"'[^']*'|\\.|\$\{([a-zA-Z_]\w*)\}|\$([a-zA-Z_]\w*)", re.ASCII)
_KEYED: Final = re.compile(r"metadata\.(labels|annotations)\['(.*)'\]")
_PLAIN: Final = re.compile(r"[^'\"\\;&|<>`$()\n]*")


def of_container(container: Mapping[str, Any], pod: Mapping[str, Any]) -> dict[str, str]:
    """Give the variables of a container, those that name fields of its pod included; what stands in other objects is not looked up."""
    found = {"HOSTNAME": str(structure.mapping(pod, "metadata").get("name", ""))}
    for each in container.get("env") or ():
        path = structure.mapping(each, "valueFrom", "fieldRef").get("fieldPath")
        value = field(pod, str(path)) if path else referred(str(each.get("value") or ""), found)
        found[str(each.get("name"))] = value
    return found


def field(pod: Mapping[str, Any], path: str) -> str:
    """Give a field of a pod as the downward API does."""
    keyed = _KEYED.fullmatch(path)
    if keyed:
        return str(structure.mapping(pod, "metadata", keyed[1]).get(keyed[2], ""))
    *parents, last = path.split(".")
    return str(structure.mapping(pod, *parents).get(last, ""))


def referred(text: str, known: Mapping[str, str]) -> str:
    """Put variables into a command or another variable, where it says `$(NAME)`; one that is not known stays as it is written."""
    if "$" not in text:
        return text
    return _REFERENCE.sub(lambda found: "$" if found[0] == "$$" else known.get(found[1], found[0]), text)


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

    return _VARIABLE.sub(value, script)
