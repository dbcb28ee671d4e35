"""The rows of flows of jobs, and of the templates that they are made from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pumice.cli.volcano import columns, job_rows
from pumice.cli.volcano.columns import Column
from pumice.sim import structure

if TYPE_CHECKING:
    from collections.abc import Mapping

_COUNTED: Final = (
    ("Pending", "pendingJobs"),
    ("Running", "runningJobs"),
    ("Completed", "completedJobs"),
    ("Failed", "failedJobs"),
    ("Terminated", "terminatedJobs"),
)


def _length(*path: str) -> columns.Cell:
    def cell(item: Mapping[str, Any], _: int) -> int:
        found = structure.mapping(item, *path[:-1]).get(path[-1])
        return len(found) if isinstance(found, list) else 0

    return cell


FLOWS: Final = (
    Column("Name", columns.name, gap=4),
    Column("Namespace", columns.namespace, gap=4),
    Column("Phase", columns.field("status", "state", "phase"), gap=4, is_state=True),
    Column("Age", columns.age, gap=4, moves=True),
)
WIDE_FLOWS: Final = (
    Column("Flows", _length("spec", "flows"), gap=4),
    *(Column(heading, _length("status", key), gap=4) for heading, key in _COUNTED),
    Column("Retain", columns.field("spec", "jobRetainPolicy", otherwise="retain"), gap=4),
)
TEMPLATES: Final = (
    Column("Name", columns.name, gap=4),
    Column("Namespace", columns.namespace, gap=4),
)
WIDE_TEMPLATES: Final = (
    Column("Tasks", _length("spec", "tasks"), gap=4),
    Column("Replicas", job_rows.replicas, gap=4),
    Column("Queue", job_rows.queue, gap=4),
    Column("Jobs", _length("status", "jobDependsOnList"), gap=4),
    Column("Age", columns.age, gap=4, moves=True),
)
