"""One dispatcher for all extension points: the functions that plugins registered, by tier, and how their answers combine.

A `Point` declares one (see `points`); the class of its extension says how answers combine, and nobody else calls what was registered.
"""

from __future__ import annotations

import typing
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Generic, ParamSpec, TypeVar, overload

import msgspec
import numpy as np

from pumice.framework import registration
from pumice.framework.reads import Reads
from pumice.framework.registration import RegistrationError, Roster
from pumice.model.task import Task

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pumice.framework.evaluation import Floats

P = ParamSpec("P")
R = TypeVar("R")
S = TypeVar("S")
T = TypeVar("T")
E = TypeVar("E", bound="Extension[..., Any]")


class Vote(msgspec.Struct, frozen=True):
    """An answer of a voting point, with the reason and its numbers."""

    value: int
    reason: str = ""


PERMIT = Vote(1)
ABSTAIN = Vote(0)


def reject(reason: str) -> Vote:
    """Vote against, saying why."""
    return Vote(-1, reason)


class Point(Generic[E]):
    """One extension point, declared once, as an attribute of a session.

    `kind` is the class of its extension, which says how answers combine, with the types of what its functions take; `parameters` are words for these, in order.
    The point is on while one of its switches is; without any it cannot be switched off. `fallback` orders what no plugin tells apart.
    """

    def __init__(
        self, name: str, kind: type[E], parameters: str, *switches: str, says: str, fallback: Sequence[str] = ()
    ) -> None:
        self.name = name
        self.attribute = ""
        self.kind: type[E] = typing.get_origin(kind) or kind
        self.switches = switches
        self.says = says
        self.fallback = fallback
        words = parameters.split(", ")
        types = self.kind.taken(typing.get_args(kind))
        self.parameters = tuple(f"{word}: {_named(each)}" for word, each in zip(words, types, strict=True))
        self.answer = self.kind.answer.format(*map(_named, typing.get_args(kind)[1:]))

    def __set_name__(self, owner: type, attribute: str) -> None:
        self.attribute = attribute

    @overload
    def __get__(self, session: None, owner: type) -> Point[E]: ...

    @overload
    def __get__(self, session: object, owner: type) -> E: ...

    def __get__(self, session: object | None, owner: type) -> Point[E] | E:
        """Give the declaration; a session that is open holds its extension in the attribute itself."""
        if session is None:
            return self
        raise RuntimeError(f"{self.name}: the session has no extension points yet")

    def extension(self, roster: Roster) -> E:
        """Make the extension of one session."""
        return self.kind(self, roster)

    def is_on(self, switches: Mapping[str, bool]) -> bool:
        """Tell whether a file leaves the point on."""
        return not self.switches or any(switches.get(name, False) for name in self.switches)

    @property
    def signature(self) -> str:
        """What its functions take and give."""
        return f"({', '.join(self.parameters)}) -> {self.answer}"


def _named(kind: object) -> str:
    """Write a type as a signature would, without the modules."""
    if isinstance(kind, type) and not typing.get_args(kind):
        return kind.__name__
    if typing.get_origin(kind) is np.ndarray:
        return f"array of {typing.get_args(typing.get_args(kind)[1])[0].__name__}"
    text = str(kind).replace("'", "")
    for part in sorted(
        {word for word in text.replace("[", " ").replace("]", " ").replace(",", " ").split() if "." in word}
    ):
        text = text.replace(part, part.rpartition(".")[2])
    return text


class Registered(msgspec.Struct, Generic[P, R]):
    """A function with the plugin it belongs to, and what its answers depend on."""

    plugin: str
    function: Callable[P, R]
    reads: Reads


