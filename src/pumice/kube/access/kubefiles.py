"""The entries of kubeconfig files, merged as kubectl merges them: of several files the first that names an entry wins.

A message names the file, the entry and the field, and never shows a value that could be a secret.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

import msgspec

from pumice.api import documents
from pumice.kube.access import identity
from pumice.kube.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

_SECTIONS: Final = {"clusters": "cluster", "users": "user", "contexts": "context"}


class Cluster(msgspec.Struct, frozen=True, rename="kebab"):
    """A server and how to trust it."""

    server: str = ""
    certificate_authority: str = ""
    certificate_authority_data: str = ""
    insecure_skip_tls_verify: bool = False
    tls_server_name: str = ""
    proxy_url: str = ""
    extensions: list[dict[str, Any]] | None = None


class Context(msgspec.Struct, frozen=True):
    """A cluster, a user and a namespace."""

    cluster: str = ""
    user: str = ""
    namespace: str = ""


Body = TypeVar("Body", Cluster, Context, identity.User)


class Entry(msgspec.Struct, Generic[Body], frozen=True):
    """One named entry, and the file it stands in."""

    file: Path
    section: str
    name: str
    body: Body

    def field(self, name: str) -> str:
        """Name a field of this entry in a message."""
        return f"{self.file}: {_SECTIONS[self.section]} {self.name!r}: {name}"


class Kubeconfig:
    """All entries of some files, the first of each name."""

    def __init__(self, files: Sequence[Path]) -> None:
        self.files = files
        self.current_context = ""
        self.clusters: dict[str, Entry[Cluster]] = {}
        self.users: dict[str, Entry[identity.User]] = {}
        self.contexts: dict[str, Entry[Context]] = {}

    def add(self, file: Path, text: str) -> None:
        """Merge the text of one file into what stands already."""
        document = _document(file, text)
        self.current_context = self.current_context or _text(file, document, "current-context")
        for name, raw in _entries(file, document, "clusters"):
            if name not in self.clusters:
                self.clusters[name] = _typed(file, "clusters", name, raw, Cluster)
        for name, raw in _entries(file, document, "users"):
            if name not in self.users:
                self.users[name] = _typed(file, "users", name, raw, identity.User)
        for name, raw in _entries(file, document, "contexts"):
            if name not in self.contexts:
                self.contexts[name] = _typed(file, "contexts", name, raw, Context)

    def choose(self, context: str) -> Entry[Context]:
        """Return the context of this name, the current one if none is named."""
        where = ", ".join(map(str, self.files))
        known = ", ".join(sorted(self.contexts)) or "none"
        name = context or self.current_context
        if not name:
            raise ConfigurationError(
                f"{where}: current-context is not set and no context was asked for; contexts: {known}; "
                "run kubectl config use-context NAME"
            )
        if name not in self.contexts:
            raise ConfigurationError(
                f"{where}: context {name!r} does not exist; contexts: {known}; run kubectl config get-contexts"
            )
        return self.contexts[name]

    def referred(self, context: Entry[Context], section: str, name: str) -> Any:
        """Return the cluster or user that a context names."""
        known: dict[str, Any] = self.clusters if section == "clusters" else self.users
        if not name:
            raise ConfigurationError(f"{context.field(_SECTIONS[section])} is not set; name one of the {section}")
        if name not in known:
            raise ConfigurationError(
                f"{context.field(_SECTIONS[section])} names {name!r}, which does not exist; "
                f"{section}: {', '.join(sorted(known)) or 'none'}"
            )
        return known[name]


def _document(file: Path, text: str) -> dict[str, Any]:
    try:
        found = documents.load_all(text, str(file))
    except documents.DocumentError as error:
        line = error.line
        raise ConfigurationError(f"{file}: line {line} is not valid YAML; mend it there") from None
    data = found[0].data if found else {}
    if not isinstance(data, dict) or len(found) > 1:
        raise ConfigurationError(f"{file}: a kubeconfig is one map with clusters, users and contexts")
    if data.get("kind", "Config") != "Config":
        raise ConfigurationError(f"{file}: kind is not Config; this is no kubeconfig")
    return data


def _text(file: Path, document: dict[str, Any], key: str) -> str:
    value = document.get(key)
    if value is not None and not isinstance(value, str):
        raise ConfigurationError(f"{file}: {key} must be a string; put it in quotes")
    return value or ""


def _entries(file: Path, document: dict[str, Any], section: str) -> list[tuple[str, dict[str, Any]]]:
    entries = document.get(section) or []
    if not isinstance(entries, list):
        raise ConfigurationError(f"{file}: {section} must be a list of entries with a name")
    found: dict[str, dict[str, Any]] = {}
    for index, entry in enumerate(entries):
        if not isinstance(entry, dict) or not isinstance(entry.get("name"), str):
            raise ConfigurationError(f"{file}: {section}[{index}] has no name; write it as a string")
        body = entry.get(_SECTIONS[section]) or {}
        if not isinstance(body, dict):
            raise ConfigurationError(
                f"{file}: {section}[{index}] {entry['name']!r}: {_SECTIONS[section]} must be a map"
            )
        if entry["name"] in found:
            raise ConfigurationError(
                f"{file}: {section}[{index}] {entry['name']!r} stands twice; remove one of the two"
            )
        found[entry["name"]] = {key: value for key, value in body.items() if value is not None}
    return list(found.items())


def _typed(file: Path, section: str, name: str, raw: dict[str, Any], body: type[Body]) -> Entry[Body]:
    try:
        return Entry(file=file, section=section, name=name, body=msgspec.convert(raw, body))
    except msgspec.ValidationError as error:
        # The message tells expected and found types and the path; it shows no value.
        raise ConfigurationError(f"{file}: {_SECTIONS[section]} {name!r}: {error}; correct that field") from None
