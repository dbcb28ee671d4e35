"""One event loop for a whole world: virtual time, and processes that can be paused and killed at any step.

A process here is a name in the context of its callbacks and tasks. Who comes first is chosen by the network, whose delays the seed draws.
"""

from __future__ import annotations

import asyncio
import collections
import contextlib
import contextvars
import heapq
import random
import weakref
from asyncio import events
from asyncio.events import _get_running_loop, _set_running_loop  # for those who write loops
from asyncio.tasks import _enter_task, _leave_task  # likewise


def chance(*words):
    """Give a source of chance that depends on nothing but these words."""
    return random.Random("/".join(map(str, words)))  # noqa: S311  the seed's, and no secret


PROCESS = contextvars.ContextVar("process", default="world")


def context_of(process):
    """Make the context of a process."""
    made = contextvars.copy_context()
    made.run(PROCESS.set, process)
    return made


def _process_of(handle):
    return handle._context.get(PROCESS, "world")  # noqa: SLF001  Python 3.11 has no other way to ask


class _Task(asyncio.Task):
    """A task whose place in a set depends on when it was made, not on where: groups of tasks are sets, and end their members in that order."""

    def __init__(self, coro, *, number, **options):
        self._number = number
        super().__init__(coro, **options)

    def __hash__(self):
        return self._number


class _Future(asyncio.Future):
    """A future like that."""

    def __init__(self, *, number, loop):
        self._number = number
        self.process = PROCESS.get()
        super().__init__(loop=loop)

    def __hash__(self):
        return self._number


def _unwind(coro):
    """End what nothing will ever go on with now, and not whenever its garbage is collected: what it does as its last is seen by nobody, but it would do that in the name of whoever ran then."""
    while coro.cr_frame is not None and not coro.cr_running:
        with contextlib.suppress(Exception):
            coro.close()


