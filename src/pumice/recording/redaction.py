"""What a recording must not hold: kubectl's copy of a manifest, which repeats the environment of containers. Other things that nobody reads were left out when objects were decoded.

In its place stands a keyed checksum whose key is kept nowhere, so that a change is still seen as one.
"""

from __future__ import annotations

import hashlib
import secrets
from typing import TYPE_CHECKING, Any

from msgspec import structs

from pumice.api import decoding, names
from pumice.api.meta import KubeObject, ObjectMeta
from pumice.cache.effects import Read

if TYPE_CHECKING:
    from pumice.cache.effects import Outcome


class Redaction:
    """Takes out of objects what others must not see; one key lasts as long as a run."""

    def __init__(self) -> None:
        self._key = secrets.token_bytes(32)

    def clean(self, found: Any) -> Any:
        """Return an object, or its metadata, as it may be written."""
        if isinstance(found, ObjectMeta):
            kept = self.annotations(found.annotations)
            return found if kept is found.annotations else structs.replace(found, annotations=kept)
        if isinstance(found, KubeObject | decoding.Malformed):
            metadata = self.clean(found.metadata)
            return found if metadata is found.metadata else structs.replace(found, metadata=metadata)
        return found

    def annotations(self, found: dict[Any, Any]) -> dict[Any, Any]:
        """Return annotations as they may be written; any other dictionary as it is."""
        text = found.get(names.LAST_APPLIED)
        return found if not isinstance(text, str) else {**found, names.LAST_APPLIED: self.checksum(text)}

    def answer(self, outcome: Outcome) -> Any:
        """Return what the cache reads of an answer: a pod that was read, as far as it is decoded, or the version of what was written."""
        if outcome.object is None:
            return None
        if not isinstance(outcome.effect, Read):
            version = outcome.object.get("metadata", {}).get("resourceVersion", "")
            return {"metadata": {"resourceVersion": version}}
        found = self.clean(decoding.decode(outcome.object))
        kind = outcome.effect.kind
        if isinstance(found, decoding.Malformed):
            return {"apiVersion": kind.api_version, "kind": kind.name, "metadata": found.metadata, "spec": "unreadable"}
        return found

    def checksum(self, text: str) -> str:
        """Return what stands for a text."""
        return hashlib.blake2b(text.encode(errors="replace"), key=self._key, digest_size=12).hexdigest()
