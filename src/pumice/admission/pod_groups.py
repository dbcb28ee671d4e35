"""Pod groups: the queue that a namespace sends them to, and what they may say."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pumice.admission import laws, patches, queue_references, surroundings, topology
from pumice.api import names

if TYPE_CHECKING:
    from pumice.admission.remarks import Remarks
    from pumice.admission.requests import Request, RuleSettings
    from pumice.admission.surroundings import Surroundings

Document = dict[str, Any]


def complete(request: Request, around: Surroundings, _: RuleSettings) -> Document:
    """Send a group that names no queue of its own to that of its namespace."""
    group: Document = patches.copied(request.object)
    home = around.namespace(request.namespace)
    wanted = surroundings.below(dict(home or {}), "metadata", "annotations", names.QUEUE_NAME)
    spec = group.setdefault("spec", {})
    if (
        isinstance(spec, dict)
        and spec.get("queue") in (None, "", names.DEFAULT_QUEUE)
        and isinstance(wanted, str)
        and wanted
    ):
        spec["queue"] = wanted
    return group


def judge(request: Request, found: Remarks, around: Surroundings, __: RuleSettings) -> None:
    """Judge a group that is created."""
    spec = request.part(found).record("spec")
    spec.whole("minMember", least=0)
    for _, part in spec.entries("minTaskMember"):
        message = f"is {part.value!r}, and must be a whole number of pods, at least 0"
        if isinstance(part.value, bool) or not isinstance(part.value, int):
            part.refuse(message)
        elif part.value < 0:
            part.breaks(laws.LEAST_OF_ROLE, message)
    queue_references.judge_open(spec, around)
    topology.judge(spec)
    for policy in spec.items("subGroupPolicy"):
        topology.judge(policy)
        policy.whole("subGroupSize", least=1)
        policy.whole("minSubGroups", least=0)
