"""A scheduler that takes its time: the deciding thread is at work while everybody else, its own I/O thread included, goes on."""

from __future__ import annotations

from pumice.cache.inputs import InputListener


class Slow(InputListener):
    """Lets time pass in the middle of cycles: for each event that is taken in, and before the binds of one cycle leave."""

    def __init__(self, loop, *, per_event=0.0, before_binds=0.0):
        self._loop = loop
        self._per_event = per_event
        self._before_binds = before_binds
        self._events = self._looks = 0
        self.cycles = []  # how long each took that took any time

    def begins(self, now, *, standby):
        self._looks = 0

    def looking(self):
        self._looks += 1
        if self._looks == 2 and self._before_binds:
            seconds, self._before_binds = self._before_binds, 0.0
            self._think(seconds)

    def looked(self, kind, event_type, found):
        self._events += 1

    def settling(self):
        events, self._events = self._events, 0
        if events and self._per_event:
            self._think(events * self._per_event)

    def _think(self, seconds):
        self.cycles.append(seconds)
        self._loop.think(seconds)


def leader(made):
    """Give the scheduler that leads."""
    return next(each for each in made.schedulers if each.alive and each.process.election.leading)


def slow_down(program, **how):
    """Let a scheduler take its time from now on; gives who knows how long it took."""
    made = program.process.cache.inputs = Slow(program.world.loop, **how)
    return made
