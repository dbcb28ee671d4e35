"""What a shell may complete: files, folders, and names that the cluster knows.

Whoever presses Tab waits, so a cluster gets little time, and one that does not answer, or that may not be asked, has no names.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from click.shell_completion import CompletionItem

from pumice import plain_files

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import click

    from pumice.api.kinds import Kind

PATIENCE: Final = 2.0
MOST: Final = 500

Items = list[CompletionItem]


def files(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> Items:
    """Leave it to the shell to name files."""
    return [CompletionItem(incomplete, type="file")]


def folders(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> Items:
    """Leave it to the shell to name folders."""
    return [CompletionItem(incomplete, type="dir")]


def namespaces(context: click.Context, _parameter: click.Parameter, incomplete: str) -> Items:
    """Name the namespaces of the cluster."""
    from pumice.api import kinds  # noqa: PLC0415  imports msgspec, which help does not need

    return _plain((each["metadata"]["name"] for each in _listed(context, kinds.NAMESPACE)), incomplete)


def queues(context: click.Context, _parameter: click.Parameter, incomplete: str) -> Items:
    """Name the queues of the cluster."""
    from pumice.api import kinds  # noqa: PLC0415  as above

    return _plain((each["metadata"]["name"] for each in _listed(context, kinds.QUEUE)), incomplete)


def jobs(context: click.Context, _parameter: click.Parameter, incomplete: str) -> Items:
    """Name the jobs of the namespace that is given so far, else of the default one."""
    from pumice.api import kinds  # noqa: PLC0415  as above

    namespace = context.params.get("namespace") or "default"
    return _plain((each["metadata"]["name"] for each in _listed(context, kinds.JOB, namespace)), incomplete)


def words(*known: str) -> Callable[[click.Context, click.Parameter, str], Items]:
    """Name a few words."""
    return lambda _context, _parameter, incomplete: _plain(known, incomplete)


def contexts(context: click.Context, _parameter: click.Parameter, incomplete: str) -> Items:
    """Name the contexts of the kubeconfig."""
    from pumice.api import documents  # noqa: PLC0415  as above

    named = context.params.get("kubeconfig") or os.environ.get("KUBECONFIG") or str(Path.home() / ".kube" / "config")
    names: list[str] = []
    for file in filter(None, named.split(os.pathsep)):
        with contextlib.suppress(Exception):  # a file that cannot be read has no names
            (document,) = documents.load_all(plain_files.text(file), file)
            names += [each["name"] for each in document.data["contexts"]]
    return _plain(names, incomplete)


def configurations(context: click.Context, parameter: click.Parameter, incomplete: str) -> Items:
    """Name files, or, where none begins so, the ConfigMaps that hold a configuration."""
    from pumice.api import kinds  # noqa: PLC0415  as above
    from pumice.framework.configuration import config_maps  # noqa: PLC0415  as above

    if incomplete.startswith(("/", ".", "~")):
        return files(context, parameter, incomplete)
    kind = kinds.Kind(name="ConfigMap", group="", version="v1", plural="configmaps", namespaced=True)
    found = [
        f"{each['metadata']['namespace']}/{each['metadata']['name']}"
        for each in _listed(context, kind)
        if config_maps.is_usual(each.get("data") or {})
    ]
    return _plain(found, incomplete) or files(context, parameter, incomplete)


def _plain(names: Iterable[str], incomplete: str) -> Items:
    return [CompletionItem(name) for name in sorted(names) if name.startswith(incomplete)]


def _listed(context: click.Context, kind: Kind, namespace: str = "") -> list[dict[str, Any]]:
    """List objects of the cluster that the command would talk to."""
    import asyncio  # noqa: PLC0415  as above

    given = {name: context.params.get(name) or "" for name in ("kubeconfig", "context_name", "master")}
    try:
        return asyncio.run(asyncio.wait_for(_asked(kind, given, namespace), PATIENCE))
    except Exception:  # noqa: BLE001  a cluster that does not answer has no names, and a prompt is no place to say why
        return []


async def _asked(kind: Kind, given: dict[str, str], namespace: str) -> list[dict[str, Any]]:
    import msgspec  # noqa: PLC0415  as above

    from pumice.kube.access import connection  # noqa: PLC0415  as above
    from pumice.kube.calls.client import Client  # noqa: PLC0415  as above

    async with Client(connection.load(given["kubeconfig"], given["context_name"], given["master"])) as client:
        page = msgspec.json.decode(await client.list_page(kind, namespace=namespace, query={"limit": MOST}))
    items: list[dict[str, Any]] = page["items"]
    return items
