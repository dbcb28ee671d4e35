"""Custom resource definitions: a definition that is created is served at once, with its schemas, versions, columns and subresources."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from pumice.api import kinds, timestamp
from pumice.apiserver import statuses
from pumice.apiserver.resources import Resource, priority, stored_kind
from pumice.apiserver.schemas import bounded_patterns, cel, nodes, structural, validating
from pumice.sim import deletion, structure
from pumice.sim.identity import Key

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pumice.apiserver.resources import Registry
    from pumice.apiserver.statuses import Causes
    from pumice.sim.history import WatchEventType
    from pumice.sim.store import ObjectStore

Document = dict[str, Any]
GROUP: Final = "apiextensions.k8s.io"
DEFINITION: Final = kinds.Kind(
    name="CustomResourceDefinition", group=GROUP, version="v1", plural="customresourcedefinitions", namespaced=False
)
CLEANUP: Final = "customresourcecleanup.apiextensions.k8s.io"
_TYPES: Final = ("array", "boolean", "integer", "number", "object", "string")
_DEEPEST: Final = 100
_RESERVED: Final = frozenset({"apiVersion", "kind", "metadata"})


class Definitions:
    """Follows the definitions in the store and keeps the registry as they say."""

    def __init__(self, store: ObjectStore, registry: Registry, now: Callable[[], int]) -> None:
        self._store = store
        self._registry = registry
        self._now = now
        self._going: dict[str, None] = {}  # names of definitions that go once their objects are gone
        store.observe(self._seen)

    def serve_all(self) -> None:
        """Serve what an earlier run has left in the store."""
        for manifest in self._store.scan(DEFINITION):
            self._serve(manifest)
            if deletion.is_terminating(manifest):
                self._going[manifest["metadata"]["name"]] = None

    def complete(self, manifest: Document) -> None:
        """Fill in what the server says about a definition: accepted names, conditions, stored versions, the finalizer of its objects."""
        when = timestamp.format_timestamp(self._now() // 1_000_000 * 1_000_000)
        metadata, spec = manifest["metadata"], manifest.get("spec", {})
        if "deletionTimestamp" not in metadata and CLEANUP not in (metadata.get("finalizers") or ()):
            metadata["finalizers"] = [*(metadata.get("finalizers") or ()), CLEANUP]
        storage = [
            each.get("name") for each in spec.get("versions") or () if isinstance(each, dict) and each.get("storage")
        ]
        status = manifest.get("status") if isinstance(manifest.get("status"), dict) else {}
        status = dict(status or {})
        status["acceptedNames"] = structure.copied(spec.get("names") or {})
        status["storedVersions"] = list(dict.fromkeys([*(status.get("storedVersions") or ()), *storage]))
        if not status.get("conditions"):
            accepted = {"reason": "NoConflicts", "message": "no conflicts found"}
            established = {"reason": "InitialNamesAccepted", "message": "the initial names have been accepted"}
            stamp = {"status": "True", "lastTransitionTime": when}
            status["conditions"] = [
                {"type": "NamesAccepted", **stamp, **accepted},
                {"type": "Established", **stamp, **established},
            ]
        manifest["status"] = status

    def judge(self, manifest: Document, old: Mapping[str, Any] | None) -> None:
        """Refuse a definition that cannot be served, with the field that is wrong."""
        found = _names(manifest) + _versions(manifest)
        spec = manifest["spec"]
        if not found:
            for index, version in enumerate(spec["versions"]):
                found += _schema_problems(version, f"spec.versions[{index}].schema.openAPIV3Schema")
        if old is not None and not found:
            before = old["spec"]
            for path in (("scope",), ("names", "kind"), ("names", "plural"), ("group",)):
                held = structure.mapping(spec, *path[:-1]).get(path[-1])
                if structure.mapping(before, *path[:-1]).get(path[-1]) != held:
                    found.append(
                        ("FieldValueInvalid", f"spec.{'.'.join(path)}", f'Invalid value: "{held}": field is immutable')
                    )
        if found:
            raise statuses.invalid("CustomResourceDefinition", GROUP, manifest["metadata"]["name"], found)

    # ---- following

    def _seen(self, key: Key, event_type: WatchEventType, manifest: Mapping[str, Any]) -> None:
        if key.kind != DEFINITION:
            return
        if deletion.is_terminating(manifest):
            self._going[key.name] = None
        if event_type == "DELETED":
            spec = manifest["spec"]
            self._registry.drop(spec["group"], spec["names"]["plural"])
        else:
            self._serve(manifest)

    def _serve(self, manifest: Mapping[str, Any]) -> None:
        spec = manifest["spec"]
        self._registry.drop(spec["group"], spec["names"]["plural"])
        for version in spec["versions"]:
            if version.get("served"):
                self._registry.add(resource_of(spec, version))

    def clean(self) -> int:
        """Delete the objects of definitions that are going, and let those go that have none left; gives how much was done."""
        done = 0
        for name in list(self._going):
            manifest = self._store.find(Key(DEFINITION, "", name))
            if manifest is None:
                del self._going[name]
                continue
            if not deletion.is_terminating(manifest) or CLEANUP not in (manifest["metadata"].get("finalizers") or ()):
                continue
            kind = kind_of(manifest["spec"])
            left = list(self._store.scan(kind))
            for each in left:
                if not deletion.is_terminating(each):
                    self._store.delete(Key(kind, each["metadata"].get("namespace", ""), each["metadata"]["name"]))
                    done += 1
            if not list(self._store.scan(kind)):
                finalizers = [each for each in manifest["metadata"]["finalizers"] if each != CLEANUP]
                metadata = {**manifest["metadata"], "finalizers": finalizers}
                self._store.overwrite(
                    Key(DEFINITION, "", manifest["metadata"]["name"]), {**manifest, "metadata": metadata}
                )
                done += 1
        return done


def kind_of(spec: Mapping[str, Any]) -> kinds.Kind:
    """Give the kind that a definition's objects are stored as."""
    names = spec["names"]
    storage = next(each["name"] for each in spec["versions"] if each.get("storage"))
    return stored_kind(spec["group"], storage, names["kind"], names["plural"], namespaced=spec["scope"] == "Namespaced")


