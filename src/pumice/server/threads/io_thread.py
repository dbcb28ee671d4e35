"""The I/O thread: one event loop with everything that talks to somebody.

```
  election ── lease ours, nobody else's pods, or not for now ──▶ informers ── all listed, and caught up with the lease ──▶ Begin, companions
  world, configuration, servers: from the start
```

Lists that begin after the lease was taken are new enough by themselves, so the first attempt to get it comes before them. If one of these parts ends, the
process does: there is nothing it could do without it.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from typing import TYPE_CHECKING, Final, Protocol

from pumice.kube import election, rivals
from pumice.server.health import overdue
from pumice.server.logs import watch_log
from pumice.server.threads import gathering, leading, mailbox, watchdog

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Sequence
    from typing import Any

    from pumice.kube.calls.client import Client
    from pumice.kube.election import Election
    from pumice.kube.watches.informers import Informers
    from pumice.kube.writes.world import KubeWorld
    from pumice.server.logs.logs import Log
    from pumice.server.surroundings import Surroundings
    from pumice.server.threads.mailbox import Mailbox

LAST_ANSWERS: Final = 1.0
LOOK: Final = 0.02


class Companions(Protocol):
    """The companion controller."""

    async def run(self) -> None:
        """Write what is wanted, until cancelled."""


class Parts:
    """What runs on the loop. `chores` run from the start: servers, the configuration. Without an election `alone` ends once nobody else serves our pods."""

    def __init__(
        self,
        clients: Sequence[Client],
        informers: Informers,
        world: KubeWorld,
        companions: Companions,
        *,
        election: Election | None,
        prepare: Callable[[], Awaitable[None]],
        settled: Callable[[Any], None],
        alone: Callable[[], Awaitable[None]],
        chores: Sequence[Callable[[], Coroutine[Any, Any, None]]] = (),
    ) -> None:
        self.clients = clients
        self.informers = informers
        self.world = world
        self.companions = companions
        self.election = election
        self.prepare = prepare
        self.settled = settled
        self.alone = alone
        self.chores = chores


class IoThread(threading.Thread):
    """Runs the parts until it is stopped or one of them fails, which the deciding thread is told."""

    def __init__(self, parts: Parts, box: Mailbox, log: Log, around: Surroundings) -> None:
        super().__init__(name="io", daemon=True)
        self._parts = parts
        self._box = box
        self._log = log
        self._around = around
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopping: asyncio.Event | None = None
        self._patience = 0.0
        self.part = overdue.Part("io", "a turn of the I/O loop")
        self._ready = threading.Event()

    def run(self) -> None:
        """Run the loop."""
        try:
            with asyncio.Runner(loop_factory=lambda: gathering.loop(self._parts.world.gathering_pause)) as runner:
                runner.run(self.live())
        finally:
            self._ready.set()

    async def live(self) -> None:
        """Run the parts on the running loop; what ends them is told, and not raised."""
        self._loop, self._stopping = asyncio.get_running_loop(), asyncio.Event()
        self._ready.set()
        try:
            await self._live(self._stopping)
        except election.LostLeaseError as error:
            self._box.post(mailbox.Fatal(f"the lease is lost: {error}"))
        except (StartError, rivals.ServedError) as error:
            self._box.post(mailbox.Fatal(str(error)))
        except BaseException as error:  # noqa: BLE001  whatever it is, the deciding thread must not go on alone
            self._log.broke("the I/O thread broke down", error)
            self._box.post(mailbox.Fatal(f"the I/O thread broke down: {type(error).__name__}: {error}"))

    def stop(self, patience: float) -> None:
        """End in good order: writes that were handed over get so many seconds, then the lease is released. Returns when it is done."""
        self._ready.wait(patience + 5.0)
        if self.end(patience):
            self.join(patience + LAST_ANSWERS + election.RELEASE_PATIENCE + 2.0)

    def end(self, patience: float) -> bool:
        """Tell the loop to end in good order, and say whether there is one."""
        self._patience = patience
        if self._loop is None or self._stopping is None:
            return False
        try:
            self._loop.call_soon_threadsafe(self._stopping.set)
        except RuntimeError:
            return False  # it has ended by itself
        return True

    # -- the loop ----------------------------------------------------------------------------------------------

    async def _live(self, told: asyncio.Event) -> None:
        async with contextlib.AsyncExitStack() as open_until_the_end:
            for client in self._parts.clients:
                await open_until_the_end.enter_async_context(client)
            works = self._start()
            stopping = asyncio.create_task(told.wait())
            try:
                done, _ = await asyncio.wait([*works, stopping], return_when=asyncio.FIRST_COMPLETED)
                if stopping in done:
                    await self._finish()
                else:
                    _raise_first([work for work in works if work in done])
            finally:
                for work in (*works, stopping):
                    work.cancel()
                await asyncio.gather(*works, stopping, return_exceptions=True)
                if self._parts.election is not None:
                    await self._parts.election.release()

    def _start(self) -> list[asyncio.Task[None]]:
        parts = self._parts
        term = leading.Term(self._log)
        works: list[tuple[str, Awaitable[None]]] = [
            *((getattr(chore, "__qualname__", "chore"), chore()) for chore in parts.chores),
            ("beating", watchdog.beat(self.part, self._around.seconds)),
            ("writes", parts.world.run(parts.settled)),
            ("beginning", self._begin(term)),
        ]
        if parts.election is not None:
            works.append(("election", parts.election.run(term.lead, term.stand_by)))
        return [asyncio.ensure_future(_never_ending(name, work)) for name, work in works]

    async def _begin(self, term: leading.Term) -> None:
        """Follow the cluster; once everything is listed, at least as new as the lease, let cycles begin."""
        parts = self._parts
        if parts.election is None:
            await parts.alone()
            term.lead("")
        await term.head_start()
        await parts.prepare()
        watching = asyncio.create_task(parts.informers.run())
        looking = asyncio.create_task(watch_log.keep(parts.informers, self._log))
        ready = asyncio.create_task(term.caught_up(parts.informers))
        try:
            await asyncio.wait([watching, ready], return_when=asyncio.FIRST_COMPLETED)
            if watching.done():
                await watching
            await ready
            self._box.post(mailbox.Begin())
            await asyncio.gather(watching, self._accompany())
        finally:
            for work in (watching, looking, ready):
                work.cancel()

    async def _accompany(self) -> None:
        """Run the companion controller, which reads what is listed later, too."""
        await self._parts.informers.wait_synced()
        await self._parts.companions.run()

    async def _finish(self) -> None:
        """Let writes that were handed over end."""
        world = self._parts.world
        loop = asyncio.get_running_loop()
        until = loop.time() + self._patience
        while loop.time() < until:
            counts = world.counts
            if not counts.waiting and not counts.in_flight:
                break
            await asyncio.sleep(LOOK)
        left = world.counts.waiting
        if left:
            self._log.warning("writes are given up", waiting=left)
        await world.drain(LAST_ANSWERS)


class StartError(Exception):
    """Something that keeps the process from starting, said in words for its operator."""


async def _never_ending(name: str, work: Awaitable[None]) -> None:
    """Run something that must not end."""
    await work
    raise RuntimeError(f"{name} has ended")


def _raise_first(works: Sequence[asyncio.Task[None]]) -> None:
    for work in works:
        work.result()
