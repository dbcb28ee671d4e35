"""The verbs that flows and templates share: create, delete, list, get, describe."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from pumice.cli import completing
from pumice.cli.volcano import options

if TYPE_CHECKING:
    from pumice.cli.volcano.flow_verbs import Flows


def group(what: str, title: str) -> click.Group:
    """Make the commands of one kind; `what` is its lower-case name, which vcctl's messages and flags use."""
    examples = (
        f"\b\nExamples:\n  pumice {what} create -f {what}.yaml\n  pumice {what} list --all-namespaces -o wide\n"
        f"  pumice {what} describe -N mine -o json\n  pumice {what} delete -N mine\n"
    )
    made = options.VerbGroup(what, help=f"Create, delete, list, get and describe {title}.", epilog=examples)
    for build in (_create, _delete, _list, _get, _describe):
        made.add_command(build(what, title))
    return made


def _verbs(what: str) -> Flows:
    from pumice.cli.volcano import flow_verbs  # noqa: PLC0415  imports the client of the cluster, which help does not need

    return flow_verbs.KINDS[what]


_FILE = click.option(
    "-f",
    "--file",
    "file",
    default="",
    metavar="FILE",
    shell_complete=completing.files,
    help="A YAML file of them; - is standard input.",
)


def _create(what: str, title: str) -> click.Command:
    @click.command(
        "create",
        cls=options.VerbCommand,
        help=f"Create the {title} of a file.",
        epilog=f"\b\nExamples:\n  pumice {what} create -f {what}.yaml",
    )
    @_FILE
    @options.cluster
    def command(**given: Any) -> None:
        _verbs(what).create(options.place(given), given["file"])

    return command


def _delete(what: str, title: str) -> click.Command:
    @click.command(
        "delete",
        cls=options.VerbCommand,
        help=f"Delete one of the {title}, or those of a file.",
        epilog=f"\b\nExamples:\n  pumice {what} delete -N mine -n research\n  pumice {what} delete -f {what}.yaml",
    )
    @options.name(what)
    @options.namespace(what)
    @_FILE
    @options.cluster
    def command(**given: Any) -> None:
        name = options.chosen_name(given, what, required=not given["file"])
        _verbs(what).delete(options.place(given), given["namespace"], name, given["file"])

    return command


def _list(what: str, title: str) -> click.Command:
    @click.command(
        "list",
        cls=options.VerbCommand,
        help=f"List {title}.",
        epilog=f"\b\nExamples:\n  pumice {what} list -n research\n  pumice {what} list --all-namespaces -o wide --watch",
    )
    @options.namespace(what)
    @options.all_namespaces
    @options.output
    @options.watch
    @options.cluster
    def command(**given: Any) -> None:
        namespace = "" if given["all_namespaces"] else given["namespace"]
        _verbs(what).show_list(options.place(given), namespace, given["output"] or "", watch=given["watch"])

    return command


def _get(what: str, title: str) -> click.Command:
    @click.command(
        "get",
        cls=options.VerbCommand,
        help=f"Show one of the {title}.",
        epilog=f"\b\nExamples:\n  pumice {what} get -N mine -n research",
    )
    @options.name(what)
    @options.namespace(what)
    @options.output
    @options.cluster
    def command(**given: Any) -> None:
        name = options.chosen_name(given, what)
        _verbs(what).show(options.place(given), given["namespace"], name, given["output"] or "")

    return command


def _describe(what: str, title: str) -> click.Command:
    @click.command(
        "describe",
        cls=options.VerbCommand,
        help=f"Print one of the {title} in full, or without a name all of a namespace.",
        epilog=f"\b\nExamples:\n  pumice {what} describe -N mine -o json",
    )
    @options.name(what)
    @options.namespace(what)
    @click.option(
        "-o",
        "--format",
        "form",
        type=click.Choice(["yaml", "json"]),
        default="yaml",
        show_default=True,
        help="How to print.",
    )
    @options.cluster
    def command(**given: Any) -> None:
        name = options.chosen_name(given, what, required=False)
        _verbs(what).describe(options.place(given), given["namespace"], name, given["form"])

    return command
