"""Explanations as lines of text, each derived from the records and from nothing else."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from pumice.framework.explaining.explanations import (
    JobExplanation,
    NodeExplanation,
    PodExplanation,
    QueueExplanation,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pumice.framework.explaining.explanations import (
        ActionVerdict,
        Claim,
        Dimension,
        EvictionVerdict,
        Fact,
        GangVerdict,
        Hold,
        MissingMember,
        NodeGroup,
        Placement,
        PluginVote,
        QueueDimension,
    )


@functools.singledispatch
def text(explanation: Fact) -> list[str]:
    """Write an explanation out, line by line; parts are indented."""
    raise TypeError(f"{type(explanation).__name__} is no explanation")


@text.register
def _(explanation: JobExplanation) -> list[str]:
    counted = ", ".join(f"{count} {status}" for status, count in explanation.members.items()) or "no pods"
    if explanation.queue:
        how = f" in queue {explanation.queue} (phase {explanation.phase or 'none'}, {counted}, minMember {explanation.minimum})"
    else:
        how = f" ({counted}, no PodGroup)"
    lines = [explanation.cause] if explanation.cause else []
    lines.append(f"{explanation.job}: {explanation.state}{how}")
    if explanation.reason:
        lines.append(f"  {explanation.reason}")
    lines += [f"  note: {note}" for note in explanation.notes]
    if (verdict := explanation.queue_verdict) is not None:
        lines += [f"  queue {verdict.queue}: {refusal}" for refusal in verdict.refusals]
        lines += [f"  {dimension_text(dimension)}" for dimension in verdict.dimensions]
    if explanation.gang is not None:
        lines += [f"  gang: {gang_text(explanation.gang)}"]
    lines += [
        f"  nodes for {placement.pod}{_others(placement)}: {placement_text(placement)}"
        for placement in explanation.placements
    ]
    lines += [f"  {verdict.action}: {eviction_text(verdict)}" for verdict in explanation.evictions]
    lines += [f"  {hold_text(hold)}" for hold in explanation.holds]
    return [*lines, *_votes(explanation.votes), *_actions(explanation.actions), *_forecast(explanation)]


def _forecast(explanation: JobExplanation) -> Iterator[str]:
    """Write when a job is expected to start."""
    if explanation.forecast:
        yield f"  start {explanation.forecast}"


def _votes(votes: Sequence[PluginVote]) -> Iterator[str]:
    """Write each vote that says why, and name the others together."""
    plain: dict[tuple[str, str], list[str]] = {}
    for vote in votes:
        if vote.reason:
            yield f"  {vote.point}: {vote.plugin} {vote.answer}: {vote.reason}"
        else:
            plain.setdefault((vote.answer, vote.plugin), []).append(vote.point)
    for answer in dict.fromkeys(answer for answer, _ in plain):
        named = (f"{plugin} ({', '.join(points)})" for (said, plugin), points in plain.items() if said == answer)
        yield f"  {answer} it: {', '.join(named)}"


def _actions(actions: Sequence[ActionVerdict]) -> Iterator[str]:
    """Write what each action said of a job, and name those that had nothing to do with it together."""
    for action in actions:
        if action.said:
            yield f"  action {action.action}: {f'(cycle {action.cycle}) ' if action.cycle else ''}{action.said}"
    idle = [action.action for action in actions if not action.said]
    if idle:
        yield f"  had nothing to do with it: {', '.join(idle)}"


@text.register
def _(explanation: PodExplanation) -> list[str]:
    where = f" on {explanation.node}" if explanation.node else ""
    lines = [explanation.cause] if explanation.cause else []
    lines.append(f"{explanation.pod}: {explanation.status}{where}")
    if explanation.reason:
        lines.append(f"  {explanation.reason}")
    lines += [f"  note: {note}" for note in explanation.notes]
    if explanation.placement is not None:
        lines.append(f"  nodes: {placement_text(explanation.placement)}")
    job = explanation.job
    told = text(job) if job is not None else []
    # What stands for both is said once.
    return lines + (told[1:] if job is not None and job.cause and job.cause == explanation.cause else told)


@text.register
def _(explanation: QueueExplanation) -> list[str]:
    below = f" under {explanation.parent}" if explanation.parent else ""
    head = f"queue {explanation.queue}{below}: {explanation.state}, weight {explanation.weight}, priority {explanation.priority}"
    lines = [head if explanation.reclaimable else f"{head}, not reclaimable"]
    if explanation.share is not None:
        lines.append(f"  {explanation.plugin}: holds {explanation.share:.0%} of what it is due")
    if explanation.overused:
        lines.append(f"  overused: {explanation.overused}")
    lines += [f"  {standing_text(dimension)}" for dimension in explanation.dimensions]
    for job in explanation.jobs:
        held = amounts_text(job.held) or "nothing"
        asks = f", asks for {amounts_text(job.asked)}" if job.asked else ""
        lines.append(
            f"  {job.job}: {job.phase}, priority {job.priority}, {job.running} placed, {job.waiting} wait; holds {held}{asks}"
        )
    if explanation.other_jobs:
        lines.append(f"  and {explanation.other_jobs} more jobs")
    lines += [f"  {claim_text(claim)}" for claim in (*explanation.claims, *explanation.claimed)]
    for going in explanation.going:
        lines.append(f"  {going.pod} is going{' for ' + going.claimant if going.claimant else ''}")
    return lines


@text.register
def _(explanation: NodeExplanation) -> list[str]:
    states = [] if explanation.ready else ["not ready"]
    states += ["cordoned"] if explanation.cordoned else []
    states += [f"tainted {taint}" for taint in explanation.taints]
    lines = [f"node {explanation.node}: {', '.join(states) or 'ready'}, {len(explanation.pods)} pods"]
    for amount in explanation.amounts:
        parts = [f"{amount.free} free of {amount.allocatable}"]
        parts += [f"{amount.releasing} being released"] if amount.releasing != "0" else []
        parts += [f"{amount.held} held"] if amount.held != "0" else []
        lines.append(f"  {amount.resource}: {', '.join(parts)}")
    for pod in explanation.pods:
        owner = f" of {pod.job} in queue {pod.queue}" if pod.job else ""
        lines.append(f"  {pod.pod}{owner}: {pod.status}, {amounts_text(pod.request) or 'no requests'}")
    lines += [f"  {hold_text(hold)}" for hold in explanation.holds]
    for group in explanation.waiting:
        jobs = f"{group.jobs} jobs wait" if group.jobs > 1 else "1 job waits"
        lines.append(f"  {jobs} ({group.first}{' first' if group.jobs > 1 else ''}): {group.reason}")
    return lines


# -- parts -----------------------------------------------------------------------------------------------------


def amounts_text(amounts: Mapping[str, str]) -> str:
    """Write amounts in one line."""
    return ", ".join(f"{amount} {name}" for name, amount in amounts.items())


def _others(placement: Placement) -> str:
    return f" and {placement.members - 1} like it" if placement.members > 1 else ""


def placement_text(placement: Placement) -> str:
    """Write which nodes take a pod: `38 nodes short of 2 nvidia.com/gpu, closest gpu-07 by 1; 4 tainted maintenance:NoSchedule`."""
    if placement.refusal:
        return placement.refusal
    if not placement.nodes:
        return "there are no nodes"
    parts = [f"{placement.fitting} of {placement.nodes} take it"] if placement.fitting else []
    return "; ".join([*parts, *map(group_text, placement.groups)])


def group_text(group: NodeGroup) -> str:
    """Write one group of nodes."""
    if group.resource:
        head = f"{_nodes(group.count)} short of {group.asked} {group.resource}"
        return f"{head}{_nearest_text(group)}"
    if group.details:
        told = [f"{detail.count} {detail.text}" for detail in group.details]
        rest = group.count - sum(detail.count for detail in group.details)
        return "; ".join([*told, f"{rest} {group.reason}"] if rest else told)
    return f"{group.count} {group.reason}"


def _nodes(count: int) -> str:
    return f"{count} node" if count == 1 else f"{count} nodes"


def _nearest_text(group: NodeGroup) -> str:
    """Write which node of a group lacks least, if that is known."""
    if (nearest := group.nearest) is None:
        return ""
    if list(nearest.short) == [group.resource]:
        by = nearest.short[group.resource]
    else:
        by = " and ".join(f"{amount} {name}" for name, amount in nearest.short.items())
    return f", closest {nearest.node} by {by}" + (f" ({nearest.otherwise})" if nearest.otherwise else "")


def gang_text(gang: GangVerdict) -> str:
    """Write how much of a gang could start: `3 of 4 members fit; w-3 lacks 12Gi memory everywhere`."""
    together = gang.placed + gang.fit
    head = f"{together} of {gang.members} members fit"
    if gang.placed:
        head = f"{head}, {gang.placed} of them placed already"
    needs = "" if gang.minimum == gang.members else f" (minMember {gang.minimum})"
    return "; ".join([f"{head}{needs}", *map(_missing_text, gang.missing)])


def _missing_text(missing: MissingMember) -> str:
    who = f"{missing.pod} and {missing.count - 1} like it" if missing.count > 1 else missing.pod
    placement = missing.placement
    if placement is None or placement.refusal or not placement.groups:
        return f"{who}: {missing.reason}"
    if len(placement.groups) == 1 and not placement.fitting and (group := placement.groups[0]).resource:
        verb = "lack" if missing.count > 1 else "lacks"
        return f"{who} {verb} {group.asked} {group.resource} everywhere{_nearest_text(group)}"
    return f"{who}: {placement_text(placement)}"


def dimension_text(dimension: Dimension) -> str:
    """Write in which resource a queue has no room, and who holds it."""
    parts = [f"{dimension.have} held"]
    if dimension.let_in not in ("", "0"):
        parts.append(f"{dimension.let_in} let in")
    parts.append(f"{dimension.want} wanted")
    holders = ", ".join(f"{holder.name} {holder.amount}" for holder in dimension.holders)
    more = f" and {dimension.other_holders} more" if dimension.other_holders else ""
    held = f"; held by {holders}{more}" if holders else ""
    return (
        f"queue {dimension.queue}: {dimension.resource} {' + '.join(parts)}, {dimension.kind} {dimension.limit}{held}"
    )


def eviction_text(verdict: EvictionVerdict) -> str:
    """Write why nobody goes: `17 candidates: 9 protected by PodDisruptionBudget web, 8 of equal priority`."""
    if not verdict.candidates:
        listed = "no candidates"
    else:
        groups = ", ".join(f"{group.count} {group.reason}" for group in verdict.groups)
        listed = f"{verdict.candidates} candidate{'s' if verdict.candidates > 1 else ''}: {groups}"
    return f"{listed}; {verdict.unseen} more were not looked at" if verdict.unseen else listed


def hold_text(hold: Hold) -> str:
    """Write what is held for whom."""
    awaits = f", once {', '.join(hold.awaits)} {'are' if len(hold.awaits) > 1 else 'is'} gone" if hold.awaits else ""
    return f"{amounts_text(hold.request) or 'a place'} on {hold.node} is held for {hold.pod}{awaits}"


def standing_text(dimension: QueueDimension) -> str:
    """Write how a queue stands in one resource."""
    named = {
        "held": dimension.held,
        "asked": dimension.asked,
        "let in": dimension.let_in,
        "due": dimension.due,
        "guaranteed": dimension.guarantee,
        "ceiling": dimension.ceiling,
        "room": dimension.room,
    }
    kept: Iterable[str] = (
        f"{word} {amount}" for word, amount in named.items() if amount and (amount != "0" or word == "held")
    )
    return f"{dimension.resource}: {', '.join(kept)}"


def claim_text(claim: Claim) -> str:
    """Write what one queue could have back from another."""
    could = "would take back, but may not ask" if claim.refusal else "can take back"
    why = f": {claim.refusal}" if claim.refusal else ""
    return f"queue {claim.claimant} {could} {amounts_text(claim.amounts)} from queue {claim.owner} for {claim.job}{why}"
