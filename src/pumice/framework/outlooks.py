"""What the nodes could ever do for a pod: which of them could take one if they were empty, and where none could, why.

Only Node objects and what nodes offer are asked, so a verdict holds until one of these changes. It is found once for all pods of a shape, and kept from cycle
to cycle; nobody asks but for a job that is about to be told why it waits.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Protocol

import msgspec
import numpy as np

from pumice.framework.functions import answers
from pumice.framework.subject import Subject
from pumice.model import resources
from pumice.model.resources import PODS

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from pumice.framework.functions import Functions, NodeFunction
    from pumice.framework.reasons import Reasons
    from pumice.model.cluster import Cluster
    from pumice.model.job import Job
    from pumice.model.nodes import Rows
    from pumice.model.queue import Queue
    from pumice.model.resources import Matrix, Request
    from pumice.model.task import Task

    Mask = npt.NDArray[np.bool_]

Epoch = tuple[int, int, int]
KEPT = 4096
SHORT = "Insufficient "
NODES = "node(s) "


class Outlook(msgspec.Struct, frozen=True, eq=False):
    """The rows of the nodes that could take a pod of some shape if they were empty, the reasons by which Node objects rule others out, and why none could ever, if so."""

    able: Rows
    ruled_out: frozenset[str]
    never: str


class Ruling(msgspec.Struct, frozen=True, eq=False):
    """What Node objects say against a class of pods: which nodes may take one, and of the others how many are ruled out by which filter for which reason."""

    may: Mask
    reasons: tuple[tuple[str, int], ...]
    only: NodeFunction[npt.NDArray[np.int16] | None] | None  # the filter that rules out, if it is one alone


class Memory:
    """What is kept between cycles, and of which nodes it was found out."""

    def __init__(self) -> None:
        self.epoch: Epoch = (-1, -1, 0)
        self.state: tuple[int, int] = (-1, -1)
        self.offered: Matrix = np.zeros((0, 0), dtype=np.int64)
        self.outlooks: dict[int, tuple[int, Outlook]] = {}
        self.rulings: dict[bytes, tuple[int, Ruling]] = {}
        self.jobs: dict[str, tuple[object, int, object]] = {}  # by job: its group, its version, what was found


class StatedAnswers(Protocol):
    """The functions about nodes, and what is kept from cycle to cycle (`evaluator.Evaluator`)."""

    outlooks: Memory
    forgotten: int
    functions: Functions
    reasons: Reasons


class LookingSession(Protocol):
    """What outlooks need of a session."""

    @property
    def cluster(self) -> Cluster:
        """The cluster."""

    @property
    def evaluator(self) -> StatedAnswers:
        """What nodes answer, and what is kept of it."""

    def queue_of(self, job: Job) -> Queue | None:
        """Return the queue of a job, None if it is missing or invalid."""


class Outlooks:
    """Asks of one cycle."""

    def __init__(self, session: LookingSession) -> None:
        self._session = session
        self._current = False

    @property
    def epoch(self) -> Epoch:
        """What is another one whenever nodes come, go, or offer or say something else; the same in a copy of the cluster."""
        return self._memory().epoch

    @property
    def jobs(self) -> dict[str, tuple[object, int, object]]:
        """What was found of jobs as long as nodes are what they are; whoever looks at jobs keeps it here."""
        memory = self._memory()
        if len(memory.jobs) > 2 * len(self._session.cluster.jobs) + KEPT:
            memory.jobs.clear()
        return memory.jobs

    def of(self, task: Task) -> Outlook:
        """Say what the nodes could ever do for a pod."""
        memory, shape = self._memory(), task.shape
        stated = self._session.cluster.nodes.stated(shape.constraint_class.constraints)
        kept = memory.outlooks.get(shape.serial)
        if kept is not None and kept[0] == stated:
            return kept[1]
        forgotten = self._session.evaluator.forgotten
        found = self._look(task, stated)
        if forgotten != self._session.evaluator.forgotten:
            return Outlook(found.able, found.ruled_out, "")  # a filter broke down: that says nothing about ever
        while len(memory.outlooks) >= KEPT:
            del memory.outlooks[next(iter(memory.outlooks))]
        memory.outlooks[shape.serial] = (stated, found)
        return found

    def _memory(self) -> Memory:
        """Return what is kept; if nodes have changed since it was found out, nothing is."""
        memory = self._session.evaluator.outlooks
        if self._current:
            return memory
        self._current = True
        table = self._session.cluster.nodes
        state, offered = (table.structure, table.static), table.allocatable[: table.count]
        if state != memory.state or not np.array_equal(offered, memory.offered):
            memory.state, memory.offered = state, offered.copy()
            memory.epoch = (*state, zlib.crc32(memory.offered.tobytes()))
            memory.outlooks.clear()
            memory.rulings.clear()
            memory.jobs.clear()
        return memory

    # -- looking -----------------------------------------------------------------------------------------------

    def _look(self, task: Task, stated: int) -> Outlook:
        table, request = self._session.cluster.nodes, task.shape.request
        subject = Subject(task, self._session.queue_of(task.job) if task.job is not None else None)
        ruling = self._ruling(subject, stated)
        offered: Matrix = table.allocatable[: table.count, request.asked]
        large: Mask = np.logical_and.reduce(offered >= request.needed, axis=1)
        if request.unoffered:
            large[:] = False
        able = np.flatnonzero(ruling.may & large)
        ruled_out = frozenset(text for text, _ in ruling.reasons)
        never = "" if able.size else self._why_never(subject, ruling, large)
        return Outlook(able, ruled_out, never)

    def _ruling(self, subject: Subject, stated: int) -> Ruling:
        """Ask the filters that read nothing but Node objects, once for all pods of equal constraints."""
        rulings, key = self._memory().rulings, subject.constraint_class.key
        kept = rulings.get(key)
        if kept is not None and kept[0] == stated:
            return kept[1]
        nodes, evaluator = self._session.cluster.nodes.view(), self._session.evaluator
        forgotten = evaluator.forgotten
        numbers = np.zeros(len(nodes), dtype=np.int64)
        speaking = []
        for function, said in answers(evaluator.functions.filters_static, subject, nodes):
            new = (numbers == 0) & (said != 0)
            if new.any():
                numbers[new] = said[new]
                speaking.append(function)
        counted = zip(*np.unique(numbers[numbers != 0], return_counts=True), strict=True)
        reasons = tuple((evaluator.reasons.table[int(number)].text, int(count)) for number, count in counted)
        ruling = Ruling(numbers == 0, reasons, speaking[0] if len(speaking) == 1 else None)
        if forgotten != evaluator.forgotten:
            return ruling  # a filter broke down: what it seems to rule out is asked again
        while len(rulings) >= KEPT:
            del rulings[next(iter(rulings))]
        rulings[key] = (stated, ruling)
        return ruling

    def _why_never(self, subject: Subject, ruling: Ruling, large: Mask) -> str:
        """Say why no node could ever take a pod: what it asks for, else the rules, else both."""
        request, table = subject.request, self._session.cluster.nodes
        if not table.count:
            return "there are no nodes"
        if request.unoffered:
            name = request.unoffered[0]
            return f"no node offers {name}, it asks for {resources.shown(name, request.amounts[name])}"
        if not large.any():
            return self._too_large(request, table.rows, "no node")
        if not ruling.may.any():
            return self._ruled_out(subject, ruling)
        return self._too_large(request, np.flatnonzero(ruling.may), "no node that it may use")

    def _too_large(self, request: Request, rows: Rows, who: str) -> str:
        """Say which amount is more than any of some nodes offers."""
        table, names = self._session.cluster.nodes, self._session.cluster.vocabulary.names
        offered: Matrix = table.allocatable[np.ix_(rows, request.asked)]
        beyond = np.flatnonzero((offered < request.needed).all(axis=0)).tolist()
        if not beyond:
            return f"{who} has {listed(names, request, request.asked != PODS)} together, even if it is empty"
        position = beyond[0]
        name = names[int(request.asked[position])]
        best = int(offered[:, position].argmax())
        has = resources.shown(name, int(offered[best, position]))
        largest = f"the largest of {len(rows)}, {table.records[int(rows[best])].name}, has {has}"
        return f"{who} has {resources.shown(name, int(request.needed[position]))} {name} at all: {largest}"

    def _ruled_out(self, subject: Subject, ruling: Ruling) -> str:
        """Say by which rules Node objects keep a pod off all nodes: in the words of the filter, if it is one and has any."""
        table = self._session.cluster.nodes
        if ruling.only is not None and ruling.only.cause is not None:
            return ruling.only.cause(subject, table.records[: table.count])
        return counted(table.count, ruling.reasons)


def listed(names: Sequence[str], request: Request, chosen: Mask) -> str:
    """Write some of the amounts that a pod asks for: `4 cpu and 8Gi memory`."""
    told = [
        f"{resources.shown(names[column], units)} {names[column]}"
        for column, units, is_chosen in zip(
            request.asked.tolist(), request.needed.tolist(), chosen.tolist(), strict=True
        )
        if is_chosen and units
    ]
    return " and ".join(told)


def counted(nodes: int, reasons: Sequence[tuple[str, int]]) -> str:
    """Write how many nodes refuse a pod for which reason: `all 4 nodes refuse it: 3 had untolerated taint(s), 1 have too little cpu free`."""
    said = [(_words(text), count) for text, count in reasons]
    if len(said) > 1:
        told = ", ".join(f"{count} {text}" for text, count in sorted(said, key=lambda each: (-each[1], each[0])))
        return f"all {nodes} nodes refuse it: {told}"
    text = said[0][0]
    if not reasons[0][0].startswith(NODES):
        return f"all {nodes} nodes refuse it: {text}" if nodes > 1 else f"the only node refuses it: {text}"
    return f"all {nodes} nodes {text}" if nodes > 1 else f"the only node {text.replace('were ', 'was ', 1)}"


def _words(text: str) -> str:
    return f"have too little {text.removeprefix(SHORT)} free" if text.startswith(SHORT) else text.removeprefix(NODES)
