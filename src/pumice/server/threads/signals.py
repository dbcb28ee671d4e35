"""Signals: the process is told to end, or to say what it knows."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

from pumice.server.threads import mailbox

if TYPE_CHECKING:
    from pumice.server.threads.mailbox import Mailbox


class Signals:
    """Posts what signals ask for; dumps and summaries only where these are allowed."""

    def __init__(self, box: Mailbox, *, dumps: bool) -> None:
        self._box = box
        self._dumps = dumps
        self._ends = 0

    def heed(self) -> None:
        """Take signals from now on."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._end)
        signal.signal(signal.SIGUSR1, lambda *_: self._ask(mailbox.Dump()))
        signal.signal(signal.SIGUSR2, lambda *_: self._ask(mailbox.Summarise()))

    def _end(self, number: int, _frame: object) -> None:
        """End in good order; a second signal ends at once."""
        self._ends += 1
        if self._ends > 1:
            os._exit(1)
        self._box.post(mailbox.Stop(signal.Signals(number).name))

    def _ask(self, message: mailbox.Dump | mailbox.Summarise) -> None:
        if self._dumps:
            self._box.post(message)
