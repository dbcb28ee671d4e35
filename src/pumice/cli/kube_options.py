"""Options that say which cluster is meant, as every command has them that reaches one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from pumice.cli import completing

if TYPE_CHECKING:
    from collections.abc import Callable

    Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


def kubeconfig(*short: str, meaning: str = "else $KUBECONFIG, else ~/.kube/config") -> Decorator:
    """Take the file that says how to reach a cluster."""
    return click.option(
        *short, "--kubeconfig", default="", metavar="FILE", shell_complete=completing.files, help=meaning
    )


def context() -> Decorator:
    """Take the name of a context in it."""
    return click.option(
        "--context",
        "context_name",
        default="",
        metavar="NAME",
        shell_complete=completing.contexts,
        help="Context of the kubeconfig.",
    )


def master(*short: str) -> Decorator:
    """Take an address in place of the kubeconfig's."""
    return click.option(*short, "--master", default="", metavar="URL", help="Address of the API server.")
