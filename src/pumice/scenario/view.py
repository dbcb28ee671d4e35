"""What expectations look at: the stored objects and what the scheduler did to them, at one moment."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pumice.api import kinds
    from pumice.scenario.manifests import Stored

    Objects = Mapping[str, Stored]

_GLOB = frozenset("*?[")


class Counts(msgspec.Struct, frozen=True, kw_only=True):
    """Writes of the scheduler, by sort."""

    binds: int = 0
    evictions: int = 0
    status_writes: int = 0

    def since(self, earlier: Counts) -> Counts:
        """Give what was added after an earlier reading."""
        return Counts(
            binds=self.binds - earlier.binds,
            evictions=self.evictions - earlier.evictions,
            status_writes=self.status_writes - earlier.status_writes,
        )


class Recorded(msgspec.Struct, frozen=True, kw_only=True):
    """An event about an object: `kind` in lower-case singular, `namespace` empty for cluster-scoped kinds."""

    kind: str
    namespace: str
    name: str
    reason: str
    message: str

    @property
    def reference(self) -> str:
        """Name the object as scenario files do: `pod/a/g-0`, `node/n1`."""
        return "/".join(part for part in (self.kind, self.namespace, self.name) if part)


class View(msgspec.Struct, frozen=True, kw_only=True):
    """The cluster at one moment; namespaced objects by `namespace/name`, the others by name.

    `evicted` holds the pods that the scheduler evicted as they were last seen, those that are gone by now included.
    """

    pods: Mapping[str, Stored]
    pod_groups: Mapping[str, Stored]
    queues: Mapping[str, Stored]
    nodes: Mapping[str, Stored]
    evicted: Mapping[str, Stored]
    counts: Counts
    events: Sequence[Recorded]
    explain: Callable[[str], str]
    objects: Callable[[kinds.Kind], Objects]
    default_queue: str = "default"


class Mismatch(msgspec.Struct, frozen=True, kw_only=True):
    """Something that should hold and does not."""

    line: int
    subject: str
    expected: str
    found: str


def is_glob(pattern: str) -> bool:
    """Tell whether a pattern may match more than one name."""
    return any(character in _GLOB for character in pattern)


def matches(pattern: str, name: str) -> bool:
    """Match a name part by part: `*` does not reach over a slash."""
    patterns, parts = pattern.split("/"), name.split("/")
    return len(patterns) == len(parts) and all(map(fnmatchcase, parts, patterns))


def select(pattern: str, names: Mapping[str, Stored]) -> list[str]:
    """Give the names that a pattern matches, sorted."""
    if not is_glob(pattern):
        return [pattern] if pattern in names else []
    return sorted(name for name in names if matches(pattern, name))
