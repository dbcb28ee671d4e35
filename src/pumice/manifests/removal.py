"""What is ours of an installation, and what stays when that is deleted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from pumice.admission import rules
from pumice.manifests import installation, objects, resources
from pumice.manifests.release import Page

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pumice.manifests.release import Release

Manifest = dict[str, Any]

# What Volcano's own installation has under the names that we take in its place: ours were written over it.
_VOLCANOS: Final = ("Deployment", "Service", "ConfigMap", "ServiceAccount", "ClusterRole", "ClusterRoleBinding")


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """What is to go besides the objects of the parts."""

    configuration: bool = True
    crds: bool = False
    kube_batch_crds: bool = False
    namespace: bool = False


def objects_of(release: Release, wanted: Wanted) -> list[Manifest]:
    """Name every object that goes, last installed first; nothing but what identifies it."""
    # Webhooks of every path: one that is forgotten would have nobody to answer it, and refuse what it is asked about. The page, served or not.
    whole = msgspec.structs.replace(release, admission_paths=tuple(rules.BY_PATH), page=Page())
    own = [each for each in reversed(installation.manifests(whole)) if not _stays(each, release, wanted)]
    groups = (resources.CURRENT if wanted.crds else ()) + (resources.KUBE_BATCH if wanted.kube_batch_crds else ())
    definitions = [resources.definition(each) for each in groups]
    home = [objects.namespace(release)] if wanted.namespace else []
    return [_reference(each) for each in (*own, *definitions, *home)]


def left(release: Release, wanted: Wanted) -> Iterator[str]:
    """Say what stays, and how it would go."""
    for each in installation.manifests(release):
        if _stays(each, release, wanted):
            whose = "Volcano's; install Volcano again to have its own" if release.in_place else "as told"
            yield f"{each['kind']} {each['metadata']['name']}, {whose}"
    if "admission" in release.parts and not wanted.namespace:
        yield f"Secret {release.namespace}/{release.admission_secret}, the certificate of the webhooks"
    if not wanted.namespace:
        yield f"Namespace {release.namespace} and what else is in it; --namespace-too deletes it"
        leases = [release.lease_name, *([release.controllers_lease] if release.controllers != "none" else [])]
        yield from (f"Lease {release.namespace}/{name}, a note of who led" for name in leases)
    if not wanted.crds:
        yield "the custom resource definitions with every PodGroup, Queue and Job; --crds deletes them"
    yield "pods: those that run go on running, those that wait, wait"


def _stays(manifest: Manifest, release: Release, wanted: Wanted) -> bool:
    kept = (_VOLCANOS if release.in_place else ()) + (() if wanted.configuration else ("ConfigMap",))
    return manifest["kind"] in kept and manifest["metadata"]["name"] != release.page_service  # Volcano has no page


def _reference(manifest: Manifest) -> Manifest:
    metadata = {field: value for field, value in manifest["metadata"].items() if field in ("name", "namespace")}
    return {"apiVersion": manifest["apiVersion"], "kind": manifest["kind"], "metadata": metadata}
