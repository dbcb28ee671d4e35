"""The place of a queue in the tree of queues: its parent, its depth, and what it may promise beside its siblings."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final

from pumice.admission import laws, surroundings
from pumice.admission.pod_templates import amounts
from pumice.api import documents, names, quantity

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pumice.admission.parts import Part
    from pumice.admission.surroundings import Surroundings

Amounts = dict[str, Fraction]
_SHARED: Final = (("deserved",), ("guarantee", "resource"))
_LONGEST_WALK: Final = 1000  # queues; a tree that was broken before must not hold anybody up


def judge(queue: Part, name: str, around: Surroundings, most_depth: int, old: Any) -> None:
    """Judge the parent that a queue names, and the amounts of both sides unless they are as they were (`old`)."""
    spec = queue.record("spec")
    parent = spec.text("parent")
    if name == names.ROOT_QUEUE:
        if parent:
            spec.breaks(laws.SUBTREE, f"is {documents.quoted(parent)}, and root has no parent", "parent")
        return
    if parent and parent != names.ROOT_QUEUE and not _judge_parent(spec, name, parent, around, most_depth):
        return
    if old is not None and _shares(old) == _shares(spec.value):
        return
    _judge_below(spec, name, around)
    if parent and parent != names.ROOT_QUEUE:
        _judge_above(spec, name, parent, around)


def _shares(spec: Any) -> tuple[str, list[Amounts]]:
    """Give of a queue's spec what others are compared with."""
    parent = surroundings.below(spec, "parent")
    return str(parent or names.ROOT_QUEUE), [_amounts(spec, *each) for each in (("capability",), *_SHARED)]


def _judge_parent(spec: Part, name: str, parent: str, around: Surroundings, most_depth: int) -> bool:
    """Judge who the parent is; tells whether it can be compared with."""
    if parent == name:
        spec.breaks(laws.PARENT, f"is {documents.quoted(parent)}, the queue itself", "parent")
        return False
    above = around.queue(parent)
    if above is None:
        if around.complete:
            near = documents.nearest(parent, (_name(each) for each in around.queues()))
            hint = f"did you mean {near}?" if near else "create it first"
            spec.breaks(laws.PARENT, f"is {documents.quoted(parent)}, and there is no such queue; {hint}", "parent")
        else:
            spec.breaks(
                laws.UNSEEN,
                f"is {documents.quoted(parent)}, which is not among what was read: it must exist in the cluster",
                "parent",
            )
        return False
    ancestors = _ancestors(parent, around)
    if name in ancestors:
        spec.breaks(laws.PARENT, f"is {documents.quoted(parent)}, which lies below {name} itself", "parent")
        return False
    depth = len(ancestors) + _height(name, around)
    if depth > most_depth:
        spec.breaks(
            laws.PARENT if len(ancestors) >= most_depth else laws.SUBTREE,
            f"is {documents.quoted(parent)}, and the tree would be {depth} queues deep below root; at most {most_depth} may be",
            "parent",
        )
    held = allocated_pods(above)
    others = [each for each in around.children(parent) if each != name]
    if held and not others and name not in around.children(parent):
        spec.breaks(
            laws.PARENT,
            f"is {documents.quoted(parent)}, a leaf with {held} pods; a queue with pods cannot become a parent",
            "parent",
        )
    return True


def allocated_pods(queue: Mapping[str, Any]) -> int:
    """Say how many pods a queue has, as its status tells."""
    stated = surroundings.below(dict(queue), "status", "allocated", "pods")
    amount = amounts.of(stated)
    return int(amount) if amount is not None else 0


