"""One job being tried: an exception undoes what was done for it and takes back what was said, is put on it, and stops nobody else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, Self

if TYPE_CHECKING:
    from types import TracebackType

    from pumice.framework.breakdowns import Breakdowns
    from pumice.framework.findings import Findings
    from pumice.framework.statements import Statements
    from pumice.model.job import Job


class AttemptingSession(Protocol):
    """What an attempt needs of a session."""

    attempting: Attempt | None

    @property
    def breakdowns(self) -> Breakdowns:
        """Who broke down."""

    @property
    def findings(self) -> Findings:
        """What was found out."""

    @property
    def statements(self) -> Statements:
        """The statements of the cycle."""

    def give_up(self, job: Job, error: Exception) -> None:
        """Note that a job could not be tried to the end."""


class Attempt:
    """What is done for a job until it is committed or kept; with `passing`, the exception goes on after the undoing, to an attempt around this one."""

    __slots__ = ("_job", "_outer", "_outer_job", "_passing", "_session", "_statements", "_words")

    def __init__(self, session: AttemptingSession, job: Job, *, passing: bool = False) -> None:
        self._session = session
        self._job = job
        self._passing = passing
        self._statements = self._words = 0
        self._outer: Attempt | None = None
        self._outer_job: Job | None = None

    def __enter__(self) -> Self:
        session = self._session
        self._outer, self._outer_job = session.attempting, session.breakdowns.trying
        session.attempting, session.breakdowns.trying = self, self._job
        self._statements = session.statements.started
        self._words = session.findings.journal.begin()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        session, journal = self._session, self._session.findings.journal
        session.attempting, session.breakdowns.trying = self._outer, self._outer_job
        try:
            if isinstance(error, Exception):
                session.statements.undo_since(self._statements)
                journal.back_to(self._words)
                if not self._passing:
                    session.give_up(self._job, error)
        finally:
            journal.end()
        return isinstance(error, Exception) and not self._passing

    def settle(self) -> None:
        """Let everything said so far stay: what it is about was committed or kept."""
        self._words = self._session.findings.journal.mark
        if self._outer is not None:
            self._outer.settle()
