"""Which requests are sent again, and when."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pumice.kube import errors

if TYPE_CHECKING:
    import random

_PASSING = frozenset((429, 500, 502, 503, 504))


class RetryPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """Exponential back-off with jitter; a server's Retry-After is followed up to a limit. Times are in seconds."""

    attempts: int = 5
    first: float = 0.1
    longest: float = 10.0
    longest_retry_after: float = 30.0

    def delay(self, error: errors.KubeError, attempt: int, *, write: bool, rng: random.Random) -> float | None:
        """Return how long to wait before the request is sent again after its n-th attempt (from 1), None if it is not.

        A write is sent again only if it certainly did not happen.
        """
        if not (did_not_happen(error) if write else _passing(error)):
            return None
        step = min(self.longest, self.first * 2.0 ** (attempt - 1))
        jittered = step * (0.5 + 0.5 * rng.random())
        asked = error.retry_after if isinstance(error, errors.ApiError) else None
        if asked is None:
            return jittered
        # The jitter comes on top, so that those who were told the same moment do not all come at it.
        return min(asked, self.longest_retry_after) + self.first * rng.random()


def did_not_happen(error: errors.KubeError) -> bool:
    """Whether a request with this outcome certainly changed nothing and may fare better if it is sent again."""
    if isinstance(error, errors.UnreachableError):
        return error.transient
    if isinstance(error, errors.ApiError):
        if error.status == 429:
            return not error.budget_forbids
        return error.status == 503 and error.retry_after is not None
    return False


def _passing(error: errors.KubeError) -> bool:
    if isinstance(error, errors.ApiError):
        return error.status in _PASSING
    return did_not_happen(error) or (
        isinstance(error, errors.BrokenConnectionError) and not isinstance(error, errors.SilenceError)
    )
