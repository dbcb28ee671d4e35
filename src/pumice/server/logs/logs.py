"""Log lines with fields, one per line on the standard error: key=value, or JSON.

Verbosity is klog's: errors, warnings and the life of the process always; 2 configuration, 3 every decision, 4 every cycle. Objects are written
namespace/name. What is logged never holds a token, a key or a header.
"""

from __future__ import annotations

import contextlib
import logging
import sys
from typing import TYPE_CHECKING, Any, TextIO

import structlog

from pumice.api import printable

if TYPE_CHECKING:
    from collections.abc import Callable

    from structlog.typing import EventDict, WrappedLogger

CONFIGURATION, DECISIONS, CYCLES = 2, 3, 4
HEAD = ("time", "level", "msg")
SOCKET_FOLDER = "DEBUG_SOCKET_DIR"  # the variable that names where the verbosity can be changed while the process runs


class _Lines(structlog.WriteLogger):
    """Writes lines as long as somebody takes them: one that cannot be written, to a full disk or to whoever has gone, is lost and stops nobody's work."""

    def msg(self, message: str) -> None:
        """Write a line."""
        with contextlib.suppress(OSError, ValueError):  # the latter if the stream was closed
            super().msg(message)

    info = warning = error = msg


class Log:
    """Writes lines; `shows` tells beforehand whether a level is worth the work. May be used by any thread."""

    def __init__(self, verbosity: int = 0, form: str = "text", stream: TextIO | None = None) -> None:
        self.verbosity = verbosity
        renderer: Callable[[WrappedLogger, str, EventDict], str | bytes] = (
            structlog.processors.JSONRenderer(sort_keys=False)  # the order is _head_first's
            if form == "json"
            else structlog.processors.LogfmtRenderer(key_order=HEAD, drop_missing=True, bool_as_flag=False)
        )
        self._logger = structlog.wrap_logger(
            _Lines(stream or sys.stderr),
            processors=[
                structlog.processors.add_log_level,
                structlog.processors.TimeStamper(fmt="iso", utc=True, key="time"),
                structlog.processors.EventRenamer("msg"),
                structlog.processors.format_exc_info,
                _one_line if form == "text" else _head_first,
                renderer,
            ],
            wrapper_class=structlog.BoundLogger,
        )

    def shows(self, level: int) -> bool:
        """Tell whether lines of a level are written."""
        return self.verbosity >= level

    def detail(self, level: int, message: str, **fields: Any) -> None:
        """Write a line that only some want to read."""
        if self.verbosity >= level:
            self._logger.info(message, **fields)

    def info(self, message: str, **fields: Any) -> None:
        """Write a line about the life of the process."""
        self._logger.info(message, **fields)

    def warning(self, message: str, **fields: Any) -> None:
        """Write a line about something that somebody should look at."""
        self._logger.warning(message, **fields)

    def error(self, message: str, **fields: Any) -> None:
        """Write a line about something that went wrong; `error=` may be an exception."""
        if isinstance(found := fields.get("error"), BaseException):
            fields["error"] = f"{type(found).__name__}: {found}"
        self._logger.error(message, **fields)

    def broke(self, message: str, error: BaseException, /, **fields: Any) -> None:
        """Write a line about a mistake in the program, with the places it came through."""
        self._logger.error(message, exc_info=error, **fields)


class Bridge(logging.Handler):
    """Brings warnings of libraries into the same log."""

    def __init__(self, log: Log) -> None:
        super().__init__(logging.WARNING)
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        """Write one record."""
        try:
            message = record.getMessage()
        except (TypeError, ValueError):  # the library meant other values
            message = str(record.msg)
        error = record.exc_info[1] if record.exc_info else None
        if error is not None:
            self._log.broke(message, error, source=record.name)
        else:
            self._log.warning(message, source=record.name)


def adopt_libraries(log: Log) -> None:
    """Let the libraries of this process write to the log."""
    for name in ("aiohttp", "asyncio"):
        library = logging.getLogger(name)
        library.handlers = [Bridge(log)]
        library.propagate = False


def _one_line(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    """Write out what a terminal would obey, line feeds apart, which the renderer sees to: text that others wrote must not look like a line of ours."""
    return {key: _shown(value) if isinstance(value, str) else value for key, value in event.items()}


def _shown(text: str) -> str:
    return "\n".join(map(printable.printable, text.split("\n")))


def _head_first(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    """Begin with when, how bad and what, as lines of text do."""
    return {key: event[key] for key in HEAD} | dict(event)
