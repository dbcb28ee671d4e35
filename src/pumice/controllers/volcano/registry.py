"""The controllers of Volcano's kinds by the names under which operators choose them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol, runtime_checkable

from pumice.controllers.cron_jobs.controlling import CronJobs
from pumice.controllers.volcano.hyper_nodes.controlling import Discovery
from pumice.controllers.volcano.hyper_nodes.counting import HyperNodeCounts
from pumice.controllers.volcano.job_flows.controlling import JobFlows
from pumice.controllers.volcano.job_flows.templates import JobTemplates
from pumice.controllers.volcano.jobs.controlling import Jobs
from pumice.controllers.volcano.jobs.expiring import ExpiredJobs
from pumice.controllers.volcano.queues.controlling import Queues

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pumice.controllers.queueing.controller import Controller

SOURCE: Final = "vc-controller-manager"
"""Who is named as the source of their events, as Volcano's users look for them."""

REGISTERED: Final[Mapping[str, Callable[[], Sequence[Controller]]]] = {
    # Those that keep account of Jobs come before those that end and delete them: what happens to a Job is looked at in this order.
    "jobflow-controller": lambda: [JobFlows()],
    "jobtemplate-controller": lambda: [JobTemplates()],
    "cronjob-controller": lambda: [CronJobs()],
    "queue-controller": lambda: [Queues()],
    "job-controller": lambda: [Jobs()],
    "gc-controller": lambda: [ExpiredJobs()],
    "hyperNode-controller": lambda: [HyperNodeCounts(), Discovery()],
}
"""A name that operators know may stand for several controllers, since a controller looks at one kind."""

REFUSED: Final[Mapping[str, str]] = {
    "sharding-controller": "node shards are not supported: one scheduler here serves every node; leave it out",
    "colocation-config-controller": "colocation is not supported: no node agent reads its annotations; leave it out",
}
"""Names that Volcano has and this project does not, with why."""


@runtime_checkable
class Limited(Protocol):
    """A controller that gives an object up after so many refusals in a row; below 0: never."""

    most_refusals: int


def controllers(names: Sequence[str] = tuple(REGISTERED), *, most_refusals: int | None = None) -> list[Controller]:
    """Give the controllers of the given names, in the order of the register; with a limit of their own if one is given."""
    found = [each for name, made in REGISTERED.items() if name in names for each in made()]
    for each in found:
        if most_refusals is not None and isinstance(each, Limited):
            each.most_refusals = most_refusals
    return found
