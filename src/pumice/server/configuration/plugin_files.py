"""Plugins and actions in Python files of a folder that the operator names.

A file holds one or more subclasses of `Plugin` or `Action`, each with a `name` of its own; a class that others derive from, or whose name in Python begins with `_`, needs
none. The code runs with all rights of the scheduler, so the folder must be as trustworthy as the program itself.

What is wrong with a file is a line of `Registry.broken` and costs nobody else anything. A name that two claim belongs to neither, so that a configuration which lists it is
refused: who decides must not depend on the order of files, and somebody who has written a plugin `gang` does not expect the built-in one.
"""

from __future__ import annotations

import importlib.util
import inspect
import sys
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from pumice import plain_files
from pumice.framework.plugin import Action, Plugin
from pumice.framework.registry import Registry, misdeclared
from pumice.server.logs import logs

if TYPE_CHECKING:
    from types import ModuleType

    from pumice.server.logs.logs import Log

Part = type[Plugin] | type[Action]

LONGEST: Final = 300  # characters of somebody else's error message


class FolderError(ValueError):
    """A folder that is not there or cannot be read."""


class Found(msgspec.Struct, frozen=True):
    """A class of a file."""

    file: Path
    part: Part

    @property
    def own_name(self) -> Any:
        """The name that the class itself states; one that is inherited belongs to somebody else."""
        return vars(self.part).get("name", "")

    @property
    def place(self) -> str:
        """Where it is, as messages say it."""
        return f"{self.file}: class {self.part.__name__}"


def extend(known: Registry, folder: str) -> Registry:
    """Return a registry with everything that the files of a folder hold added, and everything that is wrong with them."""
    broken = dict(known.broken)
    found: list[Found] = []
    for file in files(folder):
        try:
            found += _parts(file)
        except (Exception, SystemExit) as error:  # noqa: BLE001  any failure of a foreign file is its own, also that it wants to end the process
            _add(broken, file.stem, f"{file} could not be loaded: {_told(error, file)}")
    named = _named(found, broken)
    plugins = _merged("plugin", known.plugins, [each for each in named if issubclass(each.part, Plugin)], broken)
    actions = _merged("action", known.actions, [each for each in named if issubclass(each.part, Action)], broken)
    return Registry(plugins, actions, broken)


def tell(known: Registry, folder: str, log: Log) -> None:
    """Log everything that is installed and cannot be used, a line each, and if nothing was found in the folder that was named."""
    for problem in known.broken.values():
        log.warning("a plugin or action cannot be used", problem=problem)
    if not folder:
        return
    found = files(folder)
    if not found:
        log.warning("--plugins-dir names a folder without Python files", folder=folder)
    log.detail(logs.CONFIGURATION, "plugin files", folder=folder, files=", ".join(file.name for file in found))


def files(folder: str) -> list[Path]:
    """Return the Python files of a folder, by name."""
    try:
        found = sorted(Path(folder).iterdir())
    except FileNotFoundError:
        raise FolderError(f"--plugins-dir {folder}: no such folder") from None
    except OSError as error:
        raise FolderError(f"--plugins-dir {folder}: cannot be read: {error.strerror}") from None
    return [file for file in found if file.suffix == ".py"]


def _parts(file: Path) -> list[Found]:
    """Load a file and return the plugins and actions that are written in it."""
    module = _load(file)
    classes = dict.fromkeys(each for _, each in inspect.getmembers(module, inspect.isclass))
    return [
        Found(file, each)
        for each in classes
        if each.__module__ == module.__name__ and issubclass(each, Plugin | Action)
    ]


def _load(file: Path) -> ModuleType:
    plain_files.read(file, plain_files.LARGEST_TEXT)
    name = f"pumice_plugins_dir.{file.stem.replace('-', '_')}"
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise ImportError(f"{file} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _named(found: list[Found], broken: dict[str, str]) -> list[Found]:
    """Return the classes that have a name; one without that is not there for others to derive from is added to `broken`."""
    bases = {base for each in found for base in each.part.__mro__[1:]}
    named = []
    for each in found:
        name = each.own_name
        key = f"{each.file.stem}.{each.part.__name__}"
        if isinstance(name, str) and name:
            named.append(each)
        elif name:
            _add(broken, key, f"{each.place}: its name is {name!r:.40}, and must be a text")
        elif each.part not in bases and not each.part.__name__.startswith("_"):
            _add(broken, key, f'{each.place} has no name of its own, so nothing can list it; write name = "…" into it')
    return named


def _merged(what: str, known: dict[str, Any], found: list[Found], broken: dict[str, str]) -> dict[str, Any]:
    """Add classes to those that are known, apart from those that cannot be used and from names that two of them claim."""
    claims: dict[str, list[Found]] = {}
    for each in found:
        claims.setdefault(each.own_name, []).append(each)
    merged = dict(known)
    for name, claimants in claims.items():
        others = [each.place for each in claimants[1:]] + ([f"the {what} that is installed"] if name in known else [])
        if others:
            merged.pop(name, None)
            text = f"claims the name {name!r}, as does {' and '.join(others)}; give each {what} a name of its own"
            _add(broken, name, f"{claimants[0].place} {text}")
        elif problem := misdeclared(claimants[0].part):
            _add(broken, name, f"{claimants[0].place}: {problem}")
        else:
            merged[name] = claimants[0].part
    return merged


def _add(broken: dict[str, str], key: str, problem: str) -> None:
    """Take note of a problem; two about the same word are both told."""
    broken[key] = f"{broken[key]}; {problem}" if key in broken else problem


def _told(error: BaseException, file: Path) -> str:
    """Say in one line what went wrong, with the line of the file where Python's own message has none."""
    text = " ".join(f"{type(error).__name__}: {error}".split())[:LONGEST]
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(file)]
    return f"line {lines[-1]}: {text}" if lines else text
