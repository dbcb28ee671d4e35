"""Containers of a pod: names, images, ports, variables, amounts, mounts and probes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pumice.admission import laws, naming, parts
from pumice.admission.pod_templates import amounts, probes, volumes
from pumice.api import documents

if TYPE_CHECKING:
    from pumice.admission.parts import Part
    from pumice.admission.pod_templates.volumes import Known

_PULL: Final = ("Always", "IfNotPresent", "Never")
_RESTART: Final = ("Always", "OnFailure", "Never")
_PROTOCOLS: Final = ("TCP", "UDP", "SCTP")
_SOURCES: Final = ("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef")
_LARGEST_PORT: Final = 65535


def judge(spec: Part, known: Known) -> None:
    """Judge all containers of a pod."""
    regular = spec.items("containers")
    if not regular and not spec.part("containers").value:
        spec.refuse("is empty, and must hold at least one container", "containers")
    seen: dict[str, str] = {}
    held: dict[tuple[int, str, str], str] = {}
    for container in (*spec.items("initContainers"), *regular):
        _judge_name(container, seen)
        _judge_one(container, known)
        _judge_ports(container, host=spec.truth("hostNetwork"), held=held)
        first = container.path[-2] == "initContainers"
        if first and container.among("restartPolicy", _RESTART) != "Always":
            for name in ("livenessProbe", "readinessProbe", "startupProbe", "lifecycle"):
                if container.part(name).value is not None:
                    container.refuse("may only be given to an init container whose restartPolicy is Always", name)


def _judge_name(container: Part, seen: dict[str, str]) -> None:
    name = container.required("name")
    if not name:
        return
    if problem := naming.label(name):
        container.refuse(f"is {documents.quoted(name)}, and {problem}", "name")
    where = f"{container.path[-2]}[{container.path[-1]}]"
    if seen.setdefault(name, where) != where:
        container.refuse(f"is {documents.quoted(name)}, which {seen[name]} is called already", "name")


def _judge_one(container: Part, known: Known) -> None:
    image = container.required("image")
    if image != image.strip():
        message = f"is {documents.quoted(image)}, and may not begin or end with a space"
        container.breaks(laws.TEMPLATE_OF_USE, message, "image")
    container.among("imagePullPolicy", _PULL)
    container.among("terminationMessagePolicy", ("File", "FallbackToLogsOnError"))
    container.texts("command")
    container.texts("args")
    _judge_variables(container)
    amounts.judge(container.record("resources"))
    volumes.judge_mounts(container, known)
    for name in ("livenessProbe", "readinessProbe", "startupProbe"):
        probes.judge(container.record(name))
    lifecycle = container.record("lifecycle")
    for name in ("postStart", "preStop"):
        probes.judge_handler(lifecycle.record(name), ("exec", "httpGet", "tcpSocket", "sleep"))


def _judge_ports(container: Part, *, host: bool, held: dict[tuple[int, str, str], str]) -> None:
    names: dict[str, int] = {}
    for index, port in enumerate(container.items("ports")):
        number = port.whole("containerPort", least=1, most=_LARGEST_PORT)
        if number is None and port.part("containerPort").value is None:
            port.refuse("is missing, and must be given", "containerPort")
        name = port.text("name")
        if name and (problem := naming.port(name)):
            port.refuse(f"is {documents.quoted(name)}, and {problem}", "name")
        if name and names.setdefault(name, index) != index:
            port.refuse(f"is {documents.quoted(name)}, which ports[{names[name]}] is called already", "name")
        protocol = port.among("protocol", _PROTOCOLS) or "TCP"
        outer = port.whole("hostPort", least=0, most=_LARGEST_PORT)
        if host and outer and number and outer != number:
            port.refuse(f"is {outer}, and must equal containerPort ({number}) where hostNetwork is true", "hostPort")
        if outer and container.path[-2] == "containers":
            taken, place = (outer, protocol, port.text("hostIP")), f"{container.path[-1]}.ports[{index}]"
            if held.setdefault(taken, place) != place:
                port.refuse(
                    f"is {outer}, which containers[{held[taken].replace('.', '].', 1)} holds already", "hostPort"
                )


def _judge_variables(container: Part) -> None:
    for variable in container.items("env"):
        name = variable.required("name")
        if name and (problem := naming.variable(name)):
            variable.refuse(f"is {documents.quoted(name)}, and {problem}", "name")
        value, source = variable.part("value"), variable.record("valueFrom")
        if value.value is not None and not isinstance(value.value, str):
            value.breaks(laws.SCHEMA, f"must be a string, not {parts.type_of(value.value)}; put quotes around it")
        if value.value and source:
            variable.refuse("may not be given together with value", "valueFrom")
        if source:
            _judge_source(source)
    for source in container.items("envFrom"):
        prefix = source.text("prefix")
        if prefix and (problem := naming.variable(prefix)):
            source.refuse(f"is {documents.quoted(prefix)}, and {problem}", "prefix")
        given = [each for each in ("configMapRef", "secretRef") if source.part(each).value is not None]
        if len(given) != 1:
            source.refuse(f"must have exactly one of configMapRef and secretRef, not {len(given)}")
        for each in given:
            source.record(each).required("name")


def _judge_source(source: Part) -> None:
    given = [name for name in _SOURCES if source.part(name).value is not None]
    if len(given) != 1:
        source.refuse(f"must have exactly one of {', '.join(_SOURCES[:4])}, not {len(given)}")
    for name in given:
        reference = source.record(name)
        if name == "fieldRef":
            reference.required("fieldPath")
        elif name == "resourceFieldRef":
            reference.required("resource")
        elif name != "fileKeyRef":
            reference.required("name")
            reference.required("key")
