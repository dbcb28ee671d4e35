"""Connections: kept for the next request while they are good for one, given up when nobody needs them, never read faster than somebody listens."""

from __future__ import annotations

import asyncio
import contextlib
import socket

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scripted import ScriptedServer, Step, client, reply

from pumice.api import kinds
from pumice.kube.calls import transport, wire
from pumice.kube.calls.dialling import Dialler, DiallingError
from pumice.kube.calls.http_answers import Answer
from pumice.kube.calls.pool import Pool
from testbed import waiting

ASKED = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"


def ended(step):
    return Step(step.chunks, "close")


@pytest.mark.parametrize(
    "first", [reply(200, Connection="close"), ended(reply(200)), Step((*reply(200).chunks, b"more than was asked for"))]
)
def test_a_connection_that_serves_no_more_requests_is_not_used_again(first):
    async def run():
        async with ScriptedServer([first, reply(200)]).running() as server, client(server) as api:
            await api.get(kinds.POD, "a", "p")
            await asyncio.wait_for(server.finished.wait(), waiting.PATIENCE)
            await asyncio.sleep(0)
            await api.delete(kinds.POD, "a", "p")
            assert server.connections == 2

    asyncio.run(run())


def test_a_connection_that_nobody_uses_is_closed_after_a_while():
    async def run():
        async with ScriptedServer([reply(200)]).running() as server:
            pool = Pool(Dialler("127.0.0.1", server.port), kept=0.02)
            answer = Answer(1000)
            await pool.exchange(ASKED, answer, None, 30)
            assert answer.body == b"{}"
            await asyncio.wait_for(server.left.wait(), waiting.PATIENCE)
            await pool.exchange(ASKED, Answer(1000), None, 30)
            assert server.connections == 2
            pool.close()

    asyncio.run(run())


@settings(max_examples=10, deadline=None)
@given(st.integers(1, 2_000_000), st.integers(1, 2_000_000))
def test_requests_and_answers_of_any_size_arrive_whole(asked, answered):
    async def run():
        body = b'"' + b"y" * answered + b'"'
        async with ScriptedServer([reply(200, body)]).running() as server, client(server) as api:
            for _ in range(2):
                assert await api.request("POST", "/x", body=b"x" * asked) == body
            assert [each.body for each in server.asked] == [b"x" * asked] * 2
            assert server.connections == 1

    asyncio.run(run())


def test_a_stream_that_nobody_takes_is_not_read_without_end():
    async def run():
        loop = asyncio.get_running_loop()
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        theirs.setblocking(False)
        made, answer = wire.Wire(loop, ours), Answer(None)
        await loop.sock_sendall(theirs, b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        await made.begin(ASKED, answer)
        size, chunk = 64 * wire.BUFFER, 1 << 16
        sending = asyncio.create_task(_send_chunks(loop, theirs, size, chunk))
        while not made.paused:  # noqa: ASYNC110  the loop has to read
            await asyncio.sleep(0)
        assert sum(map(len, answer.parts)) <= wire.BUFFER + wire.READ * wire.READS
        assert not sending.done()
        got = 0
        while data := await made.more(answer):
            got += len(data)
        assert got == size
        await sending
        made.close()
        theirs.close()

    asyncio.run(run())


async def _send_chunks(loop, sock, size, chunk):
    for _ in range(size // chunk):
        await loop.sock_sendall(sock, b"%x\r\n%b\r\n" % (chunk, b"z" * chunk))
    await loop.sock_sendall(sock, b"0\r\n\r\n")


def test_the_next_address_of_a_name_is_tried_if_one_does_not_answer():
    async def run():
        async with ScriptedServer([reply(200)]).running() as server:
            with socket.socket() as taken:
                taken.bind(("127.0.0.1", 0))
                dead = taken.getsockname()[1]
                dialler = Dialler("somewhere", server.port)
                found = _names(asyncio.get_running_loop(), dead, server.port)
                pool = Pool(dialler)
                for _ in range(3):
                    answer = Answer(1000)
                    await pool.exchange(ASKED, answer, None, 30)
                    assert answer.status == 200
                pool.close()
            assert found == ["somewhere"]  # asked for once

    asyncio.run(run())


def test_a_name_is_looked_up_again_after_none_of_its_addresses_answered():
    async def run():
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            found = _names(asyncio.get_running_loop(), taken.getsockname()[1])
            dialler = Dialler("somewhere", 1)
            for _ in range(2):
                with pytest.raises(DiallingError) as caught:
                    await dialler.open(None, 5)
                assert isinstance(caught.value.cause, ConnectionRefusedError)
            assert found == ["somewhere"] * 2

    asyncio.run(run())


def _names(loop, *ports):
    """Let a name stand for ports of this machine; returns the names that are asked for."""
    asked = []

    async def getaddrinfo(host, port, **_):
        del port
        asked.append(host)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", each)) for each in ports]

    loop.getaddrinfo = getaddrinfo
    return asked


def test_a_request_that_is_given_up_takes_its_connection_with_it():
    async def run():
        hang = Step((), "hang")
        async with ScriptedServer([hang, reply(200)]).running() as server, client(server) as api:
            given_up = asyncio.create_task(api.get(kinds.POD, "a", "p"))
            await asyncio.wait_for(server.arrived.wait(), waiting.PATIENCE)
            given_up.cancel()
            await asyncio.wait_for(server.left.wait(), waiting.PATIENCE)
            await api.get(kinds.POD, "a", "p")
            assert server.connections == 2

    asyncio.run(run())


def test_a_loop_that_cannot_watch_sockets_is_known_as_such():
    with contextlib.closing(asyncio.SelectorEventLoop()) as loop:
        assert transport.watches_sockets(loop)
    assert not transport.watches_sockets(asyncio.AbstractEventLoop())


def test_a_loop_that_cannot_watch_sockets_is_served_by_a_library_that_needs_no_watch(monkeypatch):
    async def run():
        async with ScriptedServer([reply(200), reply(200)]).running() as server, client(server) as api:
            await api.get(kinds.POD, "a", "p")
            await api.delete(kinds.POD, "a", "p")
            assert server.connections == 1

    monkeypatch.setattr(transport, "watches_sockets", lambda _: False)  # as for the one of Windows
    monkeypatch.setattr(transport.direct, "Direct", None)
    asyncio.run(run())
