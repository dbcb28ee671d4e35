"""Answers of an API server: their bodies, their refusals, and what it means if there is none."""

from __future__ import annotations

import os
import ssl
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

import aiohttp
import msgspec

from pumice.kube import errors

if TYPE_CHECKING:
    from pumice.kube.access.endpoint import Connection
    from pumice.kube.calls.transport import Request

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


async def read(response: aiohttp.ClientResponse, largest: int, request: Request) -> bytes:
    """Read a body up to a limit."""
    announced = response.content_length
    if announced is not None:
        if announced > largest:
            response.close()
            raise errors.OversizeError(f"{request.title}: the answer has {announced} bytes; at most {largest} are read")
        return await response.read()
    parts: list[bytes] = []
    size = 0
    async for part in response.content.iter_any():
        size += len(part)
        if size > largest:
            response.close()
            raise errors.OversizeError(
                f"{request.title}: the answer has more than {largest} bytes, which is all that is read"
            )
        parts.append(part)
    return b"".join(parts)


def refusal(
    response: aiohttp.ClientResponse, body: bytes, request: Request, connection: Connection
) -> errors.KubeError:
    """Return the error for an answer that is none of success."""
    status = response.status
    error = parse_status(status, body, response.headers.get("Retry-After", ""), request.title)
    if status == 401:
        return errors.ApiError(
            401,
            error.reason or "Unauthorized",
            f"{request.title}: the server does not accept the credentials of {connection.origin or connection.server}; "
            "fetch new ones and check that they belong to this cluster",
        )
    if 300 <= status < 400:
        target = urlsplit(response.headers.get("Location", ""))
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


def translate(error: Exception, request: Request, server: str, timeout: float) -> errors.KubeError:
    """Return what an exception of the HTTP library means for a request."""
    if isinstance(error, errors.OversizeError) and not request.write:
        return error
    where = f"{request.title}: {server}"
    if isinstance(error, aiohttp.ConnectionTimeoutError):
        return errors.UnreachableError(f"{where}: no connection in time; check the address and the network")
    if isinstance(error, aiohttp.ClientHttpProxyError):
        return errors.UnreachableError(f"{where}: the proxy refused with {error.status}; check the proxy's settings")
    if isinstance(error, aiohttp.ClientConnectorError | aiohttp.ClientConnectorCertificateError):
        return _unreachable(error, where)
    if isinstance(error, aiohttp.InvalidURL):
        return errors.UnreachableError(f"{where}: not a valid address", transient=False)
    if isinstance(error, TimeoutError):
        what = f"no whole answer within {timeout:g} s"
    elif isinstance(error, errors.OversizeError):
        what = "the answer is too large to be read"
    else:
        cause = error.__cause__ if isinstance(error.__cause__, ssl.SSLError) else error
        name = cause.reason if isinstance(cause, ssl.SSLError) else type(error).__name__
        what = f"the connection broke before the whole answer was there ({name})"
    if request.write:
        return errors.UnknownOutcomeError(f"{where}: {what}; the write may have happened")
    return errors.BrokenConnectionError(f"{where}: {what}")


def _unreachable(
    error: aiohttp.ClientConnectorError | aiohttp.ClientConnectorCertificateError, where: str
) -> errors.UnreachableError:
    cause = error.os_error if isinstance(error, aiohttp.ClientConnectorError) else error
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        verify = error.certificate_error
        why = getattr(verify, "verify_message", "") or "it does not match"
        return errors.UnreachableError(
            f"{where}: its certificate is not trusted: {why}; check certificate-authority and tls-server-name",
            transient=False,
        )
    if isinstance(cause, ssl.SSLError):
        broken = isinstance(cause, ssl.SSLEOFError | ssl.SSLZeroReturnError)
        return errors.UnreachableError(f"{where}: TLS failed: {cause.reason or 'no agreement'}", transient=broken)
    number = (cause.errno if isinstance(cause, OSError) else None) or 0
    what = os.strerror(number) if number > 0 else "the address is not known"
    if isinstance(error, aiohttp.ClientProxyConnectionError):
        return errors.UnreachableError(f"{where}: no connection to the proxy {error.host}: {what}; check proxy-url")
    return errors.UnreachableError(
        f"{where}: no connection: {what}; check that the server runs and the address is right"
    )
