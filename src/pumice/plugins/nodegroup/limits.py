"""How much the pods of a queue may hold in a group of nodes, and how much they hold, followed through a cycle."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from pumice.api import names
from pumice.framework.reasons import Code
from pumice.model import resources, statuses

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

    from pumice.framework.evaluation import Mask
    from pumice.framework.reasons import ReasonVector
    from pumice.framework.runs import Run
    from pumice.framework.session import Session
    from pumice.model.attributes import Attributes
    from pumice.model.nodes import Rows
    from pumice.model.queue import Queue
    from pumice.model.resources import Amounts, Request, Vector

EXCEEDED = "node group resource limit exceeded"


def parse(text: str) -> dict[str, Amounts]:
    """Read the limits of a queue by group, or raise the `BadValueError` that makes them invalid."""
    try:
        written = msgspec.json.decode(text, type=dict[str, dict[str, str | int | float]])
    except msgspec.DecodeError as error:
        raise resources.BadValueError(names.NODE_GROUP_RESOURCE_LIMITS, str(error)) from None
    return {group: resources.parse(amounts, group) for group, amounts in written.items()}


class Ceiling:
    """What a queue may hold in one group, and what it holds."""

    __slots__ = ("_full", "_never", "columns", "held", "limit")

    def __init__(self, columns: Vector, limit: Vector, full: int, never: int) -> None:
        self.columns = columns
        self.limit = limit
        self.held: Vector = np.zeros(len(columns), dtype=np.int64)
        # The reason that goes as others of the queue go, and the one that stays whoever goes.
        self._full = full
        self._never = never

    def takes(self, request: Vector, already: int = 0) -> bool:
        """Tell whether one more pod stays within the limit, with some equal ones placed before it."""
        return bool((self.held + request[self.columns] * (already + 1) <= self.limit).all())

    def refusal(self, request: Vector) -> int:
        """Return the number of the reason why one more pod is too much, 0 if it is not."""
        if self.takes(request):
            return 0
        return self._full if (request[self.columns] <= self.limit).all() else self._never


class Holdings:
    """The limited groups of one queue."""

    __slots__ = ("ceilings",)

    def __init__(self, ceilings: Mapping[str, Ceiling]) -> None:
        self.ceilings = ceilings

    def add(self, group: str | None, request: Vector, sign: int) -> None:
        """Count a pod that came to a group, or left it."""
        ceiling = self.ceilings.get(group) if group is not None else None
        if ceiling is not None:
            ceiling.held += sign * request[ceiling.columns]

    def refusals(self, request: Request, attributes: Attributes) -> ReasonVector:
        """Return for every node 0, or the number of the reason why its group is full for such a pod."""
        codes, groups = attributes.codes(names.NODE_GROUP_NAME)
        numbers = [self._refusal(group, request) for group in groups]
        return np.array([*numbers, 0], dtype=np.int16)[codes]

    def _refusal(self, group: str, request: Request) -> int:
        ceiling = self.ceilings.get(group)
        return 0 if ceiling is None else ceiling.refusal(request.vector)


class Filling:
    """The groups that are full while equal pods are placed one after another."""

    __slots__ = ("_codes", "_groups", "_holdings", "_placed", "_refused", "_request")

    def __init__(self, holdings: Holdings, request: Request, attributes: Attributes) -> None:
        self._holdings = holdings
        self._request = request
        self._codes, self._groups = attributes.codes(names.NODE_GROUP_NAME)
        self._placed = [0] * len(self._groups)
        self._refused: Mask = holdings.refusals(request, attributes) != 0

    def place(self, row: int) -> Rows | None:
        """Count one more pod on a row; returns the rows of its group if that is full now."""
        code = int(self._codes[row])
        ceiling = self._holdings.ceilings.get(self._groups[code]) if code >= 0 else None
        if ceiling is None:
            return None
        self._placed[code] += 1
        if ceiling.takes(self._request.vector, self._placed[code]):
            return None
        rows: Rows = np.flatnonzero(self._codes == code)
        self._refused[rows] = True
        return rows

    def refuses(self, rows: Rows) -> Mask:
        """Mark the rows that do not take the next pod."""
        return self._refused[rows]

    def alike(self) -> list[npt.NDArray[Any]]:
        """Tell nodes apart by their groups, and by what refuses them now."""
        return [self._codes, self._refused]


class Limits:
    """The limits of all queues that somebody asked about in one cycle."""

    def __init__(self, session: Session, plugin: str) -> None:
        self._session = session
        self._plugin = plugin
        self._known: dict[str, Holdings | None] = {}
        self._problems: dict[str, str] = {}

    def problem(self, queue: Queue) -> str:
        """Say what is wrong with the limits of a queue; empty if nothing is."""
        self.holdings(queue)
        return self._problems.get(queue.name, "")

    def holdings(self, queue: Queue) -> Holdings | None:
        """Return the limited groups of a queue with what it holds there; None if it has no limits that can be read."""
        if queue.name not in self._known:
            self._known[queue.name] = self._read(queue)
        return self._known[queue.name]

    def _read(self, queue: Queue) -> Holdings | None:
        annotations = queue.object.metadata.annotations if queue.object is not None else {}
        text = annotations.get(names.NODE_GROUP_RESOURCE_LIMITS)
        if text is None:
            return None
        try:
            limits = parse(text)
        except resources.BadValueError as error:
            self._problems[queue.name] = str(error)
            return None
        holdings = Holdings({group: self._ceiling(queue, group, amounts) for group, amounts in limits.items()})
        self._count(queue, holdings)
        return holdings

    def _ceiling(self, queue: Queue, group: str, amounts: Amounts) -> Ceiling:
        known = self._session.cluster.vocabulary.columns
        # A name that no node offers fits nowhere anyway.
        counted = [(known[name], units) for name, units in amounts.items() if name in known]
        listed = ", ".join(f"{name} {resources.shown(name, units)}" for name, units in sorted(amounts.items()))
        text = f"{EXCEEDED} (queue {queue.name} may hold {listed} in {group})"
        curable = self._session.configuration.compatibility != "volcano"
        return Ceiling(
            np.array([column for column, _ in counted], dtype=np.int64),
            np.array([units for _, units in counted], dtype=np.int64),
            full=self._session.reason(self._plugin, Code.UNSCHEDULABLE if curable else Code.UNRESOLVABLE, text),
            never=self._session.reason(self._plugin, Code.UNRESOLVABLE, text),
        )

    def _count(self, queue: Queue, holdings: Holdings) -> None:
        """Count what the pods of a queue hold at this moment."""
        for key in queue.jobs:
            for task in self._session.cluster.jobs[key].tasks.values():
                if task.node is not None and task.status in statuses.SETTLED:
                    holdings.add(task.node.labels.get(names.NODE_GROUP_NAME), task.shape.request.vector, 1)

    def follow(self, run: Run, sign: int) -> None:
        """Count pods that were placed, evicted, or put back."""
        job = run.tasks[0].job
        holdings = self._known.get(job.queue) if job is not None else None
        if holdings is None:
            return
        request = run.tasks[0].shape.request.vector
        for target in run.targets:
            if target is not None:
                holdings.add(target.labels.get(names.NODE_GROUP_NAME), request, sign)
