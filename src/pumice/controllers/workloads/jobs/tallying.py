"""What has become of a Job's pods, each counted once.

A pod carries a finalizer until it is counted. It is counted in three writes that may each be lost and repeated: its uid enters the status
(`uncountedTerminatedPods`), its finalizer goes, its uid leaves the status and the count grows. An index that succeeded is in the status by itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pumice.api import kinds, names
from pumice.controllers.workloads import manifests, pods, steps_to
from pumice.controllers.workloads.jobs import failure_policy, indexes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pumice.controllers.queueing.requests import Step

Manifest = dict[str, Any]
FINALIZER: Final = "batch.kubernetes.io/job-tracking"
INDEX: Final = "batch.kubernetes.io/job-completion-index"


class Tally:
    """The pods of a Job, told apart; `succeeded` and `failed` are the counts as they will be once all is written.

    `fatal` says which failure ends the Job, by its policy; those that the policy ignores are not counted.
    """

    def __init__(self, job: Manifest, owned: Sequence[Manifest]) -> None:
        spec, status = manifests.mapping(job, "spec"), manifests.mapping(job, "status")
        self.job = job
        self.pods = list(owned)
        self.indexed = spec.get("completionMode") == "Indexed"
        self.completions: int | None = spec.get("completions") if isinstance(spec.get("completions"), int) else None
        self.only_failed = spec.get("podReplacementPolicy") == "Failed"
        self.active = [pod for pod in owned if pods.is_active(pod)]
        self.terminating = [pod for pod in owned if manifests.is_going(pod) and not pods.is_finished(pod)]
        uncounted = manifests.mapping(status, "uncountedTerminatedPods")
        self._tracked = {manifests.uid(pod): pod for pod in owned if is_tracked(pod)}
        self._good = [str(each) for each in manifests.items(uncounted, "succeeded")]
        self._bad = [str(each) for each in manifests.items(uncounted, "failed")]
        self.completed = indexes.parse(status.get("completedIndexes"), self.completions or 0)
        self._count(status)

    def _count(self, status: Mapping[str, Any]) -> None:
        ended_well = [pod for pod in self._tracked.values() if pods.phase(pod) == names.PHASE_SUCCEEDED]
        failed = [(pod, failure_policy.rule(self.job, pod)) for pod in self._tracked.values() if self.is_failed(pod)]
        ended_badly = [pod for pod, ruling in failed if ruling.action != failure_policy.IGNORE]
        self._ignored = {manifests.uid(pod): None for pod, ruling in failed if ruling.action == failure_policy.IGNORE}
        self.fatal = next((ruling.message for _, ruling in failed if ruling.action == failure_policy.FAIL_JOB), "")
        bad = {**dict.fromkeys(self._bad), **{manifests.uid(pod): None for pod in ended_badly}}
        self.failed = manifests.number(status, "failed") + len(bad)
        self.new_failures = [pod for pod in ended_badly if manifests.uid(pod) not in self._bad]
        gone = sum(each not in self._tracked for each in self._bad)
        self.counted_failed = manifests.number(status, "failed") + gone
        self.left_failed = [each for each in bad if each in self._tracked]
        if self.indexed:
            before, places = len(self.completed), map(index, ended_well)
            self.completed = self.completed.with_others(
                place for place in places if place is not None and place < (self.completions or 0)
            )
            self.succeeded = self.counted_succeeded = len(self.completed)
            self.left_succeeded: list[str] = []
            self.new_successes = len(self.completed) - before
            return
        good = {**dict.fromkeys(self._good), **{manifests.uid(pod): None for pod in ended_well}}
        self.succeeded = manifests.number(status, "succeeded") + len(good)
        self.counted_succeeded = manifests.number(status, "succeeded") + sum(
            each not in self._tracked for each in self._good
        )
        self.left_succeeded = [each for each in good if each in self._tracked]
        self.new_successes = len(good) - len(self._good)

    def is_failed(self, pod: Mapping[str, Any]) -> bool:
        """Tell whether a pod counts as failed: it ended so, or somebody has deleted it before it could end."""
        if pods.phase(pod) == names.PHASE_FAILED:
            return True
        deleted = manifests.is_going(pod) and pods.phase(pod) != names.PHASE_SUCCEEDED
        return deleted and not self.only_failed

    def written(self) -> Manifest:
        """Give the part of the status that counts."""
        uncounted = {"succeeded": self.left_succeeded, "failed": self.left_failed}
        found: Manifest = {"uncountedTerminatedPods": {key: value for key, value in uncounted.items() if value}}
        found |= {"succeeded": self.counted_succeeded} if self.counted_succeeded else {}
        found |= {"failed": self.counted_failed} if self.counted_failed else {}
        found |= {"completedIndexes": indexes.write(self.completed)} if self.indexed and self.completed else {}
        return found

    def released(self, *, over: bool) -> list[Step]:
        """Take the finalizer off the pods that the status, once written, accounts for; all of them if the Job is over."""
        done = {*self.left_succeeded, *self.left_failed, *self._ignored}
        found: list[Step] = []
        for uid, pod in self._tracked.items():
            counted = self.indexed and pods.phase(pod) == names.PHASE_SUCCEEDED
            if uid in done or counted or (over and not pods.is_active(pod)):
                found.append(release(pod))
        return found


def is_tracked(pod: Mapping[str, Any]) -> bool:
    """Tell whether a pod is not counted yet."""
    return FINALIZER in manifests.items(pod, "metadata", "finalizers")


def release(pod: Mapping[str, Any]) -> Step:
    """Take the finalizer off a pod."""
    left = [each for each in manifests.items(pod, "metadata", "finalizers") if each != FINALIZER]
    return steps_to.patch(kinds.POD, pod, {"metadata": {"finalizers": left or None}}, exact=True)


def index(pod: Mapping[str, Any]) -> int | None:
    """Give the completion index of a pod."""
    text = manifests.mapping(pod, "metadata", "annotations").get(INDEX)
    return int(text) if isinstance(text, str) and text.isdecimal() and len(text) < 10 else None
