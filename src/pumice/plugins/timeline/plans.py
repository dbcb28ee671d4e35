"""What is planned for jobs that hold nothing, who they are, and what they were told."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from pumice.api import names
from pumice.plugins.timeline import texts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from pumice.framework.findings import Forecast, Refused
    from pumice.framework.session import Session
    from pumice.model.job import Job
    from pumice.model.task import Task
    from pumice.plugins.timeline.ledger import Booking
    from pumice.plugins.timeline.profile import Profile
    from pumice.plugins.timeline.promises import Promises
    from pumice.plugins.timeline.waits import Reckoned

BEYOND: Final = "members beyond its minimum"


class Plan(msgspec.Struct, frozen=True, eq=False):
    """Room for a job; or, where it has its minimum, for its members beyond that, which are jobs of their own: as many as find room at one time, then the next."""

    bookings: Sequence[Booking] = ()
    beyond: Sequence[Task] = ()

    @property
    def first(self) -> Booking | None:
        """The first of them, if there is any."""
        return self.bookings[0] if self.bookings else None

    def whose(self, now: int) -> str:
        """Write for which members it is, if not for the minimum: `; 1 of 2 members beyond its minimum, all of them by 14:32`."""
        if not self.beyond:
            return ""
        if not self.bookings:
            return f"; {len(self.beyond)} {BEYOND} wait"
        counts = [len(each.places) for each in self.bookings]
        text = f"; {counts[0]} of {len(self.beyond)} {BEYOND}"
        if len(counts) > 1 and sum(counts) == len(self.beyond):
            text += f", all of them by {texts.moment(self.bookings[-1].start, now)}"
        return text

    def is_of_the_same(self, message: str) -> bool:
        """Tell whether a forecast is for as many members beyond the minimum, or for that."""
        return f" {len(self.beyond)} {BEYOND}" in message if self.beyond else BEYOND not in message


class Told(msgspec.Struct, eq=False):
    """What was told of a job: the condition, what it is planned by, and when to look again."""

    forecast: Forecast
    plan: Plan
    again: int
    by: Reckoned | None = None

    @property
    def is_reserved(self) -> bool:
        """Whether room is held for the job."""
        return self.forecast.condition.reason == names.REASON_RESERVED

    @property
    def alarm(self) -> int:
        """When the job is due to be looked at again."""
        first = self.plan.first
        return self.again if first is None or self.is_reserved else min(self.again, first.start)


class Shadow(msgspec.Struct, frozen=True, eq=False):
    """Room over time with what is only planned in it too; `promised` is both, as far as it comes before whoever is planned."""

    profile: Profile
    held: Mapping[str, Booking]
    planned: Callable[[], Iterable[Booking]]
    promised: Sequence[Promises]

    @property
    def expected(self) -> list[Booking]:
        """What is promised, and what is planned as if it were."""
        return [*(msgspec.structs.replace(each, laid=True) for each in self.planned()), *self.held.values()]


class Waiting(msgspec.Struct, frozen=True, eq=False):
    """Jobs that found no room in this cycle, in the order in which they were tried; those that were not looked at since they would find none; and after all others those that nobody tried, and last those that have their minimum, with their members `beyond` it."""

    tried: Mapping[str, Job]
    resting: Mapping[str, Refused]
    others: Mapping[str, Job]
    beyond: Mapping[str, Sequence[Task]] = {}

    def __contains__(self, key: str) -> bool:
        return key in self.tried or key in self.resting or key in self.others

    def as_before(self, key: str, told: Told) -> bool:
        """Tell whether a job waits for what it was told of: its minimum, or as many members beyond that."""
        return key in self and len(told.plan.beyond) == len(self.beyond.get(key, ()))

    def in_order(self, session: Session) -> dict[str, Job]:
        """Return all of them in planning order."""
        if not self.resting:
            return {**self.tried, **self.others}
        jobs = session.cluster.jobs
        listed = session.job_order.sort([*self.tried.values(), *(jobs[key] for key in self.resting)])
        return {**{job.key: job for job in listed}, **self.others}
