"""What can go wrong between us and an API server, and what each case says about the request.

The one question that matters for a write is whether it happened. `ApiError`: the server said no. `UnreachableError`: the request certainly never
left. `UnknownOutcomeError`: it may or may not have happened, so what it would use has to be held until the cluster has spoken. No
message carries a token, a key, a certificate or the header that authorises a request.
"""

from __future__ import annotations

from typing import ClassVar, Final

from pumice.cache import effects

_CODES: Final[dict[int, effects.FailureCode]] = {404: "notfound", 409: "conflict", 429: "unavailable"}


class KubeError(Exception):
    """Anything that kept a request from being answered as hoped."""

    code: ClassVar[effects.FailureCode] = "unavailable"

    @property
    def failure(self) -> effects.Failure:
        """The failure to report for an effect that met this error."""
        return effects.Failure(self.code, str(self))


class ConfigurationError(KubeError):
    """A kubeconfig, a flag or an in-cluster account that cannot be used; the message names the file, the entry and the field."""

    code = "refused"


class CredentialsError(KubeError):
    """Credentials that could not be obtained just now: a plugin that failed, a token file that is gone. Nothing was sent."""


class UnreachableError(KubeError):
    """The request certainly was not sent: no address, no connection, no agreement on TLS.

    `transient` is False where trying again cannot help, as with a certificate that nobody trusts.
    """

    def __init__(self, message: str, *, transient: bool = True) -> None:
        super().__init__(message)
        self.transient = transient


class BrokenConnectionError(KubeError):
    """A read that got no whole answer: the connection broke, or the time was up."""


class SilenceError(BrokenConnectionError):
    """A watch on which no byte arrived for too long."""


class OversizeError(KubeError):
    """An answer, or one line of a watch, larger than is read."""

    code = "refused"


class UnknownOutcomeError(KubeError):
    """A write that may or may not have happened; `status` is that of the server's answer, 0 if there was none."""

    code = "unknown"

    def __init__(self, message: str, *, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


class ApiError(KubeError):
    """The API server's refusal: HTTP status, and reason and message of its `Status` object."""

    def __init__(
        self, status: int, reason: str, message: str, retry_after: float | None = None, causes: tuple[str, ...] = ()
    ) -> None:
        super().__init__(f"{message} ({status} {reason})" if reason else f"{message} ({status})")
        self.status = status
        self.reason = reason
        self.message = message
        self.retry_after = retry_after
        self.causes = causes

    @property
    def budget_forbids(self) -> bool:
        """Whether an eviction was refused by a disruption budget: asking again at once is of no use, though the status is 429."""
        return self.status == 429 and "DisruptionBudget" in self.causes

    @property
    def failure(self) -> effects.Failure:
        """The failure to report: what the status means for the effect."""
        if self.budget_forbids:
            return effects.Failure("refused", str(self))
        return effects.Failure(_CODES.get(self.status, "unavailable" if self.status >= 500 else "refused"), str(self))
