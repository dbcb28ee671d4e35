"""Names of other namespaces, taken out of whatever is told: texts, records and their keys.

Our own texts name what is in a namespace as `namespace/name`, with its kind before it or a part of it behind; names that stand alone are looked up. What could be
either is hidden.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from pumice.study.following.scene import EvictionRow

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pumice.web.sight import Sight

JOB: Final = "a job elsewhere"
NODE: Final = "a node"
QUEUE: Final = "a queue"
_WORD: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._@/-]*[A-Za-z0-9])?")


class Hider:
    """Hides names from one sight; `is_namespace` knows namespaces, `hidden` gives what stands for a name that stands alone, if anything has to."""

    def __init__(
        self,
        sight: Sight,
        is_namespace: Callable[[str], bool],
        hidden: Callable[[str], str | None] = lambda _name: None,
    ) -> None:
        self._sight = sight
        self._is_namespace = is_namespace
        self._hidden = hidden

    def text(self, text: str) -> str:
        """Give a text without names that may not be read."""
        return _WORD.sub(self._word, text)

    def _word(self, found: re.Match[str]) -> str:
        word = found[0]
        parts = word.split("/")
        # No namespace has a dot in its name: what stands before one belongs to the text.
        before = [each.rpartition(".")[2] for each in parts[:-1]]
        if any(self._is_namespace(each) and not self._sight.names(each) for each in before):
            return JOB
        if len(parts) > 1 and self._is_namespace(parts[0]):
            return word  # one that may be read, and what is in it
        return next((instead for each in parts if (instead := self._hidden(each))), word)

    def value(self, value: Any) -> Any:
        """Give plain data without such names, whether they are values or keys."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return _distinct((self.text(key), self.value(each)) for key, each in value.items())
        if isinstance(value, list | tuple):
            return [self.value(each) for each in value]
        return value


def _distinct(entries: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """Keep entries apart whose keys read the same now."""
    found: dict[str, Any] = {}
    for key, value in entries:
        name, number = key, 1
        while name in found:
            number += 1
            name = f"{key} ({number})"
        found[name] = value
    return found


def eviction(row: EvictionRow, sight: Sight) -> EvictionRow | None:
    """Give what a sight may know of an eviction; None if neither the pod that went nor who took its place may be seen."""
    namespace = row.group.partition("/")[0]
    sees_victim = sight.pod(row.namespace)
    sees_claimant = bool(row.group) and sight.names(namespace)
    if not (sees_victim or sees_claimant):
        return None
    why = f" for {row.claimant if sees_claimant else JOB}" if row.group else ""
    by = f" by the rules of {row.rules}" if row.rules else ""
    return EvictionRow(
        id=row.id,
        time=row.time,
        namespace=row.namespace if sees_victim else "",
        pod=row.pod if sees_victim else JOB,
        text=f"Pod is evicted, because of {row.action}{why}{by}" if row.action else "Pod is evicted",
        action=row.action,
        claimant=(row.claimant if sees_claimant else JOB) if row.group else "",
        group=row.group if sees_claimant else "",
        queue=row.queue if sight.queues or sees_claimant else "",
        rules=row.rules,
        plan=row.plan,
        victim=row.victim if sees_victim else "",
    )
