"""What a cycle found out becomes patches and events, written only where it is news."""

from __future__ import annotations

import functools
import itertools
from typing import TYPE_CHECKING, Any, Literal

from pumice.api import kinds, names, printable, scheduling, timestamp
from pumice.cache import queues, reflector, retry_pauses, shadows, write_paces
from pumice.cache.effects import Outcome, Patch
from pumice.cache.group_drafts import GroupDraft, GroupDrafts
from pumice.cache.native_statuses import NativeStatuses
from pumice.framework import closing
from pumice.framework.reason_keys import READY, is_news, reason_key
from pumice.model import native_groups
from pumice.model.statuses import Status

if TYPE_CHECKING:
    from pumice.cache.mirror import Mirror
    from pumice.framework.session import Session
    from pumice.model.job import Job
    from pumice.model.task import Task

_NOMINATION = "nomination"
_GATE = "gate"
WAITING = frozenset({Status.PENDING, Status.PIPELINED})


class Publisher:
    """Writes statuses of groups, pods and queues."""

    def __init__(self, cache: Mirror) -> None:
        self._cache = cache
        self._cluster = cache.cluster
        self._writing: dict[str, int] = {}
        self._written: dict[str, tuple[str, str, str]] = {}
        self._warned: dict[str, str] = {}
        self._noticed: dict[str, dict[str, None]] = {}  # why groups were not let in, by job
        self._ungated: dict[str, None] = {}
        self._retry_pauses = retry_pauses.RetryPauses()
        self._paces = write_paces.WritePaces(cache.options.reason_patience)
        self.queue_kinds: dict[str, kinds.Kind] = {}
        self._kinds: dict[str, kinds.Kind] = {}  # of groups that were read in another version of the kind
        self.native = NativeStatuses(cache)

    def answer_queue(self, name: str, kind: kinds.Kind) -> None:
        """Write about a queue under the kind it was read in."""
        if kind is kinds.QUEUE:
            self.queue_kinds.pop(name, None)
        else:
            self.queue_kinds[name] = kind

    def answer_to(self, job: str, kind: kinds.Kind) -> None:
        """Write about a group under the kind it was read in."""
        if kind is kinds.POD_GROUP:
            self._kinds.pop(job, None)
        else:
            self._kinds[job] = kind

    def kind(self, job: str) -> kinds.Kind:
        """Return the kind that a group was read in."""
        return self._kinds.get(job, kinds.POD_GROUP)

    def publish(self, session: Session) -> None:
        """Write what changed: groups, their pods, queues."""
        now, heeded = session.started, session.job_gradient.active
        reports, drafts = closing.report(session), GroupDrafts()
        for leaves, run in itertools.groupby(reports, _leaves_reasons):
            if leaves:
                self._publish_moved(list(run), drafts, now)
                continue
            for job, report in run:
                self._publish_job(job, report, drafts, now)
                wishes = (job.topology is not None or job.policies) and not job.native
                if not heeded and wishes and (idle := _unheeded(job)):
                    self._tell(job, "Warning", names.EVENT_NO_EFFECT, idle)
                for entry in report.tasks:
                    self._publish_task(entry, now)
        if any(report.entered for _, report in reports):
            # Plugins count a group by its phase, so one that has entered another may make room for others.
            session.progressed = True
        self._notice(session.findings.notices)
        self._warn(session.findings.warnings)
        for queue, message in session.findings.queue_warnings:
            if queue.object is not None:
                kind = self.queue_kinds.get(queue.name, kinds.QUEUE)
                reason = names.EVENT_GUARANTEE_REDUCED
                self._cache.note(kind, queue.object.metadata, "Warning", reason, message, once=True)
        for task in session.reservations.ended(self._cluster):
            session.progressed = True
            self._clear_nomination(task)
        self._write_queues(session.started)

    def catch_up(self, now: int) -> None:
        """Write the queues that had to wait for their turn; no cycle is needed for that."""
        if self._paces.queues_are_due(now):
            self._write_queues(now)

    def _write_queues(self, now: int) -> None:
        may_write = functools.partial(self._paces.may_write_queue, now=now)
        for patch in queues.patches(self._cluster, self.queue_kinds, may_write):
            self._cache.world.send(patch)

    def _warn(self, warnings: list[tuple[Job, str]]) -> None:
        """Put all that is wrong with a group into one event, so that the next cycle finds the same said."""
        wrong: dict[str, tuple[Job, list[str]]] = {}
        for job, message in warnings:
            wrong.setdefault(job.key, (job, []))[1].append(message)
        for job, messages in wrong.values():
            self._tell(job, "Warning", names.EVENT_INVALID_SPEC, "; ".join(dict.fromkeys(messages)))

    def _notice(self, notices: list[tuple[Job, str]]) -> None:
        """Tell a group each reason why it is not let in once, as long as it waits: several plugins may refuse it, and take turns in doing so."""
        for job, message in notices:
            if job.group is None or shadows.is_shadow(job.group):
                continue
            told = self._noticed.setdefault(job.key, {})
            if (key := reason_key(message)) not in told:
                told[key] = None
                kind = self.kind(job.key)
                self._cache.note(kind, job.group.metadata, "Normal", names.EVENT_UNSCHEDULABLE, message)

    def _tell(self, job: Job, type_: Literal["Normal", "Warning"], reason: str, message: str) -> None:
        if job.group is not None and not shadows.is_shadow(job.group):
            self._cache.note(self.kind(job.key), job.group.metadata, type_, reason, message, once=True)

    # -- groups ------------------------------------------------------------------------------------------------

    def _publish_moved(self, run: list[tuple[Job, closing.JobReport]], drafts: GroupDrafts, now: int) -> None:
        """Write of groups that have left their reasons behind; these are the most, so each step is taken for all of them."""
        self._cluster.set_statuses([(job, report.status) for job, report in run])
        if self._warned or self._noticed or self._paces.puts_anything_off:
            for job, report in run:
                self._forget_reasons(job, report)
        for job, report in run:
            group = job.group
            if job.native:
                self.native.publish(job, report, now)
            elif group is not None and not shadows.is_shadow(group):
                self._write_group(job, group, drafts.of(job, report), now)

    def _publish_job(self, job: Job, report: closing.JobReport, drafts: GroupDrafts, now: int) -> None:
        group = job.group
        if group is None:
            return
        if shadows.is_shadow(group):
            self._cluster.set_status(job, report.status)
        elif self._is_due(job, report, now):
            self._cluster.set_status(job, report.status)
            if job.native:
                self.native.publish(job, report, now)
            else:
                self._write_group(job, group, drafts.of(job, report), now)
        if report.entered:
            self._noticed.pop(job.key, None)

    def _write_group(self, job: Job, group: scheduling.PodGroup, draft: GroupDraft, now: int) -> None:
        """Send a status, unless it may wait, and say that a group has become ready."""
        key = job.key
        kind = self._kinds.get(key, kinds.POD_GROUP) if self._kinds else kinds.POD_GROUP
        if not self._paces.puts_off(key, draft.patience, now):
            self._writing[key] = self._writing.get(key, 0) + 1
            patch = Patch(
                kind=kind,
                namespace=job.namespace,
                name=job.name,
                uid=group.metadata.uid,
                body=draft.body,
                reports=draft.reports,
            )
            self._cache.world.send(patch)
        if draft.is_ready:
            self._cache.note(kind, group.metadata, "Normal", names.EVENT_SCHEDULED, READY)

    def _forget_reasons(self, job: Job, report: closing.JobReport) -> None:
        """Give no more reasons of a group that waits for nothing."""
        self._warned.pop(job.key, None)
        self._paces.withdraw(f"{kinds.POD_GROUP.name} {job.key}")
        if report.entered:
            self._noticed.pop(job.key, None)

    def _is_due(self, job: Job, report: closing.JobReport, now: int) -> bool:
        """Tell whether the status of a group is to be written, and tell of one that waits."""
        if report.warning or report.changed != report.moved:
            return self._give_reasons(job, report, now) or self._paces.is_owed(job.key)
        self._forget_reasons(job, report)
        return report.moved or self._paces.is_owed(job.key)

    def _give_reasons(self, job: Job, report: closing.JobReport, now: int) -> bool:
        """Tell of a group that waits, and whether its status may be written: always if its phase or counts changed, else as often as reasons may be given."""
        name, moved = f"{kinds.POD_GROUP.name} {job.key}", report.moved
        news = self._is_warning_new(job, report)
        wanted = news or (report.changed and not moved)
        stood = not wanted or self._paces.has_stood(name, now)
        if news and stood and job.group is not None:
            kind = self.kind(job.key)
            self._cache.note(kind, job.group.metadata, "Warning", names.EVENT_UNSCHEDULABLE, report.warning)
            self._warned[job.key] = report.warning
        may_write = report.changed and (moved or self._paces.may_give_reason(name, now))
        if stood and may_write == report.changed:
            self._paces.withdraw(name)
        return may_write

    def _is_warning_new(self, job: Job, report: closing.JobReport) -> bool:
        """Tell whether a group waits for another reason than it was last told; after a restart, than the one its condition gives."""
        if not report.warning or job.group is None:
            self._warned.pop(job.key, None)
            return False
        said = self._warned.get(job.key)
        if said is None:
            stated = (c for c in job.status.conditions if c.type == names.CONDITION_UNSCHEDULABLE)
            said = next((c.message for c in stated), "")
            self._warned[job.key] = said
        return is_news(said, report.warning)

    def is_writing(self, job: str) -> bool:
        """Tell whether a status of ours is on its way or to be written, so that what is read meanwhile is older."""
        return self._writing.get(job, 0) > 0 or self._paces.is_owed(job)

    def settle(self, effect: Patch, outcome: Outcome, now: int) -> None:
        """Take the answer to a patch; one that failed is found to be missing after a pause, and written in the next cycle."""
        if effect.kind is kinds.NATIVE_POD_GROUP:
            self.native.settle(effect, native_groups.key_of(effect.namespace, effect.name), outcome, now)
            return
        name = _name(effect)
        if effect.kind.name == kinds.POD_GROUP.name:
            self._settle_group(f"{effect.namespace}/{effect.name}", outcome)
        if outcome.failure is None or not self._is_known(effect):
            self._retry_pauses.forget(name)
        else:
            self._retry_pauses.failed(name, outcome.failure.code, now)

    def _is_known(self, effect: Patch) -> bool:
        """Tell whether the object of a patch is still there: nothing needs to be written about one that is gone."""
        if effect.kind.name == kinds.POD.name:
            return effect.uid in self._cluster.tasks
        if effect.kind.name == kinds.QUEUE.name:
            return effect.name in self._cluster.queues
        job = self._cluster.jobs.get(f"{effect.namespace}/{effect.name}")
        return job is not None and job.group is not None

    def _settle_group(self, key: str, outcome: Outcome) -> None:
        self._writing[key] = self._writing.get(key, 1) - 1
        if self._writing[key] > 0:
            return
        del self._writing[key]
        job = self._cluster.jobs.get(key)
        if outcome.failure is None and job is not None and job.group is not None:
            # While ours was on its way, statuses that were read were passed over; one that is newer than ours counts.
            answered = (outcome.object or {}).get("metadata", {}).get("resourceVersion", "")
            if reflector.follows(job.group.metadata.resource_version, answered):
                self._cluster.set_status(job, job.group.status)
                self._report_again(job)
        elif outcome.failure is not None:
            self._cache.record.say("status", f"{key}: {outcome.failure.message}; it will be written again")

    def review(self, now: int) -> None:
        """Forget what was written as far as it never arrived and its pause is over, and have reasons given that had to wait."""
        self.native.review(now)
        for name in self._paces.due(now):
            kind, _, key = name.partition(" ")
            task = self._cluster.tasks.get(key) if kind == kinds.POD.name else None
            job = self._cluster.jobs.get(key) if task is None else task.job
            if job is None or (task is not None and task.status not in WAITING):
                self._paces.withdraw(name)  # whoever has a node waits no more
            else:
                self._report_again(job)
        for name in self._retry_pauses.due(now):
            kind, _, key = name.partition(" ")
            if kind == kinds.POD.name:
                self._miss_task(key)
            elif kind == _NOMINATION:
                self._miss_removal(key)
            elif kind == _GATE:
                self._ungated.pop(key, None)
                self._cluster.changed += 1
            elif kind == kinds.QUEUE.name:
                self._miss_queue(key)
            else:
                self._miss_job(key)

    def next_wake(self) -> int | None:
        """Return when the next pause is over."""
        times = (part.next_wake() for part in (self._retry_pauses, self._paces, self.native))
        return min((time for time in times if time is not None), default=None)

    def _miss_task(self, uid: str) -> None:
        written = self._written.pop(uid, None)
        task = self._cluster.tasks.get(uid)
        if task is None:
            return
        if written is not None and written[2]:
            task.nominated = task.pod.status.nominated_node_name
        if task.job is not None:
            self._report_again(task.job)

    def _miss_removal(self, uid: str) -> None:
        """Take a nomination off that is still on its pod, unless there is another by now."""
        task = self._cluster.tasks.get(uid)
        if task is not None and not task.nominated and task.pod.status.nominated_node_name:
            self._clear_nomination(task)

    def _miss_queue(self, name: str) -> None:
        if (queue := self._cluster.queues.get(name)) is not None and queue.object is not None:
            # As it was last read: zeros that never arrived must be written, too.
            queue.status = queue.object.status
            self._cluster.changed += 1

    def _miss_job(self, key: str) -> None:
        job = self._cluster.jobs.get(key)
        if job is not None and job.group is not None and not self.is_writing(key):
            self._cluster.set_status(job, job.group.status)
            self._report_again(job)

    def _report_again(self, job: Job) -> None:
        """Have a job reported in the next cycle though nothing about it has changed."""
        self._cluster.dirty_jobs[job.key] = job
        self._cache.record.stands(job.key, None)
        self._cluster.changed += 1

    def forget_job(self, key: str) -> None:
        """Drop what is known of a group that is gone."""
        self._retry_pauses.forget(f"{kinds.POD_GROUP.name} {key}")
        self._paces.forget(f"{kinds.POD_GROUP.name} {key}")
        self._paces.forget_status(key)
        self._writing.pop(key, None)
        self._warned.pop(key, None)
        self._noticed.pop(key, None)
        self._kinds.pop(key, None)

    def forget_queue(self, name: str) -> None:
        """Drop what is known of a queue that is gone."""
        self._retry_pauses.forget(f"{kinds.QUEUE.name} {name}")
        self._paces.forget_queue(name)
        self.queue_kinds.pop(name, None)

    # -- pods --------------------------------------------------------------------------------------------------

    def _publish_task(self, entry: closing.TaskReport, now: int) -> None:
        task = entry.task
        nominated = entry.nominated if entry.nominated and entry.nominated != task.nominated else ""
        name = f"{kinds.POD.name} {task.uid}"
        if not nominated and self._already_says(task, entry.reason, entry.message):
            self._paces.withdraw(name)
            return
        if not nominated and not self._paces.may_give_reason(name, now):
            return
        self._write(task, entry.reason, entry.message, nominated, now)

    def bind_failed(self, task: Task, message: str, now: int) -> None:
        """Say on the pod that its bind failed."""
        self._say(task, names.REASON_SCHEDULER_ERROR, printable.printable(message), now)

    def group_missing(self, task: Task, message: str, now: int) -> None:
        """Say on the pod that its group does not exist; an event alone would expire."""
        self._say(task, names.REASON_UNSCHEDULABLE, message, now)

    def _say(self, task: Task, reason: str, message: str, now: int) -> None:
        if not self._already_says(task, reason, message):
            self._write(task, reason, message, "", now)

    def _write(self, task: Task, reason: str, message: str, nominated: str, now: int) -> None:
        status: dict[str, Any] = {
            "conditions": [_scheduling_condition(task.pod.metadata.generation, reason, message, now)]
        }
        if nominated:
            status["nominatedNodeName"] = nominated
            task.nominated = nominated
            self._cluster.nominated[task.uid] = task
        self._written[task.uid] = (reason, message, nominated)
        self._patch_status(task, status)
        self._cache.note(kinds.POD, task.pod.metadata, "Warning", names.EVENT_FAILED_SCHEDULING, message)

    def take_gate_off(self, task: Task) -> bool:
        """Take the one gate off a pod that waits for its queue, and tell whether that was not asked for before."""
        if task.uid in self._ungated:
            return False
        self._ungated[task.uid] = None
        # Gates are never added to a pod, and this one was the last.
        body = {"spec": {"schedulingGates": None}}
        patch = Patch(kind=kinds.POD, namespace=task.namespace, name=task.name, uid=task.uid, body=body)
        self._cache.world.send(patch)
        return True

    def expect(self, task: Task, node: str) -> None:
        """Write on a pod which node it is about to get: something has to be written before its bind, and others may look meanwhile."""
        if task.pod.status.nominated_node_name != node:
            self._patch_status(task, {"nominatedNodeName": node})

    def _clear_nomination(self, task: Task) -> None:
        """Take a nomination off a pod; the room is no longer held for it."""
        task.nominated = ""
        self._cluster.nominated.pop(task.uid, None)
        self._patch_status(task, {"nominatedNodeName": None})

    def _patch_status(self, task: Task, status: dict[str, Any]) -> None:
        """Merge fields into a pod's status; its other conditions stay."""
        patch = Patch(
            kind=kinds.POD,
            namespace=task.namespace,
            name=task.name,
            uid=task.uid,
            body={"status": status},
            subresource="status",
            strategic=True,
            reports=True,
        )
        self._cache.world.send(patch)

    def _already_says(self, task: Task, reason: str, message: str) -> bool:
        """Tell whether a pod gives the reason already; the numbers of the moment, and which node a member would get, are no news."""
        said = self._written.get(task.uid)
        if said is None:
            stated = (c for c in task.pod.status.conditions if c.type == names.CONDITION_POD_SCHEDULED)
            said = next(((c.reason, c.message, "") for c in stated if c.status == "False"), ("", "", ""))
        return said[0] == reason and not is_news(said[1], message)

    def forget_task(self, uid: str) -> None:
        """Drop what is known of a pod that is gone."""
        self._retry_pauses.forget(f"{kinds.POD.name} {uid}")
        self._retry_pauses.forget(f"{_NOMINATION} {uid}")
        self._retry_pauses.forget(f"{_GATE} {uid}")
        self._paces.forget(f"{kinds.POD.name} {uid}")
        self._ungated.pop(uid, None)
        self._written.pop(uid, None)


