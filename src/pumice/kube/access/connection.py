"""Where the connection to an API server is found: flags, kubeconfig files, the account of a pod."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from pumice.kube import errors
from pumice.kube.access import incluster, proxies
from pumice.kube.access import kubeconfig as files
from pumice.kube.access.endpoint import Connection, checked_server

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Connection", "load"]


def load(
    kubeconfig: str = "",
    context: str = "",
    master: str = "",
    *,
    in_cluster_first: bool = False,
    environ: Mapping[str, str] = os.environ,
) -> Connection:
    """Find the connection that flags and surroundings ask for.

    An explicit kubeconfig, else the files of $KUBECONFIG, else ~/.kube/config, else the pod's own account; `in_cluster_first` puts the
    last one before the two that nobody asked for. `master` replaces the server of a kubeconfig; alone, it is used without credentials.
    """
    if kubeconfig:
        return files.load([Path(kubeconfig)], context, master, environ=environ, required=True)
    if master and not context:
        server = checked_server(master, "--master")
        return Connection(server, proxy_url=proxies.choose(server, "", "", environ), origin=f"--master {server}")
    if in_cluster_first and not context and incluster.present(environ):
        return incluster.load(environ)
    named = [Path(part) for part in environ.get("KUBECONFIG", "").split(os.pathsep) if part]
    paths = named or [Path(environ.get("HOME") or Path.home()) / ".kube" / "config"]
    if any(path.exists() for path in paths):
        return files.load(paths, context, master, environ=environ)
    if not context and incluster.present(environ):
        return incluster.load(environ)
    where = "$KUBECONFIG" if named else "the default place"
    raise errors.ConfigurationError(
        f"no kubeconfig: {', '.join(map(str, paths))} ({where}) does not exist, and this is no pod of a cluster; "
        "give --kubeconfig FILE or --master URL"
    )
