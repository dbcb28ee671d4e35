"""One dispatcher for all extension points: the functions that plugins registered, by tier, and how their answers combine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar

import msgspec

from pumice.framework.points import EVERYTHING, Combine, Point, Reads

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator, Sequence

    from pumice.framework.configuration import PluginSetting
    from pumice.framework.subject import Subject
    from pumice.model.task import Task

P = ParamSpec("P")
R = TypeVar("R")
S = TypeVar("S")


class Vote(msgspec.Struct, frozen=True):
    """An answer of a voting point, with the reason and its numbers."""

    value: int
    reason: str = ""


PERMIT = Vote(1)
ABSTAIN = Vote(0)


def reject(reason: str) -> Vote:
    """Vote against, saying why."""
    return Vote(-1, reason)


class Slot(msgspec.Struct):
    """Whose turn it is to register functions."""

    tier: int
    plugin: str
    setting: PluginSetting
    reads: Reads


class Roster:
    """The tiers of a session, and the plugin that is being opened."""

    __slots__ = ("slot", "tiers")

    def __init__(self, tiers: int) -> None:
        self.tiers = tiers
        self.slot: Slot | None = None


class Registered(msgspec.Struct, Generic[P, R]):
    """A function with the plugin it belongs to.

    `normalise` brings raw scores of the candidates to scale. Of a function that looks at other nodes, `steady` tells whether placing such a subject leaves its
    answer to the next equal one as it was, and `follow` makes what keeps step with placements (see walking); a score without `normalise` is what its follower says.
    `apart` names, beyond the shape of a subject, what the answer depends on: subjects of one shape and one name share their answers.
    """

    plugin: str
    function: Callable[P, R]
    reads: Reads
    normalise: Callable[..., Any] | None = None
    steady: Callable[[Subject], bool] | None = None
    follow: Callable[..., Any] | None = None
    apart: Callable[[Subject], Hashable] | None = None

    def is_stepwise(self, subject: Subject) -> bool:
        """Tell whether a placement may change the answers to equal subjects."""
        return self.steady is None or not self.steady(subject)


class Extension(Generic[P, R]):
    """An extension point of one session: what was registered, and the call that combines it."""

    __slots__ = ("_roster", "active", "point", "tiers")

    def __init__(self, point: Point, roster: Roster) -> None:
        self.point = point
        self._roster = roster
        self.tiers: list[list[Registered[P, R]]] = [[] for _ in range(roster.tiers)]
        self.active = False

    def add(
        self,
        function: Callable[P, R],
        *,
        reads: Reads | None = None,
        normalise: Callable[..., Any] | None = None,
        steady: Callable[[Subject], bool] | None = None,
        follow: Callable[..., Any] | None = None,
        apart: Callable[[Subject], Hashable] | None = None,
    ) -> None:
        """Register a function for the plugin that is being opened, unless its switch is off."""
        slot = self._roster.slot
        if slot is None:
            raise RuntimeError(f"{self.point.name}: functions are registered in Plugin.open only")
        if self._is_on(slot.setting.switches):
            self.tiers[slot.tier].append(
                Registered(
                    slot.plugin, function, slot.reads if reads is None else reads, normalise, steady, follow, apart
                )
            )
            self.active = True

    def _is_on(self, switches: dict[str, bool]) -> bool:
        if self.point.switch is None:
            return True
        return any(switches.get(name, False) for name in self.point.switch.split("|"))

    def __iter__(self) -> Iterator[Registered[P, R]]:
        for tier in self.tiers:
            yield from tier


class Refusals(Extension[P, R | None]):
    """The first answer that is not None, which is the reason against."""

    __slots__ = ()

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R | None:
        """Return the first reason given, or None."""
        for tier in self.tiers:
            for registered in tier:
                reason = registered.function(*args, **kwargs)
                if reason is not None:
                    return reason
        return None


class All(Extension[P, bool]):
    """Yes if every answer is yes."""

    __slots__ = ()

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> bool:
        """Ask until somebody says no."""
        return all(registered.function(*args, **kwargs) for registered in self)


class AllInFirstTier(Extension[P, bool]):
    """All of the first tier that has any function; no if there is none."""

    __slots__ = ()

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> bool:
        """Ask the first tier that answers."""
        for tier in self.tiers:
            if tier:
                return all(registered.function(*args, **kwargs) for registered in tier)
        return False


class Votes(Extension[P, Vote]):
    """A rejection ends the vote; at the end of a tier a permit decides; nobody voting means yes."""

    __slots__ = ()

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Vote:
        """Return the deciding vote: a rejection as it was cast, or a permit."""
        for tier in self.tiers:
            permitted = False
            for registered in tier:
                vote = registered.function(*args, **kwargs)
                if vote.value < 0:
                    return Vote(-1, f"{registered.plugin}: {vote.reason}" if vote.reason else registered.plugin)
                permitted = permitted or vote.value > 0
            if permitted:
                return PERMIT
        return PERMIT


class Notify(Extension[P, None]):
    """Tell everybody."""

    __slots__ = ()

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> None:
        """Call every function."""
        for registered in self:
            registered.function(*args, **kwargs)


class FirstAnswer(Extension[P, R | None]):
    """The first answer that is not None."""

    __slots__ = ()

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R | None:
        """Ask until somebody knows."""
        for registered in self:
            answer = registered.function(*args, **kwargs)
            if answer is not None:
                return answer
        return None


class Intersection(Extension[[S, "Sequence[Task]"], Any], Generic[S]):
    """Victims: intersected within a tier, the first tier left with any decides. None abstains; an empty answer ends its tier.

    With `final_veto`, kube-batch's rule: one intersection over all tiers, and an empty one is final.
    """

    __slots__ = ("final_veto",)

    def __init__(self, point: Point, roster: Roster) -> None:
        super().__init__(point, roster)
        self.final_veto = False

    def __call__(self, subject: S, candidates: Sequence[Task]) -> list[Task]:
        """Return the candidates that the deciding tier agrees on."""
        if self.final_veto:
            return self._agreed([f.function(subject, candidates) for f in self])
        for tier in self.tiers:
            decided, quarrel = _intersect(tier, subject, candidates)
            if quarrel:
                # Plugins that take the first few each took others: ask again about those whom nobody refuses on their own.
                undisputed = [task for task in candidates if _intersect(tier, subject, [task])[0]]
                if 0 < len(undisputed) < len(candidates):
                    decided, _ = _intersect(tier, subject, undisputed)
            if decided:
                return decided
        return []

    @staticmethod
    def _agreed(answers: Sequence[Sequence[Task] | None]) -> list[Task]:
        """Return what all answers have in common."""
        agreed: list[Task] | None = None
        for answer in answers:
            if answer is not None:
                kept = {task.uid for task in answer}
                agreed = list(answer) if agreed is None else [task for task in agreed if task.uid in kept]
        return agreed or []


def _intersect(
    tier: Sequence[Registered[..., Any]], subject: Any, candidates: Sequence[Task]
) -> tuple[list[Task], bool]:
    """Return what the answers of a tier have in common, and whether that is nobody though every answer named somebody."""
    decided: list[Task] = []
    quarrel = False
    for registered in tier:
        answer = registered.function(subject, candidates)
        if answer is None:
            continue
        if not answer:
            return [], False
        if decided:
            kept = {task.uid for task in answer}
            # An empty intersection means "no decision": the next plugin of the tier starts afresh (test_intersection_restarts_inside_a_tier).
            decided = [task for task in decided if task.uid in kept]
            quarrel = quarrel or not decided
        elif not quarrel or len(answer) < len(candidates):
            # One who would let everybody go, such as conformance, does not settle a quarrel in favour of everybody.
            decided = list(answer)
    return decided, quarrel and not decided


class Union(Extension[P, Any]):
    """Tasks united within a tier; the first tier with any decides."""

    __slots__ = ()

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> list[Task]:
        """Return the union of the first tier that names anybody."""
        for tier in self.tiers:
            united: dict[str, Task] = {}
            for registered in tier:
                for task in registered.function(*args, **kwargs):
                    united.setdefault(task.uid, task)
            if united:
                return list(united.values())
        return []


COMBINERS: dict[Combine, type[Extension[..., Any]]] = {
    Combine.FIRST_REFUSAL: Refusals,
    Combine.ANY_REFUSAL: Refusals,
    Combine.VOTE_BY_TIER: Votes,
    Combine.ALL: All,
    Combine.ALL_IN_FIRST_TIER: AllInFirstTier,
    Combine.FIRST_FAILING: Extension,
    Combine.SUM: Extension,
    Combine.FIRST_ANSWER: FirstAnswer,
    Combine.INTERSECT_BY_TIER: Intersection,
    Combine.UNION_BY_TIER: Union,
    Combine.NOTIFY: Notify,
}

__all__ = ["ABSTAIN", "COMBINERS", "EVERYTHING", "PERMIT", "Extension", "Roster", "Slot", "Vote", "reject"]
