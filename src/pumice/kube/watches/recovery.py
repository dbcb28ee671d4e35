"""What a watch does when something goes wrong: how long it waits, and whether it resumes, lists again or reports what is missing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from pumice.kube import errors
from pumice.kube.watches import arrivals

if TYPE_CHECKING:
    import random

    from pumice.api.kinds import Kind

Remedy = Literal["resume", "relist", "absent", "forbidden"]

_TOO_LARGE: Final = "too large resource version"


class NotOfferedError(errors.KubeError):
    """A stream that began like a list, from a server that does not know that lists can be streams."""


class Backoff:
    """Waiting times that double with every failure in a row, up to a limit, with jitter."""

    def __init__(self, rng: random.Random, *, first: float = 0.2, longest: float = 5.0) -> None:
        self._rng = rng
        self._first = first
        self._longest = longest
        self.failures = 0

    def delay(self, *, asked: float | None = None) -> float:
        """Count a failure and return how long to wait now, no less than the server asked for."""
        step = min(self._longest, self._first * 2.0 ** min(self.failures, 30))
        self.failures += 1
        return max(step * (0.5 + 0.5 * self._rng.random()), min(asked or 0.0, self._longest))

    def reset(self) -> None:
        """Note that things work."""
        self.failures = 0


def remedy(error: errors.KubeError, *, again: bool) -> Remedy:
    """Say what helps; `again`, if the same version was tried before and nothing has arrived since.

    Wherever the history may be at fault a second failure asks for a list. A version from the future, which an etcd that was restored from a backup
    leaves us with, is refused as too large.
    """
    if isinstance(error, errors.ApiError):
        if error.status == 410 or _TOO_LARGE in error.message.lower():
            return "relist"
        if isinstance(error, arrivals.ReportedError):
            return "relist" if again else "resume"
        if error.status in (403, 404):
            return "forbidden" if error.status == 403 else "absent"
        return "resume" if error.status in (401, 429) or error.status >= 500 else "relist"
    doubtful = errors.SilenceError | errors.OversizeError | arrivals.GarbledError
    return "relist" if again and isinstance(error, doubtful) else "resume"


def declines_streaming(error: errors.KubeError) -> bool:
    """Tell whether an answer to a request for a list as a stream means that the server offers none.

    A server that has the feature but whose etcd is too old accepts the stream and ends it with an ERROR event; one that does not know the request
    says nothing, or sends objects without ever saying that these were all.
    """
    if isinstance(error, NotOfferedError | arrivals.ReportedError | errors.SilenceError):
        return True
    return isinstance(error, errors.ApiError) and error.status in (400, 422)


def missing_permission(kind: Kind, error: errors.ApiError) -> str:
    """Name the permissions without which a kind cannot be followed."""
    return (
        f"{error.message} (403); following {kind.plural} needs a ClusterRole bound to this account with "
        f'apiGroups: ["{kind.group}"], resources: ["{kind.plural}"], verbs: ["list", "watch"]'
    )
