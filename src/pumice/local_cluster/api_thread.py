"""The thread of the API server: one event loop with the store, its clients, the kubelets and the controllers.

```
  requests ──▶ server ──▶ store ──▶ bells ──▶ watches, kubelets, node health, controllers
                            └─────▶ journal (with --data) ──▶ answers
```

Everything that writes to the store runs here, one after another, so nothing needs a lock.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import secrets
import signal
import threading
import traceback
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

from pumice.api import kinds, names
from pumice.apiserver import authentication, cluster, resources, serving
from pumice.local_cluster import clock, contents, event_notes, figures, kubelets, loading, node_health
from pumice.server.health import overdue
from pumice.server.threads import watchdog
from pumice.sim.identity import Key
from pumice.sim.store import ObjectStore

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from pathlib import Path

    from pumice.local_cluster import journal
    from pumice.local_cluster.access_files import AccessFiles
    from pumice.local_cluster.options import Options

    Controller = Callable[[cluster.Cluster, clock.WallClock], Coroutine[Any, Any, None]]

_LOOK: Final = 0.8  # seconds after which somebody looks around though nothing has changed
_PAUSE: Final = 0.005  # between two looks of the kubelets, so that a burst is one look


class StartError(Exception):
    """Why the API server cannot run."""


class Figures:
    """What the live line tells; written by the API thread, read by another."""

    def __init__(self) -> None:
        self.nodes = self.pods = self.running = self.pending = self.ended = self.requests = self.watches = 0


class ApiThread(threading.Thread):
    """Runs the API server until it is stopped. `controllers` are started once it answers: coroutines that run until cancelled."""

    def __init__(
        self,
        options: Options,
        access: AccessFiles,
        controllers: tuple[Controller, ...] = (),
        watch: overdue.Watch | None = None,
    ) -> None:
        super().__init__(name="api", daemon=True)
        self._options = options
        self._access = access
        self._controllers = controllers
        self._watch = overdue.Watch() if watch is None else watch
        self._part = overdue.Part("api", "a turn of the API server's loop")
        self._watch.add(self._part)
        self._ready = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ending: asyncio.Event | None = None
        self._problem: Exception | None = None
        self.port = 0
        self.figures = Figures()

    def await_ready(self, given_up: Callable[[], bool] = bool) -> None:
        """Return when the server answers; raise `StartError` if it never will, or nobody waits for it any more."""
        while not self._ready.wait(_LOOK):
            if given_up():
                raise StartError("it was told to end before it could answer")
        if self._problem is not None:
            raise StartError(str(self._problem)) from self._problem

    @property
    def has_failed(self) -> bool:
        """Tell whether it ended by itself."""
        return self._problem is not None

    def stop(self, seconds: float = 5.0) -> None:
        """End in good order."""
        if self._loop is not None and self._ending is not None and self.is_alive():
            self._loop.call_soon_threadsafe(self._ending.set)
            self.join(seconds)

    def run(self) -> None:
        """Run the event loop; what goes wrong before it answers is told to whoever waits."""
        try:
            asyncio.run(self._run())
        except Exception as error:  # noqa: BLE001  whoever started the thread is told
            self._problem = error
            if self._ready.is_set():
                traceback.print_exception(error)
                os.kill(os.getpid(), signal.SIGTERM)  # the rest of the process is nothing without it
        finally:
            self._ready.set()

    async def _run(self) -> None:
        self._loop, self._ending = asyncio.get_running_loop(), asyncio.Event()
        self._part.begin("loading the cluster")
        gc.disable()  # until everything that stays is there: looking through it again and again would take longer than making it
        store = ObjectStore(clock.whole_seconds, new_uid, resources.has_generation)
        keeper = _keeper(self._options.data, store) if self._options.data else None
        files, durable = self._access.certificates, keeper.durability if keeper else None
        made = cluster.Cluster(store, clock.wall, durable, files.account_key.read_bytes(), files.authority.read_bytes())
        if keeper:
            keeper.restore(made)
        made.writing.rules.judges["", "Node"] = node_health.judge
        anew = not any(store.known_kinds())
        made.start()
        contents.define(made)
        if self._options.load is not None:
            loading.load(made, self._options.load, anew=anew)
        contents.install(made)
        contents.register(made, self._options.pools)
        if self._options.admission != "none":
            made.judge_volcano_kinds(strict=self._options.admission == "strict")
        self.figures.nodes = sum(1 for _ in store.scan(kinds.NODE))
        _settle_memory()
        server = serving.Server(made, authentication.Authenticator(self._access.token, made.tokens), _tell)
        self.port = await self._listen(server)
        self._access.write(self._options.host, self.port, self._options.scheduled)
        tasks = [asyncio.create_task(each) for each in self._parts(made, server)]
        if keeper:
            self._watch.add(overdue.Turning("journal", "a commit", lambda: keeper.turns, rests=lambda: keeper.rests))
        self._ready.set()
        try:
            await self._until_end(tasks)
        finally:
            for task in tasks:
                task.cancel()
            await server.stop()
            if keeper:
                keeper.close()

    async def _listen(self, server: serving.Server) -> int:
        host, port = self._options.host, self._options.port or self._access.port
        try:
            return await server.start(host, port, self._access.certificates)
        except OSError as error:
            what = (error.strerror or str(error)).rpartition(": ")[2]
            raise StartError(f"cannot listen on {host}:{port}: {what}; choose another --port") from None

    async def _until_end(self, tasks: list[asyncio.Task[None]]) -> None:
        assert self._ending is not None  # noqa: S101  set before anything runs
        ending = asyncio.create_task(self._ending.wait())
        done, _ = await asyncio.wait([ending, *tasks], return_when=asyncio.FIRST_COMPLETED)
        ending.cancel()
        for task in done:
            if task is not ending:
                task.result()  # a part that ends has failed

    def _parts(self, made: cluster.Cluster, server: serving.Server) -> list[Coroutine[Any, Any, None]]:
        time = clock.WallClock(self._options.speed)
        notes = event_notes.EventNotes(made)
        health = node_health.NodeHealth(made.store, time, whole=made.store.find(loading.RECORD) is None)
        pods = kubelets.Kubelets(made.store, time, notes.warn, notes.tell, health.is_served)
        pods.since = loading.recorded(made.store).at
        health.again = pods.look_again
        pods.adopt()
        made.logs.said = pods.said
        serving_nodes = (
            [self._serve_nodes(made, pods, health), figures.beat(made, health.is_served)]
            if self._options.kubelets
            else []
        )
        return [
            *serving_nodes,
            watchdog.beat(self._part),
            notes.forget_old(),
            figures.Figures(made).keep(),
            self._count(made, server),
            *(controller(made, time) for controller in self._controllers),
        ]

    async def _serve_nodes(
        self, made: cluster.Cluster, pods: kubelets.Kubelets, health: node_health.NodeHealth
    ) -> None:
        """Let nodes and kubelets react to what changes."""
        stirred, part = asyncio.Event(), overdue.Part("kubelets", "a look of the kubelets")

        def seen(key: Any, *_: Any) -> None:
            if key.kind is kinds.POD or key.kind is kinds.NODE:
                stirred.set()

        made.store.observe(seen)
        self._watch.add(part)
        try:
            while True:
                part.begin()
                part.due(monotonic() + _LOOK)
                stirred.clear()  # before looking: what changes from now on is for the next look
                if health.react() + pods.react() == 0:
                    await _stirring(stirred)
                await asyncio.sleep(_PAUSE)
        finally:
            part.rest()

    async def _count(self, made: cluster.Cluster, server: serving.Server) -> None:
        phases: dict[str, str] = {}
        tally = dict.fromkeys((names.PHASE_PENDING, names.PHASE_RUNNING, names.PHASE_SUCCEEDED, names.PHASE_FAILED), 0)

        def seen(key: Any, event_type: str, manifest: Any) -> None:
            if key.kind is kinds.POD:
                uid = manifest["metadata"]["uid"]
                before = phases.pop(uid, None)
                if before in tally:
                    tally[before] -= 1
                if event_type != "DELETED":
                    phase = phases[uid] = (manifest.get("status") or {}).get("phase", names.PHASE_PENDING)
                    if phase in tally:
                        tally[phase] += 1
            elif key.kind is kinds.NODE and event_type != "MODIFIED":
                self.figures.nodes += 1 if event_type == "ADDED" else -1

        for manifest in made.store.scan(kinds.POD):
            seen(Key(kinds.POD, "", manifest["metadata"]["name"]), "ADDED", manifest)
        made.store.observe(seen)
        while True:
            figures = self.figures
            figures.pods, figures.pending, figures.running = len(phases), tally["Pending"], tally["Running"]
            figures.ended = tally["Succeeded"] + tally["Failed"]
            figures.requests, figures.watches = server.requests, made.watching.open
            await asyncio.sleep(0.25)


def _keeper(folder: Path, store: ObjectStore) -> journal.Journal:
    from pumice.local_cluster.journal import open_journal  # noqa: PLC0415  SQLite is not part of every Python

    return open_journal(folder, store)


async def _stirring(stirred: asyncio.Event) -> None:
    """Wait for a change, and not for ever."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_LOOK):
            await stirred.wait()


def new_uid() -> str:
    """Make up a uid, as `uuid.uuid4` does and in a third of its time: every object that is created has one."""
    text = secrets.token_hex(16)
    return f"{text[:8]}-{text[8:12]}-4{text[13:16]}-{'89ab'[int(text[16], 16) & 3]}{text[17:20]}-{text[20:]}"


def _settle_memory() -> None:
    """Leave what will live as long as the process out of every later collection."""
    gc.enable()
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)


def _tell(request: str, error: Exception) -> None:
    print(f"{request}: {type(error).__name__}: {error}", flush=True)  # noqa: T201
    traceback.print_exception(error)
