"""Where a webhook is: at an address, or behind a Service; of those, what can be reached without a cluster's network."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from pumice.api import kinds
from pumice.sim import structure
from pumice.sim.identity import Key

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pumice.sim.store import ObjectStore

ENDPOINTS: Final = kinds.Kind(name="Endpoints", group="", version="v1", plural="endpoints", namespaced=True)
SLICE: Final = kinds.Kind(
    name="EndpointSlice", group="discovery.k8s.io", version="v1", plural="endpointslices", namespaced=True
)
_HTTPS: Final = 443


class PlaceError(ValueError):
    """Why nobody can be reached there."""


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """Where to call: `url` as messages name it, `address` as it is found, and the name that the certificate must have."""

    url: str
    address: str
    server_name: str


def of_client(client: Mapping[str, Any], store: ObjectStore) -> Place:
    """Find where a client configuration points to."""
    if url := client.get("url"):
        return Place(url=url, address=url, server_name="")
    service = structure.mapping(client, "service")
    namespace, name = str(service.get("namespace", "")), str(service.get("name", ""))
    port, path = service.get("port") or _HTTPS, str(service.get("path") or "/")
    server_name = f"{name}.{namespace}.svc"
    url = f"https://{server_name}:{port}{path if path.startswith('/') else '/' + path}"
    host, reached = _reached(store, namespace, name, port)
    told = f"[{host}]" if ":" in host else host
    return Place(url=url, address=url.replace(f"{server_name}:{port}", f"{told}:{reached}", 1), server_name=server_name)


def _reached(store: ObjectStore, namespace: str, name: str, port: int) -> tuple[str, int]:
    """Give host and port behind a Service."""
    service = store.find(Key(kinds.SERVICE, namespace, name))
    if service is None:
        raise PlaceError(f'service "{name}" not found')
    spec = structure.mapping(service, "spec")
    if spec.get("type") == "ExternalName":
        return str(spec.get("externalName")), port
    stated = next((each for each in spec.get("ports") or () if each.get("port") == port), None)
    if stated is None:
        raise PlaceError(f'service "{name}" has no port {port}')
    simulated = False
    for address, ports in (*_slices(store, namespace, name), *_subsets(store, namespace, name)):
        if address.get("targetRef"):
            simulated = True  # a pod: nobody listens there
            continue
        number = _port(ports, stated)
        if number:
            return str(address["ip"]), number
    why = "its pods are simulated" if simulated else f'no endpoints available for service "{name}"'
    raise PlaceError(
        f"{why}; Endpoints {namespace}/{name} with the address where the webhook listens make it reachable"
    )


def _slices(store: ObjectStore, namespace: str, name: str) -> Iterator[tuple[Mapping[str, Any], list[Any]]]:
    for each in store.inside(SLICE, namespace):
        if structure.mapping(each, "metadata", "labels").get("kubernetes.io/service-name") != name:
            continue
        for endpoint in each.get("endpoints") or ():
            ready = structure.mapping(endpoint, "conditions").get("ready") is not False
            for address in endpoint.get("addresses") or () if ready else ():
                yield {"ip": address, "targetRef": endpoint.get("targetRef")}, each.get("ports") or []


def _subsets(store: ObjectStore, namespace: str, name: str) -> Iterator[tuple[Mapping[str, Any], list[Any]]]:
    found = store.find(Key(ENDPOINTS, namespace, name))
    for subset in (found or {}).get("subsets") or ():
        for address in subset.get("addresses") or ():
            yield address, subset.get("ports") or []


def _port(ports: list[Any], stated: Mapping[str, Any]) -> int:
    """Give the port of an endpoint that a Service's port leads to: the one of its name, or the only one."""
    named = [each.get("port") for each in ports if (each.get("name") or "") == (stated.get("name") or "")]
    if not named and len(ports) == 1:
        named = [ports[0].get("port")]
    if named:
        return int(named[0] or 0)
    target = stated.get("targetPort", stated.get("port"))
    return target if isinstance(target, int) and not ports else 0
