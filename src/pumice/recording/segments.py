"""The files of a recording: a folder of segments, each of which can be replayed by itself.

`recording-<second>-<run>-<number>.jsonl.gz`: names sort by time. Only files of that form are ever removed.
"""

from __future__ import annotations

import os
import re
import zlib
from typing import TYPE_CHECKING, Final

import msgspec

from pumice import plain_files
from pumice.recording import lines

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_NAME: Final = re.compile(r"recording-([0-9]{1,18})-([0-9a-f]{8})-([0-9]{6})\.jsonl\.gz")
CHUNK: Final = 1 << 20
_LEVEL: Final = 1
LONGEST_LINE: Final = 1 << 31
_GZIP: Final = 31
LEAST_UNPACKED: Final = 1 << 24
MOST_UNPACKED: Final = 250  # bytes for each that is packed


class RecordingError(ValueError):
    """A recording that cannot be read; the text names the file and says why."""


def name(second: int, run: str, number: int) -> str:
    """Return the name of a segment."""
    return f"recording-{second}-{run}-{number:06}.jsonl.gz"


def listed(folder: Path) -> list[Path]:
    """Return the segments of a folder, oldest first."""
    found = [path for path in folder.iterdir() if _NAME.fullmatch(path.name)]
    return sorted(found, key=lambda path: (int(path.name.split("-")[1]), path.name))


def prune(folder: Path, room: int) -> None:
    """Remove the oldest segments until those that are left need no more than so many bytes."""
    sizes = [(path, path.stat().st_size) for path in listed(folder)]
    total = sum(size for _, size in sizes)
    for path, size in sizes:
        if total <= room:
            return
        path.unlink(missing_ok=True)
        total -= size


class SegmentFile:
    """A segment that is being written, for its owner alone; whatever was flushed can be read after a crash."""

    def __init__(self, path: Path) -> None:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        self.path = path
        self.size = 0
        self._file = os.fdopen(handle, "wb", buffering=0)
        self._packer = zlib.compressobj(_LEVEL, zlib.DEFLATED, _GZIP)

    def write(self, data: bytes) -> None:
        """Add whole lines."""
        self._put(self._packer.compress(data) + self._packer.flush(zlib.Z_SYNC_FLUSH))

    def _put(self, packed: bytes) -> None:
        view = memoryview(packed)
        while view:
            done = self._file.write(view) or 0
            self.size += done
            view = view[done:]

    def close(self) -> None:
        """End the file in good order."""
        try:
            self._put(self._packer.flush())
        finally:
            self._file.close()


class Segment:
    """A segment that is read; `cut` tells whether its end is missing."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.cut = False
        self.line = 0  # the number of the one that was given last

    def lines(self) -> Iterator[lines.ReadLine]:
        """Give its lines, as far as there are whole ones."""
        self.line = number = 0
        for text in self._texts():
            self.line = number = number + 1
            try:
                found = lines.decode(text)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
                raise RecordingError(_unreadable(self.path, number, text, error)) from None
            if number == 1:
                _check(self.path, found)
            yield found
        if number == 0:
            raise RecordingError(f"{self.path}: no recording: it has no whole line")

    def _texts(self) -> Iterator[bytes]:
        """Give whole lines; what is held of one that is not whole yet is bounded by what was read."""
        unpacker = zlib.decompressobj(_GZIP)
        pieces: list[bytes] = []
        held = packed_bytes = unpacked_bytes = 0
        with plain_files.opened(self.path) as file:
            while not unpacker.eof:
                packed = unpacker.unconsumed_tail
                if not packed:
                    packed = file.read(CHUNK)
                    packed_bytes += len(packed)
                try:
                    found = unpacker.decompress(packed, CHUNK)
                except zlib.error:
                    self.cut = True
                    break
                if not packed and not found:
                    break
                unpacked_bytes += len(found)
                self._check_size(packed_bytes, unpacked_bytes)
                first, *others = found.split(b"\n")
                pieces.append(first)
                held += len(first)
                if others:
                    yield b"".join(pieces)
                    yield from others[:-1]
                    pieces, held = [others[-1]], len(others[-1])
                if held > LONGEST_LINE:
                    raise RecordingError(f"{self.path}: a line is longer than {LONGEST_LINE} bytes")
        self.cut = self.cut or held > 0 or not unpacker.eof

    def _check_size(self, packed: int, unpacked: int) -> None:
        """Refuse what unpacks to far more than a recording does: the packing that is used here never gets below one byte for 230."""
        if unpacked > LEAST_UNPACKED + MOST_UNPACKED * packed:
            raise RecordingError(
                f"{self.path}: its first {packed} bytes unpack to {unpacked}, which is more than those of any recording"
            )


def _check(path: Path, first: lines.ReadLine) -> None:
    """Refuse by name what this version cannot read."""
    if not isinstance(first, lines.Header):
        raise RecordingError(f"{path}: no recording: its first line is no header")
    if first.format != lines.FORMAT:
        raise RecordingError(
            f"{path} was recorded by pumice {first.version} in format {first.format}; this version reads format {lines.FORMAT}"
        )


def _unreadable(path: Path, number: int, text: bytes, error: Exception) -> str:
    """Say why a line cannot be read; the first tells another format from something that is none."""
    if number == 1:
        try:
            head = msgspec.json.decode(text)
            if isinstance(head, dict) and head.get("is") == "recording" and head.get("format") != lines.FORMAT:
                version, form = head.get("version"), head.get("format")
                return f"{path} was recorded by pumice {version} in format {form}; this version reads format {lines.FORMAT}"
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            pass
        return f"{path}: no recording: {error}"
    return f"{path}: line {number}: {error}"
