"""The process of `pumice controllers`: one event loop with the controllers and two small servers, ended in good order."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from typing import TYPE_CHECKING

from pumice import __version__
from pumice.kube import election, errors, rivals
from pumice.server import serving, surroundings
from pumice.server.controlling import part, reporting
from pumice.server.health import api_silence
from pumice.server.logs import logs
from pumice.server.threads import clocks, interpreter, watchdog
from pumice.server.threads.io_thread import StartError

if TYPE_CHECKING:
    from pumice.server.flags.controller_settings import ControllerSettings
    from pumice.server.logs.logs import Log


def run(settings: ControllerSettings) -> int:
    """Run the controllers until told to end; returns the exit status."""
    interpreter.tune()
    log = logs.Log(settings.v, settings.logging_format)
    logs.adopt_libraries(log)
    log.info("starting", version=__version__, controllers=", ".join(settings.work.chosen))
    for name in settings.unheard:
        log.info("flag without effect", flag=f"--{name}")
    silence = api_silence.ApiSilence(time.monotonic)
    watching = watchdog.Watchdog(log)
    reporter = reporting.Reporter(log, clocks.forward, silence, watching.watch)
    made = _made(settings, reporter, silence, log)
    if made is None:
        return 1
    reporter.look_at(made)
    watching.start()
    return asyncio.run(_live(settings, made, reporter, log))


def _made(
    settings: ControllerSettings, reporter: reporting.Reporter, silence: api_silence.ApiSilence, log: Log
) -> part.ControllersPart | None:
    """Put the controllers together, or say why that cannot be."""
    name, work, around = settings.leader_elect_resource_name, settings.work, surroundings.REAL
    try:
        return part.ControllersPart(
            settings, work, name, log=log, meter=reporter.meter, api_silence=silence, around=around
        )
    except (errors.KubeError, ValueError) as error:
        problem = str(error)
    log.error("cannot start", problem=problem)
    return None


async def _live(
    settings: ControllerSettings, made: part.ControllersPart, reporter: reporting.Reporter, log: Log
) -> int:
    ending = Ending()
    ending.heed_signals()
    socket_folder = os.environ.get(logs.SOCKET_FOLDER, "")
    works = [
        asyncio.create_task(made.run()),
        asyncio.create_task(serving.serve(settings, reporter, log, socket_folder)),
    ]
    told = asyncio.create_task(ending.told.wait())
    try:
        done, _ = await asyncio.wait([*works, told], return_when=asyncio.FIRST_COMPLETED)
        if told in done:
            log.info("ending", reason=ending.reason)
            return 0
        return _status(next(work for work in works if work in done), log)
    finally:
        for work in (*works, told):
            work.cancel()
        await asyncio.gather(*works, told, return_exceptions=True)
        log.info("ended")


def _status(ended: asyncio.Task[None], log: Log) -> int:
    """Say what ended it, and give the exit status."""
    error = ended.exception()
    if isinstance(error, StartError | rivals.ServedError):
        log.error("ending", problem=str(error))
    elif isinstance(error, election.LostLeaseError):
        log.error("ending", problem=f"the lease is lost: {error}")
    elif error is not None:
        log.broke("the controllers broke down", error)
    return 1


class Ending:
    """Hears the signals that end a process: the first in good order, a second at once."""

    def __init__(self) -> None:
        self.told = asyncio.Event()
        self.reason = ""

    def heed_signals(self) -> None:
        """Listen, on the running loop."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._end, number)

    def _end(self, number: signal.Signals) -> None:
        if self.told.is_set():
            os._exit(1)
        self.reason = signal.Signals(number).name
        self.told.set()
