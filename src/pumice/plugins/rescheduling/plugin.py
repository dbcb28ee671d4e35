"""rescheduling: pods leave nodes that are busy for nodes that are not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from pumice.framework.configuration import Configured, Settings, settings
from pumice.framework.plugin import Plugin
from pumice.model.resources import CPU, MEMORY
from pumice.plugins.rescheduling import strategies
from pumice.plugins.sharing import loads

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import numpy.typing as npt

    from pumice.api import documents
    from pumice.framework.session import Session
    from pumice.model.job import Job
    from pumice.model.resources import Vector
    from pumice.model.task import Task
    from pumice.plugins.sharing.loads import Loads

_STRATEGIES: Final = "strategies"
_PERCENT: Final = 1000  # loads are in thousandths of one
_ASKED: Final = [CPU, MEMORY]
_DEFAULT: Final = ({"name": strategies.LOW_NODE_UTILIZATION, "params": {}},)


class ReschedulingSettings(Settings):
    """How often nodes are looked at, and which of them are busy."""

    interval = settings.period("interval", 300_000_000, minimum=1, help="how much time there is between two looks")
    metrics_period = settings.text(
        "metricsPeriod", "5m", help="accepted, and not read: every source of metrics gives averages of ten minutes"
    )
    strategies = settings.anything(
        _STRATEGIES,
        "list",
        _DEFAULT,
        help="lowNodeUtilization with the percentages `thresholds` and `targetThresholds`",
    )


class Rescheduling(Plugin):
    """Every so often name pods of busy nodes that would fit on idle ones, for `shuffle` to evict.

    A node is idle if cpu and memory in use are both below `thresholds`, and busy if one of them is above `targetThresholds` (percentages, 100 unless set, of what the source of `metrics` measured). Pods go from the busiest node first, least
    important first, until nothing of it is above the target, as long as what they ask for fits beside what was measured on the idle nodes, below the target, and into what is free on one of them. A gang keeps its minimum.
    """

    name = "rescheduling"
    points = frozenset({"VictimTasks"})
    settings = Configured(ReschedulingSettings)

    @classmethod
    def objections(cls, arguments: Mapping[str, Any]) -> Iterable[tuple[documents.Path, str]]:
        """Refuse strategies that cannot be read."""
        for where, why in strategies.problems(list(arguments.get(_STRATEGIES) or ())):
            yield (_STRATEGIES, *where), why

    @classmethod
    def remarks(cls, arguments: Mapping[str, Any]) -> Iterable[tuple[documents.Path, str]]:
        """Say which strategies and parameters nobody reads."""
        for where, why in strategies.unread(list(arguments.get(_STRATEGIES) or ())):
            yield (_STRATEGIES, *where), why

    def __init__(self, settings: Settings, switches: Mapping[str, bool]) -> None:
        super().__init__(settings, switches)
        self.limits = strategies.limits_of(list(self.settings.strategies or ()))

    def open(self, session: Session) -> None:
        """Register in the cycles in which it is time to look; the first is one interval after the start."""
        done = session.cluster.last_done
        due = done.setdefault(self.name, session.started) + self.settings.interval
        found = loads.of_nodes(session)
        if found is None or found.stale_at(session.started) is None:
            return
        if due > session.started:
            session.wake_at(due)
            return
        done[self.name] = session.started
        session.wake_at(session.started + self.settings.interval)
        self._session, self._loads = session, found
        session.victim_tasks.add(self.misplaced)

    def misplaced(self, running: Sequence[Task]) -> list[Task]:
        """Name the pods that are to leave busy nodes."""
        move = Move(self._session, self._loads, self.limits)
        if not (move.idle.any() and move.busy.any()):
            return []
        by_row: dict[int, list[Task]] = {}
        for task in running:
            if task.node is not None and task.node.row < len(move.busy) and move.busy[task.node.row]:
                by_row.setdefault(task.node.row, []).append(task)
        return [task for row in move.busiest_first() for task in move.leaving(row, by_row.get(row, []))]


class Move:
    """One look at all nodes: who is busy, who is idle, and how much the idle ones can take over."""

    def __init__(self, session: Session, found: Loads, limits: strategies.Limits) -> None:
        table = session.cluster.nodes
        fresh = found.fresh(session.started)
        self._load = np.stack((found.cpu, found.memory), axis=1)
        self._target = np.array(limits.high) * _PERCENT
        below = (self._load < np.array(limits.low) * _PERCENT).all(axis=1)
        usable = ~table.attributes.cordoned & ~table.attributes.not_ready
        self.idle: npt.NDArray[np.bool_] = fresh & below & usable
        self.busy: npt.NDArray[np.bool_] = fresh & ~below & (self._load > self._target).any(axis=1)
        self._size = table.allocatable[: table.count][:, _ASKED]
        room = (self._target - self._load[self.idle]) * self._size[self.idle]
        self._budget: Vector = np.maximum(room, 0).sum(axis=0) // loads.FULL
        self._free = table.view().idle[self.idle]
        self._taken: dict[str, int] = {}

    def busiest_first(self) -> list[int]:
        """Return the rows of busy nodes."""
        rows = np.flatnonzero(self.busy)
        order: list[int] = rows[np.argsort(-self._load[rows].sum(axis=1), kind="stable")].tolist()
        return order

    def leaving(self, row: int, tasks: list[Task]) -> Iterable[Task]:
        """Name pods of a busy node until nothing of it is above the target."""
        load = self._load[row].copy()
        for task in sorted(tasks, key=_least_important_first):
            if (load <= self._target).all():
                return
            asked = task.shape.request.vector
            if task.job is not None and self._keeps_its_minimum(task.job) and self._finds_room(asked):
                self._taken[task.job.key] = self._taken.get(task.job.key, 0) + 1
                load -= asked[_ASKED] * loads.FULL // np.maximum(self._size[row], 1)
                yield task

    def _keeps_its_minimum(self, job: Job) -> bool:
        """Tell whether one more pod may go: a gang goes on with its minimum, a single pod begins anew elsewhere."""
        return job.min_member <= 1 or job.tally.ready - self._taken.get(job.key, 0) > job.min_member

    def _finds_room(self, asked: Vector) -> bool:
        """Take what a pod asks for off the budget, and off the first idle node on which it is free."""
        fits = ((asked <= self._free) | (asked == 0)).all(axis=1)
        if (asked[_ASKED] > self._budget).any() or not fits.any():
            return False
        self._budget -= asked[_ASKED]
        self._free[int(fits.argmax())] -= asked
        return True


def _least_important_first(task: Task) -> tuple[bool, int, int, int, str]:
    """Order pods: those without a priority, low ones, those without requests before others, young before old."""
    priority = task.pod.spec.priority
    return priority is not None, priority or 0, not task.best_effort, -task.creation, task.uid
