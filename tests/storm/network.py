"""A network without sockets: bytes that a client has written reach an API server after a while, and its answer comes back, if nothing happens to either on the way.

Both ends are the real ones: the client's requests and its reader of answers, and the server's own protocol. What is lost, late, doubled or cut is decided by `Weather`.
"""

from __future__ import annotations

import asyncio

from pumice.kube import errors
from pumice.kube.calls import answers
from pumice.kube.calls.http_answers import Answer, GarbledAnswerError


class Link(asyncio.Transport):
    """The server's end of one connection; what it writes is carried to whoever asked."""

    def __init__(self, loop, carry):
        super().__init__()
        self._loop = loop
        self._carry = carry
        self._closing = False
        self.protocol = None

    def get_extra_info(self, name, default=None):
        return ("10.0.0.1", 1) if name in ("peername", "sockname") else default

    def is_closing(self):
        return self._closing

    def write(self, data):
        self._carry(bytes(data))

    def writelines(self, parts):
        self._carry(b"".join(parts))

    def can_write_eof(self):
        return False

    def pause_reading(self):
        pass

    def resume_reading(self):
        pass

    def set_write_buffer_limits(self, high=None, low=None):
        pass

    def get_write_buffer_size(self):
        return 0

    def is_reading(self):
        return True

    def close(self):
        """End the connection from the server's side."""
        if not self._closing:
            self._closing = True
            self._loop.call_soon(self._gone)
            self._carry(None)

    abort = close

    def drop(self):
        """End it from the client's side."""
        if not self._closing:
            self._closing = True
            self._gone()

    def _gone(self):
        protocol, self.protocol = self.protocol, None
        if protocol is not None:
            protocol.connection_lost(None)


class Wire:
    """One connection as its client sees it: an answer is fed as bytes arrive."""

    def __init__(self, loop, host, process, context):
        self._loop = loop
        self._host = host
        self.process = process
        self.context = context
        self.answer = None
        self.waiting = None
        self.closed = False
        self.fault = None
        self.fate = ""
        self.stalls = self.cut_at = 0
        self.said = []  # chunks of a watch, if they may come again
        self.bookmark = b""
        self.upstream = self.downstream = 0.0  # when the last bytes arrive, which none overtake
        self.link = host.accept(self)

    def send(self, data):
        self._host.to_server(self, data)

    def hear(self, data):
        """Remember a chunk that a watch says."""
        if not data.startswith(b"HTTP/"):
            self.said.append(data)
            if data.count(b"\n") == 3 and b'"BOOKMARK"' in data:  # a chunk with its length, one line, its end
                self.bookmark = data

    def arrived(self, data):
        """Take bytes, or the end."""
        if self.closed or self.answer is None:
            if data is None:
                self.closed = True
            return
        try:
            if data is None:
                self.closed = True
                self.answer.end()
            else:
                self.answer.feed(data)
        except (GarbledAnswerError, errors.OversizeError) as error:
            self.fault = error
            self.close()
        self.wake()

    def cut(self, error):
        """End the connection with an error."""
        if self.fault is None:
            self.fault = error
        self.close()
        self.wake()

    def wake(self):
        if self.waiting is not None and not self.waiting.done():
            self.waiting.set_result(None)

    async def until(self, ready):
        while not ready():
            if self.fault is not None:
                raise self.fault
            if self.closed:
                raise ConnectionResetError("the connection was closed")
            self.waiting = self._loop.create_future()
            try:
                await self.waiting
            finally:
                self.waiting = None
        if self.fault is not None:
            raise self.fault

    def close(self):
        if not self.closed:
            self.closed = True
            self._host.hung_up(self)


