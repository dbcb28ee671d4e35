"""How the answers of plugins combine: a class for each way, and the one place where functions are called that plugins registered.

The class also says what it means that a function breaks down, by an exception or by what cannot be an answer: where plugins refuse it is a refusal, where they
only order or score the function is left out of the rest of the cycle, and where a job is being tried and nothing else can be said the job is given up. One `try` around
all calls of a question costs nothing while nobody breaks down.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar

import numpy as np

from pumice.api import names
from pumice.framework import wrong_answers
from pumice.framework.breakdowns import PluginBreakdownError, WrongAnswerError
from pumice.framework.extensions import PERMIT, Extension, Registered, Vote
from pumice.framework.reads import NOTHING
from pumice.framework.reasons import Invalid

if TYPE_CHECKING:
    from collections.abc import Callable

    from pumice.framework.independence import Declared
    from pumice.framework.reads import Reads
    from pumice.framework.vectors import Floats

P = ParamSpec("P")
R = TypeVar("R")
S = TypeVar("S")
T = TypeVar("T")


class Refusals(Extension[P, R | None]):
    """The first answer that is not None, which is the reason against; breaking down is one."""

    combines = "the first reason given against is the answer; none given means yes"
    answer = "{0} | None"
    refuses = True

    __slots__ = ()

    def add(
        self, function: Callable[P, R | None], *, reads: Reads | None = None, basis: Callable[[], object] | None = None
    ) -> None:
        """Register a function; with a basis, its refusals are remembered as long as that is the same (`framework/refusals.py`)."""
        self._enter(Registered("", function, NOTHING, basis=basis), reads)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R | None:
        """Return the first reason given, or None."""
        for tier in self.tiers:
            for registered in tier:
                try:
                    reason = registered.function(*args, **kwargs)
                    if reason is not None:
                        wrong_answers.check_instance(reason, self.point.given)
                        return reason
                except Exception as error:  # noqa: BLE001  whatever a plugin raises
                    return self._refusal(self.broke(registered, error, args))
        return None

    def among(self, chosen: Callable[[Declared], bool], *args: P.args, **kwargs: P.kwargs) -> R | None:
        """Ask only functions that are chosen by what they read."""
        for registered in self:
            if chosen(registered):
                reason = self.ask(registered, *args, **kwargs)
                if reason is not None:
                    return reason
        return None

    def ask(self, registered: Registered[P, R | None], *args: P.args, **kwargs: P.kwargs) -> R | None:
        """Ask one function alone."""
        try:
            return registered.function(*args, **kwargs)
        except Exception as error:  # noqa: BLE001  as above
            return self._refusal(self.broke(registered, error, args))

    def _refusal(self, broken: PluginBreakdownError) -> R:
        """Refuse with what is known of a breakdown."""
        reason: Any = Invalid(names.EVENT_BROKE_DOWN, str(broken)) if self.point.given is Invalid else str(broken)
        answer: R = reason
        return answer


class All(Extension[P, bool]):
    """Yes if every answer is yes; breaking down is a no."""

    combines = "every answer must be yes"
    answer = "bool"
    refuses = True

    __slots__ = ()

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> bool:
        """Ask until somebody says no."""
        for tier in self.tiers:  # noqa: SIM110  asked for every placement, and a generator costs more than one tier
            if tier and not self._is_yes(tier, args, kwargs):
                return False
        return True

    def _is_yes(self, tier: Sequence[Registered[P, bool]], args: Any, kwargs: Any) -> bool:
        """Ask one tier. A job that is being tried is given up by a breakdown: asking about it again, member by member, would be in vain."""
        for registered in tier:
            try:
                answer = registered.function(*args, **kwargs)
                if answer is not True and not wrong_answers.check_truth(answer):
                    return False
            except Exception as error:
                broken, breakdowns = self.broke(registered, error, args), self._roster.breakdowns
                if breakdowns.trying is not None and breakdowns.about(args, 0) == breakdowns.trying.key:
                    raise broken from error
                return False
        return True


class AllInFirstTier(All[P]):
    """All of the first tier that has any function; no if there is none."""

    combines = "all answers of the first tier that has any must be yes; no answer means no"

    __slots__ = ()

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> bool:
        """Ask the first tier that answers."""
        for tier in self.tiers:
            if tier:
                return self._is_yes(tier, args, kwargs)
        return False


class Votes(Extension[P, Vote]):
    """A rejection ends the vote; at the end of a tier a permit decides; nobody voting means yes. Breaking down is a rejection."""

    combines = "a rejection ends it; a tier with a permit decides; nobody voting means yes"
    answer = "Vote"
    refuses = True

    __slots__ = ()

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Vote:
        """Return the deciding vote: a rejection as it was cast, or a permit."""
        for tier in self.tiers:
            permitted = False
            for registered in tier:
                try:
                    vote = registered.function(*args, **kwargs)
                    wrong_answers.check_instance(vote, Vote)
                    if vote.value < 0:
                        reason = f"{registered.plugin}: {vote.reason}" if vote.reason else registered.plugin
                        return Vote(-1, reason, vote.cause)
                    if vote.value > 0:
                        permitted = True
                    elif vote.value != 0:
                        raise WrongAnswerError("it votes NaN")  # noqa: TRY301  all that can go wrong is one case
                except Exception as error:  # noqa: BLE001  whatever a plugin raises
                    return Vote(-1, str(self.broke(registered, error, args)))
            if permitted:
                return PERMIT
        return PERMIT


class Notify(Extension[P, object]):
    """Tell everybody; where somebody breaks down, whoever it was about is given up."""

    combines = "everybody is told"
    answer = "None"

    __slots__ = ()

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> None:
        """Call every function."""
        for registered in self:
            try:
                registered.function(*args, **kwargs)
            except Exception as error:
                raise self.broke(registered, error, args) from error


class FirstAnswer(Extension[P, R | None]):
    """The first answer that is not None; where somebody breaks down, whoever it was about is given up."""

    combines = "the first answer that is not None decides"
    answer = "{0} | None"

    __slots__ = ()

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R | None:
        """Ask until somebody knows."""
        for registered in self:
            try:
                answer = registered.function(*args, **kwargs)
                if answer is not None:
                    self._check(answer, args)
                    return answer
            except Exception as error:
                raise self.broke(registered, error, args) from error
        return None

    def _check(self, answer: R, args: tuple[Any, ...]) -> None:
        """Refuse what cannot be an answer."""
        del args
        wrong_answers.check_instance(answer, self.point.given)


class Position(FirstAnswer[P, R]):
    """The first answer that is not None, a position among the nodes that were asked about."""

    __slots__ = ()

    def _check(self, answer: R, args: tuple[Any, ...]) -> None:
        super()._check(answer, args)
        wrong_answers.check_position(answer, len(args[1]))


class Sum(Extension[[S, "Sequence[T]"], "Floats"], Generic[S, T]):
    """Scores of items, added."""

    combines = "scores are added"
    answer = "array of float64"

    __slots__ = ()

    @classmethod
    def taken(cls, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the type of whom the items are scored for, and that of the items."""
        return (arguments[0], Sequence[arguments[1]])  # type: ignore[valid-type]

    def __call__(self, subject: S, items: Sequence[T]) -> Floats:
        """Add up what the plugins say about items."""
        total = np.zeros(len(items))
        for registered in self:
            try:
                points = registered.function(subject, items)
                wrong_answers.check_points(points, len(items))
            except Exception as error:
                raise self.broke(registered, error, (subject, items)) from error
            total += points
        return total


class ContextOrder(Extension[[S, T], Any], Generic[S, T]):
    """An order of items that depends on who asks: the first plugin whose keys tell two items apart decides."""

    combines = "the first plugin that tells two items apart decides"
    answer = "sort key"

    __slots__ = ()

    @classmethod
    def taken(cls, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the type of the items, and that of who asks."""
        return arguments

    def compare(self, left: S, right: S, context: T) -> int:
        """Compare two items, negative meaning that the first goes first; 0 if no plugin tells them apart."""
        for registered in self:
            try:
                first, second = registered.function(left, context), registered.function(right, context)
                wrong_answers.check_keys((first, second))
                if first != second:
                    return -1 if first < second else 1
            except Exception as error:  # noqa: BLE001  whatever a plugin raises
                self.leave_out(registered, error)
        return 0
