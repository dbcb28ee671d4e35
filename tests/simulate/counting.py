"""Backfill as the textbook has it, by counting processors: what jobs of one pod on one node are held against."""

from __future__ import annotations

import bisect
import heapq
from dataclasses import dataclass

NEVER = 10**18


@dataclass
class Job:
    """A job: when it comes, how many processors it asks for, how long it runs and how long it says it runs."""

    submit: int
    size: int
    run: int
    estimate: int


class Machine:
    """Jobs by the times at which something happens; a policy decides when it is told who has ended and what has come."""

    def __init__(self, jobs, processors):
        self.jobs, self.processors = jobs, processors
        self.starts = [None] * len(jobs)
        self._events = [(job.submit, 1, number) for number, job in enumerate(jobs)]
        heapq.heapify(self._events)

    def start(self, number, now):
        self.starts[number] = now
        heapq.heappush(self._events, (now + self.jobs[number].run, 0, number))

    def end(self, number):
        """Return when a job that runs says it ends."""
        return self.starts[number] + self.jobs[number].estimate

    def play(self):
        while self._events:
            now, told = self._events[0][0], ([], [], [])
            while self._events and self._events[0][0] == now:
                _, kind, number = heapq.heappop(self._events)
                told[kind].append(number)
            next_look = self.decide(now, told[0], told[1])
            if next_look is not None:
                heapq.heappush(self._events, (next_look, 2, -1))
        return self.starts


class Easy(Machine):
    """Room is held for the first job that waits, and others go first where that does not delay it."""

    def __init__(self, jobs, processors):
        super().__init__(jobs, processors)
        self._waiting, self._running, self._free = [], {}, processors

    def _begin(self, number, now):
        self._waiting.remove(number)
        self._free -= self.jobs[number].size
        self.start(number, now)
        self._running[number] = self.end(number)

    def decide(self, now, ended, come):
        jobs, waiting = self.jobs, self._waiting
        for number in ended:
            self._free += jobs[number].size
            del self._running[number]
        waiting.extend(come)
        while waiting and jobs[waiting[0]].size <= self._free:
            self._begin(waiting[0], now)
        if not waiting:
            return
        shadow, extra = self._shadow(jobs[waiting[0]].size)
        for number in waiting[1:]:
            is_over = now + jobs[number].estimate <= shadow
            if jobs[number].size <= self._free and (is_over or jobs[number].size <= extra):
                extra -= 0 if is_over else jobs[number].size
                self._begin(number, now)

    def _shadow(self, size):
        """Return when there is room for the first job, and how many processors are left then."""
        shadow, free = 0, self._free
        for end, number in sorted((end, number) for number, end in self._running.items()):
            if free >= size and end > shadow:
                break
            shadow, free = end, free + self.jobs[number].size
        return shadow, free - size


class Room:
    """How many processors are free from when on."""

    def __init__(self, processors):
        self._times, self._free = [-1], [processors]

    def take(self, start, stop, size):
        first, last = self._cut(start), self._cut(stop)
        for at in range(first, last):
            self._free[at] -= size

    def _cut(self, moment):
        at = bisect.bisect_right(self._times, moment) - 1
        if self._times[at] != moment:
            at += 1
            self._times.insert(at, moment)
            self._free.insert(at, self._free[at - 1])
        return at

    def first(self, since, job):
        """Return the first time from which on there is room for a job as long as it says it runs."""
        begin = since
        for at in range(bisect.bisect_right(self._times, since) - 1, len(self._times)):
            if self._times[at] >= begin + job.estimate:
                break
            if self._free[at] < job.size:
                begin = self._times[at + 1]
        return begin


class Conservative(Machine):
    """Room is held for every job that waits; an early end brings them forward, one by one in order, each with the others in place. Who fits now, its own room aside, starts."""

    def __init__(self, jobs, processors):
        super().__init__(jobs, processors)
        self._room, self._planned = Room(processors), {}

    def _lift(self, number):
        if (before := self._planned.get(number)) is not None:
            self._room.take(before, before + self.jobs[number].estimate, -self.jobs[number].size)

    def _put(self, number, moment):
        self._planned[number] = moment
        self._room.take(moment, moment + self.jobs[number].estimate, self.jobs[number].size)

    def _plan(self, number, now):
        """Plan a job anew, no later than it was."""
        self._lift(number)
        self._put(number, min(self._room.first(now, self.jobs[number]), self._planned.get(number, NEVER)))

    def decide(self, now, ended, come):
        early = [number for number in ended if self.end(number) > now]
        for number in early:
            self._room.take(now, self.end(number), -self.jobs[number].size)
        gained = bool(early)
        for number in [*self._planned, *come]:
            for each in list(self._planned) if gained else ():
                self._plan(each, now)
            gained = self._try(number, now)
        return min(self._planned.values(), default=None)

    def _try(self, number, now):
        """Start a job if it fits; tells whether it leaves room that was held for it, which is looked at before the next one's turn."""
        before = self._planned.get(number)
        self._plan(number, now)
        if self._planned[number] == now:
            del self._planned[number]
            self.start(number, now)
            return before not in {now, None}
        if before is not None:
            self._lift(number)
            self._put(number, before)
        return False
