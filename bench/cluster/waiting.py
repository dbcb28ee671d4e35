"""What is written about pods that wait while others are bound: nothing about them has changed, so nothing should be."""

from __future__ import annotations

import re
import time
from collections import Counter
from typing import TYPE_CHECKING

from bench.cases import Figure
from bench.cluster import load, rig
from pumice.api import kinds
from pumice.cache.effects import Answerable, Bind, Effect, Note, Patch, Work

if TYPE_CHECKING:
    from collections.abc import Callable

    from pumice.kube.access.connection import Connection

QUEUES, GROUPS, SIZE = 10, 1000, 10
BINDS, SECONDS = 20, 60  # binds in a second, and for how long
MOST = 0.1


class _Counting(rig.Rig):
    """Counts what is written about groups of which no pod was bound, and about their pods; queues are counted apart."""

    def __init__(self, connection: Connection) -> None:
        super().__init__(connection)
        self.statuses: Counter[str] = Counter()  # by group
        self.events: Counter[str] = Counter()
        self.queues = 0
        self.placed: dict[str, None] = {}  # groups, in the order in which they were bound

    def sent(self, effect: Effect, /) -> None:
        """Count events, some of which become one; remember who is bound."""
        if isinstance(effect, Note):
            self.events[_gang(effect.name)] += 1
        elif isinstance(effect, Bind):
            self.placed[_gang(effect.name)] = None

    def performed(self, effect: Answerable, work: Work, seconds: float, *, failed: bool) -> None:
        """Count statuses."""
        super().performed(effect, work, seconds, failed=failed)
        if isinstance(effect, Patch):
            self.queues += effect.kind.name == kinds.QUEUE.name
            self.statuses[_gang(effect.name)] += effect.kind.name != kinds.QUEUE.name

    def about_others(self, counted: Counter[str]) -> int:
        """Return how much was written about groups that were not bound."""
        return sum(count for gang, count in counted.items() if gang not in self.placed and gang.startswith("gang-"))


def measure(connection: Connection, tell: Callable[[str], None]) -> list[Figure]:
    """Let gangs in ten full queues be bound one after the other, and count what is written about the others."""
    with _Counting(connection) as made:
        made.run(load.clear(made.client))
        made.run(_fill(made))
        tell(f"{GROUPS * SIZE:,} pods in {GROUPS:,} groups are stored")
        made.catch_up(GROUPS * SIZE)
        _settle(made)
        tell(
            f"{sum(made.statuses.values()):,} status writes and {sum(made.events.values()):,} events until all is said"
        )
        made.statuses.clear()
        made.events.clear()
        made.queues, already = 0, len(made.placed)
        started = time.monotonic()
        bound = _replace(made, started)
        took = time.monotonic() - started
        waiting = GROUPS * SIZE - len(made.placed) * SIZE
        statuses, events = made.about_others(made.statuses), made.about_others(made.events)
        binds = (len(made.placed) - already) * SIZE
        tell(
            f"{statuses} status writes and {events} events about {waiting:,} pods that waited, {binds} binds in {took:.0f} s"
        )
        made.run(load.clear(made.client))
    note = (
        f"{waiting:,} pods wait throughout, {binds} binds in {took:.0f} s ({bound} gangs gone); beside it {sum(made.statuses.values()) - statuses}"
        f" status writes and {sum(made.events.values()) - events} events about gangs that were bound, {made.queues} writes to {QUEUES} queues"
    )
    per = took * waiting / 1000
    return [
        Figure(
            name=f"{what} per second and 1,000 waiting pods, {BINDS} binds/s",
            value=count / per,
            unit="",
            target=f"<= {MOST}",
            holds=count / per <= MOST and binds >= 0.8 * BINDS * took,
            note=note if what == "status writes" else "",
        )
        for what, count in (("status writes", statuses), ("events", events))
    ]


def _gang(name: str) -> str:
    """Name the group of a pod, or the group itself."""
    return re.sub(r"(?<=gang-\d{4})-\d+$", "", name)


async def _fill(made: rig.Rig) -> None:
    """Store queues that hold two gangs each, and the gangs, each queue's in turn."""

    async def create(number: int) -> None:
        gang = f"gang-{number:04}"
        await made.client.create(kinds.POD_GROUP, load.group(gang, SIZE, queue=f"full-{number % QUEUES}"))
        for index in range(SIZE):
            await made.client.create(kinds.POD, load.pod(f"{gang}-{index}", gang))

    for number in range(QUEUES):
        await made.client.create(kinds.QUEUE, load.queue(f"full-{number}", cpu=2 * SIZE))
    await load.each(range(GROUPS), create)


def _settle(made: rig.Rig) -> None:
    """Run cycles until the queues are full and everything is said and sent."""
    deadline = time.monotonic() + 300
    while time.monotonic() < deadline:
        made.scheduler.cycle()
        time.sleep(0.5)
        counts = made.world.counts
        busy = counts.waiting or counts.in_flight or counts.events_waiting
        if made.cache.record.skipped and not busy:
            return
    raise RuntimeError("not everything was said and sent in 300 s")


def _replace(made: _Counting, started: float) -> int:
    """Once a second remove as many gangs as are to be bound, oldest first, and run the cycles that follow; returns how many went."""
    gone = 0
    while time.monotonic() - started < SECONDS:
        due = int((time.monotonic() - started + 1) * BINDS / SIZE)
        names = list(made.placed)[gone : min(due, len(made.placed))]
        made.run(load.each(names, lambda gang: _remove(made, gang)))
        gone += len(names)
        for _ in range(4):  # faster than once a second, as after every event
            made.scheduler.cycle()
            time.sleep(0.25)
    return gone


async def _remove(made: rig.Rig, gang: str) -> None:
    for index in range(SIZE):
        await made.client.delete(kinds.POD, load.NAMESPACE, f"{gang}-{index}")
    await made.client.delete(kinds.POD_GROUP, load.NAMESPACE, gang)
