"""The process that serves the page inside a cluster: it is told everything by the scheduler that started it, and ends with it.

Started with `python -m pumice.web.inside`; what it is told comes by its standard input.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
from typing import TYPE_CHECKING, Any, Final

import msgspec

from pumice.api import decoding, kinds
from pumice.cache import reflector
from pumice.kube import errors
from pumice.kube.access import connection
from pumice.kube.calls.client import Client
from pumice.server.admission import certificate_sources
from pumice.server.flags import addresses
from pumice.server.logs import logs
from pumice.server.threads import interpreter, together
from pumice.study import live
from pumice.study.state import StudyError
from pumice.web import questions, relaying, showing_certificates
from pumice.web.access import Access
from pumice.web.cluster import Cluster
from pumice.web.reviewing import Reviewed
from pumice.web.reviews import ApiReviews
from pumice.web.serving import Server

if TYPE_CHECKING:
    from pumice.server.logs.logs import Log
    from pumice.web.relaying import Begin

QPS: Final = 50.0
"""Requests to the API server a second: reviews, and nothing else."""
_LARGEST: Final = 1 << 20  # bytes that are read ahead


class CannotServeError(Exception):
    """Something that keeps the page from being served, in words for the operator."""


class Taking:
    """Takes what the scheduler tells."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._read: dict[
            relaying.Identity, str
        ] = {}  # versions of what was read by ourselves; what is told may be older

    def take(self, message: relaying.Message) -> None:
        """Take one message."""
        match message:
            case questions.Feed():
                for change in message.changes:
                    self._change(*change)
            case questions.About():
                self._cluster.explain_with(msgspec.structs.replace(message, source=self._cluster.source))
            case relaying.Told():
                self._cluster.told(message.facts)

    def _change(self, api_version: str, name: str, event_type: Any, raw: bytes) -> None:
        kind = kinds.find(api_version, name)
        if kind is None:
            return
        found = decoding.decode_json(kind, raw)
        metadata = found.metadata
        identity = (api_version, name, metadata.namespace, metadata.name)
        known = self._read.get(identity, "")
        if known and reflector.follows(known, metadata.resource_version):
            return
        self._read.pop(identity, None)
        self._cluster.objects.feed(kind, event_type, found, raw)

    def read(self, access: live.Access) -> None:
        """Read the cluster as it is, because the scheduler does not tell the past."""
        state = live.read(access)
        for kind, found in state.objects:
            job = state.jobs.get(found.metadata.uid) if kind is kinds.JOB else None
            identity = (kind.api_version, kind.name, found.metadata.namespace, found.metadata.name)
            self._read[identity] = found.metadata.resource_version
            self._cluster.objects.feed(kind, "ADDED", found, b"" if job is None else msgspec.json.encode(job))


async def live_with(reader: asyncio.StreamReader) -> int:
    """Serve until the scheduler ends; returns the exit status."""
    begin = await _next(reader)
    if not isinstance(begin, relaying.Begin):
        return 1
    log = logs.Log(begin.verbosity, begin.logging_format)
    logs.adopt_libraries(log)
    try:
        async with Client(
            connection.load(begin.kubeconfig, master=begin.master, in_cluster_first=True), qps=QPS, burst=round(QPS)
        ) as client:
            await _serve(reader, begin, client, log)
    except (CannotServeError, StudyError, errors.KubeError, certificate_sources.CertificateError) as error:
        return _refuse(log, error)
    return 0


def _refuse(log: Log, error: Exception) -> int:
    log.error("the page cannot be served", problem=str(error))
    return 1


async def _serve(reader: asyncio.StreamReader, begin: Begin, client: Client, log: Log) -> None:
    cluster = Cluster(f"cluster {client.connection.server}")
    cluster.is_live = True
    taking = Taking(cluster)
    if begin.reads_first:
        await asyncio.to_thread(taking.read, live.Access(kubeconfig=begin.kubeconfig, master=begin.master))
    reviews = ApiReviews(client)
    access = Access(reviews, cluster.objects.counted, begin.policy)
    server = Server(cluster, Reviewed(reviews, access, begin.hosts))
    shown = showing_certificates.Shown(begin, log, server.part_with_certificates)
    keeper = showing_certificates.keeper(begin, shown, log)
    await keeper.start()
    try:
        bound = await server.start(addresses.parse(begin.address), shown.context)
    except OSError as error:
        raise CannotServeError(f"cannot serve the page on {begin.address}: {error.strerror or error}") from error
    log.info("serving", what="page", address=str(bound), tls=True)
    serving = cluster.run(server.stream.tell, lambda: server.stream.viewers > 0)
    try:
        await together.until_one_ends([access.run(), keeper.run(), serving, _take(reader, taking)])
    finally:
        await server.stop()
        await cluster.close()


async def _take(reader: asyncio.StreamReader, taking: Taking) -> None:
    """Take messages until there are no more."""
    while (message := await _next(reader)) is not None:
        taking.take(message)
        await asyncio.sleep(0)


async def _next(reader: asyncio.StreamReader) -> relaying.Message | None:
    try:
        head = await reader.readexactly(questions.HEAD)
        return relaying.MESSAGES.decode(await reader.readexactly(questions.length(head)))
    except asyncio.IncompleteReadError:
        return None


async def main() -> int:
    """Serve what the standard input tells."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=_LARGEST)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    serving = asyncio.ensure_future(live_with(reader))
    loop.add_signal_handler(signal.SIGTERM, serving.cancel)
    with contextlib.suppress(asyncio.CancelledError):
        return await serving
    return 0


if __name__ == "__main__":
    interpreter.tune()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for whoever started it, who closes the pipe
    sys.exit(asyncio.run(main()))
