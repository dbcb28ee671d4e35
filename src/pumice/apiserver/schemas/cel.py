"""Evaluate the validation rules of custom resources: the part of CEL that such rules are mostly made of.

Literals, fields, indices, arithmetic, comparison, `in`, `? :`, `has`, `size`, `all`, `exists`, `exists_one`, `filter`, `map`, and the plain functions of texts.
A rule that uses anything else is refused by name when its definition is created, and never when an object comes.
"""

from __future__ import annotations

import functools
import operator
import re
from typing import TYPE_CHECKING, Any, Final

from pumice.apiserver.schemas import bounded_patterns

if TYPE_CHECKING:
    from collections.abc import Callable

Document = dict[str, Any]
Scope = dict[str, Any]
Evaluate = "Callable[[Scope], Any]"

_TOKEN: Final = re.compile(
    r"\s*(?:(?P<number>\d+\.\d+|\d+u?)|(?P<text>r?'(?:[^'\\]|\\.)*'|r?\"(?:[^\"\\]|\\.)*\")"
    r"|(?P<name>[A-Za-z_][A-Za-z0-9_]*)|(?P<sign>&&|\|\||[<>=!]=|[-+*/%<>!?:.,()\[\]{}])|(?P<rest>\S))"
)
_LEVELS: Final = (("||",), ("&&",), ("==", "!=", "<", "<=", ">", ">=", "in"), ("+", "-"), ("*", "/", "%"))
_MACROS: Final = frozenset({"all", "exists", "exists_one", "filter", "map"})
LONGEST: Final = 16_384
MOST_TOKENS: Final = 4_000
MOST_STEPS: Final = 200_000
"""How many items of lists and maps all rules about one object may look at, letters and items that they put together included."""
Budget = list[int]
_STEPS: Final = ""  # the name of what is left of them; no rule can name it
_WHOLE: Final = 1 << 63


class CelError(ValueError):
    """A rule that is not evaluated here, and what of it."""


class _Failure(Exception):  # noqa: N818  what CEL calls an error of the evaluation
    """A rule that cannot be evaluated for this value, such as one that reads a missing field."""


@functools.lru_cache(maxsize=4096)
def parse(rule: str) -> Callable[[Scope], Any]:
    """Turn a rule into a function, or refuse it."""
    if len(rule) > LONGEST:
        raise CelError(f"it has {len(rule)} characters; at most {LONGEST} are read")
    parser = _Parser(rule)
    try:
        found = parser.ternary()
    except RecursionError:
        raise CelError("it is nested too deeply") from None
    if parser.peek():
        raise CelError(f"{parser.peek()!r} is not expected there")
    return found


_LITERAL: Final = re.compile(r"r?'(?:[^'\\]|\\.)*'|r?\"(?:[^\"\\]|\\.)*\"")
_SELECTION: Final = re.compile(r"(?<![\w.])(?:self|oldSelf)((?:\.[A-Za-z_]\w*)+)(\s*\()?")


def undefined(rule: str, schema: Document) -> str:
    """Name the first field that a rule reads of a value and its schema does not have, or nothing."""
    for found in _SELECTION.finditer(_LITERAL.sub("''", rule)):
        names = found[1].split(".")[1:]
        below: Any = schema
        for name in names[:-1] if found[2] else names:
            stated = below.get("properties")
            if not isinstance(stated, dict) or name.startswith("__"):
                break  # a map, a value of any form, or a name that is written in another way
            if name not in stated:
                return "" if _is_open(below) else name
            below = stated[name]
    return ""


def _is_open(schema: Document) -> bool:
    """Tell whether a value has fields that its schema does not name."""
    unknown = schema.get("x-kubernetes-preserve-unknown-fields") or schema.get("additionalProperties")
    return bool(unknown or schema.get("x-kubernetes-embedded-resource") or schema.get("x-kubernetes-int-or-string"))


def budget() -> Budget:
    """Give what the rules about one object may spend together."""
    return [MOST_STEPS]


def violations(rules: list[Document], value: Any, old: Any, left: Budget | None = None) -> list[tuple[str, str]]:
    """Give reason and message of every rule that a value breaks; rules about a change are asked only where there was something."""
    found = []
    left = budget() if left is None else left
    for rule in rules:
        text = rule["rule"]
        if "oldSelf" in text and old is None:
            continue
        try:
            scope = {"self": value, "oldSelf": old, _STEPS: left}
            kept = parse(text)(scope)
            message = _message(rule, scope)
        except (_Failure, RecursionError) as problem:
            kept, message = False, f"{problem} evaluating rule: {text}"
        if kept is not True:
            found.append((rule.get("reason", "FieldValueInvalid"), message))
    return found


def condition(rule: str, scope: Scope) -> bool:
    """Tell whether a condition over some variables holds; raise `CelError` where it cannot be told."""
    try:
        return _boolean(parse(rule)({**scope, _STEPS: [MOST_STEPS]}))
    except (_Failure, RecursionError) as problem:
        raise CelError(str(problem)) from None