def _name(effect: Patch) -> str:
    """Name what a patch is about: pods by their uid, groups by their job's key. The end of a nomination counts by itself."""
    if effect.kind.name == kinds.POD.name and not effect.subresource:
        return f"{_GATE} {effect.uid}"
    if effect.kind.name == kinds.POD.name:
        removal = effect.body["status"].get("nominatedNodeName", "") is None
        return f"{_NOMINATION if removal else effect.kind.name} {effect.uid}"
    return (
        f"{effect.kind.name} {effect.namespace}/{effect.name}"
        if effect.namespace
        else f"{effect.kind.name} {effect.name}"
    )


def _unheeded(job: Job) -> str:
    """Say what a group wishes of the network where nobody heeds it; empty if it wishes nothing."""
    stated = {"spec.networkTopology": job.topology}
    stated |= {f"spec.subGroupPolicy[{policy.name}].networkTopology": policy.topology for policy in job.policies}
    wishes = [f"{field} ({topology.mode or names.TOPOLOGY_HARD})" for field, topology in stated.items() if topology]
    if not wishes:
        return ""
    return f'{", ".join(wishes)} is not heeded: no plugin of the configuration does; list "network-topology-aware"'


def _leaves_reasons(told: tuple[Job, closing.JobReport]) -> bool:
    """Tell whether a group has moved on and there is nothing to say of what it, or a pod of it, waits for or wishes."""
    job, report = told
    has_wishes = job.topology is not None or job.policies
    return report.moved and not (report.warning or report.tasks or has_wishes)


def _scheduling_condition(generation: int, reason: str, message: str, now: int) -> dict[str, Any]:
    """Return the condition that says why a pod has no node; pods of older servers have no generation."""
    return {
        **({"observedGeneration": generation} if generation else {}),
        "type": names.CONDITION_POD_SCHEDULED,
        "status": "False",
        "reason": reason,
        "message": message,
        "lastTransitionTime": timestamp.format_timestamp(now),
    }
