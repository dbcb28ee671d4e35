"""Looks at a scheduler from outside: a watch that notes when pods are seen bound, and the processor time of its process."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from bench.cluster import load
from pumice.api import kinds
from pumice.kube import errors

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from pumice.kube.calls.client import Client


class _Metadata(msgspec.Struct):
    name: str = ""


class _Pod(msgspec.Struct):
    metadata: _Metadata = msgspec.field(default_factory=_Metadata)


class _Line(msgspec.Struct):
    type: str = ""
    object: _Pod = msgspec.field(default_factory=_Pod)


_LINES = msgspec.json.Decoder(_Line)


class Bound:
    """When each pod was first seen on a node."""

    def __init__(self) -> None:
        self.at: dict[str, float] = {}
        self._more = asyncio.Event()

    def see(self, name: str) -> None:
        """Note a pod that has a node."""
        if name and name not in self.at:
            self.at[name] = time.perf_counter()
            self._more.set()

    async def reach(self, count: int, patience: float) -> None:
        """Return when so many pods were seen, or raise once nothing has been seen for too long."""
        while len(self.at) < count:
            self._more.clear()
            try:
                await asyncio.wait_for(self._more.wait(), patience)
            except TimeoutError:
                raise RuntimeError(f"{len(self.at)} of {count} pods were bound after {patience:.0f} s") from None


async def _read(client: Client, bound: Bound) -> None:
    query: dict[str, str | int | bool] = {"fieldSelector": "spec.nodeName!=", "resourceVersion": "0"}
    async for line in client.stream(kinds.POD, namespace=load.NAMESPACE, query=query, silence=600):
        seen = _LINES.decode(line)
        if seen.type == "ADDED":
            bound.see(seen.object.metadata.name)


@contextlib.asynccontextmanager
async def watched(client: Client) -> AsyncIterator[Bound]:
    """Watch pods that have a node, from now on."""
    bound = Bound()

    async def follow() -> None:
        # A server with more to do than it can ends watches that are not read fast enough: what they missed is in the list that the next one begins with.
        while True:
            with contextlib.suppress(errors.KubeError):
                await _read(client, bound)

    watch = asyncio.create_task(follow())
    try:
        await asyncio.sleep(1)
        yield bound
    finally:
        watch.cancel()
        await asyncio.gather(watch, return_exceptions=True)


def processor_seconds(pid: int) -> float:
    """Return the processor time that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


_COUNTED = re.compile(
    r'^apiserver_request_total\{.*?resource="([^"]*)".*?subresource="([^"]*)".*?verb="([^"]*)".*?\} (\S+)$',
    re.MULTILINE,
)
_WRITES = frozenset({"POST", "PUT", "PATCH", "APPLY", "DELETE", "DELETECOLLECTION"})


async def writes(client: Client) -> Counter[str]:
    """Count what the API server was asked to write, by verb and resource."""
    found = Counter[str]()
    for resource, subresource, verb, count in _COUNTED.findall((await client.request("GET", "/metrics")).decode()):
        if verb in _WRITES:
            found[f"{verb} {resource}{'/' if subresource else ''}{subresource}"] += int(float(count))
    return found
