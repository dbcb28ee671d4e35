"""An event loop whose clock stands still while anything can run and jumps to the next timer otherwise."""

from __future__ import annotations

import asyncio
import selectors


class _Jumping(selectors.DefaultSelector):
    loop: VirtualLoop

    def select(self, timeout=None):
        if timeout:
            self.loop.moment += timeout
        return super().select(0)


class VirtualLoop(asyncio.SelectorEventLoop):
    def __init__(self):
        self.moment = 0.0
        selector = _Jumping()
        selector.loop = self
        super().__init__(selector)

    def time(self):
        return self.moment


def run(main):
    """Run a coroutine in virtual time from 0."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(main)
