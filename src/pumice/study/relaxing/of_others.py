"""What others could give up: a job that ends, a budget that protects pods."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
from msgspec import structs

from pumice.api import core, kinds, names, resource
from pumice.model.statuses import FINISHED, SETTLED
from pumice.study.relaxing import of_queues, relaxation
from pumice.study.relaxing.relaxation import Edit, Relaxation

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pumice.api.meta import KubeObject
    from pumice.model.job import Job
    from pumice.study.relaxing.relaxation import Question

ENDS: Final = 4  # jobs of the same queue, and of others, whose end is looked at
OBSTACLES: Final = 3
SEVERAL: Final = 64  # jobs that end together
NAMED: Final = 3


def find(question: Question) -> Iterator[Relaxation]:
    """Walk over what others could give up."""
    yield from _ends(question)
    if question.evicts:
        yield from _budgets(question)


def _ends(question: Question) -> Iterator[Relaxation]:
    """Let one running job end: the smallest that hold as much as is wanted, some of the same queue and some of any; then several."""
    jobs = [job for job in question.cluster.jobs.values() if job is not question.job and job.group is not None]
    holders = _holders(question, jobs)
    yield from _given_back(question, holders)
    asked = of_queues.wanted(question)
    # Ranked by the rarest thing that is asked for: devices before memory and cpu.
    known = question.cluster.vocabulary.columns
    names_asked = [name for name in asked if name in known and name != "pods"]
    names_asked.sort(key=lambda name: (name in ("cpu", "memory"), name))
    if not jobs or not names_asked:
        return
    held = question.cluster.job_sums.allocated[[job.row for job in jobs]][:, [known[name] for name in names_asked]]
    enough = np.logical_and.reduce(held >= np.array([asked[name] for name in names_asked]), axis=1)
    usable = np.flatnonzero(enough) if enough.any() else np.flatnonzero(held.any(axis=1))
    order = sorted(usable.tolist(), key=lambda index: (held[index].tolist(), jobs[index].key))
    own = [jobs[index] for index in order if jobs[index].queue == question.job.queue][:ENDS]
    for job in dict.fromkeys([*own, *(jobs[index] for index in order[:ENDS])]):
        if job in holders[:ENDS]:
            continue
        placed = sum(1 for task in job.tasks.values() if task.status in SETTLED)
        yield Relaxation(
            sort="end", said=f"wait until {job.title} ends ({relaxation.pods(placed)})", edits=_ended(question, job)
        )
    some = np.flatnonzero(held.any(axis=1)).tolist()
    largest = sorted(some, key=lambda index: ([-amount for amount in held[index].tolist()], jobs[index].key))
    if len(largest) > 1:
        ranked = [jobs[index] for index in largest[:SEVERAL]]
        yield relaxation.graded(len(ranked), lambda number: _several(question, ranked[:number]))


def _holders(question: Question, jobs: list[Job]) -> list[Job]:
    """Return the jobs that have devices by claims, the smallest first, if the job in question asks for some."""
    if not any(task.shape.constraint_class.has_device_claims for task in question.members):
        return []
    return sorted((job for job in jobs if _claims(question, job)), key=lambda job: (len(job.tasks), job.key))


def _given_back(question: Question, holding: list[Job]) -> Iterator[Relaxation]:
    """Let one job end that has devices, then several."""
    for job in holding[:ENDS]:
        said = f"wait until {job.title} ends ({relaxation.pods(len(job.tasks))}), which gives its devices back"
        yield Relaxation(sort="end", said=said, edits=_ended(question, job))
    if len(holding) > 1:
        ranked = holding[:SEVERAL]
        yield relaxation.graded(len(ranked), lambda number: _several(question, ranked[:number]))


def _several(question: Question, jobs: list[Job]) -> Relaxation:
    named = ", ".join(job.title for job in jobs[:NAMED])
    more = f" and {len(jobs) - NAMED} more" if len(jobs) > NAMED else ""
    edits = tuple(edit for job in jobs for edit in _ended(question, job))
    return Relaxation(sort="ends", said=f"wait until {named}{more} {'end' if len(jobs) > 1 else 'ends'}", edits=edits)


def _ended(question: Question, job: Job) -> tuple[Edit, ...]:
    """Let the pods of a job that have a node have ended well, take those away that wait, and free the devices that nobody else uses."""
    left = [task for task in job.tasks.values() if task.status not in FINISHED]
    pods = [Edit(kinds.POD, task.pod, _succeeded if task.status in SETTLED else _gone) for task in left]
    return (*pods, *(Edit(kinds.RESOURCE_CLAIM, claim, _freed) for claim in _claims(question, job)))


def _claims(question: Question, job: Job) -> list[resource.ResourceClaim]:
    """Return the claims with devices that only the pods of a job use."""
    devices = question.cluster.devices
    keys = dict.fromkeys(
        use.key
        for task in job.tasks.values()
        if task.shape.constraint_class.has_device_claims
        for use in devices.uses_of(task.pod)
    )
    found = [
        devices.claims[key] for key in keys if key in devices.claims and devices.consumers(key) <= job.tasks.keys()
    ]
    return [claim for claim in found if claim.status.allocation is not None]


def _freed(found: KubeObject | None) -> KubeObject | None:
    return structs.replace(found, status=resource.ResourceClaimStatus()) if found is not None else None


def _succeeded(found: KubeObject | None) -> KubeObject | None:
    if not isinstance(found, core.Pod):
        return found
    return structs.replace(found, status=structs.replace(found.status, phase=names.PHASE_SUCCEEDED))


def _gone(_found: KubeObject | None) -> None:
    return None


def _budgets(question: Question) -> Iterator[Relaxation]:
    """Do without one budget that protects pods."""
    kept = question.cluster.objects.get(kinds.POD_DISRUPTION_BUDGET.name, {})
    for _, found in sorted(kept.items())[:OBSTACLES]:
        said = f"drop the PodDisruptionBudget {found.metadata.namespace}/{found.metadata.name}"
        yield Relaxation(sort="budget", said=said, edits=(Edit(kinds.POD_DISRUPTION_BUDGET, found, _gone),))
