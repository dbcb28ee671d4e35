"""What is served: resources by group, version and plural, built in and defined by custom resource definitions."""

from __future__ import annotations

import gzip
import importlib.resources
import re
from typing import TYPE_CHECKING, Any, Final

import msgspec

from pumice.api import kinds
from pumice.apiserver.schemas import nodes

if TYPE_CHECKING:
    from collections.abc import Iterator

Document = dict[str, Any]
VERBS: Final = (
    "delete",
    "deletecollection",
    "get",
    "list",
    "patch",
    "create",
    "update",
    "watch",
)  # in the order of a real server
_GROUPS_WITHOUT_GENERATION: Final = frozenset(
    {"coordination.k8s.io", "events.k8s.io", "rbac.authorization.k8s.io", "storage.k8s.io"}
)
_WITHOUT_GENERATION: Final = frozenset(
    ("", name)
    for name in (
        "ConfigMap", "Endpoints", "Event", "LimitRange", "Namespace", "Node", "PersistentVolume", "PersistentVolumeClaim",
        "ResourceQuota", "Secret", "Service", "ServiceAccount",
    )
) | {("scheduling.k8s.io", "PodGroup"), ("scheduling.k8s.io", "Workload")}  # fmt: skip
_LAST_GROUP: Final = kinds.NATIVE_POD_GROUP.group
_KNOWN: Final = {(kind.group, kind.name): kind for kind in reversed(kinds.KINDS)}


class Description(msgspec.Struct, frozen=True):
    """What Kubernetes publishes about its own kinds: how they are called, what they look like, and who may do what to them."""

    version: str
    resources: list[Document]
    schemas: dict[str, Document]
    messages: dict[str, dict[str, list[str]]] = {}
    access: list[Document] = []  # the roles and bindings that every cluster has


class Resource(msgspec.Struct, kw_only=True, eq=False):
    """One resource of one version; `kind` is what it is stored as, whichever version it came in."""

    kind: kinds.Kind
    group: str
    version: str
    kind_name: str
    plural: str
    singular: str
    list_kind: str
    namespaced: bool
    verbs: tuple[str, ...] = VERBS
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    subresources: dict[str, Document] = {}  # as discovery tells them
    node: nodes.Node
    schema: Document = {}  # of a custom resource
    schema_name: str = ""
    custom: bool = False
    deprecation: str = ""  # the warning that goes with every answer
    columns: list[Document] = []  # of a custom resource
    scale: Document | None = None
    selectable: tuple[str, ...] = ()

    @property
    def api_version(self) -> str:
        """The `apiVersion` that its objects state."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def has_status(self) -> bool:
        """Tell whether its status is written apart, through a subresource."""
        return "status" in self.subresources

    @property
    def path(self) -> str:
        """Where it is served."""
        return f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"


class Registry:
    """Everything that is served now; `generation` changes with it."""

    def __init__(self, described: Description) -> None:
        self.description = described
        self.generation = 0
        self.compiler = nodes.Compiler(described.schemas)
        self._served: dict[tuple[str, str, str], Resource] = {}
        self._kinds: dict[tuple[str, str], Resource] = {}
        gvks = _schema_names(described.schemas)
        for entry in described.resources:
            self.add(self._built_in(entry, gvks))

    def find(self, group: str, version: str, plural: str) -> Resource | None:
        """Give what is served under a name."""
        return self._served.get((group, version, plural))

    def of_kind(self, api_version: str, kind_name: str) -> Resource | None:
        """Give what serves a kind."""
        return self._kinds.get((api_version, kind_name))

    def __iter__(self) -> Iterator[Resource]:
        return iter(self._served.values())

    def add(self, resource: Resource) -> None:
        """Serve a resource."""
        self._served[resource.group, resource.version, resource.plural] = resource
        self._kinds[resource.api_version, resource.kind_name] = resource
        self.generation += 1

    def drop(self, group: str, plural: str) -> None:
        """Serve no version of a resource any more."""
        for key in [key for key in self._served if (key[0], key[2]) == (group, plural)]:
            gone = self._served.pop(key)
            self._kinds.pop((gone.api_version, gone.kind_name), None)
            self.generation += 1

    def groups(self) -> dict[str, list[str]]:
        """Give the versions of each group, the preferred one first.

        Of two kinds of one name kubectl takes that of the group that comes first: by `podgroups` most people mean Volcano's.
        """
        found: dict[str, list[str]] = {}
        for resource in self._served.values():
            versions = found.setdefault(resource.group, [])
            if resource.version not in versions:
                versions.append(resource.version)
        if (native := found.pop(_LAST_GROUP, None)) is not None:
            found[_LAST_GROUP] = native
        return {group: sorted(versions, key=priority, reverse=True) for group, versions in found.items()}

    def _built_in(self, entry: Document, gvks: dict[tuple[str, str, str], str]) -> Resource:
        name = entry["responseKind"]["kind"]
        group, version = entry["group"], entry["version"]
        schema_name = gvks[group, version, name]
        stored = "" if (group, name) == ("events.k8s.io", "Event") else group
        return Resource(
            kind=stored_kind(stored, version, name, entry["resource"], namespaced=entry["scope"] == "Namespaced"),
            group=group,
            version=version,
            kind_name=name,
            plural=entry["resource"],
            singular=entry["singularResource"],
            list_kind=f"{name}List",
            namespaced=entry["scope"] == "Namespaced",
            verbs=tuple(entry["verbs"]),
            short_names=tuple(entry.get("shortNames", ())),
            categories=tuple(entry.get("categories", ())),
            subresources={each["subresource"]: each for each in entry.get("subresources", ())},
            node=self.compiler.named(schema_name),
            schema_name=schema_name,
        )


def describe() -> Description:
    """Read the description that comes with the package."""
    data = importlib.resources.files("pumice.apiserver").joinpath("description.json.gz").read_bytes()
    return msgspec.json.decode(gzip.decompress(data), type=Description)


def stored_kind(group: str, version: str, name: str, plural: str, *, namespaced: bool) -> kinds.Kind:
    """Give the kind that objects are stored as: one that the project knows is that very one, for others look for it by identity."""
    known = _KNOWN.get((group, name))
    if known is not None and known.plural == plural and known.namespaced == namespaced:
        return known
    return kinds.Kind(name=name, group=group, version=version, plural=plural, namespaced=namespaced)


def has_generation(kind: kinds.Kind) -> bool:
    """Tell whether an API server counts the generations of a kind: of those whose authors state what they want."""
    return (kind.group, kind.name) not in _WITHOUT_GENERATION and kind.group not in _GROUPS_WITHOUT_GENERATION


def priority(version: str) -> tuple[int, int, int, str]:
    """Order versions as Kubernetes does: v2 before v1 before v1beta2 before v1beta1 before anything else."""
    match = re.fullmatch(r"v(\d+)(?:(alpha|beta)(\d+))?", version)
    if match is None:
        return (0, 0, 0, version)
    major, stage, minor = match.groups()
    return ({None: 3, "beta": 2, "alpha": 1}[stage], int(major), int(minor or 0), "")


def _schema_names(schemas: dict[str, Document]) -> dict[tuple[str, str, str], str]:
    return {
        (gvk["group"], gvk["version"], gvk["kind"]): name
        for name, schema in schemas.items()
        for gvk in schema.get("x-kubernetes-group-version-kind", ())
    }