def resource_of(spec: Mapping[str, Any], version: Mapping[str, Any]) -> Resource:
    """Give what a definition says about one version of its kind."""
    names = spec["names"]
    schema = structure.mapping(version, "schema").get("openAPIV3Schema") or {
        "type": "object",
        "x-kubernetes-preserve-unknown-fields": True,
    }
    stated = structure.mapping(version, "subresources")
    subresources: dict[str, Document] = {}
    own = {"group": spec["group"], "version": version["name"], "kind": names["kind"]}
    if "status" in stated:
        subresources["status"] = {"subresource": "status", "responseKind": own, "verbs": ["get", "patch", "update"]}
    if "scale" in stated:
        scale = {"group": "autoscaling", "version": "v1", "kind": "Scale"}
        subresources["scale"] = {"subresource": "scale", "responseKind": scale, "verbs": ["get", "patch", "update"]}
    warning = f"{spec['group']}/{version['name']} {names['kind']} is deprecated{_successor(spec, version)}"
    return Resource(
        kind=kind_of(spec),
        group=spec["group"],
        version=version["name"],
        kind_name=names["kind"],
        plural=names["plural"],
        singular=names.get("singular") or names["kind"].lower(),
        list_kind=names.get("listKind") or f"{names['kind']}List",
        namespaced=spec["scope"] == "Namespaced",
        short_names=tuple(names.get("shortNames") or ()),
        categories=tuple(names.get("categories") or ()),
        subresources=subresources,
        node=nodes.Compiler({}).compile(_own_fields(schema)),
        schema=schema,
        custom=True,
        deprecation=(version.get("deprecationWarning") or warning) if version.get("deprecated") else "",
        columns=list(version.get("additionalPrinterColumns") or ()),
        scale=dict(stated["scale"]) if "scale" in stated else None,
        selectable=tuple(each["jsonPath"].lstrip(".") for each in version.get("selectableFields") or ()),
    )


def _own_fields(schema: Document) -> Document:
    """Leave out of a schema what every object has: the server itself says what may stand there."""
    properties = {name: each for name, each in (schema.get("properties") or {}).items() if name not in _RESERVED}
    required = [name for name in schema.get("required") or () if name not in _RESERVED]
    return {**schema, "properties": properties, "required": required}


