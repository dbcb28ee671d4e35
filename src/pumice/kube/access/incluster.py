"""The account that Kubernetes gives to a pod."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from pumice.kube import errors
from pumice.kube.access import proxies
from pumice.kube.access.credentials import TokenFile
from pumice.kube.access.endpoint import Connection
from pumice.kube.access.tls import Pem, Tls

if TYPE_CHECKING:
    from collections.abc import Mapping

ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")


def present(environ: Mapping[str, str]) -> bool:
    """Whether this process runs in a pod that can find its API server."""
    return bool(environ.get("KUBERNETES_SERVICE_HOST") and environ.get("KUBERNETES_SERVICE_PORT"))


def load(environ: Mapping[str, str], account: Path = ACCOUNT) -> Connection:
    """Return the connection of the pod's own account; its token is read again as the kubelet renews it."""
    host, port = environ.get("KUBERNETES_SERVICE_HOST", ""), environ.get("KUBERNETES_SERVICE_PORT", "")
    if not host or not port.isascii() or not port.isdigit():
        raise errors.ConfigurationError(
            "in-cluster: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT do not name a server; "
            "outside a pod give --kubeconfig FILE"
        )
    token, authority = account / "token", account / "ca.crt"
    if not token.exists():
        raise errors.ConfigurationError(
            f"in-cluster: {token} is missing; the pod needs a service account (automountServiceAccountToken: true)"
        )
    server = f"https://[{host}]:{port}" if ":" in host and not host.startswith("[") else f"https://{host}:{port}"
    connection = Connection(
        server,
        tls=Tls(authority=Pem("in-cluster ca.crt", path=authority) if authority.exists() else None),
        proxy_url=proxies.choose(server, "", "", environ),
        namespace=_namespace(account / "namespace"),
        credentials=TokenFile(token),
        origin=f"the pod's account in {account}",
    )
    connection.tls.context()
    return connection


def _namespace(path: Path) -> str:
    try:
        return path.read_text().strip() or "default"
    except (OSError, ValueError):
        return "default"