def _message(rule: Document, scope: Scope) -> str:
    if rule.get("messageExpression"):
        return str(parse(rule["messageExpression"])(scope))[:LONGEST]
    return rule.get("message") or f"failed rule: {rule['rule']}"


class _Parser:
    """Reads a rule from left to right; each method gives a function of the scope."""

    def __init__(self, rule: str) -> None:
        self._tokens = [(match.lastgroup or "", match.group(match.lastgroup or 0)) for match in _TOKEN.finditer(rule)]
        self._at = 0
        if wrong := next((text for kind, text in self._tokens if kind == "rest"), ""):
            raise CelError(f"{wrong!r} is no part of an expression")
        if len(self._tokens) > MOST_TOKENS:
            raise CelError(f"it has {len(self._tokens)} parts; at most {MOST_TOKENS} are read")

    def peek(self) -> str:
        """Give the token that comes, or nothing at the end."""
        return self._tokens[self._at][1] if self._at < len(self._tokens) else ""

    def ternary(self) -> Callable[[Scope], Any]:
        """Read a whole expression."""
        condition = self._binary(0)
        if not self._accept("?"):
            return condition
        yes = self.ternary()
        self._expect(":")
        no = self.ternary()
        return lambda scope: yes(scope) if _boolean(condition(scope)) else no(scope)

    def _binary(self, level: int) -> Callable[[Scope], Any]:
        if level == len(_LEVELS):
            return self._unary()
        left = self._binary(level + 1)
        while self.peek() in _LEVELS[level]:
            sign = self._next()
            left = _joined(sign, left, self._binary(level + 1))
        return left

    def _unary(self) -> Callable[[Scope], Any]:
        if self._accept("!"):
            inner = self._unary()
            return lambda scope: not _boolean(inner(scope))
        if self._accept("-"):
            inner = self._unary()
            return lambda scope: _applied(scope, operator.neg, inner(scope))
        return self._postfix(self._primary())

    def _primary(self) -> Callable[[Scope], Any]:
        kind, text = self._tokens[self._at] if self._at < len(self._tokens) else ("", "")
        self._at += 1
        if kind == "number":
            if len(text) > 40:
                raise CelError(f"{text[:40]}… is no number of 64 bits")
            number: Any = float(text) if "." in text else int(text.rstrip("u"))
            return lambda _: number
        if kind == "text":
            string = _string(text)
            return lambda _: string
        if text == "(":
            inner = self.ternary()
            self._expect(")")
            return inner
        if text == "[":
            items = self._arguments("]")
            return lambda scope: [item(scope) for item in items]
        if kind == "name":
            return self._named(text)
        raise CelError(f"{text or 'the end'!r} is not expected there")

    def _named(self, name: str) -> Callable[[Scope], Any]:
        constants = {"true": True, "false": False, "null": None}
        if name in constants:
            return lambda _: constants[name]
        if self._accept("("):
            if name == "has":
                return self._has()
            arguments = self._arguments(")")
            if name not in _FUNCTIONS or len(arguments) != 1:
                raise CelError(f"the function {name}() is not evaluated here")
            function = _FUNCTIONS[name]
            return lambda scope: _applied(scope, function, arguments[0](scope))
        return lambda scope: _variable(scope, name)

    def _has(self) -> Callable[[Scope], Any]:
        inner = self.ternary()
        self._expect(")")

        def present(scope: Scope) -> bool:
            try:
                return inner(scope) is not None
            except _Failure:
                return False

        return present

    def _postfix(self, value: Callable[[Scope], Any]) -> Callable[[Scope], Any]:
        while True:
            if self._accept("."):
                value = self._member(value, self._name())
            elif self._accept("["):
                index = self.ternary()
                self._expect("]")
                value = functools.partial(_indexed, value, index)
            else:
                return value

    def _member(self, value: Callable[[Scope], Any], name: str) -> Callable[[Scope], Any]:
        if not self._accept("("):
            return lambda scope: _field(value(scope), name)
        if name in _MACROS:
            variable = self._next()
            self._expect(",")
            body = self.ternary()
            self._expect(")")
            return functools.partial(_macro, name, value, variable, body)
        arguments = self._arguments(")")
        if name not in _METHODS:
            raise CelError(f"the method .{name}() is not evaluated here")
        method = _METHODS[name]
        return lambda scope: _applied(scope, method, value(scope), *(argument(scope) for argument in arguments))

    def _arguments(self, end: str) -> list[Callable[[Scope], Any]]:
        found: list[Callable[[Scope], Any]] = []
        while not self._accept(end):
            if found:
                self._expect(",")
            found.append(self.ternary())
        return found

    def _name(self) -> str:
        text = self._next()
        if self._tokens[self._at - 1][0] != "name":
            raise CelError(f"{text!r} is expected to be the name of a field")
        return text

    def _next(self) -> str:
        text = self.peek()
        if not text:
            raise CelError("it ends too early")
        self._at += 1
        return text

    def _accept(self, text: str) -> bool:
        if self.peek() == text and self._tokens[self._at][0] != "text":
            self._at += 1
            return True
        return False

    def _expect(self, text: str) -> None:
        if not self._accept(text):
            raise CelError(f"{text!r} is expected before {self.peek() or 'the end'!r}")


