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

from pumice.api import kinds
from pumice.server import serving
from pumice.web import cluster, guarding, questions
from pumice.web.guarding import Guard, refused
from pumice.web.sight import EVERYTHING
from pumice.web.streaming import Stream
from pumice.web.views import Views

if TYPE_CHECKING:
    import ssl

    from pumice.server.flags.addresses import Address
    from pumice.study.following.scene import PodRow
    from pumice.web.cluster import Cluster
    from pumice.web.sight import Sight

MOST_BODY: Final = 1 << 19
MOST_CONNECTIONS: Final = 512
FRESH: Final = 5.0
"""Seconds for which an answer is given again to whoever asks the same."""
MOST_ANSWERS: Final = 64
MOST_SCENES: Final = 16
"""Of one version, for people who may see different things."""
PAGE: Final = "page"
TYPES: Final = {
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "svg": "image/svg+xml",
}


_Asked = tuple[questions.Question, "Sight", int | None]


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

    def __init__(self, shown: Cluster, guard: Guard) -> None:
        self._cluster = shown
        self._guard = guard
        self._files = page_files()
        self._views = Views(
            shown.board,
            lambda: shown.objects.namespaces,
            lambda namespace: shown.objects.counted(kinds.POD).get(namespace, 0),
        )
        self.stream = Stream(self._views)
        self._scenes: dict[Sight, bytes] = {}
        self._scenes_of = -1
        self._answers: dict[_Asked, tuple[float, asyncio.Task[questions.Answer]]] = {}
        app = web.Application(middlewares=[guard.check], client_max_size=MOST_BODY)
        app.router.add_get("/", self._index)
        app.router.add_get("/page/{name}", self._file)
        app.router.add_get(guarding.OPEN, self._session)
        app.router.add_post(guarding.OPEN, guard.sign_in)
        app.router.add_delete(guarding.OPEN, guard.sign_out)
        app.router.add_get("/api/scene", self._whole)
        app.router.add_get("/api/changes", self._changes)
        app.router.add_get("/api/job", self._job)
        app.router.add_get("/api/node", self._node)
        app.router.add_get("/api/shares", self._shares)
        app.router.add_get("/api/explain", self._explain)
        app.router.add_get("/api/policy", self._policy)
        app.router.add_post("/api/what-if", self._what_if)
        self._listener = serving.Listener(app, most=MOST_CONNECTIONS, spared=self.stream.watchers.__contains__)

    async def start(self, address: Address, context: ssl.SSLContext | None = None) -> Address:
        """Listen; returns where."""
        bound = await self._listener.start(address, context)
        self._guard.listens(address.host or bound.host, bound.port)
        return bound

    async def stop(self) -> None:
        """Stop listening and close what is open."""
        await self._listener.cleanup()

    def part_with_certificates(self) -> None:
        """Close the connections of whoever showed a certificate: they may do so again."""
        self._listener.close_those(lambda transport: bool(transport.get_extra_info("peercert")))

    # -- files -------------------------------------------------------------------------------------------------

    async def _index(self, request: web.Request) -> web.StreamResponse:
        return self._files["index.html"].answer(request)

    async def _file(self, request: web.Request) -> web.StreamResponse:
        found = self._files.get(request.match_info["name"])
        return found.answer(request) if found is not None else refused(HTTPStatus.NOT_FOUND, "no such file of the page")

    # -- rows --------------------------------------------------------------------------------------------------

    async def _session(self, request: web.Request) -> web.Response:
        looker = self._guard.whose(request)
        await looker.arrive()
        return _json({"user": looker.name, "notes": looker.notes()})

    async def _changes(self, request: web.Request) -> web.StreamResponse:
        return await self.stream.watch(request, self._guard.whose(request))

    async def _whole(self, request: web.Request) -> web.Response:
        board, moment, looker = self._cluster.board, self._moment(request), self._guard.whose(request)
        await looker.arrive()
        sight = looker.sight()
        if moment is not None:
            return _packed(gzip.compress(self._views.past(moment, sight).data(), 1))
        if self._scenes_of != board.version or len(self._scenes) >= MOST_SCENES:
            self._scenes, self._scenes_of = {}, board.version
        if sight not in self._scenes:
            self._scenes[sight] = gzip.compress(self._views.seen(board.whole(), sight).data(), 1)
        return _packed(self._scenes[sight])

    async def _job(self, request: web.Request) -> web.Response:
        name, sight = request.query.get("name", ""), self._guard.whose(request).sight()
        namespace, _, group = name.partition("/")
        moment = self._moment(request)
        if moment is not None and sight.job(namespace, group):
            then = self._pods_then(moment, sight, group=(namespace, group))
            return _json({**then, "moments": self._cluster.board.moments(name, moment)})
        row = self._cluster.tracker.job((namespace, group)) if sight.job(namespace, group) else None
        if row is None:
            return refused(HTTPStatus.NOT_FOUND, f"there is no job {name} any more, or you may not see it")
        pods = list(self._cluster.tracker.pods_of(group=(namespace, group))) if sight.pod(namespace) else []
        reason = row.reason if sight.is_whole else self._views.hider(sight).text(row.reason)
        row = msgspec.structs.replace(row, reason=reason)
        return _json({"row": row, "pods": pods, "moments": self._cluster.board.moments(name)})

    async def _node(self, request: web.Request) -> web.Response:
        name, sight = request.query.get("name", ""), self._guard.whose(request).sight()
        moment = self._moment(request)
        if moment is not None and sight.nodes:
            return _json(self._pods_then(moment, sight, node=name))
        row = self._cluster.tracker.node(name) if sight.nodes else None
        if row is None:
            return refused(HTTPStatus.NOT_FOUND, f"there is no node {name} any more, or you may not see it")
        there = list(self._cluster.tracker.pods_of(node=name))
        return _json({"row": row, **_seen_pods(there, sight)})

    def _pods_then(
        self, moment: int, sight: Sight, *, group: tuple[str, str] | None = None, node: str = ""
    ) -> dict[str, Any]:
        before = self._cluster.board.pods_at(moment)
        return _seen_pods(list(self._cluster.tracker.pods_then(before, group=group, node=node)), sight)

    # -- questions ---------------------------------------------------------------------------------------------

    async def _shares(self, request: web.Request) -> web.Response:
        """Say how queues stood at a moment; how they stand now is among the facts of the scene."""
        moment, sight = self._moment(request), self._guard.whose(request).sight()
        if moment is None:
            return refused(HTTPStatus.BAD_REQUEST, "at: say of which moment")
        answer = await self._asked(questions.Shares(), EVERYTHING, moment)
        return _json(self._views.facts(cluster.share_facts(answer), sight))

    async def _explain(self, request: web.Request) -> web.Response:
        what, name = request.query.get("what", ""), request.query.get("name", "")
        try:
            search = request.query.get("search") != "no"
            question = msgspec.convert(
                {"type": "explain", "what": what, "name": name, "search": search}, questions.Explain
            )
        except msgspec.ValidationError as error:
            return refused(HTTPStatus.BAD_REQUEST, str(error))
        sight = self._guard.whose(request).sight()
        if not sight.is_whole and not sight.about(what, name):
            return refused(HTTPStatus.NOT_FOUND, f"there is no {what} {name}, or you may not see it")
        return await self._answered(question, sight, self._moment(request))

    async def _policy(self, request: web.Request) -> web.Response:
        sight = self._guard.whose(request).sight()
        if not sight.policy:
            return refused(HTTPStatus.FORBIDDEN, "you may not read the ConfigMap that the policy stands in")
        return await self._answered(questions.Policy(), sight, self._moment(request))

    async def _what_if(self, request: web.Request) -> web.Response:
        try:
            question = msgspec.json.decode(await guarding.body(request, MOST_BODY), type=questions.WhatIf)
        except TimeoutError:
            return refused(HTTPStatus.REQUEST_TIMEOUT, f"the question is not there after {guarding.PATIENCE:g} s")
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            return refused(HTTPStatus.BAD_REQUEST, f"the question cannot be read: {error}")
        if not (question.manifests or question.drain or question.config):
            return refused(
                HTTPStatus.BAD_REQUEST, "say what is to change: manifests, a node to drain, or a configuration"
            )
        sight = self._guard.whose(request).sight()
        lacking = _lacking(question, sight)
        if lacking:
            return refused(HTTPStatus.FORBIDDEN, lacking)
        return await self._answered(question, sight, self._moment(request))

    async def _answered(self, question: questions.Question, sight: Sight, moment: int | None) -> web.Response:
        answer = await self._asked(question, sight, moment)
        if answer.problem:
            return _json({"problem": answer.problem})  # an answer like any other: the request was in order
        return _packed(gzip.compress(answer.body, 1))

    async def _asked(self, question: questions.Question, sight: Sight, moment: int | None) -> questions.Answer:
        """Ask, or take the answer to somebody who asked the same a moment ago, and may see the same, if there is one."""
        now, asked = monotonic(), (question, sight, moment)
        known = self._answers.get(asked)
        if known is None or (known[1].done() and known[0] < now - FRESH):
            self._answers = {
                key: each for key, each in self._answers.items() if not each[1].done() or each[0] >= now - FRESH
            }
            if len(self._answers) >= MOST_ANSWERS:
                return questions.Answer(problem="too many questions at once; try again in a moment")
            known = self._answers[asked] = (now, asyncio.create_task(self._cluster.ask(*asked)))
        return await asyncio.shield(known[1])

    def _moment(self, request: web.Request) -> int | None:
        """Read the moment that is asked about, as near as it is known; None for now."""
        text = request.query.get("at", "")
        if text and not (text.isascii() and text.isdigit() and len(text) < 18):
            raise web.HTTPBadRequest(reason="at: a moment is a whole number of microseconds")
        return self._cluster.board.nearest(int(text)) if text else None


def _seen_pods(there: list[PodRow], sight: Sight) -> dict[str, Any]:
    """Give the pods that may be seen, and how many others there are."""
    shown = [pod for pod in there if sight.pod(pod.namespace)]
    return {"pods": shown, "elsewhere": len(there) - len(shown)}


def _lacking(question: questions.WhatIf, sight: Sight) -> str:
    """Say what somebody may not see that a question is about, if anything."""
    if question.config and not sight.policy:
        return "you may not read the ConfigMap that the policy stands in, which this would be compared with"
    if question.drain and not sight.nodes:
        return "you may not list nodes"
    seen = (sight.groups, sight.native_groups)
    return "" if any(each is None or each for each in seen) else "you may not list the jobs that this would change"


def _json(value: Any) -> web.Response:
    return web.Response(body=msgspec.json.encode(value), content_type="application/json")


def _packed(data: bytes) -> web.Response:
    return web.Response(body=data, headers={"Content-Encoding": "gzip", "Content-Type": "application/json"})
