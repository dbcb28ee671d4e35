"""What a kubelet does next for a pod: one function of the pod as it is stored, for all who play kubelets.

```
  Pending ──start──▶ Running ──end──▶ Succeeded, Failed
                     │     ▲
                 back off  restart                            terminating ──stop──▶ ended ──remove──▶ gone
                     ▼     │                                  (stop: only while finalizers hold it)
                     waiting
```
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

import msgspec

from pumice.api import duration, names, timestamp
from pumice.sim import deletion, structure
from pumice.sim.kubelets import plans, reports

if TYPE_CHECKING:
    from collections.abc import Mapping

Act = Literal["", "start", "end", "back off", "restart", "stop", "remove"]
_FIRST_PAUSE, _LONGEST_PAUSE = 10, 300  # seconds before containers are started again
_STOPPED: Final = 143  # the code of containers that heeded the signal to stop


class Manner(msgspec.Struct, frozen=True, kw_only=True):
    """How kubelets differ: whether restart policies hold, how long containers take to stop (None: all the grace they are given), whether finalizers are waited for, and whether a start is reported in short."""

    restarts: bool = False
    stopping: int | None = None
    heeds_finalizers: bool = True
    brief: bool = False


class Next(NamedTuple):
    """What is to be done and when; `cause` is equal for as long as that is so, `problems` are what is wrong with a pod's annotations."""

    act: Act = ""
    at: int = 0
    cause: Any = None
    exit_code: int = 0
    problems: tuple[str, ...] = ()


def next_action(
    pod: Mapping[str, Any], now: int, manner: Manner, plan: plans.Read = plans.annotated, since: int = 0
) -> Next:
    """Say what is to be done for a pod; `plan` reads how long it runs, and nothing has run since before `since`."""
    status = structure.mapping(pod, "status")
    if deletion.is_terminating(pod):
        return _ending(pod, now, manner)
    if not deletion.is_bound(pod) or deletion.is_finished(pod):
        return Next()
    if status.get("phase") in (None, "", names.PHASE_PENDING):
        return Next("start", now, "start")
    if status.get("phase") != names.PHASE_RUNNING:
        return Next()
    return _running(pod, now, manner, plan, since)


def report(wanted: Next, pod: Mapping[str, Any], when: str, host: str, *, brief: bool = False) -> dict[str, Any] | None:
    """Give the status that is written when something is done, None where none is."""
    match wanted.act:
        case "start":
            return reports.started(pod, when) if brief else reports.running(pod, when, host)
        case "end":
            return reports.ended(pod, when, wanted.exit_code)
        case "back off":
            return reports.waiting(pod, when, wanted.exit_code, pause(pod))
        case "restart":
            return reports.restarted(pod, when, host)
        case "stop":
            return reports.ended(pod, when, _STOPPED)
    return None


def running_since(pod: Mapping[str, Any], now: int, since: int = 0) -> int:
    """Give when the containers of a pod were last started; now if nobody says so."""
    status = structure.mapping(pod, "status")
    text = structure.mapping(reports.first_container(pod), "state", "running").get("startedAt")
    return max(since, _instant(text or status.get("startTime"), now))


def pause(pod: Mapping[str, Any]) -> int:
    """Give how many seconds containers wait before they are started again."""
    doubled: int = _FIRST_PAUSE * 2 ** min(8, reports.restart_count(pod))
    return min(_LONGEST_PAUSE, doubled)


def _ending(pod: Mapping[str, Any], now: int, manner: Manner) -> Next:
    """Let a pod that is deleted go: when its grace is over, or as soon as its containers have stopped."""
    stamp, finished = pod["metadata"]["deletionTimestamp"], deletion.is_finished(pod)
    at = _instant(stamp, now + deletion.grace_of(pod))
    given = pod["metadata"].get("deletionGracePeriodSeconds")
    if isinstance(given, int):
        at = min(at, now + given * duration.SECOND)  # the clock of the API server may be ahead
    if finished:
        at = now
    elif manner.stopping is not None:
        at = min(at, now + manner.stopping)
    held = manner.heeds_finalizers and deletion.finalizers(pod) and not finished
    act: Act = "stop" if held else "remove"
    return Next(act, at, (act, stamp))


def _running(pod: Mapping[str, Any], now: int, manner: Manner, plan: plans.Read, since: int) -> Next:
    wanted, problems = plan(pod)
    told = tuple(problems)
    restarts = reports.restart_count(pod)
    if manner.restarts and reports.is_waiting(pod):
        ended = reports.previous_run(pod)
        at = max(since, ended[1] if ended is not None else now) + pause(pod) * duration.SECOND
        return Next("restart", at, ("restart", restarts), 0, told)
    if wanted.run_time is None:
        return Next("", 0, ("run", told), 0, told)
    started = running_since(pod, now, since)
    policy = structure.mapping(pod, "spec").get("restartPolicy", "Always") if manner.restarts else "Never"
    final = policy == "Never" or (policy == "OnFailure" and wanted.exit_code == 0)
    cause = ("end", restarts, wanted)
    return Next("end" if final else "back off", started + wanted.run_time, cause, wanted.exit_code, told)


def _instant(text: Any, otherwise: int) -> int:
    try:
        return timestamp.parse(text or "")
    except timestamp.TimestampError:
        return otherwise
