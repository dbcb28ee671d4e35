"""Regular expressions of CEL, matched by the evaluator itself: its matcher takes time in proportion to the text, whatever the expression."""

from __future__ import annotations

import functools
import importlib
import re
from typing import Any, Final

_CONFIGURATION: Final = "extensions:\n- name: optional\n- name: regex\n"
_GROUP: Final = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\((?:\?P?<\w+>|(?!\?))", re.DOTALL)


def find(text: str, pattern: str) -> str:
    """Give the first match in a text, empty if there is none."""
    found = find_all(text, pattern)
    return found[0] if found else ""


def find_all(text: str, pattern: str, most: int = -1) -> list[str]:
    """Give the matches in a text, at most so many unless that is negative."""
    answer = _program().eval(data={"text": text, "pattern": _without_groups(pattern)})
    if answer.type() == _evaluator().Type.ERROR:
        raise ValueError(str(answer.value()).partition("\n")[0])
    found: list[str] = answer.plain_value()
    return found if most < 0 else found[:most]


def _without_groups(pattern: str) -> str:
    """Give an expression that matches the same and captures nothing: of one with groups the evaluator would give these."""
    return _GROUP.sub(lambda found: "(?:" if found[0].startswith("(") else found[0], pattern)


@functools.cache
def _program() -> Any:
    cel = _evaluator()
    texts = dict.fromkeys(("text", "pattern"), cel.Type.STRING)
    environment = cel.NewEnv(config=cel.NewEnvConfigFromYaml(_CONFIGURATION), variables=texts)
    return environment.compile("regex.extractAll(text, pattern)")


def _evaluator() -> Any:
    return importlib.import_module("cel_expr_python.cel")
