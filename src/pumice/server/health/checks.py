"""How the process is doing, one line per check, as Kubernetes' own servers write them.

`[+]` is fine, `[-]` makes the answer a failure, `[!]` is worth a look and changes nothing about the answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pumice.api import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    Line = tuple[str, bool, str]
    """What was looked at, whether it is fine, and how it is."""


class Health:
    """Two sets of checks, each of them empty or a reason: `live` is for whoever would restart the process, `ready` for whoever waits for it.

    `notes`, `leadership` and `api_server` are told to the latter and never fail.
    """

    def __init__(
        self,
        live: Mapping[str, Callable[[], str]],
        ready: Mapping[str, Callable[[], str]],
        notes: Mapping[str, Callable[[], str]],
        api_server: Callable[[], Iterable[Line]] = tuple,
        leadership: Callable[[], Line] | None = None,
    ) -> None:
        self._live = live
        self._ready = ready
        self._notes = notes
        self._api_server = api_server
        self._leadership = leadership

    def live(self) -> tuple[bool, str]:
        """Tell whether the process works, with one line per check."""
        good, lines = _judge(self._live)
        return good, "\n".join(lines)

    def ready(self) -> tuple[bool, str]:
        """Tell whether the process knows its cluster, with one line per check."""
        good, lines = _judge(self._ready)
        lines += [f"[!]{name}: {reason}" for name, note in self._notes.items() if (reason := note())]
        if self._leadership is not None:
            name, fine, text = self._leadership()
            lines.append(f"{'[+]' if fine else '[!]'}{name}{': ' + printable.printable(text) if text else ''}")
        lines += [f"[+]{name} ok: {text}" if fine else f"[!]{name}: {text}" for name, fine, text in self._api_server()]
        return good, "\n".join(lines)


def _judge(checks: Mapping[str, Callable[[], str]]) -> tuple[bool, list[str]]:
    found = {name: check() for name, check in checks.items()}
    lines = [f"[-]{name} failed: {reason}" if reason else f"[+]{name} ok" for name, reason in found.items()]
    return not any(found.values()), lines
