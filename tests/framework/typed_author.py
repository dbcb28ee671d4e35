"""A plugin as its author would write it; test_framework_typing reads what a type checker says about each line."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, reveal_type

import numpy as np

from pumice.framework.configuration import Configured, Settings, settings
from pumice.framework.extensions import PERMIT, Vote
from pumice.framework.per_node import Node, filter_per_node, score_per_node
from pumice.framework.plugin import Plugin
from pumice.framework.points import NODE_LOCAL

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pumice.framework.evaluation import Floats
    from pumice.framework.reasons import ReasonVector
    from pumice.framework.session import Session
    from pumice.framework.subject import Demand, Subject
    from pumice.model.job import Job
    from pumice.model.nodes import Nodes
    from pumice.model.queue import Queue
    from pumice.model.task import Task


class TypedSettings(Settings):
    """What a file may say."""

    percent = settings.whole("typed.percent", 20, minimum=0, help="so much")
    patience = settings.period("typed.patience", None, help="so long")
    weights = settings.each(settings.number("typed.weight.*", Fraction(1), help="how much each counts"))
    wrong = settings.whole("typed.wrong", "20", help="a text")  # refused: has incompatible type "str"; expected "int"


class Typed(Plugin):
    """Registers what is right and what is wrong."""

    name = "typed"
    points = frozenset({"Predicate"})
    reads = NODE_LOCAL
    settings = Configured(TypedSettings)

    def open(self, session: Session) -> None:
        session.predicate.add(self.fits)
        session.score.add(self.wanted, normalise=self.scaled)
        session.job_ready.add(lambda job: job.min_member > 0)
        session.job_order.add(lambda job: -job.priority)
        session.job_pipelined.add(self.vote)
        session.pre_predicate.add(self.impossible)
        session.allocatable.add(self.refuse)
        session.preemptable.add(self.spare)
        session.job_ready.add(self.vote)  # refused: expected "Callable[[Job], bool]"
        session.job_ready.add(self.refuse)  # refused: expected "Callable[[Job], bool]"
        session.pre_predicate.add(self.number)  # refused: expected "Callable[[Subject], str | None]"
        session.predicate.add(self.wanted)  # refused: incompatible type
        session.predicate.add(self.fits, normalise=self.scaled)  # refused: Unexpected keyword argument "normalise"
        session.job_redy.add(self.vote)  # refused: has no attribute "job_redy"

    def ask(self, session: Session, job: Job, queue: Queue, demand: Demand) -> None:
        reveal_type(session.job_ready(job))  # is: bool
        reveal_type(session.job_pipelined(job))  # is: pumice.framework.extensions.Vote
        reveal_type(session.allocatable(queue, demand))  # is: str | None
        reveal_type(session.job_order.sort([job]))  # is: list[pumice.model.records.Job]
        session.job_ready(queue)  # refused: has incompatible type "Queue"; expected "Job"
        session.allocatable(queue)  # refused: Too few arguments

    @filter_per_node
    def fits_one(self, subject: Subject, node: Node) -> int:
        return 0 if node.idle("cpu") > 0 else 1

    @score_per_node
    def wanted_one(self, subject: Subject, node: Node) -> float:
        return node.used("memory") / 2

    def register(self, session: Session) -> None:
        session.predicate.add(self.fits_one)
        session.score.add(self.wanted_one)
        session.predicate.add(self.wanted_one)  # refused: incompatible type
        session.predicate.add(filter_per_node(self.named_one))  # refused: has incompatible type

    def named_one(self, subject: Subject, node: Node) -> str:
        return node.name

    def told(self) -> None:
        reveal_type(self.settings.percent)  # is: int
        reveal_type(self.settings.patience)  # is: int | None
        reveal_type(self.settings.weights)  # is: typing.Mapping[str, fractions.Fraction]
        self.settings.percents  # noqa: B018  # refused: has no attribute "percents"

    def fits(self, subject: Subject, nodes: Nodes) -> ReasonVector:
        return np.zeros(len(nodes), dtype=np.int16)

    def wanted(self, subject: Subject, nodes: Nodes) -> Floats:
        return np.ones(len(nodes))

    def scaled(self, raw: Floats) -> Floats:
        return raw * 2

    def vote(self, job: Job) -> Vote:
        return PERMIT

    def impossible(self, subject: Subject) -> str | None:
        return None

    def number(self, subject: Subject) -> int | None:
        return None

    def refuse(self, queue: Queue, demand: Demand) -> str | None:
        return None

    def spare(self, claimant: Task, candidates: Sequence[Task]) -> Sequence[Task] | None:
        return None
