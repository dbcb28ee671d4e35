"""`pumice links`: the names of vcctl and its companions as links to this program."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from pumice.cli import completing
from pumice.cli.volcano import programs

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

PROGRAM: Final = "pumice"

_EXAMPLES = """\b
Examples:
  pumice links ~/.local/bin               vcctl, vsub, vjobs, vqueues, vcancel, vsuspend, vresume
  pumice links ~/.local/bin --only vcctl  one of them
  pumice links ~/.local/bin --remove      take away those that lead here

\b
Nothing that is not a link to pumice is ever replaced or removed, so an installed vcctl stays what
it is; which of the two a shell finds is decided by the order of PATH, and a line says so.
Exit status: 0 all are there (or gone), 1 something else is in the way, 2 wrong usage.
"""


@click.command(epilog=_EXAMPLES)
@click.argument("folder", type=click.Path(path_type=Path), shell_complete=completing.folders)
@click.option(
    "--only", multiple=True, type=click.Choice(programs.NAMES), help="Not all but these names; may be repeated."
)
@click.option("--remove", is_flag=True, help="Remove the links instead.")
@click.pass_context
def command(context: click.Context, *, folder: Path, only: tuple[str, ...], remove: bool) -> None:
    """Make vcctl, vsub, vjobs, vqueues, vcancel, vsuspend and vresume of this program, as links in a folder."""
    names = only or programs.NAMES
    if not folder.is_dir():
        raise click.ClickException(f"{folder} is no folder; create it: mkdir -p {folder}")
    try:
        failed = _removed(folder, names) if remove else _made(folder, names, own_path())
    except OSError as error:
        raise click.ClickException(f"{error.filename or folder}: {error.strerror}") from None
    if not remove:
        for line in hidden(folder, names, os.environ.get("PATH", "")):
            click.echo(f"note: {line}", err=True)
    context.exit(1 if failed else 0)


def own_path() -> Path:
    """Find the program that is running."""
    called = shutil.which(sys.argv[0]) or shutil.which(PROGRAM) or ""
    found = Path(called)
    beside = Path(sys.executable).with_name(PROGRAM)
    if found.name == PROGRAM and called:
        return found.absolute()
    if beside.exists():
        return beside
    raise click.ClickException(
        f"the program {PROGRAM} is not found on PATH or beside {sys.executable}; install it first"
    )


def _made(folder: Path, names: Iterable[str], program: Path) -> int:
    """Make links, and return how many could not be made."""
    failed = 0
    for name in names:
        link = folder / name
        if is_ours(link):
            link.unlink()
        if os.path.lexists(link):
            click.echo(f"{link} is something else and stays as it is; remove it first, or choose another folder")
            failed += 1
        else:
            link.symlink_to(program)
            click.echo(f"{link} -> {program}")
    return failed


def _removed(folder: Path, names: Iterable[str]) -> int:
    """Remove links, and return how many names are still there."""
    failed = 0
    for name in names:
        link = folder / name
        if is_ours(link):
            link.unlink()
            click.echo(f"{link} removed")
        elif os.path.lexists(link):
            click.echo(f"{link} is no link to {PROGRAM} and stays as it is")
            failed += 1
    return failed


def is_ours(link: Path) -> bool:
    """Tell whether something is a link to a program of our name, one that is gone by now included."""
    return link.is_symlink() and link.readlink().name == PROGRAM


def hidden(folder: Path, names: Iterable[str], path: str) -> Iterator[str]:
    """Say which names a shell would not find here, or find elsewhere first."""
    folders = [Path(part).absolute() for part in path.split(os.pathsep) if part]
    here = folder.absolute()
    if here not in folders:
        yield f"{here} is not on PATH, so a shell does not find these names there"
        return
    for name in names:
        earlier = [each / name for each in folders[: folders.index(here)] if (each / name).exists()]
        if earlier:
            yield f"{earlier[0]} comes first on PATH, so {name} is that one"
