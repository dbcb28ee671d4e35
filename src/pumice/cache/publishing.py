"""What a cycle found out becomes patches and events, written only where it is news."""

from __future__ import annotations

import functools
import itertools
from typing import TYPE_CHECKING, Literal

from msgspec import structs

from pumice.api import kinds, names, scheduling
from pumice.cache import mirror, queues, reflector, renewals, retry_pauses, shadows, write_paces
from pumice.cache.effects import Outcome, Patch
from pumice.cache.group_drafts import GroupDraft, GroupDrafts
from pumice.cache.native_statuses import NativeStatuses
from pumice.cache.pod_statuses import PodStatuses
from pumice.framework import closing, group_conditions
from pumice.framework.reason_keys import READY, is_news, reason_key
from pumice.model import native_groups
from pumice.model.statuses import Status

if TYPE_CHECKING:
    from pumice.cache.mirror import Mirror
    from pumice.framework.session import Session
    from pumice.model.job import Job

WAITING = frozenset({Status.PENDING, Status.PIPELINED})


class Publisher:
    """Writes statuses of groups and queues; those of pods and of Kubernetes' own groups are left to others."""

    def __init__(self, cache: Mirror) -> None:
        self._cache = cache
        self._cluster = cache.cluster
        self._writing: dict[str, int] = {}
        self._warned: dict[str, str] = {}
        self._noticed: dict[str, dict[str, None]] = {}  # why groups were not let in, by job
        self._retry_pauses = retry_pauses.RetryPauses()
        self._paces = write_paces.WritePaces(cache.options.reason_patience)
        self._renewals = renewals.Renewals()
        self.queue_kinds: dict[str, kinds.Kind] = {}
        self._kinds: dict[str, kinds.Kind] = {}  # of groups that were read in another version of the kind
        self.native = NativeStatuses(cache)
        self.pods = PodStatuses(cache, self._paces)

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
        reports, drafts = closing.report(session, pod_reasons=self._cache.options.pod_reasons), GroupDrafts()
        for leaves, run in itertools.groupby(reports, _leaves_reasons):
            if leaves:
                self._publish_moved(list(run), drafts, now)
                continue
            for job, report in run:
                self._publish_job(job, report, drafts, now)
                self._renew(job, report, session.findings.conditions.get(job.key, ()), now)
                wishes = (job.topology is not None or job.policies) and not job.native
                if not heeded and wishes and (idle := _unheeded(job)):
                    self._tell(job, "Warning", names.EVENT_NO_EFFECT, idle)
                for entry in report.tasks:
                    self.pods.publish(entry, now)
        if any(report.entered for _, report in reports):
            # Plugins count a group by its phase, so one that has entered another may make room for others.
            session.progressed = True
        self._ask_for_numbers(session.findings.figures, now)
        self._notice(session.findings.notices)
        self._warn(session.findings.warnings)
        for queue, reason, message in session.findings.queue_warnings:
            if queue.object is not None:
                kind = self.queue_kinds.get(queue.name, kinds.QUEUE)
                self._cache.note(kind, queue.object.metadata, "Warning", reason, message, once=True)
        for task in session.reservations.ended(self._cluster):
            session.progressed = True
            self.pods.clear_nomination(task)
        self._write_queues(session.started)

    def catch_up(self, now: int) -> None:
        """Write the queues that had to wait for their turn; no cycle is needed for that."""
        if self._paces.queues_are_due(now):
            self._write_queues(now)

    def _write_queues(self, now: int) -> None:
        if not self._cache.options.queue_statuses:
            return
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
        elif self._give_reasons(job, group, report, now) or self._paces.is_owed(job.key):
            self._cluster.set_status(job, report.status)
            if job.native:
                self.native.publish(job, report, now)
            else:
                self._write_group(job, group, drafts.of(job, report), now)
        if report.entered:
            self._noticed.pop(job.key, None)

    def _renew(self, job: Job, report: closing.JobReport, given: closing.Conditions, now: int) -> None:
        """Write the numbers of the reason why a group waits anew, if they are others, nothing else is to be written, and it is time; no event tells of it."""
        group = job.group
        if (
            not (given and self._cache.options.renews_numbers)
            or report.changed
            or group is None
            or shadows.is_shadow(group)
        ):
            return
        status = group_conditions.renewed(job.status, given)
        if status is None or self._paces.is_owed(job.key):
            return
        if not (self._renewals.may_write(job.key) and self._paces.may_renew(f"{kinds.POD_GROUP.name} {job.key}", now)):
            self._renewals.ask(job.key, now)
            return
        fresh = structs.replace(report, status=status)
        self._cluster.set_status(job, status)
        if job.native:
            self.native.publish(job, fresh, now, exactly=True)
        else:
            self._write_group(job, group, GroupDrafts().of(job, fresh), now)

    def _ask_for_numbers(self, jobs: list[Job], now: int) -> None:
        """Have groups and their pods that wait reported with the numbers of a later moment; the time of those who were due is over."""
        self._renewals.is_over()
        self.pods.renewals.is_over()
        for job in jobs:
            self._renewals.ask(job.key, now)
            for uid in job.pending if self._cache.options.pod_reasons else ():
                self.pods.renewals.ask(uid, now)

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

    def _give_reasons(self, job: Job, group: scheduling.PodGroup, report: closing.JobReport, now: int) -> bool:
        """Tell of a group that waits, and whether its status may be written: always if its phase or counts changed, else as often as reasons may be given."""
        name, moved = f"{kinds.POD_GROUP.name} {job.key}", report.moved
        news = self._is_warning_new(job, report)
        wanted = news or (report.changed and not moved)
        stood = not wanted or self._paces.has_stood(name, now)
        if news and stood:
            kind = self.kind(job.key)
            self._cache.note(kind, group.metadata, "Warning", names.EVENT_UNSCHEDULABLE, report.warning)
            self._warned[job.key] = report.warning
        may_write = report.changed and (moved or self._paces.may_give_reason(name, now))
        if stood and may_write == report.changed:
            self._paces.withdraw(name)
        return may_write

    def _is_warning_new(self, job: Job, report: closing.JobReport) -> bool:
        """Tell whether a group waits for another reason than it was last told; after a restart, than the one its condition gives."""
        if not report.warning:
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
        if effect.kind.name == kinds.POD.name:
            self.pods.settle(effect, outcome, now)
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
                mirror.report_again(self._cache, job)
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
                mirror.report_again(self._cache, job)
        tasks = (self._cluster.tasks.get(uid) for uid in self.pods.renewals.due(now))
        jobs = [self._cluster.jobs.get(key) for key in self._renewals.due(now)]
        for job in dict.fromkeys([*jobs, *(task.job for task in tasks if task is not None)]):
            if job is not None:
                mirror.report_again(self._cache, job)
        for name in self._retry_pauses.due(now):
            kind, _, key = name.partition(" ")
            if kind == kinds.QUEUE.name:
                self._miss_queue(key)
            else:
                self._miss_job(key)
        self.pods.review(now)

    def next_wake(self) -> int | None:
        """Return when the next pause is over."""
        parts = (self._retry_pauses, self._paces, self._renewals, self.native, self.pods, self.pods.renewals)
        times = (part.next_wake() for part in parts)
        return min((time for time in times if time is not None), default=None)

    def _miss_queue(self, name: str) -> None:
        if (queue := self._cluster.queues.get(name)) is not None and queue.object is not None:
            # As it was last read: zeros that never arrived must be written, too.
            queue.status = queue.object.status
            self._cluster.changed += 1

    def _miss_job(self, key: str) -> None:
        job = self._cluster.jobs.get(key)
        if job is not None and job.group is not None and not self.is_writing(key):
            self._cluster.set_status(job, job.group.status)
            mirror.report_again(self._cache, job)

    def forget_job(self, key: str) -> None:
        """Drop what is known of a group that is gone."""
        self._retry_pauses.forget(f"{kinds.POD_GROUP.name} {key}")
        self._paces.forget(f"{kinds.POD_GROUP.name} {key}")
        self._paces.forget_status(key)
        self._renewals.forget(key)
        self._writing.pop(key, None)
        self._warned.pop(key, None)
        self._noticed.pop(key, None)
        self._kinds.pop(key, None)

    def forget_queue(self, name: str) -> None:
        """Drop what is known of a queue that is gone."""
        self._retry_pauses.forget(f"{kinds.QUEUE.name} {name}")
        self._paces.forget_queue(name)
        self.queue_kinds.pop(name, None)


def _name(effect: Patch) -> str:
    """Name what a patch is about: groups by their job's key, queues by their name."""
    where = f"{effect.namespace}/{effect.name}" if effect.namespace else effect.name
    return f"{effect.kind.name} {where}"


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
