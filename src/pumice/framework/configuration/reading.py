"""The common ground of the readers of each format: the document, the catalogue, and the problems found so far."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pumice.api import documents
from pumice.framework.configuration import arguments, catalog, documented, model
from pumice.framework.configuration.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Mapping

MOST_PROBLEMS: Final = 50
_MAP: Final = "a map"
_LIST: Final = "a list"


class Draft:
    """Collects what one file says and what is wrong with it, so that all problems are reported at once."""

    def __init__(
        self, document: documents.Located, known: catalog.Catalog, *, lenient: bool, overlooking: bool = False
    ) -> None:
        """Start with nothing; `lenient` takes a string that parses for what it says, `overlooking` warns of arguments that Volcano ignores."""
        self.document = document
        self.catalog = known
        self.lenient = lenient
        self._overlooking = overlooking
        self.problems: list[model.Problem] = []
        self.warnings: list[model.Problem] = []

    def refuse(self, path: documents.Path, message: str) -> None:
        """Note a mistake; after too many the file is refused at once."""
        self.problems.append(model.Problem(self.document.line_of(path), key_text(path), message))
        if len(self.problems) == MOST_PROBLEMS:
            self.problems.append(model.Problem(0, "", f"only the first {MOST_PROBLEMS} problems are shown"))
            raise self.error()

    def warn(self, path: documents.Path, message: str) -> None:
        """Note something that is allowed and probably not meant; after too many, no more are kept."""
        if len(self.warnings) < MOST_PROBLEMS:
            self.warnings.append(model.Problem(self.document.line_of(path), key_text(path), message))

    def error(self) -> model.ConfigurationError:
        """Return the refusal of the file, in the order of its lines."""
        problems = sorted(self.problems, key=lambda problem: problem.line or 2**63)
        return model.ConfigurationError(tuple(problems), self.document.source)

    def map_at(self, path: documents.Path) -> dict[str, Any]:
        """Return the map at a path; nothing written is an empty one, anything else is refused."""
        value = self._optional(path)
        if isinstance(value, dict):
            return value
        if value is not None:
            self.refuse(path, f"expected {_MAP}, found {documents.described(value)}")
        return {}

    def list_at(self, path: documents.Path) -> list[Any]:
        """Return the list at a path; nothing written is an empty one, anything else is refused."""
        value = self._optional(path)
        if isinstance(value, list):
            return value
        if value is not None:
            self.refuse(path, f"expected {_LIST}, found {documents.described(value)}")
        return []

    def item_at(self, path: documents.Path) -> dict[str, Any] | None:
        """Return a list's item if it is a map; anything else, nothing included, is refused."""
        value = self._optional(path)
        if isinstance(value, dict):
            return value
        self.refuse(path, f"expected {_MAP}, found {documents.described(value)}")
        return None

    def keys_within(self, path: documents.Path, keys: Mapping[str, object], known: Mapping[str, object]) -> None:
        """Refuse every key that is not known."""
        for key in keys:
            if key not in known:
                self.refuse((*path, key), f"unknown key {documents.quoted(key)}{catalog.suggestion(key, known)}")

    def switch_at(self, path: documents.Path) -> bool | None:
        """Read a switch; None if what is written is refused."""
        value = self.document.at(path)
        if isinstance(value, bool):
            return value
        truth = arguments.parse_bool(value) if self.lenient and isinstance(value, str) else None
        if truth is None:
            self.refuse(path, f"expected true or false, found {documents.described(value)}")
        return truth

    def arguments_at(
        self, path: documents.Path, owner: str, declared: tuple[arguments.Argument, ...]
    ) -> dict[str, Any]:
        """Read the arguments of a plugin or an action; what is not written has its default."""
        values = arguments.defaults(declared)
        for key in self.map_at(path):
            here = (*path, key)
            argument = arguments.match(declared, key)
            if argument is None and (why := documented.argument(owner, key)):
                self.warn(here, documented.remark(why))
                continue
            if argument is None:
                names = {known.name: known for known in declared}
                self._object(here, f"{owner} has no argument {documents.quoted(key)}{catalog.suggestion(key, names)}")
                continue
            if argument.fields:
                values[key] = self.arguments_at(here, f"{documents.quoted(key)} of {owner}", argument.fields)
                continue
            reading = arguments.read(argument, self.document, here, lenient=self.lenient)
            if reading.refusal:
                self._object(here, reading.refusal, structured=argument.kind in ("list", "map"))
            else:
                values[key] = reading.value
            if reading.warning:
                self.warn(here, reading.warning)
        return values

    def _object(self, path: documents.Path, message: str, *, structured: bool = False) -> None:
        """Refuse an argument, or warn where it is as if it were not written; of the wrong kind of structure Volcano ends itself."""
        if self._overlooking and not structured:
            self.warn(path, f"{message}{' It' if message.endswith('?') else '; it'} is ignored, as Volcano does")
        else:
            self.refuse(path, message)

    def plugin_settings(self, name: str, values: Mapping[str, Any]) -> Settings:
        """Make what a plugin is told; of a file that is refused nobody is told anything."""
        return Settings() if self.problems else self.catalog.plugins[name].settings(values)

    def names_at(self, path: documents.Path, what: str) -> list[str]:
        """Read a string of names separated by commas, none of which may be empty."""
        value = self._optional(path)
        if not isinstance(value, str):
            found = documents.described(value)
            self.refuse(path, f'expected one string of {what} names separated by commas, such as "a, b", found {found}')
            return []
        names = [piece.strip() for piece in value.split(",")]
        if "" in names:
            position = names.index("") + 1
            self.refuse(path, f"{what} {position} of {len(names)} in {documents.quoted(value)} has an empty name")
        return [name for name in names if name]

    def _optional(self, path: documents.Path) -> Any:
        parent = self.document.at(path[:-1])
        return parent.get(path[-1]) if isinstance(parent, dict) else parent[path[-1]]


def key_text(path: documents.Path) -> str:
    """Write a path as a user would: tiers[0].plugins[1].name."""
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        else:
            plain = step.isprintable() and 0 < len(step) <= documents.SHOWN
            text += ("." if text else "") + (step if plain else documents.quoted(step))
    return text
