"""Which pods a rule means: namespaces and labels, in one canonical form that can be compared, kept and looked up.

A *hook* is something that every pod meant must have: a label with a value, or a namespace. Rules and pods that share no hook need not be
compared at all, so that thousands of rules with a value each cost no more than a few.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

import msgspec

from pumice.model import selectors

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from pumice.api import meta

# Key, operator, values.
Requirement = tuple[str, str, tuple[str, ...]]
Requirements = tuple[Requirement, ...]
Hook = tuple[str, ...]

ANY: Hook = ()

T = TypeVar("T")


class Picker(msgspec.Struct, frozen=True, cache_hash=True):
    """The pods of some namespaces whose labels meet all requirements; no requirements at all (None) means nobody.

    A namespace is meant if it is listed or if its labels meet `namespace_labels`; None there means that only the list counts.
    """

    namespaces: tuple[str, ...]
    namespace_labels: Requirements | None
    labels: Requirements | None

    def picks(self, namespace: str, namespace_labels: Mapping[str, str], labels: Mapping[str, str]) -> bool:
        """Tell whether a pod is meant."""
        if self.labels is None or not meet(self.labels, labels):
            return False
        if namespace in self.namespaces:
            return True
        return self.namespace_labels is not None and meet(self.namespace_labels, namespace_labels)

    @property
    def hook(self) -> Hook:
        """What every pod meant has."""
        for key, operator, values in self.labels or ():
            if operator == "In" and len(values) == 1:
                return (key, values[0])
        if len(self.namespaces) == 1 and self.namespace_labels is None:
            return self.namespaces
        return ANY

    @property
    def keys(self) -> Iterator[str]:
        """The labels that are looked at."""
        return (key for key, _, _ in self.labels or ())


def meet(requirements: Requirements, labels: Mapping[str, str]) -> bool:
    """Tell whether labels meet all requirements."""
    return all(selectors.holds(operator, values, labels.get(key)) for key, operator, values in requirements)


def requirements(selector: meta.LabelSelector | None) -> Requirements | None:
    """Bring a label selector into canonical form; an absent one stays None."""
    if selector is None:
        return None
    wanted = [(r.key, r.operator, tuple(sorted(set(r.values)))) for r in selector.match_expressions]
    return canonical([*equalities(selector.match_labels), *wanted])


def equalities(labels: Mapping[str, str]) -> Iterator[Requirement]:
    """Ask for labels with just these values."""
    return ((key, "In", (value,)) for key, value in labels.items())


def canonical(wanted: Iterable[Requirement]) -> Requirements:
    """Sort requirements, each once."""
    return tuple(sorted(set(wanted)))


class Index(dict[Hook, dict[T, None]], Generic[T]):
    """Things by hook."""

    def put(self, hook: Hook, thing: T) -> None:
        """Enter a thing."""
        self.setdefault(hook, {})[thing] = None

    def drop(self, hook: Hook, thing: T) -> None:
        """Take a thing out."""
        found = self.get(hook)
        if found is not None:
            found.pop(thing, None)
            if not found:
                del self[hook]


def hooks(namespace: str, labels: Mapping[str, str]) -> Iterator[Hook]:
    """List the hooks that a pod has."""
    yield ANY
    yield (namespace,)
    yield from labels.items()
