"""What makes a queue one that can be served, and who may be deleted."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any, Final

from pumice.admission import laws, surroundings
from pumice.admission.queues import promises, tree
from pumice.api import documents, names

if TYPE_CHECKING:
    from pumice.admission.parts import Part
    from pumice.admission.remarks import Remarks
    from pumice.admission.requests import Request, RuleSettings
    from pumice.admission.surroundings import Surroundings

_LARGEST_WEIGHT: Final = 65535
_PROTECTED: Final = (names.DEFAULT_QUEUE, names.ROOT_QUEUE)
_ROOT_FIXED: Final = ("capability", "deserved", "guarantee")
_READ_ANNOTATIONS: Final = (names.HIERARCHY, names.HIERARCHY_WEIGHTS)
_STATES: Final = ("", names.QUEUE_OPEN, names.QUEUE_CLOSED)
_DECIMAL: Final = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]+)?", re.IGNORECASE)
_HEXADECIMAL: Final = re.compile(r"[+-]?0x(?:[0-9a-f]+\.?[0-9a-f]*|\.[0-9a-f]+)p[+-]?[0-9]+", re.IGNORECASE)
_NO_FINITE: Final = re.compile(r"nan|[+-]?inf(?:inity)?", re.IGNORECASE)


def judge(request: Request, found: Remarks, around: Surroundings, settings: RuleSettings) -> None:
    """Judge a queue that is created, changed or deleted."""
    if request.operation == "DELETE":
        _judge_deletion(request, found, around, settings)
        return
    queue = request.part(found)
    if request.operation == "UPDATE" and _same(request.object, request.old):
        return
    name = queue.record("metadata").text("name") or request.name
    spec = queue.record("spec")
    promises.judge(spec)
    _judge_rest(spec)
    _judge_state(queue, request.old)
    _judge_hierarchy(queue, name, around)
    before = surroundings.below(request.old, "spec") if request.operation == "UPDATE" else None
    tree.judge(queue, name, around, settings.most_depth, before)
    if name == names.ROOT_QUEUE and request.operation == "UPDATE" and settings.root_protected:
        for field in _ROOT_FIXED:
            if (spec.part(field).value or {}) != (surroundings.below(request.old, "spec", field) or {}):
                spec.breaks(laws.ROOT, "may not change: root holds the whole cluster", field)


def _same(new: dict[str, Any], old: dict[str, Any]) -> bool:
    """Tell whether nothing changed that rules look at, as when a finalizer goes, or the controller notes an order or a parent that was left out."""
    fields = (("status", "state"), *(("metadata", "annotations", key) for key in _READ_ANNOTATIONS))
    same = all(surroundings.below(new, *field) == surroundings.below(old, *field) for field in fields)
    return same and _spec_below_root(new) == _spec_below_root(old)


def _spec_below_root(queue: dict[str, Any]) -> dict[str, Any]:
    """Give a queue's spec with the parent that it has by default."""
    spec = surroundings.below(queue, "spec")
    stated = spec if isinstance(spec, dict) else {}
    return {**stated, "parent": stated.get("parent") or names.ROOT_QUEUE}


def _judge_rest(spec: Part) -> None:
    spec.whole("weight", least=1, most=_LARGEST_WEIGHT)
    spec.whole("priority", least=0)
    spec.truth("reclaimable")
    spec.among("dequeueStrategy", (names.DEQUEUE_TRAVERSE, names.DEQUEUE_FIFO))


def _judge_state(queue: Part, old: dict[str, Any]) -> None:
    """Judge the state; one that is as it was is not the writer's doing."""
    status = queue.record("status")
    state = status.text("state")
    if state not in _STATES and state != surroundings.below(old, "status", "state"):
        status.breaks(laws.STATE, f"is {documents.quoted(state)}, and may only be set to Open or Closed", "state")


def _judge_hierarchy(queue: Part, name: str, around: Surroundings) -> None:
    annotations = queue.record("metadata", "annotations")
    path, weights = annotations.text(names.HIERARCHY), annotations.text(names.HIERARCHY_WEIGHTS)
    if not path and not weights:
        return
    steps, numbers = path.split("/"), weights.split("/")
    if len(steps) != len(numbers) or not path or not weights:
        counts = f"{len(steps) if path else 0} names and {len(numbers) if weights else 0} weights"
        law = laws.HIERARCHY if path or len(numbers) > 1 else laws.HIERARCHY_FORM
        annotations.breaks(law, f"has not as many parts as {names.HIERARCHY}: {counts}", names.HIERARCHY_WEIGHTS)
    for number in numbers if weights else ():
        if not _above_zero(number):
            law = laws.HIERARCHY_FORM if _is_above_zero_elsewhere(number) else laws.HIERARCHY
            message = f"holds {documents.quoted(number)}, and a weight is a number above 0"
            annotations.breaks(law, message, names.HIERARCHY_WEIGHTS)
    for other in around.queues():
        theirs = surroundings.below(dict(other), "metadata", "annotations", names.HIERARCHY)
        called = surroundings.below(dict(other), "metadata", "name")
        if path and called != name and isinstance(theirs, str) and theirs.startswith(f"{path}/"):
            annotations.breaks(
                laws.HIERARCHY,
                f"is {documents.quoted(path)}, and queue {called} lies below that ({theirs}); jobs go to leaves alone",
                names.HIERARCHY,
            )
            break


def _above_zero(text: str) -> bool:
    return _DECIMAL.fullmatch(text) is not None and 0 < float(text) < math.inf


def _is_above_zero_elsewhere(text: str) -> bool:
    """Tell whether Go reads a number that is not below or equal to 0, as of `inf` or `0x1p-2`; `nan` is neither."""
    if _NO_FINITE.fullmatch(text):
        return not text.startswith("-")
    try:
        return _HEXADECIMAL.fullmatch(text) is not None and float.fromhex(text) > 0
    except OverflowError:
        return False


def _judge_deletion(request: Request, found: Remarks, around: Surroundings, settings: RuleSettings) -> None:
    name = request.name or str(surroundings.below(request.old, "metadata", "name") or "")
    where = ("metadata", "name")
    if name in _PROTECTED:
        found.add(where, f"is {name}, which every cluster has: it may not be deleted", laws.DELETION)
        return
    children = around.children(name)
    if children:
        found.add(
            where,
            f"is {name}, which has {len(children)} queues below it ({', '.join(children[:3])}): delete these first",
            laws.DELETION,
        )
    held = tree.allocated_pods(request.old or dict(around.queue(name) or {}))
    if settings.allocated_pods_checked and held:
        message = f"is {held}: wait for the pods of {name} to end, or delete them"
        found.add(("status", "allocated", "pods"), message, laws.DELETION)
