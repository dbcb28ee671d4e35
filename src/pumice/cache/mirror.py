"""What the parts of the cache need of it: the model, where effects go, and how objects are spoken of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

    from pumice.api import kinds, meta
    from pumice.cache.assignment import Assignment
    from pumice.cache.effects import World
    from pumice.cache.options import Options
    from pumice.framework.record import CycleRecord
    from pumice.model.cluster import Cluster
    from pumice.model.job import Job


class Mirror(Protocol):
    """The cache, as its parts see it."""

    cluster: Cluster
    options: Options
    assignment: Assignment | None
    record: CycleRecord
    world: World
    is_given_up: Callable[[Cluster, str], bool]

    def broke(self, what: str, error: Exception) -> None:
        """Note that something broke down, and go on with what comes next."""

    def disable(self, kind: kinds.Kind, metadata: meta.ObjectMeta, job: str, problem: str) -> None:
        """Tell, once, what is wrong with an object."""

    def enable(self, kind: kinds.Kind, metadata: meta.ObjectMeta, job: str) -> None:
        """Note that nothing is wrong with an object, or nothing any more."""

    def note(
        self,
        kind: kinds.Kind,
        metadata: meta.ObjectMeta,
        type_: Literal["Normal", "Warning"],
        reason: str,
        message: str,
        *,
        once: bool = False,
    ) -> None:
        """Tell something of an object, as an event on it."""

    def forget(self, kind: kinds.Kind, metadata: meta.ObjectMeta, job: str) -> None:
        """Note that an object is gone: what was wrong with it, and what was told about it."""

    def forget_told(self, uid: str) -> None:
        """Forget what was told about an object that is gone."""


def report_again(cache: Mirror, job: Job) -> None:
    """Have a job reported in the next cycle though nothing about it has changed."""
    cache.cluster.dirty_jobs[job.key] = job
    cache.record.stands(job.key, None)
    cache.cluster.changed += 1
