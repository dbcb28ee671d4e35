"""One dispatcher for all extension points: the functions that plugins registered, by tier, and how their answers combine.

A `Point` declares one (see `points`); the class of its extension says how answers combine, and nobody else calls what was registered.

The class also says what it means that a function breaks down, by an exception or by what cannot be an answer: where plugins refuse it is a refusal, where they
only order or score the function is left out of the rest of the cycle, and where a job is being tried and nothing else can be said the job is given up. One `try` around
all calls of a question costs nothing while nobody breaks down.
"""

from __future__ import annotations

import typing
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Generic, ParamSpec, TypeVar, overload

import msgspec
import numpy as np

from pumice.api import names
from pumice.framework import wrong_answers
from pumice.framework.breakdowns import PluginBreakdownError, Rest, WrongAnswerError
from pumice.framework.reads import NOTHING, Reads
from pumice.framework.reasons import Invalid
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
    The point is on while one of its switches is; without any it cannot be switched off. `fallback` orders what no plugin tells apart, and `about` is the position of
    the parameter that a question is about.
    """

    def __init__(
        self,
        name: str,
        kind: type[E],
        parameters: str,
        *switches: str,
        says: str,
        fallback: Sequence[str] = (),
        about: int = 0,
    ) -> None:
        self.name = name
        self.attribute = ""
        self.kind: type[E] = typing.get_origin(kind) or kind
        self.switches = switches
        self.says = says
        self.fallback = fallback
        self.about = about
        given = typing.get_args(kind)[1:]
        self.given: type = (typing.get_origin(given[0]) or given[0]) if given else object
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
        """Give the declaration, or the extension of a session: it is made when somebody asks for it first, and found in the attribute itself from then on."""
        if session is None:
            return self
        held = vars(session)
        if "_roster" not in held:
            raise RuntimeError(f"{self.name}: the session has no extension points yet")
        made = self.extension(held["_roster"])
        held[self.attribute] = made
        return made

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
    home: Any = None  # the extension it is registered with
    bits: int = 0  # of `reads`


class Extension(Generic[P, R]):
    """An extension point of one session: what was registered, and the call that combines it."""

    combines: ClassVar[str] = ""
    answer: ClassVar[str] = "{0}"
    refuses: ClassVar[bool] = False  # whether a function that breaks down counts as one that refuses

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
        self._enter(Registered("", function, NOTHING), reads)

    def _enter(self, registered: Registered[P, R], reads: Reads | None) -> None:
        slot, point = self._roster.slot, self.point
        if slot is None:
            raise RuntimeError(f"{point.name}: functions are registered in Plugin.open only")
        if slot.takes(registered.function, point):
            registered.plugin = slot.plugin
            registered.reads = found = slot.reads if reads is None else reads
            registered.bits = found._value_
            registered.home = self
            if self._roster.breakdowns.is_resting and self._is_left_out(registered):
                return
            self.tiers[slot.tier].append(registered)
            self.active = True

    def __iter__(self) -> Iterator[Registered[P, R]]:
        for tier in self.tiers:
            yield from tier

    def opinions(self, *args: P.args, **kwargs: P.kwargs) -> Iterator[tuple[str, R | Exception]]:
        """Ask every function by itself, for whoever explains: whose it is, and what it says, or what it raised."""
        for registered in self:
            try:
                yield registered.plugin, registered.function(*args, **kwargs)
            except Exception as error:  # noqa: BLE001  whatever a plugin raises; the cycle itself has noted it
                yield registered.plugin, error

    # -- breakdowns --------------------------------------------------------------------------------------------

    def broke(
        self, registered: Registered[P, R] | None, error: Exception, args: Sequence[object]
    ) -> PluginBreakdownError:
        """Note that a function broke down, and return whose it was; an exception of ours goes on as it is."""
        if registered is None:
            raise error
        breakdowns = self._roster.breakdowns
        about = breakdowns.about(args, self.point.about)
        return breakdowns.note(registered.plugin, self.point.name, registered.function, error, about)

    def leave_out(self, registered: Registered[P, R], error: Exception) -> None:
        """Do without a function for the rest of the cycle."""
        self._roster.breakdowns.note(registered.plugin, self.point.name, registered.function, error)
        self.remove(lambda each: each is registered)

    def remove(self, gone: Callable[[Registered[P, R]], bool]) -> None:
        """Take functions out."""
        self.tiers = [[each for each in tier if not gone(each)] for tier in self.tiers]
        self.active = any(self.tiers)

    def stand_in(self, function: Callable[P, R]) -> None:
        """Register what refuses in place of a plugin that could not be opened."""
        self._enter(Registered("", function, NOTHING), NOTHING)

    def _is_left_out(self, registered: Registered[P, R]) -> bool:
        """Give a function that broke down in the last cycles its rest: tell whether it is left out, or do not call it about some."""
        breakdowns = self._roster.breakdowns
        rests = breakdowns.resting(registered.plugin, self.point.name, registered.function)
        if "" in rests and not self.refuses:
            breakdowns.note(registered.plugin, self.point.name, registered.function, PluginBreakdownError(rests[""]))
            return True
        if rests:
            registered.function = Rest(registered.function, rests, breakdowns, self.point.about)
        return False


class Refusals(Extension[P, R | None]):
    """The first answer that is not None, which is the reason against; breaking down is one."""

    combines = "the first reason given against is the answer; none given means yes"
    answer = "{0} | None"
    refuses = True

    __slots__ = ()

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

    def among(self, chosen: Callable[[Reads], bool], *args: P.args, **kwargs: P.kwargs) -> R | None:
        """Ask only functions that read what is chosen."""
        for registered in self:
            if chosen(registered.reads):
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
        return next((self._is_yes(tier, args, kwargs) for tier in self.tiers if tier), False)


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
                        return Vote(-1, f"{registered.plugin}: {vote.reason}" if vote.reason else registered.plugin)
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
                    wrong_answers.check_instance(answer, self.point.given)
                    return answer
            except Exception as error:
                raise self.broke(registered, error, args) from error
        return None


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

    @classmethod
    def taken(cls, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the type of who asks, and that of the candidates."""
        return (*arguments, Sequence[Task])

    def __call__(self, subject: S, candidates: Sequence[Task]) -> list[Task]:
        """Return the candidates that the deciding tier agrees on."""
        try:
            return self._decided(subject, candidates)
        except PluginBreakdownError:
            return []

    def _decided(self, subject: S, candidates: Sequence[Task]) -> list[Task]:
        if self.final_veto:
            return self._agreed([self._answer(f, subject, candidates) for f in self])
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
