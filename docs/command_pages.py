"""The reference page of the commands that speak vcctl's language, written from the commands themselves."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

import click

from pumice.cli.program import COMMANDS
from pumice.cli.volcano import programs

if TYPE_CHECKING:
    from collections.abc import Iterator

DESCRIBED = ("job", "queue", "pod", "jobflow", "jobtemplate", "top", "links")
SHARED = ("master", "kubeconfig", "context_name", "timeout")


def page(notice: str) -> str:
    """Write the page."""
    lines = [
        "# Commands for jobs and queues",
        "",
        notice,
        "",
        "[The guide](../commands.md) shows them at work; `pumice COMMAND --help` has examples. Every one of them takes:",
        "",
        *_table(_shared()),
    ]
    for name in DESCRIBED:
        lines += _described(f"pumice {name}", import_module(COMMANDS[name][0]).command)
    lines += ["", "## In Slurm's manner", "", "Under these names, `-n` is the name and `-N` the namespace."]
    for name in programs.SLURM:
        lines += _described(name, programs.find(name), "###")
    return "\n".join([*lines, ""])


def _described(title: str, command: click.Command, level: str = "##") -> Iterator[str]:
    yield from ("", f"{level} `{title}`", "", _first(command))
    if isinstance(command, click.Group):
        for name, verb in command.commands.items():
            yield from _described(f"{title} {name}", verb, "###")
        return
    options = [each for each in command.params if each.name not in SHARED]
    if rows := [row for each in options if (row := _row(each))]:
        yield from ("", *_table(rows))


def _shared() -> list[tuple[str, str]]:
    """Give the flags that say where the cluster is."""
    command = import_module(COMMANDS["pod"][0]).command.commands["list"]
    return [row for each in command.params if each.name in SHARED and (row := _row(each))]


def _first(command: click.Command) -> str:
    return (command.help or "").partition("\n\n")[0].replace("\n", " ")


def _row(parameter: click.Parameter) -> tuple[str, str] | None:
    """Give a flag as help shows it, or an argument."""
    context = click.Context(click.Command("x"))
    if isinstance(parameter, click.Argument):
        shown = parameter.metavar or str(parameter.name).upper()
        return shown, "the same as a word" if shown == "[NAME]" else "a folder"
    found = parameter.get_help_record(context)
    return (found[0], found[1]) if found else None


def _table(rows: list[tuple[str, str]]) -> list[str]:
    cells = [(flag.replace("|", "\\|"), text.replace("|", "\\|").replace("  ", " ")) for flag, text in rows]
    return ["| flag | does |", "|---|---|", *(f"| `{flag}` | {text} |" for flag, text in cells)]
