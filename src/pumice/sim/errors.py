"""What the object store answers instead of doing what it was asked."""

from __future__ import annotations


class ApiError(Exception):
    """An answer of the API server that is not a success; the message names the object."""


class NotFoundError(ApiError):
    """There is no such object, or no such subresource (404)."""


class AlreadyExistsError(ApiError):
    """An object of that name is there already (409)."""


class ConflictError(ApiError):
    """The object is not what the writer believes it to be (409)."""


class GoneError(ApiError):
    """The history after that version was compacted; list again (410)."""


class InvalidError(ApiError):
    """The request makes no sense to the server (400, 415, 422)."""
