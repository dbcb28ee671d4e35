"""An event loop whose clock stands still while anything can run and jumps to the next timer otherwise.

Whoever talks to a server in the same loop gives what is sent a moment to arrive: then time limits end what nobody answers and nothing else, however slow the machine is.
"""

from __future__ import annotations

import asyncio
import functools
import selectors

_ARRIVES = 0.02  # real seconds


class _Jumping(selectors.DefaultSelector):
    loop: VirtualLoop

    def select(self, timeout=None):
        if timeout is None:
            return super().select(None)
        found = super().select(self.loop.arrives if timeout > 0 else 0)
        if not found:
            self.loop.moment += max(timeout, 0)
        return found


class VirtualLoop(asyncio.SelectorEventLoop):
    def __init__(self, arrives=0.0):
        self.moment = 0.0
        self.arrives = arrives
        selector = _Jumping()
        selector.loop = self
        super().__init__(selector)

    def time(self):
        return self.moment


def run(main, *, sockets=False, debug=None):
    """Run a coroutine in virtual time from 0; with `sockets` both ends of which are in it."""
    made = functools.partial(VirtualLoop, _ARRIVES if sockets else 0.0)
    with asyncio.Runner(loop_factory=made, debug=debug) as runner:
        return runner.run(main)
