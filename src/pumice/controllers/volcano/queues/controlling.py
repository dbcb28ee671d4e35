"""What a queue does next: it takes orders down, carries them out, follows its parent, and is closed when its last group is gone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pumice.api import duration, kinds, names
from pumice.controllers.queueing import requests
from pumice.controllers.volcano.queues import orders, states
from pumice.controllers.workloads import manifests, steps_to

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pumice.controllers.queueing.observed import Observed
    from pumice.controllers.queueing.requests import Moment, Reconciled, Step
    from pumice.controllers.volcano.queues.orders import Order
    from pumice.controllers.volcano.queues.states import Action

Manifest = dict[str, Any]
MANAGER: Final = "queue-controller"  # the field manager of states, the same as Volcano's
_PARENT_PAUSE: Final = 30 * duration.SECOND  # before a parent that does not exist is looked for again


class Queues:
    """Reconciles Queues."""

    kind = kinds.QUEUE
    watched = (kinds.QUEUE, kinds.POD_GROUP, kinds.COMMAND)

    def concerns(self, kind: kinds.Kind, manifest: Mapping[str, Any], observed: Observed) -> Iterable[tuple[str, str]]:
        """Name the queues that a change may matter to: children of one that is or was shut, one that waits for its groups to go, one that has an order."""
        if kind == kinds.COMMAND and (name := orders.targets(manifest)):
            yield "", name
        elif kind == kinds.POD_GROUP:
            queue = observed.find(self.kind, "", states.queue_of(manifest))
            if queue is not None and states.state_of(queue) == names.QUEUE_CLOSING:
                yield "", manifests.name(queue)
        elif kind == kinds.QUEUE and states.is_shut(manifest):
            own = manifests.name(manifest)
            for each in observed.all(self.kind):
                if states.parent_of(each) == own:
                    yield "", manifests.name(each)

    def reconcile(self, namespace: str, name: str, observed: Observed, moment: Moment) -> Reconciled:
        """Take the next steps of a queue."""
        del namespace
        queue, waiting = observed.find(self.kind, "", name), orders.waiting(name, observed)
        if queue is None or manifests.is_going(queue):
            return orders.without_queue(waiting, moment)
        order, parent = orders.standing(queue), observed.find(self.kind, "", states.parent_of(queue))
        blocked = order is not None and order.action == states.OPEN and not _opens(queue, parent)
        if waiting and (order is None or blocked or order.uid in map(manifests.uid, waiting)):
            first = next((each for each in waiting if order and manifests.uid(each) == order.uid), waiting[0])
            return orders.taken(queue, first, moment)
        plan = (
            self._blocked(queue, order, parent, moment)
            if order and blocked
            else self._acted(queue, order, parent, observed)
        )
        if states.parent_of(queue) and not manifests.mapping(queue, "spec").get("parent"):
            plan.steps.insert(0, steps_to.patch(self.kind, queue, {"spec": {"parent": names.ROOT_QUEUE}}))
        if parent is None and states.parent_of(queue):
            plan.again = manifests.first([plan.again, moment.now + _PARENT_PAUSE])
        return plan

    def _blocked(self, queue: Manifest, order: Order, parent: Manifest | None, moment: Moment) -> Reconciled:
        """Keep an order to open a queue below one that is not open, until it is given up."""
        if moment.now < (due := orders.given_up(order, moment)):
            return requests.Reconciled(again=due)
        above = states.parent_of(queue)
        why = (
            f"its parent {above} does not exist"
            if parent is None
            else f"its parent {above} is {states.state_of(parent)}"
        )
        told = f"Open queue failed: {why}; open that first"
        dropped = orders.annotated(queue, {names.QUEUE_ORDER: None})
        return requests.Reconciled(steps=[dropped], notes=[("Warning", states.OPEN, told)])

    def _acted(self, queue: Manifest, order: Order | None, parent: Manifest | None, observed: Observed) -> Reconciled:
        action = order.action if order is not None else states.wish_of_parent(queue, parent)
        now = states.state_of(queue)
        new = states.after(now, action, manifests.name(queue), observed)
        steps: list[Step] = []
        if action == states.CLOSE and order is None:
            # The mark comes first: a queue that is closed without it is never opened again with its parent.
            steps.append(orders.annotated(queue, {names.CLOSED_BY_PARENT: "true"}))
        if new != manifests.mapping(queue, "status").get("state"):
            steps.append(_state(queue, new, action))
        annotations = self._annotations(queue, order, action, new, parent)
        if annotations:
            steps.append(orders.annotated(queue, annotations))
        return requests.Reconciled(steps=steps)

    def _annotations(
        self, queue: Manifest, order: Order | None, action: Action | None, new: str, parent: Manifest | None
    ) -> dict[str, str | None]:
        """Give what is written when a state has been reached: no order stands any more, and no mark that would undo it."""
        found: dict[str, str | None] = {} if order is None else {names.QUEUE_ORDER: None}
        settled = action == states.CLOSE or new == names.QUEUE_OPEN
        stale = settled and states.is_marked(queue) and _opens(queue, parent)
        if action == states.OPEN or stale:
            found[names.CLOSED_BY_PARENT] = "false"
        return found


def _opens(queue: Manifest, parent: Manifest | None) -> bool:
    """Tell whether a queue may be opened as far as its parent is concerned."""
    above = states.parent_of(queue)
    return above in ("", names.ROOT_QUEUE) or (parent is not None and not states.is_shut(parent))


def _state(queue: Manifest, state: str, action: Action | None) -> Step:
    request = requests.Apply(
        kind=kinds.QUEUE,
        namespace="",
        name=manifests.name(queue),
        uid=manifests.uid(queue),
        body={"status": {"state": state}},
        manager=MANAGER,
        subresource="status",
    )
    failed = "Open queue failed: " if state == names.QUEUE_OPEN else "Close queue failed: "
    reason = states.OPEN if state == names.QUEUE_OPEN else states.CLOSE
    said = (states.CLOSE, "Close queue succeed") if action == states.CLOSE else None
    return requests.Step(request=request, said=said, refused=(reason, failed))
