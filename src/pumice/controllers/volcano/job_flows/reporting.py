"""The status of a JobFlow: its Jobs by phase, the life of each, and the phase of the whole."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pumice.controllers.volcano.job_flows import flows
from pumice.controllers.workloads import manifests

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pumice.controllers.queueing.requests import Moment

Manifest = dict[str, Any]
SUCCEED: Final = "Succeed"
TERMINATING: Final = "Terminating"
OVER: Final = (SUCCEED, flows.FAILED, TERMINATING)


def phase_of(flow: Mapping[str, Any]) -> str:
    """Give the phase that a flow's status states."""
    return str(manifests.mapping(flow, "status", "state").get("phase") or flows.PENDING)


def status(
    flow: Mapping[str, Any],
    steps: Sequence[flows.FlowJob],
    jobs: Sequence[Mapping[str, Any]],
    known: Mapping[str, str],
    moment: Moment,
) -> Manifest:
    """Make the status of a flow from its Jobs; what is known of those that are gone stays."""
    old = manifests.mapping(flow, "status")
    lists: dict[str, list[str]] = {}
    for name in sorted(known):
        lists.setdefault(flows.LISTS.get(known[name], flows.UNKNOWN), []).append(name)
    lives = {str(manifests.mapping(each).get("name")): each for each in manifests.items(old, "jobStatusList")}
    conditions = dict(manifests.mapping(old, "conditions"))
    for job in jobs:
        name = manifests.name(job)
        lives[name] = _life(manifests.mapping(lives.get(name)), job, moment)
        conditions[name] = _condition(job)
    found = {
        **lists,
        "jobStatusList": [lives[name] for name in sorted(lives) if name in known],
        "conditions": {name: conditions[name] for name in sorted(conditions) if name in known},
    }
    state = {"phase": _phase(phase_of(flow), steps, known)}
    return {field: value for field, value in found.items() if value} | {"state": state}


def _phase(phase: str, steps: Sequence[flows.FlowJob], known: Mapping[str, str]) -> str:
    """Give the phase that follows from the Jobs; one that is over stays."""
    if phase in OVER:
        return phase
    seen = list(known.values())
    if flows.FAILED in seen or flows.TERMINATED in seen:
        return flows.FAILED
    if phase == flows.RUNNING and all(known.get(step.job) == flows.COMPLETED for step in steps):
        return SUCCEED
    return flows.RUNNING if flows.RUNNING in seen or flows.COMPLETED in seen else phase


def _life(old: Mapping[str, Any], job: Mapping[str, Any], moment: Moment) -> Manifest:
    """Give the life of a Job: when it began and ended, and the phases it went through."""
    phase, stated = flows.phase_of(job), manifests.mapping(job, "status")
    began = job["metadata"].get("creationTimestamp")
    histories = [dict(manifests.mapping(each)) for each in manifests.items(old, "runningHistories")]
    if not histories:
        histories = [{"startTimestamp": began, "state": phase}]
    elif histories[-1].get("state") != phase:
        now = manifests.stamp(moment)
        histories = [*histories[:-1], {**histories[-1], "endTimestamp": now}, {"startTimestamp": now, "state": phase}]
    ended = manifests.mapping(stated, "state").get("lastTransitionTime")
    found = {
        "name": manifests.name(job),
        "state": phase,
        "startTimestamp": began,
        "endTimestamp": ended if phase in (flows.COMPLETED, flows.FAILED, flows.TERMINATED) else None,
        "restartCount": manifests.number(stated, "retryCount") or None,
        "runningHistories": histories,
    }
    return {field: value for field, value in found.items() if value is not None}


def _condition(job: Mapping[str, Any]) -> Manifest:
    stated = manifests.mapping(job, "status")
    found = {
        "phase": flows.phase_of(job),
        "createTime": job["metadata"].get("creationTimestamp"),
        "runningDuration": stated.get("runningDuration"),
        "taskStatusCount": stated.get("taskStatusCount"),
    }
    return {field: value for field, value in found.items() if value is not None}
