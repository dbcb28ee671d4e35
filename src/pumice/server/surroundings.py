"""What a process has from outside: clocks, chance, a name of its own, a way to the API server.

Nothing else in a process asks for the time or for a random number, so that whoever gives it other surroundings can put several processes on one clock and one seed.
"""

from __future__ import annotations

import random
import socket
import time
import uuid
from typing import TYPE_CHECKING

import msgspec

from pumice.kube.access import connection
from pumice.kube.calls.client import Client
from pumice.server.threads import clocks, interpreter
from pumice.server.threads.mailbox import Mailbox

if TYPE_CHECKING:
    from collections.abc import Callable

    from pumice.kube.access.endpoint import Connection
    from pumice.kube.calls.channels import Channel
    from pumice.server.flags.process_settings import ProcessSettings


def _connect(settings: ProcessSettings) -> Connection:
    return connection.load(settings.kubeconfig, master=settings.master, in_cluster_first=True)


class Surroundings(msgspec.Struct, frozen=True, kw_only=True):
    """The real ones, unless others are given. `wall` and `awake_or_not` count microseconds, `seconds` seconds."""

    wall: Callable[[], int] = clocks.forward
    awake_or_not: Callable[[], int] = clocks.monotonic  # goes on while the machine sleeps
    seconds: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    chance: Callable[[], random.Random] = random.Random  # spreads attempts, guards nothing
    identity: Callable[[], str] = lambda: f"{socket.gethostname()}_{uuid.uuid4()}"
    connect: Callable[[ProcessSettings], Connection] = _connect
    way: Callable[[int], Channel] | None = None  # to the API server, where that is no network
    mailbox: Callable[[], Mailbox] = Mailbox
    settle_memory: Callable[[], None] = interpreter.settle

    def clients(self, settings: ProcessSettings, allowance: Callable[[], float]) -> tuple[Client, Client]:
        """Give a client for the work, and one for the Lease alone, so that no number of writes makes a renewal wait."""
        reached = self.connect(settings)
        work = Client(
            reached,
            qps=settings.kube_api_qps,
            burst=settings.kube_api_burst,
            rng=self.chance(),
            allowance=allowance,
            way=self.way,
        )
        return work, Client(reached, rng=self.chance(), way=self.way)


REAL = Surroundings()
