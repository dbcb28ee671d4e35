"""Settings of plugins and actions: a class whose attributes declare what a file may say, and whose instances hold what it says, typed.

    class Settings(settings.Settings):
        weight = settings.whole("binpack.weight", 1, help="weight of the score")

The loader checks and converts the values once; whoever is configured reads `self.settings.weight`, an int.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar, overload

import msgspec

from pumice.framework.configuration import arguments
from pumice.framework.configuration.arguments import Argument

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from fractions import Fraction

    from pumice.framework.configuration.arguments import Kind

T = TypeVar("T")
S = TypeVar("S", bound="Settings")
D = TypeVar("D", int, None)


class Field(Generic[T]):
    """One attribute of settings: the argument it stands for, and what makes its value out of what was read."""

    def __init__(self, argument: Argument, made: Callable[[Any], T] | None = None) -> None:
        self.argument = argument
        self._made = made

    @overload
    def __get__(self, settings: None, owner: type) -> Field[T]: ...

    @overload
    def __get__(self, settings: object, owner: type) -> T: ...

    def __get__(self, settings: object | None, owner: type) -> Field[T] | T:
        """Give the declaration; settings that are made hold their value in the attribute itself."""
        if settings is None:
            return self
        raise AttributeError(f"{owner.__name__} has no value for {self.argument.name}")

    def made(self, value: Any) -> T:
        """Return the value as an attribute holds it."""
        converted: T = value if self._made is None else self._made(value)
        return converted

    def value(self, values: Mapping[str, Any], declared: tuple[Argument, ...]) -> T:
        """Find the value among all that were read."""
        del declared
        return self.made(values[self.argument.name])


class _Each(Field[T]):
    """All values of an argument whose name is a pattern, by what its `*` stands for."""

    def __init__(self, field: Field[Any]) -> None:
        super().__init__(field.argument)
        self._field = field

    def value(self, values: Mapping[str, Any], declared: tuple[Argument, ...]) -> Any:
        """Find every value whose key means this pattern."""
        start, _, end = self.argument.name.partition("*")
        return {
            key[len(start) : len(key) - len(end)]: self._field.made(value)
            for key, value in values.items()
            if arguments.match(declared, key) is self.argument
        }


class Settings:
    """What a plugin or an action is told; its own class declares the attributes."""

    arguments: ClassVar[tuple[Argument, ...]] = ()
    fields: ClassVar[Mapping[str, Field[Any]]] = {}

    def __init_subclass__(cls) -> None:
        declared = [each for kind in reversed(cls.__mro__) for each in vars(kind).items()]
        cls.fields = {name: each for name, each in declared if isinstance(each, Field)}
        cls.arguments = tuple(field.argument for field in cls.fields.values())

    def __init__(self, values: Mapping[str, Any] | None = None) -> None:
        given = {**arguments.defaults(self.arguments), **(values or {})}
        self.__dict__.update({name: field.value(given, self.arguments) for name, field in self.fields.items()})

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{name} cannot be set: settings stay as the configuration says")

    __hash__ = None  # type: ignore[assignment]  # values may be lists and maps

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other.__dict__ == self.__dict__

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self.__dict__.items())})"


class Configured(Generic[S]):
    """The attribute `settings` of a plugin or an action: its class of settings, and in an instance the settings themselves."""

    def __init__(self, kind: type[S]) -> None:
        self.kind = kind

    @overload
    def __get__(self, part: None, owner: type) -> type[S]: ...

    @overload
    def __get__(self, part: object, owner: type) -> S: ...

    def __get__(self, part: object | None, owner: type) -> type[S] | S:
        """Give the class; a part that is made holds its settings in the attribute itself."""
        if part is None:
            return self.kind
        raise AttributeError(f"{owner.__name__} was made without its settings; call super().__init__")


def whole(
    name: str,
    default: int,
    *,
    help: str,  # noqa: A002  as in a table of arguments
    minimum: int | None = None,
    maximum: int | None = None,
    replacement: Any = msgspec.UNSET,
) -> Field[int]:
    """Declare an integer."""
    return Field(Argument(name, "int", default, help, minimum, maximum, replacement))


def number(
    name: str,
    default: Fraction,
    *,
    help: str,  # noqa: A002  as above
    minimum: int | None = None,
    maximum: int | None = None,
    replacement: Any = msgspec.UNSET,
) -> Field[Fraction]:
    """Declare a number, which is the fraction that was written."""
    return Field(Argument(name, "float", default, help, minimum, maximum, replacement))


def truth(name: str, default: bool, *, help: str) -> Field[bool]:  # noqa: A002  as above
    """Declare a yes or no."""
    return Field(Argument(name, "bool", default, help))


def text(name: str, default: str, *, help: str, choices: tuple[str, ...] = ()) -> Field[str]:  # noqa: A002  as above
    """Declare a text, or one of some."""
    return Field(Argument(name=name, kind="string", default=default, help=help, choices=choices))


def words(name: str, *, help: str) -> Field[tuple[str, ...]]:  # noqa: A002  as above
    """Declare names separated by commas; none by default."""
    return Field(Argument(name, "strings", (), help))


def period(
    name: str,
    default: D,
    *,
    help: str,  # noqa: A002  as above
    minimum: int | None = None,
    replacement: Any = msgspec.UNSET,
) -> Field[int | D]:
    """Declare a duration, in microseconds; without a default there may be none."""
    return Field(Argument(name, "duration", default, help, minimum, None, replacement))


def anything(name: str, kind: Kind, default: Any, *, help: str) -> Field[Any]:  # noqa: A002  as above
    """Declare a list or a map that is taken as it is."""
    return Field(Argument(name, kind, default, help))


def section(name: str, kind: type[S], *, help: str, default: Any = None) -> Field[S]:  # noqa: A002  as above
    """Declare a map with settings of its own."""
    return Field(Argument(name=name, kind="map", default=default, help=help, fields=kind.arguments), kind)


def each(field: Field[T]) -> Field[Mapping[str, T]]:
    """Declare many of a kind: the name holds a `*`, and the values are found by what it stands for."""
    return _Each(field)
