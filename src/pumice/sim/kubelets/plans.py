"""What a simulated container does: how long it runs, how it ends and what it says, read from annotations and, where kubelets do that, from its command.

`sleep 30`, `true`, `false`, `exit 3`, `echo hello`, alone or as a script of `sh -c`, are understood, with variables of the container's
environment; anything else runs until it is stopped, apart from hooks of helm, which end well after a moment.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

import msgspec

from pumice.api import duration, names
from pumice.sim import structure
from pumice.sim.kubelets import environment

if TYPE_CHECKING:
    from collections.abc import Sequence

_SHELLS: Final = frozenset({"sh", "bash", "ash", "dash"})
_UNITS: Final = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


class Plan(msgspec.Struct, frozen=True):
    """What a container does: microseconds until it ends by itself, or None; its exit code; its lines with when they are said."""

    run_time: int | None = None
    exit_code: int = 0
    lines: tuple[tuple[int, str], ...] = ()


Read = Callable[[Mapping[str, Any]], tuple[Plan, list[str]]]
"""Reads what a pod does as a whole, and what is wrong with its annotations."""
HELM_HOOK: Final = "helm.sh/hook"
HOOK: Final = Plan(run_time=duration.SECOND)
"""What a hook of helm does whose command is not understood: helm waits until it has ended."""
_LARGEST_CODE: Final = 255
_DIGITS: Final = 18
_FOR_EVER: Final = 100 * 365 * 24 * duration.HOUR  # who sleeps longer runs without end
_ANNOTATIONS: Final = (names.RUN_TIME, names.EXIT, names.EXIT_CODE)


def of_pod(pod: Mapping[str, Any]) -> tuple[Plan, list[str]]:
    """Give what a pod does by its annotations, else by its commands: it ends when its last container does, badly if one ended badly."""
    annotations = structure.mapping(pod, "metadata", "annotations")
    if any(annotations.get(each) is not None for each in _ANNOTATIONS):
        return annotated(pod)
    plans = [of_container(each, pod) for each in structure.mapping(pod, "spec").get("containers") or ()]
    if not plans or any(plan.run_time is None for plan in plans):
        return Plan(), []
    worst = next((plan.exit_code for plan in plans if plan.exit_code), 0)
    return Plan(max(plan.run_time or 0 for plan in plans), worst), []


def annotated(pod: Mapping[str, Any]) -> tuple[Plan, list[str]]:
    """Give what a pod does by its annotations; one that says only how it ends does so at once."""
    annotations = structure.mapping(pod, "metadata", "annotations")
    run_text, exit_text, code_text = (annotations.get(each) for each in _ANNOTATIONS)
    if run_text is None and exit_text is None and code_text is None:
        return Plan(), []
    problems: list[str] = []
    run_time = _run_time(run_text, problems) if run_text is not None else 0
    if exit_text not in (None, "failed", "succeeded"):
        problems.append(f"annotation {names.EXIT}: {exit_text!r} is neither failed nor succeeded; the pod succeeds")
    code = int(exit_text == "failed")
    if code_text is not None:
        if re.fullmatch(r"[0-9]{1,3}", str(code_text)) and int(code_text) <= _LARGEST_CODE:
            code = int(code_text)
        else:
            why = "is no exit code; write a number from 0 to 255"
            problems.append(f"annotation {names.EXIT_CODE}: {code_text!r} {why}")
    return Plan(run_time, code), problems


def _run_time(text: Any, problems: list[str]) -> int | None:
    try:
        found = duration.parse(text)
    except duration.DurationError as error:
        problems.append(f"annotation {names.RUN_TIME}: {error}; the pod runs without end")
        return None
    if found < 0:
        problems.append(f"annotation {names.RUN_TIME}: {text!r} is negative; the pod runs without end")
        return None
    return found


def of_container(container: Mapping[str, Any], pod: Mapping[str, Any] | None = None) -> Plan:
    """Give what a container does by its command, in the environment that its pod gives it."""
    stated = [str(each) for each in [*(container.get("command") or ()), *(container.get("args") or ())]]
    if not stated:
        return Plan()
    known = environment.of_container(container, pod or {}) if any("$" in each for each in stated) else {}
    words = environment.words_of(stated, known)
    name = words[0].rpartition("/")[2]
    if name in _SHELLS:
        script = (
            words[words.index("-c") + 1]
            if "-c" in words[:-1]
            else next((w for w in words[1:] if not w.startswith("-")), "")
        )
        return _script(environment.expanded(script, known))
    return _commands([words])


def _script(script: str) -> Plan:
    commands: list[list[str]] = []
    if len(script) > environment.LONGEST:
        return Plan()
    for line in re.split(r";|&&|\n", script):
        try:
            words = shlex.split(line, comments=True)
        except ValueError:
            return Plan()
        if words:
            commands.append(words)
    return _commands(commands)


def _commands(commands: Sequence[list[str]]) -> Plan:
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
                if span is None or at + span > _FOR_EVER:
                    return Plan(None, 0, tuple(lines))
                at, code = at + span, 0
            case "exit":
                code = int(arguments[0][-_DIGITS:]) % 256 if arguments and arguments[0].isdecimal() else code
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
    return int(total * duration.SECOND) if arguments and total * duration.SECOND < _FOR_EVER else None
