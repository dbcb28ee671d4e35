"""small-first: let small gangs go before large ones. An order."""

from pumice.framework.plugin import Plugin
from pumice.framework.session import Session
from pumice.model.job import Job


class SmallFirst(Plugin):
    """Order the jobs of a queue by how many pods they need to start."""

    name = "small-first"
    points = frozenset({"JobOrder"})

    def open(self, session: Session) -> None:
        """Register the order: what a job is sorted by, the smallest first. Equal jobs go by age, then by name."""
        session.job_order.add(self.size)

    def size(self, job: Job) -> int:
        """Give the minimum of a job."""
        return job.min_member
