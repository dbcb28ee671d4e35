"""Where the text of a configuration comes from: a file, or a key of a ConfigMap."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

import yaml

from pumice.api import kinds, meta
from pumice.kube import errors

if TYPE_CHECKING:
    from collections.abc import Mapping

CONFIG_MAP: Final = kinds.Kind(
    name="ConfigMap", group="", version="v1", plural="configmaps", namespaced=True, struct=None
)
KEYS: Final = ("volcano-scheduler.conf", "kube-batch-conf.yaml", "scheduler.conf")
LARGEST: Final = 1 << 20
PREFIX: Final = "configmap:"


class SourceError(Exception):
    """A configuration that cannot be read just now; the message names the place."""


class Source(Protocol):
    """Gives the present text; every so often is soon enough to ask again. `place` is the object that it was last read from, if it is one of the API server's."""

    name: str
    pause: float
    place: meta.ObjectMeta | None

    async def read(self) -> str:
        """Return the text, or raise a `SourceError`."""


class Getter(Protocol):
    """The request that a ConfigMap is read with."""

    async def get(self, kind: kinds.Kind, namespace: str, name: str) -> dict[str, Any]:
        """Read an object."""


class FileSource:
    """A file, found anew through its links at every look, so that a ConfigMap volume may swap them."""

    pause = 1.0

    def __init__(self, path: str) -> None:
        self.name = path
        self.place: meta.ObjectMeta | None = None

    async def read(self) -> str:
        """Return the text; a slow disk holds up nobody else."""
        return await asyncio.to_thread(self.read_now)

    def read_now(self) -> str:
        """Return the text."""
        try:
            with Path(self.name).open("rb") as file:
                data = file.read(LARGEST + 1)
            if len(data) > LARGEST:
                raise SourceError(f"{self.name} is larger than {LARGEST} bytes")
            return data.decode("utf-8")
        except OSError as error:
            raise SourceError(f"{self.name} cannot be read: {error.strerror}") from error
        except UnicodeDecodeError as error:
            raise SourceError(f"{self.name} is not UTF-8 text: {error.reason} at byte {error.start}") from error


class ConfigMapSource:
    """A key of a ConfigMap, or, as kube-batch had it, the ConfigMap as a whole as a flat map."""

    pause = 5.0

    def __init__(self, client: Getter, namespace: str, name: str, key: str = "", *, guessed: bool = False) -> None:
        self.name = f"configmap {namespace}/{name}{' key ' + key if key else ''}"
        self._client = client
        self.place: meta.ObjectMeta | None = None
        self._place = (namespace, name)
        self._key = key
        self._hint = f"; nor is there a file {namespace}/{name}" if guessed else ""

    async def read(self) -> str:
        """Return the text."""
        try:
            found = await self._client.get(CONFIG_MAP, *self._place)
        except errors.KubeError as error:
            raise SourceError(f"{self.name} cannot be read: {error}{self._hint}") from error
        uid = (found.get("metadata") or {}).get("uid", "")
        self.place = meta.ObjectMeta(name=self._place[1], namespace=self._place[0], uid=uid)
        return self._text(found.get("data") or {})

    def _text(self, data: Mapping[str, str]) -> str:
        if self._key:
            if self._key not in data:
                raise SourceError(f"{self.name} does not exist; the ConfigMap has {_listed(data)}")
            return data[self._key]
        if "plugins" in data:
            text: str = yaml.safe_dump(dict(data), sort_keys=False, default_style='"')
            return text
        key = next((key for key in KEYS if key in data), None) or (next(iter(data)) if len(data) == 1 else None)
        if key is None:
            raise SourceError(f"{self.name} has {_listed(data)}; say which: configmap:{'/'.join(self._place)}/KEY")
        return data[key]


def find(given: str, client: Getter | None) -> Source | None:
    """Return the source that `--scheduler-conf` names; a ConfigMap needs a client, and None asks to come back with one.

    `namespace/name` is a ConfigMap if there is no such file and nothing else makes it look like a path.
    """
    place = given.removeprefix(PREFIX)
    parts = place.split("/")
    looks_like_path = len(parts) != 2 or not all(parts) or parts[0] in (".", "..") or Path(given).exists()
    if not given.startswith(PREFIX) and looks_like_path:
        return FileSource(given)
    if not 2 <= len(parts) <= 3 or not all(parts):
        raise SourceError(f"--scheduler-conf {given}: write configmap:NAMESPACE/NAME or configmap:NAMESPACE/NAME/KEY")
    return None if client is None else ConfigMapSource(client, *parts, guessed=not given.startswith(PREFIX))


def _listed(data: Mapping[str, str]) -> str:
    return f"the keys {', '.join(sorted(data))}" if data else "no data"
