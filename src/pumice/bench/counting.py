"""Counters of the work that a run does; the same in every run of the same code, whatever the machine is busy with."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import msgspec

from pumice.cache import inputs
from pumice.framework.engine import Engine
from pumice.scheduler import Scheduler

if TYPE_CHECKING:
    from collections.abc import Callable

    from pumice.api import decoding, kinds
    from pumice.api.meta import KubeObject
    from pumice.cache.reflector import EventType
    from pumice.framework.functions import NodeFunction
    from pumice.framework.session import Session
    from pumice.framework.subject import Subject, Subjects
    from pumice.model.nodes import Nodes


class Counters(msgspec.Struct):
    """What was done: events applied, functions asked about nodes and the values they gave, rows of nodes that changed, effects sent."""

    events: int = 0
    filters_asked: int = 0
    verdicts: int = 0
    scores_asked: int = 0
    scores: int = 0
    rows_touched: int = 0
    changes: int = 0
    binds: int = 0
    evictions: int = 0
    patches: int = 0
    notes: int = 0


class EventCounter(inputs.InputListener):
    """Counts the events that are taken."""

    def __init__(self, counters: Counters) -> None:
        self._counters = counters

    def looked(self, kind: kinds.Kind, event_type: EventType, found: KubeObject | decoding.Malformed) -> None:
        """Count one."""
        del kind, event_type, found
        self._counters.events += 1


class MeasuredEngine(Engine):
    """Takes the processor time of deciding: opening a session and running the actions."""

    spent = 0.0

    def open(self, *arguments: Any, **named: Any) -> Session:
        """Open a session."""
        start = time.process_time()
        session = super().open(*arguments, **named)
        self.spent += time.process_time() - start
        return session

    def decide(self, session: Session) -> None:
        """Run the actions."""
        start = time.process_time()
        super().decide(session)
        self.spent += time.process_time() - start


class CountingEngine(MeasuredEngine):
    """Counts what filters and scores are asked, and what they answer."""

    counters = Counters()

    def open(self, *arguments: Any, **named: Any) -> Session:
        """Open a session, with a counter around each function about nodes."""
        session = super().open(*arguments, **named)
        functions = self.evaluator.functions
        for function in functions.filters:
            _surround(function, self._count_verdicts)
        for score in (*functions.scores_static, *functions.scores, *functions.scores_global, *functions.raws):
            _surround(score, self._count_scores)
        return session

    def _count_verdicts(self, values: int) -> None:
        self.counters.filters_asked += 1
        self.counters.verdicts += values

    def _count_scores(self, values: int) -> None:
        self.counters.scores_asked += 1
        self.counters.scores += values


def _surround(function: NodeFunction[Any], count: Callable[[int], None]) -> None:
    """Put a counter around both forms of a function."""
    alone, many = function.function, function.many

    def counted(subject: Subject, nodes: Nodes) -> Any:
        count(len(nodes))
        return alone(subject, nodes)

    function.function = counted
    if many is not None:
        asked = many

        def counted_many(subjects: Subjects, nodes: Nodes) -> Any:
            count(len(subjects) * len(nodes))
            return asked(subjects, nodes)

        function.many = counted_many


class MeasuredScheduler(Scheduler):
    """A scheduler that says how long it decided."""

    engine_type = MeasuredEngine
    engine: MeasuredEngine


class CountingScheduler(MeasuredScheduler):
    """A scheduler that counts, and takes its time doing so."""

    engine_type = CountingEngine
