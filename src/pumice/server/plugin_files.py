"""Plugins and actions in Python files of a folder that the operator names.

A file holds one or more subclasses of `Plugin` or `Action`, each with its `name`. Its code runs with all rights of the scheduler, so the folder must be as
trustworthy as the program itself. A file that cannot be loaded is named when something asks for what it might hold, and costs nobody else anything.
"""

from __future__ import annotations

import importlib.util
import inspect
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from pumice.framework.plugin import Action, Plugin
from pumice.framework.registry import Registry

if TYPE_CHECKING:
    from types import ModuleType


class FolderError(ValueError):
    """A folder that is not there."""


def extend(known: Registry, folder: str) -> Registry:
    """Return a registry with everything that the files of a folder hold added; names that are taken stay with who has them."""
    path = Path(folder)
    if not path.is_dir():
        raise FolderError(f"--plugins-dir {folder}: no such folder")
    plugins, actions, broken = dict(known.plugins), dict(known.actions), dict(known.broken)
    for file in sorted(path.glob("*.py")):
        try:
            module = _load(file)
        except Exception as error:  # noqa: BLE001  any failure of a foreign file is its own
            broken[file.stem] = f"{file} could not be loaded: {type(error).__name__}: {error}"
            continue
        found = [each for _, each in inspect.getmembers(module, inspect.isclass) if each.__module__ == module.__name__]
        for each in found:
            if not getattr(each, "name", "") or not issubclass(each, Plugin | Action):
                continue
            if each.name in (plugins if issubclass(each, Plugin) else actions):
                broken[f"{file.stem}.{each.name}"] = f"{file}: the name {each.name!r} is taken"
            elif issubclass(each, Plugin):
                plugins[each.name] = each
            else:
                actions[each.name] = each
    return Registry(plugins, actions, broken)


def _load(file: Path) -> ModuleType:
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
