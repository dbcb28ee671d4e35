"""What leaves with the bind of a pod: annotations that it gets, and what is written before.

Kept by the uid of the pod, from when a plugin decides on it until the pod has a node, is refused or is gone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pumice.model.preparations import Preparation
    from pumice.model.task import Task


class WithBind:
    """Keeps for each pod what goes with its bind; what several have said of it stays apart."""

    def __init__(self) -> None:
        self.stamps: dict[str, dict[str, str]] = {}
        self.preparations: dict[str, tuple[Preparation, ...]] = {}

    def stamp(self, uid: str, annotations: Mapping[str, str]) -> None:
        """Let annotations travel with the bind of a pod, beside those of others."""
        self.stamps.setdefault(uid, {}).update(annotations)

    def unstamp(self, uid: str, keys: Iterable[str]) -> None:
        """Take some annotations back; those of others stay."""
        left = {key: text for key, text in self.stamps.pop(uid, {}).items() if key not in frozenset(keys)}
        if left:
            self.stamps[uid] = left

    def stamped(self, task: Task, key: str) -> str:
        """Return an annotation of a pod, or the one that travels with its bind; empty if there is neither."""
        return self.stamps.get(task.uid, {}).get(key) or task.pod.metadata.annotations.get(key, "")

    def prepare(self, uid: str, preparations: Iterable[Preparation]) -> None:
        """Let something be written before a pod is bound, after what others have said of it."""
        self.preparations[uid] = (*self.preparations.get(uid, ()), *preparations)

    def unprepare(self, uid: str, preparation: type[Preparation]) -> None:
        """Take back what was to be written of one sort; what others have said stays."""
        left = tuple(each for each in self.preparations.pop(uid, ()) if not isinstance(each, preparation))
        if left:
            self.preparations[uid] = left

    def drop(self, uid: str) -> None:
        """Forget all of it: the bind has arrived, or will not leave."""
        self.stamps.pop(uid, None)
        self.preparations.pop(uid, None)
