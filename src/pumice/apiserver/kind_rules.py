"""What an object of a kind has to be, whoever writes it: what is filled in, and what is refused with every field that is wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pumice.api import kinds
from pumice.apiserver import statuses
from pumice.apiserver.built_in import defaults, device_validity, validity
from pumice.apiserver.schemas import conforming, validating
from pumice.sim import structure
from pumice.sim.identity import Key

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pumice.apiserver.resources import Resource
    from pumice.sim.store import ObjectStore

Document = dict[str, Any]
_NAMING: Final = ("name", "generateName")  # all that a schema may know of metadata


class KindRules:
    """Fills in and judges objects by their schemas and the rules of Kubernetes; `judges` and `completes` have more of both, by group and kind."""

    def __init__(self, store: ObjectStore) -> None:
        self._store = store
        self.judges: dict[tuple[str, str], Callable[[Document, Mapping[str, Any] | None], None]] = {}
        self.completes: dict[tuple[str, str], Callable[[Document], None]] = {}

    def default(self, new: Document, resource: Resource) -> None:
        """Fill in what a kind's schema says of fields that are not stated; whoever writes the object owns them."""
        if not resource.custom:
            defaults.fill(new, resource.group, resource.kind_name)
        elif "metadata" in new:
            conforming.fill_defaults(new, resource.node)

    def finish(self, new: Document, resource: Resource) -> None:
        """Fill in what the server says about an object; nobody owns that."""
        complete = self.completes.get((resource.group, resource.kind_name))
        if complete is not None:
            complete(new)

    def judge(self, new: Document, resource: Resource, old: Mapping[str, Any] | None, subresource: str = "") -> None:
        """Refuse an object that is not valid, or may not become so through a subresource, with every field that is wrong."""
        found = validity.metadata(new, resource.kind_name)
        found += owner_problems(new)
        if resource.custom:
            named = {k: v for k, v in new["metadata"].items() if k in _NAMING}
            found += validating.causes({**new, "metadata": named}, resource.node, old)
        else:
            required = validity.required(new, resource.node)
            told = {field for _, field, _ in required}
            special = validity.built_in(new, resource.group, resource.kind_name, old, subresource)
            found += required + [cause for cause in special if cause[1] not in told]
        if not found and new["metadata"].get("uid") and new["metadata"].get("ownerReferences"):
            found += self._cycle(new)
        if not found and old is None and resource.group == device_validity.GROUP and resource.namespaced:
            namespace = self._store.find(Key(kinds.NAMESPACE, "", new["metadata"].get("namespace", "")))
            found += device_validity.admin_access(new, structure.mapping(namespace, "metadata", "labels"))
        if found:
            raise statuses.invalid(resource.kind_name, resource.group, new["metadata"].get("name", ""), found)
        judge = self.judges.get((resource.group, resource.kind_name))
        if judge is not None:
            judge(new, old)

    def _cycle(self, new: Mapping[str, Any]) -> list[tuple[str, str, str]]:
        """Find out whether an object would own itself through others: nothing of such a circle could ever be collected in order."""
        own, waiting, seen = new["metadata"]["uid"], [new], {new["metadata"]["uid"]}
        while waiting:
            for uid in owner_uids(waiting.pop()):
                if uid == own:
                    text = f"Invalid value: {own!r}: the object would own itself through {len(seen) - 1} others; a cycle of owners is refused"
                    return [("FieldValueInvalid", "metadata.ownerReferences", text)]
                key = self._store.owner(uid)
                if key is not None and uid not in seen:
                    seen.add(uid)
                    waiting.append(dict(self._store.peek(key)))
        return []


def owner_problems(new: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """Refuse references to owners that name nothing, that name the object itself, or that are two controllers."""
    found = []
    references = new["metadata"].get("ownerReferences") or ()
    controllers = 0
    for index, reference in enumerate(references):
        where = f"metadata.ownerReferences[{index}]"
        if not isinstance(reference, dict):
            return [("FieldValueInvalid", where, f"Invalid value: {reference!r}: must be an object")]
        found += [
            ("FieldValueInvalid", f"{where}.{field}", f'Invalid value: "": {field} must not be empty')
            for field in ("apiVersion", "kind", "name", "uid")
            if not reference.get(field)
        ]
        if reference.get("uid") and reference.get("uid") == new["metadata"].get("uid"):
            found.append(
                (
                    "FieldValueInvalid",
                    f"{where}.uid",
                    f'Invalid value: "{reference["uid"]}": an object cannot own itself',
                )
            )
        controllers += reference.get("controller") is True
    if controllers > 1:
        found.append(
            (
                "FieldValueInvalid",
                "metadata.ownerReferences",
                "Invalid value: Only one reference can have Controller set to true",
            )
        )
    return found


def owner_uids(manifest: Mapping[str, Any]) -> list[str]:
    """Give the uids of an object's owners."""
    references = manifest["metadata"].get("ownerReferences")
    return (
        [each["uid"] for each in references if isinstance(each, dict) and each.get("uid")]
        if isinstance(references, list)
        else []
    )
