"""The base classes of plugins and actions: a name, declared settings, and the hooks of a cycle."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final

from pumice.framework.configuration import Configured, Settings
from pumice.framework.points import EVERYTHING, Reads

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pumice.api import documents
    from pumice.framework.explaining.explanations import EvictionVerdict, GangVerdict
    from pumice.framework.session import Session
    from pumice.model.job import Job


TAKING_NO_SIDES: Final = frozenset(
    {
        *("QueueOrder", "JobOrder", "SubJobOrder", "TaskOrder", "NodeOrder", "JobStarving"),
        *("Preemptable", "Reclaimable", "UnifiedEvictable", "VictimTasks", "Protection"),
    }
)
"""The points at which nobody is kept from a start where nobody is evicted."""


class Plugin:
    """A policy. It lives until the configuration changes; `open` and `close` mark each cycle.

    `settings` declares what it may be told, and holds what it is told (see configuration.settings); `points` names where it may register functions.
    `reads` says what its answers about nodes depend on, unless a function says so itself when it is registered. The default is everything, which is always
    right and never fast. One that asks somebody else says that it is not `pure`: what it was told is in no recording, so it is in no replay and no study either.
    """

    name: ClassVar[str] = ""
    points: ClassVar[frozenset[str]] = frozenset()
    reads: ClassVar[Reads] = EVERYTHING
    pure: ClassVar[bool] = True  # whether it decides by what it sees of the session alone
    if not TYPE_CHECKING:  # else a type checker would take this for what every subclass is told
        settings = Configured(Settings)

    def __init__(self, settings: Settings, switches: Mapping[str, bool]) -> None:
        self.__dict__["settings"] = settings
        self.switches = switches

    @classmethod
    def objections(cls, arguments: Mapping[str, Any]) -> Iterable[tuple[documents.Path, str]]:
        """Say what is wrong with arguments that are right one by one: where, and why. Each refuses the file."""
        del arguments
        return ()

    @classmethod
    def remarks(cls, arguments: Mapping[str, Any]) -> Iterable[tuple[documents.Path, str]]:
        """Say what is allowed and has no effect: where, and why. Each is a warning."""
        del arguments
        return ()

    def open(self, session: Session) -> None:
        """Register functions at the extension points of a session."""

    def conclude(self, session: Session) -> None:
        """Draw conclusions from what was decided, before anybody looks back on it."""

    def close(self, session: Session) -> None:
        """Look back on the cycle before its status is written."""

    def is_settled(self, session: Session) -> bool:
        """Tell whether what was placed in a cycle that is over lets nobody start whom this plugin kept waiting; by default, whether it could keep anybody waiting."""
        del session
        return bool(self.points) and self.points <= TAKING_NO_SIDES


class Action:
    """One step of a cycle."""

    name: ClassVar[str] = ""
    if not TYPE_CHECKING:  # as above
        settings = Configured(Settings)

    def __init__(self, settings: Settings) -> None:
        self.__dict__["settings"] = settings

    def execute(self, session: Session) -> None:
        """Do the step."""
        raise NotImplementedError  # pragma: no cover  every action overrides this

    def is_settled(self, session: Session) -> bool:
        """Tell whether this action would do nothing if it were executed again, with what was placed in place and plugins that say the same."""
        del session
        return False

    def gang(self, session: Session, job: Job) -> GangVerdict | None:
        """Say, to whoever wants an explanation, how much of a job this action could place; None if it places nobody."""
        del session, job
        return None

    def candidates(self, session: Session, job: Job) -> EvictionVerdict | None:
        """Say likewise whom this action may look at for a job, and what keeps them; None if it evicts nobody."""
        del session, job
        return None


def told(part: type[Plugin | Action]) -> type[Settings]:
    """Return the class of what a plugin or an action is told."""
    kind: Any = part
    settings: type[Settings] = kind.settings
    return settings
