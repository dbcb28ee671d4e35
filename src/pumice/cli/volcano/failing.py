"""How a command fails: one line on standard output that begins as vcctl's does, with what to do next, and exit status 1."""

from __future__ import annotations

from typing import IO, TYPE_CHECKING, Any, Final

import click

if TYPE_CHECKING:
    from pumice.api.kinds import Kind
    from pumice.kube.errors import ApiError, KubeError

_STATUS: Final = 1


class CommandError(click.ClickException):
    """A command that could not do what it was asked for."""

    exit_code = _STATUS

    def __init__(self, message: str) -> None:
        super().__init__(message)
        context = click.get_current_context(silent=True)
        self._path = " ".join(path(context))

    def show(self, file: IO[Any] | None = None) -> None:
        """Print `Failed to list job: …` where scripts of vcctl's users look for it."""
        click.echo(f"Failed to {self._path}: {self.message}", file)


class ForbiddenError(CommandError):
    """A command that lacks a right."""


def path(context: click.Context | None) -> list[str]:
    """Name a command from its verb to its kind, as in `list job`; one that has no kind is executed."""
    words: list[str] = []
    while context is not None and (context.parent is not None or not words):
        words.append(context.info_name or "")
        context = context.parent
    return words if len(words) > 1 else ["execute", *words]


def told(error: KubeError, kind: Kind, verb: str, *, name: str = "", namespace: str = "") -> str:
    """Say what went wrong with an object or a list, and what helps."""
    from pumice.kube import errors  # noqa: PLC0415  imports msgspec, which help does not need

    if isinstance(error, errors.UnknownOutcomeError):
        return f"{error}; look before trying again: {_list_command(kind, namespace)}"
    if isinstance(error, errors.ApiError):
        return _refused(error, kind, verb, name, namespace)
    return str(error)


def _refused(error: ApiError, kind: Kind, verb: str, name: str, namespace: str) -> str:
    where = f" in namespace {namespace}" if namespace and kind.namespaced else ""
    match error.status:
        case 403 if f"cannot {verb} resource" in error.message:
            return f"{error.message}; {_right(kind, verb, namespace)}"
        case 404 if name and f'"{name}" not found' in error.message:
            return (
                f"there is no {kind.singular} {name!r}{where}; {_list_command(kind, namespace)} shows those that exist"
            )
        case 404 if "namespaces" in error.message and namespace and f'"{namespace}" not found' in error.message:
            return f"there is no namespace {namespace!r}; create it: kubectl create namespace {namespace}"
        case 404:
            return unserved(kind)
        case 409 if error.reason == "AlreadyExists":
            return f"{kind.singular} {name!r} exists already{where}; take another name, or delete it first"
    return str(error)


def unserved(kind: Kind) -> str:
    """Say that a cluster does not know a kind."""
    from pumice.study import rights  # noqa: PLC0415  as above

    return rights.unserved(kind)


def _right(kind: Kind, verb: str, namespace: str) -> str:
    """Name the right that is missing, and how somebody who may can grant it."""
    resource = f"{kind.plural}.{kind.group}" if kind.group else kind.plural
    scope = f"-n {namespace}" if namespace and kind.namespaced else "in all namespaces"
    made = "role" if namespace and kind.namespaced else "clusterrole"
    return (
        f"you lack the right to {verb} {resource} {scope}; an administrator grants it with "
        f"kubectl create {made} NAME --verb={verb} --resource={resource} and a {made}binding"
    )


def _list_command(kind: Kind, namespace: str) -> str:
    if kind.name not in ("Job", "Queue", "JobFlow", "JobTemplate"):
        return f"kubectl get {kind.plural}" + (f" -n {namespace}" if namespace else "")
    return f"{_program()} {kind.singular} list" + (f" -n {namespace}" if namespace and kind.namespaced else "")


def _program() -> str:
    """Name the program whose commands are advised."""
    context = click.get_current_context(silent=True)
    called = context.find_root().info_name if context is not None else ""
    return called if called in ("vcctl", "kubectl pumice") else "pumice"
