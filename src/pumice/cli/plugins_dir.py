"""The option `--plugins-dir` of the commands that check or try a policy."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from pumice.cli import completing

if TYPE_CHECKING:
    from pumice.framework.registry import Registry

option = click.option(
    "--plugins-dir",
    "folder",
    metavar="FOLDER",
    default="",
    shell_complete=completing.folders,
    help="Folder of Python files with plugins and actions of your own; they are run.",
)


def load(folder: str) -> Registry:
    """Load what is installed and what a folder holds; what cannot be used is told, and refused where it is listed."""
    from pumice.cli import own_plugins  # noqa: PLC0415  imports numpy, which help does not need
    from pumice.server.configuration import plugin_files  # noqa: PLC0415  as above

    try:
        known = own_plugins.load(folder)
    except plugin_files.FolderError as error:
        raise click.UsageError(str(error)) from error
    for problem in known.broken.values():
        click.echo(f"warning: {problem}", err=True)
    if folder and not plugin_files.files(folder):
        click.echo(f"warning: --plugins-dir {folder}: a folder without Python files", err=True)
    return known
