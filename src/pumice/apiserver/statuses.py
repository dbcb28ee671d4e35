"""Answers that are no success, as the `Status` objects that every Kubernetes client understands."""

from __future__ import annotations

from typing import Any, Final

from pumice.sim import errors

Document = dict[str, Any]
Causes = list[tuple[str, str, str]]  # reason, field, message

_REASONS: Final = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    405: "MethodNotAllowed",
    406: "NotAcceptable",
    409: "Conflict",
    410: "Expired",
    413: "RequestEntityTooLarge",
    415: "UnsupportedMediaType",
    422: "Invalid",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
    504: "Timeout",
}


class Problem(Exception):  # noqa: N818  an answer, and no error of ours
    """Why a request is refused: the code, the reason and the message of its Status, and perhaps what it is about."""

    def __init__(self, code: int, message: str, *, reason: str = "", details: Document | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.reason = reason or _REASONS.get(code, "")
        self.details = details

    def status(self) -> Document:
        """Give the Status object."""
        status: Document = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "code": self.code,
        }
        if self.reason:
            status["reason"] = self.reason
        if self.details:
            status["details"] = self.details
        return status


def qualified(plural: str, group: str) -> str:
    """Name a resource or kind with its group, as messages do: `podgroups.scheduling.volcano.sh`."""
    return f"{plural}.{group}" if group else plural


def not_found(plural: str, group: str, name: str) -> Problem:
    """Say that an object does not exist."""
    details = {"name": name, "kind": plural} | ({"group": group} if group else {})
    return Problem(404, f'{qualified(plural, group)} "{name}" not found', details=details)


def already_exists(plural: str, group: str, name: str, prefix: str) -> Problem:
    """Say that an object of that name is there already; who gave a prefix for a name is told that none could be made up, even if a name was stated."""
    details = {"name": name, "kind": plural} | ({"group": group} if group else {})
    message = f'{qualified(plural, group)} "{name}" already exists'
    message += ", the server was not able to generate a unique name for the object" if prefix else ""
    return Problem(409, message, reason="AlreadyExists", details=details)


def conflict(plural: str, group: str, name: str, why: str) -> Problem:
    """Say that an object is not what the writer believes it to be."""
    details = {"name": name, "kind": plural} | ({"group": group} if group else {})
    message = f'Operation cannot be fulfilled on {qualified(plural, group)} "{name}": {why}'
    return Problem(409, message, details=details)


def invalid(kind: str, group: str, name: str, causes: Causes) -> Problem:
    """Say what is wrong with an object, field by field."""
    lines = [f"{field}: {message}" if field else message for _, field, message in causes]
    listed = lines[0] if len(lines) == 1 else f"[{', '.join(lines)}]"
    details = {
        **({"name": name} if name else {}),
        **({"group": group} if group else {}),
        "kind": kind,
        "causes": [{"reason": reason, "message": message, "field": field} for reason, field, message in causes],
    }
    return Problem(422, f'{qualified(kind, group)} "{name}" is invalid: {listed}', details=details)


def forbidden(plural: str, group: str, name: str, why: str) -> Problem:
    """Say that an object may not be written as it is."""
    details = {"name": name, "kind": plural} | ({"group": group} if group else {})
    return Problem(403, f'{qualified(plural, group)} "{name}" is forbidden: {why}', details=details)


def bad_request(message: str) -> Problem:
    """Say that a request makes no sense."""
    return Problem(400, message)


def expired(message: str) -> Problem:
    """Say that a version or a page is too old; the client lists again."""
    return Problem(410, message)


def unknown_path() -> Problem:
    """Say that nothing is served at a path, in the words of kube-apiserver."""
    return Problem(404, "the server could not find the requested resource")


def of_store(error: errors.ApiError) -> Problem:
    """Say what the store answered, where nobody has found better words before."""
    codes: dict[type[errors.ApiError], int] = {
        errors.NotFoundError: 404,
        errors.AlreadyExistsError: 409,
        errors.ConflictError: 409,
        errors.GoneError: 410,
    }
    return Problem(codes.get(type(error), 400), str(error))
