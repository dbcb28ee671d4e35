"""What an API server would refuse of a manifest before anybody's rules are asked: unknown fields, wrong types, missing values."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from pumice.admission.patches import copied
from pumice.admission.remarks import Remark
from pumice.api import documents, kinds
from pumice.apiserver import definitions
from pumice.apiserver.built_in import defaults, validity
from pumice.apiserver.resources import Registry, describe
from pumice.apiserver.schemas import conforming, validating
from pumice.manifests import resources as custom

if TYPE_CHECKING:
    from pumice.admission.remarks import Path
    from pumice.apiserver.resources import Resource
    from pumice.apiserver.schemas.nodes import Node
    from pumice.apiserver.statuses import Causes

Document = dict[str, Any]
_INDEX: Final = re.compile(r"\[(\d+)\]")
_STATED: Final = re.compile(r"^Invalid value: .*?: ")


class Schemas:
    """The kinds that are known: those of Kubernetes, and Volcano's."""

    def __init__(self) -> None:
        self._registry = Registry(describe())
        for resource in (*custom.CURRENT, *custom.KUBE_BATCH):
            definition = custom.definition(resource)
            for version in definition["spec"]["versions"]:
                self._registry.add(definitions.resource_of(definition["spec"], version))
        template = self._registry.of_kind("apps/v1", "Deployment")
        inner = template.node.child("spec") if template is not None else None
        self._template = inner.child("template") if inner is not None else None

    def find(self, manifest: Document) -> Resource | None:
        """Find the kind of a manifest."""
        return self._registry.of_kind(str(manifest.get("apiVersion")), str(manifest.get("kind")))

    def near(self, manifest: Document) -> str:
        """Name the API version under which a kind of that name is known, if there is one."""
        name = manifest.get("kind")
        group = str(manifest.get("apiVersion")).rpartition("/")[0]
        known = [each for each in kinds.KINDS if each.name == name]
        same = [each for each in known if each.group == group]
        return (same or known)[0].api_version if known else ""

    def check(self, manifest: Document, resource: Resource) -> list[Remark]:
        """Give what is wrong with a manifest by its schema."""
        new = copied(manifest)
        metadata = new.get("metadata")
        if metadata is None:
            metadata = new["metadata"] = {}
        if not isinstance(metadata, dict):
            return [Remark(("metadata",), f"must be an object, not {documents.described(metadata)}")]
        if not metadata.get("name") and metadata.get("generateName"):
            metadata["name"] = f"{metadata['generateName']}xxxxx"
        return self._custom(new, manifest, resource) if resource.custom else self._built_in(new, manifest, resource)

    def _custom(self, new: Document, manifest: Document, resource: Resource) -> list[Remark]:
        found = [_unknown(path, manifest, resource.node) for path in conforming.prune(new, resource.node, root=True)]
        conforming.fill_defaults(new, resource.node)
        causes = _metadata(new, resource.kind_name)
        causes += validating.causes({key: value for key, value in new.items() if key != "metadata"}, resource.node)
        found += [_remark(cause, manifest) for cause in causes]
        return found + self._templates(manifest)

    def _built_in(self, new: Document, manifest: Document, resource: Resource) -> list[Remark]:
        conforming.drop_nulls(new)
        new.setdefault("metadata", {})
        wrong = conforming.mistyped(new, resource.node)
        if wrong:
            return [_mistyped(wrong, manifest)]
        found = [_unknown(path, manifest, resource.node) for path in conforming.prune(new, resource.node, root=True)]
        defaults.fill(new, resource.group, resource.kind_name)
        causes = _metadata(new, resource.kind_name) + validity.required(new, resource.node)
        told = {field for _, field, _ in causes}
        special = validity.built_in(new, resource.group, resource.kind_name, None)
        return found + [_remark(each, manifest) for each in causes + [each for each in special if each[1] not in told]]

    def _templates(self, manifest: Document) -> list[Remark]:
        """Look into templates of pods, of which a custom resource's schema says nothing: what is unknown there is lost without a word."""
        if self._template is None:
            return []
        found = []
        for path, template in _pod_templates(manifest, ()):
            wrong = conforming.mistyped(template, self._template)
            if wrong:
                found.append(_moved(_mistyped(wrong, template), path))
            for field in conforming.prune(copied(template), self._template):
                unknown = _unknown(field, template, self._template, ", and is dropped from the pods")
                found.append(Remark((*path, *unknown.path), unknown.message, refuses=False))
        return found


