"""tdm: some nodes are for batch work in given hours only."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from pumice.api import names, time_zones
from pumice.framework.configuration import Configured, Settings, settings
from pumice.framework.extensions import PERMIT, Vote, reject
from pumice.framework.plugin import Plugin
from pumice.framework.points import Reads
from pumice.framework.reasons import Code
from pumice.model.statuses import Status
from pumice.plugins.sharing.scoring import MAX_SCORE
from pumice.plugins.tdm import budgets, windows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from pumice.api import documents
    from pumice.framework.evaluation import Floats, Mask
    from pumice.framework.reasons import ReasonVector
    from pumice.framework.session import Session
    from pumice.framework.subject import Subject
    from pumice.model.job import Job
    from pumice.model.nodes import NodeRecord, Nodes
    from pumice.model.task import Task

_ZONE: Final = "tdm.revocable-zone."
_TIME_ZONE: Final = "tdm.time-zone"
CLOSED: Final = "revocable zone is not open"
NOT_REVOCABLE: Final = "pod is not for revocable nodes"


class TimeDivisionSettings(Settings):
    """When each zone is open, and how often pods are sent away from one that is not."""

    zones = settings.each(
        settings.text(
            f"{_ZONE}*", "", help="when nodes of that zone take pods, as HH:MM-HH:MM; 21:00-06:00 goes over midnight"
        )
    )
    time_zone = settings.text(_TIME_ZONE, "UTC", help="the time zone of all windows, by its IANA name")
    period = settings.period(
        "tdm.evict.period",
        60_000_000,
        minimum=1,
        replacement=60_000_000,
        help="how much time there is at least between two evictions from zones that have closed",
    )


class TimeDivision(Plugin):
    """Use nodes with the label `volcano.sh/revocable-zone` in given hours only, and only for pods that can be sent away.

    Such a pod has the annotation `volcano.sh/revocable-zone: "*"`, or none and `volcano.sh/preemptable: "true"`. While the zone is open they prefer its nodes; once it has closed, `shuffle` evicts pods that are
    preemptable from them, of each job as many at a time as its PodGroup says by `volcano.sh/jdb-min-available` or else `volcano.sh/jdb-max-unavailable` (a number, or a percentage of its pods, rounded up), and one if it says neither.
    Jobs that are not preemptable come first, and their pods that are marked `volcano.sh/preemptable: "false"` may preempt running preemptable pods of other nodes, of each job as many.
    """

    name = "tdm"
    points = frozenset(
        {"Predicate", "NodeOrder", "Preemptable", "VictimTasks", "JobOrder", "JobPipelined", "JobStarving"}
    )
    settings = Configured(TimeDivisionSettings)

    @classmethod
    def objections(cls, arguments: Mapping[str, Any]) -> Iterable[tuple[documents.Path, str]]:
        """Refuse windows and time zones that cannot be read."""
        for key, value in arguments.items():
            read: Callable[[str], object] = time_zones.zone_of if key == _TIME_ZONE else windows.parse
            if key == _TIME_ZONE or key.startswith(_ZONE):
                try:
                    read(value)
                except (windows.WindowError, time_zones.ZoneError) as error:
                    yield (key,), str(error)

    def __init__(self, settings: Settings, switches: Mapping[str, bool]) -> None:
        super().__init__(settings, switches)
        self._zone = time_zones.zone_of(self.settings.time_zone)
        self._windows = {name: windows.parse(text) for name, text in self.settings.zones.items()}

    def open(self, session: Session) -> None:
        """Register the rules; where no node is revocable, nothing is asked about nodes."""
        self._session = session
        self._open = {
            name for name, window in self._windows.items() if windows.is_open(window, session.started, self._zone)
        }
        session.job_order.add(_is_preemptable)
        session.job_pipelined.add(_vote, reads=Reads(0))
        session.job_starving.add(_is_starving)
        session.preemptable.add(self.preemptable)
        _, zones = session.cluster.nodes.attributes.codes(names.REVOCABLE_ZONE)
        if not zones:
            return
        self._wake(session, zones)
        self._closed_reason = session.reason(self.name, Code.UNRESOLVABLE, CLOSED)
        self._foreign_reason = session.reason(self.name, Code.UNRESOLVABLE, NOT_REVOCABLE)
        session.predicate.add(self.fits, reads=Reads.NODE | Reads.TIME, details=self.detail)
        session.score.add(self.score, reads=Reads.NODE | Reads.TIME)
        session.victim_tasks.add(self.overdue)

    def _wake(self, session: Session, zones: Iterable[str]) -> None:
        """Ask for a cycle when a zone that some node is in opens or closes."""
        for name in zones:
            window = self._windows.get(name)
            change = None if window is None else windows.next_change(window, session.started, self._zone)
            if change is not None:
                session.wake_at(change)

    def fits(self, subject: Subject, nodes: Nodes) -> ReasonVector:
        """Refuse revocable nodes outside of their hours, and to pods that cannot be sent away."""
        attributes = nodes.table.attributes
        ordinary: Mask = attributes.mask(names.REVOCABLE_ZONE, lambda zone: zone is None)[nodes.index]
        if not subject.shape.constraints.revocable:
            return np.where(ordinary, 0, self._foreign_reason).astype(np.int16)
        return np.where(ordinary | self._is_open(nodes), 0, self._closed_reason).astype(np.int16)

    def detail(self, subject: Subject, node: NodeRecord) -> str:
        """Say when the zone of a node is open, or what the pod lacks."""
        zone = _zone(node)
        if not subject.shape.constraints.revocable:
            return f"in revocable zone {zone}, and the pod is not marked as revocable or preemptable"
        hours = self.settings.zones.get(zone)
        when = "without hours in the configuration" if hours is None else f"open {hours} {self.settings.time_zone}"
        return f"in revocable zone {zone}, {when}"

    def score(self, subject: Subject, nodes: Nodes) -> Floats | None:
        """Prefer revocable nodes for pods that may use them, so that the others stay free for those that may not."""
        if not subject.shape.constraints.revocable:
            return None
        return np.where(self._is_open(nodes), MAX_SCORE, 0.0)

    def _is_open(self, nodes: Nodes) -> Mask:
        mask: Mask = nodes.table.attributes.mask(names.REVOCABLE_ZONE, lambda zone: zone in self._open)
        return mask[nodes.index]

    def preemptable(self, claimant: Task, candidates: Sequence[Task]) -> list[Task]:
        """Offer running pods of ordinary nodes, within the budget of their jobs, to a pod that cannot be sent away itself."""
        if claimant.preemptable or claimant.shape.constraints.revocable:
            return []
        return _within_budgets(
            task for task in candidates if _may_go(task) and task.node is not None and not _zone(task.node)
        )

    def overdue(self, running: Sequence[Task]) -> list[Task]:
        """Name pods on nodes of zones that have closed, within the budgets of their jobs, at most once in a period."""
        closed = self._windows.keys() - self._open
        overdue = [task for task in running if _may_go(task) and task.node is not None and _zone(task.node) in closed]
        if not overdue:
            return []
        last = self._session.cluster.last_done.get(self.name)
        if last is not None and (due := last + self.settings.period) > self._session.started:
            self._session.wake_at(due)
            return []
        chosen = _within_budgets(sorted(overdue, key=_least_important_first))
        if chosen:
            self._session.cluster.last_done[self.name] = self._session.started
            self._session.wake_at(self._session.started + self.settings.period)
        return chosen


def _within_budgets(tasks: Iterable[Task]) -> list[Task]:
    """Keep of each job as many as its budget allows, in the given order."""
    left: dict[str, int] = {}
    chosen = []
    for task in tasks:
        if task.job is None:
            continue
        allowed = left.get(task.job.key)
        if allowed is None:
            allowed = budgets.allowed(task.job)
        left[task.job.key] = allowed - 1
        if allowed > 0:
            chosen.append(task)
    return chosen


def _may_go(task: Task) -> bool:
    return task.status == Status.RUNNING and task.preemptable


def _zone(node: NodeRecord) -> str:
    return node.labels.get(names.REVOCABLE_ZONE, "")


def _least_important_first(task: Task) -> tuple[int, int, int, str]:
    return task.priority, -(task.index or 0), -task.creation, task.uid


def _is_preemptable(job: Job) -> bool:
    return job.preemptable


def _vote(job: Job) -> Vote:
    if job.is_pipelined:
        return PERMIT
    tally = job.tally
    return reject(f"{tally.ready} of {job.min_member} members placed, {tally.waiting} waiting for release")


def _is_starving(job: Job) -> bool:
    return not job.preemptable and bool(job.pending)