class Way:
    """A client's way to the API server (`pumice.kube.calls.channels.Channel`)."""

    failures = (
        OSError,
        GarbledAnswerError,
        errors.OversizeError,
        RefusedError := type("RefusedError", (Exception,), {}),
    )

    def __init__(self, loop, host, process, context, largest):
        self._loop = loop
        self._host = host
        self._process = process
        self._context = context
        self._largest = largest
        self._idle = []
        self._streaming = set()

    async def close(self):
        for wire in (*self._idle, *self._streaming):
            wire.close()

    async def _open(self):
        while self._idle:
            wire = self._idle.pop()
            if not wire.closed:
                return wire
        await self._host.dial(self._process)
        return Wire(self._loop, self._host, self._process, self._context)

    async def exchange(self, request, head, context, limit):
        answer = Answer(self._largest, bodiless=request.method == "HEAD")
        wire = None
        due = self._loop.time() + limit
        try:
            async with asyncio.timeout_at(due):
                wire = await self._open()
        except (TimeoutError, ConnectionRefusedError) as error:
            raise self.RefusedError(error) from None
        timer = self._loop.call_at(due, wire.cut, TimeoutError())
        try:
            wire.answer, wire.fault = answer, None
            wire.send(head.written(request, ""))
            await wire.until(lambda: answer.done)
        except BaseException:
            wire.close()
            raise
        finally:
            timer.cancel()
        if answer.keeps and not wire.closed:
            wire.answer = None
            self._idle.append(wire)
        else:
            wire.close()
        return answer

    async def stream(self, request, head, context, answer, silence):
        try:
            async with asyncio.timeout(10):
                await self._host.dial(self._process)
        except (TimeoutError, ConnectionRefusedError) as error:
            raise self.RefusedError(error) from None
        wire = Wire(self._loop, self._host, self._process, self._context)
        self._streaming.add(wire)
        wire.answer = answer
        heard = self._loop.time()
        timer = None

        def look():
            nonlocal timer
            if self._loop.time() >= heard + silence:
                wire.cut(TimeoutError())
            else:
                timer = self._loop.call_at(heard + silence, look)

        timer = self._loop.call_later(silence, look)
        try:
            wire.send(head.written(request, ""))
            await wire.until(lambda: answer.status)
            yield b""
            while True:
                await wire.until(lambda: answer.parts or answer.done)
                heard = self._loop.time()
                data = answer.take()
                if not data:
                    return
                yield data
                heard = self._loop.time()
        finally:
            timer.cancel()
            wire.close()
            self._streaming.discard(wire)

    def explain(self, error, request, limit, *, silence=False):
        if isinstance(error, self.RefusedError):
            return answers.unreachable(error.args[0], request, "storm")
        if isinstance(error, errors.OversizeError):
            return answers.oversized(error, request, "storm")
        if not isinstance(error, TimeoutError) or error.errno:
            return answers.broken(error, request, "storm")
        if silence:
            return errors.SilenceError(f"{request.title}: no byte arrived for {limit:g} s")
        return answers.unanswered(request, "storm", f"no whole answer within {limit:g} s")


