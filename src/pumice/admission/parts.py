"""Parts of an object that anybody may have written: read by name, and refused where a value is not of the type that it should be."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pumice.admission import laws
from pumice.api import documents

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pumice.admission.remarks import Path, Remarks


class Part:
    """A value with its place; absent parts are None. What is found wrong goes to the list of remarks.

    `law` is what values are held to as they are read: the schema of the kind, or what Kubernetes asks of a pod.
    """

    __slots__ = ("_law", "_remarks", "path", "value")

    def __init__(self, value: Any, remarks: Remarks, path: Path = (), law: laws.Law = laws.SCHEMA) -> None:
        self.value = value
        self.path = path
        self._remarks = remarks
        self._law = law

    def under(self, law: laws.Law) -> Part:
        """Give the same part, held to another law."""
        return Part(self.value, self._remarks, self.path, law)

    def refuse(self, message: str, *below: str | int) -> None:
        """Note here, or at a part below, what breaks the law that the part is held to."""
        self._remarks.add((*self.path, *below), message, self._law)

    def breaks(self, law: laws.Law, message: str, *below: str | int) -> None:
        """Note here, or at a part below, what breaks a law."""
        self._remarks.add((*self.path, *below), message, law)

    def __bool__(self) -> bool:
        return self.value is not None

    def _at(self, name: str) -> Any:
        """Give the value below without making a part of it: most values are as they should be."""
        value = self.value
        return value.get(name) if type(value) is dict else None

    def part(self, *steps: str | int) -> Part:
        """Give the part below, whatever it is."""
        value = self.value
        for step in steps:
            value = value.get(step) if isinstance(value, dict) else None
        return Part(value, self._remarks, (*self.path, *steps), self._law)

    def record(self, *steps: str) -> Part:
        """Give a part below that is an object or absent."""
        found = self
        for step in steps:
            found = Part(found._at(step), self._remarks, (*found.path, step), self._law)
            if found.value is not None and type(found.value) is not dict:
                found.breaks(laws.SCHEMA, f"must be an object, not {type_of(found.value)}")
                found.value = None
        return found

    def items(self, name: str) -> list[Part]:
        """Give the objects of a list."""
        found = []
        for each in self.elements(name):
            if isinstance(each.value, dict):
                found.append(each)
            else:
                each.breaks(laws.SCHEMA, f"must be an object, not {type_of(each.value)}")
        return found

    def elements(self, name: str) -> list[Part]:
        """Give the elements of a list, whatever they are."""
        value = self._at(name)
        if value is None:
            return []
        if not isinstance(value, list):
            self.breaks(laws.SCHEMA, f"must be a list, not {type_of(value)}", name)
            return []
        return [Part(each, self._remarks, (*self.path, name, index), self._law) for index, each in enumerate(value)]

    def entries(self, name: str) -> Iterator[tuple[str, Part]]:
        """Give the entries of a map."""
        below = self.record(name)
        for key, value in (below.value or {}).items():
            yield str(key), Part(value, self._remarks, (*below.path, key), self._law)

    def text(self, name: str) -> str:
        """Give a string; an absent one is empty."""
        value = self._at(name)
        if value is None or isinstance(value, str):
            return value or ""
        self.breaks(laws.SCHEMA, f"must be a string, not {type_of(value)}", name)
        return ""

    def texts(self, name: str) -> list[tuple[str, Part]]:
        """Give the strings of a list."""
        found = []
        for each in self.elements(name):
            if isinstance(each.value, str):
                found.append((each.value, each))
            else:
                each.breaks(laws.SCHEMA, f"must be a string, not {type_of(each.value)}")
        return found

    def whole(self, name: str, *, least: int | None = None, most: int | None = None) -> int | None:
        """Give an integer, or None where there is none or it is out of bounds."""
        value = self._at(name)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int):
            self.breaks(laws.SCHEMA, f"must be an integer, not {type_of(value)}", name)
            return None
        if least is not None and value < least:
            self.refuse(f"is {value}, and must be at least {least}", name)
            return None
        if most is not None and value > most:
            self.refuse(f"is {value}, and must be at most {most}", name)
            return None
        return value

    def truth(self, name: str) -> bool:
        """Give a boolean; an absent one is false."""
        value = self._at(name)
        if value is None or isinstance(value, bool):
            return bool(value)
        self.breaks(laws.SCHEMA, f"must be true or false, not {type_of(value)}", name)
        return False

    def among(self, name: str, allowed: tuple[str, ...]) -> str:
        """Give a string that must be one of a few, if it is there."""
        value = self.text(name)
        if value and value not in allowed:
            near = documents.nearest(value, allowed)
            hint = f"; did you mean {near}?" if near else ""
            self.refuse(f"is {documents.quoted(value)}, and must be one of {', '.join(allowed)}{hint}", name)
        return value

    def required(self, name: str) -> str:
        """Give a string that must be there."""
        value = self._at(name)
        if value is None or value == "":
            self.refuse("is missing, and must be given", name)
            return ""
        return self.text(name)


def type_of(value: Any) -> str:
    """Name the type of a value and not the value, which may be a secret: messages go to logs."""
    match value:
        case None:
            return "nothing"
        case bool():
            return "a boolean"
        case int():
            return "an integer"
        case float():
            return "a number"
        case str():
            return "a string"
        case list():
            return f"a list of {len(value)}"
        case dict():
            return f"a map of {len(value)}"
        case _:
            return f"a {type(value).__name__}"
