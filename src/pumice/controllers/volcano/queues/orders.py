"""Commands for queues: taken down on the queue, then deleted, then carried out.

A Command is consumed before it is acted upon, so that nothing is done twice; and what it asks stands on the queue before it is consumed, so that a
controller which is killed in between loses nothing. An order that cannot be carried out, since the parent is closed, stands for as long as a request
would be tried again; a later one takes its place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from pumice.api import duration, kinds, names, timestamp
from pumice.controllers.queueing import requests
from pumice.controllers.volcano.queues import states
from pumice.controllers.volcano.queues.states import Action  # noqa: TC001  msgspec reads the annotations at run time
from pumice.controllers.workloads import manifests, steps_to

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pumice.controllers.queueing.observed import Observed
    from pumice.controllers.queueing.requests import Moment, Reconciled, Step

Manifest = dict[str, Any]
PATIENCE: Final = 164 * duration.SECOND  # 15 tries, the pauses between them doubling from 5 ms
_UNKNOWN_QUEUE: Final = 10 * duration.SECOND  # in which a queue may still become known


class Order(msgspec.Struct, frozen=True):
    """What a queue is ordered to do, by which Command, and until when that is tried."""

    action: Action
    until: int
    uid: str


def targets(command: Mapping[str, Any]) -> str:
    """Give the queue that a Command is for, nothing if it is for something else."""
    target = manifests.mapping(command, "target")
    ours = (target.get("apiVersion"), target.get("kind")) == (kinds.QUEUE.api_version, kinds.QUEUE.name)
    name = target.get("name")
    return name if ours and isinstance(name, str) else ""


def waiting(name: str, observed: Observed) -> list[Manifest]:
    """Give the Commands for a queue that nobody has deleted, oldest first."""
    found = [each for each in observed.all(kinds.COMMAND) if targets(each) == name and not manifests.is_going(each)]
    return sorted(
        found,
        key=lambda each: (manifests.created(each), str(each["metadata"].get("namespace")), each["metadata"]["name"]),
    )


def standing(queue: Mapping[str, Any]) -> Order | None:
    """Read the order that stands on a queue."""
    text = manifests.mapping(queue, "metadata", "annotations").get(names.QUEUE_ORDER)
    action, _, rest = text.partition(" ") if isinstance(text, str) else ("", "", "")
    until, _, uid = rest.partition(" ")
    moment = manifests.moment_of(until)
    if moment is None or not uid:
        return None
    if action == states.OPEN:
        return Order("OpenQueue", moment, uid)
    return Order("CloseQueue", moment, uid) if action == states.CLOSE else None


def given_up(order: Order, moment: Moment) -> int:
    """Give when an order that cannot be carried out is given up; it was taken down that long before."""
    return moment.reaches(order.until - moment.spans(PATIENCE), PATIENCE)


def taken(queue: Mapping[str, Any], command: Manifest, moment: Moment) -> Reconciled:
    """Take a Command down and delete it; one that makes no sense is only deleted."""
    name, action = manifests.name(queue), command.get("action")
    deleted = steps_to.delete(kinds.COMMAND, command)
    known = standing(queue)
    if known is not None and known.uid == manifests.uid(command):
        return requests.Reconciled(steps=[deleted])
    if action not in (states.OPEN, states.CLOSE):
        told = f"Command {manifests.name(command)}: {action!s:.40} is nothing that a queue can do; it is OpenQueue or CloseQueue"
        return requests.Reconciled(steps=[deleted], notes=[("Warning", f"{action!s:.40}" or "SyncQueue", told)])
    if action == states.CLOSE and name == names.ROOT_QUEUE:
        told = "Queue root cannot be closed; close the queues below it"
        return requests.Reconciled(steps=[deleted], notes=[("Warning", states.CLOSE, told)])
    until = timestamp.format_timestamp(moment.now + moment.spans(PATIENCE))
    text = f"{action} {until} {manifests.uid(command)}"
    return requests.Reconciled(steps=[annotated(queue, {names.QUEUE_ORDER: text}), deleted])


def without_queue(commands: list[Manifest], moment: Moment) -> Reconciled:
    """Delete Commands for a queue that does not exist, once that is certain."""
    due = [moment.since(manifests.created(each)) + _UNKNOWN_QUEUE for each in commands]
    old = [each for each, when in zip(commands, due, strict=True) if when <= moment.now]
    later = [when for when in due if when > moment.now]
    return requests.Reconciled(
        steps=[steps_to.delete(kinds.COMMAND, each) for each in old], again=manifests.first(later)
    )


def annotated(queue: Mapping[str, Any], annotations: Mapping[str, str | None]) -> Step:
    """Write annotations of a queue; None takes one away."""
    return steps_to.patch(kinds.QUEUE, queue, {"metadata": {"annotations": dict(annotations)}})
