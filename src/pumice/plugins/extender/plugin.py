"""extender: a server of somebody's own takes part in decisions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np

from pumice.framework.configuration import Configured, Settings, settings
from pumice.framework.extensions import ABSTAIN, PERMIT, Vote, reject
from pumice.framework.plugin import Plugin
from pumice.framework.reasons import Code
from pumice.plugins.extender import exchange, shapes
from pumice.plugins.extender.exchange import ExchangeError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pumice.api import documents
    from pumice.framework.evaluation import Floats
    from pumice.framework.reasons import ReasonVector
    from pumice.framework.runs import Run
    from pumice.framework.session import Session
    from pumice.framework.subject import Subject
    from pumice.model.job import Job
    from pumice.model.nodes import NodeRecord, Nodes
    from pumice.model.queue import Queue
    from pumice.model.task import Task

_CODES: Final = {2: Code.UNSCHEDULABLE, 3: Code.UNRESOLVABLE}  # every other one stands for an error
_TEXTS: Final = 200  # different texts of refusals that are told apart
_LONGEST: Final = 200
_MANAGED: Final = "extender.managedResources"
_PREFIX: Final = "extender.urlPrefix"


def _verb(point: str, what: str) -> Any:
    return settings.text(
        f"extender.{point}Verb", "", help=f"the path at which the server {what}; empty: it is not asked"
    )


class ExtenderSettings(Settings):
    """Where the server is, and what it is asked."""

    prefix = settings.text(_PREFIX, "", help="the address of the server, such as http://extender.ns:8713/api")
    timeout = settings.period(
        "extender.httpTimeout", 1_000_000, minimum=1, replacement=1_000_000, help="how long an answer may take"
    )
    ignorable = settings.truth(
        "extender.ignorable", default=False, help="whether a server that is away refuses nothing"
    )
    managed = settings.anything(
        _MANAGED, "list", (), help="only pods that name one of these resources concern the server"
    )
    opens = _verb("onSessionOpen", "hears that a cycle begins, with everything there is")
    closes = _verb("onSessionClose", "hears that a cycle ends")
    predicate = _verb("predicate", "says whether a node takes a pod")
    prioritize = _verb("prioritize", "scores nodes for a pod")
    preemptable = _verb("preemptable", "says who may go for a claimant of the same queue")
    reclaimable = _verb("reclaimable", "says who may go for a claimant of another queue")
    overused = _verb("queueOverused", "says whether a queue has enough")
    enqueueable = _verb("jobEnqueueable", "votes on letting a job in")
    enqueued = _verb("jobEnqueued", "hears of a job that was let in")
    ready = _verb("jobReady", "says whether a job may start")
    allocates = _verb("allocateFunc", "hears of a pod that is placed, and may object")
    deallocates = _verb("deallocateFunc", "hears of a pod that is taken back or evicted")


class Extender(Plugin):
    """Ask a server, by HTTP, at the points for which a verb is set.

    Each question is a POST of JSON to `extender.urlPrefix` and the verb, with Volcano's field names, and waits for the answer: a cycle takes as long as its questions, and what the server says cannot be replayed. After three failures in a cycle it is not asked again in that cycle.
    A server that is away refuses everything it is asked about; with `extender.ignorable` it refuses nothing, but names no victims. (With `compatibility: volcano` JobReady is the other way round, as there, and a server that does not hear of the beginning of a cycle is not asked in it.) Only a running scheduler asks; explanations, scenarios and replays do not.
    """

    name = "extender"
    points = frozenset(
        {
            "Predicate",
            "NodeOrder",
            "Preemptable",
            "Reclaimable",
            "JobEnqueueable",
            "JobEnqueued",
            "Overused",
            "JobReady",
        }
    )
    pure = False
    settings = Configured(ExtenderSettings)
    asker: ClassVar[exchange.Asker] = exchange.Nobody()

    @classmethod
    def objections(cls, arguments: Mapping[str, Any]) -> Iterable[tuple[documents.Path, str]]:
        """Refuse an address that is none, and resources that are not names."""
        prefix = arguments.get(_PREFIX) or ""
        verbs = sorted(key for key, value in arguments.items() if key.endswith("Verb") and value)
        if prefix and not prefix.startswith(("http://", "https://")):
            yield (_PREFIX,), f"expected an address that begins with http:// or https://, found {prefix[:60]!r}"
        elif verbs and not prefix:
            yield (verbs[0],), f"is of no use without {_PREFIX}"
        for index, name in enumerate(arguments.get(_MANAGED) or ()):
            if not isinstance(name, str):
                yield (_MANAGED, index), f"expected the name of a resource, found {name!r}"

    def open(self, session: Session) -> None:
        """Register wherever a verb is set."""
        told = self.settings
        self._session = session
        self._exchange = exchange.Exchange(self.asker, told.prefix, told.timeout / 1_000_000)
        self._managed = frozenset(told.managed or ())
        self._as_volcano = session.configuration.compatibility == "volcano"
        self._reasons: dict[tuple[int, str], int] = {}
        if told.opens and not self._hears_of_beginning(session):
            return
        self._register(session)

    def _hears_of_beginning(self, session: Session) -> bool:
        """Tell the server that a cycle begins; a refusal matters only where Volcano's result is wanted, else each question is answered on its own."""
        try:
            self._exchange.tell(self.settings.opens, shapes.everything(session))
        except ExchangeError as error:
            session.record.say(self.name, f"{error}")
            return self.settings.ignorable or not self._as_volcano
        return True

    def _register(self, session: Session) -> None:
        told = self.settings
        if told.predicate:
            session.predicate.add(self.fits)
        if told.prioritize:
            session.score.add(self.score)
        if told.preemptable:
            session.preemptable.add(lambda claimant, tasks: self._victims(told.preemptable, claimant, tasks))
        if told.reclaimable:
            session.reclaimable.add(lambda claimant, tasks: self._victims(told.reclaimable, claimant, tasks))
        if told.enqueueable:
            session.job_enqueueable.add(self.vote)
        if told.enqueued:
            session.job_enqueued.add(self.hears)
        if told.overused:
            session.overused.add(self.has_enough)
        if told.ready:
            session.job_ready.add(self.is_ready)
        if told.allocates or told.deallocates:
            session.add_handler(self.follow, may_refuse=True)

    def close(self, session: Session) -> None:
        """Tell the server that the cycle ends."""
        if self.settings.closes:
            try:
                self._exchange.tell(self.settings.closes, {})
            except ExchangeError as error:
                session.record.say(self.name, f"{error}")

    # -- pods and nodes ----------------------------------------------------------------------------------------

    def _is_concerned(self, task: Task) -> bool:
        if not self._managed:
            return True
        spec = task.pod.spec
        return any(
            name in self._managed
            for container in (*spec.containers, *spec.init_containers)
            for name in (*container.resources.requests, *container.resources.limits)
        )

    def fits(self, subject: Subject, nodes: Nodes) -> ReasonVector | None:
        """Ask about one node after the other."""
        if not self._is_concerned(subject.task):
            return None
        asked = shapes.task(subject.task)
        return np.array([self._refusal(asked, record) for record in nodes.records()], dtype=np.int16)

    def _refusal(self, asked: shapes.Shape, record: NodeRecord) -> int:
        try:
            question = {"task": asked, "node": shapes.node(self._session, record)}
            answer = self._exchange.ask(self.settings.predicate, question)
        except ExchangeError as error:
            return 0 if self.settings.ignorable else self._reason(1, str(error))
        text, code = answer.get("status") or "", answer.get("code")
        return self._reason(code if isinstance(code, int) else 1, str(text)) if text else 0

    def _reason(self, code: int, text: str) -> int:
        """Return the number of a reason; texts that are all different are told as one, so that no server fills the table."""
        key = (code, text[:_LONGEST])
        if key not in self._reasons and len(self._reasons) >= _TEXTS:
            key = (code, "refused by the extender")
        if key not in self._reasons:
            self._reasons[key] = self._session.reason(self.name, _CODES.get(code, Code.ERROR), key[1])
        return self._reasons[key]

    def score(self, subject: Subject, nodes: Nodes) -> Floats | None:
        """Ask about all nodes at once."""
        if not self._is_concerned(subject.task):
            return None
        records = list(nodes.records())
        question = {
            "task": shapes.task(subject.task),
            "nodes": [shapes.node(self._session, record) for record in records],
        }
        scores = self._scores(question)
        if scores is None:
            return None
        found = (scores.get(record.name, 0) for record in records)
        return np.array([float(each) if isinstance(each, int | float) else 0.0 for each in found])

    def _scores(self, question: shapes.Shape) -> dict[str, Any] | None:
        verb = self.settings.prioritize
        try:
            answer = self._exchange.ask(verb, question)
            problem = answer.get("errorMessage") or ("" if "nodeScore" in answer else "no nodeScore in the answer")
        except ExchangeError as error:
            answer, problem = {}, str(error)
        if not problem:
            return dict(answer["nodeScore"] or {})
        if self.settings.ignorable:
            return None
        raise LookupError(f"{verb}: {str(problem)[:_LONGEST]}")  # a score that is not known leaves the job waiting

    # -- victims -----------------------------------------------------------------------------------------------

    def _victims(self, verb: str, claimant: Task, candidates: Sequence[Task]) -> list[Task] | None:
        """Ask who may go; a server that is away lets nobody go."""
        if not self._is_concerned(claimant):
            return None
        question = {"evictor": shapes.task(claimant), "evictees": [shapes.task(each) for each in candidates]}
        try:
            answer = self._exchange.ask(verb, question)
        except ExchangeError as error:
            self._session.record.say(self.name, f"{error}")
            return []
        if answer.get("status") == 0:
            return None
        victims = answer.get("victims")
        listed = victims if isinstance(victims, list) else []
        named = {each.get("UID") for each in listed if isinstance(each, dict)}
        return [task for task in candidates if task.uid in named]

    # -- jobs and queues ---------------------------------------------------------------------------------------

    def vote(self, job: Job) -> Vote:
        """Ask whether a job may be let in."""
        try:
            answer = self._exchange.ask(self.settings.enqueueable, {"job": shapes.job(self._session, job)})
        except ExchangeError as error:
            return PERMIT if self.settings.ignorable else reject(str(error))
        status = answer.get("status")
        number = status if isinstance(status, int) else -1
        if number == 0:
            return ABSTAIN
        return PERMIT if number > 0 else reject(f"{self.settings.enqueueable}: the extender votes {number}")

    def hears(self, job: Job) -> None:
        """Tell of a job that was let in."""
        try:
            self._exchange.tell(self.settings.enqueued, {"job": shapes.job(self._session, job)})
        except ExchangeError as error:
            self._session.record.say(self.name, f"{error}")

    def has_enough(self, queue: Queue) -> str | None:
        """Ask whether a queue has enough."""
        try:
            answer = self._exchange.ask(self.settings.overused, {"queue": shapes.queue(queue)})
        except ExchangeError as error:
            return None if self.settings.ignorable else str(error)
        return None if answer.get("overused") is False else f"the extender says that queue {queue.name} has enough"

    def is_ready(self, job: Job) -> bool:
        """Ask whether a job may start."""
        try:
            answer = self._exchange.ask(self.settings.ready, {"job": shapes.job(self._session, job)})
        except ExchangeError as error:
            self._session.record.say(self.name, f"{error}")
            return self.settings.ignorable != self._as_volcano
        return answer.get("status") is True

    # -- placements --------------------------------------------------------------------------------------------

    def follow(self, run: Run, sign: int) -> str | None:
        """Tell of pods that take room or give it back; what the server has against the former undoes them."""
        verb = self.settings.allocates if sign > 0 else self.settings.deallocates
        if not verb:
            return None
        refusal = None
        for task in run.tasks:
            if self._is_concerned(task):
                refusal = self._objection(verb, task) or refusal
        return refusal if sign > 0 else None

    def _objection(self, verb: str, task: Task) -> str | None:
        try:
            answer = self._exchange.ask(verb, {"task": shapes.task(task)})
        except ExchangeError as error:
            return None if self.settings.ignorable else str(error)
        text = answer.get("errorMessage")
        return str(text)[:_LONGEST] if text else None
