"""The program and its commands by name, each with the line that help shows without loading it."""

from __future__ import annotations

import gc
import sys
from importlib import import_module
from pathlib import PurePath
from typing import TYPE_CHECKING, Final

import click

import pumice
from pumice.cli.volcano import programs
from pumice.server.threads import interpreter

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

COMMANDS: Final[dict[str, tuple[str, str]]] = {
    "admission": ("pumice.cli.admission", "Judge and complete objects before a real cluster stores them."),
    "bench": ("pumice.cli.bench", "Measure how fast pods are decided on workloads of every kind."),
    "completion": ("pumice.cli.completion", "Print what a shell needs to complete commands and names."),
    "config": ("pumice.cli.config", "Check, show and compare scheduler configurations."),
    "controllers": ("pumice.cli.controllers", "Run the controllers of Jobs, Queues and flows on a real cluster."),
    "demo": ("pumice.cli.demo", "Watch gangs being scheduled on a simulated cluster."),
    "explain": ("pumice.cli.explain", "Say why a pod, job, queue or node stands as it does, and what would change it."),
    "install": ("pumice.cli.install", "Print what a cluster needs to run scheduler and controllers."),
    "job": ("pumice.cli.volcano.job", "Run, list, view, suspend, resume and delete jobs of Volcano."),
    "jobflow": ("pumice.cli.volcano.jobflow", "Create, delete, list, get and describe flows of jobs."),
    "jobtemplate": ("pumice.cli.volcano.jobtemplate", "Create, delete, list, get and describe templates of jobs."),
    "links": ("pumice.cli.volcano.links", "Make the commands vcctl, vsub, vjobs … of this program."),
    "nodes": ("pumice.cli.nodes", "Run simulated nodes on a real API server."),
    "plugin": ("pumice.cli.plugin", "Start a plugin of your own."),
    "pod": ("pumice.cli.volcano.pod", "List the pods of jobs and queues."),
    "queue": ("pumice.cli.volcano.queue", "Create, delete, get, list and operate queues."),
    "replay": ("pumice.cli.replay", "Run a recording of the scheduler again, and see whether the same is decided."),
    "scheduler": ("pumice.cli.scheduler", "Schedule the pods of a real cluster."),
    "shrink": ("pumice.cli.shrink", "Make a small scenario of what a recording shows of a job."),
    "simulate": ("pumice.cli.simulate", "Say how good a policy is: run a trace of jobs through it in virtual time."),
    "test": ("pumice.cli.test", "Run scenario files, the unit tests of a scheduling policy."),
    "top": ("pumice.cli.top", "Watch queues, jobs and nodes of a real cluster."),
    "up": ("pumice.cli.up", "Run a batch cluster on this machine, for kubectl and everything else."),
    "uninstall": ("pumice.cli.uninstall", "Print what pumice install has installed, to delete it."),
    "vet": ("pumice.cli.vet", "Find mistakes in manifests before they are applied."),
    "web": ("pumice.cli.web", "Serve a page that shows who holds what, who waits and why, live."),
    "what-if": (
        "pumice.cli.what_if",
        "Show what a change of objects or of the configuration would do, without doing it.",
    ),
}

_EXAMPLES = """\b
Examples:
  pumice up                            a batch cluster on this machine, for kubectl
  pumice demo                          watch a small cluster at work
  pumice test scenarios/               run every scenario of a folder
  pumice explain job llama -n train    why it waits, and the smallest change that would start it
  pumice job list --watch              Volcano's jobs, with vcctl's verbs and columns
  pumice top                           queues, jobs and nodes of a real cluster, live
  pumice web                           the same in a browser, with why and what if
  pumice config check scheduler.yaml   find mistakes before the scheduler does
  pumice scheduler --kubeconfig FILE   schedule the pods of a real cluster
"""


class LazyGroup(click.Group):
    """A group whose commands are imported when they are called, not when they are listed."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """List the names without importing anything."""
        return sorted({**COMMANDS, **dict.fromkeys(super().list_commands(ctx))})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the module of a command."""
        if cmd_name not in COMMANDS:
            return super().get_command(ctx, cmd_name)
        command = import_module(COMMANDS[cmd_name][0]).command
        if not isinstance(command, click.Command):
            raise TypeError(f"{COMMANDS[cmd_name][0]}.command is no click command but {type(command).__name__}")
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command, or name the one that was probably meant."""
        name = args[0]
        if name not in COMMANDS and not name.startswith("-") and super().get_command(ctx, name) is None:
            raise click.UsageError(f"no command {name!r}{_nearest(name)}", ctx)
        return super().resolve_command(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete the names of commands without importing any, and options."""
        from click.shell_completion import CompletionItem  # noqa: PLC0415  only a shell needs it

        names = [CompletionItem(name, help=line) for name, (_, line) in COMMANDS.items() if name.startswith(incomplete)]
        return names + click.Command.shell_complete(self, ctx, incomplete)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002  click's signature
        """Write the list of commands from the table above."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in COMMANDS.items()])


def _nearest(name: str) -> str:
    from difflib import get_close_matches  # noqa: PLC0415  only a mistake needs it

    near = get_close_matches(name, list(COMMANDS), n=1, cutoff=0.5)
    return f"; did you mean {near[0]!r}?" if near else f"; there are {', '.join(COMMANDS)}"


@click.command(cls=LazyGroup, epilog=_EXAMPLES, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(pumice.__version__, message="pumice %(version)s")
def program() -> None:
    """Pumice: a batch scheduler for Kubernetes, with policies that can be tested and explained."""


def main() -> None:
    """Run the program under the name it was called by: as itself, as a plugin of kubectl, as vcctl or one of its companions."""
    # Modules stay, too: a tenth of a start would be spent looking for garbage among them.
    gc.set_threshold(*interpreter.THRESHOLDS)
    called = PurePath(sys.argv[0]).name if sys.argv else ""
    if called in programs.NAMES:
        programs.find(called)(prog_name=called)
    program(prog_name="kubectl pumice" if called.startswith("kubectl-pumice") else "pumice")
