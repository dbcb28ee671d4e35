"""What others get to see of a process of controllers: metrics and health."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from pumice.server import reporting
from pumice.server.health import checks
from pumice.server.metrics import controllers, exposition, series

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pumice.server.controlling.part import ControllersPart
    from pumice.server.health.api_silence import ApiSilence
    from pumice.server.health.checks import Line
    from pumice.server.health.overdue import Watch
    from pumice.server.logs.logs import Log
    from pumice.server.metrics.series import Sample


class Reporter:
    """Knows whom to ask."""

    def __init__(self, log: Log, wall: Callable[[], int], api_silence: ApiSilence, watch: Watch) -> None:
        shared = tuple(series.BY_NAME[name] for name in series.SHARED)
        self._exposition = exposition.Exposition(self._samples, (*series.CONTROLLERS, *shared))
        self.meter = controllers.ControllersMeter(self._exposition, log, wall)
        self._api_silence = api_silence
        self._watch = watch
        self._started = wall() / 1e6
        self._part: ControllersPart | None = None
        self.health = checks.Health(
            {"progress": watch.late},
            {"informers": self._missing, "progress": watch.late},
            {"progress": watch.notes, "controllers": lambda: self.meter.last_breakdown},
            api_silence.lines,
            self._leadership,
        )

    def look_at(self, part: ControllersPart) -> None:
        """Name the part that is reported on."""
        self._part = part
        for watched in part.watched:
            self._watch.add(watched)
        self._api_silence.watch(part.informers)

    async def metrics(self) -> bytes:
        """Return the text that Prometheus scrapes."""
        return await asyncio.to_thread(self._exposition.text)

    def _missing(self) -> str:
        return "starting" if self._part is None else reporting.missing(self._part.informers)

    def _leadership(self) -> Line:
        election = self._part.election if self._part is not None else None
        return ("leading", True, "") if election is None else reporting.leadership(election)

    def _samples(self) -> Iterator[Sample]:
        yield from self.meter.samples()
        yield "pumice_api_server_silence_seconds", (), self._api_silence.silence()
        yield from self._watch.samples()
        yield "pumice_start_time_seconds", (), self._started
        if self._part is not None:
            yield from reporting.of_watches(self._part.informers)
            yield "pumice_events_total", ("sent",), self._part.events.sent
            yield "pumice_events_total", ("dropped",), self._part.events.dropped
