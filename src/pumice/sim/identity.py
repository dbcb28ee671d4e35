"""Which object a manifest or a reference such as `pod/a/g-0` speaks of."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, NamedTuple

from pumice.api import kinds, names
from pumice.sim import errors

if TYPE_CHECKING:
    from collections.abc import Mapping


class Key(NamedTuple):
    """The identity of an object; the namespace of a cluster-scoped one is empty."""

    kind: kinds.Kind
    namespace: str
    name: str

    def __str__(self) -> str:
        return "/".join(part for part in (self.kind.singular, self.namespace, self.name) if part)


def identify(manifest: Mapping[str, Any], *, partial: bool = False) -> Key:
    """Give the identity a manifest states; a partial one need not name its apiVersion."""
    metadata = manifest.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    name = metadata.get("name")
    kind_name = manifest.get("kind")
    if not isinstance(kind_name, str) or not kind_name:
        raise errors.InvalidError(f"a manifest (metadata.name {name!r}) has no kind; write for example kind: Pod")
    if not isinstance(name, str) or not name:
        raise errors.InvalidError(
            f"a {kind_name} has metadata.name {name!r}; it must be a text, so quote it if need be"
        )
    kind = _kind(manifest.get("apiVersion"), kind_name, name, partial=partial)
    if not kind.namespaced:
        return Key(kind, "", name)
    namespace = metadata.get("namespace")
    if namespace is None or namespace == "":
        namespace = names.DEFAULT_NAMESPACE
    if not isinstance(namespace, str):
        raise errors.InvalidError(
            f"{kind_name} {name} has metadata.namespace {namespace!r}; it must be a text, so quote it"
        )
    return Key(kind, namespace, name)


def parse(reference: str) -> Key:
    """Give the identity that `kind/name` or `kind/namespace/name` names, the kind in lower-case singular."""
    singular, *rest = reference.split("/")
    kind = kinds.by_singular(singular)
    if kind is None:
        known = list(dict.fromkeys(each.singular for each in kinds.KINDS))
        raise errors.InvalidError(f"{reference}: no kind is called {singular!r}{_nearest(singular, known)}")
    wanted = 2 if kind.namespaced else 1
    if len(rest) != wanted or not all(rest):
        form = f"{singular}/NAMESPACE/NAME" if kind.namespaced else f"{singular}/NAME"
        raise errors.InvalidError(f"{reference}: write it as {form}")
    return Key(kind, rest[0] if kind.namespaced else "", rest[-1])


def _kind(api_version: object, kind_name: str, name: str, *, partial: bool) -> kinds.Kind:
    if api_version is None and partial:
        kind = kinds.by_singular(kind_name.lower())
    elif not isinstance(api_version, str) or not api_version:
        raise errors.InvalidError(f"{kind_name} {name} has no apiVersion; write for example apiVersion: v1")
    else:
        kind = kinds.find(api_version, kind_name)
    if kind is None:
        known = [f"{each.api_version} {each.name}" for each in kinds.KINDS]
        wanted = f"{api_version} {kind_name}"
        raise errors.InvalidError(f"{kind_name} {name}: no kind {wanted!r} is stored here{_nearest(wanted, known)}")
    return kind


def _nearest(wanted: str, known: list[str]) -> str:
    close = get_close_matches(wanted, known, n=1, cutoff=0.5)
    return f"; did you mean {close[0]!r}?" if close else f"; known are {', '.join(sorted(known))}"
