"""The flags that these commands share, and Go's way of writing them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import click

from pumice.cli import completing, kube_options

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pumice.cli.volcano.calls import Place

_SHORT: Final = re.compile(r"-([a-zA-Z])=(.*)", re.DOTALL)
_TRUTH: Final = {"1": True, "t": True, "true": True, "0": False, "f": False, "false": False}

PROGRAM: Final = "pumice"
_EXAMPLE: Final = re.compile(r"(?m)^( +)pumice (job|jobflow|jobtemplate|pod|queue)\b")
Decorator = "Callable[[Callable[..., Any]], Callable[..., Any]]"


class Called(click.Command):
    """A command whose examples say the name that the program was called by: `vcctl job list`."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples; what only pumice does stays with that name."""
        called, own = ctx.find_root().info_name or PROGRAM, self.epilog
        if called != PROGRAM and own:
            self.epilog = _EXAMPLE.sub(lambda found: f"{found[1]}{called} {found[2]}", own)
        try:
            super().format_epilog(ctx, formatter)
        finally:
            self.epilog = own


class VerbGroup(Called, click.Group):
    """The verbs of a kind."""


class VerbCommand(Called):
    """A command that also takes `-n=NAME` and `--flag=true`, as Go programs do."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Bring Go's spelling into click's."""
        return super().parse_args(ctx, list(self._spelled(args)))

    def _spelled(self, args: list[str]) -> Iterator[str]:
        switches = {
            name for each in self.params if isinstance(each, click.Option) and each.is_flag for name in each.opts
        }
        words = iter(args)
        for word in words:
            if word == "--":
                yield word
                yield from words
                return
            name, equals, value = word.partition("=")
            short = _SHORT.fullmatch(word)
            if equals and name in switches:
                if value.lower() not in _TRUTH:
                    raise click.UsageError(f"{name}: {value!r} is neither true nor false")
                if _TRUTH[value.lower()]:
                    yield name
            elif short:
                yield f"-{short[1]}"
                yield short[2]
            else:
                yield word


_CLUSTER: Final = (
    kube_options.master("-s"),
    kube_options.kubeconfig("-k"),
    kube_options.context(),
    click.option(
        "--request-timeout",
        "timeout",
        type=click.FloatRange(min=0.1),
        default=30.0,
        show_default=True,
        metavar="SECONDS",
        help="For one request.",
    ),
)
# What vcctl's log takes; nothing is logged here.
LOGGING: Final = (
    click.option("-v", "--v", "verbosity", default="", hidden=True, expose_value=False),
    click.option("--vmodule", default="", hidden=True, expose_value=False),
    click.option("--log-flush-frequency", default="", hidden=True, expose_value=False),
)

all_namespaces = click.option(
    "--all-namespaces", is_flag=True, help="Those of all namespaces; the namespace is shown first."
)
output = click.option(
    "-o",
    "--output",
    type=click.Choice(["wide", "json", "yaml", "name"]),
    default=None,
    help="More columns, the objects themselves, or their names.",
)
watch = click.option("-w", "--watch", is_flag=True, help="Go on: print each row again when it changes.")


def cluster(function: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the flags that say where the cluster is."""
    for option in reversed((*_CLUSTER, *LOGGING)):
        function = option(function)
    return function


def place(given: dict[str, Any]) -> Place:
    """Say how the cluster is reached, as the flags have it."""
    from pumice.cli.volcano.calls import Place  # noqa: PLC0415  imports the client of the cluster, which help does not need

    return Place(
        kubeconfig=given["kubeconfig"],
        context=given["context_name"],
        master=given["master"],
        timeout=given["timeout"],
    )


def namespace(what: str, *letters: str, default: str | None = "default") -> Callable[..., Any]:
    """Give the flag for the namespace of something."""
    return click.option(
        *(letters or ("-n",)),
        "--namespace",
        default=default,
        show_default=default is not None,
        metavar="NAME",
        shell_complete=completing.namespaces,
        help=f"Namespace of the {what}.",
    )


def name(what: str, letter: str = "-N", complete: Callable[..., Any] | None = None) -> Callable[..., Any]:
    """Give the flag, or the word, that names something."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        option = click.option(
            letter, "--name", "name", default="", metavar="NAME", shell_complete=complete, help=f"Name of the {what}."
        )
        argument = click.argument("word", required=False, default="", metavar="[NAME]", shell_complete=complete)
        return argument(option(function))

    return decorate


def chosen_name(given: dict[str, Any], what: str, letter: str = "-N", *, required: bool = True) -> str:
    """Give the name, however it was written."""
    name, word = given["name"], given["word"]
    if name and word and name != word:
        raise click.UsageError(f"two names: {name!r} and {word!r}; give one")
    if required and not (name or word):
        from pumice.cli.volcano.failing import CommandError  # noqa: PLC0415  as above

        raise CommandError(f"the name of the {what} is missing; give {letter} NAME")
    return str(name or word)
