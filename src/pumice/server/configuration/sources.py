"""Where the text of a configuration comes from: a file, or a key of a ConfigMap."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

import msgspec

from pumice import plain_files
from pumice.api import kinds, meta
from pumice.framework.configuration import config_maps
from pumice.kube import errors

if TYPE_CHECKING:
    from collections.abc import Mapping

CONFIG_MAP: Final = kinds.Kind(
    name="ConfigMap", group="", version="v1", plural="configmaps", namespaced=True, struct=None
)
LARGEST: Final = 1 << 20
PREFIX: Final = "configmap:"


class SourceError(Exception):
    """A configuration that cannot be read just now; the message names the place."""


class Holder(msgspec.Struct, frozen=True):
    """The object that holds a configuration, for events about it."""

    kind: kinds.Kind
    namespace: str
    name: str
    uid: str


class Source(Protocol):
    """Gives the present text; every so often is soon enough to ask again.

    `holder` is the object it was last seen in, if it is in one, and `place` what an event about it refers to.
    """

    name: str
    pause: float
    holder: Holder | None
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
        self.holder: Holder | None = None
        self.place: meta.ObjectMeta | None = None

    async def read(self) -> str:
        """Return the text; a slow disk holds up nobody else."""
        return await asyncio.to_thread(self.read_now)

    def read_now(self) -> str:
        """Return the text."""
        try:
            with plain_files.opened(self.name) as file:
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
        self.holder: Holder | None = None
        self._hint = f"; nor is there a file {namespace}/{name}" if guessed else ""

    async def read(self) -> str:
        """Return the text."""
        self.holder = None
        try:
            found = await self._client.get(CONFIG_MAP, *self._place)
        except errors.KubeError as error:
            raise SourceError(f"{self.name} cannot be read: {error}{self._hint}") from error
        uid = (found.get("metadata") or {}).get("uid") or ""
        self.holder = Holder(CONFIG_MAP, *self._place, uid)
        self.place = meta.ObjectMeta(name=self._place[1], namespace=self._place[0], uid=uid)
        return self._text(found.get("data") or {})

    def _text(self, data: Mapping[str, str]) -> str:
        key = config_maps.choose(data, self._key)
        if key is not None:
            return config_maps.text(data, key)
        there = config_maps.listed(data)
        if self._key:
            raise SourceError(f"{self.name} does not exist; the ConfigMap has {there}")
        raise SourceError(f"{self.name} has {there}; say which: configmap:{'/'.join(self._place)}/KEY")


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
