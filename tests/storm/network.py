"""A network without sockets: bytes that a client has written reach an API server after a while, and its answer comes back, if nothing happens to either on the way.

Both ends are the real ones: the client's requests, its pool of connections and its reader of answers, and the server's own protocol. What is lost, late, doubled or cut is decided by `Weather`.
"""

from __future__ import annotations

import asyncio
import re
import ssl

from pumice.kube.calls.dialling import DiallingError
from pumice.kube.calls.direct import Direct
from pumice.kube.calls.pool import Pool
from pumice.kube.calls.wire import Wire
from tests.storm import certificates

_VERSION = re.compile(rb"(?<=[?&]resourceVersion=)[0-9]+")


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


class Socket:
    """The client's end of one connection, as far as a `Wire` of the client asks for one; what happens to its bytes is `Host`'s."""

    def __init__(self, loop, host, process, context, certificate):
        self._loop = loop
        self._host = host
        self._number = loop.open(self)
        self._came = []
        self._ended = False
        self.process = process
        self.context = context
        self.certificate = certificate
        self.closed = False
        self.fate = ""
        self.stalls = self.cut_at = 0
        self.said = []  # chunks of a watch, if they may come again
        self.bookmark = b""
        self.upstream = self.downstream = 0.0  # when the last bytes arrive, which none overtake
        self.link = host.accept(self)

    def fileno(self):
        return self._number

    def send(self, data):
        if self.closed:
            raise BrokenPipeError(32, "closed")
        self._host.to_server(self, data)
        return len(data)

    def recv(self, most):
        if self._came:
            data, rest = self._came[0][:most], self._came[0][most:]
            self._came[:1] = [rest] if rest else []
            return data
        if self._ended:
            return b""
        raise BlockingIOError

    def close(self):
        if self.closed:
            return
        self.closed = True
        self._loop.closed(self._number)
        self._host.hung_up(self)

    def hear(self, data):
        """Remember a chunk that a watch says."""
        if not data.startswith(b"HTTP/"):
            self.said.append(data)
            if data.count(b"\n") == 3 and b'"BOOKMARK"' in data:  # a chunk with its length, one line, its end
                self.bookmark = data

    def arrived(self, data):
        """Take bytes, or the end."""
        if data is None:
            self._ended = True
        else:
            self._came.append(data)
        self.wake()

    def wake(self):
        """Let the client read what has come."""
        reader = self._loop.readers.get(self._number)
        if reader is not None and (self._came or self._ended):
            reader()
            if self._came and not self.closed:
                self._loop.call_soon(self.wake, context=self.context)


class Dialler:
    """Opens connections for the client's own pool (`pumice.kube.calls.dialling.Dialler`)."""

    def __init__(self, loop, host, process, context):
        self._loop = loop
        self._host = host
        self._process = process
        self._context = context

    async def open(self, context, limit):
        try:
            async with asyncio.timeout(limit):
                await self._host.dial(self._process)
        except (OSError, TimeoutError) as error:
            raise DiallingError(error) from None
        return Wire(self._loop, Socket(self._loop, self._host, self._process, self._context, context), context)

    def remember(self, wire):
        """What was agreed on with TLS costs nothing here."""


class Way(Direct):
    """A client's way to the API server: the real one but for its sockets."""

    def __init__(self, loop, host, process, context, largest):
        super().__init__("https://storm", "storm", largest)
        self._pool = Pool(Dialler(loop, host, process, context))


class Host:
    """The API server's end of the network."""

    def __init__(self, loop, weather, sent):
        self._loop = loop
        self.protocols = self._context = None
        self._weather = weather
        self._sent = sent
        self.open = {}
        self.accepts = certificates.FIRST  # of clients

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
        if self._weather.distrusts(process):
            raise ssl.SSLCertVerificationError(1, "certificate has expired")

    def accept(self, wire):
        link = Link(self._loop, lambda data: self._to_client(wire, data))
        link.protocol = self.protocols()
        self._context.run(link.protocol.connection_made, link)
        self.open[wire] = None
        return link

    def _to_client(self, wire, data):
        if self._weather.blocked(wire.process, "down"):
            wire.stalls = 1  # a connection that has lost bytes brings no later ones
        if wire.stalls:
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
            case "old revision":
                data = _VERSION.sub(lambda found: b"%d" % self._weather.earlier(int(found[0])), data, count=1)
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
        if wire.certificate not in (None, self.accepts):
            self._carry_down(wire, certificates.UNAUTHORIZED)
        elif wire.link.protocol is not None and not self._weather.down:
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
            wire.close()

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
