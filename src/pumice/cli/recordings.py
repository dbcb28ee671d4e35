"""What the commands about recordings share: which segments are meant."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pumice import plain_files

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pumice.framework.registry import Registry
    from pumice.recording.player import Player


class UnreadableError(click.ClickException):
    """A recording that cannot be read."""

    exit_code = 2


@contextlib.contextmanager
def reading(played: Player) -> Iterator[None]:
    """Tell of a recording that cannot be read, or whose state contradicts itself, with the place in it."""
    from pumice.recording import segments  # noqa: PLC0415  as below

    try:
        yield
    except segments.RecordingError as error:
        raise UnreadableError(str(error)) from error
    except (click.ClickException, click.exceptions.Exit, click.Abort):
        raise
    except Exception as error:
        if not played.is_restored:
            raise
        text = f"{played.place}: its state contradicts itself: {type(error).__name__}: {error}"
        raise UnreadableError(text) from error


def find(given: str) -> list[Path]:
    """Return the segments of a folder, oldest first, or the one that is named."""
    from pumice.recording import segments  # noqa: PLC0415  imports numpy, which help does not need

    path = Path(given)
    try:
        if not path.is_dir():
            plain_files.opened(path).close()
            return [path]
        found = segments.listed(path)
    except OSError as error:
        raise UnreadableError(f"{given}: {error.strerror}") from error
    if not found:
        raise UnreadableError(f"{given}: no recording in this folder; pumice scheduler --record {given} writes one")
    return found


def player(given: str, known: Registry) -> Player:
    """Return a player of a recording."""
    from pumice.recording.player import Player  # noqa: PLC0415  as above

    return Player(find(given), known)
