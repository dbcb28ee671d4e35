"""The controllers of Volcano's kinds by the names under which operators choose them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pumice.controllers.volcano.jobs.controlling import Jobs
from pumice.controllers.volcano.jobs.expiring import ExpiredJobs

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pumice.controllers.queueing.engine import Controller

REGISTERED: Final[Mapping[str, Callable[[], Sequence[Controller]]]] = {
    "job-controller": lambda: [Jobs()],
    "gc-controller": lambda: [ExpiredJobs()],
}
"""A name that operators know may stand for several controllers, since a controller looks at one kind."""


def controllers(names: Sequence[str] = tuple(REGISTERED)) -> list[Controller]:
    """Give the controllers of the given names, in the order of the register."""
    return [each for name, made in REGISTERED.items() if name in names for each in made()]
