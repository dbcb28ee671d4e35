"""Files of traces, compressed or not, line by line and within bounds."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pumice import plain_files
from pumice.simulate.trace import TraceError

if TYPE_CHECKING:
    from collections.abc import Iterator

LARGEST: Final = 1 << 31
"""Bytes of a trace once it is unpacked."""
LONGEST: Final = 1 << 20
"""Bytes of one line."""
_GZIP: Final = b"\x1f\x8b"


def lines(file: str) -> Iterator[tuple[int, str]]:
    """Give the lines of a file that are not empty, each with its number."""
    read, number = 0, 0
    try:
        with plain_files.opened(file) as opened:
            packed = opened.peek(2)[:2] == _GZIP
            source = gzip.GzipFile(fileobj=opened) if packed else opened
            while raw := source.readline(LONGEST + 1):
                number += 1
                read += len(raw)
                if len(raw) > LONGEST:
                    raise TraceError(file, number, "", f"the line is longer than {LONGEST:,} bytes")
                if read > LARGEST:
                    raise TraceError(file, number, "", f"the trace is larger than {LARGEST:,} bytes")
                text = raw.decode("utf-8").strip("\r\n\ufeff")
                if text.strip():
                    yield number, text
    except UnicodeDecodeError as error:
        raise TraceError(file, number, "", f"is not UTF-8 text: {error.reason} at byte {error.start}") from error
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise TraceError(file, number, "", f"cannot be unpacked after this line: {error}") from error
    except OSError as error:
        raise TraceError(file, 0, "", f"cannot be read: {error.strerror or error}") from error


def bare_name(file: str) -> str:
    """Return the name of a file without folder and `.gz`."""
    return Path(file).name.removesuffix(".gz")
