"""Reads which modules of the project import which, at run time or for types alone, and which of them import each other in a circle."""

from __future__ import annotations

import ast
from pathlib import Path

SOURCES = Path(__file__).resolve().parents[2] / "src"


def imports(package, sources=SOURCES):
    """Give for each module of a package the modules of that package that it imports, wherever the import stands."""
    modules = {_name(path, sources): path for path in sorted((sources / Path(*package.split("."))).rglob("*.py"))}
    return {name: sorted(_imported(path, modules) - {name}) for name, path in modules.items()}


def circles(graph):
    """Give the sets of modules that reach each other, those of one module left out."""
    reached = {module: _reached(graph, module) for module in graph}
    found = {frozenset(other for other in reached[module] if module in reached[other]) for module in graph}
    return sorted(sorted(circle) for circle in found if len(circle) > 1)


def _name(path, sources):
    return ".".join(path.relative_to(sources).with_suffix("").parts).removesuffix(".__init__")


def _imported(path, modules):
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{path}: imports within the project are absolute"
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= {name if name in modules else node.module for name in names}
    return found & set(modules)


def _reached(graph, start):
    """Give everything that a module imports, over others too; itself only if it is in a circle."""
    found, waiting = set(), [start]
    while waiting:
        for other in graph[waiting.pop()]:
            if other not in found:
                found.add(other)
                waiting.append(other)
    return found
