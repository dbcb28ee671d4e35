"""What a Job of Volcano does next.

One look does one of these: carry out an order or a policy, which is one write of the status that counts it; do away with what is of the past; or bring
about what the Job needs. Each look ends with the status, and is followed by another if anything was written.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from pumice.api import kinds, names
from pumice.controllers.queueing import requests
from pumice.controllers.queueing.observed import controller
from pumice.controllers.volcano.job_plugins import registry
from pumice.controllers.volcano.jobs import (
    beside,
    commands,
    killing,
    pod_groups,
    policies,
    reading,
    states,
    statuses,
    trimming,
    working,
)
from pumice.controllers.volcano.jobs.members import Members
from pumice.controllers.workloads import manifests, steps_to

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pumice.controllers.queueing.observed import Observed
    from pumice.controllers.queueing.requests import Moment, Reconciled, Step
    from pumice.controllers.volcano.jobs.policies import Answer
    from pumice.controllers.volcano.jobs.reading import Job

Manifest = dict[str, Any]
MOST_REFUSALS: Final = 15  # which takes about as long as Volcano's fifteen: not quite three minutes
_AS_LARGE: Final = 167  # as a Job that rests for 50 ms
_STATUS: Final = ("phase", "containerStatuses", "initContainerStatuses")
_READ: Final = (
    kinds.POD,
    kinds.POD_GROUP,
    kinds.COMMAND,
    kinds.QUEUE,
    kinds.PRIORITY_CLASS,
    kinds.PERSISTENT_VOLUME_CLAIM,
)


class Jobs:
    """Reconciles Jobs of batch.volcano.sh; instead of the last of so many tries in a row (negative: no number) one is given up."""

    kind = kinds.JOB
    orders = (kinds.COMMAND,)
    remembered = (kinds.POD,)

    def __init__(self, catalog: registry.Catalog | None = None, most_refusals: int = MOST_REFUSALS) -> None:
        self._catalog = catalog or registry.installed()
        self.most_refusals = most_refusals
        self._reader = reading.Reader()
        self.watched = tuple(dict.fromkeys((*_READ, *self._catalog.kinds)))
        self.selectors = dict.fromkeys((kind for kind in self._catalog.kinds if kind not in _READ), names.JOB_NAME)

    def concerns(self, kind: kinds.Kind, manifest: Mapping[str, Any], observed: Observed) -> Iterable[tuple[str, str]]:
        """Name the Job that something belongs to, that a Command is for, or that waits for a claim."""
        if kind in (kinds.QUEUE, kinds.PRIORITY_CLASS):
            return []  # read in passing: queues change with every pod that is bound
        if kind is kinds.COMMAND:
            target = reading.command_target(manifest)
            return [target] if target is not None else []
        owner, namespace = controller(manifest), manifest["metadata"].get("namespace", "")
        if owner is not None:
            ours = (owner.get("apiVersion"), owner.get("kind")) == (self.kind.api_version, self.kind.name)
            return [(namespace, str(owner.get("name")))] if ours else []
        if kind is not kinds.PERSISTENT_VOLUME_CLAIM:
            return []
        waiting = (each for each in observed.inside(self.kind, namespace) if working.waits_for_claims(each))
        return [(namespace, manifests.name(each)) for each in waiting]

    def trimmed(self, kind: kinds.Kind, manifest: Manifest) -> Manifest:
        """Keep of pods what tells their fate, since there are many, and of claims that they are there."""
        if kind is kinds.POD:
            return trimming.pod(manifest)
        return trimming.metadata_alone(manifest) if kind is kinds.PERSISTENT_VOLUME_CLAIM else manifest

    def is_same(self, kind: kinds.Kind, before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
        """Tell whether a change says nothing new: that a pod was bound, or how far its group has come in numbers."""
        if kind is kinds.POD:
            return _pod_facts(before) == _pod_facts(after)
        return kind is kinds.POD_GROUP and _group_facts(before) == _group_facts(after)

    def reconcile(self, namespace: str, name: str, observed: Observed, moment: Moment) -> Reconciled:
        """Take the next steps of a Job; whoever has nothing to do rests, as what happens to its pods comes in numbers."""
        plan = self._looked(namespace, name, observed, moment)
        if not plan.steps and not plan.stuck:
            plan.size = max(plan.size, _AS_LARGE)
        plan.patient = moment.busy and plan.again is not None
        return plan

    def _looked(self, namespace: str, name: str, observed: Observed, moment: Moment) -> Reconciled:
        manifest = observed.find(self.kind, namespace, name)
        ordered = commands.waiting(namespace, name, observed)
        if manifest is None:
            return commands.for_nobody(ordered, namespace, name)
        if manifests.is_going(manifest):
            return commands.too_late(ordered)
        job = self._reader.read(manifest)
        done = commands.carried_out(job, ordered)
        if done:
            return requests.Reconciled(steps=[steps_to.delete(kinds.COMMAND, each) for each in done])
        found = Members(job, observed.owned(kinds.POD, job.uid), observed.vanished(kinds.POD, self.kind, manifest))
        return _Look(job, found, observed, moment, self._catalog).next_steps(ordered, self.most_refusals)


class _Look:
    """One look at a Job."""

    def __init__(self, job: Job, found: Members, observed: Observed, moment: Moment, catalog: registry.Catalog) -> None:
        self.job, self.found = job, found
        self.observed, self.moment = observed, moment
        self.catalog = catalog
        self.group = pod_groups.find(job, observed)

    def next_steps(self, ordered: list[Manifest], most_refusals: int) -> Reconciled:
        """Give what is to be done now."""
        if ordered:
            return self._ordered(ordered[0])
        job = self.job
        if states.is_ending(job.phase):
            return self._ended()
        if most_refusals >= 0 and self.moment.refusals >= max(1, most_refusals - 1):
            return self._given_up()
        answers = policies.answers(job, self.found, self.group, self.moment)
        due = [each for each in answers if each.due <= self.moment.now]
        for answer in due:
            plan = self._answered(answer)
            if plan is not None:
                return plan
        later = [each for each in answers if each.due > self.moment.now]
        plan = self._restarted(due) if job.phase == reading.RESTARTING else self._at_work(later)
        plan.again = manifests.first([plan.again, later[0].due if later else None])
        plan.steps = self._stamps(later) + plan.steps
        return plan

    def _stamps(self, later: list[Answer]) -> list[Step]:
        """Write since when policies wait on the pods that do not say."""
        names_of = {each.occurrence.member.name for each in later if each.unstamped and each.occurrence.member}
        body = {"metadata": {"annotations": {policies.HAPPENED: manifests.stamp(self.moment)}}}
        return [steps_to.patch(kinds.POD, each.pod, body) for each in self.found.all if each.name in names_of]

    # ---- actions

    def _ordered(self, command: Manifest) -> Reconciled:
        """Carry a Command out, then delete it."""
        action = str(command.get("action", ""))
        change = states.acted(self.job, action) if action in states.ORDERS else None
        steps = self._acted(change, action, commands.told(command)) if change is not None else []
        return commands.obeyed(self.job, command, steps)

    def _answered(self, answer: Answer) -> Reconciled | None:
        """Do what a policy says; None if that changes nothing."""
        change, target = states.acted(self.job, answer.action), killing.target(answer)
        if change is None or (answer.action in states.RESTARTS_OF_SOME and target is None):
            return None
        why = str(answer) if target is None else f"{target}: {answer}"
        return requests.Reconciled(steps=self._acted(change, answer.action, why))

    def _given_up(self) -> Reconciled:
        change = states.acted(self.job, states.TERMINATE_JOB)
        assert change is not None  # noqa: S101  a Job that is not ending can be terminated
        message = f"Job failed on action {states.SYNC_JOB} for retry limit reached"
        message += f": {self.job.message}" if self.job.message else ""
        steps = self._acted(change, states.TERMINATE_JOB, message)
        return requests.Reconciled(steps=steps, notes=[("Warning", "ExecuteAction", message)])

    def _acted(self, change: states.Change, action: str, why: str) -> list[Step]:
        """Write that an action is taken: who has to go for it follows from what is written."""
        job = self.job
        said = statuses.unchanged(
            job,
            phase=change.phase,
            reason=action,
            message=why,
            version=job.version + change.whole,
            retry_count=job.retry_count + change.counts,
            controlled=self._without_plugins() if change.whole else job.controlled,
        )
        # The phase is stored together with how many go for it, as those who watch expect; that they go follows at once.
        after = self.found.when_gone(killing.leaving(statuses.as_written(job, said), self.found))
        steps = self._status(said, after)[0]
        announced = ("ExecuteAction", f"Start to execute action {action}: {why}")
        return [msgspec.structs.replace(step, said=announced) for step in steps]

    # ---- phases

    def _ended(self) -> Reconciled:
        """Delete what still runs; once it is gone the Job has ended."""
        deletions = [killing.delete(pod) for pod in killing.unfinished(self.found)]
        steps = deletions + self._undone(whole=True)
        phase = states.moved(self.job, self.found)
        said = statuses.unchanged(self.job, phase=phase, controlled=self._without_plugins())
        written, again = self._status(said) if not deletions else ([], None)
        return requests.Reconciled(steps=steps + written, again=again, size=len(self.found.all))

    def _restarted(self, due: list[Answer]) -> Reconciled:
        """Do away with those a restart is for, then begin again."""
        job, found = self.job, self.found
        asked = [target for each in due if (target := killing.target(each)) is not None]
        doomed = killing.restarted(job, found, asked)
        whole = killing.is_whole(job)
        steps = self._undone(whole=whole)
        for member in doomed:
            if not whole:
                steps += killing.delete_marked(member) if not (member.is_going and member.is_marked) else []
            elif not member.is_going:
                steps.append(killing.delete(member.pod))
        if steps:
            return requests.Reconciled(steps=steps, size=len(found.all))
        if found.vanished:
            # They are part of this restart. They must be forgotten before the Job goes on, or they would be counted then.
            return requests.Reconciled(again=self.moment.now)
        written, again = self._status(self._begun_again(states.moved(job, found), whole=whole))
        return requests.Reconciled(steps=written, again=again, size=len(found.all))

    def _begun_again(self, phase: str, *, whole: bool) -> statuses.Said:
        job = self.job
        if phase == reading.PENDING:
            return statuses.unchanged(job, phase=phase, reason="", message="")
        if phase == reading.FAILED:
            message = f"{job.message}; all {job.max_retry} retries are used up"
            return statuses.unchanged(
                job,
                phase=phase,
                message=message,
                version=job.version + (not whole),
                controlled=self._without_plugins(),
            )
        return statuses.unchanged(job, phase=phase)

    def _undone(self, *, whole: bool) -> list[Step]:
        """Delete the group and what plugins have made, if that was for pods of the past."""
        if not whole:
            return []
        job, group = self.job, self.group
        steps = beside.remove(job, self.catalog.kinds, self.observed)
        if group is None or manifests.is_going(group):
            return steps
        known = job.reason in (states.RESTART_JOB, states.RESUME_JOB) and _is_unstamped(group)
        if states.is_ending(job.phase) or known or pod_groups.is_of_the_past(job, group):
            steps.append(steps_to.delete(kinds.POD_GROUP, group))
        return steps

    def _at_work(self, later: list[Answer]) -> Reconciled:
        held = policies.is_held_open(self.job, later)
        work = working.Work(self.job, self.found, self.group, self.observed, self.catalog)
        plan = work.next_steps(states.moved(self.job, self.found, held_open=held), self._status, later)
        waits = pod_groups.why_it_waits(self.group)
        if waits:
            told = f"PodGroup {self.job.namespace}:{self.job.name} unschedulable, reason: {waits}"
            plan.notes = [*plan.notes, ("Warning", names.EVENT_GROUP_PENDING, told)]
        return plan

    def _without_plugins(self) -> dict[str, str]:
        return {key: text for key, text in self.job.controlled.items() if not key.startswith(beside.PREFIX)}

    def _status(self, said: statuses.Said, found: Members | None = None) -> tuple[list[Step], int | None]:
        groups = self.observed.count(kinds.POD_GROUP)
        return statuses.write(self.job, found or self.found, said, self.moment, groups=groups)


def _pod_facts(pod: Mapping[str, Any]) -> list[Any]:
    metadata, status = pod["metadata"], manifests.mapping(pod, "status")
    named = [metadata.get(field) for field in ("deletionTimestamp", "annotations", "ownerReferences")]
    return [*named, *(status.get(field) for field in _STATUS), manifests.has(status, names.CONDITION_READY)]


def _group_facts(group: Mapping[str, Any]) -> list[Any]:
    metadata, phase = group["metadata"], manifests.mapping(group, "status").get("phase")
    waits = pod_groups.why_it_waits(group)
    return [metadata.get("deletionTimestamp"), metadata.get("ownerReferences"), group.get("spec"), phase, waits]


def _is_unstamped(group: Manifest) -> bool:
    return names.JOB_VERSION not in manifests.mapping(group, "metadata", "annotations")
