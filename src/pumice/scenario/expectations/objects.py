"""Expectations about any object: fields by their paths.

```yaml
objects:
  Job a/train: {status.state.phase: Running, status.running: 3}
  Pod a/train-*: {some: 2, spec.nodeName: n1, 'metadata.annotations["volcano.sh/task-spec"]': worker}
  Job.batch a/old: {exists: false}
```
"""

from __future__ import annotations

import difflib
import re
from typing import TYPE_CHECKING, Any, Final

import msgspec

from pumice.api import kinds
from pumice.scenario import reading, view
from pumice.scenario.expectations import paths, values

if TYPE_CHECKING:
    from pumice.scenario.manifests import Stored
    from pumice.scenario.reading import Cursor

_NUMBERS: Final = ("some", "atLeast", "atMost")
_KEYS: Final = ("exists", *_NUMBERS)
_BY_LOWER: Final = {key.lower(): key for key in _KEYS}


class FieldRule(msgspec.Struct, frozen=True, kw_only=True):
    """A path, as written and as read, and the value that must be there; with `regex` a text that must be found in it."""

    path: str
    parts: tuple[paths.Part, ...]
    wanted: Any
    regex: bool = False

    def misses(self, manifest: Stored) -> list[values.Miss]:
        """Give (expected, found) for everything that differs."""
        found = paths.find(manifest, self.parts)
        if not self.regex:
            return values.misses(self.path, self.wanted, found, amount=values.holds_quantities(self.parts))
        if found is not None and re.search(self.wanted, paths.text(found)):
            return []
        return [(f"{self.path}~: {self.wanted}", f"{self.path}: {values.shown(found)}")]


class ObjectRule(msgspec.Struct, frozen=True, kw_only=True):
    """What the objects of a kind that a pattern matches must be; what is None may be anything."""

    line: int
    pattern: str  # as it stands in the file, with the kind
    kind: kinds.Kind
    name: str
    fields: tuple[FieldRule, ...] = ()
    exists: bool | None = None
    some: int | None = None
    at_least: int | None = None
    at_most: int | None = None
    only_absence: bool = False

    def fits(self, number: int) -> bool:
        """Tell whether so many objects are as many as are asked for."""
        return (
            self.some in {None, number}
            and (self.at_least is None or number >= self.at_least)
            and (self.at_most is None or number <= self.at_most)
        )

    @property
    def quantified(self) -> bool:
        """Tell whether a number of matches is asked for instead of all of them."""
        return (self.some, self.at_least, self.at_most) != (None, None, None)

    def misses(self, manifest: Stored) -> list[values.Miss]:
        """Give (expected, found) for everything that an object is not."""
        missed = [("exists: false", "exists: true")] if self.exists is False else []
        return missed + [miss for field in self.fields for miss in field.misses(manifest)]


def read(cursor: Cursor) -> tuple[ObjectRule, ...]:
    """Read a map of `Kind namespace/name` to rules."""
    found = (_read_rule(pattern, entry) for pattern, entry in cursor.entries("a map of Kind namespace/name"))
    return tuple(rule for rule in found if rule is not None)


def check(rules: tuple[ObjectRule, ...], seen: view.View) -> list[view.Mismatch]:
    """Give what does not hold."""
    return [mismatch for rule in rules for mismatch in _check_rule(rule, seen.objects(rule.kind))]


# ---- reading


def _read_rule(pattern: str, cursor: Cursor) -> ObjectRule | None:
    kind_name, _, name = pattern.partition(" ")
    name = name.strip()
    kind = _kind(kind_name, cursor)
    if kind is None:
        return None
    if not name or name.count("/") != kind.namespaced or not all(name.split("/")):
        form = f"{kind_name} namespace/name" if kind.namespaced else f"{kind_name} name"
        scope = "namespaced" if kind.namespaced else "cluster-scoped"
        cursor.refuse(f"{pattern!r} does not name an object: {kind.name} is {scope}, write {form}")
        return None
    entries = dict(cursor.entries("what an object must be"))
    numbers = {key: entries[key].integer() for key in _NUMBERS if key in entries}
    fields = [_read_field(key, entry) for key, entry in entries.items() if key not in _KEYS]
    exists = entries["exists"].boolean() if "exists" in entries else None
    return ObjectRule(
        line=cursor.line,
        pattern=pattern,
        kind=kind,
        name=name,
        fields=tuple(field for field in fields if field is not None),
        exists=exists,
        some=numbers.get("some"),
        at_least=numbers.get("atLeast"),
        at_most=numbers.get("atMost"),
        only_absence=list(entries) == ["exists"] and exists is False,
    )


