"""Probes and hooks of containers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pumice.admission import naming
from pumice.api import documents

if TYPE_CHECKING:
    from pumice.admission.parts import Part

_WAYS: Final = ("exec", "httpGet", "tcpSocket", "grpc")
_SMALLEST: Final = {
    "initialDelaySeconds": 0,
    "timeoutSeconds": 0,
    "periodSeconds": 0,
    "successThreshold": 0,
    "failureThreshold": 0,
    "terminationGracePeriodSeconds": 1,
}
_LARGEST_PORT: Final = 65535


def judge(probe: Part) -> None:
    """Judge a probe, if there is one."""
    if not probe:
        return
    judge_handler(probe, _WAYS)
    for name, least in _SMALLEST.items():
        probe.whole(name, least=least)
    if probe.path[-1] in ("livenessProbe", "startupProbe"):
        probe.whole("successThreshold", most=1)


def judge_handler(handler: Part, ways: tuple[str, ...]) -> None:
    """Judge what a probe or a hook does."""
    if not handler:
        return
    given = [name for name in ways if handler.part(name).value is not None]
    if len(given) != 1:
        handler.refuse(f"must have exactly one of {', '.join(ways)}, not {len(given)}")
    for name in given:
        way = handler.record(name)
        if name == "exec" and not way.elements("command"):
            way.refuse("is empty, and must be given", "command")
        elif name in ("httpGet", "tcpSocket"):
            _judge_port(way)
        elif name == "grpc":
            way.whole("port", least=1, most=_LARGEST_PORT)
        if name == "httpGet":
            way.among("scheme", ("HTTP", "HTTPS"))


def _judge_port(way: Part) -> None:
    value = way.part("port").value
    if value is None:
        way.refuse("is missing, and must be given", "port")
    elif isinstance(value, str):
        if problem := naming.port(value):
            way.refuse(f"is {documents.quoted(value)}, and {problem}", "port")
    else:
        way.whole("port", least=1, most=_LARGEST_PORT)