class VirtualLoop(asyncio.AbstractEventLoop):
    """Runs callbacks at virtual moments; `now` is in seconds since the world began."""

    def __init__(self):
        self.now = 0.0
        self.steps = 0
        self.failures = []
        self._ready = []
        self._batch = collections.deque()  # what was ready when the turn began
        self._later = []
        self._number = 0
        self._made = 0  # tasks and futures
        self._dead = set()
        self._tasks = {}
        self._paused = {}
        self.readers = {}
        self._sockets = {}
        self._opened = 0

    # -- time --------------------------------------------------------------------------------------------------

    def time(self):
        return self.now

    def call_soon(self, callback, *args, context=None):
        handle = events.Handle(callback, args, self, context)
        self._ready.append(handle)
        return handle

    call_soon_threadsafe = call_soon

    def call_later(self, delay, callback, *args, context=None):
        return self.call_at(self.time() + delay, callback, *args, context=context)

    def at(self, moment, callback, *args, context):
        """Call something at a moment of the world's time."""
        self._number += 1
        handle = events.TimerHandle(moment, callback, args, self, context)
        heapq.heappush(self._later, (moment, self._number, handle))

    def call_at(self, when, callback, *args, context=None):
        handle = events.TimerHandle(when, callback, args, self, context)
        self._number += 1
        heapq.heappush(self._later, (when, self._number, handle))
        return handle

    def _timer_handle_cancelled(self, handle):
        pass

    # -- what asyncio asks of a loop ---------------------------------------------------------------------------

    def create_future(self):
        self._made += 1
        return _Future(number=self._made, loop=self)

    def create_task(self, coro, *, name=None, context=None, **options):
        self._made += 1
        made = _Task(coro, number=self._made, loop=self, name=name or "task", context=context, **options)
        process = PROCESS.get() if context is None else context.get(PROCESS, "world")
        self._tasks.setdefault(process, weakref.WeakSet()).add(made)
        return made

    def run_in_executor(self, executor, func, *args):
        made = self.create_future()
        try:
            made.set_result(func(*args))
        except Exception as error:  # noqa: BLE001  whoever waits for it is told
            made.set_exception(error)
        return made

    def get_debug(self):
        return False

    def is_running(self):
        return True

    def is_closed(self):
        return False

    def get_task_factory(self):
        return None

    def default_exception_handler(self, context):
        self.call_exception_handler(context)

    def call_exception_handler(self, context):
        task = context.get("future")
        name = getattr(getattr(task, "get_coro", lambda: None)(), "__qualname__", "")
        if getattr(task, "process", None) in self._dead:  # whoever waited for it is not there to be told
            return
        # aiohttp's own, where a connection is lost before its first request was looked at
        if name != "RequestHandler.start":
            self.failures.append(context)

    def add_signal_handler(self, *_):
        pass

    # -- sockets that are none ---------------------------------------------------------------------------------

    def open(self, socket):
        """Give a socket its number."""
        self._opened += 1
        self._sockets[self._opened] = socket
        return self._opened

    def closed(self, number):
        """Forget a socket."""
        self._sockets.pop(number, None)
        self.readers.pop(number, None)

    def add_reader(self, number, callback):
        self.readers[number] = callback
        socket = self._sockets[number]
        self.call_soon(socket.wake, context=socket.context)

    def remove_reader(self, number):
        return self.readers.pop(number, None) is not None

    def remove_writer(self, _):
        return False

    # -- processes ---------------------------------------------------------------------------------------------

    def start(self, process, coro):
        """Run a coroutine as a process of that name."""
        self._dead.discard(process)
        return self.create_task(coro, context=context_of(process))

    def kill(self, process):
        """Let nothing of a process run any more, as if the machine had lost its power."""
        self._dead.add(process)
        self._bury(process)

    def _bury(self, process):
        """End all tasks of a process that is dead, but for one in whose step it died: that is ended after it."""
        tasks = sorted(self._tasks.pop(process, ()), key=hash)
        for task in tasks:
            task._log_destroy_pending = False  # noqa: SLF001  it is meant never to end
            context_of(process).run(_unwind, task.get_coro())
        if running := [task for task in tasks if task.get_coro().cr_running]:
            self._tasks[process] = weakref.WeakSet(running)

    def pause(self, process):
        """Let nothing of a process run until it goes on, as if it were stopped by a signal or starved by its machine."""
        self._paused.setdefault(process, [])

    def go_on(self, process):
        """Let a process run again; what was due meanwhile comes first."""
        self._ready = self._paused.pop(process, []) + self._ready

    def tasks_of(self, process):
        """Count the tasks of a process that have not ended."""
        return sum(not task.done() for task in self._tasks.get(process, ()))

    def timers_of(self):
        """Count what is due later, by process."""
        return collections.Counter(_process_of(handle) for _, _, handle in self._later if not handle.cancelled())

    def rests(self, process):
        """Tell whether a process is paused."""
        return process in self._paused

    # -- running -----------------------------------------------------------------------------------------------

    def run_in(self, context, function):
        """Call something as if a process had, and give what comes of it."""
        before = _get_running_loop()
        _set_running_loop(self)
        try:
            return context.run(function)
        finally:
            _set_running_loop(before)

    def run_until(self, moment):
        """Let everything happen up to a moment."""
        before = _get_running_loop()
        _set_running_loop(self)
        try:
            while self._turn(moment):
                pass
        finally:
            _set_running_loop(before)
        self.now = max(self.now, moment)

    def think(self, seconds):
        """Let time pass in the middle of a step, as for a thread that is at work: everybody else goes on."""
        task = asyncio.current_task(self)
        _leave_task(self, task)
        try:
            self.run_until(self.now + seconds)
        finally:
            _enter_task(self, task)

    def _turn(self, moment):
        if not self._batch and not self._ready:
            while self._later and self._later[0][2].cancelled():
                heapq.heappop(self._later)
            if not self._later or self._later[0][0] > moment:
                return False
            self.now = max(self.now, self._later[0][0])
            while self._later and self._later[0][0] <= self.now:
                self._ready.append(heapq.heappop(self._later)[2])
        if not self._batch:
            self._batch.extend(self._ready)
            self._ready = []
        while self._batch:
            handle = self._batch.popleft()
            process = _process_of(handle)
            if handle.cancelled() or process in self._dead:
                continue
            if process in self._paused:
                self._paused[process].append(handle)
                continue
            self.steps += 1
            handle._run()  # noqa: SLF001  as loops do
            if process in self._dead:
                self._bury(process)
        return True
