"""Controllers in the scheduler's own process: a thread with an event loop of its own, so that no turn of theirs delays a bind."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Final

from pumice.kube import election, rivals
from pumice.server.controlling import part
from pumice.server.threads import mailbox

if TYPE_CHECKING:
    from collections.abc import Callable

    from pumice.server.flags.controller_settings import Work
    from pumice.server.flags.settings import Settings
    from pumice.server.health.api_silence import ApiSilence
    from pumice.server.logs.logs import Log
    from pumice.server.metrics.controllers import ControllersMeter
    from pumice.server.surroundings import Surroundings
    from pumice.server.threads.mailbox import Mailbox

_MARGIN: Final = 3.0  # seconds beyond what the part takes to end


class ControllersThread(threading.Thread):
    """Runs the controllers until it is stopped; what ends them ends the scheduler, as the loss of a lease does."""

    def __init__(
        self,
        settings: Settings,
        work: Work,
        *,
        box: Mailbox,
        log: Log,
        meter: ControllersMeter,
        api_silence: ApiSilence,
        companions_wanted: Callable[[], bool],
        around: Surroundings,
    ) -> None:
        super().__init__(name="controllers", daemon=True)
        self._box = box
        self._log = log
        self.part = part.ControllersPart(
            settings,
            work,
            settings.controllers_lease_name,
            log=log,
            meter=meter,
            api_silence=api_silence,
            companions_wanted=companions_wanted,
            around=around,
        )
        self._loop: asyncio.AbstractEventLoop | None = None
        self._running: asyncio.Task[None] | None = None
        self._ready = threading.Event()

    def run(self) -> None:
        """Run the loop."""
        try:
            asyncio.run(self.live())
        finally:
            self._ready.set()

    async def live(self) -> None:
        """Run the controllers on the running loop; what ends them is told, and not raised."""
        self._loop, self._running = asyncio.get_running_loop(), asyncio.current_task()
        self._ready.set()
        try:
            await self.part.run()
        except election.LostLeaseError as error:
            self._box.post(mailbox.Fatal(f"the controllers' lease is lost: {error}"))
        except rivals.ServedError as error:
            self._box.post(mailbox.Fatal(str(error)))
        except asyncio.CancelledError:
            return
        except BaseException as error:  # noqa: BLE001  the scheduler must not seem to run what has ended
            self._log.broke("the controllers broke down", error)
            self._box.post(mailbox.Fatal(f"the controllers broke down: {type(error).__name__}: {error}"))

    def stop(self) -> None:
        """End in good order."""
        self._ready.wait(_MARGIN)
        if self._loop is None or self._running is None or not self.is_alive():
            return
        try:
            self._loop.call_soon_threadsafe(self._running.cancel)
        except RuntimeError:
            return  # the loop has ended by itself
        self.join(part.LAST_TURNS + election.RELEASE_PATIENCE + _MARGIN)
