"""What a job does on which event: lists of lifecycle policies, of the job and of its tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pumice.admission import laws
from pumice.api import documents, duration

if TYPE_CHECKING:
    from pumice.admission.parts import Part

ANY: Final = "*"
EVENTS: Final = (ANY, "PodFailed", "PodEvicted", "PodPending", "Unknown", "TaskCompleted", "TaskFailed", "JobUpdated")
ACTIONS: Final = ("AbortJob", "RestartJob", "RestartTask", "RestartPod", "RestartPartition", "TerminateJob", "CompleteJob", "ResumeJob")  # fmt: skip
_LARGEST_CODE: Final = 2**31 - 1


def judge(owner: Part) -> None:
    """Judge the field `policies` of a job or a task."""
    events: dict[str, int] = {}
    codes: dict[int, int] = {}
    for index, policy in enumerate(owner.items("policies")):
        _judge_action(policy)
        named = _events(policy)
        code = policy.whole("exitCode", least=-_LARGEST_CODE - 1, most=_LARGEST_CODE)
        _judge_cause(policy, named, code)
        _judge_repeats(named, events, index)
        if code is not None and codes.setdefault(code, index) != index:
            policy.breaks(laws.POLICIES, f"is {code}, which policies[{codes[code]}] has already", "exitCode")
        _judge_timeout(policy, [event for event, _ in named])
    if ANY in events and len(events) > 1:
        others = ", ".join(sorted(set(events) - {ANY}))
        message = f"is *, which is any event, and excludes every other ({others})"
        owner.breaks(laws.POLICIES, message, "policies", events[ANY])


def _judge_repeats(named: list[tuple[str, Part]], events: dict[str, int], index: int) -> None:
    """Judge which events came before, in another policy or in this one."""
    own: set[str] = set()
    for event, where in named:
        if events.setdefault(event, index) != index:
            where.breaks(
                laws.POLICIES, f"is {event}, which policies[{events[event]}] has already; an event may appear once"
            )
        elif event in own:
            where.breaks(laws.POLICY_REPEATS, f"is {event}, which the same policy lists already; once is enough")
        own.add(event)


def _judge_action(policy: Part) -> None:
    """Judge the action, which Volcano looks at only where there is an event."""
    stated = bool(policy.part("event").value) or bool(policy.part("events").value)
    judged = policy.under(laws.POLICIES if stated else laws.POLICY_ACTION)
    if judged.required("action"):
        judged.among("action", ACTIONS)


def _events(policy: Part) -> list[tuple[str, Part]]:
    found = [(each, part) for each, part in policy.texts("events") if _judge_event(each, part)]
    single = policy.text("event")
    if single and _judge_event(single, policy.part("event")):
        found.insert(0, (single, policy.part("event")))
    return found


def _judge_event(event: str, where: Part) -> bool:
    if event in EVENTS:
        if event == "JobUpdated":
            where.breaks(laws.POLICY_IDLE, "is JobUpdated, which is accepted and never raised")
        return True
    near = documents.nearest(event, EVENTS)
    hint = f"; did you mean {near}?" if near else ""
    where.breaks(laws.POLICIES, f"is {documents.quoted(event)}, and must be one of {', '.join(EVENTS)}{hint}")
    return False


def _judge_cause(policy: Part, named: list[tuple[str, Part]], code: int | None) -> None:
    stated = bool(named) or bool(policy.part("event").value) or bool(policy.part("events").value)
    if stated and policy.part("exitCode").value is not None:
        policy.breaks(laws.POLICIES, "may not be given together with event or events", "exitCode")
    elif not stated and policy.part("exitCode").value is None:
        policy.breaks(laws.POLICIES, "must say when it acts: event, events or exitCode")
    if code == 0:
        policy.breaks(laws.POLICIES, "is 0, which is no failure", "exitCode")


def _judge_timeout(policy: Part, events: list[str]) -> None:
    text = policy.text("timeout")
    if text:
        try:
            waits = duration.parse(text)
        except ValueError as error:
            policy.refuse(str(error), "timeout")
        else:
            if waits < 0:
                policy.breaks(laws.POLICY_TIMEOUT, f"is {text}, and must not be negative", "timeout")
    elif "PodPending" in events and policy.part("timeout").value is None:
        message = "acts on PodPending without a timeout, and so never: say how long a pod may be pending"
        policy.breaks(laws.POLICY_IDLE, message)
