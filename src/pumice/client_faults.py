"""Requests over HTTP that end amid themselves or are none: faults of clients, of which aiohttp tells with a traceback as if the server had broken down.

Anybody who reaches a port could fill its log so: they are answered as far as somebody listens, and not told of.
"""

from __future__ import annotations

import logging

from aiohttp import http_exceptions

_FAULTS = (ConnectionError, http_exceptions.HttpProcessingError)


def leave_out() -> None:
    """Keep them out of what the servers of this process log."""
    logging.getLogger("aiohttp.server").addFilter(_is_of_the_server)


def _is_of_the_server(record: logging.LogRecord) -> bool:
    return not (
        record.msg == "Error handling request from %s" and record.exc_info and isinstance(record.exc_info[1], _FAULTS)
    )