class Host:
    """The API server's end of the network."""

    def __init__(self, loop, weather, sent):
        self._loop = loop
        self.protocols = self._context = None
        self._weather = weather
        self._sent = sent
        self.open = {}

    def serve(self, protocols, context):
        """Give connections from now on to a server, which runs in a context."""
        self.protocols, self._context = protocols, context

    async def dial(self, process):
        """Open a connection, or fail to."""
        await asyncio.sleep(self._weather.delay(process))
        if self._weather.blocked(process, "up") or self._weather.blocked(process, "down"):
            await asyncio.sleep(3600)
        if self._weather.refuses_to_dial(process):
            raise ConnectionRefusedError(111, "refused")

    def accept(self, wire):
        link = Link(self._loop, lambda data: self._to_client(wire, data))
        link.protocol = self.protocols()
        self._context.run(link.protocol.connection_made, link)
        self.open[wire] = None
        return link

    def _to_client(self, wire, data):
        if self._weather.blocked(wire.process, "down") or wire.stalls:
            return
        if wire.fate in ("replays", "bookmarks") and data is not None:
            wire.hear(data)
        if data is not None and wire.fate == "answered in vain":
            data = None
        elif data is not None and wire.fate == "cut" and not wire.cut_at:
            wire.cut_at = self._weather.position(len(data))
            self._carry_down(wire, data[: wire.cut_at])
            data = None
        self._carry_down(wire, data)

    def _carry_down(self, wire, data):
        wire.downstream = max(wire.downstream, self._loop.now + self._weather.delay(wire.process))
        self._loop.at(wire.downstream, wire.arrived, data, context=wire.context)

    def to_server(self, wire, data):
        """Carry a request; what becomes of it is drawn now."""
        watch = b"watch=true" in data.split(b"\r\n", 1)[0]
        fate = wire.fate = self._weather.fate(wire.process, watch=watch)
        self._sent(wire.process, data, fate)
        wire.stalls = wire.cut_at = 0
        wire.upstream = max(wire.upstream, self._loop.now + self._weather.delay(wire.process))
        if self._weather.blocked(wire.process, "up"):
            return
        match fate:
            case "lost":
                self._carry_down(wire, None)
                return
            case "refused":
                self._carry_down(wire, self._weather.refusal(watch=watch))
                return
            case "page of a proxy":
                self._carry_down(wire, self._weather.page())
                return
            case "stalls" | "ends" | "bookmarks" | "replays":
                moment = wire.upstream + 2000 * self._weather.delay()
                self._loop.at(moment, self._upset, wire, fate, context=wire.context)
            case "twice" if data[:4] != b"GET ":
                other = Link(self._loop, lambda _: None)
                other.protocol = self.protocols()
                self._context.run(other.protocol.connection_made, other)
                moment = wire.upstream + self._weather.delay()
                self._loop.at(moment, other.protocol.data_received, data, context=self._context)
                self._loop.at(moment + 30, other.drop, context=self._context)
        self._loop.at(wire.upstream, self._deliver, wire, data, context=self._context)

    def _upset(self, wire, fate):
        """Let a watch end, say again what it said before, or say nothing more for good, or nothing but that it is where it was."""
        if wire.closed or not self._weather.rough:
            return
        if fate == "ends":
            self._carry_down(wire, None)
        elif fate == "replays":
            if wire.said:
                self._carry_down(wire, self._weather.one_of(wire.said))
        else:
            wire.stalls = 1
            if fate == "bookmarks" and wire.bookmark:
                self._mark(wire)

    def _mark(self, wire):
        """Repeat the last bookmark of a watch again and again, which nobody can tell from a calm; in fair weather it ends, as every watch does in the end."""
        if not wire.closed and not self._weather.rough:
            self._carry_down(wire, None)
        elif not wire.closed:
            self._carry_down(wire, wire.bookmark)
            self._loop.at(self._loop.now + 20, self._mark, wire, context=wire.context)

    def _deliver(self, wire, data):
        if wire.link.protocol is not None and not self._weather.down:
            wire.link.protocol.data_received(data)
        elif self._weather.down:
            self._carry_down(wire, None)

    def hung_up(self, wire):
        self.open.pop(wire, None)
        wire.upstream = max(wire.upstream, self._loop.now + self._weather.delay(wire.process))
        self._loop.at(wire.upstream, wire.link.drop, context=self._context)

    def of_process(self, process):
        """Give the connections of a process that are not closed."""
        return [each for each in self.open if each.process == process and not each.closed]

    def lost(self, process):
        """Learn that a process is gone, with all its connections."""
        for wire in self.of_process(process):
            wire.closed = True
            self.hung_up(wire)

    def end_silence(self):
        """End every connection that says nothing more."""
        for wire in [each for each in self.open if each.stalls]:
            self._carry_down(wire, None)

    def cut_all(self):
        """End every connection, as an API server that ends does."""
        for wire in list(self.open):
            self._loop.at(self._loop.now, wire.arrived, None, context=wire.context)
            self._loop.at(self._loop.now, wire.link.drop, context=self._context)
            self.open.pop(wire, None)
