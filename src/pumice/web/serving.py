"""The server of the page: its files, the scene, the stream of changes, one job or node, and answers to questions."""

from __future__ import annotations

import asyncio
import gzip
import hashlib
from http import HTTPStatus
from importlib import resources
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

import msgspec
from aiohttp import web

from pumice.server import serving
from pumice.web import guarding, questions
from pumice.web.guarding import Guard, refused
from pumice.web.streaming import Stream

if TYPE_CHECKING:
    import ssl

    from pumice.server.flags.addresses import Address
    from pumice.web.cluster import Cluster

MOST_BODY: Final = 1 << 19
MOST_CONNECTIONS: Final = 512
FRESH: Final = 5.0
"""Seconds for which an answer is given again to whoever asks the same."""
MOST_ANSWERS: Final = 64
PAGE: Final = "page"
TYPES: Final = {
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "svg": "image/svg+xml",
}


class File:
    """A file of the page, packed once."""

    def __init__(self, name: str, data: bytes) -> None:
        self.type = TYPES[name.rpartition(".")[2]]
        self.packed = gzip.compress(data, mtime=0)
        self.tag = f'"{hashlib.sha256(data).hexdigest()[:20]}"'

    def answer(self, request: web.Request) -> web.Response:
        """Give it, unless the browser has it."""
        headers = {"ETag": self.tag, "Cache-Control": "no-cache", "Content-Type": self.type}
        if request.headers.get("If-None-Match") == self.tag:
            return web.Response(status=HTTPStatus.NOT_MODIFIED, headers=headers)
        return web.Response(body=self.packed, headers={**headers, "Content-Encoding": "gzip"})


def page_files() -> dict[str, File]:
    """Read the files of the page."""
    folder = resources.files("pumice.web") / PAGE
    return {
        each.name: File(each.name, each.read_bytes())
        for each in folder.iterdir()
        if each.name.rpartition(".")[2] in TYPES
    }


class Server:
    """Serves one cluster to all who may look."""

    def __init__(self, cluster: Cluster, guard: Guard) -> None:
        self._cluster = cluster
        self._guard = guard
        self._files = page_files()
        self.stream = Stream(cluster.board)
        self._scene: tuple[int, bytes] = (-1, b"")
        self._answers: dict[questions.Question, tuple[float, asyncio.Task[questions.Answer]]] = {}
        app = web.Application(middlewares=[guard.check], client_max_size=MOST_BODY)
        app.router.add_get("/", self._index)
        app.router.add_get("/page/{name}", self._file)
        app.router.add_post(guarding.OPEN, guard.sign_in)
        app.router.add_get("/api/scene", self._whole)
        app.router.add_get("/api/changes", self.stream.watch)
        app.router.add_get("/api/job", self._job)
        app.router.add_get("/api/node", self._node)
        app.router.add_get("/api/explain", self._explain)
        app.router.add_get("/api/policy", self._policy)
        app.router.add_post("/api/what-if", self._what_if)
        self._listener = serving.Listener(app, most=MOST_CONNECTIONS)

    async def start(self, address: Address, context: ssl.SSLContext | None = None) -> Address:
        """Listen; returns where."""
        bound = await self._listener.start(address, context)
        self._guard.listens(address.host or bound.host, bound.port)
        return bound

    async def stop(self) -> None:
        """Stop listening and close what is open."""
        await self._listener.cleanup()

    # -- files -------------------------------------------------------------------------------------------------

    async def _index(self, request: web.Request) -> web.StreamResponse:
        return self._files["index.html"].answer(request)

    async def _file(self, request: web.Request) -> web.StreamResponse:
        found = self._files.get(request.match_info["name"])
        return found.answer(request) if found is not None else refused(HTTPStatus.NOT_FOUND, "no such file of the page")

    # -- rows --------------------------------------------------------------------------------------------------

    async def _whole(self, request: web.Request) -> web.Response:
        board, text = self._cluster.board, request.query.get("at", "")
        if text:
            if not (text.isascii() and text.isdigit() and len(text) < 18):
                return refused(HTTPStatus.BAD_REQUEST, "at: a moment is a whole number of microseconds")
            return _packed(gzip.compress(board.at(int(text)), 1))
        if self._scene[0] != board.version:
            self._scene = (board.version, gzip.compress(board.whole(), 1))
        return _packed(self._scene[1])

    async def _job(self, request: web.Request) -> web.Response:
        name = request.query.get("name", "")
        namespace, _, group = name.partition("/")
        row = self._cluster.tracker.job((namespace, group))
        if row is None:
            return refused(HTTPStatus.NOT_FOUND, f"there is no job {name} any more")
        pods = list(self._cluster.tracker.pods_of(group=(namespace, group)))
        return _json({"row": row, "pods": pods, "moments": self._cluster.board.moments(name)})

    async def _node(self, request: web.Request) -> web.Response:
        name = request.query.get("name", "")
        row = self._cluster.tracker.node(name)
        if row is None:
            return refused(HTTPStatus.NOT_FOUND, f"there is no node {name} any more")
        return _json({"row": row, "pods": list(self._cluster.tracker.pods_of(node=name))})

    # -- questions ---------------------------------------------------------------------------------------------

    async def _explain(self, request: web.Request) -> web.Response:
        what, name = request.query.get("what", ""), request.query.get("name", "")
        try:
            search = request.query.get("search") != "no"
            question = msgspec.convert(
                {"type": "explain", "what": what, "name": name, "search": search}, questions.Explain
            )
        except msgspec.ValidationError as error:
            return refused(HTTPStatus.BAD_REQUEST, str(error))
        return await self._answered(question)

    async def _policy(self, _request: web.Request) -> web.Response:
        return await self._answered(questions.Policy())

    async def _what_if(self, request: web.Request) -> web.Response:
        try:
            question = msgspec.json.decode(await request.read(), type=questions.WhatIf)
        except msgspec.MsgspecError as error:
            return refused(HTTPStatus.BAD_REQUEST, f"the question cannot be read: {error}")
        if not (question.manifests or question.drain or question.config):
            return refused(
                HTTPStatus.BAD_REQUEST, "say what is to change: manifests, a node to drain, or a configuration"
            )
        return await self._answered(question)

    async def _answered(self, question: questions.Question) -> web.Response:
        """Answer, with the answer to somebody who asked the same a moment ago if there is one."""
        now = monotonic()
        known = self._answers.get(question)
        if known is None or (known[1].done() and known[0] < now - FRESH):
            self._answers = {
                key: each for key, each in self._answers.items() if not each[1].done() or each[0] >= now - FRESH
            }
            if len(self._answers) >= MOST_ANSWERS:
                return refused(HTTPStatus.SERVICE_UNAVAILABLE, "too many questions at once; try again in a moment")
            known = self._answers[question] = (now, asyncio.create_task(self._cluster.ask(question)))
        answer = await asyncio.shield(known[1])
        if answer.problem:
            return _json({"problem": answer.problem})  # an answer like any other: the request was in order
        return _packed(gzip.compress(answer.body, 1))


def _json(value: Any) -> web.Response:
    return web.Response(body=msgspec.json.encode(value), content_type="application/json")


def _packed(data: bytes) -> web.Response:
    return web.Response(body=data, headers={"Content-Encoding": "gzip", "Content-Type": "application/json"})
