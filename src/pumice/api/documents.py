"""YAML as Kubernetes' own tools read it, with the line of every key and value.

Plain scalars follow Go's yaml.v2: `y`, `n`, `on`, `off` are booleans, `0o17` and `017` are octal, `1e3` is a float, `12:30:45` and dates
stay strings. Whoever reads YAML reads it here, because what could harm a reader is bounded here: the size of the text, the number of directives (libyaml compares
each with all others), the depth of nesting, the number of values, and how much aliases may copy. All of it is counted while the parser's events come, before anything
is built of them.
"""

from __future__ import annotations

import difflib
import json
import re
from typing import TYPE_CHECKING, Any, Final

import yaml

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

Path = tuple[str | int, ...]

MAX_BYTES: Final = 4 * 1024 * 1024
MAX_DEPTH: Final = 100
MAX_VALUES: Final = 500_000
MAX_ALIASED: Final = 100_000
MAX_DIRECTIVES: Final = 100
MAX_NUMBER: Final = 80
SHOWN: Final = 60

LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_TAG: Final = "tag:yaml.org,2002:"
_TRUE: Final = ("y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON")
_FALSE: Final = ("n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF")
_WORDS: Final[dict[str, bool | float | None]] = {
    **dict.fromkeys(_TRUE, True),
    **dict.fromkeys(_FALSE, False),
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), float("nan")),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), float("inf")),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), float("-inf")),
}
_INTEGER: Final = re.compile(
    r"(?P<sign>[-+]?)(?:0[xX](?P<hex>[0-9a-fA-F]+)|0[bB](?P<bin>[01]+)|0[oO]?(?P<oct>[0-7]+)|(?P<dec>0|[1-9][0-9]*))"
)
_BASES: Final = {"hex": 16, "bin": 2, "oct": 8, "dec": 10}
_DIRECTIVE: Final = re.compile(
    "(?:\\A|[\r\n\x85\u2028\u2029])\ufeff?%"
)  # at the begin of a line, in all ways to end one
_FLOAT: Final = re.compile(r"[-+]?(?=\.?[0-9])[0-9]*(?:\.[0-9]*)?(?:[eE][-+]?[0-9]+)?")


class DocumentError(ValueError):
    """A text that is not acceptable YAML, with the line where it went wrong."""

    def __init__(self, source: str, line: int, message: str) -> None:
        super().__init__(f"{source}: line {line}: {message}")
        self.source = source
        self.line = line
        self.message = message


class Mark:
    """Where one value was written, and for a scalar as what."""

    __slots__ = ("children", "key_line", "line", "text")

    def __init__(self, line: int, text: str | None = None, children: dict[str | int, Mark] | None = None) -> None:
        self.line = line
        self.key_line = line
        self.text = text
        self.children = children


class Located:
    """One document: plain data, and the line of every part of it."""

    __slots__ = ("_mark", "data", "source")

    def __init__(self, data: Any, mark: Mark, source: str) -> None:
        self.data = data
        self.source = source
        self._mark = mark

    def line_of(self, path: Path) -> int:
        """Return the line of the key or list item at a path; of its nearest ancestor if there is no such part."""
        return self._nearest(path).key_line

    def value_line_of(self, path: Path) -> int:
        """Return the line on which the value at a path begins, which may follow that of its key."""
        return self._nearest(path).line

    def text_of(self, path: Path) -> str | None:
        """Return a scalar as it was written, None for anything else or where nothing is."""
        mark: Mark | None = self._mark
        for step in path:
            if mark is None or mark.children is None:
                return None
            mark = mark.children.get(step)
        return mark.text if mark is not None else None

    def at(self, path: Path) -> Any:
        """Return the value at a path that exists."""
        value = self.data
        for step in path:
            value = value[step]
        return value

    def _nearest(self, path: Path) -> Mark:
        mark = self._mark
        for step in path:
            found = mark.children.get(step) if mark.children is not None else None
            if found is None:
                break
            mark = found
        return mark


def load_all(text: str, source: str, most_values: int = MAX_VALUES) -> list[Located]:
    """Read every document of a text that has content."""
    try:
        size = len(text.encode())
    except UnicodeEncodeError as error:
        line = text.count("\n", 0, error.start) + 1
        raise DocumentError(source, line, f"character U+{ord(text[error.start]):04X} is not allowed in YAML") from error
    if size > MAX_BYTES:
        raise DocumentError(source, 1, f"the text has {size} bytes; at most {MAX_BYTES} are read")
    if (directives := len(_DIRECTIVE.findall(text)) if "%" in text else 0) > MAX_DIRECTIVES:
        raise DocumentError(source, 1, f"{directives} lines begin with %; at most {MAX_DIRECTIVES} directives are read")
    composer = _Composer(text, source, most_values)
    return [document for document in composer.documents() if document.data is not None]


