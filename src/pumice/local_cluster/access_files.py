"""What a client needs to reach the cluster: certificates, a token, and a kubeconfig of its own. The user's own kubeconfig is never touched."""

from __future__ import annotations

import base64
import os
import secrets
from typing import TYPE_CHECKING, Any

import yaml

from pumice.api import names
from pumice.apiserver import certificates

if TYPE_CHECKING:
    from pathlib import Path


class AccessFiles:
    """The files of one cluster in a folder; those that are there are used again."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.certificates = certificates.ensure(folder / "pki")
        self.token = self._kept("token", lambda: secrets.token_urlsafe(32))

    @property
    def kubeconfig(self) -> Path:
        """Where the kubeconfig is."""
        return self._folder / "kubeconfig"

    @property
    def port(self) -> int:
        """The port of an earlier run, or 0."""
        path = self._folder / "port"
        text = path.read_text().strip() if path.is_file() else ""
        return int(text) if text.isdecimal() and int(text) < 65536 else 0

    def write(self, host: str, port: int, scheduled: dict[str, Any] | None = None) -> Path:
        """Write the kubeconfig, with what is known of the scheduler, and remember the port."""
        _private(self._folder / "port", f"{port}\n")
        _private(self.kubeconfig, yaml.safe_dump(self._document(host, port, scheduled), sort_keys=False))
        return self.kubeconfig

    def _document(self, host: str, port: int, scheduled: dict[str, Any] | None) -> dict[str, Any]:
        files = self.certificates
        user = {
            "client-certificate-data": _data(files.client),
            "client-key-data": _data(files.client_key),
        }
        cluster: dict[str, Any] = {
            "server": f"https://{host}:{port}",
            "certificate-authority-data": _data(files.authority),
        }
        if scheduled is not None:
            cluster["extensions"] = [{"name": names.SCHEDULER_EXTENSION, "extension": scheduled}]
        return {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "pumice", "cluster": cluster}],
            "users": [{"name": "pumice-admin", "user": user}, {"name": "pumice-token", "user": {"token": self.token}}],
            "contexts": [
                {"name": "pumice", "context": {"cluster": "pumice", "user": "pumice-token"}},
                {"name": "pumice-certificate", "context": {"cluster": "pumice", "user": "pumice-admin"}},
            ],
            "current-context": "pumice",
        }

    def _kept(self, name: str, make: Any) -> str:
        path = self._folder / name
        if not path.is_file() or not path.read_text().strip():
            _private(path, make() + "\n")
        return path.read_text().strip()


def _data(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()


def _private(path: Path, text: str) -> None:
    """Write a file that nobody else may read, whole or not at all."""
    aside = path.with_suffix(".new")
    aside.unlink(missing_ok=True)
    with os.fdopen(os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text)
    aside.replace(path)
