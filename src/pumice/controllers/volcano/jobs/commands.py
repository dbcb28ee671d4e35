"""Commands: what people order a Job to do.

The order is written into the Job's status, with the uid of the Command, and then the Command is deleted. Who finds one that the status names knows that it was
carried out, so whatever is cut short in between, it is carried out once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from pumice.api import kinds
from pumice.controllers.queueing import requests
from pumice.controllers.volcano.jobs import reading, states
from pumice.controllers.workloads import manifests, steps_to

if TYPE_CHECKING:
    from pumice.controllers.queueing.observed import Observed
    from pumice.controllers.queueing.requests import Reconciled, Step
    from pumice.controllers.volcano.jobs.reading import Job

Manifest = dict[str, Any]
_ISSUED: Final = "CommandIssued"


def waiting(namespace: str, name: str, observed: Observed) -> list[Manifest]:
    """Give the Commands for a Job, the oldest first."""
    found = [
        each
        for each in observed.inside(kinds.COMMAND, namespace)
        if reading.command_target(each) == (namespace, name) and not manifests.is_going(each)
    ]
    return sorted(found, key=lambda each: (manifests.created(each), manifests.name(each)))


def carried_out(job: Job, found: list[Manifest]) -> list[Manifest]:
    """Give those that the status names."""
    return [each for each in found if manifests.uid(each) and manifests.uid(each) in job.message]


def told(command: Manifest) -> str:
    """Say which Command it was."""
    words = [str(command[field]) for field in ("reason", "message") if command.get(field)]
    return ": ".join([f"Command {manifests.name(command)} ({manifests.uid(command)})", *words])


def obeyed(job: Job, command: Manifest, steps: list[Step]) -> Reconciled:
    """Do what a Command asks, delete it and tell so; one that asks for nothing that a Job can do is deleted with a warning."""
    action = str(command.get("action", ""))
    deleted = steps_to.delete(kinds.COMMAND, command)
    if action not in states.ORDERS:
        known = ", ".join(states.ORDERS)
        told = f"Command {manifests.name(command)}: {action[:40]!r} is nothing that a Job can be ordered to do; it is one of {known}"
        return requests.Reconciled(steps=[deleted], notes=[("Warning", _ISSUED, told)])
    told = f"Start to execute command {action}, and clean it up to make sure executed not more than once"
    told += "" if steps else f"; it changes nothing, as the Job is {job.phase or 'new'}"
    return requests.Reconciled(steps=[*steps, msgspec.structs.replace(deleted, said=(_ISSUED, told))])


def too_late(found: list[Manifest]) -> Reconciled:
    """Drop Commands for a Job that is being deleted, which a finalizer may make last for long."""
    told = "Command {} comes too late: the Job is being deleted"
    return requests.Reconciled(
        steps=[steps_to.delete(kinds.COMMAND, each) for each in found],
        notes=[("Warning", _ISSUED, told.format(manifests.name(each))) for each in found],
    )


def for_nobody(found: list[Manifest], namespace: str, name: str) -> Reconciled:
    """Drop Commands for a Job that is not there; the cluster itself is asked, as a Command may have outrun its Job."""
    if not found:
        return requests.Reconciled()
    absent = requests.Confirm(kind=kinds.JOB, namespace=namespace, name=name, uid="")
    return requests.Reconciled(
        steps=[requests.Step(request=absent), *(steps_to.delete(kinds.COMMAND, each) for each in found)]
    )
