"""Filters and scores: the extension points about nodes, whose answers the evaluator combines because it also keeps them.

Functions are sorted by what they read; that decides what of their answers is kept, and how long. `answers` is the one place where they are asked.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Sequence  # noqa: TC003  msgspec reads the annotations at run time
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

import numpy as np

from pumice.framework import reads, wrong_answers
from pumice.framework.extensions import Extension, Registered
from pumice.framework.reads import NOTHING, Reads
from pumice.framework.reasons import Code, Reasons, ReasonVector
from pumice.framework.subject import Subject, Subjects
from pumice.model.nodes import NodeRecord, Nodes

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pumice.framework.vectors import Floats

# Sessions sort their functions anew, and `enum.Flag` takes microseconds for what integers do in no time.
NODE, COLUMNS, TASKS, OTHER_NODES, TASK, JOB, QUEUE = (
    each.value
    for each in (
        Reads.NODE,
        Reads.COLUMNS,
        Reads.TASKS,
        Reads.OTHER_NODES,
        Reads.TASK,
        Reads.JOB,
        Reads.QUEUE,
    )
)
LOCAL: Final[int] = COLUMNS | TASKS
SINGLE: Final[int] = reads.SINGLE.value
MOVED: Final[int] = reads.MOVED.value

V = TypeVar("V")


class OfOne:
    """What a function over many subjects says about one: the only row of its answer."""

    def __init__(self, many: Callable[[Subjects, Nodes], Any]) -> None:
        self._many = many
        functools.update_wrapper(self, many)
        self.__code__ = getattr(many, "__code__", None)  # by which a function is known that was checked before

    def __call__(self, subject: Subject, nodes: Nodes) -> Any:
        """Ask about a subject."""
        answer = self._many(subject.alone(nodes.table.vocabulary), nodes)
        if answer is None:
            return None
        shape = (1, len(nodes))
        wrong_answers.check_many(answer, shape, "fiu")
        return answer[0] if answer.shape == shape else np.broadcast_to(answer, shape)[0]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OfOne) and self._many == other._many

    def __hash__(self) -> int:
        return hash(self._many)


class NodeFunction(Registered[[Subject, Nodes], V], Generic[V]):
    """A filter or a score.

    `normalise` brings raw scores of the candidates to scale. Of a function that looks at other nodes, `steady` tells whether placing such a subject leaves its
    answer to the next equal one as it was, and `follow` makes what keeps step with placements (see walking); a score without `normalise` is what its follower says.
    `apart` names, beyond the shape of a subject, what the answer depends on: subjects of one shape and one name share their answers; whoever names members of one job differently divides runs by it
    too (`session.divide_runs`). `many` answers about many subjects at
    once, subjects by nodes (or what numpy spreads to that), 0 in the rows of those about whom the function has nothing to say; None if about nobody. Where there is no other
    form, one subject is a row of its own (`OfOne`).
    `details` says what exactly keeps a subject off a node that was refused; explanations ask for it. `own_queue` says of a filter that no other pods than those of the
    subject's queue have a say, so that evicting others cures no refusal. `cause` says in a sentence that a filter which reads Node objects alone keeps a subject off all
    of some nodes; whoever waits for that reason is told so. `ahead` says of a function that reads the tasks of a node that it answers about views which run ahead too, by
    their `steps`.
    """

    normalise: Callable[[Floats], Floats] | None = None
    steady: Callable[[Subject], bool] | None = None
    follow: Callable[..., Any] | None = None
    apart: Callable[[Subject], Hashable] | None = None
    many: Callable[[Subjects, Nodes], Any] | None = None
    details: Callable[[Subject, NodeRecord], str] | None = None
    own_queue: bool = False
    ahead: bool = False
    cause: Callable[[Subject, Sequence[NodeRecord]], str] | None = None

    @property
    def is_together(self) -> bool:
        """Whether many subjects are worked out at once: nothing but amounts decides, and it can be asked about many."""
        return self.many is not None and self.bits == COLUMNS

    @property
    def is_moved(self) -> bool:
        """Whether anybody's coming or going may change its answers; where not, evicting cures none of them, whatever their code."""
        return bool(self.bits & MOVED)

    def is_stepwise(self, subject: Subject) -> bool:
        """Tell whether a placement may change the answers to equal subjects."""
        return self.steady is None or not self.steady(subject)


