"""What may change of a job that exists: numbers of pods and priority, nothing else of its spec."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pumice.admission import patches
from pumice.api import documents

if TYPE_CHECKING:
    from pumice.admission.parts import Part

Document = dict[str, Any]
_FREE: Final = ("minAvailable", "priorityClassName")
_FREE_OF_TASKS: Final = ("replicas", "minAvailable")
_MAY: Final = "only minAvailable, tasks[*].replicas, tasks[*].minAvailable and priorityClassName may change"


def judge(spec: Part, old: Document) -> None:
    """Refuse every change that is not allowed, each at its own field."""
    new = spec.value
    before = old.get("tasks") if isinstance(old.get("tasks"), list) else []
    after = new.get("tasks") if isinstance(new.get("tasks"), list) else []
    if len(before or []) != len(after):
        spec.refuse(f"has {len(after)} tasks and had {len(before or [])}: none may be added or removed", "tasks")
    for place in _changed(_fixed(old), _fixed(new), ()):
        if place[0] == "tasks" and (len(before or []) != len(after)):
            continue
        spec.refuse(f"may not change{_was(old, place)}; {_MAY}", *place)


def _fixed(spec: Document) -> Document:
    """Leave of a spec what may not change; claims that the controller names count as they were."""
    kept = {
        key: value for key, value in patches.copied(spec).items() if key not in _FREE and value not in (None, [], {})
    }
    tasks = kept.get("tasks")
    if isinstance(tasks, list):
        for task in tasks:
            for field in _FREE_OF_TASKS:
                if isinstance(task, dict):
                    task.pop(field, None)
    volumes = kept.get("volumes")
    if isinstance(volumes, list):
        for volume in volumes:
            if isinstance(volume, dict) and volume.get("volumeClaim") is not None:
                volume.pop("volumeClaimName", None)
    return kept


def _changed(old: Any, new: Any, place: tuple[str | int, ...]) -> list[tuple[str | int, ...]]:
    """Name the smallest parts that differ."""
    if isinstance(old, dict) and isinstance(new, dict):
        names = [*new, *(key for key in old if key not in new)]
        return [each for key in names for each in _changed(old.get(key), new.get(key), (*place, key))]
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        pairs = enumerate(zip(old, new, strict=True))
        return [each for index, (left, right) in pairs for each in _changed(left, right, (*place, index))]
    return [] if type(old) is type(new) and old == new else [place]


def _was(old: Any, place: tuple[str | int, ...]) -> str:
    """Say what was there; nothing of templates and arguments of plugins, which may hold secrets."""
    if "template" in place or "plugins" in place:
        return ""
    for step in place:
        try:
            old = old[step]
        except (KeyError, IndexError, TypeError):
            return ", and was absent"
    return f" from {documents.described(old)}"
