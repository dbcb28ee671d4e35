"""Which job plugins there are: those of this package, and those of installed packages under the entry-point group `pumice.job_plugins`.

A package's plugin that cannot be loaded costs only the Jobs that name it, and none replaces one of ours.
"""

from __future__ import annotations

import difflib
import functools
from importlib import metadata
from typing import TYPE_CHECKING, Final

from pumice.controllers.volcano.job_plugins import env, hcclrank, mpi, pytorch, ray, ssh, svc, tensorflow
from pumice.controllers.volcano.job_plugins.protocol import JobPlugin, PluginError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pumice.api import kinds

GROUP: Final = "pumice.job_plugins"
# A later one sees what an earlier one did: ranks come from pytorch's variable if there is one.
OURS: Final[Mapping[str, type[JobPlugin]]] = {
    "env": env.Env,
    "svc": svc.Svc,
    "ssh": ssh.Ssh,
    "tensorflow": tensorflow.TensorFlow,
    "pytorch": pytorch.PyTorch,
    "mpi": mpi.Mpi,
    "ray": ray.Ray,
    "hcclrank": hcclrank.HcclRank,
}


class Catalog:
    """Plugins by name, and why some could not be loaded."""

    def __init__(self, plugins: Mapping[str, type[JobPlugin]], broken: Mapping[str, str] | None = None) -> None:
        self.plugins = dict(plugins)
        self._broken = dict(broken or {})

    @property
    def kinds(self) -> tuple[kinds.Kind, ...]:
        """The kinds that they make."""
        return tuple(dict.fromkeys(kind for each in self.plugins.values() for kind in each.makes))

    def named(self, chosen: Mapping[str, Sequence[str]]) -> list[JobPlugin]:
        """Give the plugins of a Job, in the order in which they complete pods."""
        for name in chosen:
            if name not in self.plugins:
                raise PluginError(self._unknown(name))
        return [plugin(readable(name, chosen[name])) for name, plugin in self.plugins.items() if name in chosen]

    def _unknown(self, name: str) -> str:
        if name in self._broken:
            return f"job plugin {name!r} cannot be used: {self._broken[name]}"
        close = difflib.get_close_matches(name, self.plugins, n=1)
        hint = f"did you mean {close[0]}?" if close else f"there are {', '.join(sorted(self.plugins))}"
        return f"job plugin {name!r} is not known; {hint}"


def readable(name: str, arguments: Sequence[str]) -> list[str]:
    """Give the arguments of a plugin up to the first that one of ours cannot read: like Volcano's it goes on without the rest."""
    given = list(arguments)
    while given and problem(name, given):
        given.pop()
    return given


def problem(name: str, arguments: Sequence[str]) -> str:
    """Say what is wrong with the arguments of a plugin of ours; what others make of theirs is their own."""
    plugin = OURS.get(name)
    if plugin is not None:
        try:
            plugin(arguments)
        except PluginError as error:
            return str(error)
    return ""


@functools.cache
def installed() -> Catalog:
    """Load what the installed packages declare; read once per process."""
    found: dict[str, type[JobPlugin]] = dict(OURS)
    broken: dict[str, str] = {}
    for entry in sorted(metadata.entry_points(group=GROUP), key=lambda each: (each.name, each.value)):
        if entry.name in found:
            continue  # a built-in, or the first of two packages, keeps its name
        try:
            loaded = entry.load()
        except Exception as error:  # noqa: BLE001  any failure of a foreign package is its own
            broken[entry.name] = f"{entry.value} could not be loaded: {type(error).__name__}: {error}"
            continue
        missing = [each for each in ("name", "makes", "objects", "complete") if not hasattr(loaded, each)]
        if missing or getattr(loaded, "name", "") != entry.name or not isinstance(loaded, type):
            broken[entry.name] = f"{entry.value} is no job plugin of that name" + (
                f"; it lacks {', '.join(missing)}" if missing else ""
            )
        else:
            found[entry.name] = loaded
    return Catalog(found, broken)
