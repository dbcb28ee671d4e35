"""A queue: whose jobs share, by which weight, within which limits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pumice.api import names
from pumice.model import resources
from pumice.model.task import instant

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pumice.api import scheduling

MAX_WEIGHT = 65535


class Queue:
    """One Queue object. Its name is its identity; a state that is absent is Open."""

    __slots__ = (
        "annotations",
        "bad",
        "capability",
        "creation",
        "deserved",
        "guarantee",
        "hierarchy",
        "hierarchy_weights",
        "jobs",
        "name",
        "object",
        "parent",
        "priority",
        "reclaimable",
        "row",
        "state",
        "status",
        "weight",
    )

    def __init__(self, name: str, row: int) -> None:
        self.name = name
        self.row = row
        self.jobs: dict[str, None] = {}
        self.bad = ""
        self.creation = 0
        self.object: scheduling.Queue | None = None
        self.state = ""
        self.annotations: Mapping[str, str] = {}

    def __repr__(self) -> str:
        return f"<queue {self.name} weight {self.weight}>"

    @property
    def is_open(self) -> bool:
        """Tell whether the queue takes new work."""
        return self.state == names.QUEUE_OPEN

    @property
    def closed(self) -> str | None:
        """Why the queue takes no new work; None if it does."""
        return None if self.is_open else f"its state is {self.state}, only {names.QUEUE_OPEN} queues take new work"

    def describe(self, queue: scheduling.Queue) -> None:
        """Take over what a Queue object says, or raise the `BadValueError` that makes it invalid."""
        spec = queue.spec
        self.object = queue
        self.status = queue.status
        self.creation = instant(queue.metadata.creation_timestamp)
        self.annotations = queue.metadata.annotations
        self.state = queue.status.state or names.QUEUE_OPEN
        self.parent = spec.parent
        self.priority = spec.priority
        self.reclaimable = spec.reclaimable is not False
        self.hierarchy = self.annotations.get(names.HIERARCHY, "")
        self.hierarchy_weights = self.annotations.get(names.HIERARCHY_WEIGHTS, "")
        self.weight = 1
        self.capability: resources.Amounts = {}
        self.guarantee: resources.Amounts = {}
        self.deserved: resources.Amounts = {}
        if not 1 <= spec.weight <= MAX_WEIGHT:
            raise resources.BadValueError("spec.weight", f"{spec.weight} is outside 1..{MAX_WEIGHT}")
        self.weight = spec.weight
        if spec.parent == self.name:
            raise resources.BadValueError(
                "spec.parent", f"names the queue itself ({self.name}); name another queue or leave it out"
            )
        self.capability = resources.parse(spec.capability, "spec.capability")
        self.guarantee = resources.parse(spec.guarantee.resource, "spec.guarantee.resource")
        self.deserved = resources.parse(spec.deserved, "spec.deserved")
