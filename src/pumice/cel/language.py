"""The three calls: compile an expression, evaluate it, and the error of either.

The evaluator comes with the extra `cel`. Its time is bounded by the length of an expression and by the number of iterations that it allows itself.
"""

from __future__ import annotations

import functools
import importlib
import re
from typing import TYPE_CHECKING, Any, Final

from pumice.cel import functions

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from types import ModuleType

LONGEST: Final = 10 * 1024
MISSING: Final = (
    "CEL expressions are evaluated by the package cel-expr-python, which is not installed: install pumice[cel]"
)
_SHOWN: Final = 300
_JOINING: Final = re.compile(r"\.\s*(?:replace|join|format)\s*\(")
_LOOPING: Final = re.compile(
    r"\.\s*(?:all|exists|exists_one|existsOne|filter|map|transformList|sortBy|bind|optMap|optFlatMap)\s*\("
)
_LONG_RANGE: Final = re.compile(r"\blists\s*\.\s*range\s*\((?!\s*\d{1,2}\s*\))")
_FLATTENING: Final = re.compile(r"\.\s*flatten\s*\(")
_LITERALS: Final = (
    r'[rR][bB]?"{3}.*?"{3}', r"[rR][bB]?'{3}.*?'{3}", r'[rR][bB]?"[^"\n]*"', r"[rR][bB]?'[^'\n]*'",
    r'"{3}(?:\\.|[^\\])*?"{3}', r"'{3}(?:\\.|[^\\])*?'{3}", r'"(?:\\.|[^"\\])*"', r"'(?:\\.|[^'\\])*'", r"//[^\n]*",
)  # fmt: skip
_CALLS: Final = re.compile(rf"{'|'.join(_LITERALS)}|\.\s*(?P<name>indexOf|lastIndexOf)(?=\s*\()", re.DOTALL)
_RENAMED: Final = {"indexOf": functions.INDEX, "lastIndexOf": functions.LAST_INDEX}
_NUMBERS: Final = r"'\((?:int|uint|double), (?:int|uint|double)\)'"
_MIXED: Final = re.compile(rf"found no matching overload for '_(?:<|<=|>|>=)_' applied to {_NUMBERS}")
_MAPPING: Final = re.compile(r"\.\s*transformMap(?:Entry)?\s*\(")
_MOST_JOINS: Final = 2
_MOST_LOOPS: Final = 3
_LONGEST_JOINING: Final = 2048


class CelError(ValueError):
    """An expression that cannot be compiled or evaluated, and why."""


class MissingError(CelError):
    """There is nothing that evaluates expressions; the message names what to install."""


class Program:
    """A compiled expression."""

    __slots__ = ("_compiled", "_error", "returns")

    def __init__(self, compiled: Any, error: Any) -> None:
        self._compiled = compiled
        self._error = error
        self.returns: str = compiled.return_type().name().lower()

    def evaluate(self, values: Mapping[str, Any]) -> Any:
        """Evaluate with some variables, or raise the `CelError` that says why not."""
        try:
            found = self._compiled.eval(data=values)
        except Exception as error:  # noqa: BLE001  whatever the evaluator raises is an error of the expression or of a value
            raise CelError(_first_line(error)) from None
        if found.type() == self._error:
            raise CelError(_first_line(found.value()))
        return found.plain_value()


class Language:
    """Expressions over some variables, all of any type, with the functions of Kubernetes."""

    def __init__(self, variables: Iterable[str]) -> None:
        cel = evaluator()
        self._error = cel.Type.ERROR
        self._environment = cel.NewEnv(
            config=cel.NewEnvConfigFromYaml(_CONFIGURATION),
            variables=dict.fromkeys(variables, cel.Type.DYN),
            functions=_declared(cel),
        )

    def compile(self, expression: str) -> Program:
        """Compile an expression, or raise the `CelError` that says why not."""
        size = len(expression.encode(errors="replace"))
        if size > LONGEST:
            raise CelError(f"it has {size} bytes; at most {LONGEST} are read")
        if _may_grow(expression):
            raise CelError(
                "it puts texts or lists together inside loops, or again and again, and what it makes may be too large"
            )
        if _MAPPING.search(expression):
            raise CelError("transformMap and transformMapEntry are not evaluated here")
        renamed = _renamed(expression)
        try:
            return Program(self._environment.compile(renamed), self._error)
        except Exception as error:  # noqa: BLE001  the evaluator says everything by one kind of exception
            if wrong := _wrong(error):
                raise CelError(_first_line(wrong)) from None
        # Kubernetes compares numbers of all types; nothing else was wrong with the types, so they need not be checked.
        return Program(self._environment.compile(renamed, disable_check=True), self._error)


