"""What `--assert` claims: comparisons of figures, parsed by a small grammar and never evaluated as anything else.

```
claim      = comparison { "and" comparison }
comparison = sum ( "<" | "<=" | ">" | ">=" | "==" | "!=" ) sum
sum        = product { ( "+" | "-" ) product }
product    = value { ( "*" | "/" ) value }
value      = number [ "s" | "m" | "h" | "d" | "%" ] | figure | "(" sum ")" | "-" value
figure     = policy "." name, such as easy.wait.mean or a.utilisation.nvidia.com/gpu
```

Names may hold `-` and `/`, so those operators have spaces around them.
"""

from __future__ import annotations

import operator
import re
from typing import TYPE_CHECKING, Final

from pumice.api import documents
from pumice.simulate import report

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pumice.simulate.report import Judged

LONGEST: Final = 1000
FIGURES: Final[dict[str, tuple[str, ...] | None]] = {
    "jobs": ("total", "done", "unfinished", "neverFitting", "skipped"),
    "wait": ("mean", "p50", "p95", "max", "wide"),
    "completion": ("mean", "p95"),
    "slowdown": ("mean", "p95"),
    "makespan": (),
    "utilisation": None,
    "goodput": None,
    "evictions": (),
    "lostWork": None,
    "gpu": None,
    "queues": None,
    "fairness": None,
    "forecast": ("mean", "absolute", "p95", "late", "without"),
    "cycles": (),
    "seconds": (),
}
"""What figures begin with, and how they go on; None where that depends on queues and resources."""
_TOKEN: Final = re.compile(
    r"\s*(?:(?P<number>\d+(?:\.\d+)?(?:e[+-]?\d+)?)(?P<unit>[smhd%](?![\w.]))?"
    r"|(?P<name>[A-Za-z_][\w.\-/]*)|(?P<operator><=|>=|==|!=|[-<>+*/()]))"
)
_UNITS: Final = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "%": 0.01}
_COMPARISONS: Final[dict[str, Callable[[float, float], bool]]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}
_DEPTH: Final = 50


class ClaimError(Exception):
    """A claim that cannot be judged: no sentence of the grammar, or about a figure that does not exist."""


class Verdict:
    """Whether a claim holds, and with which figures."""

    def __init__(self, claim: str, *, holds: bool, figures: dict[str, float | None]) -> None:
        self.claim = claim
        self.holds = holds
        self.figures = figures

    def __str__(self) -> str:
        used = ", ".join(
            f"{name} = {'no value' if value is None else f'{value:,.6g}'}" for name, value in self.figures.items()
        )
        return f"{'holds' if self.holds else 'does not hold'}: {self.claim}{f' ({used})' if used else ''}"


def judge(claim: str, policies: Sequence[Judged]) -> Verdict:
    """Judge a claim; raise `ClaimError` if it means nothing."""
    return _Parser(claim, {each.name: each for each in policies}).judge()


def check(claim: str, policies: Sequence[str]) -> None:
    """Raise `ClaimError` for a claim that is no sentence of the grammar, names no policy, or a figure that no run has, before anything is simulated."""
    _Parser(claim, dict.fromkeys(policies)).judge()


