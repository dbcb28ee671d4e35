"""What a job does on which event: lists of lifecycle policies, of the job and of its tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

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
        for event, where in named:
            if events.setdefault(event, index) != index or sum(event == other for other, _ in named) > 1:
                where.refuse(f"is {event}, which policies[{events[event]}] has already; an event may appear once")
        if code is not None and codes.setdefault(code, index) != index:
            policy.refuse(f"is {code}, which policies[{codes[code]}] has already", "exitCode")
        _judge_timeout(policy, [event for event, _ in named])
    if ANY in events and len(events) > 1:
        others = ", ".join(sorted(set(events) - {ANY}))
        owner.refuse(f"is *, which is any event, and excludes every other ({others})", "policies", events[ANY])


def _judge_action(policy: Part) -> None:
    if policy.required("action"):
        policy.among("action", ACTIONS)


def _events(policy: Part) -> list[tuple[str, Part]]:
    found = [(each, part) for each, part in policy.texts("events") if _judge_event(each, part)]
    single = policy.text("event")
    if single and _judge_event(single, policy.part("event")):
        found.insert(0, (single, policy.part("event")))
    return found


def _judge_event(event: str, where: Part) -> bool:
    if event in EVENTS:
        if event == "JobUpdated":
            where.warn("is JobUpdated, which is accepted and never raised")
        return True
    near = documents.nearest(event, EVENTS)
    hint = f"; did you mean {near}?" if near else ""
    where.refuse(f"is {documents.quoted(event)}, and must be one of {', '.join(EVENTS)}{hint}")
    return False


def _judge_cause(policy: Part, named: list[tuple[str, Part]], code: int | None) -> None:
    stated = bool(named) or bool(policy.part("event").value) or bool(policy.part("events").value)
    if stated and policy.part("exitCode").value is not None:
        policy.refuse("may not be given together with event or events", "exitCode")
    elif not stated and policy.part("exitCode").value is None:
        policy.refuse("must say when it acts: event, events or exitCode")
    if code == 0:
        policy.refuse("is 0, which is no failure", "exitCode")


def _judge_timeout(policy: Part, events: list[str]) -> None:
    text = policy.text("timeout")
    if text:
        try:
            waits = duration.parse(text)
        except ValueError as error:
            policy.refuse(str(error), "timeout")
        else:
            if waits < 0:
                policy.refuse(f"is {text}, and must not be negative", "timeout")
    elif "PodPending" in events and policy.part("timeout").value is None:
        policy.warn("acts on PodPending without a timeout, and so never: say how long a pod may be pending")
