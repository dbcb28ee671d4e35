"""A JobFlow as its steps, each one Job made from a template, and what has become of these Jobs.

A Job that was seen to end stays ended when it is deleted, be it by its time to live: it is not run again, and what waits for it goes on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from pumice.controllers.workloads import manifests

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Manifest = dict[str, Any]
COMPLETED: Final = "Completed"
FAILED: Final = "Failed"
TERMINATED: Final = "Terminated"
RUNNING: Final = "Running"
PENDING: Final = "Pending"
LISTS: Final = {
    PENDING: "pendingJobs",
    RUNNING: "runningJobs",
    FAILED: "failedJobs",
    COMPLETED: "completedJobs",
    TERMINATED: "terminatedJobs",
}
"""The list of the status in which Jobs of a phase stand; all others stand among the unknown."""
UNKNOWN: Final = "unKnowJobs"
ENDED: Final = (COMPLETED, FAILED, TERMINATED)


class FlowJob(msgspec.Struct, frozen=True):
    """One Job of a flow: its name, its template, and the names of the Jobs before it."""

    job: str
    template: str
    before: tuple[str, ...]


def steps_of(flow: Mapping[str, Any]) -> list[FlowJob]:
    """Read the steps of a flow; a name that stands there twice is one Job, which either entry may begin."""
    name = manifests.name(flow)
    found: dict[FlowJob, None] = {}
    for entry in manifests.items(flow, "spec", "flows"):
        template = manifests.mapping(entry).get("name")
        if isinstance(template, str) and template:
            targets = manifests.items(entry, "dependsOn", "targets")
            before = tuple(f"{name}-{target}" for target in targets)
            found[FlowJob(f"{name}-{template}", template, before)] = None
    return list(found)


def phase_of(job: Mapping[str, Any]) -> str:
    """Give the phase of a Job; one that nobody has looked at is Pending."""
    return str(manifests.mapping(job, "status", "state").get("phase") or PENDING)


def phases(flow: Mapping[str, Any], jobs: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Give the phases of a flow's Jobs by name, those that have ended and are gone included."""
    found: dict[str, str] = {}
    for phase in ENDED:
        listed = manifests.items(flow, "status", LISTS[phase])
        found.update(dict.fromkeys((each for each in listed if isinstance(each, str)), phase))
    return found | {manifests.name(job): phase_of(job) for job in jobs}


def ready(steps: Sequence[FlowJob], known: Mapping[str, str]) -> list[FlowJob]:
    """Give the steps whose Jobs are still to be made, and may be, one for each Job."""
    found: dict[str, FlowJob] = {}
    for step in steps:
        if step.job not in known and all(known.get(before) == COMPLETED for before in step.before):
            found.setdefault(step.job, step)
    return list(found.values())