_EXTENSIONS: Final = {"bindings": "0", "strings": "2", "optional": "latest", "lists": "latest", "sets": "latest", "two-var-comprehensions": "latest"}  # fmt: skip
_CONFIGURATION: Final = "extensions:\n" + "".join(
    f"- name: {name}\n  version: {version}\n" for name, version in _EXTENSIONS.items()
)


def evaluator() -> ModuleType:
    """Return the evaluator, or raise the `MissingError` that names the extra."""
    try:
        return importlib.import_module("cel_expr_python.cel")
    except ImportError:
        raise MissingError(MISSING) from None


def is_installed() -> bool:
    """Tell whether expressions can be evaluated at all."""
    try:
        evaluator()
    except MissingError:
        return False
    return True


@functools.lru_cache(maxsize=16)
def over(*variables: str) -> Language:
    """Return the language over some variables; it is the same for everybody, and making it takes a while."""
    return Language(variables)


def _may_grow(expression: str) -> bool:
    """Tell whether an expression could make something that is larger than memory: the evaluator bounds iterations, not sizes."""
    joins = len(_JOINING.findall(expression))
    loops = len(_LOOPING.findall(expression))
    if _LONG_RANGE.search(expression) or (loops and _FLATTENING.search(expression)):
        return True
    if joins:
        return joins > _MOST_JOINS or loops > 1 or len(expression) > _LONGEST_JOINING
    return loops > _MOST_LOOPS and "+" in expression


def _declared(cel: ModuleType) -> list[Any]:
    """Declare the functions of Kubernetes for the evaluator."""
    kinds = cel.Type
    value = kinds.Map(kinds.STRING, kinds.STRING)
    types = {
        "string": kinds.STRING,
        "int": kinds.INT,
        "bool": kinds.BOOL,
        "double": kinds.DOUBLE,
        "list": kinds.List(kinds.DYN),
        "value": value,
        "any": kinds.DYN,
        "duration": kinds.DURATION,
        "timestamp": kinds.TIMESTAMP,
    }
    by_name: dict[str, list[Any]] = {}
    for index, each in enumerate(functions.FUNCTIONS):
        overload = cel.Overload(
            f"pumice_{index}",
            return_type=types[each.returns],
            parameters=[types[name] for name in each.takes],
            is_member=each.is_member,
            impl=each.answers,
        )
        by_name.setdefault(each.name, []).append(overload)
    return [cel.FunctionDecl(name, overloads) for name, overloads in by_name.items()]


def _renamed(expression: str) -> str:
    """Call functions by the names that they have here, which are as long as those that they are written with."""

    def told(found: re.Match[str]) -> str:
        name = found["name"]
        return found[0].replace(name, _RENAMED[name]) if name else found[0]

    return _CALLS.sub(told, expression)


def _wrong(error: Exception) -> str:
    """Give the first thing that is wrong with an expression; to compare numbers of two types is not."""
    lines = str(error).splitlines()
    told = [line for line in lines if "ERROR: " in line] or lines[:1]
    return next((line for line in told if not _MIXED.search(line)), "")


def _first_line(error: object) -> str:
    """Say an error in a line: the evaluator draws the place below."""
    text = str(error).strip()
    place, _, _ = text.partition("\n")
    for written, known in _RENAMED.items():
        place = place.replace(known, written)
    place = place.removeprefix("INVALID_ARGUMENT: ").removeprefix("ERROR: ").removeprefix("<input>:")
    return place if len(place) <= _SHOWN else place[: _SHOWN - 1] + "…"
