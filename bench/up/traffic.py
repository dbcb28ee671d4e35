"""Clients of an API server: creates, binds and one watcher, over TLS on loopback."""

from __future__ import annotations

import asyncio
import base64
import ssl
import time
from typing import TYPE_CHECKING, Any

import aiohttp
import msgspec
import yaml

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

PODS = "/api/v1/namespaces/default/pods"
WORKERS = 16


class Traffic:
    """One connection pool with the administrator's token."""

    def __init__(self, session: aiohttp.ClientSession, url: str) -> None:
        self._session = session
        self._url = url
        self.seen: dict[str, float] = {}  # name of a pod -> when the watcher first saw it
        self.sent: dict[str, float] = {}

    async def post(self, path: str, body: Any, wanted: int = 201) -> None:
        """Send an object."""
        data = msgspec.json.encode(body)
        async with self._session.post(
            self._url + path, data=data, headers={"Content-Type": "application/json"}
        ) as answer:
            text = await answer.read()
            if answer.status != wanted:
                raise RuntimeError(f"POST {path}: {answer.status} {text[:300]!r}")

    async def watch(self) -> None:
        """Follow the pods until cancelled."""
        unlimited = aiohttp.ClientTimeout(total=None)
        async with self._session.get(f"{self._url}/api/v1/pods?watch=1", timeout=unlimited) as stream:
            async for line in stream.content:
                name = msgspec.json.decode(line, type=_Event).object.metadata.name
                self.seen.setdefault(name, time.perf_counter())

    async def create(self, name: str) -> None:
        """Create a pod."""
        self.sent[name] = time.perf_counter()
        await self.post(PODS, pod(name))

    async def bind(self, name: str) -> None:
        """Bind a pod."""
        target = {"kind": "Node", "name": "nobody"}
        body = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": target}
        await self.post(f"{PODS}/{name}/binding", body)

    async def all(self, action: Callable[[str], Awaitable[None]], names: list[str], workers: int = WORKERS) -> float:
        """Do something for every name, some at a time; gives how many a second."""
        waiting = iter(names)

        async def work() -> None:
            for name in waiting:
                await action(name)

        started = time.perf_counter()
        await asyncio.gather(*(work() for _ in range(workers)))
        return len(names) / (time.perf_counter() - started)

    async def paced(self, names: list[str], rate: float) -> list[float]:
        """Create pods at a rate; gives how long each took to reach the watcher, in seconds."""
        started = time.perf_counter()
        tasks = []
        for number, name in enumerate(names):
            await asyncio.sleep(max(0.0, started + number / rate - time.perf_counter()))
            tasks.append(asyncio.create_task(self.create(name)))
        await asyncio.gather(*tasks)
        await asyncio.sleep(2.0)  # what has not arrived by then counts as that late
        now = time.perf_counter()
        return sorted(self.seen.get(name, now) - self.sent[name] for name in names)


class _Name(msgspec.Struct):
    name: str = ""


class _Object(msgspec.Struct):
    metadata: _Name


class _Event(msgspec.Struct):
    object: _Object


def pod(name: str) -> dict[str, Any]:
    """Give a pod of ordinary size."""
    container = {
        "name": "main",
        "image": "busybox:1.36",
        "command": ["sleep", "100"],
        "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}],
        "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}},
    }
    metadata = {"name": name, "labels": {"app": "bench"}, "annotations": {"bench": "yes"}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"schedulerName": "nobody", "containers": [container]},
    }


def session(kubeconfig: Path) -> tuple[aiohttp.ClientSession, str]:
    """Give a session for a kubeconfig with a token."""
    document = yaml.safe_load(kubeconfig.read_text())
    cluster = document["clusters"][0]["cluster"]
    token = next(each["user"]["token"] for each in document["users"] if "token" in each["user"])
    context = ssl.create_default_context()
    if "certificate-authority-data" in cluster:
        context.load_verify_locations(cadata=base64.b64decode(cluster["certificate-authority-data"]).decode())
    else:
        context.load_verify_locations(cafile=cluster["certificate-authority"])
    connector = aiohttp.TCPConnector(ssl=context, limit=64)
    return aiohttp.ClientSession(connector=connector, headers={"Authorization": f"Bearer {token}"}), cluster["server"]
