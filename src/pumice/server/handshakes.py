"""Connections over TLS that are not made yet: so many at a time, so that whoever only begins them takes no more memory than that."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import socket
    import ssl
    from collections.abc import Callable

MOST: Final = 128
"""Each of them costs a quarter of a megabyte; one more, and the oldest is dropped."""
SECONDS: Final = 5.0
"""That a client gets for one."""
GOODBYE: Final = 1.0
"""Seconds that a client gets to say that it has heard the end."""
BACKLOG: Final = 100
PAUSE: Final = 1.0
"""Seconds for which nobody is let in when there are no files left."""


class Handshakes:
    """Lets clients in; `admit` gives who talks to them once it is known that they speak TLS."""

    def __init__(self, admit: Callable[[], asyncio.BaseProtocol], context: ssl.SSLContext) -> None:
        self._admit = admit
        self._context = context
        self._accepting: list[asyncio.Task[None]] = []
        self.under_way: dict[asyncio.Task[None], None] = {}

    def listen(self, bound: asyncio.Server) -> None:
        """Listen on the addresses of a server that does not do so itself."""
        for each in bound.sockets:
            listening = each.dup()
            listening.listen(BACKLOG)
            self._accepting.append(asyncio.create_task(self._accept(listening)))

    async def close(self) -> None:
        """Let nobody in any more."""
        tasks = [*self._accepting, *self.under_way]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _accept(self, listening: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        with contextlib.closing(listening):
            while True:
                try:
                    connection, _ = await loop.sock_accept(listening)
                except ConnectionAbortedError:
                    continue
                except OSError:
                    await asyncio.sleep(PAUSE)
                    continue
                if len(self.under_way) >= MOST:
                    oldest = next(iter(self.under_way))
                    del self.under_way[oldest]
                    oldest.cancel()
                task = asyncio.create_task(self._shake(connection))
                self.under_way[task] = None
                task.add_done_callback(lambda done: self.under_way.pop(done, None))
                await asyncio.sleep(0)  # a crowd must not keep everything else waiting

    async def _shake(self, connection: socket.socket) -> None:
        with contextlib.suppress(OSError):  # whoever does not speak TLS is nobody's trouble
            await asyncio.get_running_loop().connect_accepted_socket(
                self._admit,
                connection,
                ssl=self._context,
                ssl_handshake_timeout=SECONDS,
                ssl_shutdown_timeout=GOODBYE,
            )
