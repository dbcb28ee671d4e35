"""What extension points have in common: the functions that plugins registered, by tier, and what becomes of one that breaks down.

A `Point` declares one (see `points`); the class of its extension says how answers combine (see `combining`, `naming_tasks`), and nobody else calls what was registered.
"""

from __future__ import annotations

import typing
from typing import TYPE_CHECKING, Any, ClassVar, Generic, ParamSpec, TypeVar, overload

import msgspec
import numpy as np

from pumice.framework.breakdowns import PluginBreakdownError, Rest
from pumice.framework.reads import NOTHING, Reads

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from pumice.framework.registration import Roster


P = ParamSpec("P")
R = TypeVar("R")
S = TypeVar("S")
T = TypeVar("T")
E = TypeVar("E", bound="Extension[..., Any]")


class Vote(msgspec.Struct, frozen=True):
    """An answer of a voting point, with the reason and its numbers; `cause` says it in a sentence for whoever is refused, written out when it is read."""

    value: int
    reason: str = ""
    cause: object = ""


PERMIT = Vote(1)
ABSTAIN = Vote(0)


def reject(reason: str, cause: object = "") -> Vote:
    """Vote against, saying why."""
    return Vote(-1, reason, cause)


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
        return not self.switches or any(switches[name] for name in self.switches)

    @property
    def signature(self) -> str:
        """What its functions take and give."""
        return f"({', '.join(self.parameters)}) -> {self.answer}"


def _named(kind: object) -> str:
    """Write a type as a signature would, without the modules."""
    if isinstance(kind, type):
        return kind.__name__
    if typing.get_origin(kind) is np.ndarray:
        return f"array of {typing.get_args(typing.get_args(kind)[1])[0].__name__}"
    text = str(kind).replace("'", "")
    for part in sorted(
        {word for word in text.replace("[", " ").replace("]", " ").replace(",", " ").split() if "." in word}
    ):
        text = text.replace(part, part.rpartition(".")[2])
    return text


class _Based(msgspec.Struct, kw_only=True):
    """What the answers of a function rest on beside the pods that are placed, to be compared; None if nobody says."""

    basis: Callable[[], object] | None = None


class Registered(_Based, Generic[P, R]):
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