class NodeFunctions(Extension[[Subject, Nodes], V], Generic[V]):
    """Functions that answer for many nodes at once; the evaluator asks them and combines what they say."""

    __slots__ = ()

    @classmethod
    def taken(cls, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the types of subject and nodes."""
        del arguments
        return (Subject, Nodes)

    def check(self, answer: object, length: int, reasons: Reasons | None = None) -> None:
        """Raise unless something can be an answer about so many nodes."""
        raise NotImplementedError  # pragma: no cover  filters and scores have their own

    def failed(self, function: NodeFunction[V], error: Exception, subject: Subject, length: int) -> V | None:
        """Return what stands for the answer of a function that broke down."""
        raise NotImplementedError  # pragma: no cover  as above

    def stand_in(self, function: Callable[[Subject, Nodes], V]) -> None:
        """Register what refuses in place of a plugin that could not be opened."""
        self._enter(NodeFunction("", function, NOTHING), None)

    def _is_left_out(self, registered: Registered[[Subject, Nodes], V]) -> bool:
        """Do without the form over many of a function that rests, and ask about everybody: it would not rest."""
        asked = registered.function
        left_out = super()._is_left_out(registered)
        if registered.function is not asked and isinstance(registered, NodeFunction):
            registered.many = None
        return left_out

    def registered(self) -> list[NodeFunction[V]]:
        """Return the functions in tier order."""
        return [function for function in self if isinstance(function, NodeFunction)]


class Filters(NodeFunctions[ReasonVector | None]):
    """Which nodes take a subject: 0 where one does, otherwise the number of a reason; None where a filter has nothing to say."""

    combines = "a node takes a subject that no filter refuses; of several reasons those of the first plugin are told"
    answer = "array of int16 | None"
    refuses = True

    __slots__ = ()

    def check(self, answer: object, length: int, reasons: Reasons | None = None) -> None:
        """Raise unless there is a reason or 0 for each node; whether the reasons are known is looked at where they are read."""
        wrong_answers.check_reasons(answer, length)
        if reasons is not None:
            wrong_answers.check_known(answer, len(reasons.table))

    def failed(
        self, function: NodeFunction[ReasonVector | None], error: Exception, subject: Subject, length: int
    ) -> ReasonVector | None:
        """Refuse every node, with a reason that stays the same whatever the exception says: the table keeps it."""
        broken = self.broke(function, error, (subject,)).breakdown
        evaluator = self._roster.evaluator
        evaluator.forget(subject)
        text = f"plugin {broken.plugin} broke down at {broken.point} ({broken.routine}, {broken.place})"
        return np.full(length, evaluator.reasons.number(broken.plugin, Code.ERROR, text), dtype=np.int16)

    def add(
        self,
        function: Callable[[Subject, Nodes], ReasonVector | None] | None = None,
        *,
        reads: Reads | None = None,
        steady: Callable[[Subject], bool] | None = None,
        follow: Callable[..., Any] | None = None,
        apart: Callable[[Subject], Hashable] | None = None,
        many: Callable[[Subjects, Nodes], ReasonVector | None] | None = None,
        details: Callable[[Subject, NodeRecord], str] | None = None,
        own_queue: bool = False,
        cause: Callable[[Subject, Sequence[NodeRecord]], str] | None = None,
        ahead: bool = False,
    ) -> None:
        """Register a filter for the plugin that is being opened, unless its switch is off: one about a subject, about `many`, or both."""
        asked = _form(function, many)
        registered = NodeFunction("", asked, NOTHING, None, 0, None, steady, follow, apart, many, details, own_queue)
        registered.cause = cause
        registered.ahead = ahead
        self._enter(registered, reads)


class Scores(NodeFunctions["Floats | None"]):
    """How much each node is wanted, as a number or as raw values that are normalised over the candidates."""

    combines = "scores are added"
    answer = "array of float64 | None"

    __slots__ = ()

    def check(self, answer: object, length: int, reasons: Reasons | None = None) -> None:
        """Raise unless there is a number for each node."""
        del reasons
        wrong_answers.check_points(answer, length)

    def failed(
        self, function: NodeFunction[Floats | None], error: Exception, subject: Subject, length: int
    ) -> Floats | None:
        """Give the job up that is being tried; where there is none, do without the score."""
        del length
        self._roster.evaluator.forget(subject)
        if self._roster.breakdowns.trying is not None:
            raise self.broke(function, error, (subject,)) from error
        self.leave_out(function, error)
        function.function, function.many = _nothing, None
        return None

    def add(
        self,
        function: Callable[[Subject, Nodes], Floats | None] | None = None,
        *,
        reads: Reads | None = None,
        normalise: Callable[[Floats], Floats] | None = None,
        steady: Callable[[Subject], bool] | None = None,
        follow: Callable[..., Any] | None = None,
        apart: Callable[[Subject], Hashable] | None = None,
        many: Callable[[Subjects, Nodes], Floats | None] | None = None,
        ahead: bool = False,
    ) -> None:
        """Register a score for the plugin that is being opened, unless its switch is off: one about a subject, about `many`, or both."""
        asked = _form(function, many)
        registered = NodeFunction("", asked, NOTHING, None, 0, normalise, steady, follow, apart, many)
        registered.ahead = ahead
        self._enter(registered, reads)


def _form(
    function: Callable[[Subject, Nodes], Any] | None, many: Callable[[Subjects, Nodes], Any] | None
) -> Callable[[Subject, Nodes], Any]:
    """Return the form that is asked about one subject."""
    if function is not None:
        return function
    if many is None:
        raise TypeError("a function about nodes is registered: one that is asked about a subject, or `many`")
    return OfOne(many)


def _nothing(_subject: Subject, _nodes: Nodes) -> None:
    """Say nothing, in place of a score that broke down."""


def answers(
    functions: Iterable[NodeFunction[V | None]],
    subject: Subject,
    nodes: Nodes,
    reasons: Reasons | None = None,
    *,
    bare: bool = False,
) -> Iterator[tuple[NodeFunction[V | None], V]]:
    """Ask functions in order about nodes, and give those that have something to say with what they say; with `reasons`, those of filters must be known.

    Something stands for the answer of a function that breaks down, unless what a plugin raises is wanted `bare`.
    """
    for function in functions:
        try:
            answer = function.function(subject, nodes)
            if answer is not None:
                function.home.check(answer, len(nodes), reasons)
        except Exception as error:
            if bare:
                raise
            answer = function.home.failed(function, error, subject, len(nodes))
        if answer is not None:
            yield function, answer


def points_of(
    functions: Iterable[NodeFunction[Floats | None]], subject: Subject, nodes: Nodes, *, bare: bool = False
) -> Floats | None:
    """Add up what scores say about nodes; None if none has anything to say."""
    total: Floats | None = None
    for _, points in answers(functions, subject, nodes, bare=bare):
        total = points if total is None else total + points
    return total


def speaks(functions: Iterable[NodeFunction[Any]], subject: Subject, nodes: Nodes) -> bool:
    """Tell whether any of some functions has anything to say about a subject; whatever a plugin raises is raised."""
    for function in functions:  # noqa: SIM110  as in combining: asked for every placement
        if function.function(subject, nodes) is not None:
            return True
    return False


def answers_about_many(
    functions: Iterable[NodeFunction[Any]], subjects: Subjects, nodes: Nodes, kinds: str
) -> Iterator[Any]:
    """Ask those that can be asked about many subjects, and give what they say; numbers of these kinds."""
    shape = (len(subjects), len(nodes))
    for function in functions:
        answer = function.many(subjects, nodes) if function.is_together and function.many is not None else None
        if answer is not None:
            wrong_answers.check_many(answer, shape, kinds)
            yield answer


class Functions:
    """The filters and scores of a session, sorted by what they read."""

    __slots__ = (
        "aparts",
        "asked_alone",
        "filters",
        "filters_ahead",
        "filters_amounts",
        "filters_global",
        "filters_local",
        "filters_static",
        "local_flags",
        "looking_around",
        "looks_elsewhere",
        "raw_flags",
        "raws",
        "reads",
        "scores",
        "scores_are_blind",
        "scores_global",
        "scores_read_tasks",
        "scores_static",
        "tells_subjects_apart",
        "tells_tasks_apart",
    )

    def __init__(self, filters: Filters, scores: Scores) -> None:
        self.filters = filters.registered()
        here = [f for f in self.filters if not f.bits & OTHER_NODES]
        self.filters_static = [f for f in here if f.apart is None and not f.bits & (LOCAL | SINGLE)]
        self.filters_local = [f for f in here if f.apart is not None or f.bits & (LOCAL | SINGLE)]
        self.filters_global = [f for f in self.filters if f.bits & OTHER_NODES]
        asked = scores.registered()
        plain = [f for f in asked if f.normalise is None and f.follow is None]
        self.scores_static = [f for f in plain if not f.bits & ~NODE]
        self.scores = [f for f in plain if f.bits & ~NODE and not f.bits & OTHER_NODES]
        self.scores_global = [f for f in plain if f.bits & OTHER_NODES]
        self.raws = [f for f in asked if f.normalise is not None or f.follow is not None]
        self.reads = 0
        every: list[NodeFunction[Any]] = [*self.filters, *plain, *self.raws]
        for function in every:
            self.reads |= function.bits
        # What tells subjects of one shape apart, each question once.
        self.aparts = list(dict.fromkeys(f.apart for f in every if f.apart is not None))
        self.raw_flags = {id(f): (bool(f.bits & OTHER_NODES), bool(f.bits & LOCAL)) for f in self.raws}
        # Asked for every subject, so worked out once.
        self.local_flags = {id(f): (bool(f.bits & TASKS), f.bits == COLUMNS) for f in self.filters_local}
        self.filters_amounts = [f for f in self.filters_local if f.bits & COLUMNS and not f.bits & TASKS]
        self.filters_ahead = [f for f in self.filters_local if f.ahead or (f.bits & COLUMNS and not f.bits & TASKS)]
        self.scores_read_tasks = any(f.bits & TASKS for f in self.scores)
        # Those that have to see a placement before they can answer about the next.
        self.scores_are_blind = any(f.bits & TASKS and not f.ahead for f in self.scores)
        self.looks_elsewhere = bool(self.reads & OTHER_NODES)
        self.tells_subjects_apart = bool(self.reads & SINGLE)
        self.tells_tasks_apart = bool(self.reads & TASK)
        # Those about whom these have anything to say are not worked out together with others (see blocks).
        around: list[NodeFunction[Any]] = [*self.filters_global, *self.scores_global, *self.raws]
        local: list[NodeFunction[Any]] = [*self.filters_local, *self.scores]
        self.looking_around = [f for f in around if f.bits & OTHER_NODES]
        self.asked_alone = [f for f in around if not f.bits & OTHER_NODES] + [f for f in local if not f.is_together]

    def identity(self) -> tuple[Hashable, ...]:
        """Return what must stay equal for kept vectors to stay valid: the functions, in order."""
        functions: list[NodeFunction[Any]] = [
            *self.filters,
            *self.scores_static,
            *self.scores,
            *self.scores_global,
            *self.raws,
        ]
        return tuple((f.plugin, f.function) for f in functions)
