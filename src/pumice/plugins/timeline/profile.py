"""What every node has left from now on: a step function for each node, as columns.

A *stretch* is a time during which the room of a node does not change. Stretches lie one after the other, node by node, in time order; the last one of a node has no end.
Room taken for ever is in no stretch, room that a pod gives back at its planned end is in those after it, and what is reserved is taken off those it is reserved for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import numpy.typing as npt

    from pumice.model.nodes import Rows
    from pumice.model.resources import Matrix, Vector

    Mask = npt.NDArray[np.bool_]
    Window = tuple[int, Vector, Vector]

NEVER = 2**62
BEGINNING = -NEVER
PLENTY = np.iinfo(np.int64).max
LEVELS = 16  # of more numbers of pods that a node may hold, times are looked at one by one


class Need(msgspec.Struct, frozen=True, eq=False):
    """So many equal pods, what each needs in the columns that count, and the nodes that may take one; None for all."""

    columns: Rows
    amounts: Vector
    count: int
    may: Mask | None = None


class Profile:
    """The room of all nodes over time; `version` grows with every change."""

    def __init__(self) -> None:
        self.version = 0
        self.nodes = 0
        self._starts: Vector = np.zeros(0, dtype=np.int64)
        self._stops: Vector = np.zeros(0, dtype=np.int64)
        self._rows: Rows = np.zeros(0, dtype=np.int64)
        self._room: Matrix = np.zeros((0, 0), dtype=np.int64)
        self._firsts: Rows = np.zeros(0, dtype=np.int64)
        self._by_time: tuple[int, tuple[Rows, Mask, Mask]] | None = None

    # -- making ------------------------------------------------------------------------------------------------

    def build(self, room: Matrix, ends: Mapping[int, Iterable[tuple[int, Vector]]]) -> None:
        """Begin anew: the room that nodes have now, and what they get back when, by row."""
        self.nodes = len(room)
        pieces = [_piece(room[row], ends.get(row, ())) for row in range(self.nodes)]
        self._put(list(range(self.nodes)), pieces)

    def rebuild(
        self, row: int, room: Vector, ends: Iterable[tuple[int, Vector]], beside: Profile | None = None
    ) -> None:
        """Begin anew with one node: what it has now, what it gets back, or has to give if that is negative, when, and what another profile has there."""
        starts, matrix = _piece(room, ends)
        if beside is not None:
            starts, matrix = _added(starts, matrix, *beside.stretches(row))
        begin, end = self._bounds(row)
        self._splice(begin, end, row, starts, matrix)

    def beside(self, other: Profile) -> Profile:
        """Return the sum of this profile and another one of the same nodes."""
        if not self.nodes:
            return Profile()
        rows, starts = np.concatenate((self._rows, other._rows)), np.concatenate((self._starts, other._starts))
        order = np.lexsort((starts, rows))
        rows, starts, ours = rows[order], starts[order], order < len(self._rows)
        last = np.append((rows[1:] != rows[:-1]) | (starts[1:] != starts[:-1]), True)
        found = Profile()
        found.nodes = self.nodes
        found._rows, found._starts = rows[last], starts[last]
        counted = np.cumsum(ours)[last]
        found._room = self._room[counted - 1] + other._room[np.flatnonzero(last) - counted]
        found._index()
        return found

    def stretches(self, row: int) -> tuple[Vector, Matrix]:
        """Return when the stretches of a node begin, and its room in each."""
        begin, end = self._bounds(row)
        return self._starts[begin:end], self._room[begin:end]

    def compact(self) -> None:
        """Make one of stretches after each other that have the same room."""
        keep = np.append(True, (self._room[1:] != self._room[:-1]).any(axis=1))[: len(self._rows)]
        keep[self._firsts] = True
        self._starts, self._rows, self._room = self._starts[keep], self._rows[keep], self._room[keep]
        self._index()

    def __len__(self) -> int:
        return len(self._starts)

    def _put(self, rows: Sequence[int], pieces: Sequence[tuple[Vector, Matrix]]) -> None:
        lengths = [len(starts) for starts, _ in pieces]
        self._starts = np.concatenate([starts for starts, _ in pieces] or [self._starts[:0]])
        self._room = np.concatenate([matrix for _, matrix in pieces]) if pieces else self._room[:0]
        self._rows = np.repeat(np.array(rows, dtype=np.int64), lengths)
        self._index()

    def _splice(self, begin: int, end: int, row: int, starts: Vector, matrix: Matrix) -> None:
        self._starts = np.concatenate((self._starts[:begin], starts, self._starts[end:]))
        self._room = np.concatenate((self._room[:begin], matrix, self._room[end:]))
        self._rows = np.concatenate((self._rows[:begin], np.full(len(starts), row), self._rows[end:]))
        self._index()

    def _index(self) -> None:
        self.version += 1
        self._firsts = np.searchsorted(self._rows, np.arange(self.nodes))
        self._stops = np.append(self._starts[1:], NEVER)[: len(self._starts)]
        self._stops[self._firsts[1:] - 1] = NEVER

    def _bounds(self, row: int) -> tuple[int, int]:
        begin = int(self._firsts[row])
        return begin, int(self._firsts[row + 1]) if row + 1 < self.nodes else len(self._starts)

    def change(self, rows: Sequence[int], amounts: Matrix, start: int, stop: int) -> None:
        """Give back amounts on nodes, or take them if they are negative, from one time to another."""
        for row, amount in zip(rows, amounts, strict=True):
            self._split(row, start)
            self._split(row, stop)
            begin, end = self._bounds(row)
            first = begin + int(np.searchsorted(self._starts[begin:end], start))
            last = begin + int(np.searchsorted(self._starts[begin:end], stop))
            self._room[first:last] += amount
        self.version += 1

    def take(self, rows: Rows, amounts: Matrix, starts: Vector, stops: Vector) -> None:
        """Take many amounts at once, each on a node from one time to another."""
        if not len(rows):
            return
        ends = stops < NEVER
        before, count = len(self._starts), len(rows)
        all_rows = np.concatenate((self._rows, rows, rows[ends]))
        all_times = np.concatenate((self._starts, starts, stops[ends]))
        order = np.lexsort((all_times, all_rows))
        all_rows, all_times = all_rows[order], all_times[order]
        new = np.append(True, (all_rows[1:] != all_rows[:-1]) | (all_times[1:] != all_times[:-1]))
        # Of equal times those of stretches that were there come first, so each new one is a part of the last of these.
        room = self._room[np.cumsum(order < before)[new] - 1]
        places = np.empty(len(order), dtype=np.int64)
        places[order] = np.cumsum(new) - 1
        self._rows, self._starts = all_rows[new], all_times[new]
        self._index()
        lasts = np.append(self._firsts[1:], len(self._rows))[rows]
        lasts[ends] = places[before + count :]
        change = np.zeros((len(room) + 1, room.shape[1]), dtype=np.int64)
        np.subtract.at(change, places[before : before + count], amounts)
        np.add.at(change, lasts, amounts)
        self._room = room + np.cumsum(change, axis=0)[:-1]

    def _split(self, row: int, moment: int) -> None:
        if moment >= NEVER:
            return
        begin, end = self._bounds(row)
        position = begin + int(np.searchsorted(self._starts[begin:end], moment, side="right"))
        if position > begin and self._starts[position - 1] == moment:
            return
        self._starts, self._stops, self._rows = (
            np.concatenate((each[:position], each[position - 1 :])) for each in (self._starts, self._stops, self._rows)
        )
        self._room = np.concatenate((self._room[:position], self._room[position - 1 :]))
        self._starts[position] = self._stops[position - 1] = moment
        self._firsts[row + 1 :] += 1
        self._by_time = None

    # -- asking ------------------------------------------------------------------------------------------------

    def least(self, start: int, stop: int) -> Matrix:
        """Return the least room that each node has between two times."""
        if not self.nodes:
            return self._room
        within = np.flatnonzero((self._starts < stop) & (self._stops > start))
        firsts = np.searchsorted(self._rows[within], np.arange(self.nodes))
        least: Matrix = np.minimum.reduceat(self._room[within], firsts)
        return least

    def at(self, moment: int) -> Matrix:
        """Return the room of each node at a time."""
        there: Matrix = self._room[(self._starts <= moment) & (self._stops > moment)]
        return there

    def free_since(self, moment: int) -> Vector:
        """Return since when each node has had the room that it has at a time."""
        there: Vector = self._starts[(self._starts <= moment) & (self._stops > moment)]
        return there

    def is_overbooked(self, since: int) -> bool:
        """Tell whether some node is short of anything at some time from one on."""
        return bool((self._room[self._stops > since] < 0).any())

    def covers(self, rows: Sequence[int], start: int, stop: int, columns: Rows) -> bool:
        """Tell whether nothing is promised twice on some nodes between two times."""
        for row in rows:
            begin, end = self._bounds(row)
            within = (self._starts[begin:end] < stop) & (self._stops[begin:end] > start)
            if (self._room[begin:end][within][:, columns] < 0).any():
                return False
        return True

    def candidates(self, needs: Sequence[Need], since: int, run: int) -> Iterable[int]:
        """Give the times, from one on, at which there is enough room for pods of each kind, by themselves, as long as they run; the first one first."""
        if not self.nodes:
            return
        holds = [self._holds(need) for need in needs]
        levels = [np.unique(held[held > 0]) for held in holds]
        if any(len(each) > LEVELS for each in levels):
            moments = [since, *self._moments(needs, holds, since)]
            yield from self._lasting(needs, holds, moments, run)
            return
        windows = [self._windows(held, each.tolist(), run) for held, each in zip(holds, levels, strict=True)]
        if (first := _first(needs, windows, since)) is not None:
            yield first
            yield from self._lasting(needs, holds, self._moments(needs, holds, first), run)

    def _windows(self, held: Vector, levels: Sequence[int], run: int) -> list[Window]:
        """Return the spans of time in which nodes hold at least so many pods for as long as these run: how many more that is than the level below, the first and the last time at which they could start."""
        found, before = [], 0
        for level in levels:
            good = held >= level
            opens, closes = good.copy(), good.copy()
            opens[1:] &= ~good[:-1]
            opens[self._firsts] = good[self._firsts]
            closes[:-1] &= ~good[1:]
            closes[self._firsts[1:] - 1] = good[self._firsts[1:] - 1]
            begins, stops = self._starts[opens], self._stops[closes]
            lasts = np.where(stops >= NEVER, NEVER, stops - run)
            long = lasts >= begins
            found.append((level - before, begins[long], lasts[long]))
            before = level
        return found

    def _lasting(
        self, needs: Sequence[Need], holds: Sequence[Vector], moments: Iterable[int], run: int
    ) -> Iterable[int]:
        """Give those of some times at which there is enough room as long as pods run."""
        for moment in moments:
            within = (self._starts < min(moment + run, NEVER)) & (self._stops > moment)
            if all(self._count(held, within) >= need.count for need, held in zip(needs, holds, strict=True)):
                yield moment

    def _moments(self, needs: Sequence[Need], holds: Sequence[Vector], since: int) -> list[int]:
        """Return the times after one at which there is enough room for a moment, where that has just become more."""
        order, last, grown = self._times()
        times = self._starts[order]
        enough: Mask = np.ones(len(times), dtype=np.bool_)
        for need, held in zip(needs, holds, strict=True):
            more = held.copy()
            more[1:] -= held[:-1]
            more[self._firsts] = held[self._firsts]
            enough &= np.cumsum(more[order]) >= need.count
        # Of equal times only the last one counts everything.
        times, enough = times[last], enough[last]
        later: list[int] = times[(times > since) & enough & grown].tolist()
        return later

    def _times(self) -> tuple[Rows, Mask, Mask]:
        """Return the stretches by the times at which they begin, which of them is the last that begins at its time, and whether any node has more room from that time on."""
        if self._by_time is None or self._by_time[0] != self.version:
            order = np.argsort(self._starts, kind="stable")
            times = self._starts[order]
            last: Mask = np.append(times[1:] != times[:-1], True)
            grows = np.zeros(len(times), dtype=np.bool_)
            grows[1:] = (self._room[1:] > self._room[:-1]).any(axis=1)
            grows[self._firsts] = False
            grown = np.zeros(int(last.sum()), dtype=np.bool_)
            np.logical_or.at(grown, np.cumsum(np.append(0, last[:-1])), grows[order])
            self._by_time = (self.version, (order, last, grown))
        return self._by_time[1]

    def _holds(self, need: Need) -> Vector:
        """Return how many such pods a node holds in each stretch, no more than are looked for."""
        held: Vector = np.full(len(self._room), need.count, dtype=np.int64)
        for column, amount in zip(need.columns.tolist(), need.amounts.tolist(), strict=True):
            room = self._room[:, column]
            # As for any pod: where there is less than nothing of what counts, there is room for nobody.
            if need.count == 1 or amount <= 0:
                held[room < max(amount, 0)] = 0
            else:
                np.minimum(held, room // amount, out=held)
        np.maximum(held, 0, out=held)
        if need.may is not None:
            held[~need.may[self._rows]] = 0
        return held

    def _count(self, held: Vector, within: Mask) -> int:
        return int(np.minimum.reduceat(np.where(within, held, PLENTY), self._firsts).sum()) if len(held) else 0


def _first(needs: Sequence[Need], windows: Sequence[Sequence[Window]], since: int) -> int | None:
    """Return the first time, from one on, at which there is enough room for pods of each kind: that, or one at which some node begins to have room for long enough."""
    begins = [begun for spans in windows for _, begun, _ in spans]
    times = np.unique(np.concatenate([np.array([since]), *(each[each > since] for each in begins)]))
    enough = np.ones(len(times), dtype=np.bool_)
    for need, spans in zip(needs, windows, strict=True):
        held = np.zeros(len(times), dtype=np.int64)
        for more, begun, last in spans:
            there = np.searchsorted(np.sort(begun), times, side="right")
            held += more * (there - np.searchsorted(np.sort(last), times, side="left"))
        enough &= held >= need.count
    at = int(enough.argmax())
    return int(times[at]) if enough[at] else None


def _piece(room: Vector, ends: Iterable[tuple[int, Vector]]) -> tuple[Vector, Matrix]:
    """Make the stretches of one node."""
    ordered = sorted(ends, key=lambda each: each[0])
    if not ordered:
        return np.array([BEGINNING]), room[None, :].copy()
    times = np.array([BEGINNING, *(moment for moment, _ in ordered)])
    matrix = np.cumsum(np.array([room, *(amount for _, amount in ordered)], dtype=np.int64), axis=0)
    last = np.append(times[1:] != times[:-1], True)
    return times[last], matrix[last]


def _added(starts: Vector, room: Matrix, others: Vector, more: Matrix) -> tuple[Vector, Matrix]:
    """Add up the stretches of one node in two profiles; both have one that has always been."""
    times = np.unique(np.concatenate((starts, others)))
    at, along = (np.searchsorted(each, times, side="right") - 1 for each in (starts, others))
    return times, room[at] + more[along]
