"""The queue that a job or a pod group names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pumice.admission import laws, surroundings
from pumice.api import documents, names

if TYPE_CHECKING:
    from pumice.admission.parts import Part
    from pumice.admission.surroundings import Surroundings


def judge_open(spec: Part, around: Surroundings) -> None:
    """Refuse a queue that does not exist or takes nobody in; one without a state is open."""
    name = spec.text("queue")
    if not name:
        return
    queue = around.queue(name)
    if queue is None:
        _judge_missing(spec, name, around)
        return
    state = surroundings.state_of(queue)
    if state != names.QUEUE_OPEN:
        spec.breaks(
            laws.QUEUE,
            f"is {documents.quoted(name)}, whose state is {state}; only an Open queue takes anybody in",
            "queue",
        )


def judge_leaf(spec: Part, around: Surroundings) -> None:
    """Refuse the root, and a queue with children: jobs go to the leaves of the tree."""
    name = spec.text("queue")
    if name == names.ROOT_QUEUE:
        spec.breaks(laws.QUEUE, "is root, which no job may be in; name a queue below it", "queue")
        return
    children = around.children(name) if name else []
    if children:
        shown = ", ".join(children[:3]) + (", …" if len(children) > 3 else "")
        spec.breaks(
            laws.QUEUE,
            f"is {documents.quoted(name)}, which has {len(children)} queues below it ({shown}); name one without",
            "queue",
        )


def _judge_missing(spec: Part, name: str, around: Surroundings) -> None:
    if around.complete:
        near = documents.nearest(
            name, (str(surroundings.below(dict(each), "metadata", "name")) for each in around.queues())
        )
        hint = f"did you mean {near}?" if near else "create it first"
        spec.breaks(laws.QUEUE, f"is {documents.quoted(name)}, and there is no such queue; {hint}", "queue")
    elif name not in (names.DEFAULT_QUEUE, names.ROOT_QUEUE):
        spec.breaks(
            laws.UNSEEN,
            f"is {documents.quoted(name)}, which is not among what was read: it must exist in the cluster",
            "queue",
        )
