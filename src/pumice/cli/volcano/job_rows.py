"""The rows of Volcano's Jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pumice.api import names
from pumice.cli.volcano import columns
from pumice.cli.volcano.columns import Column
from pumice.sim import structure

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

BATCH: Final = "Batch"


def tasks(job: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Give the tasks of a job."""
    found = structure.mapping(job, "spec").get("tasks")
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def replicas(job: Mapping[str, Any], _: int = 0) -> int:
    """Count the pods that a job wants."""
    return sum(each["replicas"] for each in tasks(job) if isinstance(each.get("replicas"), int))


def queue(job: Mapping[str, Any], _: int = 0) -> str:
    """Give the queue of a job."""
    return str(structure.mapping(job, "spec").get("queue") or names.DEFAULT_QUEUE)


def _created(job: Mapping[str, Any], _: int) -> str:
    return str(structure.mapping(job, "metadata").get("creationTimestamp") or "").partition("T")[0]


def _type(job: Mapping[str, Any], _: int) -> str:
    return str(structure.mapping(job, "metadata", "labels").get(names.JOB_TYPE) or BATCH)


NAMESPACE: Final = Column("Namespace", columns.namespace, gap=3)
COLUMNS: Final = (
    Column("Name", columns.name, gap=3),
    Column("Creation", _created, 15),
    Column("Phase", columns.field("status", "state", "phase"), 12, is_state=True),
    Column("JobType", _type, 12),
    Column("Replicas", replicas, 12),
    Column("Min", columns.count("status", "minAvailable"), 6),
    Column("Pending", columns.count("status", "pending"), 10),
    Column("Running", columns.count("status", "running"), 10),
    Column("Succeeded", columns.count("status", "succeeded"), 12),
    Column("Failed", columns.count("status", "failed"), 10),
    Column("Unknown", columns.count("status", "unknown"), 12),
    Column("RetryCount", columns.count("status", "retryCount"), 10),
)
REASON: Final = Column("Reason", columns.field("status", "state", "message"), gap=0)
"""While a Job waits its message is the cause, which the scheduler says of its group; it is long, and last."""
WIDE: Final = (
    Column("Queue", queue, gap=3),
    Column("Scheduler", columns.field("spec", "schedulerName", otherwise=columns.NONE), gap=3),
    Column("Priority", columns.field("spec", "priorityClassName", otherwise=columns.NONE), gap=3),
    Column("Age", columns.age, moves=True, gap=3),
    REASON,
)
NARROW: Final = (
    Column("Name", columns.name, gap=2),
    Column("Phase", columns.field("status", "state", "phase"), gap=2, is_state=True),
    Column("Min", columns.count("status", "minAvailable"), gap=2),
    Column("Running", columns.count("status", "running"), gap=2),
    REASON,
)
"""What is shown where a person looks and the whole table would push the cause off the terminal."""


def table(
    jobs: Sequence[Mapping[str, Any]], *, everywhere: bool, terminal: int, follows: bool = False
) -> tuple[Column, ...]:
    """Choose the columns: vcctl's, and the cause after them as soon as a job has one, or may get one while the list `follows`.

    On a terminal that is too narrow for that, given by its width, there are few others before the cause; a script is nowhere narrow.
    """
    first = (NAMESPACE,) if everywhere else ()
    if not follows and not any(REASON.cell(job, 0) for job in jobs):
        return (*first, *COLUMNS)
    whole = (*first, *COLUMNS, REASON)
    needed = sum(columns.widths(whole, [columns.row(whole, job, 0) for job in jobs]))
    return (*first, *NARROW) if 0 < terminal < needed else whole


def chosen(
    jobs: list[dict[str, Any]], *, queue_name: str = "", scheduler: str = "", part: str = ""
) -> Iterator[dict[str, Any]]:
    """Give the jobs of a queue and a scheduler whose name has some part."""
    for job in jobs:
        if queue_name and queue(job) != queue_name:
            continue
        if scheduler and structure.mapping(job, "spec").get("schedulerName") != scheduler:
            continue
        if part in columns.name(job):
            yield job
