"""Asking a fabric manager: within bounds, with credentials that nobody else hears of."""

from __future__ import annotations

import asyncio
import base64
import json

import pytest
import virtual_loop
from aiohttp import web

from pumice.api import duration
from pumice.controllers.volcano.hyper_nodes import settings, ufm
from pumice.kube import errors
from pumice.kube import ufm as asking
from testbed import waiting

HUSHED = "hush-hush"
PORTS = [{"description": "Computer IB Port", "system_name": "n1", "peer_node_name": "l1"}]


def encoded(text):
    return base64.b64encode(text.encode()).decode()


DOOR = "Basic " + encoded(f"me:{HUSHED}")


def source_at(endpoint, name="s", **more):
    return settings.UfmSource(endpoint=endpoint, secret_name=name, **more)


class Secrets:
    """A client that only knows Secrets."""

    def __init__(self, data=None):
        self.data = {"username": encoded("me"), "password": encoded(HUSHED + "\n")} if data is None else data
        self.asked = []

    async def get(self, kind, namespace, name):
        self.asked.append((kind.name, namespace, name))
        if self.data == "away":
            raise errors.UnreachableError("away", transient=True)
        return {"data": self.data}


async def served(handler):
    """Serve one path on loopback; gives the runner and its address."""
    app = web.Application()
    app.router.add_get(ufm.PATH, handler)
    app.router.add_get("/elsewhere", handler)
    runner = web.AppRunner(app, shutdown_timeout=0.01)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    return runner, f"http://127.0.0.1:{runner.addresses[0][1]}"


def asked(handler, **bounds):
    async def main():
        runner, endpoint = await served(handler)
        try:
            source = source_at(endpoint)
            return await asking.fetch(source, DOOR, **bounds)
        finally:
            await runner.cleanup()

    return virtual_loop.run(main(), sockets=True)


def test_the_ports_are_read_with_name_and_password():
    seen = []

    async def handler(request):
        seen.append(request.headers["Authorization"])
        return web.json_response(PORTS)

    assert json.loads(asked(handler)) == PORTS
    assert seen == [DOOR]


async def _too_large(_):
    return web.Response(body=b"x" * 2000)


async def _refused(_):
    return web.Response(status=401, text=HUSHED)


async def _redirected(_):
    raise web.HTTPFound("/elsewhere")


async def _never(_):
    await asyncio.Event().wait()


@pytest.mark.parametrize(
    ("handler", "says"),
    [
        (_too_large, "larger than 1000 bytes"),
        (_refused, "status 401, not 200"),
        (_redirected, "status 302, not 200"),
        (_never, "took longer than 0.05 s"),
    ],
)
def test_what_goes_wrong_is_said_without_secrets(handler, says):
    with pytest.raises(ufm.UfmError, match=says) as caught:
        asked(handler, largest=1000, timeout=0.05)
    assert HUSHED not in str(caught.value)


def test_nobody_there():
    source = source_at("http://127.0.0.1:1")
    with pytest.raises(ufm.UfmError, match="failed: ClientConnectorError"):
        asyncio.run(asking.fetch(source, DOOR))


def test_the_last_answer_stays_when_the_next_cannot_be_read():
    answers = [web.json_response(PORTS), web.Response(status=500), web.Response(text="{}")]

    async def handler(_):
        return answers.pop(0)

    async def main():
        runner, endpoint = await served(handler)
        said, secrets = [], Secrets()
        poller = asking.Poller(secrets, lambda: None, said.append, home="home")
        source = source_at(endpoint)
        assert poller.links() is None
        for _ in range(3):
            await poller.ask(source)
            assert poller.links() == ufm.Links(endpoint=endpoint, pairs=(("n1", "l1"),))
        assert secrets.asked == [("Secret", "home", "s")] * 3
        assert ["status 500" in said[0], "no list of ports" in said[1], len(said)] == [True, True, 2]
        await runner.cleanup()

    asyncio.run(main())


@pytest.mark.parametrize(
    "data", [{}, {"username": encoded("me")}, {"username": "%%%", "password": encoded(HUSHED)}, 3, "away"]
)
def test_without_credentials_nobody_is_asked(data):
    said = []
    poller = asking.Poller(Secrets(data), lambda: None, said.append)
    asyncio.run(poller.ask(source_at("http://127.0.0.1:1")))
    assert poller.links() is None
    assert len(said) == 1
    assert HUSHED not in said[0]


def test_a_source_is_asked_when_it_is_new_and_when_its_interval_is_over():
    async def main():
        counts = {"first": 0, "second": 0}
        asked_once, asked_often = asyncio.Event(), asyncio.Event()

        async def handler(request):
            name = "first" if request.headers["Authorization"] == DOOR else "second"
            counts[name] += 1
            asked_once.set()
            if counts["second"] == 3:
                asked_often.set()
            return web.json_response(PORTS)

        runner, endpoint = await served(handler)
        wanted, secrets = [None], Secrets()
        poller = asking.Poller(secrets, lambda: wanted[-1], look=0.001)
        running = asyncio.create_task(poller.run())
        wanted.append(source_at(endpoint, interval=duration.HOUR))
        await asked_once.wait()
        secrets.data = {"username": encoded("other"), "password": encoded(HUSHED)}
        wanted.append(source_at(endpoint, "t", interval=duration.MILLISECOND))
        await asked_often.wait()
        assert counts["first"] == 1
        running.cancel()
        await runner.cleanup()

    asyncio.run(asyncio.wait_for(main(), waiting.PATIENCE))
