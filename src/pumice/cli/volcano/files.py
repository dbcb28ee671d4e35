"""Objects from a file of manifests."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final

from pumice import plain_files
from pumice.api import documents, kinds

if TYPE_CHECKING:
    from collections.abc import Iterator

Manifest = dict[str, Any]

STANDARD_INPUT: Final = "-"
ENDINGS: Final = (".yaml", ".yml", ".json")


class BadFileError(ValueError):
    """A file that cannot be used; the message names it, the line and what helps."""


def read(file: str, kind: kinds.Kind, namespace: str) -> list[Manifest]:
    """Read the objects of a kind; one without a namespace gets the one that was asked for, else `default`."""
    if file != STANDARD_INPUT and not file.endswith(ENDINGS):
        raise BadFileError(f"{file}: only yaml files are read; its name must end in {', '.join(ENDINGS)}")
    try:
        found = documents.load_all(_text(file), file if file != STANDARD_INPUT else "standard input")
    except documents.DocumentError as error:
        raise BadFileError(str(error)) from None
    objects = [each for document in found for each in _objects(document, kind, namespace)]
    if not objects:
        raise BadFileError(f"{file}: holds no {kind.name}; write apiVersion: {kind.api_version}, kind: {kind.name}")
    return objects


def _text(file: str) -> str:
    try:
        if file == STANDARD_INPUT:
            return sys.stdin.read(documents.MAX_BYTES + 1)
        return plain_files.text(file)
    except FileNotFoundError:
        raise BadFileError(f"{file}: there is no such file") from None
    except OSError as error:
        raise BadFileError(f"{file}: cannot be read: {error.strerror}") from None
    except ValueError:
        raise BadFileError(f"{file}: is no UTF-8 text") from None


def _objects(document: documents.Located, kind: kinds.Kind, namespace: str) -> Iterator[Manifest]:
    data = document.data
    listed = data.get("items") if isinstance(data, dict) and str(data.get("kind")).endswith("List") else None
    for index, item in enumerate(listed if isinstance(listed, list) else [data]):
        line = document.line_of(("items", index) if isinstance(listed, list) else ())
        yield _checked(item, kind, namespace, f"{document.source}: line {line}")


def _checked(item: Any, kind: kinds.Kind, namespace: str, where: str) -> Manifest:
    if not isinstance(item, dict):
        raise BadFileError(f"{where}: is no object but {type(item).__name__}")
    # vcctl fills in both, so files without them are about.
    api_version, name = item.get("apiVersion", kind.api_version), item.get("kind", kind.name)
    if (api_version, name) != (kind.api_version, kind.name):
        raise BadFileError(
            f"{where}: is a {name} of {api_version}, no {kind.name} of {kind.api_version}; kubectl create -f takes any kind"
        )
    metadata = item.get("metadata")
    if not isinstance(metadata, dict) or not (metadata.get("name") or metadata.get("generateName")):
        raise BadFileError(f"{where}: metadata.name is missing")
    own = str(metadata.get("namespace") or "")
    if own and namespace and own != namespace:
        raise BadFileError(
            f"{where}: metadata.namespace is {own!r} and the namespace asked for is {namespace!r}; leave one of them out"
        )
    placed = {**metadata, "namespace": own or namespace or "default"}
    return {**item, "apiVersion": kind.api_version, "kind": kind.name, "metadata": placed}
