"""The timeline of the cluster: the profile of its nodes, kept in step with the pods on them and with what is booked."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import numpy as np

from pumice.api import names
from pumice.model.reading import instant
from pumice.model.statuses import GOING, PLACED, Status
from pumice.plugins.timeline.estimates import departure, planned_end
from pumice.plugins.timeline.profile import NEVER, Profile
from pumice.plugins.timeline.promises import Promises

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pumice.framework.vectors import Mask
    from pumice.model.cluster import Cluster
    from pumice.model.nodes import NodeRecord
    from pumice.model.resources import Matrix, Vector
    from pumice.model.task import Task
    from pumice.plugins.timeline.estimates import Estimates

COUNTED = PLACED | {Status.PIPELINED}


class Booking(msgspec.Struct, eq=False):
    """Room for a job from one time to another: the pods, by uid, on their nodes, and who has it since when."""

    job: str
    start: int
    stop: int
    places: tuple[tuple[str, str], ...]
    amounts: dict[str, Vector]  # by node
    since: int = 0
    first: int = 0  # the first forecast
    laid: bool = False
    behind: tuple[str, int] | None = (
        None  # whom the job would delay if it started before, and for when that one is planned
    )
    concerns_pods: bool = False  # whether pods say beside whom they, or others, may be
    tight: int = -1  # there is no earlier time for it as long as room has not grown since

    @property
    def nodes(self) -> dict[str, int]:
        """How many pods go to which node."""
        counts: dict[str, int] = {}
        for _, node in self.places:
            counts[node] = counts.get(node, 0) + 1
        return counts


class Ledger:
    """Follows the cluster."""

    def __init__(self, estimates: Estimates, resolution: int) -> None:
        self._estimates = estimates
        self._resolution = resolution
        self.profile = Profile()
        self.promised = Promises()
        self.begun = 0  # how often the nodes were other ones
        self.news: dict[str, None] = {}  # who was promised something since that was last asked for
        self._gained = False
        self.moves = 0  # grows with everything that may change an answer
        self.grown = 0  # grows whenever there is more room somewhere, or room elsewhere
        self.ends: list[dict[str, int]] = []  # by row: when each pod ends
        self._soonest: Vector = np.zeros(0, dtype=np.int64)
        self._bound: dict[str, int] = {}
        self._state: tuple[int, int] = (-1, -1)
        self._stated = (-1, -1)
        self._position = -1
        self._offered: Matrix = np.zeros((0, 0), dtype=np.int64)
        self.bookings: dict[str, Booking] = {}

    @property
    def expected(self) -> Iterable[Booking]:
        """What is booked."""
        return self.bookings.values()

    @property
    def gained(self) -> bool:
        """Whether there is more room than was known when reservations were last looked at."""
        return self._gained

    def gain(self) -> None:
        """Note that there is more room."""
        self._gained = True
        self.grown += 1

    def looked_at(self) -> bool:
        """Tell whether there is more room, and take that for looked at from now on."""
        gained, self._gained = self._gained, False
        return gained

    # -- following ---------------------------------------------------------------------------------------------

    def follow(self, cluster: Cluster, now: int, others: Iterable[int] = ()) -> bool:
        """Catch up with the cluster, with some nodes in any case, and tell whether anything has changed."""
        table = cluster.nodes
        state = (table.structure, table.count)
        rows = table.rows_since(self._position) if state == self._state else None
        if rows is None:
            self._begin(cluster, now)
            self._state, self._position = state, table.position
            return True
        stated = (table.static, table.claims)
        if stated != self._stated:
            # Other nodes may take a job than before.
            self._stated = stated
            self.gain()
        late = np.flatnonzero(self._soonest <= now).tolist()
        asked = sorted({*rows, *late, *others}) if late or others else rows
        changed = [self._renew(cluster, row, now) for row in asked]
        self._position = table.position
        self.moves += any(changed)
        return any(changed)

    def pass_over(self, cluster: Cluster) -> None:
        """Take what was tried out and taken back since the last look for nothing."""
        self._position = cluster.nodes.position

    def _begin(self, cluster: Cluster, now: int) -> None:
        table = cluster.nodes
        self._offered = table.allocatable[: table.count].copy()
        self.ends = []
        given = {}
        for row in range(table.count):
            ends, listed = self._ends(cluster, table.records[row], now, {})
            self.ends.append(ends)
            given[row] = listed
        n = table.count
        self._rooms: Matrix = table.idle_at(slice(n)) - table.pipelined[:n]
        self.profile.build(self._rooms, given)
        self.promised.begin(n, self._rooms.shape[1])
        self.begun += 1
        self._soonest = np.array([min(ends.values(), default=NEVER) for ends in self.ends], dtype=np.int64)
        self._bound = {uid: moment for uid, moment in self._bound.items() if uid in cluster.tasks}
        self.gain()
        self.moves += 1
        for booking in self.bookings.values():
            booking.laid = False
        for booking in list(self.bookings.values()):
            if not self.lay(cluster, booking):
                del self.bookings[booking.job]

    def _renew(self, cluster: Cluster, row: int, now: int) -> bool:
        """Look at one node again, and tell whether it is another."""
        table = cluster.nodes
        before = self.ends[row]
        ends, listed = self._ends(cluster, table.records[row], now, before)
        offered, room = table.allocatable[row], table.idle_at(row) - table.pipelined[row]
        if ends == before and (room == self._rooms[row]).all():
            return False
        self._rooms[row] = room
        # Whoever is gone before its time, or is expected to be, leaves more room than was known.
        if any(ends.get(uid, 0) < end and end > now for uid, end in before.items()):
            self.gain()
        if (offered > self._offered[row]).any():
            self.gain()
        self._offered[row] = offered
        self.ends[row] = ends
        self._soonest[row] = min(ends.values(), default=NEVER)
        self.profile.rebuild(row, room, listed, self.promised.profile)
        return True

    def _ends(
        self, cluster: Cluster, record: NodeRecord, now: int, before: Mapping[str, int]
    ) -> tuple[dict[str, int], list[tuple[int, Vector]]]:
        """Return when each pod on a node ends, and what it gives back then; what is known of jobs that have not changed stays, unless it is over or something was learnt."""
        ends, given = {}, []
        changed, known = cluster.dirty_jobs, {} if self._estimates.learns else before
        for task in record.tasks.values():
            if task.status in COUNTED:
                end = known.get(task.uid, now)
                if end <= now or task.job_key in changed:
                    end = self.end(cluster, task, now)
                ends[task.uid] = end
                if end < NEVER:
                    given.append((end, task.shape.request.vector))
        return ends, given

    def end(self, cluster: Cluster, task: Task, now: int) -> int:
        """Return when a pod is expected to end."""
        if task.status in GOING:
            return self._rounded(departure(task, now))
        job = task.job
        if job is None:
            return NEVER
        started = self.started(task, now)
        length = self._estimates.of(cluster, job).run(started)
        if length is None:
            return NEVER
        return self._rounded(planned_end(started, length, now))

    def basis(self, cluster: Cluster, task: Task, end: int) -> str:
        """Name what says when a pod ends."""
        if task.status in GOING:
            return "grace period"
        return (
            "deadline" if task.job is not None and end >= self._estimates.of(cluster, task.job).ends_by else "estimate"
        )

    def is_over(self, cluster: Cluster, task: Task, now: int) -> bool:
        """Tell whether a pod runs longer than was estimated."""
        if task.job is None or task.status in GOING:
            return False
        started = self.started(task, now)
        length = self._estimates.of(cluster, task.job).run(started)
        return length is not None and started + length <= now

    def _rounded(self, moment: int) -> int:
        if not self._resolution or moment >= NEVER:
            return moment
        return -(-moment // self._resolution) * self._resolution

    def started(self, task: Task, now: int) -> int:
        """Return when a pod started; until that is known, when it was bound. What the clock of another machine dates ahead happened when it was seen first."""
        if task.status == Status.PIPELINED:
            return now
        said = instant(task.pod.status.start_time) or _placed_at(task)
        return said if 0 < said <= now else self._bound.setdefault(task.uid, now)

    @property
    def next_end(self) -> int:
        """The next time at which a pod is expected to end."""
        return int(self._soonest.min(initial=NEVER))

    def gone_by(self, cluster: Cluster, moment: int, but: str = "", within: Mask | None = None) -> list[Task]:
        """Return the pods that have ended by some time, without those of one job, on some nodes alone if these are given."""
        over = self._soonest <= moment
        rows = np.flatnonzero(over if within is None else over & within).tolist()
        uids = [uid for row in rows for uid, end in self.ends[row].items() if end <= moment]
        tasks = (cluster.tasks[uid] for uid in uids)
        return [task for task in tasks if task.job_key != but and task.status != Status.PIPELINED]

    # -- bookings ----------------------------------------------------------------------------------------------

    def lay(self, cluster: Cluster, booking: Booking) -> bool:
        """Take the room of a booking off the timeline; False if a node is gone, or resources are counted anew."""
        found = on_nodes(cluster, booking)
        if found is None:
            return False
        rows, amounts = found
        self.profile.change(rows, -amounts, booking.start, booking.stop)
        self.promised.put(booking.job, rows, amounts, booking.start, booking.stop)
        booking.laid = True
        self.bookings[booking.job] = booking
        self.news[booking.job] = None
        self.moves += 1
        return True

    def lift(self, cluster: Cluster, booking: Booking) -> None:
        """Give the room of a booking back."""
        if booking.laid:
            rows = self.rows(cluster, booking)
            self.profile.change(rows, np.array(list(booking.amounts.values())), booking.start, booking.stop)
            self.promised.drop(booking.job)
            booking.laid = False
            self.moves += 1

    def drop(self, cluster: Cluster, booking: Booking) -> None:
        """Give the room of a booking back for good."""
        self.lift(cluster, booking)
        del self.bookings[booking.job]

    def rows(self, cluster: Cluster, booking: Booking) -> list[int]:
        """Return the rows of the nodes that a booking is on."""
        return [cluster.nodes.by_name[name].row for name in booking.amounts]

    def holds(self, cluster: Cluster, booking: Booking) -> bool:
        """Tell whether the room of a booking is there for it."""
        columns = np.flatnonzero(np.any([amount != 0 for amount in booking.amounts.values()], axis=0))
        return self.profile.covers(self.rows(cluster, booking), booking.start, booking.stop, columns)


def _placed_at(task: Task) -> int:
    conditions = task.pod.status.conditions
    said = (each for each in conditions if each.type == names.CONDITION_POD_SCHEDULED and each.status == "True")
    return max((instant(each.last_transition_time) for each in said), default=0)


def on_nodes(cluster: Cluster, booking: Booking) -> tuple[list[int], Matrix] | None:
    """Return the rows of the nodes that a booking is on, and the amounts there; None if a node is gone, or resources are counted anew."""
    nodes, width = cluster.nodes, len(cluster.vocabulary)
    rows = []
    for name, amount in booking.amounts.items():
        record = nodes.by_name.get(name)
        if record is None or record.row >= nodes.count or len(amount) != width:
            return None
        rows.append(record.row)
    return rows, np.array(list(booking.amounts.values()), dtype=np.int64)


def amounts_by_node(places: Sequence[tuple[Task, NodeRecord]]) -> dict[str, Vector]:
    """Add up what pods ask for on each node."""
    found: dict[str, Vector] = {}
    for task, node in places:
        vector = task.shape.request.vector
        found[node.name] = found[node.name] + vector if node.name in found else vector.copy()
    return found
