"""The options that name an installation, for `pumice install` and `pumice uninstall`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar

import click

from pumice.cli import completing
from pumice.manifests import release

if TYPE_CHECKING:
    from collections.abc import Callable

_Command = TypeVar("_Command", bound="Callable[..., Any]")

_LABEL: Final = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_LONGEST_LABEL: Final = 63
_LONGEST_SUFFIX: Final = max(map(len, ("-scheduler-configmap", "-admission-configmap")))
_DEFAULTS: Final = release.Release()


def _check_name(_context: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    longest = _LONGEST_LABEL - (_LONGEST_SUFFIX if parameter.name == "name" else 0)
    if value is not None and (len(value) > longest or not _LABEL.fullmatch(value)):
        raise click.BadParameter(f"{value!r} is no name: lower-case letters, digits and -, at most {longest}")
    return value


_OPTIONS: Final = (
    click.option(
        "--name",
        default=_DEFAULTS.name,
        callback=_check_name,
        show_default=True,
        help="Goes before all names, the Lease's too; one installation of each name in a cluster.",
    ),
    click.option(
        "--namespace",
        shell_complete=completing.namespaces,
        callback=_check_name,
        help=f"Must exist.  [default: {_DEFAULTS.namespace}; {release.VOLCANO_NAMESPACE} with --replace-volcano]",
    ),
    click.option(
        "--replace-volcano",
        is_flag=True,
        help="Take the place of Volcano's scheduler and controllers: their Leases, and with --name volcano all names.",
    ),
    click.option(
        "--single",
        is_flag=True,
        help="Controllers in the scheduler's own process, instead of a Deployment of their own.",
    ),
    click.option(
        "--without-controllers",
        is_flag=True,
        help="No controllers: keep those that are there.  [default: for another --name]",
    ),
    click.option(
        "--part",
        "parts",
        multiple=True,
        type=click.Choice(release.PARTS),
        help="Only this part; may be repeated.  [default: all]",
    ),
)


def named(function: _Command) -> _Command:
    """Add the options that name an installation."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


def chosen(
    *,
    namespace: str | None,
    replace_volcano: bool,
    parts: tuple[str, ...],
    single: bool = False,
    without_controllers: bool = False,
    **options: Any,
) -> release.Release:
    """Give the installation that was named; one that would take Volcano's names by accident is refused."""
    home = release.VOLCANO_NAMESPACE if replace_volcano else _DEFAULTS.namespace
    # A cluster needs controllers once: those of a second installation would have nothing to do.
    usual = options["name"] == _DEFAULTS.name or replace_volcano
    wanted = "controllers" in (parts or release.PARTS) and not without_controllers
    apart: Literal["apart", "none"] = "apart" if wanted and (usual or parts) else "none"
    if single and (without_controllers or "controllers" in parts):
        raise click.UsageError("--single contradicts --without-controllers and --part controllers")
    found = release.Release(
        namespace=namespace or home,
        replace_volcano=replace_volcano,
        parts=parts or release.PARTS,
        controllers="single" if single else apart,
        **options,
    )
    if found.in_place and not replace_volcano:
        raise click.UsageError(
            f"--name {found.name}: these names and this Lease are those of Volcano's scheduler; "
            "take its place with --replace-volcano, or choose another name"
        )
    return found


def check_scheduler_names(found: release.Release) -> None:
    """Refuse a second installation that would serve the pods of the first."""
    usual = found.name == _DEFAULTS.name or found.replace_volcano
    if not usual and not found.scheduler_names:
        raise click.UsageError(
            f"--name {found.name}: without a name of its own it would serve the same pods as others do, schedulerName volcano; "
            f"add --scheduler-name, such as --scheduler-name {found.name}"
        )
