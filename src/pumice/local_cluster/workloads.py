"""What a simulated container does: how long it runs, how it ends and what it says, read from annotations or from its command.

`sleep 30`, `true`, `false`, `exit 3`, `echo hello`, alone or as a script of `sh -c`, are understood, with variables of the container's
environment; anything else runs until it is stopped, apart from hooks of helm, which end well after a moment.
"""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING, Any, Final

import msgspec

from pumice.api import duration, names
from pumice.local_cluster import environment
from pumice.sim import structure

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_SHELLS: Final = frozenset({"sh", "bash", "ash", "dash"})
_UNITS: Final = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


class Plan(msgspec.Struct, frozen=True):
    """What a container does: microseconds until it ends by itself, or None; its exit code; its lines with when they are said."""

    run_time: int | None = None
    exit_code: int = 0
    lines: tuple[tuple[int, str], ...] = ()


HELM_HOOK: Final = "helm.sh/hook"
HOOK: Final = Plan(run_time=duration.SECOND)
"""What a hook of helm does whose command is not understood: helm waits until it has ended."""


def of_pod(pod: Mapping[str, Any]) -> tuple[Plan, list[str]]:
    """Give what a pod does as a whole, and what is wrong with its annotations: it ends when its last container does, badly if one ended badly."""
    annotations = structure.mapping(pod, "metadata", "annotations")
    problems: list[str] = []
    if (
        annotations.get(names.RUN_TIME) is not None
        or annotations.get(names.EXIT_CODE) is not None
        or annotations.get(names.EXIT) is not None
    ):
        return _annotated(annotations, problems), problems
    plans = [of_container(each, pod) for each in structure.mapping(pod, "spec").get("containers") or ()]
    if not plans or any(plan.run_time is None for plan in plans):
        return Plan(), problems
    worst = next((plan.exit_code for plan in plans if plan.exit_code), 0)
    return Plan(max(plan.run_time or 0 for plan in plans), worst), problems


def _annotated(annotations: Mapping[str, Any], problems: list[str]) -> Plan:
    run_time: int | None = None
    text = annotations.get(names.RUN_TIME)
    if text is not None:
        try:
            run_time = duration.parse(text)
        except duration.DurationError as error:
            problems.append(f"annotation {names.RUN_TIME}: {error}; the pod runs without end")
    if run_time is not None and run_time < 0:
        problems.append(f"annotation {names.RUN_TIME}: {text!r} is negative; the pod runs without end")
        run_time = None
    code = 1 if annotations.get(names.EXIT) == "failed" else 0
    if annotations.get(names.EXIT) not in (None, "failed", "succeeded"):
        problems.append(
            f"annotation {names.EXIT}: {annotations[names.EXIT]!r} is neither failed nor succeeded; the pod succeeds"
        )
    stated = annotations.get(names.EXIT_CODE)
    if stated is not None:
        if str(stated).isdecimal() and int(stated) < 256:
            code = int(stated)
        else:
            problems.append(f"annotation {names.EXIT_CODE}: {stated!r} is no exit code; write a number from 0 to 255")
    if run_time is None and text is None and (stated is not None or annotations.get(names.EXIT) is not None):
        run_time = 0
    return Plan(run_time, code)


def of_container(container: Mapping[str, Any], pod: Mapping[str, Any] | None = None) -> Plan:
    """Give what a container does by its command, in the environment that its pod gives it."""
    stated = [str(each) for each in [*(container.get("command") or ()), *(container.get("args") or ())]]
    if not stated:
        return Plan()
    known = environment.of_container(container, pod or {}) if any("$" in each for each in stated) else {}
    words = [environment.referred(each, known) for each in stated]
    name = words[0].rpartition("/")[2]
    if name in _SHELLS:
        script = (
            words[words.index("-c") + 1]
            if "-c" in words[:-1]
            else next((w for w in words[1:] if not w.startswith("-")), "")
        )
        return _script(environment.expanded(script, known))
    return _steps([words])


def _script(script: str) -> Plan:
    commands: list[list[str]] = []
    for line in re.split(r"\s*(?:;|&&|\n)\s*", script.strip()):
        try:
            words = shlex.split(line, comments=True)
        except ValueError:
            return Plan()
        if words:
            commands.append(words)
    return _steps(commands)


def _steps(commands: Sequence[list[str]]) -> Plan:
    """Follow commands one by one; one that is not known makes the container run without end."""
    at, code = 0, 0
    lines: list[tuple[int, str]] = []
    for name, *arguments in commands:
        match name.rpartition("/")[2]:
            case "true" | ":" | "set" | "cd" | "export":
                code = 0
            case "false":
                code = 1
            case "echo" | "printf":
                lines.append((at, " ".join(each for each in arguments if each not in ("-n", "-e"))))
                code = 0
            case "sleep":
                span = _span(arguments)
                if span is None:
                    return Plan(None, 0, tuple(lines))
                at, code = at + span, 0
            case "exit":
                code = int(arguments[0]) % 256 if arguments and arguments[0].isdecimal() else code
                return Plan(at, code, tuple(lines))
            case _:
                return Plan(None, 0, tuple(lines))
    return Plan(at, code, tuple(lines))


def _span(arguments: Sequence[str]) -> int | None:
    total = 0.0
    for each in arguments:
        match = re.fullmatch(r"(\d+(?:\.\d*)?|\.\d+)([smhd]?)", each)
        if match is None:
            return None
        total += float(match[1]) * _UNITS[match[2]]
    return int(total * duration.SECOND) if arguments else None
