"""Plugins and actions of the user, for commands that check or try what a scheduler with `--plugins-dir` would do."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Final

from pumice.framework import registry
from pumice.framework.configuration import Catalog
from pumice.framework.registry import Registry
from pumice.server.configuration import plugin_files

if TYPE_CHECKING:
    from collections.abc import Callable

HINT: Final = "name the folder with --plugins-dir if it is in a file of yours"


class OwnRegistry(Registry, frozen=True):
    """What is installed and what a folder holds; without a folder a refusal of an unknown name says how to give one."""

    folder: str = ""

    def catalog(self) -> Catalog:
        """Describe everything for the configuration loader."""
        plain = super().catalog()
        return plain if self.folder else HintingCatalog(plain.plugins, plain.actions, plain.broken)

    def __reduce__(self) -> tuple[Callable[[str], OwnRegistry], tuple[str]]:
        # Another process cannot import classes of files that are no modules: it loads the folder itself, once.
        return _load_once, (self.folder,)


class HintingCatalog(Catalog, frozen=True):
    """A catalog of what is installed alone, for somebody who may have more."""

    def plugin_refusal(self, name: str) -> str:
        """Say why a plugin cannot be listed; empty when it can."""
        refusal = super().plugin_refusal(name)
        if not refusal.startswith("unknown "):
            return refusal
        return f"{refusal} Or {HINT}" if refusal.endswith("?") else f"{refusal}; {HINT}"


def load(folder: str) -> OwnRegistry:
    """Return what is installed, and what a folder holds if one is named; raise `plugin_files.FolderError` if it cannot be read."""
    known = registry.installed()
    if folder:
        known = plugin_files.extend(known, folder)
    return OwnRegistry(known.plugins, known.actions, known.broken, folder)


@functools.cache
def _load_once(folder: str) -> OwnRegistry:
    try:
        return load(folder)
    except plugin_files.FolderError as error:
        # It has gone since; a process that fails here would be waited for in vain.
        known = registry.installed()
        return OwnRegistry(known.plugins, known.actions, {**known.broken, folder: str(error)}, folder)