def load_one(data: bytes, source: str, most_values: int = MAX_VALUES) -> Any:
    """Read a text that holds one document; None if it is empty."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise DocumentError(source, line, f"is not UTF-8 text: {error.reason} at byte {error.start}") from None
    found = load_all(text, source, most_values)
    if len(found) > 1:
        raise DocumentError(source, found[1].line_of(()), "holds another document, and one is read")
    return found[0].data if found else None


def nearest(word: str, candidates: Iterable[str]) -> str | None:
    """Return the candidate that was probably meant, if any is close enough."""
    if len(word) > SHOWN:
        return None
    by_lower: dict[str, str] = {}
    for candidate in candidates:
        by_lower.setdefault(candidate.lower(), candidate)
    found = difflib.get_close_matches(word.lower(), list(by_lower), n=1, cutoff=0.6)
    return by_lower[found[0]] if found else None


def quoted(text: str) -> str:
    """Put a text of any length in quotes for a message."""
    return json.dumps(text if len(text) <= SHOWN else text[: SHOWN - 1] + "…", ensure_ascii=False)


def described(value: Any) -> str:
    """Name a value and its type for a message."""
    match value:
        case None:
            return "nothing"
        case bool():
            return f"the boolean {str(value).lower()}"
        case int():
            return f"the integer {value}"
        case float():
            return f"the number {value}"
        case str():
            return f"the string {quoted(value)}"
        case list():
            return f"a list of {len(value)}"
        case dict():
            return f"a map of {len(value)}"
        case _:
            return f"a {type(value).__name__}"


def plain_scalar(text: str) -> bool | int | float | str | None:
    """Give an unquoted scalar the type that Go's yaml.v2 gives it."""
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in "+-.0123456789":
        return text
    bare = text if text[0] == "." else text.replace("_", "")
    if len(bare) <= MAX_NUMBER and (found := _INTEGER.fullmatch(bare)):
        base = found.lastgroup or "dec"
        number = int(found["sign"] + found[base], _BASES[base])
        if -(2**63) <= number < 2**63 or (number < 2**64 and not found["sign"]):
            return number
    if _FLOAT.fullmatch(bare):
        amount = float(bare)
        return amount if abs(amount) != float("inf") else text
    return text


