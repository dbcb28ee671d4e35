"""A job as `job view` shows it: what it is, what it wants, how it stands, and what happened to it.

The labels, their order and the tabs after them are those of vcctl.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from pumice.api.printable import printable
from pumice.apiserver.tables import ages
from pumice.cli.volcano import columns, job_rows
from pumice.sim import structure

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

INDENT: Final = "  "
PLUGINS: Final = ("env", "ssh")
COUNTS: Final = (
    ("Succeeded:    ", "succeeded"),
    ("Pending:      ", "pending"),
    ("Running:      ", "running"),
    ("Failed:       ", "failed"),
    ("Terminating:  ", "terminating"),
    ("Unknown:      ", "unknown"),
    ("RetryCount:   ", "retryCount"),
    ("Min Available:", "minAvailable"),
    ("Version:      ", "version"),
)
EVENT_WIDTHS: Final = (15, 40, 30, 40)
EVENT_HEADINGS: Final = ("Type", "Reason", "Age", "Form", "Message")


def text(job: Mapping[str, Any], events: Sequence[Mapping[str, Any]], now: int) -> list[str]:
    """Write a job and its events."""
    return [*_identity(job), *_spec(job), *_status(job), *_events(events, now)]


def _line(level: int, label: str, value: object = None) -> str:
    shown = "" if value is None else f"\t{printable(str(value))}"
    return f"{INDENT * level}{label}{shown}"


def _identity(job: Mapping[str, Any]) -> Iterator[str]:
    metadata = structure.mapping(job, "metadata")
    yield _line(0, "Name:       ", columns.name(job))
    yield _line(0, "Namespace:  ", columns.namespace(job))
    yield _line(0, "Labels:     ", _pairs(metadata.get("labels")))
    yield _line(0, "Annotations:", _pairs(metadata.get("annotations")))
    yield _line(0, "API Version:", job.get("apiVersion", ""))
    yield _line(0, "Kind:       ", job.get("kind", ""))
    yield _line(0, "Metadata:")
    yield _line(1, "Creation Timestamp:", _moment(metadata.get("creationTimestamp")))
    yield _line(1, "Generate Name:     ", metadata.get("generateName", ""))
    yield _line(1, "Generation:        ", metadata.get("generation", 0))
    yield _line(1, "Resource Version:  ", metadata.get("resourceVersion", ""))
    yield _line(1, "Self Link:         ", metadata.get("selfLink", ""))
    yield _line(1, "UID:               ", metadata.get("uid", ""))


def _pairs(found: Any) -> str:
    if not isinstance(found, dict) or not found:
        return columns.NONE
    return json.dumps(dict(sorted(found.items())), separators=(",", ":"), ensure_ascii=False)


def _moment(found: Any) -> str:
    """Write a timestamp as Go prints a time in UTC."""
    written = str(found or "")
    return written.replace("T", " ").removesuffix("Z") + " +0000 UTC" if written.endswith("Z") else written


def _spec(job: Mapping[str, Any]) -> Iterator[str]:
    spec = structure.mapping(job, "spec")
    yield _line(0, "Spec:")
    yield _line(1, "Min Available:     ", spec.get("minAvailable", 0))
    yield _line(1, "Plugins:")
    plugins = structure.mapping(spec, "plugins")
    for name in (*PLUGINS, *sorted(set(plugins) - set(PLUGINS))):
        yield _line(2, f"{name.capitalize()}:", f"[{' '.join(map(str, plugins.get(name) or ()))}]")
    yield _line(1, "Queue:             ", job_rows.queue(job))
    yield _line(1, "Scheduler Name:    ", spec.get("schedulerName", ""))
    yield _line(1, "Tasks:")
    for task in job_rows.tasks(job):
        yield from _task(task)


def _task(task: Mapping[str, Any]) -> Iterator[str]:
    template = structure.mapping(task, "template")
    yield _line(2, "Name:", task.get("name", ""))
    yield _line(2, "Replicas:", task.get("replicas", 0))
    yield _line(2, "Template:")
    yield _line(3, "Metadata:")
    yield _line(4, "Annotations:")
    for key, value in structure.mapping(template, "metadata", "annotations").items():
        yield _line(5, f"{printable(key)}:", value)
    yield _line(3, "Spec:")
    yield _line(4, "Containers:")
    for container in _maps(structure.mapping(template, "spec").get("containers")):
        yield from _container(container)
    yield _line(4, "Image Pull Secrets:")
    for secret in _maps(structure.mapping(template, "spec").get("imagePullSecrets")):
        yield _line(5, "Name:     ", secret.get("name", ""))
    yield _line(4, "Restart Policy:   ", structure.mapping(template, "spec").get("restartPolicy", ""))


def _container(container: Mapping[str, Any]) -> Iterator[str]:
    yield _line(5, "Command:")
    command = container.get("command")
    for word in command if isinstance(command, list) else ():
        yield _line(6, printable(str(word)))
    yield _line(5, "Image:", container.get("image", ""))
    yield _line(5, "Name: ", container.get("name", ""))
    yield _line(5, "Ports:")
    for port in _maps(container.get("ports")):
        yield _line(6, "Container Port:", port.get("containerPort", 0))
        yield _line(6, "Name:          ", port.get("name", ""))
    yield _line(5, "Resources:")
    for label, key in (("Limits:", "limits"), ("Requests:", "requests")):
        amounts = structure.mapping(container, "resources", key)
        yield _line(6, label)
        yield _line(7, "Cpu:   ", amounts.get("cpu", 0))
        yield _line(7, "Memory:", amounts.get("memory", 0))
        for name in amounts:
            if name not in ("cpu", "memory"):
                yield _line(7, f"{printable(name)}:", amounts[name])
    yield _line(6, "Working Dir:", container.get("workingDir", ""))


def _status(job: Mapping[str, Any]) -> Iterator[str]:
    status = structure.mapping(job, "status")
    yield _line(0, "Status:")
    for label, key in COUNTS:
        if status.get(key):
            yield _line(1, label, status[key])
    yield _line(1, "State:")
    yield _line(2, "Phase:", structure.mapping(status, "state").get("phase", ""))
    for label, key in (("Reason:", "reason"), ("Message:", "message")):
        if structure.mapping(status, "state").get(key):
            yield _line(2, label, structure.mapping(status, "state")[key])
    controlled = structure.mapping(status, "controlledResources")
    if controlled:
        yield _line(1, "Controlled Resources:")
        for key in sorted(controlled):
            yield _line(2, f"{printable(key)}: ", controlled[key])
    conditions = _maps(status.get("conditions"))
    if conditions:
        yield _line(1, "Conditions:")
        yield _line(2, "Status\tTransitionTime")
        for each in conditions:
            yield _line(2, f"{printable(str(each.get('status', '')))} ", f"{_moment(each.get('lastTransitionTime'))} ")


def _events(events: Sequence[Mapping[str, Any]], now: int) -> Iterator[str]:
    if not events:
        yield f"Events: \t{columns.NONE}"
        return
    yield "Events:"
    yield _event_line(EVENT_HEADINGS)
    yield _event_line(("-------",) * len(EVENT_HEADINGS))
    for event in sorted(events, key=_last):
        source = structure.mapping(event, "source")
        component = source.get("component") or event.get("reportingComponent") or ""
        origin = ", ".join(filter(None, (component, source.get("host"))))
        message = str(event.get("message") or "").strip()
        yield _event_line((event.get("type", ""), event.get("reason", ""), _interval(event, now), origin, message))


def _event_line(cells: Sequence[object]) -> str:
    written = [printable(str(cell)) for cell in cells]
    return "\t".join([*(f"{cell:<{width}}" for cell, width in zip(written, EVENT_WIDTHS, strict=False)), written[-1]])


def _last(event: Mapping[str, Any]) -> str:
    return str(event.get("lastTimestamp") or event.get("eventTime") or event.get("firstTimestamp") or "")


def _interval(event: Mapping[str, Any], now: int) -> str:
    first = event.get("firstTimestamp") or event.get("eventTime")
    count = event.get("count")
    if isinstance(count, int) and count > 1:
        return f"{ages.since(_last(event), now)} (x{count} over {ages.since(first, now)})"
    return ages.since(first, now)


def _maps(found: Any) -> list[Mapping[str, Any]]:
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []
