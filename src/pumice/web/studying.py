"""The process that answers questions: it holds the cluster as a scheduler would, takes every change, and for each question makes a copy of itself that answers and ends.

The copy may take as much as it likes, and break down: after its time it is ended, and nothing of what it tried is left. Started with `python -m pumice.web.studying`.
"""

from __future__ import annotations

import contextlib
import os
import resource
import select
import signal
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final, NoReturn

import msgspec

from pumice.api import decoding, kinds
from pumice.study import configuring
from pumice.study.rehearsal import Rehearsal
from pumice.study.state import Denied, State, StudyError
from pumice.web import answers, questions

if TYPE_CHECKING:
    from collections.abc import Callable

    from pumice.cache.cache import EventType
    from pumice.cache.options import Options
    from pumice.framework.registry import Registry
    from pumice.study.rehearsal import Change
    from pumice.study.state import Found, Manifest
    from pumice.web.questions import About, Ask, Message

_PIECE: Final = 1 << 16
ROOM: Final = 1 << 30
"""Bytes that a copy may take beside those of the process that it is a copy of; as many again, if those are more."""
NO_MODEL: Final = "no model of this cluster can be made; somebody who may see the whole cluster is told why"
TOO_MUCH: Final = "this takes more memory than one answer may have; ask about less"
_KINDS: Final = {(kind.api_version, kind.name): kind for kind in kinds.KINDS}


class Study:
    """The cluster as it was told, and the model of it once somebody has asked."""

    def __init__(self) -> None:
        self._objects: dict[tuple[str, str, str, str], tuple[kinds.Kind, Found]] = {}
        self._jobs: dict[str, Manifest] = {}
        self._about = questions.About(source="")
        self._news: list[Change] = []
        self._rehearsal: Rehearsal | None = None
        self._options: Options | None = None  # that the model stands under
        self._registry: Registry | None = None

    def take(self, message: questions.Feed | About) -> None:
        """Take what is told."""
        if isinstance(message, questions.Feed):
            self._take_all(message.changes)
        elif message != self._about:
            self._about = message
            self._rehearsal = None

    def _take_all(self, changes: list[tuple[str, str, str, bytes]]) -> None:
        for api_version, name, event_type, raw in changes:
            if (kind := _KINDS.get((api_version, name))) is not None:
                self._take(kind, event_type, raw)

    def _take(self, kind: kinds.Kind, event_type: str, raw: bytes) -> None:
        found = decoding.decode_json(kind, raw)
        metadata = found.metadata
        key = (kind.api_version, kind.name, metadata.namespace, metadata.name)
        known = self._objects.get(key)
        event: EventType = "DELETED" if event_type == "DELETED" else "ADDED" if known is None else "MODIFIED"
        if event == "DELETED":
            self._objects.pop(key, None)
            self._jobs.pop(metadata.uid, None)
        else:
            self._objects[key] = (kind, found)
            if kind is kinds.JOB and not isinstance(found, decoding.Malformed):
                whole = msgspec.json.decode(raw)
                self._jobs[metadata.uid] = {"apiVersion": kind.api_version, "kind": kind.name, **whole}
        if self._rehearsal is not None:
            self._news.append((kind, event, found))

    def go_back(self, then: questions.Then) -> None:
        """Be what it was at a moment; there is no way forward again."""
        self.forget_model()
        self._take_all(then.changes)
        self._about = then.about

    def prepare(self, now: int) -> answers.Subject:
        """Bring the model up to date, and give everything that an answer rests on."""
        if self._registry is None:
            self._registry = answers.registry(self._about.plugins)
        state, known, about = self._state(now), self._registry, self._about
        policy = configuring.choose(state, known, given=about.given, scheduler_names=about.schedulers)
        if self._rehearsal is None or self._options != policy.options:
            self._rehearsal, self._news, self._options = None, [], policy.options
            self._rehearsal = Rehearsal(
                state.objects, policy.configuration, policy.options, now, known, jobs=self._jobs
            )
        self._rehearsal.now = now
        news, self._news = self._news, []
        if news:
            self._rehearsal.feed(news)
        return answers.Subject(
            state=state,
            policy=policy,
            rehearsal=self._rehearsal,
            known=known,
            given=about.given,
            since=about.since,
        )

    def _state(self, now: int) -> State:
        about = self._about
        denied = tuple(
            Denied(kind, words)
            for api_version, name, words in about.denied
            if (kind := _KINDS.get((api_version, name))) is not None
        )
        return State(
            source=about.source,
            now=now,
            objects=list(self._objects.values()),
            jobs=self._jobs,
            text=about.text,
            configuration_source=about.configuration,
            denied=denied,
            notes=about.notes,
            flags=about.flags,
        )

    def forget_model(self) -> None:
        """Build the model anew for the next question: this one has broken down."""
        self._rehearsal = None
        self._news = []


def answered(study: Study, ask: Ask) -> questions.Answer:
    """Answer in a copy of this process, within its time; the model of now is made before, and kept, that of a moment in the copy."""
    subject = _prepared(study, ask) if ask.then is None else None
    if isinstance(subject, questions.Answer):
        return subject
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        _answer_and_end(writing, lambda: subject or _gone_back(study, ask), ask)
    os.close(writing)
    try:
        return _heard(reading, ask.seconds)
    finally:
        os.close(reading)
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def _prepared(study: Study, ask: Ask) -> answers.Subject | questions.Answer:
    """Give what an answer rests on, or why there is none."""
    try:
        return study.prepare(ask.now)
    except StudyError as error:
        return questions.Answer(problem=str(error) if ask.sight.is_whole else NO_MODEL)
    except Exception as error:  # noqa: BLE001  whoever asked is told, and the next question starts from the objects again
        study.forget_model()
        why = f"the model of this cluster breaks down: {type(error).__name__}: {error}"
        return questions.Answer(problem=why if ask.sight.is_whole else NO_MODEL)


def _gone_back(study: Study, ask: Ask) -> answers.Subject | questions.Answer:
    """Give what an answer about a moment rests on."""
    assert ask.then is not None  # noqa: S101  everything else is there already
    study.go_back(ask.then)
    return _prepared(study, ask)


def _answer_and_end(file: int, prepared: Callable[[], answers.Subject | questions.Answer], ask: Ask) -> NoReturn:
    """Be the copy."""
    try:
        _restrain()
        data = b""
        with contextlib.suppress(MemoryError):  # and let go of what took it
            found = prepared()
            if not isinstance(found, questions.Answer):
                found = answers.answer(found, ask.question, ask.sight)
            data = questions.packed(found)
        _tell(file, data or questions.packed(questions.Answer(problem=TOO_MUCH)))
    finally:
        os._exit(0)


def _restrain() -> None:
    """Go behind everybody else for the processor, go first where memory runs out, and take no more of it than there is room for."""
    with contextlib.suppress(OSError, ValueError):
        os.nice(10)
        Path("/proc/self/oom_score_adj").write_text("1000")
    with contextlib.suppress(OSError, ValueError):
        held = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        most = held + max(ROOM, held)
        resource.setrlimit(resource.RLIMIT_AS, (most, resource.getrlimit(resource.RLIMIT_AS)[1]))


def _tell(file: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(file, view) :]


def _heard(file: int, seconds: float) -> questions.Answer:
    """Read what the copy says, as long as it has time."""
    pieces, until = bytearray(), time.monotonic() + seconds
    while True:
        ready, _, _ = select.select([file], [], [], max(0.0, until - time.monotonic()))
        if not ready:
            return questions.Answer(
                problem=f"no answer within {seconds:g} s: the cluster is too large, or the policy too slow, for this question"
            )
        piece = os.read(file, _PIECE)
        if not piece:
            break
        pieces += piece
    if len(pieces) < questions.HEAD:
        return questions.Answer(
            problem="the process that was to answer ended before it did; it may have needed too much memory"
        )
    return questions.ANSWERS.decode(bytes(pieces[questions.HEAD :]))


def serve(incoming: BinaryIO, outgoing: BinaryIO) -> None:
    """Take messages until there are no more."""
    study = Study()
    while (message := _read(incoming)) is not None:
        if isinstance(message, questions.Ask):
            outgoing.write(questions.packed(answered(study, message)))
            outgoing.flush()
        else:
            study.take(message)


def _read(incoming: BinaryIO) -> Message | None:
    head = incoming.read(questions.HEAD)
    if len(head) < questions.HEAD:
        return None
    return questions.MESSAGES.decode(incoming.read(questions.length(head)))


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for whoever started it, who closes the pipe
    serve(sys.stdin.buffer, sys.stdout.buffer)
