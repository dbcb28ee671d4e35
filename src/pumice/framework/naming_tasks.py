"""How answers combine that name tasks: who may be a victim, and whom plugins want gone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar

from pumice.framework import wrong_answers
from pumice.framework.breakdowns import PluginBreakdownError
from pumice.framework.extensions import Extension, Registered
from pumice.framework.reads import NOTHING
from pumice.model.task import Task

if TYPE_CHECKING:
    from collections.abc import Callable

    from pumice.framework.extensions import Point
    from pumice.framework.reads import Reads
    from pumice.framework.registration import Roster

P = ParamSpec("P")
S = TypeVar("S")


class Intersection(Extension[[S, "Sequence[Task]"], "Sequence[Task] | None"], Generic[S]):
    """Victims: intersected within a tier, the first tier left with any decides. None abstains; an empty answer ends its tier; a breakdown protects everybody.

    With `final_veto`, kube-batch's rule: one intersection over all tiers, and an empty one is final.
    """

    combines = "answers of a tier are intersected; the first tier left with candidates decides"
    answer = "Sequence[Task] | None"
    refuses = True

    __slots__ = ("final_veto",)

    def __init__(self, point: Point[Any], roster: Roster) -> None:
        super().__init__(point, roster)
        self.final_veto = roster.final_veto

    def add(
        self,
        function: Callable[[S, Sequence[Task]], Sequence[Task] | None],
        *,
        reads: Reads | None = None,
        basis: Callable[[], object] | None = None,
    ) -> None:
        """Register a function; with a basis, that it offers nobody is remembered as long as that is the same (`framework/refusals.py`)."""
        self._enter(Registered("", function, NOTHING, basis=basis), reads)

    @classmethod
    def taken(cls, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the type of who asks, and that of the candidates."""
        return (*arguments, Sequence[Task])

    def __call__(self, subject: S, candidates: Sequence[Task]) -> list[Task]:
        """Return the candidates that the deciding tier agrees on."""
        return self.decided(subject, candidates)[1]

    def decided(self, subject: S, candidates: Sequence[Task]) -> tuple[int, list[Task]]:
        """Return which tier decides about all of some candidates, and on whom it agrees; -1 and nobody if none does."""
        try:
            # With a final veto there is one intersection over all tiers.
            for number in range(1 if self.final_veto else len(self.tiers)):
                if found := self._agreed_in(number, subject, candidates):
                    return number, found
        except PluginBreakdownError:
            pass
        return -1, []

    def of_tier(self, number: int, subject: S, candidates: Sequence[Task]) -> list[Task]:
        """Return the candidates that one tier agrees on; nobody where there is no such tier."""
        try:
            return [] if number < 0 else self._agreed_in(number, subject, candidates)
        except PluginBreakdownError:
            return []

    def _agreed_in(self, number: int, subject: S, candidates: Sequence[Task]) -> list[Task]:
        if self.final_veto:
            return self._agreed([self._answer(f, subject, candidates) for f in self])
        tier = self.tiers[number]
        decided, quarrel = self._intersect(tier, subject, candidates)
        if quarrel:
            # Plugins that take the first few each took others: ask again about those whom nobody refuses on their own.
            undisputed = [task for task in candidates if self._intersect(tier, subject, [task])[0]]
            if 0 < len(undisputed) < len(candidates):
                decided, _ = self._intersect(tier, subject, undisputed)
        return decided

    @staticmethod
    def _agreed(answers: Sequence[Sequence[Task] | None]) -> list[Task]:
        """Return what all answers have in common."""
        agreed: list[Task] | None = None
        for answer in answers:
            if answer is not None:
                kept = {task.uid for task in answer}
                agreed = list(answer) if agreed is None else [task for task in agreed if task.uid in kept]
        return agreed or []

    def _answer(
        self, registered: Registered[[S, Sequence[Task]], Sequence[Task] | None], subject: S, candidates: Sequence[Task]
    ) -> Sequence[Task] | None:
        """Ask one function."""
        try:
            answer = registered.function(subject, candidates)
            if answer is not None and answer is not candidates:
                wrong_answers.check_chosen(answer, candidates)
        except Exception as error:
            raise self.broke(registered, error, (subject, candidates)) from error
        return answer

    def _intersect(
        self,
        tier: Sequence[Registered[[S, Sequence[Task]], Sequence[Task] | None]],
        subject: S,
        candidates: Sequence[Task],
    ) -> tuple[list[Task], bool]:
        """Return what the answers of a tier have in common, and whether that is nobody though every answer named somebody."""
        decided: list[Task] = []
        quarrel = False
        for registered in tier:
            answer = self._answer(registered, subject, candidates)
            if answer is None:
                continue
            if not answer:
                return [], False
            if decided:
                kept = {task.uid for task in answer}
                # An empty intersection means "no decision": the next plugin of the tier starts afresh.
                decided = [task for task in decided if task.uid in kept]
                quarrel = quarrel or not decided
            elif not quarrel or len(answer) < len(candidates):
                # One who would let everybody go, such as conformance, does not settle a quarrel in favour of everybody.
                decided = list(answer)
        return decided, quarrel and not decided


class Union(Extension[P, "Sequence[Task]"]):
    """Tasks united within a tier; the first tier with any decides."""

    combines = "answers of a tier are united; the first tier with candidates decides"
    answer = "Sequence[Task]"

    __slots__ = ()

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> list[tuple[Task, str]]:
        """Return whom the first tier that names anybody names, each with the first plugin that does."""
        for tier in self.tiers:
            united: dict[str, tuple[Task, str]] = {}
            for registered in tier:
                for task in self._named(registered, args, kwargs):
                    united.setdefault(task.uid, (task, registered.plugin))
            if united:
                return list(united.values())
        return []

    def _named(self, registered: Registered[P, Sequence[Task]], args: Any, kwargs: Any) -> Sequence[Task]:
        """Ask one function; one that breaks down names nobody."""
        try:
            answer = registered.function(*args, **kwargs)
            wrong_answers.check_chosen(answer, args[0])
        except Exception as error:  # noqa: BLE001  whatever a plugin raises
            self.leave_out(registered, error)
            return ()
        return answer