def _joined(sign: str, left: Callable[[Scope], Any], right: Callable[[Scope], Any]) -> Callable[[Scope], Any]:
    if sign == "||":
        return lambda scope: _either(left, right, scope, decisive=True)
    if sign == "&&":
        return lambda scope: _either(left, right, scope, decisive=False)
    function = _OPERATORS[sign]
    return lambda scope: _applied(scope, function, left(scope), right(scope))


def _either(left: Callable[[Scope], Any], right: Callable[[Scope], Any], scope: Scope, *, decisive: bool) -> bool:
    """Join two sides; one that decides alone makes a failure of the other unimportant, whichever comes first."""
    try:
        if _boolean(left(scope)) is decisive:
            return decisive
    except _Failure:
        if _boolean(right(scope)) is decisive:
            return decisive
        raise
    return _boolean(right(scope))


def _macro(name: str, value: Callable[[Scope], Any], variable: str, body: Callable[[Scope], Any], scope: Scope) -> Any:
    items = value(scope)
    if not isinstance(items, (list, dict)):
        raise _Failure("no such overload")
    _spend(scope, len(items))
    results = [(item, body({**scope, variable: item})) for item in items]
    match name:
        case "all":
            return all(_boolean(result) for _, result in results)
        case "exists":
            return any(_boolean(result) for _, result in results)
        case "exists_one":
            return sum(_boolean(result) for _, result in results) == 1
        case "filter":
            return [item for item, result in results if _boolean(result)]
        case _:
            return [result for _, result in results]


def _variable(scope: Scope, name: str) -> Any:
    if name not in scope:
        raise _Failure(f"undeclared reference to '{name}'")
    return scope[name]


def _field(value: Any, name: str) -> Any:
    if not isinstance(value, dict) or name not in value:
        raise _Failure(f"no such key: {name}")
    return value[name]


def _indexed(value: Callable[[Scope], Any], index: Callable[[Scope], Any], scope: Scope) -> Any:
    try:
        return value(scope)[index(scope)]
    except (KeyError, IndexError, TypeError) as error:
        raise _Failure(f"no such key: {error}") from None


def _applied(scope: Scope, function: Callable[..., Any], *arguments: Any) -> Any:
    """Call one of the functions below; what they look at or put together counts, so that nothing grows without an end."""
    _spend(scope, 1 + sum(len(each) // 16 for each in arguments if isinstance(each, (str, list, dict))))
    try:
        found = function(*arguments)
    except (TypeError, ValueError, ArithmeticError, AttributeError, LookupError, re.error) as error:
        raise _Failure(f"no such overload: {error}") from None
    if type(found) is int and not -_WHOLE <= found < 2 * _WHOLE:
        raise _Failure("integer overflow")
    if isinstance(found, (str, list)):
        _spend(scope, len(found) // 16)
    return found


def _spend(scope: Scope, steps: int) -> None:
    left = scope[_STEPS]
    left[0] -= steps
    if left[0] < 0:
        raise _Failure("call cost exceeds limit")


def _numbers(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Make of a function of Python, which repeats and formats texts too, one of numbers alone."""

    def calculated(left: Any, right: Any) -> Any:
        if type(left) not in (int, float) or type(right) not in (int, float):
            raise TypeError(f"{type(left).__name__} and {type(right).__name__} are no numbers")
        return function(left, right)

    return calculated


def _boolean(value: Any) -> bool:
    if not isinstance(value, bool):
        raise _Failure("no such overload")
    return value


def _string(text: str) -> str:
    if text.startswith("r"):
        return text[2:-1]
    return text[1:-1].encode("latin-1", "backslashreplace").decode("unicode_escape")


def _equal(left: Any, right: Any) -> bool:
    return bool(left == right) and isinstance(left, bool) == isinstance(right, bool)


_OPERATORS: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "==": _equal,
    "!=": lambda left, right: not _equal(left, right),
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "+": operator.add,
    "-": _numbers(operator.sub),
    "*": _numbers(operator.mul),
    "/": _numbers(lambda left, right: int(left / right) if type(left) is type(right) is int else left / right),
    "%": _numbers(operator.mod),
    "in": lambda item, items: item in items,
}
_FUNCTIONS: Final[dict[str, Callable[[Any], Any]]] = {"size": len, "int": int, "double": float, "string": str}
_METHODS: Final[dict[str, Callable[..., Any]]] = {
    "size": len,
    "startsWith": str.startswith,
    "endsWith": str.endswith,
    "contains": lambda text, part: part in text,
    "matches": lambda text, pattern: bounded_patterns.compiled(pattern).search(text),
    "lowerAscii": str.lower,
    "upperAscii": str.upper,
    "trim": str.strip,
}