class _Composer:
    """Builds data and marks from parser events, in one pass and without the recursion of PyYAML's own composer."""

    def __init__(self, text: str, source: str, most_values: int) -> None:
        self._source = source
        self._most = self._left = most_values
        self._text = text
        self._events: Iterator[yaml.Event] = yaml.parse(text, Loader=LOADER)
        self._anchors: dict[str, tuple[Any, Mark] | None] = {}
        self._aliased = 0

    def documents(self) -> Iterator[Located]:
        while not isinstance(event := self._next(), yaml.StreamEndEvent):
            if isinstance(event, yaml.DocumentStartEvent):
                self._anchors = {}
                data, mark = self._value(self._next(), 0)
                yield Located(data, mark, self._source)

    def _next(self) -> yaml.Event:
        try:
            return next(self._events)
        except yaml.reader.ReaderError as error:
            line = self._text.count("\n", 0, error.position) + 1
            raise DocumentError(self._source, line, f"{error.reason}: {error.character!r}") from error
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            message = ", ".join(part for part in (error.context, error.problem) if part)
            raise DocumentError(self._source, mark.line + 1 if mark else 1, message) from error
        except (yaml.YAMLError, ValueError, OverflowError) as error:
            raise DocumentError(self._source, 1, f"unreadable YAML: {str(error)[:SHOWN]}") from error

    def _fail(self, event: yaml.Event, message: str) -> DocumentError:
        return DocumentError(self._source, _line(event), message)

    def _value(self, event: yaml.Event, depth: int) -> tuple[Any, Mark]:
        if depth > MAX_DEPTH:
            raise self._fail(event, f"nested deeper than {MAX_DEPTH} levels")
        self._left -= 1
        if self._left < 0:
            raise self._fail(event, f"there are more than {self._most} values up to here")
        if isinstance(event, yaml.AliasEvent):
            return self._alias(event, depth)
        anchor: str | None = getattr(event, "anchor", None)
        if anchor is not None:
            self._anchors[anchor] = None
        if isinstance(event, yaml.ScalarEvent):
            made: tuple[Any, Mark] = self._scalar(event), Mark(_line(event), event.value)
        elif isinstance(event, yaml.SequenceStartEvent):
            made = self._sequence(event, depth)
        elif isinstance(event, yaml.MappingStartEvent):
            made = self._mapping(event, depth)
        else:  # pragma: no cover - the parser's grammar allows no other event here
            raise self._fail(event, f"unexpected {type(event).__name__}")
        if anchor is not None:
            self._anchors[anchor] = made
        return made

    def _scalar(self, event: yaml.ScalarEvent) -> bool | int | float | str | None:
        text: str = event.value
        tag: str | None = event.tag
        if tag is None:
            return plain_scalar(text) if event.implicit[0] else text
        kind = tag.removeprefix(_TAG)
        if kind in ("!", "str", "timestamp"):
            return text
        value = plain_scalar(text)
        if kind == "float" and isinstance(value, int) and not isinstance(value, bool):
            return float(value)
        if kind not in ("int", "float", "bool", "null"):
            raise self._fail(event, f"tag {quoted(tag)} is not supported")
        if type(value).__name__ != {"null": "NoneType"}.get(kind, kind):
            raise self._fail(event, f"{quoted(text)} is not of the type !!{kind}")
        return value

    def _sequence(self, event: yaml.SequenceStartEvent, depth: int) -> tuple[list[Any], Mark]:
        self._check_tag(event, "seq")
        data: list[Any] = []
        children: dict[str | int, Mark] = {}
        while not isinstance(item := self._next(), yaml.SequenceEndEvent):
            value, children[len(data)] = self._value(item, depth + 1)
            data.append(value)
        return data, Mark(_line(event), None, children)

    def _mapping(self, event: yaml.MappingStartEvent, depth: int) -> tuple[dict[str, Any], Mark]:
        self._check_tag(event, "map")
        data: dict[str, Any] = {}
        children: dict[str | int, Mark] = {}
        merged: tuple[yaml.Event, Any, Mark] | None = None
        while not isinstance(item := self._next(), yaml.MappingEndEvent):
            merging = (
                isinstance(item, yaml.ScalarEvent) and item.value == "<<" and item.implicit[0] and item.tag is None
            )
            key = "<<" if merging else self._key(item, depth)
            first = merged[0] if merging and merged else None
            if first is not None or key in data:
                line = _line(first) if first is not None else children[key].key_line
                raise self._fail(item, f"key {quoted(key)} is written twice; it is already on line {line}")
            value, mark = self._value(self._next(), depth + 1)
            if merging:
                merged = item, value, mark
                continue
            mark.key_line = _line(item)
            data[key], children[key] = value, mark
        if merged is not None:
            self._merge(merged, data, children)
        return data, Mark(_line(event), None, children)

    def _key(self, event: yaml.Event, depth: int) -> str:
        value, mark = self._value(event, depth + 1)
        match value:
            case str():
                return value
            case bool():
                return "true" if value else "false"
            case int():
                return str(value)
            case float():
                return mark.text or ""
        raise self._fail(event, f"a key must be a name, not {described(value)}")

    def _merge(
        self, merged: tuple[yaml.Event, Any, Mark], data: dict[str, Any], children: dict[str | int, Mark]
    ) -> None:
        event, value, mark = merged
        parts = mark.children or {}
        sources = [(value, mark)] if not isinstance(value, list) else [(part, parts[n]) for n, part in enumerate(value)]
        for source, marks in sources:
            if not isinstance(source, dict):
                raise self._fail(event, f'"<<" merges maps, not {described(source)}')
            for key, part in source.items():
                if key not in data:
                    data[key], children[key] = part, (marks.children or {})[key]

    def _alias(self, event: yaml.AliasEvent, depth: int) -> tuple[Any, Mark]:
        name = event.anchor or ""
        if name not in self._anchors:
            raise self._fail(event, f"alias *{name} has no anchor &{name} before it")
        target = self._anchors[name]
        if target is None:
            raise self._fail(event, f"alias *{name} stands inside the value it names")
        return self._copied(event, target[0], depth), Mark(_line(event), target[1].text, target[1].children)

    def _copied(self, event: yaml.Event, value: Any, depth: int) -> Any:
        self._aliased += 1
        if self._aliased > MAX_ALIASED:
            raise self._fail(event, f"aliases stand for more than {MAX_ALIASED} values")
        if depth > MAX_DEPTH:
            raise self._fail(event, f"nested deeper than {MAX_DEPTH} levels by an alias")
        if isinstance(value, dict):
            return {key: self._copied(event, part, depth + 1) for key, part in value.items()}
        if isinstance(value, list):
            return [self._copied(event, part, depth + 1) for part in value]
        return value

    def _check_tag(self, event: yaml.CollectionStartEvent, expected: str) -> None:
        if event.tag not in (None, "!", _TAG + expected):
            raise self._fail(event, f"tag {quoted(event.tag)} is not supported")


def _line(event: yaml.Event) -> int:
    return event.start_mark.line + 1 if event.start_mark is not None else 1
