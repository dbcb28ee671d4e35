"""The room of each queue: what its ceiling and the nodes leave beside what others hold or are guaranteed, in the state the cycle has reached.

room(root) is what the nodes offer less what foreign pods hold, at most the root's ceiling; room(C) is what its parent has room for less the larger of
guaranteed and held of each sibling, counted below it too, at most C's own ceiling. So two borrowers together never take what is guaranteed to a third.

Where guarantees were scaled down, C has room up to its own as written as far as its siblings hold nothing there: what is only reserved for them does not count
against it, or a share smaller than a pod would stop everybody.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import msgspec
import numpy as np
import numpy.typing as npt

from pumice.api import names
from pumice.model import resources
from pumice.model.resources import PODS
from pumice.plugins.sharing import guarantees, queue_limits

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pumice.framework.session import Session
    from pumice.framework.subject import Demand
    from pumice.model.cluster import Cluster
    from pumice.model.queue import Queue
    from pumice.model.resources import Matrix, Vector


class Places(msgspec.Struct, frozen=True):
    """Queues as places of a tree, parents before children; the root is place 0, and in flat mode stands for no queue of its own."""

    queues: Sequence[Queue | None]
    parents: Sequence[int]
    leaves: Sequence[int]


def flat_places(cluster: Cluster) -> Places:
    """Put every valid queue directly below the root."""
    queues = [queue for queue in cluster.queues.values() if not queue.bad]
    return Places([None, *queues], [-1, *([0] * len(queues))], range(1, len(queues) + 1))


class Refusal(msgspec.Struct, frozen=True):
    """What would go beyond the room of a queue: the queue (None for the whole cluster), the columns, what it holds and its room."""

    queue: Queue | None
    columns: list[int]
    held: Vector
    room: Vector


class Rooms:
    """The rooms of one tree of queues, kept until a queue, or what is there to be shared, changes; what is held follows the cycle."""

    def __init__(self, cluster: Cluster, places: Places, root: Queue | None, available: Vector) -> None:
        vocabulary = cluster.vocabulary
        size = len(places.queues)
        self.places = places
        self.available = available
        self.ceilings: Matrix = np.full((size, len(vocabulary)), queue_limits.UNLIMITED, dtype=np.int64)
        stated: Matrix = np.zeros((size, len(vocabulary)), dtype=np.int64)
        for place, queue in enumerate(places.queues):
            if queue is not None and queue.guarantee:
                stated[place] = vocabulary.vector(queue.guarantee)
            if queue is not None and queue.capability:
                self.ceilings[place] = queue_limits.ceiling(vocabulary, queue.capability)
        if root is not None and root.capability:
            self.ceilings[guarantees.ROOT] = queue_limits.ceiling(vocabulary, root.capability)
        self.states_any = bool(stated.any())
        self.counted = guarantees.counted(places.parents, stated, self.ceilings, available)
        self.guaranteed, self.written = self.counted.amounts, self.counted.written
        scaled = np.flatnonzero(self.counted.scaled.any(axis=1)).tolist()
        self._scaled = {place: self.counted.scaled[place] for place in scaled}
        self.problems = _problems(cluster, places, stated, self.counted)
        # Only dimensions that some guarantee names are judged, and never pods.
        self.named: npt.NDArray[np.bool_] = self.written.max(axis=0) > 0
        self.named[PODS] = False
        self.active = bool(self.named.any())
        parents = places.parents
        self._inner = [place for place in range(size - 1, 0, -1) if parents[place] != guarantees.ROOT]
        self._top = [place for place in range(1, size) if parents[place] == guarantees.ROOT]
        self._place_of = {queue.row: place for place in places.leaves if (queue := places.queues[place]) is not None}

    def warn(self, session: Session) -> None:
        """Tell each queue of which a guarantee does not count in full."""
        for queue, text in self.problems:
            session.findings.warn_queue(queue, names.EVENT_GUARANTEE_REDUCED, text)

    # -- what is held ------------------------------------------------------------------------------------------

    def open(self, cluster: Cluster) -> None:
        """Start a cycle: count what every queue holds."""
        self._sums = cluster.queue_sums
        if not self.active:
            return
        self._position = len(self._sums.changes)
        rows = list(self._place_of)
        self._held: Matrix = np.zeros(self.guaranteed.shape, dtype=np.int64)
        self._held[list(self._place_of.values())] = self._sums.allocated[rows] + self._sums.pipelined[rows]
        for place in self._inner:
            self._held[self.places.parents[place]] += self._held[place]
        self._held[guarantees.ROOT] = self._held[self._top].sum(axis=0)
        self._taken: Matrix = np.zeros(self.guaranteed.shape, dtype=np.int64)
        self._spent: Matrix = np.zeros(self.guaranteed.shape, dtype=np.int64)
        for place in range(len(self._taken) - 1, -1, -1):
            self._taken[place] = self._taken_by(place)
            if place:
                self._spent[self.places.parents[place]] += self._taken[place]

    def _taken_by(self, place: int) -> Vector:
        """Return what a place keeps from its siblings: what it holds or is guaranteed, or what that comes to below it, as far as its ceiling lets it hold that.

        What one child has borrowed is not what another is guaranteed.
        """
        kept = np.maximum(self.guaranteed[place], self._spent[place])
        taken: Vector = np.maximum(self._held[place], np.minimum(kept, self.ceilings[place]))
        return taken

    def _catch_up(self) -> None:
        """Follow what was placed or given back since the last question."""
        changes = self._sums.changes
        if self._position == len(changes):
            return
        parents = self.places.parents
        for row in dict.fromkeys(changes[self._position :]):
            place = self._place_of.get(row, -1)
            if place < 0:
                continue
            change = self._sums.held(row) - self._held[place]
            while place >= 0:
                self._held[place] += change
                taken = self._taken_by(place)
                if place:
                    self._spent[parents[place]] += taken - self._taken[place]
                self._taken[place] = taken
                place = parents[place]
        self._position = len(changes)

    # -- asking ------------------------------------------------------------------------------------------------

    def refusal(self, queue: Queue, amounts: Vector) -> Refusal | None:
        """Return what taking amounts would take beyond the room of a queue or of one above it; None if there is room.

        A queue that stays within its own guarantee is never refused, by those above it neither.
        """
        asked = self.named & (amounts > 0) if self.active else None
        if asked is None or not asked.any():
            return None
        self._catch_up()
        branch = self._branch(self._place_of[queue.row])
        for place, room in zip(reversed(branch), reversed(self._rooms(branch)), strict=True):
            wanted = self._held[place] + amounts
            asked = asked & (wanted > self.guaranteed[place])
            if not asked.any():
                return None
            beyond = np.flatnonzero(asked & (wanted > room)).tolist()
            if beyond:
                return Refusal(self.places.queues[place], beyond, self._held[place], room)
        return None

    def refused(self, queue: Queue, demand: Demand, names: Sequence[str]) -> str | None:
        """Say why tasks find no room in a queue, or in one above it, beside what others hold or are guaranteed; None if they do."""
        found = self.refusal(queue, demand.amounts)
        if found is None:
            return None
        numbers = queue_limits.told(names, found.columns, found.held, demand, room=found.room)
        whose = "" if found.queue is queue else f" of {'queue ' + found.queue.name if found.queue else 'the cluster'}"
        return f"beyond the room{whose} that others leave by what they hold or are guaranteed: {numbers}"

    def room(self, queue: Queue) -> Vector | None:
        """Return the room of a queue; None if nobody is guaranteed anything, or the queue takes no part."""
        if not self.active or not self.knows(queue):
            return None
        self._catch_up()
        return np.where(self.named, self._rooms(self._branch(self._place_of[queue.row]))[-1], queue_limits.UNLIMITED)

    def knows(self, queue: Queue) -> bool:
        """Tell whether a queue takes part."""
        return queue.row in self._place_of

    def is_within(self, queue: Queue, amounts: Vector, taken: Vector) -> bool:
        """Tell whether a queue stays within its guarantee as written if it takes amounts beside what is taken.

        Only what guarantees name and is asked for counts; if nothing is, it does not stay within.
        """
        asked = self.named & (amounts > 0)
        if not self.active or not asked.any() or not self.knows(queue):
            return False
        return bool((taken + amounts <= self.written[self._place_of[queue.row]])[asked].all())

    def branch_ceilings(self, queue: Queue) -> list[tuple[str, Vector]]:
        """Return the ceilings of a queue and of those above it, by name."""
        branch = self._branch(self._place_of[queue.row]) if self.knows(queue) else []
        found = [(self.places.queues[place], place) for place in reversed(branch)]
        return [(each.name, self.ceilings[place]) for each, place in found if each is not None]

    def _branch(self, place: int) -> list[int]:
        branch = []
        while place >= 0:
            branch.append(place)
            place = self.places.parents[place]
        return branch[::-1]

    def _rooms(self, branch: Sequence[int]) -> list[Vector]:
        """Return the room of each place from the root down."""
        rooms = [np.minimum(self.ceilings[guarantees.ROOT], self.available)]
        for parent, place in itertools.pairwise(branch):
            left = rooms[-1] - (self._spent[parent] - self._taken[place])
            if place in self._scaled:
                held = self._held[parent] - self._held[place]
                own = np.maximum(left, np.minimum(rooms[-1] - held, self.written[place]))
                left = np.where(self._scaled[place], own, left)
            rooms.append(np.minimum(self.ceilings[place], left))
        return rooms


def _problems(cluster: Cluster, places: Places, stated: Matrix, found: guarantees.Counted) -> list[tuple[Queue, str]]:
    """Say of which queue a guarantee does not count in full, without numbers that change from cycle to cycle."""
    names, problems = cluster.vocabulary.names, []
    for place, queue in enumerate(places.queues):
        if queue is None or place == guarantees.ROOT:
            continue
        offered = cluster.vocabulary.columns
        large = [name for name, units in sorted(queue.guarantee.items()) if units and name not in offered]
        large += [names[column] for column in np.flatnonzero(found.absent[place]).tolist()]
        said = [
            f"the guarantee of {name} {resources.shown(name, queue.guarantee[name])} is larger than the cluster and counts as absent"
            for name in large
        ]
        for column in np.flatnonzero(found.scaled[place]).tolist():
            own = f" {resources.shown(names[column], int(stated[place, column]))}" if stated[place, column] else ""
            said.append(
                f"the guarantee of {names[column]}{own} is scaled down: with those of its siblings it is more than there is room for"
            )
        if said:
            problems.append((queue, "; ".join(said)))
    return problems
