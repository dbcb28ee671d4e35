"""What could be otherwise about a job's queue: that it is there and open, and what it and those above it may hold."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from msgspec import structs

from pumice.api import kinds, names, scheduling
from pumice.api.meta import ObjectMeta
from pumice.model import resources
from pumice.study.relaxing import raising, relaxation
from pumice.study.relaxing.relaxation import Edit, Relaxation

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pumice.api.meta import KubeObject
    from pumice.model.queue import Queue
    from pumice.model.resources import Amounts
    from pumice.model.task import Task
    from pumice.study.relaxing.relaxation import Question

_WEIGHED: Final = frozenset({"proportion", "drf"})
_TIMES: Final = 20  # a weight is raised to at most so many times what it is
_HEAVIEST: Final = 65535


def wanted(question: Question) -> Amounts:
    """Return what the members ask for that the job lacks, or what its group states where it has no pods and nobody makes any."""
    return _wanted_by(question, question.members[: question.lacking])


def _wanted_by(question: Question, members: Sequence[Task]) -> Amounts:
    asked: Amounts = {}
    for task in members:
        asked = resources.add(asked, task.shape.request.amounts)
    return resources.highest(asked, question.job.min_resources or {}) if not question.waiting else asked


def find(question: Question) -> Iterator[Relaxation]:
    """Walk over what could be changed about the queue."""
    cluster, job = question.cluster, question.job
    if job.group is None:
        return
    queue = cluster.queues.get(job.queue)
    if queue is None:
        made = scheduling.Queue(metadata=ObjectMeta(name=job.queue, uid=f"queue-{job.queue}"))
        yield Relaxation(
            sort="queue", said=f"create the queue {job.queue}", edits=(Edit(kinds.QUEUE, None, lambda _found: made),)
        )
        return
    line = _line(question, queue)
    closed = [each for each in line if each.object is not None and not each.is_open]
    if closed:
        names_closed = ", ".join(each.name for each in closed)
        said = f"open the queue{'s' if len(closed) > 1 else ''} {names_closed}"
        yield Relaxation(
            sort="queue", said=said, edits=tuple(Edit(kinds.QUEUE, each.object, _opened) for each in closed)
        )
    yield from _raised(question, line, "capability")
    if "capacity" in question.plugins:
        yield from _raised(question, line, "deserved")
    if question.plugins & _WEIGHED and any(jobs for name, jobs in cluster.queue_jobs.items() if name != queue.name):
        yield from _weights(queue)


def _opened(found: KubeObject | None) -> KubeObject | None:
    if not isinstance(found, scheduling.Queue):
        return found
    return structs.replace(found, status=structs.replace(found.status, state=names.QUEUE_OPEN))


def _line(question: Question, queue: Queue) -> list[Queue]:
    """Return a queue and those above it, each once."""
    line, known = [queue], question.cluster.queues
    while (above := known.get(line[-1].parent)) is not None and above not in line:
        line.append(above)
    return line


def _raised(question: Question, line: Sequence[Queue], field: str) -> Iterator[Relaxation]:
    """Raise a limit of a queue, and of those above it, by what the job wants; where others come first, towards what all wants that waits there."""
    least, own = _wanted_by(question, question.least), wanted(question)
    raises = [raising.Raise((least, own, _asked(question, queue, own)), _whole) for queue in line]
    most = max(map(len, raises))

    def at(number: int) -> Relaxation:
        asked = [each.at(min(number, len(each))) for each in raises]
        raised = [_raise(question, queue, field, each) for queue, each in zip(line, asked, strict=True)]
        told = ", ".join(text for text, _ in raised if text)
        edits = tuple(edit for _, edit in raised if edit is not None)
        return Relaxation(sort=field, said=f"raise {field} {told}", edits=edits)

    if at(most).edits:
        yield relaxation.graded(most, at)


def _asked(question: Question, queue: Queue, own: Amounts) -> Amounts:
    """Return what all ask for that wait in a queue and in those below it, those included whose pods are yet to be made."""
    total = _sum(question, queue, "pending")
    if not question.waiting:
        total = resources.add(total, own)
    cluster, below = question.cluster, _below(question, queue)
    without_pods = (job for each in below for job in map(cluster.jobs.__getitem__, each.jobs) if not job.tasks)
    for job in without_pods:
        if job is not question.job:
            total = resources.add(total, job.min_resources or {})
    return total


def _whole(name: str) -> int:
    """Return what people write whole numbers of: cpus, cards, GiB."""
    return _wholes(name)[0]


def _wholes(name: str) -> tuple[int, ...]:
    return (2**30, 2**20) if resources.factor(name) == 1 and name != "pods" else (resources.factor(name),)


def _raise(question: Question, queue: Queue, field: str, asked: Amounts) -> tuple[str, Edit | None]:
    """Raise a limit of one queue to what is held there and asked for beyond it; nothing where it suffices."""
    limits: Amounts = getattr(queue, field)
    held = _sum(question, queue, "allocated")
    higher = {
        name: raising.rounded(held.get(name, 0) + asked[name], limit, _wholes(name))
        for name, limit in sorted(limits.items())
        if name in asked and held.get(name, 0) + asked[name] > limit
    }
    if not higher or queue.object is None:
        return "", None
    told = [
        f"{name} of queue {queue.name} from {resources.shown(name, limits[name])} to {resources.shown(name, units)}"
        for name, units in higher.items()
    ]
    written = {**getattr(queue.object.spec, field), **{name: resources.shown(name, higher[name]) for name in higher}}
    return ", ".join(told), _specified(queue.object, **{field: written})


def _sum(question: Question, queue: Queue, column: str) -> Amounts:
    """Return what the jobs of a queue and of those below it hold, or wait for."""
    cluster = question.cluster
    total: Amounts = {}
    for each in _below(question, queue):
        row = cluster.queue_sums.rows[each.name]
        total = resources.add(total, cluster.vocabulary.amounts(getattr(cluster.queue_sums, column)[row]))
    return total


def _below(question: Question, queue: Queue) -> list[Queue]:
    """Return a queue and those below it."""
    return [each for each in question.cluster.queues.values() if queue in _line(question, each)]


def _weights(queue: Queue) -> Iterator[Relaxation]:
    most = min(queue.weight * _TIMES, _HEAVIEST) - queue.weight
    before = queue.object
    if before is None or most <= 0:
        return

    def at(number: int) -> Relaxation:
        weight = queue.weight + number
        said = f"raise the weight of queue {queue.name} from {queue.weight} to {weight}"
        return Relaxation(sort="weight", said=said, edits=(_specified(before, weight=weight),))

    yield relaxation.graded(most, at)


def _specified(queue: scheduling.Queue, **fields: Any) -> Edit:
    def change(found: KubeObject | None) -> KubeObject | None:
        if not isinstance(found, scheduling.Queue):
            return found
        return structs.replace(found, spec=structs.replace(found.spec, **fields))

    return Edit(kinds.QUEUE, queue, change)
