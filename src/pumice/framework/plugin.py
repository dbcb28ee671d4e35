"""The base classes of plugins and actions: a name, declared arguments, and the hooks of a cycle."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from pumice.framework.points import EVERYTHING, Reads

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pumice.api import documents
    from pumice.framework.configuration import Argument
    from pumice.framework.session import Session


class Plugin:
    """A policy. It lives until the configuration changes; `open` and `close` mark each cycle.

    `reads` says what its answers about nodes depend on, unless a function says so itself when it is registered. The default is everything, which is always
    right and never fast.
    """

    name: ClassVar[str] = ""
    arguments: ClassVar[tuple[Argument, ...]] = ()
    points: ClassVar[frozenset[str]] = frozenset()
    reads: ClassVar[Reads] = EVERYTHING

    def __init__(self, arguments: Mapping[str, Any], switches: Mapping[str, bool]) -> None:
        self.settings = arguments
        self.switches = switches

    @classmethod
    def objections(cls, arguments: Mapping[str, Any]) -> Iterable[tuple[documents.Path, str]]:
        """Say what is wrong with arguments that are right one by one: where, and why. Each refuses the file."""
        del arguments
        return ()

    def open(self, session: Session) -> None:
        """Register functions at the extension points of a session."""

    def close(self, session: Session) -> None:
        """Look back on the cycle before its status is written."""


class Action:
    """One step of a cycle."""

    name: ClassVar[str] = ""
    arguments: ClassVar[tuple[Argument, ...]] = ()

    def __init__(self, arguments: Mapping[str, Any]) -> None:
        self.settings = arguments

    def execute(self, session: Session) -> None:
        """Do the step."""
        raise NotImplementedError  # pragma: no cover  every action overrides this
