"""The lines of a watch: of any size, cut anywhere, and every way in which a stream ends."""

from __future__ import annotations

import asyncio

import pytest
import virtual_loop
from hypothesis import given, settings
from hypothesis import strategies as st
from scripted import CLOSE, HANG, ScriptedServer, chunked, client, refuse

from drawing import drawn
from pumice.api import kinds
from pumice.kube import errors
from pumice.kube.calls.lines import LineSplitter
from testbed import waiting


def watch(step, *, silence=5.0, **query):
    """Watch pods on a server with this script; return the lines and the error at the end, if any."""

    async def run():
        found = []
        async with ScriptedServer([step]).running() as server, client(server) as api:
            try:
                async for line in api.stream(kinds.POD, query=query, silence=silence):
                    found.append(line)  # noqa: PERF401  what came before an error counts
            except errors.KubeError as error:
                return server, found, error
        return server, found, None

    return virtual_loop.run(run(), sockets=True)


def test_a_stream_gives_its_lines_and_ends():
    server, lines, error = watch(chunked(b'{"a":1}\n{"b"', b':2}\n\n{"c":3}\n'), resourceVersion="5")
    assert (lines, error) == ([b'{"a":1}', b'{"b":2}', b'{"c":3}'], None)
    assert server.asked[0].path == "/api/v1/pods?resourceVersion=5&watch=true"


def test_lines_of_megabytes_are_whole():
    line = b'{"x":"' + b"y" * 3_000_000 + b'"}'
    _, lines, error = watch(chunked(line[:100], line[100:2_000_000], line[2_000_000:] + b"\nshort\n"))
    assert (lines, error) == ([line, b"short"], None)


def test_a_stream_that_is_cut_says_so_after_its_whole_lines():
    _, lines, error = watch(chunked(b"one\n", b"tw", then="close"))
    assert lines == [b"one"]
    assert isinstance(error, errors.BrokenConnectionError)


def test_a_stream_that_ends_within_a_line_is_broken():
    _, lines, error = watch(chunked(b"one\n", b"tw"))
    assert lines == [b"one"]
    assert isinstance(error, errors.BrokenConnectionError)
    assert "within a line" in str(error)


@pytest.mark.parametrize("step", [HANG, chunked(b"one\n", then="hang")], ids=["no-answer", "no-more-lines"])
def test_silence_ends_a_stream(step):
    _, _, error = watch(step, silence=0.05)
    assert isinstance(error, errors.SilenceError)
    assert "0.05 s" in str(error)


def test_a_byte_now_and_then_is_no_silence():
    async def run():
        async def serve(reader, writer):
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
            for _ in range(8):
                await asyncio.sleep(0.9)
                writer.write(b"1\r\nx\r\n")
            writer.write(b"1\r\n\n\r\n0\r\n\r\n")
            await writer.drain()
            writer.close()

        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        target = ScriptedServer([], port=server.sockets[0].getsockname()[1])
        async with server, client(target) as api:
            return [line async for line in api.stream(kinds.POD, silence=1.0)]

    assert virtual_loop.run(run(), sockets=True) == [b"x" * 8]


@pytest.mark.parametrize(
    ("status", "reason"), [(410, "Expired"), (404, "NotFound"), (400, "BadRequest"), (500, "InternalError")]
)
def test_a_refused_watch_is_an_api_error_and_not_tried_again(status, reason):
    server, lines, error = watch(refuse(status, reason, "too old resource version"))
    assert isinstance(error, errors.ApiError)
    assert (error.status, error.reason, lines, len(server.asked)) == (status, reason, [], 1)


def test_a_watch_without_an_answer_is_broken():
    _, _, error = watch(CLOSE)
    assert isinstance(error, errors.BrokenConnectionError)


def test_a_watch_that_is_left_closes_its_connection():
    async def run():
        step = chunked(b"one\n", then="hang")
        async with ScriptedServer([step]).running() as server, client(server) as api:
            stream = api.stream(kinds.POD, silence=60)
            assert await anext(stream) == b"one"
            await stream.aclose()
            await asyncio.wait_for(server.left.wait(), waiting.PATIENCE)

    asyncio.run(run())


def test_watches_do_not_take_the_places_of_requests():
    async def run():
        steps = [chunked(b"one\n", then="hang"), chunked(b"two\n", then="hang"), chunked(b"{}\n")]
        async with ScriptedServer(steps).running() as server, client(server, concurrency=1) as api:
            streams = [api.stream(kinds.POD, silence=60) for _ in range(2)]
            assert [await anext(stream) for stream in streams] == [b"one", b"two"]
            assert await api.get(kinds.POD, "a", "p") == {}
            for stream in streams:
                await stream.aclose()

    asyncio.run(run())


def test_a_line_without_an_end_is_bounded():
    splitter = LineSplitter(largest=10)
    assert splitter.feed(b"12345") == []
    assert splitter.pending == 5
    with pytest.raises(errors.OversizeError, match="10 bytes"):
        splitter.feed(b"678901")


@settings(max_examples=drawn(200))
@given(st.lists(st.binary(max_size=30).map(lambda data: data.replace(b"\n", b"."))), st.lists(st.integers(0, 400)))
def test_lines_are_the_same_wherever_chunks_are_cut(texts, cuts):
    data = b"".join(text + b"\n" for text in texts)
    splitter = LineSplitter()
    found, last = [], 0
    for cut in [*sorted(min(cut, len(data)) for cut in cuts), len(data)]:
        found += splitter.feed(data[last:cut])
        last = cut
    assert found == [text for text in texts if text]
    assert splitter.pending == 0
