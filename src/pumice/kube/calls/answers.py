"""Answers of an API server: their refusals, and what it means if there is none."""

from __future__ import annotations

import os
import ssl
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

import msgspec

from pumice.kube import errors

if TYPE_CHECKING:
    from pumice.kube.access.endpoint import Connection
    from pumice.kube.calls.http_answers import Answer
    from pumice.kube.calls.requests import Request

_SHOWN: Final = 1000


class _Cause(msgspec.Struct, frozen=True):
    reason: str = ""


class _Details(msgspec.Struct, frozen=True, rename="camel"):
    retry_after_seconds: int = 0
    causes: tuple[_Cause, ...] | None = ()


class _Status(msgspec.Struct, frozen=True):
    """The `Status` object that explains a refusal."""

    kind: str = ""
    reason: str = ""
    message: str = ""
    details: _Details | None = None


_STATUS: Final = msgspec.json.Decoder(_Status)


def refusal(answer: Answer, request: Request, connection: Connection) -> errors.KubeError:
    """Return the error for an answer that is none of success."""
    status = answer.status
    error = parse_status(status, answer.body, answer.headers.get("retry-after", ""), request.title)
    if status == 401:
        return errors.ApiError(
            401,
            error.reason or "Unauthorized",
            f"{request.title}: the server does not accept the credentials of {connection.origin or connection.server}; "
            "fetch new ones and check that they belong to this cluster",
        )
    if 300 <= status < 400:
        target = urlsplit(answer.headers.get("location", ""))
        return errors.ApiError(
            status,
            "Redirect",
            f"{request.title}: the server points to {target.hostname or 'another path'}; redirects are not followed, "
            "so give the server's own address",
        )
    uncertain = status >= 500 and not (status == 503 and error.retry_after is not None)
    if request.write and uncertain:
        return errors.UnknownOutcomeError(f"{error}; it may have happened all the same", status=status)
    return error


def parse_status(status: int, body: bytes, retry_after: str, title: str) -> errors.ApiError:
    """Return the refusal that a `Status` object, or any other body of an answer, describes."""
    try:
        parsed = _STATUS.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        parsed = _Status()
    details = parsed.details or _Details()
    message = parsed.message[:_SHOWN] if parsed.kind == "Status" else ""
    wait: float | None = None
    if retry_after.isascii() and retry_after.isdigit():
        wait = float(retry_after[:9])
    elif details.retry_after_seconds > 0:
        wait = float(details.retry_after_seconds)
    return errors.ApiError(
        status,
        parsed.reason,
        f"{title}: {message}" if message else f"{title}: refused with {len(body)} bytes that hold no Status",
        wait,
        tuple(cause.reason for cause in details.causes or ()),
    )


def unanswered(request: Request, server: str, what: str) -> errors.KubeError:
    """Return what it means that a request which has left got no whole answer."""
    if request.write:
        return errors.UnknownOutcomeError(f"{request.title}: {server}: {what}; the write may have happened")
    return errors.BrokenConnectionError(f"{request.title}: {server}: {what}")


def oversized(error: errors.OversizeError, request: Request, server: str) -> errors.KubeError:
    """Return what it means that an answer is larger than is read."""
    if request.write:
        return unanswered(request, server, "the answer is too large to be read")
    return errors.OversizeError(f"{request.title}: {error}")


def broken(error: Exception, request: Request, server: str) -> errors.KubeError:
    """Return what it means that a connection broke."""
    name = error.reason if isinstance(error, ssl.SSLError) else type(error).__name__
    what = f"the connection broke before the whole answer was there ({name})"
    return unanswered(request, server, what)


def unreachable(cause: Exception, request: Request, server: str, *, proxy: str = "") -> errors.UnreachableError:
    """Return what it means that no connection could be opened, to the server or to the proxy before it."""
    where = f"{request.title}: {server}"
    if isinstance(cause, TimeoutError) and not cause.errno:
        return errors.UnreachableError(f"{where}: no connection in time; check the address and the network")
    if isinstance(cause, ssl.CertificateError):
        why = getattr(cause, "verify_message", "") or "it does not match"
        return errors.UnreachableError(
            f"{where}: its certificate is not trusted: {why}; check certificate-authority and tls-server-name",
            transient=False,
        )
    if isinstance(cause, ssl.SSLError):
        ended = isinstance(cause, ssl.SSLEOFError | ssl.SSLZeroReturnError)
        return errors.UnreachableError(f"{where}: TLS failed: {cause.reason or 'no agreement'}", transient=ended)
    number = (cause.errno if isinstance(cause, OSError) else None) or 0
    what = os.strerror(number) if number > 0 else "the address is not known"
    if proxy:
        return errors.UnreachableError(f"{where}: no connection to the proxy {proxy}: {what}; check proxy-url")
    return errors.UnreachableError(
        f"{where}: no connection: {what}; check that the server runs and the address is right"
    )
