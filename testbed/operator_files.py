"""Fetch the CustomResourceDefinitions and webhook configurations of operators: files of their modules, kept in the user's cache folder.

They need no compiler, only the module that `go/` pins, so that they are there for operators that nobody has built, too.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

from testbed import building, golang

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


def kept(operator: str) -> list[Path]:
    """Return the files of an operator, from the version that is pinned now; none if they have to be fetched first."""
    recipe = building.RECIPES[operator]
    folder = _folder(operator)
    mark = folder / ".version"
    return sorted(folder.glob("*.yaml")) if mark.is_file() and mark.read_text() == _origin(recipe) else []


def fetch(operators: Sequence[str], say: Callable[[str], None]) -> None:
    """Fetch the files that are missing."""
    if all(kept(operator) for operator in operators):
        return
    with building.locked(say):
        for operator in [each for each in operators if not kept(each)]:
            recipe = building.RECIPES[operator]
            source = _download(golang.locate(building.cache_folder(), say), recipe)
            folder = _folder(operator)
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            for pattern in recipe.definitions.split():
                for file in source.glob(pattern):
                    shutil.copyfile(file, folder / file.name)
            (folder / ".version").write_text(_origin(recipe))
            say(f"definitions of {operator} {recipe.version}: {len(kept(operator))} files")


def _folder(operator: str) -> Path:
    return building.built_folder() / "definitions" / operator


def _origin(recipe: building.Recipe) -> str:
    return f"{recipe.source} {recipe.version} {recipe.definitions}"


def _download(go: Path, recipe: building.Recipe) -> Path:
    """Return where the module is; its sum is compared with the one that is written down beside the pin."""
    command = [str(go), "mod", "download", "-json", recipe.source]
    folder, environment = building.MODULES / recipe.module, golang.local_environment()
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    found = json.loads(done.stdout or "{}")
    if "Dir" not in found:
        reason = found.get("Error") or done.stderr.strip()
        raise building.BuildError(f"{recipe.source} {recipe.version} could not be fetched: {reason}")
    return Path(found["Dir"])