class Extension(Generic[P, R]):
    """An extension point of one session: what was registered, and the call that combines it."""

    combines: ClassVar[str] = ""
    answer: ClassVar[str] = "{0}"

    __slots__ = ("_roster", "active", "point", "tiers")

    def __init__(self, point: Point[Any], roster: Roster) -> None:
        self.point = point
        self._roster = roster
        self.tiers: list[list[Registered[P, R]]] = [[] for _ in range(roster.tiers)]
        self.active = False

    @classmethod
    def taken(cls, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the types of what its functions take, from those that the class was declared with."""
        return tuple(arguments[0])

    def add(self, function: Callable[P, R], *, reads: Reads | None = None) -> None:
        """Register a function for the plugin that is being opened, unless its switch is off."""
        self._enter(Registered("", function, Reads(0)), reads)

    def _enter(self, registered: Registered[P, R], reads: Reads | None) -> None:
        slot, point = self._roster.slot, self.point
        if slot is None:
            raise RuntimeError(f"{point.name}: functions are registered in Plugin.open only")
        registration.check(registered.function, point.name, point.parameters, slot.plugin)
        if point.is_on(slot.setting.switches):
            registered.plugin = slot.plugin
            registered.reads = slot.reads if reads is None else reads
            self.tiers[slot.tier].append(registered)
            self.active = True

    def __iter__(self) -> Iterator[Registered[P, R]]:
        for tier in self.tiers:
            yield from tier


class Refusals(Extension[P, R | None]):
    """The first answer that is not None, which is the reason against."""

    combines = "the first reason given against is the answer; none given means yes"
    answer = "{0} | None"

    __slots__ = ()

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R | None:
        """Return the first reason given, or None."""
        for tier in self.tiers:
            for registered in tier:
                reason = registered.function(*args, **kwargs)
                if reason is not None:
                    return reason
        return None

    def among(self, chosen: Callable[[Reads], bool], *args: P.args, **kwargs: P.kwargs) -> R | None:
        """Ask only functions that read what is chosen."""
        for registered in self:
            if chosen(registered.reads):
                reason = registered.function(*args, **kwargs)
                if reason is not None:
                    return reason
        return None


class All(Extension[P, bool]):
    """Yes if every answer is yes."""

    combines = "every answer must be yes"
    answer = "bool"

    __slots__ = ()

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> bool:
        """Ask until somebody says no."""
        return all(registered.function(*args, **kwargs) for registered in self)


class AllInFirstTier(Extension[P, bool]):
    """All of the first tier that has any function; no if there is none."""

    combines = "all answers of the first tier that has any must be yes; no answer means no"
    answer = "bool"

    __slots__ = ()

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> bool:
        """Ask the first tier that answers."""
        for tier in self.tiers:
            if tier:
                return all(registered.function(*args, **kwargs) for registered in tier)
        return False


class Votes(Extension[P, Vote]):
    """A rejection ends the vote; at the end of a tier a permit decides; nobody voting means yes."""

    combines = "a rejection ends it; a tier with a permit decides; nobody voting means yes"
    answer = "Vote"

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


class Notify(Extension[P, object]):
    """Tell everybody."""

    combines = "everybody is told"
    answer = "None"

    __slots__ = ()

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> None:
        """Call every function."""
        for registered in self:
            registered.function(*args, **kwargs)


class FirstAnswer(Extension[P, R | None]):
    """The first answer that is not None."""

    combines = "the first answer that is not None decides"
    answer = "{0} | None"

    __slots__ = ()

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R | None:
        """Ask until somebody knows."""
        for registered in self:
            answer = registered.function(*args, **kwargs)
            if answer is not None:
                return answer
        return None


class Intersection(Extension[[S, "Sequence[Task]"], "Sequence[Task] | None"], Generic[S]):
    """Victims: intersected within a tier, the first tier left with any decides. None abstains; an empty answer ends its tier.

    With `final_veto`, kube-batch's rule: one intersection over all tiers, and an empty one is final.
    """

    combines = "answers of a tier are intersected; the first tier left with candidates decides"
    answer = "Sequence[Task] | None"

    __slots__ = ("final_veto",)

    def __init__(self, point: Point[Any], roster: Roster) -> None:
        super().__init__(point, roster)
        self.final_veto = roster.final_veto

    @classmethod
    def taken(cls, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the type of who asks, and that of the candidates."""
        return (*arguments, Sequence[Task])

    def __call__(self, subject: S, candidates: Sequence[Task]) -> list[Task]:
        """Return the candidates that the deciding tier agrees on."""
        if self.final_veto:
            return self._agreed([f.function(subject, candidates) for f in self])
        for tier in self.tiers:
            decided, quarrel = self._intersect(tier, subject, candidates)
            if quarrel:
                # Plugins that take the first few each took others: ask again about those whom nobody refuses on their own.
                undisputed = [task for task in candidates if self._intersect(tier, subject, [task])[0]]
                if 0 < len(undisputed) < len(candidates):
                    decided, _ = self._intersect(tier, subject, undisputed)
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

    @staticmethod
    def _intersect(
        tier: Sequence[Registered[[S, Sequence[Task]], Sequence[Task] | None]], subject: S, candidates: Sequence[Task]
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
                for task in registered.function(*args, **kwargs):
                    united.setdefault(task.uid, (task, registered.plugin))
            if united:
                return list(united.values())
        return []


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
            total += registered.function(subject, items)
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
            first, second = registered.function(left, context), registered.function(right, context)
            if first != second:
                return -1 if first < second else 1
        return 0


__all__ = [
    "ABSTAIN",
    "PERMIT",
    "All",
    "AllInFirstTier",
    "ContextOrder",
    "Extension",
    "FirstAnswer",
    "Intersection",
    "Notify",
    "Point",
    "Refusals",
    "Registered",
    "RegistrationError",
    "Sum",
    "Union",
    "Vote",
    "Votes",
    "reject",
]