def _metadata(new: Document, kind: str) -> Causes:
    labels, annotations = (new["metadata"].get(field) for field in ("labels", "annotations"))
    for field, value in (("labels", labels), ("annotations", annotations)):
        if value is not None and not isinstance(value, dict):
            return [("FieldValueInvalid", f"metadata.{field}", "must be a map of strings")]
        for key, text in (value or {}).items():
            if not isinstance(text, str):
                where = f"metadata.{field}.{key}"
                return [
                    (
                        "FieldValueInvalid",
                        where,
                        f"must be a string, not {documents.described(text)}; put quotes around it",
                    )
                ]
    return validity.metadata(new, kind)


def _pod_templates(value: Any, path: Path) -> list[tuple[Path, Document]]:
    """Find the templates in jobs, wherever jobs are described."""
    if isinstance(value, dict):
        found = []
        for key, item in value.items():
            if key == "tasks" and isinstance(item, list):
                for index, task in enumerate(item):
                    template = task.get("template") if isinstance(task, dict) else None
                    if isinstance(template, dict):
                        found.append(((*path, key, index, "template"), template))
            elif key in ("spec", "jobTemplate"):
                found += _pod_templates(item, (*path, key))
        return found
    return []


def _remark(cause: tuple[str, str, str], manifest: Document) -> Remark:
    _, field, message = cause
    return Remark(located(field, manifest), message[:1].lower() + message[1:])


def _mistyped(wrong: tuple[str, str, str], manifest: Document) -> Remark:
    field, found, wanted = wrong
    article = "an" if wanted[0] in "aeio" else "a"
    hint = "; put quotes around it" if wanted == "string" and found in ("number", "boolean", "integer") else ""
    return Remark(
        located(field, manifest), f"must be {article} {wanted}, not {'an' if found[0] in 'aeio' else 'a'} {found}{hint}"
    )


def _unknown(field: str, manifest: Document, node: Node, lost: str = "") -> Remark:
    path = located(field, manifest)
    above: Node | None = node
    for step in path[:-1]:
        if above is not None:
            above = above.items if isinstance(step, int) else above.child(step)
    near = documents.nearest(str(path[-1]), above.properties) if above is not None else None
    return Remark(path, f"is no field that is known here{lost}{f'; did you mean {near}?' if near else ''}")


def _moved(remark: Remark, path: Path) -> Remark:
    return Remark((*path, *remark.path), remark.message, remark.refuses)


def located(field: str, data: Any) -> Path:
    """Find the path that a field such as `spec.tasks[0].name` means in a document; keys may hold dots."""
    path: list[str | int] = []
    while field:
        index = _INDEX.match(field)
        if index:
            path.append(int(index[1]))
            data = data[int(index[1])] if isinstance(data, list) and int(index[1]) < len(data) else None
            field = field[index.end() :]
            continue
        field = field.removeprefix(".")
        key = _longest_key(field, data)
        path.append(key)
        data = data.get(key) if isinstance(data, dict) else None
        field = field[len(key) :]
        if key and field.startswith("]"):
            field = field[1:]
    return tuple(path)


def _longest_key(field: str, data: Any) -> str:
    field = field.removeprefix("[")
    known = [key for key in data if isinstance(key, str) and field.startswith(key)] if isinstance(data, dict) else []
    fitting = [key for key in known if field[len(key) : len(key) + 1] in ("", ".", "[", "]")]
    return max(fitting, key=len) if fitting else re.split(r"[.\[\]]", field, maxsplit=1)[0] or field
