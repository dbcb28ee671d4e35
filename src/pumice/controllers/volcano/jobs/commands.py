"""Commands: what people order a Job to do.

The order is written into the Job's status, with the uid of the Command, and then the Command is deleted. Who finds one that the status names knows that it was
carried out, so whatever is cut short in between, it is carried out once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pumice.api import duration, kinds
from pumice.controllers.queueing import requests
from pumice.controllers.volcano.jobs import reading
from pumice.controllers.workloads import manifests, steps_to

if TYPE_CHECKING:
    from pumice.controllers.queueing.observed import Observed
    from pumice.controllers.queueing.requests import Moment, Reconciled
    from pumice.controllers.volcano.jobs.reading import Job

Manifest = dict[str, Any]
_PATIENCE: Final = duration.MINUTE  # with a Command for a Job that nobody has heard of


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


def for_nobody(found: list[Manifest], moment: Moment) -> Reconciled:
    """Drop Commands for a Job that is not there, after a while: one that is new may have outrun its Job."""
    dues = [(manifests.created(each) + _PATIENCE, each) for each in found]
    steps = [steps_to.delete(kinds.COMMAND, each) for due, each in dues if due <= moment.now]
    later = [due for due, _ in dues if due > moment.now]
    return requests.Reconciled(steps=steps, again=min(later) if later else None)
