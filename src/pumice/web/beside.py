"""The page beside a scheduler: a process of its own, so that nobody who looks slows decisions down, fed with what the scheduler's watches bring.

Of each object only the last change waits to be told, so a page that does not listen costs no more memory than the cluster has objects. One that has ended is
started again; what it missed it reads by itself.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import itertools
import os
import sys
import time
from typing import TYPE_CHECKING, Any, Final

import msgspec

from pumice.api import decoding, kinds
from pumice.server.configuration import sources as configuration_sources
from pumice.study import configuration_text
from pumice.web import questions, relaying, sources

if TYPE_CHECKING:
    from pumice.api.meta import KubeObject
    from pumice.cache.reflector import EventType
    from pumice.framework.configuration import Configuration
    from pumice.server.flags.settings import Settings
    from pumice.server.logs.logs import Log
    from pumice.server.onlooking import Around
    from pumice.web.asking import Change

PAUSE: Final = 0.25
"""Seconds in which changes are gathered."""
REPORTS: Final = 5.0
BATCH: Final = 500
ROOM: Final = 1 << 20
"""Bytes that the pipe to the page may hold, where a system lets one choose: a second of changes goes at once."""
SHORTEST, LONGEST = 1.0, 60.0
"""Seconds until a page that has ended is started again."""
ENDING: Final = 3.0
QUIET: Final = 10.0
"""Seconds of silence of the API server that are nothing to speak of."""

_Waiting = tuple["kinds.Kind", "EventType", "KubeObject | decoding.Malformed", bytes]
_ENCODE: Final = msgspec.json.Encoder().encode


class Beside:
    """Runs the page and tells it everything; an onlooker of the scheduler."""

    specs = (msgspec.structs.replace(sources.EVICTIONS, later=True),)
    raw = (kinds.JOB,)

    def __init__(self, settings: Settings, log: Log) -> None:
        self._settings = settings
        self._log = log
        self._waiting: dict[tuple[str, str, str, str], _Waiting] = {}
        self._policy: Configuration | None = None
        self._since = 0
        self._starts = 0

    def feed(
        self, kind: kinds.Kind, event_type: EventType, found: KubeObject | decoding.Malformed, raw: bytes, /
    ) -> None:
        """Keep a change until the next turn."""
        metadata = found.metadata
        key = (kind.plural, kind.group, metadata.namespace, metadata.name)
        self._waiting[key] = (kind, event_type, found, raw if kind is kinds.JOB else b"")

    async def run(self, around: Around) -> None:
        """Run the page until cancelled, again if it ends."""
        pause = SHORTEST
        while True:
            began = time.monotonic()
            status = await self._once(around)
            pause = SHORTEST if time.monotonic() - began > LONGEST else min(LONGEST, 2 * pause)
            self._log.error("the page has ended", status=status, again_in=f"{pause:g}s")
            await asyncio.sleep(pause)

    async def _once(self, around: Around) -> int:
        self._starts += 1
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "pumice.web.inside", stdin=asyncio.subprocess.PIPE, env=os.environ
        )
        assert process.stdin is not None  # noqa: S101  it was started with a pipe
        widen(process.stdin)
        telling, ending = asyncio.create_task(self._tell(process.stdin, around)), asyncio.create_task(process.wait())
        try:
            await asyncio.wait([telling, ending], return_when=asyncio.FIRST_COMPLETED)
            if telling.done() and (error := telling.exception()) is not None:
                self._log.broke("the page is told no more", error)
        finally:
            telling.cancel()
            ending.cancel()
            await asyncio.gather(telling, ending, return_exceptions=True)
            process.stdin.close()
            await _ended(process)
        return process.returncode or 0

    async def _tell(self, pipe: asyncio.StreamWriter, around: Around) -> None:
        """Tell everything, as fast as the page takes it."""
        policy: Configuration | None = None
        facts: dict[str, Any] = {}
        due = 0.0
        with contextlib.suppress(ConnectionError):
            await _write(pipe, self.beginning(reads_first=self._starts > 1))
            while True:
                if (current := around.policy()) is not None and current is not policy:
                    policy = current
                    await _write(pipe, self.about(policy, around))
                if time.monotonic() >= due:
                    due = time.monotonic() + REPORTS
                    if (told := _facts(around)) != facts:
                        facts = told
                        await _write(pipe, relaying.Told(facts))
                await self.send_waiting(pipe)
                await asyncio.sleep(PAUSE)

    async def send_waiting(self, pipe: asyncio.StreamWriter) -> None:
        """Send the last change of each object that has changed since."""
        waiting, self._waiting = self._waiting, {}
        entries = iter(waiting.values())
        while batch := list(itertools.islice(entries, BATCH)):
            await _write(pipe, questions.Feed([_change(*each) for each in batch]))
            await asyncio.sleep(0)  # others have their turn on this loop

    def beginning(self, *, reads_first: bool) -> relaying.Begin:
        """Say what a page has to know before anything else."""
        settings = self._settings
        return relaying.Begin(
            address=settings.web_address,
            certificate=settings.web_cert_file,
            key=settings.web_private_key_file,
            client_ca=settings.web_client_ca,
            hosts=settings.web_hosts,
            kubeconfig=settings.kubeconfig,
            master=settings.master,
            policy=_config_map(settings),
            verbosity=settings.v,
            logging_format=settings.logging_format,
            reads_first=reads_first,
        )

    def about(self, policy: Configuration, around: Around) -> questions.About:
        """Say what is decided by, and since when."""
        if policy is not self._policy:
            self._policy, self._since = policy, time.time_ns() // 1000
        return questions.About(
            source="",
            text=configuration_text.render(policy, around.catalog),
            configuration=policy.source,
            since=self._since,
            plugins=self._settings.plugins_dir,
            flags=self._settings.shaping,
        )


def _config_map(settings: Settings) -> tuple[str, str]:
    """Name the ConfigMap that the policy stands in: the one that is given, else the one of an installation with this Lease."""
    given = settings.scheduler_conf
    if given and configuration_sources.find(given, None) is None:
        namespace, name, *_ = given.removeprefix(configuration_sources.PREFIX).split("/")
        return namespace, name
    return settings.lease_namespace, f"{settings.leader_elect_resource_name}-scheduler-configmap"


def _change(kind: kinds.Kind, event_type: EventType, found: KubeObject | decoding.Malformed, raw: bytes) -> Change:
    if type(found) is decoding.Malformed:
        event_type, raw = "DELETED", _ENCODE({"metadata": found.metadata})  # it counts as absent
    return (kind.api_version, kind.name, event_type, raw or _ENCODE(found))


def _facts(around: Around) -> dict[str, Any]:
    report = around.report()
    silent = report.silence > QUIET
    notes = [*report.troubles, *([f"the API server has been silent for {report.silence:.0f} s"] if silent else [])]
    shown = msgspec.structs.replace(report, silence=round(report.silence) if silent else 0)
    return {"notes": notes, "scheduler": msgspec.to_builtins(shown)}


def widen(pipe: asyncio.StreamWriter) -> None:
    """Let a pipe hold more, where that can be."""
    size = getattr(fcntl, "F_SETPIPE_SZ", None)
    if size is not None:
        with contextlib.suppress(OSError):
            fcntl.fcntl(pipe.get_extra_info("pipe").fileno(), size, ROOM)


async def _write(pipe: asyncio.StreamWriter, message: relaying.Message) -> None:
    pipe.write(questions.packed(message))
    await pipe.drain()


async def _ended(process: asyncio.subprocess.Process) -> None:
    """Wait until a process has ended whose input has, and end it if it does not."""
    if process.returncode is not None:
        return
    try:
        async with asyncio.timeout(ENDING):
            await process.wait()
    except TimeoutError:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()