# ---- what makes a definition invalid


def _names(manifest: Document) -> Causes:
    spec, name = manifest["spec"], manifest["metadata"]["name"]
    names = structure.mapping(spec, "names")
    group, plural = spec.get("group", ""), names.get("plural", "")
    found: Causes = []
    if name != f"{plural}.{group}":
        found.append(
            ("FieldValueInvalid", "metadata.name", f'Invalid value: "{name}": must be spec.names.plural+"."+spec.group')
        )
    if "." not in str(group):
        found.append(
            ("FieldValueInvalid", "spec.group", f'Invalid value: "{group}": should be a domain with at least one dot')
        )
    if spec.get("scope") not in ("Cluster", "Namespaced"):
        text = f'Unsupported value: "{spec.get("scope")}": supported values: "Cluster", "Namespaced"'
        found.append(("FieldValueNotSupported", "spec.scope", text))
    strategy = structure.mapping(spec, "conversion").get("strategy")
    served = [each for each in spec.get("versions") or () if isinstance(each, dict) and each.get("served")]
    if strategy == "Webhook" and len(served) > 1:
        text = f'Invalid value: "Webhook": conversion webhooks are not called here, and {len(served)} versions are served; serve one, or use None for versions that differ in schema alone'
        found.append(("FieldValueInvalid", "spec.conversion.strategy", text))
    return found


def _versions(manifest: Document) -> Causes:
    versions = manifest["spec"].get("versions") or []
    found: Causes = []
    seen: set[str] = set()
    for index, version in enumerate(versions):
        name = version.get("name", "")
        if name in seen:
            found.append(("FieldValueDuplicate", f"spec.versions[{index}].name", f'Duplicate value: "{name}"'))
        seen.add(name)
        if not re.fullmatch(r"[a-z]([-a-z0-9]*[a-z0-9])?", name):
            found.append(
                (
                    "FieldValueInvalid",
                    f"spec.versions[{index}].name",
                    f'Invalid value: "{name}": it must be a DNS-1035 label such as v1',
                )
            )
        if not structure.mapping(version, "schema").get("openAPIV3Schema"):
            found.append(
                (
                    "FieldValueRequired",
                    f"spec.versions[{index}].schema.openAPIV3Schema",
                    "Required value: schemas are required",
                )
            )
    if sum(bool(each.get("storage")) for each in versions) != 1:
        text = "Invalid value: must have exactly one version marked as storage version"
        found.append(("FieldValueInvalid", "spec.versions", text))
    return found


def _schema_problems(version: Document, path: str) -> Causes:
    schema = version["schema"]["openAPIV3Schema"]
    found: Causes = []
    if schema.get("type") != "object":
        found.append(
            ("FieldValueInvalid", f"{path}.type", f'Invalid value: "{schema.get("type")}": must be object at the root')
        )
    _walk(schema, path, found, 0)
    return found[:20]


def _walk(schema: Any, path: str, found: Causes, depth: int) -> None:
    """Find what is not structural in a schema, and what contradicts itself."""
    if not isinstance(schema, dict):
        found.append(("FieldValueInvalid", path, f"Invalid value: {schema!r}: a schema must be an object"))
        return
    if depth > _DEEPEST:
        found.append(
            ("FieldValueInvalid", path, f"Invalid value: the schema is nested more than {_DEEPEST} levels deep")
        )
        return
    found += _own_problems(schema, path)
    for name, each in (schema.get("properties") or {}).items():
        _walk(each, f"{path}.properties[{name}]", found, depth + 1)
    if isinstance(schema.get("additionalProperties"), dict):
        _walk(schema["additionalProperties"], f"{path}.additionalProperties", found, depth + 1)
    if isinstance(schema.get("items"), dict):
        _walk(schema["items"], f"{path}.items", found, depth + 1)


