"""The JSON paths of printer columns: fields, indices, slices such as `[-1:]`, `[*]`, and filters by equality such as `[?(@.type=="Ready")]`."""

from __future__ import annotations

import functools
import json
import re
from typing import Any

_STEP = re.compile(
    r"\.(?P<field>[A-Za-z0-9_-]+)|\['(?P<quoted>[^']+)'\]|\.?\[(?P<index>-?\d+)\]|\.?\[(?P<slice>-?\d*:-?\d*)\]|\.?(?P<all>\[\*\]|\.\*)"
    r"|\[\?\(@\.(?P<key>[A-Za-z0-9_.-]+)\s*==\s*(?P<value>\"[^\"]*\"|'[^']*'|[^)]+)\)\]"
)
_DIGITS = 10  # as many lead beyond any list


@functools.lru_cache(maxsize=1024)
def _steps(path: str) -> tuple[dict[str, str | None], ...]:
    text = path.replace("\\.", "\0")
    return tuple(
        {k: v.replace("\0", ".") if v else v for k, v in each.groupdict().items()}
        for each in _STEP.finditer(_escaped(text))
    )


def _escaped(text: str) -> str:
    """Let an escaped dot be part of a name."""
    return re.sub(r"\.([A-Za-z0-9_-]*\0[A-Za-z0-9_\0/-]*)", lambda match: f"['{match[1]}']", text)


def find(value: Any, path: str) -> list[Any]:
    """Give everything that a path leads to."""
    found = [value]
    for step in _steps(path):
        found = [below for each in found for below in _below(each, step)]
    return found


def _below(value: Any, step: dict[str, str | None]) -> list[Any]:
    name = step["field"] or step["quoted"]
    if name is not None:
        return [value[name]] if isinstance(value, dict) and name in value else []
    if step["index"] is not None:
        place = int(step["index"][:_DIGITS])
        return [value[place]] if isinstance(value, list) and -len(value) <= place < len(value) else []
    if step["slice"] is not None:
        first, last = (int(text[:_DIGITS]) if text else None for text in step["slice"].split(":"))
        return value[first:last] if isinstance(value, list) else []
    if step["all"] is not None:
        return list(value) if isinstance(value, list) else list(value.values()) if isinstance(value, dict) else []
    wanted = _literal(step["value"] or "")
    items = value if isinstance(value, list) else []
    return [each for each in items if _field(each, (step["key"] or "").split(".")) == wanted]


def _field(value: Any, path: list[str]) -> Any:
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _literal(text: str) -> Any:
    if text[:1] == "'":
        return text[1:-1]
    try:
        return json.loads(text)
    except ValueError:
        return text
