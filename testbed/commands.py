"""The command lines of etcd and kube-apiserver, and the files that they read."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

from testbed import certificates

if TYPE_CHECKING:
    from pathlib import Path

_SOCKET = "etcd:1"
"""A socket's name; the older etcd insists on the form `host:port`."""
_HOSTS = ("DNS:localhost", "DNS:kubernetes.default.svc", "IP:127.0.0.1")
_WITHOUT = ("ServiceAccount", "StorageObjectInUseProtection")
"""Admission plugins that wait for controllers which are not there."""


class Programs(NamedTuple):
    """Where the programs are."""

    etcd: Path
    api_server: Path
    kubectl: Path


def socket(folder: Path) -> Path:
    """Return the Unix socket that etcd serves on: nobody else can take it, as they could a port."""
    return folder / _SOCKET


def etcd(programs: Programs, folder: Path) -> list[str]:
    """Return the command line of an etcd that keeps its data in `folder`, which has to be its working directory."""
    nobody = "http://127.0.0.1:1"  # it is alone: no peer ever calls
    return [
        str(programs.etcd),
        f"--data-dir={folder / 'etcd'}",
        "--unsafe-no-fsync",
        f"--listen-client-urls=unix://{_SOCKET}",
        f"--advertise-client-urls={nobody}",
        "--listen-peer-urls=http://127.0.0.1:0",
        f"--initial-advertise-peer-urls={nobody}",
        f"--initial-cluster=default={nobody}",
        "--quota-backend-bytes=8589934592",
        "--heartbeat-interval=500",  # in milliseconds: it would have nobody to tell that it is there ten times a second
        "--election-timeout=5000",
    ]


def api_server(programs: Programs, folder: Path, port: int) -> list[str]:
    """Return the command line of an API server over that etcd."""
    keys = folder / "pki"
    return [
        str(programs.api_server),
        f"--etcd-servers=unix://{socket(folder)}",
        "--bind-address=127.0.0.1",
        "--advertise-address=127.0.0.1",
        f"--secure-port={port}",
        "--endpoint-reconciler-type=none",  # which would refuse to publish a loopback address
        "--service-cluster-ip-range=10.0.0.0/24",
        f"--tls-cert-file={keys / 'apiserver.crt'}",
        f"--tls-private-key-file={keys / 'apiserver.key'}",
        f"--client-ca-file={keys / 'ca.crt'}",
        f"--token-auth-file={folder / 'tokens.csv'}",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={keys / 'apiserver.crt'}",
        f"--service-account-signing-key-file={keys / 'apiserver.key'}",
        "--authorization-mode=RBAC",
        f"--disable-admission-plugins={','.join(_WITHOUT)}",
        "--allow-privileged=true",
        "--delete-collection-workers=4",
        "--event-ttl=1h",
    ]


def write_keys(folder: Path, token: str) -> None:
    """Write certificates, keys and tokens for a server in `folder`."""
    keys = folder / "pki"
    keys.mkdir()
    authority = certificates.Authority(keys)
    authority.server("apiserver", _HOSTS)
    authority.client("admin", ["system:masters"])
    (folder / "tokens.csv").write_text(f'{token},admin,admin,"system:masters"\n')


def write_kubeconfig(path: Path, url: str, token: str) -> None:
    """Write a kubeconfig (JSON is YAML too) with two contexts: `token`, the current one, and `certificate`."""
    keys = path.parent / "pki"
    pair = {"client-certificate": str(keys / "admin.crt"), "client-key": str(keys / "admin.key")}
    users = {"token": {"token": token}, "certificate": pair}
    path.write_text(
        json.dumps(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "current-context": "token",
                "clusters": [
                    {"name": "testbed", "cluster": {"server": url, "certificate-authority": str(keys / "ca.crt")}}
                ],
                "users": [{"name": name, "user": user} for name, user in users.items()],
                "contexts": [{"name": name, "context": {"cluster": "testbed", "user": name}} for name in users],
            },
            indent=1,
        )
    )
