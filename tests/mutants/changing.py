"""What can be changed in a file, one thing at a time: comparisons, signs, limits, conditions, and calls that are left out.

Only what is inside functions is changed, for that is what can be put into a running process.
"""

from __future__ import annotations

import ast
import copy
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
_SIGNS: dict[type[ast.operator], type[ast.operator]] = {ast.Add: ast.Sub, ast.Sub: ast.Add}


class Mutant(NamedTuple):
    """One change: where it is, in which function, and what was written there before and after."""

    path: str
    number: int  # among all changes of that file
    line: int
    function: str
    before: str
    after: str
    alike: int = 0  # which it is of those of the file that read alike, if there are several

    @property
    def change(self) -> str:
        """Say what is changed in words that stay the same where the code moves."""
        return f"{self.wording} #{self.alike}" if self.alike else self.wording

    @property
    def wording(self) -> str:
        """Say what is changed; others may read alike."""
        return f"in {self.function}: {self.before}  ->  {self.after}"

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.change}"


class _Site(NamedTuple):
    function: str
    before: ast.AST
    change: Callable[[ast.AST], ast.AST]


def mutants(path: str) -> list[Mutant]:
    """Give every change of a file."""
    tree = ast.parse(Path(path).read_text())
    return _told_apart([_described(path, number, site) for number, site in enumerate(_sites(tree))])


def changed(path: str, number: int) -> ast.Module:
    """Give a file with one change."""
    tree = ast.parse(Path(path).read_text())
    site = list(_sites(tree))[number]
    swapped = _Swap(site.before, site.change(copy.deepcopy(site.before))).visit(tree)
    return ast.fix_missing_locations(swapped)


def _described(path: str, number: int, site: _Site) -> Mutant:
    after = ast.unparse(site.change(copy.deepcopy(site.before)))
    return Mutant(path, number, getattr(site.before, "lineno", 0), site.function, ast.unparse(site.before), after)


def _told_apart(found: list[Mutant]) -> list[Mutant]:
    """Number those that read alike, in the order in which they stand."""
    several = Counter(each.wording for each in found)
    seen: Counter[str] = Counter()
    numbered = []
    for each in found:
        seen[each.wording] += 1
        numbered.append(each._replace(alike=seen[each.wording]) if several[each.wording] > 1 else each)
    return numbered


class _Swap(ast.NodeTransformer):
    def __init__(self, before: ast.AST, after: ast.AST) -> None:
        self._before, self._after = before, ast.copy_location(after, before)

    def visit(self, node: ast.AST) -> ast.AST:
        return self._after if node is self._before else self.generic_visit(node)


def _sites(tree: ast.Module) -> Iterator[_Site]:
    def inside(node: ast.AST, function: str, *, running: bool) -> Iterator[_Site]:
        for child in ast.iter_child_nodes(node):
            name, runs = function, running
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                name = f"{function}.{child.name}".lstrip(".")
                runs = runs or not isinstance(child, ast.ClassDef)
            if isinstance(child, ast.arguments) or _is_typing(child) or _is_check(child) or _is_decorator(child, node):
                continue
            if running:
                yield from (_Site(function, child, change) for change in _changes(child))
            yield from inside(child, name, running=runs)

    return inside(tree, "", running=False)


def _is_typing(node: ast.AST) -> bool:
    return isinstance(node, ast.Assert) or (isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING")


def _is_check(node: ast.AST) -> bool:
    """Tell whether this only says that what is zipped is of one length: where the code is right it makes no difference."""
    return isinstance(node, ast.keyword) and node.arg == "strict"


def _is_decorator(child: ast.AST, node: ast.AST) -> bool:
    """Tell whether this is run when a function is made, and so is no part of it."""
    return isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and child in node.decorator_list


def _changes(node: ast.AST) -> Iterator[Callable[[ast.AST], ast.AST]]:
    """Say in which ways a node can be changed."""
    match node:
        case ast.Compare(ops=[op]) if type(op) in _COMPARISONS:
            yield _compared
        case ast.BoolOp():
            yield _joined
        case ast.UnaryOp(op=ast.Not()):
            yield lambda each: each.operand  # type: ignore[attr-defined]
        case ast.UnaryOp(op=ast.USub()):
            yield lambda each: each.operand  # type: ignore[attr-defined]
        case ast.BinOp(op=op) if type(op) in _SIGNS and not _is_text(node):
            yield _signed
        case ast.Constant(value=bool() as value):
            yield lambda _: ast.Constant(not value)
        case ast.Constant(value=int() as value):
            yield lambda _: ast.Constant(value + 1)
        case ast.Expr(value=ast.Call() | ast.Await()):
            yield lambda _: ast.Pass()
        case ast.Return(value=ast.expr() as value) if isinstance(value, ast.Call):
            yield lambda _: ast.Return(ast.Constant(None))


def _compared(node: ast.AST) -> ast.AST:
    assert isinstance(node, ast.Compare)
    node.ops = [_COMPARISONS[type(node.ops[0])]()]
    return node


def _joined(node: ast.AST) -> ast.AST:
    assert isinstance(node, ast.BoolOp)
    node.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
    return node


def _signed(node: ast.AST) -> ast.AST:
    assert isinstance(node, ast.BinOp)
    node.op = _SIGNS[type(node.op)]()
    return node


def _is_text(node: ast.BinOp) -> bool:
    return any(
        isinstance(each, ast.JoinedStr) or isinstance(getattr(each, "value", None), str) for each in ast.walk(node)
    )
