"""Whose turn it is to register functions, and the check that a function can be asked at all."""

from __future__ import annotations

import inspect
import types
from typing import TYPE_CHECKING, Any, Final, Protocol

import msgspec

from pumice.framework.breakdowns import Breakdowns
from pumice.framework.reads import Reads  # noqa: TC001  msgspec reads the annotations at run time

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pumice.framework.configuration.model import PluginSetting

MOST_KNOWN: Final = 1000  # functions of one plugin that are remembered; one that makes new code in every cycle has them judged in every cycle


class RegistrationError(AttributeError, TypeError):
    """A plugin registers what no extension point can ask."""


class Asked(Protocol):
    """An extension point (`extensions.Point`), as far as registering goes."""

    name: str
    parameters: tuple[str, ...]

    def is_on(self, switches: Mapping[str, bool]) -> bool:
        """Tell whether a file leaves the point on."""


class Slot(msgspec.Struct):
    """Whose turn it is to register functions. It outlives a session: what was found out about a function holds for the next one made of the same code."""

    tier: int
    plugin: str
    setting: PluginSetting
    reads: Reads
    _known: dict[tuple[str, object, type], bool] = {}

    def takes(self, function: Callable[..., Any], point: Asked) -> bool:
        """Tell whether a point is on for the plugin; a function that cannot be called with what the point asks with is refused."""
        key = (point.name, getattr(function, "__code__", None), type(function))
        known = self._known.get(key)
        if known is None:
            check(function, point.name, point.parameters, self.plugin)
            known = point.is_on(self.setting.switches)
            if key[1] is not None and len(self._known) < MOST_KNOWN:
                self._known[key] = known
        return known


class Roster:
    """The tiers of a session, and the plugin that is being opened. With `final_veto` victims are intersected by kube-batch's rule."""

    __slots__ = ("breakdowns", "evaluator", "final_veto", "slot", "tiers")

    def __init__(self, tiers: int, *, final_veto: bool = False, breakdowns: Breakdowns | None = None) -> None:
        self.tiers = tiers
        self.breakdowns = breakdowns or Breakdowns()
        self.evaluator: Any = None
        self.final_veto = final_veto
        self.slot: Slot | None = None


def check(function: Callable[..., Any], point: str, parameters: tuple[str, ...], plugin: str) -> None:
    """Refuse a function that cannot be called with what a point asks with."""
    if not callable(function):
        raise RegistrationError(_refusal(plugin, point, parameters, f"{function!r:.60} cannot be called"))
    if _plainly_takes(function, len(parameters)):
        return
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return  # written in C, without a signature to look at
    try:
        signature.bind(*parameters)
    except TypeError as error:
        name = getattr(function, "__qualname__", repr(function))
        raise RegistrationError(_refusal(plugin, point, parameters, f"{name} does not take them: {error}")) from None


def _plainly_takes(function: Callable[..., Any], count: int) -> bool:
    """Tell of a function or method whether so many values fill its parameters. Of what is less plain, it says no: a signature takes forty times as long, and tells."""
    if isinstance(function, types.MethodType):
        function, count = function.__func__, count + 1
    if not isinstance(function, types.FunctionType) or function.__dict__:
        return False
    code = function.__code__
    most = code.co_argcount
    return not code.co_kwonlyargcount and most - len(function.__defaults__ or ()) <= count <= most


def _refusal(plugin: str, point: str, parameters: tuple[str, ...], why: str) -> str:
    many = f"{len(parameters)} parameter{'s' * (len(parameters) != 1)}"
    return f'plugin "{plugin}": {point} calls functions with {many} ({", ".join(parameters)}), and {why}'