def _judge_above(spec: Part, name: str, parent: str, around: Surroundings) -> None:
    """Compare with the ancestors: a ceiling below theirs, promises that fit beside those of the siblings."""
    ceilings = _amounts(spec.value, "capability")
    for resource, amount in ceilings.items():
        for ancestor in _ancestors(parent, around):
            theirs = _amounts(_spec(around.queue(ancestor)), "capability")
            if theirs.get(resource):  # a ceiling of 0 counts as none, as in Volcano
                if amount > theirs[resource]:
                    shown = surroundings.below(_spec(around.queue(ancestor)), "capability", resource)
                    spec.breaks(
                        laws.SHARES,
                        f"is {_shown(spec, 'capability', resource)}, above that of queue {ancestor} above it ({shown})",
                        "capability",
                        resource,
                    )
                break
    above = _spec(around.queue(parent))
    siblings = [_spec(around.queue(each)) for each in around.children(parent) if each != name]
    for field in _SHARED:
        theirs = _amounts(above, *field)
        for resource, amount in _amounts(spec.value, *field).items():
            beside = sum((_amounts(each, *field).get(resource, Fraction(0)) for each in siblings), Fraction(0))
            if amount + beside > theirs.get(resource, Fraction(0)):
                stated = surroundings.below(above, *field, resource)
                spec.breaks(
                    laws.SHARES,
                    f"is {_shown(spec, *field, resource)}, and with {_text(beside)} of its siblings above that of its parent "
                    f"{parent} ({stated if stated is not None else 'none, which counts as 0'})",
                    *field,
                    resource,
                )


def _judge_below(spec: Part, name: str, around: Surroundings) -> None:
    """Compare with the queues below, as when a parent is made smaller."""
    children = around.children(name)
    if not children:
        return
    for field in _SHARED:
        own = _amounts(spec.value, *field)
        promised: Amounts = {}
        for child in children:
            for resource, amount in _amounts(_spec(around.queue(child)), *field).items():
                promised[resource] = promised.get(resource, Fraction(0)) + amount
        for resource, amount in promised.items():
            if amount > own.get(resource, Fraction(0)):
                stated = surroundings.below(spec.value, *field, resource)
                had = f"is {stated}" if stated is not None else "is missing, which counts as 0"
                message = f"{had}, below what its {len(children)} children have together ({_text(amount)})"
                spec.breaks(laws.SHARES, message, *field, resource)
    for resource, amount in _amounts(spec.value, "capability").items():
        over = _larger_below(name, resource, amount, around)
        if over:
            shown = surroundings.below(_spec(around.queue(over)), "capability", resource)
            spec.breaks(
                laws.SHARES,
                f"is {_shown(spec, 'capability', resource)}, below that of queue {over} below it ({shown})",
                "capability",
                resource,
            )


def _larger_below(name: str, resource: str, most: Fraction, around: Surroundings) -> str:
    """Name a queue below whose ceiling is larger; those that state none pass the question on."""
    waiting, walked = around.children(name), 0
    while waiting and walked < _LONGEST_WALK:
        walked += 1
        child = waiting.pop()
        stated = _amounts(_spec(around.queue(child)), "capability").get(resource)
        if not stated:
            waiting += around.children(child)
        elif stated > most:
            return child
    return ""


def _ancestors(name: str, around: Surroundings) -> list[str]:
    """Name a queue and those above it, up to the last below root."""
    found: list[str] = []
    while name != names.ROOT_QUEUE and name not in found and len(found) < _LONGEST_WALK:
        found.append(name)
        queue = around.queue(name)
        if queue is None:
            break
        name = surroundings.parent_of(queue)
    return found


def _height(name: str, around: Surroundings) -> int:
    """Count the levels from a queue down to its deepest leaf, itself included."""
    level, height, walked = [name], 0, {name}
    while level and height < _LONGEST_WALK:
        height += 1
        level = [each for one in level for each in around.children(one) if each not in walked]
        walked.update(level)
    return height


def _amounts(spec: Any, *field: str) -> Amounts:
    found = surroundings.below(spec, *field)
    read = {str(key): amounts.of(value) for key, value in found.items()} if isinstance(found, dict) else {}
    return {key: value for key, value in read.items() if value is not None and value >= 0}


def _spec(queue: Mapping[str, Any] | None) -> Any:
    return surroundings.below(dict(queue or {}), "spec")


def _name(queue: Mapping[str, Any]) -> str:
    return str(surroundings.below(dict(queue), "metadata", "name"))


def _shown(spec: Part, *field: str) -> Any:
    return surroundings.below(spec.value, *field)


def _text(amount: Fraction) -> str:
    whole = amount * 1000
    return quantity.format_milli(int(whole)) if whole.denominator == 1 else str(float(amount))
