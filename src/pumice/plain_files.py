"""Files that somebody names: looked at before they are read, and read within bounds.

A path may lead anywhere. A folder, a device, a socket or a named pipe is refused at once, as an `OSError` whose text says what it is: reading one of them may never end. What a shell
passes as a pipe of its own (`<(kubectl get pods)`) is read, and `/dev/null` is an empty file.
"""

from __future__ import annotations

import errno
import os
import stat
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from io import BufferedReader
    from pathlib import Path

LARGEST_TEXT: Final = 4 << 20
"""So many bytes are read of a file of text: as many as YAML may have anywhere (`api.documents.MAX_BYTES`)."""
_NULL: Final = os.makedev(1, 3)
_PASSED: Final = ("/dev/fd/", "/dev/stdin", "/proc/self/fd/")
_KINDS: Final = (
    (stat.S_ISDIR, "it is a folder; name a file"),
    (stat.S_ISFIFO, "it is a named pipe, which may never end; name a file"),
    (stat.S_ISSOCK, "it is a socket; name a file"),
    (stat.S_ISCHR, "it is a device, which may never end; name a file"),
    (stat.S_ISBLK, "it is a device; name a file"),
)


def opened(path: str | Path) -> BufferedReader:
    """Open a file for reading, or raise an `OSError` that says why not."""
    _check(path, os.stat(path))  # noqa: PTH116  a path may be text
    found = os.open(path, os.O_RDONLY | os.O_CLOEXEC | (0 if _is_passed(path) else os.O_NONBLOCK))
    try:
        _check(path, os.fstat(found))  # there may be another one by now
        return os.fdopen(found, "rb")
    except OSError:
        os.close(found)
        raise


def read(path: str | Path, most: int) -> bytes:
    """Read a file of at most so many bytes, or raise an `OSError` that says why not."""
    with opened(path) as file:
        found = file.read(most + 1)
    if len(found) > most:
        raise OSError(errno.EFBIG, f"it has more than {most:,} bytes", str(path))
    return found


def text(path: str | Path) -> str:
    """Read a file of UTF-8 text, likewise; however its lines end, they end alike here."""
    return read(path, LARGEST_TEXT).decode("utf-8").replace("\r\n", "\n").replace("\r", "\n")


def _check(path: str | Path, found: os.stat_result) -> None:
    if _is_passed(path) and stat.S_ISFIFO(found.st_mode):
        return
    if stat.S_ISCHR(found.st_mode) and found.st_rdev == _NULL:
        return
    for is_kind, said in _KINDS:
        if is_kind(found.st_mode):
            raise OSError(errno.EINVAL, said, str(path))


def _is_passed(path: str | Path) -> bool:
    return os.fspath(path).startswith(_PASSED)
