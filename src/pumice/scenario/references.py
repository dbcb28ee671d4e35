"""References to objects as scenario files write them: `pod/a/g-0`, `node/n1`, with globs where several may be meant."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pumice.api import kinds
from pumice.scenario import reading, view

if TYPE_CHECKING:
    from pumice.scenario.reading import Cursor


class Reference(msgspec.Struct, frozen=True, kw_only=True):
    """An object, or with globs several: kind in lower-case singular, namespace empty for cluster-scoped kinds."""

    line: int
    kind: str
    namespace: str
    name: str

    @property
    def pattern(self) -> str:
        """Write the reference as it stands in the file."""
        return "/".join(part for part in (self.kind, self.namespace, self.name) if part)


def read(cursor: Cursor, *, glob: bool = True) -> Reference:
    """Read a reference and check that its kind exists and has that many parts."""
    text = cursor.text("text such as pod/a/g-0")
    kind_name, *rest = text.split("/")
    kind = kinds.by_singular(kind_name)
    if kind is None:
        if text:
            known = tuple(dict.fromkeys(known.singular for known in kinds.KINDS))
            cursor.refuse(f"unknown kind {kind_name!r} in {text!r}{reading.suggestion(kind_name, known)}")
        return Reference(line=cursor.line, kind=kind_name, namespace="", name="")
    if len(rest) != (2 if kind.namespaced else 1) or not all(rest):
        shape = f"{kind_name}/namespace/name" if kind.namespaced else f"{kind_name}/name"
        scope = "namespaced" if kind.namespaced else "cluster-scoped"
        cursor.refuse(f"{text!r} does not name an object: {kind.name} is {scope}, write {shape}")
    elif not glob and view.is_glob(text):
        cursor.refuse(f"{text!r} is a pattern; name one object here")
    return Reference(
        line=cursor.line, kind=kind_name, namespace=rest[0] if len(rest) > 1 else "", name=rest[-1] if rest else ""
    )