def _kind(text: str, cursor: Cursor) -> kinds.Kind | None:
    """Find a kind by its name, or by name and group where several groups have it."""
    name, dot, group = text.partition(".")
    same_name = [kind for kind in kinds.KINDS if kind.name == name]
    found = next((kind for kind in same_name if not dot or kind.group == group), None)
    if found is None and same_name:
        known = " or ".join(f"{name}.{kind.group}" if kind.group else name for kind in same_name)
        cursor.refuse(f"no kind {text!r}; write {known}")
    elif found is None:
        cursor.refuse(f"unknown kind {text!r}{reading.suggestion(text, _names(), list_all=False)}")
    return found


def _names() -> tuple[str, ...]:
    return tuple(dict.fromkeys(kind.name for kind in kinds.KINDS))


def _read_field(path: str, cursor: Cursor) -> FieldRule | None:
    near = difflib.get_close_matches(path.lower(), _BY_LOWER, n=1, cutoff=0.85)
    if near:
        cursor.refuse(f"unknown key {path!r} in an object expectation; did you mean {_BY_LOWER[near[0]]!r}?")
        return None
    regex = path.endswith("~")
    bare = path.removesuffix("~")
    try:
        parts = paths.parse(bare)
    except paths.PathError as error:
        cursor.refuse(str(error))
        return None
    return FieldRule(path=bare, parts=parts, wanted=cursor.regex() if regex else cursor.value, regex=regex)


# ---- checking


def _check_rule(rule: ObjectRule, stored: view.Objects) -> list[view.Mismatch]:
    matched = view.select(rule.name, stored)
    if not matched:
        return [] if rule.only_absence else [_mismatch(rule, rule.pattern, _expected(rule), _none(rule, stored))]
    if rule.quantified:
        satisfied = [name for name in matched if not rule.misses(stored[name])]
        if rule.fits(len(satisfied)):
            return []
        names = f": {', '.join(satisfied)}" if satisfied else ""
        found = f"{len(satisfied)} of {len(matched)} matches{names}"
        return [_mismatch(rule, rule.pattern, _expected(rule), found)]
    kind_name = rule.pattern.partition(" ")[0]
    return [_mismatch(rule, f"{kind_name} {name}", *miss) for name in matched for miss in rule.misses(stored[name])]


def _mismatch(rule: ObjectRule, subject: str, expected: str, found: str) -> view.Mismatch:
    return view.Mismatch(line=rule.line, subject=f"objects {subject}", expected=expected, found=found)


def _none(rule: ObjectRule, stored: view.Objects) -> str:
    if not stored:
        return f"no {rule.kind.name} at all"
    shown = sorted(stored)[:5]
    more = f" and {len(stored) - len(shown)} more" if len(stored) > len(shown) else ""
    return f"no such {rule.kind.name} (there is {', '.join(shown)}{more})"


def _expected(rule: ObjectRule) -> str:
    wanted = ["exists: false"] if rule.exists is False else []
    wanted += [f"{field.path}{'~' if field.regex else ''}: {values.shown(field.wanted)}" for field in rule.fields]
    numbers = [
        f"{words} {number}"
        for words, number in (("exactly", rule.some), ("at least", rule.at_least), ("at most", rule.at_most))
        if number is not None
    ]
    return (f"{' and '.join(numbers)} with " if numbers else "") + (", ".join(wanted) or "exists: true")
