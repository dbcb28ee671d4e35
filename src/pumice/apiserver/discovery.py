"""Discovery: which groups, versions and resources are served, aggregated in one document or one by one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pumice.apiserver.resources import Registry, Resource

Document = dict[str, Any]
AGGREGATED: Final = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


def wants_aggregated(accept: str) -> bool:
    """Tell whether a client understands the aggregated form."""
    return "as=APIGroupDiscoveryList" in accept and "v=v2" in accept.replace("v=v2beta1", "")


def aggregated(registry: Registry, *, core: bool) -> Document:
    """Give everything below /api or below /apis in one document."""
    items = [
        _group(registry, group, versions) for group, versions in registry.groups().items() if (group == "") is core
    ]
    return {"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items}


def _group(registry: Registry, group: str, versions: list[str]) -> Document:
    told = [
        {
            "version": version,
            "resources": [_aggregated(each) for each in registry if (each.group, each.version) == (group, version)],
            "freshness": "Current",
        }
        for version in versions
    ]
    return {
        "metadata": {"name": group, "creationTimestamp": None} if group else {"creationTimestamp": None},
        "versions": told,
    }


def _aggregated(resource: Resource) -> Document:
    kind = {"group": "", "version": "", "kind": resource.kind_name}
    if resource.custom:
        kind = {"group": resource.group, "version": resource.version, "kind": resource.kind_name}
    told: Document = {
        "resource": resource.plural,
        "responseKind": kind,
        "scope": "Namespaced" if resource.namespaced else "Cluster",
        "singularResource": resource.singular,
        "verbs": list(resource.verbs),
    }
    if resource.short_names:
        told["shortNames"] = list(resource.short_names)
    if resource.categories:
        told["categories"] = list(resource.categories)
    if resource.subresources:
        told["subresources"] = list(resource.subresources.values())
    return told


def versions() -> Document:
    """Give the versions of the core group."""
    return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}


def groups(registry: Registry) -> Document:
    """Give all groups but the core one."""
    listed = [group(registry, name) for name in registry.groups() if name]
    return {
        "kind": "APIGroupList",
        "apiVersion": "v1",
        "groups": [{k: v for k, v in each.items() if k not in ("kind", "apiVersion")} for each in listed if each],
    }


def group(registry: Registry, name: str) -> Document | None:
    """Give one group."""
    found = registry.groups().get(name)
    if not found:
        return None
    listed = [{"groupVersion": f"{name}/{version}", "version": version} for version in found]
    return {"kind": "APIGroup", "apiVersion": "v1", "name": name, "versions": listed, "preferredVersion": listed[0]}


def resources(registry: Registry, group_name: str, version: str) -> Document | None:
    """Give the resources of a version, each followed by its subresources."""
    found = [each for each in registry if (each.group, each.version) == (group_name, version)]
    if not found:
        return None
    listed: list[Document] = []
    for each in found:
        listed.append(_plain(each))
        listed += [_plain_subresource(each, name, told) for name, told in each.subresources.items()]
    version_name = f"{group_name}/{version}" if group_name else version
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": version_name, "resources": listed}


def _plain(resource: Resource) -> Document:
    told: Document = {
        "name": resource.plural,
        "singularName": resource.singular,
        "namespaced": resource.namespaced,
        "kind": resource.kind_name,
        "verbs": list(resource.verbs),
    }
    if resource.short_names:
        told["shortNames"] = list(resource.short_names)
    if resource.categories:
        told["categories"] = list(resource.categories)
    return told


def _plain_subresource(resource: Resource, name: str, known: Document) -> Document:
    told: Document = {
        "name": f"{resource.plural}/{name}",
        "singularName": "",
        "namespaced": resource.namespaced,
        "kind": known["responseKind"]["kind"],
        "verbs": known["verbs"],
    }
    kind = known["responseKind"]
    if kind.get("version") and (kind["group"], kind["version"]) != (resource.group, resource.version):
        told |= {"group": kind["group"], "version": kind["version"]}
    return told