def _own_problems(schema: Document, path: str) -> Causes:
    found: Causes = []
    stated = schema.get("type")
    free = (
        schema.get("x-kubernetes-int-or-string") is True or schema.get("x-kubernetes-preserve-unknown-fields") is True
    )
    if stated is None and not free and "$ref" not in schema:
        found.append(
            ("FieldValueRequired", f"{path}.type", "Required value: must not be empty for specified object fields")
        )
    elif stated is not None and stated not in _TYPES:
        supported = ", ".join(f'"{each}"' for each in _TYPES)
        found.append(
            ("FieldValueNotSupported", f"{path}.type", f'Unsupported value: "{stated}": supported values: {supported}')
        )
    if schema.get("properties") and schema.get("additionalProperties") not in (None, False):
        text = "Forbidden: additionalProperties and properties are mutual exclusive"
        found.append(("FieldValueForbidden", f"{path}.additionalProperties", text))
    if stated == "array" and not isinstance(schema.get("items"), dict):
        found.append(("FieldValueRequired", f"{path}.items", "Required value: must be specified"))
    for low, high in (
        ("minimum", "maximum"),
        ("minLength", "maxLength"),
        ("minItems", "maxItems"),
        ("minProperties", "maxProperties"),
    ):
        if low in schema and high in schema and schema[low] > schema[high]:
            found.append(
                (
                    "FieldValueInvalid",
                    f"{path}.{low}",
                    f"Invalid value: {schema[low]}: it is above {high} {schema[high]}; no value could be valid",
                )
            )
    if schema.get("x-kubernetes-list-type") == "map" and not schema.get("x-kubernetes-list-map-keys"):
        found.append(
            (
                "FieldValueRequired",
                f"{path}.x-kubernetes-list-map-keys",
                "Required value: must not be empty if x-kubernetes-list-type is map",
            )
        )
    found += structural.problems(schema, path, is_metadata=path.endswith("openAPIV3Schema.properties[metadata]"))
    found += _pattern_problems(schema, path)
    found += _rule_problems(schema, path)
    return found or _default_problems(schema, path)


def _successor(spec: Mapping[str, Any], version: Mapping[str, Any]) -> str:
    """Say which version to use in place of one that is deprecated."""
    newer = [
        each["name"]
        for each in spec["versions"]
        if each.get("served") and not each.get("deprecated") and priority(each["name"]) > priority(version["name"])
    ]
    return f"; use {spec['group']}/{max(newer, key=priority)} {spec['names']['kind']}" if newer else ""


def _pattern_problems(schema: Document, path: str) -> Causes:
    if not isinstance(schema.get("pattern"), str):
        return []
    try:
        bounded_patterns.compiled(schema["pattern"])
    except re.error as error:
        return [
            (
                "FieldValueInvalid",
                f"{path}.pattern",
                f'Invalid value: "{schema["pattern"]}": must be a valid regular expression, but isn\'t: {error}',
            )
        ]
    return []


def _rule_problems(schema: Document, path: str) -> Causes:
    found: Causes = []
    for index, rule in enumerate(schema.get("x-kubernetes-validations") or ()):
        for field in ("rule", "messageExpression"):
            text = rule.get(field)
            if not text:
                continue
            problem = _rule_problem(text, schema, path)
            if problem:
                where = f"{path}.x-kubernetes-validations[{index}].{field}"
                found.append(("FieldValueInvalid", where, f'Invalid value: "{text}": compilation failed: {problem}'))
    return found


def _rule_problem(text: str, schema: Document, path: str) -> str:
    """Say why a rule cannot be evaluated, or nothing."""
    try:
        cel.parse(text)
    except cel.CelError as error:
        return f"{error}; take the rule out to use the definition here"
    whole = path.endswith("openAPIV3Schema")  # every object has these, whether or not its schema says so
    known = {**_OWN, **(schema.get("properties") or {})} if whole else schema.get("properties")
    missing = cel.undefined(text, {**schema, "properties": known} if known is not None else schema)
    return f"undefined field '{missing}'" if missing else ""


_OWN: Final[Document] = {"apiVersion": {}, "kind": {}, "metadata": {}}


def _default_problems(schema: Document, path: str) -> Causes:
    if "default" not in schema or not schema.get("type"):
        return []
    node = nodes.Compiler({}).compile(
        {key: value for key, value in schema.items() if key != "x-kubernetes-validations"}
    )
    return [
        ("FieldValueInvalid", f"{path}.default", message)
        for _, _, message in validating.causes(schema["default"], node)[:1]
    ]
