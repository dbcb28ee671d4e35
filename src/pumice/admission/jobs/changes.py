"""What may change of a job that exists: numbers of pods and priority, nothing else of its spec."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pumice.admission import laws, patches
from pumice.admission.pod_templates import amounts
from pumice.api import documents

if TYPE_CHECKING:
    from pumice.admission.parts import Part

Document = dict[str, Any]
_FREE: Final = ("minAvailable", "priorityClassName")
_NOTHING: Final[tuple[Any, ...]] = (None, "", 0, False, [], {})
# Fields of which an empty value says something else than none.
_TELLING: Final = frozenset(
    [
        "activeDeadlineSeconds",
        "allowPrivilegeEscalation",
        "automountServiceAccountToken",
        "defaultMode",
        "emptyDir",
        "enableServiceLinks",
        "exec",
        "exitCode",
        "fsGroup",
        "hostUsers",
        "labelMatch",
        "labelSelector",
        "minSuccess",
        "mode",
        "namespaceSelector",
        "optional",
        "privileged",
        "readOnlyRootFilesystem",
        "runAsGroup",
        "runAsNonRoot",
        "runAsUser",
        "setHostnameAsFQDN",
        "shareProcessNamespace",
        "terminationGracePeriodSeconds",
        "tolerationSeconds",
        "ttlSecondsAfterFinished",
        "volumeClaim",
    ]
)
_AMOUNTS: Final = frozenset(("requests", "limits", "overhead"))
_FREE_OF_TASKS: Final = ("replicas", "minAvailable")
_MAY: Final = "only minAvailable, tasks[*].replicas, tasks[*].minAvailable and priorityClassName may change"


def judge(spec: Part, old: Document) -> None:
    """Refuse every change that is not allowed, each at its own field."""
    new = spec.value
    before = old.get("tasks") if isinstance(old.get("tasks"), list) else []
    after = new.get("tasks") if isinstance(new.get("tasks"), list) else []
    if len(before or []) != len(after):
        message = f"has {len(after)} tasks and had {len(before or [])}: none may be added or removed"
        spec.breaks(laws.CHANGES, message, "tasks")
    for place in _changed(_fixed(old), _fixed(new), ()):
        if place[0] == "tasks" and (len(before or []) != len(after)):
            continue
        spec.breaks(laws.CHANGES, f"may not change{_was(old, place)}; {_MAY}", *place)


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
    if place and place[-1] not in _TELLING:
        old, new = (
            ({} if old is None and isinstance(new, dict) else old),
            ({} if new is None and isinstance(old, dict) else new),
        )
    if isinstance(old, dict) and isinstance(new, dict):
        names = [*new, *(key for key in old if key not in new)]
        return [each for key in names for each in _changed(old.get(key), new.get(key), (*place, key))]
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        pairs = enumerate(zip(old, new, strict=True))
        return [each for index, (left, right) in pairs for each in _changed(left, right, (*place, index))]
    return [] if _is_same(old, new, place) else [place]


def _is_same(old: Any, new: Any, place: tuple[str | int, ...]) -> bool:
    """Tell whether two values mean the same, as they do for Go: what is absent is empty, and 1 cpu is 1000m."""
    if type(old) is type(new) and old == new:
        return True
    if place[-1] not in _TELLING and old in _NOTHING and new in _NOTHING:
        return True
    if not _AMOUNTS.intersection(place[-2:-1]) and place[-1] != "sizeLimit":
        return False
    left, right = amounts.of(old), amounts.of(new)
    return left is not None and left == right


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
