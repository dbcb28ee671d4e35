"""The options that describe a job on the command line, and those that choose among jobs; `pumice job` and the commands in Slurm's manner share them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

from pumice.cli import completing

if TYPE_CHECKING:
    from collections.abc import Callable

IMAGE: Final = "busybox"
SCHEDULER: Final = "volcano"
AMOUNTS: Final = "cpu=1000m,memory=100Mi"

_NUMBER: Final = click.IntRange(min=0)


def described(
    image_variable: str | None = None, scheduler_variable: str | None = None
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add what describes a job; image and scheduler may come from variables of the environment."""
    added = (
        click.option("-i", "--image", envvar=image_variable, default=IMAGE, show_default=True, help="Image of the container."),
        click.option("-m", "--min", "minimum", type=_NUMBER, default=1, show_default=True, metavar="N", help="Pods without which it does not start."),
        click.option("-r", "--replicas", type=_NUMBER, default=1, show_default=True, metavar="N", help="Pods in all."),
        click.option("-R", "--requests", default=AMOUNTS, show_default=True, metavar="AMOUNTS", help="What each pod asks for."),
        click.option("-L", "--limits", default="", metavar="AMOUNTS", help=f"What each pod may use.  [default: {AMOUNTS}, or what it asks for if that is more]"),
        click.option("-S", "--scheduler", envvar=scheduler_variable, default=SCHEDULER, show_default=True, metavar="NAME", help="Scheduler of its pods."),
        click.option("-q", "--queue", default="", metavar="NAME", shell_complete=completing.queues, help="Queue of the job; else the default one."),
        click.option("-c", "--command", "command_line", default="", metavar="TEXT", help="What its container runs."),
    )  # fmt: skip
    return _all_of(added)


def _all_of(added: tuple[Callable[..., Any], ...]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add several options, in the order in which help shows them."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(added):
            function = option(function)
        return function

    return decorate


selected: Final = _all_of(
    (
        click.option("-q", "--queue", default="", metavar="NAME", shell_complete=completing.queues, help="Only those of a queue."),
        click.option("-S", "--scheduler", default="", metavar="NAME", help="Only those of a scheduler."),
        click.option("--selector", default="", metavar="TEXT", help="Only those with this part in their name."),
    )
)  # fmt: skip
