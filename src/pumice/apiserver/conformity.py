"""What a body says, as an object of its kind: what it states must be of that kind, unknown fields are dropped, values have their types."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pumice.apiserver import statuses
from pumice.apiserver.schemas import conforming

if TYPE_CHECKING:
    from pumice.apiserver.requests import Options
    from pumice.apiserver.resources import Resource

Document = dict[str, Any]
_OMITTED_IF_EMPTY: Final = ("annotations", "finalizers", "labels", "ownerReferences")


def decoded(
    body: Any, resource: Resource, options: Options, warnings: list[str], *, defaulted: bool = True
) -> Document:
    """Give a body as an object of its kind: what it states must be of that kind, unknown fields are dropped, values have their types."""
    if not isinstance(body, dict):
        raise statuses.bad_request(
            f"the body is no {resource.kind_name}: it is {type(body).__name__}, and an object is wanted"
        )
    _check_kind(body, resource)
    new = body
    metadata = new.get("metadata")
    if metadata is None:
        metadata = new["metadata"] = {}
    if not isinstance(metadata, dict):
        raise statuses.bad_request(
            f"{resource.kind_name}: metadata is {type(metadata).__name__}, and an object is wanted"
        )
    if not resource.custom:
        conforming.drop_nulls(new)
        new.setdefault("metadata", {})
    _check_types(new, resource)
    dropped = conforming.prune(new, resource.node, root=True)
    _tell_unknown(dropped, resource, options, warnings)
    if resource.custom:
        conforming.drop_nulls(new["metadata"])
        if defaulted:
            conforming.fill_defaults(new, resource.node)
    _drop_empty(new["metadata"])
    return new


def plain(body: Document, resource: Resource) -> Document:
    """Give a body whose fields are known to be of the right types."""
    body.setdefault("apiVersion", resource.api_version)
    body.setdefault("kind", resource.kind_name)
    _drop_empty(body["metadata"])
    return body


def _drop_empty(metadata: Document) -> None:
    """Leave out what holds nothing, as the type does that a real server reads metadata into."""
    for name in _OMITTED_IF_EMPTY:
        if name in metadata and not metadata[name]:
            del metadata[name]


def _check_kind(body: Document, resource: Resource) -> None:
    stated = (body.setdefault("apiVersion", resource.api_version), body.setdefault("kind", resource.kind_name))
    if stated != (resource.api_version, resource.kind_name):
        message = f"the API version in the data ({stated[0]}) does not match the expected API version ({resource.api_version})"
        if stated[0] == resource.api_version:
            message = f"the kind in the data ({stated[1]}) does not match the expected kind ({resource.kind_name})"
        raise statuses.bad_request(message)


def _check_types(new: Document, resource: Resource) -> None:
    if resource.custom:
        return  # its validation says so, field by field
    wrong = conforming.mistyped(new, resource.node)
    if wrong:
        path, found, wanted = wrong
        where = f'{resource.kind_name} in version "{resource.version}" cannot be handled as a {resource.kind_name}'
        raise statuses.bad_request(f"{where}: json: cannot unmarshal {found} into field {path} of type {wanted}")


def _tell_unknown(dropped: list[str], resource: Resource, options: Options, warnings: list[str]) -> None:
    if not dropped or options.validation == "Ignore":
        return
    listed = [f'unknown field "{path}"' for path in dropped[:50]]
    if options.validation == "Strict":
        where = f'{resource.kind_name} in version "{resource.version}" cannot be handled as a {resource.kind_name}: '
        raise statuses.bad_request(f"{where}strict decoding error: {', '.join(listed)}")
    warnings += listed
