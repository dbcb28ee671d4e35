"""Which controllers run: the list that operators write, as Volcano's controller manager takes it.

`*` stands for all, `name` and `+name` for one more, `-name` for all but this one. Without `*` only those that are named run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pumice.api import names
from pumice.server.flags.process_settings import SettingsError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

COMPANIONS: Final = names.COMPANION_CONTROLLER
ALL: Final = "*"


def provided() -> tuple[str, ...]:
    """Name the controllers that there are: those of Volcano's kinds, and the one that groups pods which nobody grouped."""
    from pumice.controllers.volcano import registry  # noqa: PLC0415  a scheduler that runs none of them does not need to load them all

    return (*registry.REGISTERED, COMPANIONS)


def chosen(words: Sequence[str], among: Sequence[str] | None = None) -> tuple[str, ...]:
    """Give the names of those that run; raise `SettingsError` for a name that is unknown, not provided, or there twice."""
    known = provided() if among is None else among
    wanted: dict[str, bool] = {}
    for word in words:
        if word == ALL:
            continue
        name = word[1:] if word.startswith(("+", "-")) else word
        _check(name, word, known, wanted)
        wanted[name] = not word.startswith("-")
    return tuple(name for name in known if wanted.get(name, ALL in words))


def _check(name: str, word: str, known: Iterable[str], wanted: dict[str, bool]) -> None:
    from pumice.controllers.volcano import registry  # noqa: PLC0415  as above

    if name in wanted:
        raise SettingsError(f"--controllers: {name!r} is named twice")
    if name in registry.REFUSED and not word.startswith("-"):
        raise SettingsError(f"--controllers: {name}: {registry.REFUSED[name]}")
    if name not in known and name not in registry.REFUSED:
        raise SettingsError(f"--controllers: there is no {name!r}; there are {', '.join(known)}")
