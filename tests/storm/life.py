"""One life: a small cluster, people who come and go, and a while in which everything goes wrong; then fair weather, and a look at what is left."""

from __future__ import annotations

from tests.storm import loop as loops
from tests.storm import objects, scenarios, world
from tests.storm.disasters import Disasters
from tests.storm.people import People

START = 4.0  # seconds until everybody leads or stands by
STORM = 46.0  # seconds of bad weather
FAIR = 95.0  # seconds of fair weather after it: longer than a lease lasts and anybody waits before trying again, and than a reason waits that changes too often: a minute
SILENT = 150.0  # seconds of it where watches stay silent: longer than that is borne
QUIET = 20.0  # seconds at the end in which nobody writes
LONGER = 30  # seconds that are waited at the most until nothing happens to pods


def begun():
    """Make a world in which everybody runs, and leads or stands by: every life begins with one, which depends on no seed."""
    made = world.World("start")
    for each in objects.everything():
        made.create(each)
    made.start()
    made.run_until(START)
    return made


class Life:
    """Lives a seed, with a folder for disks and as many seconds of `storm`. What is in `without` does not happen: acts of people and disasters by their names, `fates` for everything that happens to requests."""

    def __init__(self, seed, folder, without=(), made=None, *, storm=STORM):
        self.seed = seed
        self._over = START + storm  # when the weather turns fair
        self._times = max(1, round(storm / STORM))  # as many acts and disasters as in one of usual length
        self.without = frozenset(without)
        self.happened = []  # names of acts and disasters
        self.given = []  # nodes
        self.world = made or begun()
        self.world.go_on_with(seed)
        self.rng = loops.chance(seed, "life")
        self._outside = loops.context_of("world")
        self._silent = self.rng.random() < 0.2  # watches that are silent stay so when the weather is fair again
        self.world.oracle.silent = self._silent
        self._people = People(seed, self.world, self._happens)
        self._disasters = Disasters(self.world)
        kept, asked, policy = self.rng.random() < 0.4, self.rng.random() < 0.3, self.rng.choice(("Fail", "Ignore"))
        if kept and self._happens("disk"):
            self.world.api.keep(folder)
        if asked and self._happens("webhooks"):
            self.world.ask_webhooks(policy)

    def live(self):
        """Let everything happen, and give what was broken."""
        made, rng = self.world, self.rng
        for number in range(rng.randint(2, 4)):
            self._people.nodes.append(f"n{number}")
            self.given.append(objects.node(f"n{number}", rng.choice((4, 8)), *objects.small_or_not(rng)))
            if rng.random() < 0.7:
                self.given += self._people.devices.offer(f"n{number}", rng)
        for each in self.given:
            made.create(each)
        made.loop.start("user", self._people.live(START, self._over, self._times))
        rough = rng.choice((0.05, 0.1, 0.2, 0.3))
        made.weather.rough = 0.0 if "fates" in self.without else rough
        self._disasters.plan(self.seed, self._happens, START, self._over, self._times)
        self._let_pass(self._over)
        self._disasters.end()
        if not self._silent:
            made.host.end_silence()
        end = self._over + (SILENT if self._silent else FAIR)
        self._let_pass(end)
        for _ in range(LONGER):
            if made.oracle.has_just_seen_something():
                end += 1
                self._let_pass(end)
        made.oracle.judge(end - QUIET)
        return made.oracle.broken

    def as_scenario(self):
        """Give the first finding as a scenario, None if that cannot be."""
        entries = self.world.oracle.diary.entries
        said = (scenarios.written(self.seed, *each, self.given, entries) for each in self.world.oracle.broken)
        return next((text for text in said if text), None)

    def _let_pass(self, moment):
        """Let time pass, and now and then somebody start what has ended."""
        while self.world.loop.now < moment:
            self.world.run_until(min(moment, self.world.loop.now + 2.0))
            self._disasters.restart(self.rng)

    def _happens(self, name):
        """Take note that something would happen, and tell whether it does."""
        self.happened.append(name)
        return name not in self.without
