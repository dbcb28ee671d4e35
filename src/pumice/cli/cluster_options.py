"""Where a command that studies a cluster finds it: a live one by kubeconfig, or a file."""

from __future__ import annotations

import contextlib
import gc
import sys
from typing import TYPE_CHECKING, Any

import click

from pumice.cli import completing, kube_options, plugins_dir

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pumice.api.core import Event
    from pumice.framework.registry import Registry
    from pumice.study.live import Access
    from pumice.study.state import State

OPTIONS = (
    click.option(
        "-f",
        "--from",
        "file",
        metavar="FILE",
        default="",
        shell_complete=completing.files,
        help="A dump of the scheduler, the output of kubectl get -o json or yaml, or a scenario, instead of a live cluster.",
    ),
    click.option("--scenario", metavar="TEXT", default="", help="Which scenario of the file: a part of its name."),
    click.option(
        "--until-line",
        "line",
        type=click.IntRange(min=1),
        metavar="N",
        help="Play the scenario to its steps on line N.",
    ),
    click.option(
        "--config",
        metavar="FILE[#KEY]",
        default="",
        shell_complete=completing.configurations,
        help="The scheduler's configuration: a file, or configmap:NAMESPACE/NAME; else that of the cluster is looked for.",
    ),
    click.option(
        "--scheduler-name",
        "schedulers",
        multiple=True,
        metavar="NAME",
        help="Whose pods are scheduled; else whoever the pods name, with those that its scheduler says it serves beside.",
    ),
    kube_options.kubeconfig(),
    kube_options.context(),
    kube_options.master(),
    plugins_dir.option,
)


class Place:
    """A cluster that may be read more than once."""

    def __init__(self, given: dict[str, Any], namespace: str = "") -> None:
        self._given = given
        self._namespace = namespace
        self.progress = Progress()

    @property
    def access(self) -> Access:
        """How the live cluster is reached."""
        from pumice.study import live  # noqa: PLC0415  imports the client of the cluster, which help does not need

        given = self._given
        return live.Access(kubeconfig=given["kubeconfig"], context=given["context_name"], master=given["master"])

    def warnings(self, objects: Sequence[tuple[str, str]]) -> Sequence[Event]:
        """Read the warnings about objects of a live cluster; a file has none."""
        from pumice.study import live  # noqa: PLC0415  as above

        return () if self._given["file"] else live.warnings(self.access, objects)

    def read(self, known: Registry) -> State:
        """Read the cluster as it is now."""
        from pumice.study import files, live  # noqa: PLC0415  as above

        given = self._given
        if given["file"]:
            return files.read(given["file"], known, scenario=given["scenario"], line=given["line"] or 0)
        if given["scenario"] or given["line"]:
            raise click.UsageError("--scenario and --until-line need --from FILE")
        counted: dict[str, int] = {}

        def told(plural: str, count: int) -> None:
            counted[plural] = count
            self.progress.say(f"reading: {sum(counted.values())} objects, {count} {plural}")

        return live.read(self.access, told, self._namespace)


@contextlib.contextmanager
def collector_off() -> Iterator[None]:
    """Keep the garbage collector from walking over a large cluster again and again while it is read; nothing of it is garbage."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


class Progress:
    """One line on the terminal that is written over; nothing where nobody watches."""

    def __init__(self) -> None:
        self._watched = sys.stderr.isatty()
        self._shown = 0

    def say(self, text: str) -> None:
        """Show how far things are."""
        if self._watched:
            text = text[:100]
            click.echo(f"\r{text:<{self._shown}}", nl=False, err=True)
            self._shown = len(text)

    def clear(self) -> None:
        """Take the line away."""
        if self._shown:
            click.echo(f"\r{'':<{self._shown}}\r", nl=False, err=True)
            self._shown = 0


def options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options above."""
    for option in reversed(OPTIONS):
        function = option(function)
    return function


cycles = click.option(
    "--cycles",
    type=click.IntRange(1, 100_000),
    metavar="N",
    help="Cycles to run at most; else until nothing more happens, at most 1000.",
)

output = click.option(
    "-o",
    "--output",
    type=click.Choice(["text", "json", "yaml"]),
    default="text",
    show_default=True,
    help="How to print.",
)


def printed(answer: Any, form: str) -> str:
    """Write a record as JSON or YAML."""
    import msgspec  # noqa: PLC0415  help needs none of this

    plain = msgspec.to_builtins(answer)
    if form == "json":
        return msgspec.json.format(msgspec.json.encode(plain), indent=2).decode()
    import yaml  # noqa: PLC0415  as above

    text: str = yaml.safe_dump(plain, sort_keys=False, allow_unicode=True, width=1000)
    return text.rstrip("\n")
