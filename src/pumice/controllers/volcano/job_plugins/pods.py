"""Changes to a pod that several plugins make."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pumice.controllers.workloads import manifests

if TYPE_CHECKING:
    from collections.abc import Iterator

Manifest = dict[str, Any]
_LONGEST_NAME: Final = 63


def containers(pod: Manifest, *, init: bool = False) -> Iterator[Manifest]:
    """Go over a pod's containers, and if asked its init containers."""
    for part in ("initContainers", "containers") if init else ("containers",):
        yield from (each for each in manifests.items(pod, "spec", part) if isinstance(each, dict))


def set_variable(container: Manifest, name: str, value: str | Manifest) -> None:
    """Set an environment variable, to a text or to where it comes from; one of that name is replaced."""
    entry: Manifest = {"name": name, **({"value": value} if isinstance(value, str) else {"valueFrom": value})}
    present = manifests.items(container, "env")
    for place, each in enumerate(present):
        if manifests.mapping(each).get("name") == name:
            container["env"] = [*present[:place], entry, *present[place + 1 :]]
            return
    container["env"] = [*present, entry]


def add_port(container: Manifest, name: str, number: int) -> None:
    """Declare a port that a container does not have yet, by its number or by its name, which no container may have twice."""
    present = manifests.items(container, "ports")
    stated = [manifests.mapping(each) for each in present]
    if not any(each.get("containerPort") == number or each.get("name") == name for each in stated):
        container["ports"] = [*present, _port(name, number)]


def name_port(container: Manifest, name: str, number: int) -> None:
    """Give a container's port a name by which a Service finds it, whatever else it is called."""
    others = [each for each in manifests.items(container, "ports") if manifests.mapping(each).get("name") != name]
    container["ports"] = [*others, _port(name, number)]


def _port(name: str, number: int) -> Manifest:
    return {"name": name, "containerPort": number, "protocol": "TCP"}


def volume_name(name: str, end: str) -> str:
    """Name a volume after something that may be called otherwise than volumes may: no dots in it, and at most 63 characters."""
    return f"{name.replace('.', '-')[: _LONGEST_NAME - len(end) - 1]}-{end}"


def mount(pod: Manifest, volume: Manifest, mounted: Manifest, *, init: bool = True) -> None:
    """Add a volume to a pod and mount it in all containers."""
    spec = pod["spec"]
    others = [
        each
        for each in manifests.items(pod, "spec", "volumes")
        if manifests.mapping(each).get("name") != volume["name"]
    ]
    spec["volumes"] = [*others, volume]
    entry = {"name": volume["name"], **mounted}
    for container in containers(pod, init=init):
        present = manifests.items(container, "volumeMounts")
        rest = [each for each in present if manifests.mapping(each).get("name") != volume["name"]]
        container["volumeMounts"] = [*rest, entry]
