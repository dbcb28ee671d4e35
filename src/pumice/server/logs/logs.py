"""Log lines with fields, one per line on the standard error: key=value, or JSON.

Verbosity is klog's: errors, warnings and the life of the process always; 2 configuration, 3 every decision, 4 every cycle. Objects are written
namespace/name. What is logged never holds a token, a key or a header.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import json
import logging
import sys
import threading
import traceback
from typing import Any, TextIO

from pumice.api import printable

CONFIGURATION, DECISIONS, CYCLES = 2, 3, 4
SOCKET_FOLDER = "DEBUG_SOCKET_DIR"  # the variable that names where the verbosity can be changed while the process runs


class Log:
    """Writes lines; `shows` tells beforehand whether a level is worth the work. May be used by any thread."""

    def __init__(self, verbosity: int = 0, form: str = "text", stream: TextIO | None = None) -> None:
        self.verbosity = verbosity
        self._form = _as_json if form == "json" else _as_text
        self._stream = stream or sys.stderr
        self._writing = threading.Lock()

    def shows(self, level: int) -> bool:
        """Tell whether lines of a level are written."""
        return self.verbosity >= level

    def detail(self, level: int, message: str, **fields: Any) -> None:
        """Write a line that only some want to read."""
        if self.verbosity >= level:
            self._write("info", message, fields)

    def info(self, message: str, **fields: Any) -> None:
        """Write a line about the life of the process."""
        self._write("info", message, fields)

    def warning(self, message: str, **fields: Any) -> None:
        """Write a line about something that somebody should look at."""
        self._write("warning", message, fields)

    def error(self, message: str, **fields: Any) -> None:
        """Write a line about something that went wrong; `error=` may be an exception."""
        if isinstance(found := fields.get("error"), BaseException):
            fields["error"] = f"{type(found).__name__}: {found}"
        self._write("error", message, fields)

    def broke(self, message: str, error: BaseException, /, **fields: Any) -> None:
        """Write a line about a mistake in the program, with the places it came through."""
        places = "".join(traceback.format_exception(error)).removesuffix("\n")
        self._write("error", message, fields | {"exception": places})

    def _write(self, level: str, message: str, fields: dict[str, Any]) -> None:
        """Write a line if somebody takes it: one that cannot be written, to a full disk or to whoever has gone, is lost and stops nobody's work."""
        time = dt.datetime.now(dt.UTC).isoformat().replace("+00:00", "Z")
        head = {"time": time, "level": level, "msg": message}
        line = self._form(head | fields | head)  # first in the line, whatever else has their names
        with contextlib.suppress(OSError, ValueError), self._writing:  # the latter if the stream was closed
            self._stream.write(f"{line}\n")
            self._stream.flush()


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


def _as_json(fields: dict[str, Any]) -> str:
    return json.dumps(fields, default=repr)


def _as_text(fields: dict[str, Any]) -> str:
    return " ".join(f"{key}={_value(value)}" for key, value in fields.items())


def _value(value: object) -> str:
    """Write a value so that it ends where the next key begins: in quotes if it holds what would part it."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    text = _shown(value) if isinstance(value, str) else str(value)
    quoted = any(each in text for each in ' ="')
    if quoted:
        text = text.replace("\\", "\\\\").replace('"', '\\"')
    text = text.replace("\n", "\\n")
    return f'"{text}"' if quoted else text


def _shown(text: str) -> str:
    """Write out what a terminal would obey, line feeds apart, which come later: text that others wrote must not look like a line of ours."""
    return "\n".join(map(printable.printable, text.split("\n")))
