"""What answers depend on is found out in one place: nobody else looks at what functions declare that they read."""

from __future__ import annotations

import ast

import import_circles

CORE = ("model", "framework", "actions", "cache", "scheduler", "study", "simulate")
# Where functions say what they read, where that is sorted, and where facts are made of it.
PLACES = {
    "framework/registration.py",
    "framework/plugin.py",
    "framework/extensions.py",
    "framework/combining.py",
    "framework/naming_tasks.py",
    "framework/engine.py",
    "framework/points.py",
    "framework/reads.py",
    "framework/functions.py",
    "framework/evaluator.py",
    "framework/independence.py",
}


def test_nobody_but_independence_looks_at_what_functions_read():
    house = import_circles.SOURCES / "pumice"
    looking = {
        str(path.relative_to(house))
        for package in CORE
        for path in sorted((house / package).rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if (isinstance(node, ast.Attribute) and node.attr == "reads")
        or (isinstance(node, ast.ImportFrom) and any(name.name in ("Reads", "NOTHING") for name in node.names))
    }
    assert looking <= PLACES
    assert "framework/independence.py" in looking
