"""The points about letting jobs in, of which a plugin may offer a form over many jobs: most that wait are let in, and what one vote rests on holds for the next as well."""

from __future__ import annotations

from collections.abc import Callable, Sequence  # noqa: TC003  msgspec reads the annotations at run time
from typing import Any

from pumice.framework.breakdowns import Rest
from pumice.framework.combining import Notify, Votes
from pumice.framework.extensions import Extension, Registered
from pumice.framework.reads import NOTHING, Reads
from pumice.model.job import Job


class AboutJobs(Registered[[Job], Any]):
    """A function about a job; `many` is its form over jobs of one queue."""

    many: Callable[[Sequence[Job]], Any] | None = None


class _AboutMany(Extension[[Job], Any]):
    """A point about jobs whose functions may have a form over many."""

    __slots__ = ()

    @classmethod
    def taken(cls, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the type of a job."""
        del arguments
        return (Job,)

    def add(
        self,
        function: Callable[[Job], Any],
        *,
        reads: Reads | None = None,
        many: Callable[[Sequence[Job]], Any] | None = None,
    ) -> None:
        """Register a function; `many` is its form over some jobs of one queue, in order. A vote says there how many of the first it permits if each is let in before the next, or fewer."""
        self._enter(AboutJobs("", function, NOTHING, None, 0, many), reads)


class AdmissionVotes(_AboutMany, Votes[[Job]]):
    """Votes on letting jobs in."""

    __slots__ = ()

    def permitted(self, jobs: Sequence[Job]) -> int:
        """Return how many of the first of some jobs of one queue are permitted for sure if each is let in before the next; about the others one has to ask, as about all of them if somebody breaks down."""
        deciding = next((tier for tier in self.tiers if tier), [])
        for registered in deciding:
            if not jobs or (many := _many(registered)) is None:
                return 0
            jobs = jobs[: many(jobs)]
        return len(jobs)


class AdmissionNews(_AboutMany, Notify[[Job]]):
    """Who hears of jobs that were let in."""

    __slots__ = ()

    @property
    def takes_many(self) -> bool:
        """Whether everybody can be told of many jobs at once."""
        return all(_many(registered) is not None for registered in self)

    def tell(self, jobs: Sequence[Job]) -> None:
        """Tell everybody of some jobs of one queue."""
        for registered in self:
            try:
                if (many := _many(registered)) is not None:
                    many(jobs)
            except Exception as error:
                raise self.broke(registered, error, jobs) from error


def _many(registered: Registered[[Job], Any]) -> Callable[[Sequence[Job]], Any] | None:
    """Return the form over many of a function, None if it has none or rests about some jobs."""
    if isinstance(registered.function, Rest) or not isinstance(registered, AboutJobs):
        return None
    return registered.many
