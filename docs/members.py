"""The public members of a class: attributes by its slots and its `__init__`, properties and methods with their docstrings."""

from __future__ import annotations

import ast
import inspect
import textwrap
from typing import Any


def attributes(kind: type[Any]) -> list[str]:
    """Name what instances carry, in the order in which it is declared."""
    names = {name: None for base in reversed(kind.__mro__) for name in vars(base).get("__slots__", ())}
    names |= dict.fromkeys(getattr(kind, "__struct_fields__", ()))
    names |= dict.fromkeys(_assigned(kind))
    return [name for name in names if not name.startswith("_") and not isinstance(vars(kind).get(name), property)]


def documented(kind: type[Any]) -> list[str]:
    """Name the properties and methods, without extension points, which have a page of their own."""
    found = inspect.getmembers_static(kind, lambda each: inspect.isfunction(each) or isinstance(each, property))
    order = {name: place for place, base in enumerate(kind.__mro__) for name in vars(base)}
    named = [name for name, _ in found if not name.startswith("_")]
    return sorted(named, key=lambda name: (-order.get(name, 0), _line(kind, name)))


def public(kind: type[Any]) -> set[str]:
    """Give every public name."""
    return {*attributes(kind), *documented(kind)}


def shown(kind: type[Any], name: str) -> str:
    """Write a property by its name and a method with what it takes."""
    member = inspect.getattr_static(kind, name)
    if isinstance(member, property):
        return name
    taken = list(inspect.signature(member).parameters.values())[1:]
    return f"{name}({', '.join(_plain(str(each)) for each in taken)})"


def told(kind: type[Any], name: str) -> tuple[str, str]:
    """Give the type of what a property or a method returns, and what its docstring says first."""
    member = inspect.getattr_static(kind, name)
    function = member.fget if isinstance(member, property) else member
    returned = _plain(str(inspect.signature(function).return_annotation))
    says = (inspect.getdoc(function) or "").split("\n")[0]
    return f"`{returned.replace('|', chr(92) + '|')}`", says.replace("|", "\\|")


def _plain(text: str) -> str:
    return text.replace("'", "")


def _line(kind: type[Any], name: str) -> int:
    member = inspect.getattr_static(kind, name)
    return int((member.fget if isinstance(member, property) else member).__code__.co_firstlineno)


def _assigned(kind: type[Any]) -> list[str]:
    """Name what `__init__` assigns to `self`."""
    init = vars(kind).get("__init__")
    if not inspect.isfunction(init):
        return []
    tree = ast.parse(textwrap.dedent(inspect.getsource(init)))
    stored = (node for node in ast.walk(tree) if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store))
    return [node.attr for node in stored if isinstance(node.value, ast.Name) and node.value.id == "self"]