class _Parser:
    def __init__(self, claim: str, policies: Mapping[str, Judged | None]) -> None:
        if len(claim) > LONGEST:
            raise ClaimError(f"{claim[:40]!r}…: longer than {LONGEST} characters")
        self._claim = claim
        self._policies = policies
        self._tokens = self._cut(claim)
        self._at = 0
        self._depth = 0
        self._figures: dict[str, float | None] = {}

    def _cut(self, claim: str) -> list[tuple[str, str]]:
        found, position = [], 0
        text = claim.rstrip()
        while position < len(text):
            match = _TOKEN.match(text, position)
            if match is None:
                raise ClaimError(f"{claim!r}: nothing known begins at {text[position : position + 20]!r}")
            kind = "number" if match["number"] else "name" if match["name"] else "operator"
            found.append((kind, (match["number"] or match["name"] or match["operator"]) + (match["unit"] or "")))
            position = match.end()
        return found

    def judge(self) -> Verdict:
        """Parse and judge in one go."""
        holds = self._comparison()
        while self._accept("and"):
            holds = self._comparison() and holds
        if self._at < len(self._tokens):
            raise self._unexpected("the end, or 'and'")
        return Verdict(self._claim, holds=holds, figures=self._figures)

    def _comparison(self) -> bool:
        left = self._sum()
        symbol = self._peek()[1]
        if symbol not in _COMPARISONS:
            raise self._unexpected("one of " + " ".join(_COMPARISONS))
        self._at += 1
        right = self._sum()
        return left is not None and right is not None and _COMPARISONS[symbol](left, right)

    def _sum(self) -> float | None:
        found = self._product()
        while (symbol := self._peek()[1]) in ("+", "-"):
            self._at += 1
            other = self._product()
            found = None if found is None or other is None else found + other if symbol == "+" else found - other
        return found

    def _product(self) -> float | None:
        found = self._value()
        while (symbol := self._peek()[1]) in ("*", "/"):
            self._at += 1
            other = self._value()
            if found is None or other is None or (symbol == "/" and not other):
                found = None
            else:
                found = found * other if symbol == "*" else found / other
        return found

    def _value(self) -> float | None:
        kind, text = self._peek()
        self._at += 1
        self._depth += 1
        if self._depth > _DEPTH:
            raise ClaimError(f"{self._claim!r}: nested too deeply")
        try:
            if kind == "number":
                return float(text.rstrip("smhd%")) * _UNITS.get(text[-1], 1.0)
            if kind == "name":
                return self._figure(text)
            if text == "-":
                inner = self._value()
                return None if inner is None else -inner
            if text == "(":
                inner = self._sum()
                if not self._accept(")"):
                    raise self._unexpected("')'")
                return inner
        finally:
            self._depth -= 1
        self._at -= 1
        raise self._unexpected("a number or a figure such as easy.wait.mean")

    def _figure(self, name: str) -> float | None:
        policy = max((each for each in self._policies if name.startswith(f"{each}.")), key=len, default="")
        if not policy:
            known = ", ".join(self._policies)
            raise ClaimError(
                f"{self._claim!r}: {name} names no policy; there are {known}: write {next(iter(self._policies))}.wait.mean"
            )
        judged = self._policies[policy]
        path = name.removeprefix(f"{policy}.")
        if judged is None:
            self._check_known(policy, path)
            return 1.0
        self._check_among(policy, path, list(report.names(judged.figures)))
        self._figures[name] = judged.value(path)
        return self._figures[name]

    def _check_known(self, policy: str, path: str) -> None:
        """Refuse what no run has, whatever its queues and resources are."""
        group = path.partition(".")[0]
        if group not in FIGURES:
            self._check_among(policy, group, list(FIGURES))
        members = FIGURES[group]
        if members is not None:
            self._check_among(policy, path, [f"{group}.{each}" for each in members] or [group])

    def _check_among(self, policy: str, path: str, known: Sequence[str]) -> None:
        if path not in known:
            near = documents.nearest(path, known)
            hint = f"did you mean {policy}.{near}?" if near else f"there are {', '.join(known[:15])}"
            raise ClaimError(f"{self._claim!r}: there is no figure {path!r}; {hint}")

    def _peek(self) -> tuple[str, str]:
        return self._tokens[self._at] if self._at < len(self._tokens) else ("", "")

    def _accept(self, text: str) -> bool:
        if self._peek()[1] != text:
            return False
        self._at += 1
        return True

    def _unexpected(self, wanted: str) -> ClaimError:
        found = repr(self._peek()[1]) if self._at < len(self._tokens) else "the end"
        return ClaimError(f"{self._claim!r}: expected {wanted}, found {found}")
