"""`vcctl`: the commands of Volcano's command line under their own name."""

from __future__ import annotations

import platform
from importlib import import_module
from typing import TYPE_CHECKING, Final

import click

import pumice
from pumice.cli.volcano import options

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

KINDS: Final = {
    "job": "Run, list, view, suspend, resume and delete jobs of Volcano.",
    "jobflow": "Create, delete, list, get and describe flows of jobs.",
    "jobtemplate": "Create, delete, list, get and describe templates of jobs.",
    "pod": "List the pods of jobs and queues.",
    "queue": "Create, delete, get, list and operate queues.",
}
_ARCHITECTURES: Final = {"x86_64": "amd64", "aarch64": "arm64"}
_EXAMPLES = """\b
Examples:
  vcctl job run -N train -r 4 -m 4
  vcctl job list --all-namespaces
  vcctl queue operate -n research -a close

\b
This is pumice; `pumice --help` lists what it does beyond vcctl.
"""


class Kinds(click.Group):
    """A group of kinds whose commands are imported when they are called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """List the names without importing anything."""
        return sorted({**KINDS, **dict.fromkeys(super().list_commands(ctx))})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the commands of a kind."""
        if cmd_name not in KINDS:
            return super().get_command(ctx, cmd_name)
        found: click.Command = import_module(f"pumice.cli.volcano.{cmd_name}").command
        return found

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete the names of kinds without importing any, and options."""
        from click.shell_completion import CompletionItem  # noqa: PLC0415  only a shell needs it

        lines = {**KINDS, "version": "Print the version."}
        names = [CompletionItem(name, help=line) for name, line in lines.items() if name.startswith(incomplete)]
        return names + click.Command.shell_complete(self, ctx, incomplete)


@click.group(cls=Kinds, epilog=_EXAMPLES, context_settings={"help_option_names": ["-h", "--help"]})
def vcctl() -> None:
    """Jobs, queues, pods, flows and templates of Volcano."""


for _option in options.LOGGING:
    vcctl = _option(vcctl)


@vcctl.command("version")
def version() -> None:
    """Print the version, in vcctl's six lines."""
    machine = platform.machine()
    lines = {
        "API Version": "v1alpha1",
        "Version": f"pumice {pumice.__version__}",
        "Git SHA": "Not provided.",
        "Built At": "Not provided.",
        "Go Version": f"none, Python {platform.python_version()}",
        "Go OS/Arch": f"{platform.system().lower()}/{_ARCHITECTURES.get(machine, machine)}",
    }
    for label, value in lines.items():
        click.echo(f"{label}: {value}")


@vcctl.command("help", hidden=True)
@click.argument("path", metavar="[COMMAND]...", nargs=-1)
@click.pass_context
def explain(context: click.Context, path: tuple[str, ...]) -> None:
    """Print the help of a command: `vcctl help job run`, as vcctl's users type it."""
    above: click.Context = context.parent or context
    for word in path:
        group = above.command
        found = group.get_command(above, word) if isinstance(group, click.Group) else None
        if found is None:
            raise click.UsageError(f"No such command {word!r} of {above.command_path}.", above)
        above = click.Context(found, info_name=word, parent=above)
    click.echo(above.get_help())
