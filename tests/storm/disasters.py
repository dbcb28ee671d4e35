"""What befalls programs, the API server and its disk, clocks and tokens."""

from __future__ import annotations

from tests.storm import loop as loops
from tests.storm.disk import FSYNC
from tests.storm.program import Scheduler


class Disasters:
    """Strike at moments that the seed draws."""

    def __init__(self, made):
        self._world = made
        self._loop = made.loop
        self._outside = loops.context_of("world")
        self._over = False

    def plan(self, seed, happens, since, until, times):
        """Draw what is to happen, and when; what does not happen changes nothing of the rest."""
        kinds = self.kinds()
        for number in range(loops.chance(seed, "disasters").randint(times, 8 * times)):
            draw = loops.chance(seed, "disaster", number)
            if happens(f"disaster {number}"):
                self._at(draw.uniform(since, until), draw.choice(kinds), draw)
        draw = loops.chance(seed, "rival")
        if draw.random() < 0.2 and happens("rival"):
            self._at(draw.uniform(since, until), self.rival, draw)

    def kinds(self, *, clocks=True):
        """Give what may strike."""
        found = [self.kill, self.kill, self.pause, self.cut_off, self.outage, self.compact]
        found += [self.shift_clock, self.shift_clock, self.drift] if clocks else []
        found += [self.change_token, self.rest_kubelets, self.change_certificate, self.expire]
        if self._world.api.disk:
            found += [self.crash, self.crash, self.fill_disk, self.slow_disk]
        return found

    def _at(self, moment, callback, *args):
        self._loop.at(moment, callback, *args, context=self._outside)

    def _later(self, seconds, callback, *args):
        self._at(self._loop.now + seconds, callback, *args)

    def _strike(self, name, *words):
        self._world.weather.count(name)
        self._world.trace(name, *words)

    def _program(self, rng):
        return rng.choice([*self._world.programs, *self._world.rivals])

    def restart(self, rng):
        """Start again what has ended, or not yet."""
        for program in [*self._world.programs, *self._world.rivals]:
            if not program.alive and rng.random() < 0.5:  # whoever starts it again takes a while
                program.start()

    # -- programs ----------------------------------------------------------------------------------------------

    def kill(self, rng):
        program = self._program(rng)
        if program.alive:
            self._strike("killed", program.run)
            program.kill()

    def pause(self, rng):
        program = self._program(rng)
        if program.alive:
            self._strike("paused", program.run)
            self._loop.pause(program.run)
            self._later(rng.choice((1, 5, 20, 45)), self._loop.go_on, program.run)

    def cut_off(self, rng):
        program, away = self._program(rng), self._world.weather.cut_off
        if program.alive:
            away[program.run] = rng.choice(("up", "down", "updown"))
            self._strike("cut off", program.run, away[program.run])
            self._later(rng.choice((2, 8, 30)), away.pop, program.run, None)

    def shift_clock(self, rng):
        self._strike("clock")
        self._program(rng).ahead += rng.choice((-3600, -3600, -5, 5, 3600)) * rng.random()

    def drift(self, rng):
        program, drift = self._program(rng), rng.choice((-0.1, -0.001, 0.001, 0.1))
        self._strike("drift", program.name, drift)
        program.ahead += self._loop.now * (program.drift - drift)
        program.drift = drift

    def rival(self, rng):
        """Let somebody install the scheduler a second time, for the same pods."""
        self._strike("rival")
        made = Scheduler(self._world, "rival-a", "rival")
        self._world.rivals.append(made)
        made.start()
        self._later(rng.uniform(5, 40), self._uninstall)

    def _uninstall(self):
        for program in self._world.rivals:
            if program.alive:
                program.kill()
        self._world.rivals = []

    # -- the API server ----------------------------------------------------------------------------------------

    def outage(self, rng):
        self._strike("outage")
        self._world.weather.down = True
        self._world.host.cut_all()
        self._later(rng.uniform(0.2, 12), self._listen)

    def _listen(self):
        if not self._world.api.crashed:
            self._world.weather.down = False

    def compact(self, _):
        self._strike("compacted")
        self._world.store.compact(self._world.store.resource_version)

    def crash(self, rng):
        api = self._world.api
        if not api.crashed:
            self._world.weather.down = True
            torn = api.crash(rng)
            self._strike("crash with a torn journal" if torn else "crash")
            self._later(rng.uniform(0.5, 8), self._boot)

    def _boot(self):
        self._world.api.boot()
        self._world.api.start()
        self._world.weather.down = False

    def fill_disk(self, rng):
        self._strike("disk full")
        self._world.api.disk.full = True
        self._later(rng.uniform(0.5, 15), self._clear_disk)

    def slow_disk(self, rng):
        self._world.api.disk.fsync = rng.choice((0.05, 0.5, 2.0))
        self._strike("slow disk", self._world.api.disk.fsync)
        self._later(rng.uniform(1, 15), self._clear_disk)

    def _clear_disk(self):
        if self._world.api.disk:
            self._world.api.disk.full, self._world.api.disk.fsync = False, FSYNC

    def change_token(self, rng):
        """Let tokens expire; what programs show is changed before that, or after."""
        token = f"storm-{rng.randrange(1 << 30)}"
        self._strike("token")
        lead = rng.uniform(-8, 3)
        self._later(max(0.0, lead), self._unless_over, lambda: self._world.api.accept(token))
        self._later(max(0.0, -lead), self._unless_over, lambda: setattr(self._world, "token", token))

    def _unless_over(self, change):
        if not self._over:
            change()

    def change_certificate(self, rng):
        """Let the certificates of clients expire; what programs show is changed before that, or after."""
        made, certificate = self._world, f"certificate-{rng.randrange(1 << 30)}".encode()
        self._strike("client certificate")
        lead = rng.uniform(-8, 3)
        self._later(max(0.0, lead), self._unless_over, lambda: setattr(made.host, "accepts", certificate))
        self._later(max(0.0, -lead), self._unless_over, lambda: setattr(made, "certificate", certificate))

    def expire(self, rng):
        """Let the API server's own certificate expire; nobody opens a connection to it until it is renewed."""
        self._strike("serving certificate")
        self._world.weather.expired = True
        self._later(rng.uniform(0.5, 20), setattr, self._world.weather, "expired", False)

    def rest_kubelets(self, rng):
        self._strike("kubelets late")
        self._world.api.kubelets_rest_until = self._loop.now + rng.uniform(1, 12)

    # -- the end -----------------------------------------------------------------------------------------------

    def end(self, *, over=True):
        """Let everything be as it should from now on; what was begun and is not `over` may still have its consequences."""
        made = self._world
        made.weather.rough = 0.0
        made.oracle.economy.fair_since = self._loop.now
        made.weather.cut_off.clear()
        self._clear_disk()
        self._listen()
        self._uninstall()
        made.token, made.certificate, self._over = made.api.token, made.host.accepts, over
        made.weather.expired = False
        for program in made.programs:
            if program.alive:
                self._loop.go_on(program.run)
