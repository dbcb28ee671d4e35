"""The small servers."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
import types

import aiohttp
import pytest
from server_desk import Lines, read

from kube import virtual_loop
from pumice.server import handshakes, reporting, serving
from pumice.server.flags import addresses
from pumice.server.health import checks
from pumice.server.logs import verbosity
from pumice.server.threads import io_thread
from testbed import certificates, waiting


class Shown:
    def __init__(self):
        self.missing = "not listed yet: pods"
        self.stalled = ""
        self.broken = ""
        self.health = checks.Health(
            {"deciding": lambda: self.stalled},
            {"informers": lambda: self.missing},
            {"configuration": lambda: self.broken},
        )

    async def metrics(self):
        return b"pumice_leading 1\n"


async def served(settings, shown, lines, ask, **options):
    """Serve until the questions are asked."""
    task = asyncio.create_task(serving.serve(settings, shown, lines.log))
    while len(lines.of("serving")) < settings.enable_metrics + settings.enable_healthz:
        if task.done():
            await task
        await asyncio.sleep(0.01)
    places = {line["what"]: line["address"] for line in lines.of("serving")}
    try:
        async with aiohttp.ClientSession(**options) as session:
            return await ask(session, places)
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def get(session, url, **options):
    async with session.get(url, **options) as answer:
        return answer.status, await answer.text()


def test_health_and_metrics_answer_on_their_own_addresses():
    shown, lines = Shown(), Lines()
    settings = read(
        enable_metrics=True, enable_healthz=True, listen_address="127.0.0.1:0", healthz_address="127.0.0.1:0"
    )

    async def ask(session, places):
        at = f"http://{places['health']}"
        assert await get(session, f"{at}/healthz") == (200, "ok")
        assert await get(session, f"{at}/healthz/ping") == (200, "ok")
        assert await get(session, f"{at}/livez") == (200, "ok")
        assert await get(session, f"{at}/readyz") == (503, "[-]informers failed: not listed yet: pods\n")
        shown.missing = ""
        assert await get(session, f"{at}/readyz") == (200, "ok")
        shown.broken = "line 3: no"
        assert await get(session, f"{at}/readyz?verbose") == (200, "[+]informers ok\n[!]configuration: line 3: no\n")
        shown.stalled = "no cycle has ended for 400s"
        assert (await get(session, f"{at}/livez"))[0] == 503
        assert (await get(session, f"{at}/metrics"))[0] == 404
        assert await get(session, f"http://{places['metrics']}/metrics") == (200, "pumice_leading 1\n")
        assert places["metrics"].startswith("127.0.0.1:")

    asyncio.run(served(settings, shown, lines, ask))


def test_clients_that_only_keep_their_connections_lock_nobody_out():
    lines = Lines()

    async def ask(session, places):
        port = int(places["metrics"].rpartition(":")[2])
        idle = [await asyncio.open_connection("127.0.0.1", port) for _ in range(3 * serving.MOST_CONNECTIONS)]
        try:
            assert (await get(session, f"http://127.0.0.1:{port}/metrics"))[0] == 200
            open_still = [reader for reader, _ in idle if not reader.at_eof()]
            assert len(open_still) <= serving.MOST_CONNECTIONS
        finally:
            for _, writer in idle:
                writer.close()

    asyncio.run(served(read(enable_metrics=True, listen_address="127.0.0.1:0"), Shown(), lines, ask))


@contextlib.asynccontextmanager
async def over_tls(tmp_path, **options):
    """Serve health over TLS; gives the listener, its address, and how clients trust it."""
    authority = certificates.Authority(tmp_path)
    pair = authority.server("health", ["IP:127.0.0.1"])
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(pair.certificate, pair.key)
    trust = ssl.create_default_context(cafile=authority.pair.certificate)
    listener = serving.Listener(serving.health_app(Shown()), **options)
    bound = await listener.start(addresses.Address("127.0.0.1", 0), context)
    try:
        yield listener, bound, trust
    finally:
        await listener.cleanup()


def test_clients_that_only_begin_with_tls_are_bounded_and_lock_nobody_out(tmp_path, monkeypatch):
    monkeypatch.setattr(handshakes, "SECONDS", 3600.0)

    async def run():
        async with over_tls(tmp_path) as (listener, bound, trust), aiohttp.ClientSession() as session:
            silent = [await asyncio.open_connection(bound.host, bound.port) for _ in range(2 * handshakes.MOST)]
            async with session.get(f"https://{bound}/healthz", ssl=trust) as answer:
                assert answer.status == 200
            under_way = len(listener._handshakes.under_way)  # noqa: SLF001  clients are not told how many others there are
            with contextlib.suppress(ConnectionError):
                assert await silent[0][0].read() == b""  # the oldest is dropped
            for _, writer in silent:
                writer.transport.abort()
            return under_way

    assert 0 < asyncio.run(asyncio.wait_for(run(), waiting.PATIENCE)) <= handshakes.MOST


def test_who_does_not_speak_tls_is_forgotten_and_whoever_is_pushed_out_goes_at_once(tmp_path, monkeypatch):
    monkeypatch.setattr(handshakes, "GOODBYE", 3600.0)

    async def run():
        async with over_tls(tmp_path, most=1) as (listener, bound, trust):
            reader, writer = await asyncio.open_connection(bound.host, bound.port)
            writer.write(b"GET / HTTP/1.1\r\n\r\n")
            await writer.drain()
            with contextlib.suppress(ConnectionError):
                await reader.read()
            writer.close()
            await waiting.soon(lambda: not listener._handshakes.under_way)  # noqa: SLF001  as above
            served = listener._runner.server  # noqa: SLF001  as above
            deaf = await asyncio.to_thread(_greet, bound, trust)  # never says goodbye
            await waiting.soon(lambda: len(served.connections) == 1)
            (first,) = served.connections
            other = await asyncio.to_thread(_greet, bound, trust)
            await waiting.soon(lambda: first not in served.connections)
            for each in (deaf, other):
                each.close()

    asyncio.run(run())


def _greet(bound, trust):
    return trust.wrap_socket(socket.create_connection((bound.host, bound.port)), server_hostname=bound.host)


def test_nothing_is_served_unless_asked_for():
    lines = Lines()

    async def ask(_session, places):
        assert places == {}

    asyncio.run(served(read(), Shown(), lines, ask))


def test_the_verbosity_is_changed_for_a_while_through_a_socket(tmp_path):
    lines = Lines(verbosity=2)

    async def scenario():
        runner = await verbosity.start(lines.log, str(tmp_path / "socks"))
        try:
            connector = aiohttp.UnixConnector(str(tmp_path / "socks" / verbosity.NAME))
            async with aiohttp.ClientSession(connector=connector) as session:
                assert await get(session, "http://x/getlevel") == (200, "2\n")
                assert (tmp_path / "socks" / verbosity.NAME).stat().st_mode & 0o777 == 0o600
                endless = f"level={'1' * 5000}&duration=1s"
                for query in (
                    "level=0&duration=60s",
                    "level=5",
                    "level=x&duration=1s",
                    "level=5&duration=soon",
                    endless,
                ):
                    assert (await get(session, f"http://x/setlevel?{query}"))[0] == 400
                assert (await get(session, "http://x/setlevel?level=4&duration=60s"))[0] == 200
                assert (await get(session, "http://x/setlevel?level=5&duration=50ms"))[0] == 200
                assert await get(session, "http://x/getlevel") == (200, "5\n")
                await asyncio.sleep(0.1)
                assert await get(session, "http://x/getlevel") == (200, "2\n")
        finally:
            await runner.cleanup()

    virtual_loop.run(scenario(), sockets=True)


def test_an_address_in_use_is_said_in_words():
    lines = Lines()
    settings = read(enable_metrics=True, listen_address="127.0.0.1:0")

    async def ask(_session, places):
        second = read(enable_metrics=True, listen_address=places["metrics"])
        with pytest.raises(io_thread.StartError, match=r"cannot serve metrics on 127\.0\.0\.1:\d+: "):
            await serving.serve(second, Shown(), Lines().log)

    asyncio.run(served(settings, Shown(), lines, ask))


def test_files_of_a_certificate_that_cannot_be_used_are_named(tmp_path):
    files = {name: str(tmp_path / name) for name in ("ca_cert_file", "tls_cert_file", "tls_private_key_file")}
    with pytest.raises(io_thread.StartError, match="ca_cert_file"):
        serving.tls(read(**files))


def test_health_is_served_over_tls_with_all_three_files(tmp_path):
    authority = certificates.Authority(tmp_path)
    pair = authority.server("health", ["IP:127.0.0.1"])
    ca = authority.pair.certificate
    settings = read(
        enable_healthz=True,
        healthz_address="127.0.0.1:0",
        ca_cert_file=str(ca),
        tls_cert_file=str(pair[0]),
        tls_private_key_file=str(pair[1]),
    )
    trusting = ssl.create_default_context(cafile=str(ca))

    async def ask(session, places):
        assert await get(session, f"https://{places['health']}/healthz", ssl=trusting) == (200, "ok")

    asyncio.run(served(settings, Shown(), Lines(), ask))


@pytest.mark.parametrize(
    ("leading", "holder", "trouble", "line"),
    [
        (True, "", "", "[+]leading"),
        (True, "", "connection refused", "[!]leading: the lease is not renewed: connection refused"),
        (False, "pod-2", "", "[+]standing by: held by pod-2"),
        (False, "pod-2", "no answer", "[!]standing by: the lease cannot be taken: no answer"),
        (False, "", "", "[+]standing by: nothing is known of the lease yet"),
    ],
)
def test_who_leads_is_a_line_that_never_fails(leading, holder, trouble, line):
    election = types.SimpleNamespace(leading=leading, holder=holder, trouble=trouble)
    checked = checks.Health({}, {}, {}, leadership=lambda: reporting.leadership(election))
    assert checked.ready() == (True, line)
