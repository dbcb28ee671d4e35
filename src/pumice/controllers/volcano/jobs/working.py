"""A Job at work: everything it needs is brought about, in the order in which each thing needs the other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from pumice.api import duration, kinds, names
from pumice.cache import effects
from pumice.controllers.queueing import requests
from pumice.controllers.volcano.job_plugins import registry
from pumice.controllers.volcano.job_plugins.protocol import PluginError
from pumice.controllers.volcano.jobs import (
    beside,
    pod_groups,
    pod_making,
    policies,
    reading,
    states,
    statuses,
    syncing,
    volumes,
)
from pumice.controllers.workloads import manifests, steps_to

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pumice.controllers.queueing.observed import Observed
    from pumice.controllers.queueing.requests import Reconciled, Step
    from pumice.controllers.volcano.job_plugins.protocol import JobPlugin
    from pumice.controllers.volcano.job_plugins.registry import Catalog
    from pumice.controllers.volcano.jobs.members import Members
    from pumice.controllers.volcano.jobs.policies import Answer
    from pumice.controllers.volcano.jobs.reading import Job

    Write = Callable[[statuses.Said], tuple[list[Step], int | None]]

Manifest = dict[str, Any]
MOST_PODS: Final = 200_000  # more than any cluster runs
_NO_CLAIM: Final = "PVCError"
_NOT_MADE: Final = "FailedCreate"
_READ_AT_ONCE: Final = 10
_EXECUTE: Final = "ExecuteAction"


def waits_for_claims(manifest: Mapping[str, Any]) -> bool:
    """Tell whether a Job waits for volume claims that somebody else has to make."""
    return manifests.mapping(manifest, "status", "state").get("reason") == _NO_CLAIM


class Work:
    """One look at a Job that is Pending or Running."""

    def __init__(self, job: Job, found: Members, group: Manifest | None, observed: Observed, catalog: Catalog) -> None:
        self._job, self._found, self._group = job, found, group
        self._observed, self._catalog = observed, catalog

    def next_steps(self, phase: str, write: Write, later: list[Answer]) -> Reconciled:
        """Give what is to be done now, where `phase` is what the Job's pods make of it."""
        job = self._job
        queue = self._observed.find(kinds.QUEUE, "", job.queue)
        if queue is None:
            return self._stuck("QueueNotFound", f"queue {job.queue} does not exist", write)
        if job.replicas > MOST_PODS:
            message = f"spec.tasks: {job.replicas} replicas are more than the {MOST_PODS} that a Job may have"
            return self._stuck(_NOT_MADE, message, write)
        try:
            plugins = self._plugins()
            wanted = beside.keep(job, plugins, self._observed)
        except PluginError as error:
            return self._stuck("PluginError", f"Execute plugin when job add failed, err: {error}", write)
        forwarded = bool(manifests.items(queue, "spec", "extendClusters"))
        if forwarded and not job.annotation(names.JOB_FORWARDING):
            body = {"metadata": {"annotations": {names.JOB_FORWARDING: "true"}}}
            return requests.Reconciled(steps=[steps_to.patch(kinds.JOB, job.manifest, body)])
        claims = volumes.look(job, self._observed) if job.phase != reading.RUNNING else volumes.Claims()
        if claims.naming:
            return requests.Reconciled(steps=claims.naming)
        if claims.missing:
            return self._waiting(claims, write)
        steps = wanted + claims.steps + pod_groups.keep(job, self._group, self._observed)
        staffing = self._staffing(plugins, forwarded=forwarded)
        said = self._said(phase, {**self._kept(), **beside.marks(job), **claims.controlled})
        if staffing.taken:
            said = _refused(said, f"pod {staffing.taken[0]}: another pod has that name")
        written, again = write(said)
        plan = self._planned(steps, staffing, self._announced(written, later), phase, again)
        plan.when_refused = lambda message: self._announced(write(_refused(said, message))[0], later)
        return plan

    def _plugins(self) -> list[JobPlugin]:
        kept = self._job.asked.kept
        if "plugins" not in kept:
            kept["plugins"] = self._catalog.named(self._job.plugins)
        found: list[JobPlugin] = kept["plugins"]
        return found

    def _unread(self) -> list[str]:
        """Say which arguments plugins cannot read, when the Job begins."""
        kept = self._job.asked.kept
        if self._job.phase not in ("", reading.PENDING):
            return []
        if "unread" not in kept:
            said = (registry.problem(name, arguments) for name, arguments in self._job.plugins.items())
            kept["unread"] = [each for each in said if each]
        found: list[str] = kept["unread"]
        return found

    def _planned(
        self, steps: list[Step], staffing: syncing.Staffing, written: list[Step], phase: str, again: int | None
    ) -> Reconciled:
        moving = bool(staffing.deletions or staffing.creations)
        # Counts would be old before they are written: those who come and go are looked at again. That a new Job is Pending can wait for them.
        now = written if not moving or phase != (self._job.phase or reading.PENDING) else []
        # Not all pods of others are watched everywhere: whether they are still there has to be read.
        reads = [self._read(name) for name in staffing.taken[:_READ_AT_ONCE]]
        unread = [f"{each}; it goes on without" for each in self._unread()]
        return requests.Reconciled(
            steps=steps + reads + staffing.deletions + staffing.creations + now,
            again=again,
            size=0 if staffing.is_partial else len(self._found.all),  # nobody rests before all are made
            stuck=f"{', '.join(staffing.taken)}: the name is taken" if staffing.taken else "",
            notes=[
                ("Warning", _NOT_MADE, f"Error creating pod {each}: another pod has that name")
                for each in staffing.taken
            ]
            + [("Warning", "PluginError", each) for each in unread],
        )

    def _read(self, pod: str) -> Step:
        return requests.Step(request=effects.Read(kind=kinds.POD, namespace=self._job.namespace, name=pod))

    def _staffing(self, plugins: list[JobPlugin], *, forwarded: bool) -> syncing.Staffing:
        group = self._group
        if group is None or not pod_groups.lets_in(group):
            return syncing.Staffing()
        maker = pod_making.PodMaker(self._job, manifests.name(group), plugins, forwarded=forwarded)
        return syncing.staff(self._job, self._found, maker, self._observed)

    # ---- what the status says

    def _stuck(self, reason: str, message: str, write: Write) -> Reconciled:
        """Say what keeps a Job from being served, so that nobody takes it for one that no controller has seen."""
        said = statuses.unchanged(self._job, phase=self._job.phase or reading.PENDING, reason=reason, message=message)
        return requests.Reconciled(steps=write(said)[0], stuck=message, notes=[("Warning", reason, message)])

    def _waiting(self, claims: volumes.Claims, write: Write) -> Reconciled:
        """Say that claims are missing, and wait for them."""
        listed = ", ".join(claims.missing)
        message = f"pvc {listed} is not found, the job will be in the Pending state until the PVC is created"
        said = statuses.unchanged(self._job, phase=reading.PENDING, reason=_NO_CLAIM, message=message)
        steps, again = write(said)
        return requests.Reconciled(steps=steps, again=again, notes=[("Warning", _NO_CLAIM, message)])

    def _said(self, phase: str, controlled: dict[str, str]) -> statuses.Said:
        job, found = self._job, self._found
        if not states.is_ending(phase):
            message = pod_groups.cause(self._group, job.message) if phase == reading.PENDING else ""
            reason = statuses.WAITS if message else ""
            return statuses.unchanged(job, phase=phase, reason=reason, message=message, controlled=controlled)
        left = {key: text for key, text in controlled.items() if not key.startswith(beside.PREFIX)}
        reason = message = ""
        if phase == reading.FAILED:
            succeeded, failed = found.count(names.PHASE_SUCCEEDED), found.count(names.PHASE_FAILED)
            least = f"minAvailable is {job.min_available}"
            least += f", minSuccess {job.min_success}" if job.min_success is not None else ""
            reason = "NotEnoughSucceeded"
            message = f"{succeeded} of {job.replicas} pods succeeded, {failed} failed; {least}"
        return statuses.unchanged(
            job, phase=phase, reason=reason, message=message, version=job.version + 1, controlled=left
        )

    def _kept(self) -> dict[str, str]:
        return {key: text for key, text in self._job.controlled.items() if not key.startswith(beside.PREFIX)}

    def _announced(self, written: list[Step], later: list[Answer]) -> list[Step]:
        """Tell which policies wait, when the status first counts what they are about."""
        news = [each for each in later if self._is_news(each)]
        if not written or not news:
            return written
        span = duration.format_duration(news[0].delay or 0)
        said = (_EXECUTE, f"Execute action {news[0].action} after {span}")
        return [msgspec.structs.replace(written[0], said=said), *written[1:]]

    def _is_news(self, answer: Answer) -> bool:
        fields = {policies.POD_PENDING: "pending", policies.POD_FAILED: "failed", policies.TASK_COMPLETED: "succeeded"}
        field = fields.get(answer.occurrence.event, "pending")
        return self._found.count(field.capitalize()) > manifests.number(self._job.status, field)


def _refused(said: statuses.Said, message: str) -> statuses.Said:
    """Give what is said of a Job that something was refused which it needs; of one that ends, why it does."""
    return said if states.is_ending(said.phase) else msgspec.structs.replace(said, reason=_NOT_MADE, message=message)
