"""How the process is doing: named checks, each of them empty or a reason."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


STALLED: Final = 300.0  # seconds without a sign of the deciding thread


class Health:
    """Two sets of checks: `live` is for whoever would restart the process, `ready` for whoever waits for it. `notes` never fail."""

    def __init__(
        self,
        live: Mapping[str, Callable[[], str]],
        ready: Mapping[str, Callable[[], str]],
        notes: Mapping[str, Callable[[], str]],
    ) -> None:
        self._live = live
        self._ready = ready
        self._notes = notes

    def live(self) -> tuple[bool, str]:
        """Tell whether the process works, with one line per check."""
        return _judge(self._live, {})

    def ready(self) -> tuple[bool, str]:
        """Tell whether the process knows its cluster, with one line per check."""
        return _judge(self._ready, self._notes)


def _judge(checks: Mapping[str, Callable[[], str]], notes: Mapping[str, Callable[[], str]]) -> tuple[bool, str]:
    found = {name: check() for name, check in checks.items()}
    lines = [f"[-]{name} failed: {reason}" if reason else f"[+]{name} ok" for name, reason in found.items()]
    lines += [f"[!]{name}: {reason}" for name, note in notes.items() if (reason := note())]
    return not any(found.values()), "\n".join(lines)
