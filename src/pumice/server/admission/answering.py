"""The HTTPS server: one path for each rule, bodies of bounded size, and an answer for whatever comes."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any, Final

import msgspec
from aiohttp import web

from pumice.admission import reviewing
from pumice.server.logs import logs

if TYPE_CHECKING:
    from collections.abc import Callable

    from pumice.admission.requests import RuleSettings
    from pumice.admission.reviewing import Question
    from pumice.admission.rules import Rule
    from pumice.admission.surroundings import Surroundings
    from pumice.server.logs.logs import Log

LARGEST_BODY: Final = 3 << 20
LARGE: Final = 256 << 10  # what is larger is judged beside the loop, so that nobody else waits for it
_JSON: Final = "application/json"
_ENCODER: Final = msgspec.json.Encoder()


class Answering:
    """Answers reviews by the rules, over what is known of the cluster.

    `waits` says why nothing can be answered yet, or nothing; `aside` which paths are left to somebody else.
    """

    def __init__(
        self,
        served: tuple[Rule, ...],
        around: Surroundings,
        settings: RuleSettings,
        log: Log,
        *,
        left_alone: frozenset[str] = frozenset(),
        waits: Callable[[], str] = lambda: "",
        aside: Callable[[str], bool] = lambda _: False,
    ) -> None:
        self._rules = {rule.path: rule for rule in served}
        self._aside = aside
        self._around = around
        self.settings = settings
        self._log = log
        self._left_alone = left_alone
        self.waits = waits

    def app(self) -> web.Application:
        """Give the application; at a path that is not served everything is let in, for an older configuration may still ask there."""
        made = web.Application(client_max_size=LARGEST_BODY)
        made.router.add_post("/{path:.*}", self._answer)
        return made

    async def _answer(self, request: web.Request) -> web.Response:
        if request.content_type != _JSON:
            return web.Response(status=415, text=f"the content type is {request.content_type}, and must be {_JSON}")
        if reason := self.waits():
            return web.Response(status=503, text=f"no verdict yet: {reason}")
        body = await request.read()
        if len(body) > LARGE:
            return await asyncio.to_thread(self.judged, request.path, body)
        return self.judged(request.path, body)

    def judged(self, path: str, body: bytes) -> web.Response:
        """Answer a review."""
        try:
            question = reviewing.read(body)
        except reviewing.ReviewError as error:
            return web.Response(status=400, text=str(error))
        rule = self._rules.get(path)
        if rule is None or self._aside(path) or question.request.namespace in self._left_alone:
            return _response(reviewing.allowed(question.uid))
        return self._answered(rule, question)

    def _answered(self, rule: Rule, question: Question) -> web.Response:
        asked = question.request
        began = time.perf_counter()
        try:
            review = reviewing.answer(rule, question, self._around, self.settings)
        except Exception as error:  # noqa: BLE001  the failurePolicy of the webhook decides about this object, and the next one is answered
            self._log.broke("a rule broke down", error, path=rule.path, object=f"{asked.namespace}/{asked.name}")
            return web.Response(
                status=500, text=f"the rules of {rule.path} broke down; the log of pumice admission tells where"
            )
        self._tell(rule, question, review, time.perf_counter() - began)
        return _response(review)

    def _tell(self, rule: Rule, question: Question, review: dict[str, Any], seconds: float) -> None:
        response, asked = review["response"], question.request
        level = logs.CYCLES if response["allowed"] else logs.DECISIONS
        if self._log.shows(level):
            fields = {
                "path": rule.path,
                "operation": asked.operation,
                "object": f"{asked.namespace}/{asked.name}".lstrip("/"),
            }
            if not response["allowed"]:
                fields["problem"] = response["status"]["message"]
            self._log.detail(
                level, "let in" if response["allowed"] else "refused", **fields, ms=round(seconds * 1000, 2)
            )


def _response(review: dict[str, Any]) -> web.Response:
    return web.Response(body=_ENCODER.encode(review), content_type=_JSON)
