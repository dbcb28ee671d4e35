"""The plugin ssh."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any, ClassVar, Final

from pumice.api import kinds
from pumice.controllers.volcano.job_plugins import flags, hosts, pods
from pumice.controllers.volcano.job_plugins.protocol import Beside, PluginError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pumice.controllers.volcano.job_plugins.protocol import Place
    from pumice.controllers.volcano.jobs.reading import Job

Manifest = dict[str, Any]
_HOME: Final = "/root/.ssh"
_PORT: Final = 22
_LARGEST_PORT: Final = 65535
_BITS: Final = 2048
_FILES: Final = ("id_rsa", "id_rsa.pub", "authorized_keys", "config")


def new_keys() -> tuple[str, str]:
    """Make a pair of keys, the private one first, as OpenSSH writes them."""
    from cryptography.hazmat.primitives import serialization  # noqa: PLC0415  slow to import, and few Jobs need it
    from cryptography.hazmat.primitives.asymmetric import rsa  # noqa: PLC0415

    key = rsa.generate_private_key(public_exponent=65537, key_size=_BITS)
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    )
    public = key.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
    return private.decode(), public.decode() + "\n"


class Ssh:
    """Lets the pods of a Job log in to each other without a password.

    It makes a Secret with a pair of keys and a configuration that has a block for each pod, mounted where ssh looks for it.

    `--ssh-key-file-path` (/root/.ssh): where that is. `--ssh-private-key`, `--ssh-public-key`: keys to use instead of new ones.
    `--ssh-port` (22): where the servers listen. `--no-root`, which old manifests have, is read and has no effect.
    """

    name: ClassVar[str] = "ssh"
    makes: ClassVar[tuple[kinds.Kind, ...]] = (kinds.SECRET,)

    def __init__(self, arguments: Sequence[str], keys: Callable[[], tuple[str, str]] = new_keys) -> None:
        texts = {"ssh-key-file-path": _HOME, "ssh-private-key": "", "ssh-public-key": "", "ssh-port": str(_PORT)}
        found = flags.parse(self.name, arguments, {**texts, "no-root": False})
        self._path = found.text("ssh-key-file-path")
        given = found.text("ssh-private-key"), found.text("ssh-public-key")
        if bool(given[0]) != bool(given[1]):
            raise PluginError("plugin ssh: --ssh-private-key and --ssh-public-key are given together or not at all")
        self._keys = keys
        self._given = given if given[0] else None
        port = found.text("ssh-port")
        number = int(port) if port.isdecimal() and len(port) < len(str(_LARGEST_PORT)) + 1 else 0
        self._port = number if 0 < number <= _LARGEST_PORT else _PORT

    def objects(self, job: Job) -> list[Beside]:
        """Need a Secret."""
        return [Beside(kind=kinds.SECRET, name=f"{job.name}-ssh", content={}, make=lambda: self._secret(job))]

    def _secret(self, job: Job) -> Manifest:
        private, public = self._given or self._keys()
        texts = zip(_FILES, (private, public, public, self._config(job)), strict=True)
        return {"type": "Opaque", "data": {name: base64.b64encode(text.encode()).decode() for name, text in texts}}

    def _config(self, job: Job) -> str:
        lines = ["StrictHostKeyChecking no", "UserKnownHostsFile /dev/null"]
        for role in job.roles:
            for host, domain in hosts.names(job, role):
                lines += [f"Host {host}", f"  HostName {host}.{domain}", f"  Port {self._port}"]
        return "\n".join(lines) + "\n"

    def complete(self, pod: Manifest, place: Place) -> None:
        """Mount the keys."""
        name = f"{place.job.name}-ssh"
        items = [{"key": each, "path": f".ssh/{each}"} for each in _FILES]
        mode = 0o600 if self._path == _HOME else 0o644
        secret = {"secretName": name, "items": items, "defaultMode": mode}
        volume = {"name": pods.volume_name(place.job.name, "ssh"), "secret": secret}
        pods.mount(pod, volume, {"mountPath": self._path, "subPath": ".ssh"})
