"""Give functions of this process the code of a changed file."""

from __future__ import annotations

import gc
import importlib
from collections import defaultdict
from pathlib import Path
from types import CodeType, FunctionType
from typing import TYPE_CHECKING

from tests.mutants.changing import changed

if TYPE_CHECKING:
    from tests.mutants.changing import Mutant

Functions = dict[str, list[FunctionType]]  # by path


def functions(roots: tuple[str, ...]) -> Functions:
    """Load every module below some paths, and give the functions that this process has of them."""
    for root in map(Path, roots):
        for file in sorted(root.rglob("*.py")) if root.is_dir() else [root]:
            if "src" in file.parts:
                inside = file.with_suffix("").parts
                importlib.import_module(".".join(inside[inside.index("src") + 1 :]).removesuffix(".__init__"))
    found: Functions = defaultdict(list)
    gc.unfreeze()  # what is taken as there to stay is not listed
    for each in gc.get_objects():
        if isinstance(each, FunctionType) and each.__code__.co_filename.startswith(roots):
            found[each.__code__.co_filename].append(each)
    return found


def put_in(mutant: Mutant, known: Functions) -> int:
    """Change functions; returns how many have other code now."""
    path = str(Path(mutant.path).resolve())
    new = {_key(code): code for code in _codes(compile(changed(mutant.path, mutant.number), path, "exec"))}
    count = 0
    for function in known.get(path, ()):
        code, other = function.__code__, new.get(_key(function.__code__))
        if other is not None and other.co_freevars == code.co_freevars and not _same(code, other):
            function.__code__ = other
            count += 1
    return count


def _key(code: CodeType) -> tuple[str, int]:
    return code.co_qualname, code.co_firstlineno


def _codes(code: CodeType) -> list[CodeType]:
    inner = [each for each in code.co_consts if isinstance(each, CodeType)]
    return [code, *(found for each in inner for found in _codes(each))]


def _same(one: CodeType, other: CodeType) -> bool:
    if one.co_code != other.co_code or len(one.co_consts) != len(other.co_consts):
        return False
    pairs = zip(one.co_consts, other.co_consts, strict=True)
    return all(
        _same(a, b) if isinstance(a, CodeType) and isinstance(b, CodeType) else (type(a), a) == (type(b), b)
        for a, b in pairs
    )
