"""What is written about pods: why they have no node yet, which one they are to get, and that their gate is taken off; each only where it is news."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from pumice.api import kinds, names, printable, timestamp
from pumice.cache import mirror, renewals, retry_pauses
from pumice.cache.effects import Patch
from pumice.framework.reason_keys import has_other_numbers, is_news

if TYPE_CHECKING:
    from pumice.api import core
    from pumice.cache.effects import Outcome
    from pumice.cache.mirror import Mirror
    from pumice.cache.write_paces import WritePaces
    from pumice.framework import closing
    from pumice.model.task import Task

_NOMINATION: Final = "nomination"
_GATE: Final = "gate"


class PodStatuses:
    """Writes statuses of pods."""

    def __init__(self, cache: Mirror, paces: WritePaces) -> None:
        self._cache = cache
        self._cluster = cache.cluster
        self._paces = paces
        self.renewals = renewals.Renewals()
        self._written: dict[str, tuple[str, str, str]] = {}
        self._ungated: dict[str, None] = {}
        self._taken_off: dict[str, str] = {}  # nominations of which the watch may still tell, by the uid of their pod
        self._retry_pauses = retry_pauses.RetryPauses()

    def publish(self, entry: closing.TaskReport, now: int) -> None:
        """Write why a pod waits, or which node it is to get, if that is news and may be given."""
        task = entry.task
        nominated = entry.nominated if entry.nominated and entry.nominated != task.nominated else ""
        name = f"{kinds.POD.name} {task.uid}"
        if not nominated and self._already_says(task, entry.reason, entry.message):
            self._paces.withdraw(name)
            self._renew(task, entry.reason, entry.message, now)
            return
        if not nominated and not self._paces.may_give_reason(name, now):
            return
        self._write(task, entry.reason, entry.message, nominated, now)

    def _renew(self, task: Task, reason: str, message: str, now: int) -> None:
        """Write the numbers of the reason why a pod waits anew, if they are others and it is time; no event tells of it."""
        if not self._cache.options.renews_numbers or not has_other_numbers(self._said(task)[1], message):
            return
        if self.renewals.may_write(task.uid) and self._paces.may_renew(f"{kinds.POD.name} {task.uid}", now):
            self._written[task.uid] = (reason, message, self._said(task)[2])
            condition = _scheduling_condition(task.pod.metadata.generation, reason, message)
            self._patch_status(task, {"conditions": [condition]})  # with the time since when it waits
        else:
            self.renewals.ask(task.uid, now)

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
        condition = _scheduling_condition(task.pod.metadata.generation, reason, message)
        condition["lastTransitionTime"] = timestamp.format_timestamp(now)
        status: dict[str, Any] = {"conditions": [condition]}
        if nominated:
            status["nominatedNodeName"] = nominated
            task.nominated = nominated
            self._taken_off.pop(task.uid, None)
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
            self._taken_off.pop(task.uid, None)
            self._patch_status(task, {"nominatedNodeName": node})

    def as_written(self, pod: core.Pod) -> core.Pod:
        """Give a pod that a watch tells of as it is after what was written: without a nomination that was taken off."""
        node = self._taken_off.get(pod.metadata.uid)
        if node is None:
            return pod
        if pod.status.nominated_node_name != node:
            del self._taken_off[pod.metadata.uid]
            return pod
        return msgspec.structs.replace(pod, status=msgspec.structs.replace(pod.status, nominated_node_name=""))

    def clear_nomination(self, task: Task) -> None:
        """Take a nomination off a pod; the room is no longer held for it."""
        if node := task.nominated or task.pod.status.nominated_node_name:
            self._taken_off[task.uid] = node
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
        said = self._said(task)
        return said[0] == reason and not is_news(said[1], message)

    def _said(self, task: Task) -> tuple[str, str, str]:
        """Return the reason and message that a pod gives, as written last, else as read, and the node it was nominated to with them."""
        said = self._written.get(task.uid)
        if said is None:
            stated = (c for c in task.pod.status.conditions if c.type == names.CONDITION_POD_SCHEDULED)
            said = next(((c.reason, c.message, "") for c in stated if c.status == "False"), ("", "", ""))
        return said

    # -- answers -----------------------------------------------------------------------------------------------

    def settle(self, effect: Patch, outcome: Outcome, now: int) -> None:
        """Take the answer to a patch; one that failed is found to be missing after a pause."""
        name = _name(effect)
        if outcome.failure is None or effect.uid not in self._cluster.tasks:
            self._retry_pauses.forget(name)
        else:
            self._retry_pauses.failed(name, outcome.failure.code, now)

    def review(self, now: int) -> None:
        """Forget what was written as far as it never arrived and its pause is over."""
        for name in self._retry_pauses.due(now):
            kind, _, uid = name.partition(" ")
            if kind == _NOMINATION:
                self._miss_removal(uid)
            elif kind == _GATE:
                self._ungated.pop(uid, None)
                self._cluster.changed += 1
            else:
                self._miss_task(uid)

    def next_wake(self) -> int | None:
        """Return when the next pause is over."""
        return self._retry_pauses.next_wake()

    def _miss_task(self, uid: str) -> None:
        written = self._written.pop(uid, None)
        task = self._cluster.tasks.get(uid)
        if task is None:
            return
        if written is not None and written[2]:
            task.nominated = task.pod.status.nominated_node_name
        if task.job is not None:
            mirror.report_again(self._cache, task.job)

    def _miss_removal(self, uid: str) -> None:
        """Take a nomination off that is still on its pod, unless there is another by now."""
        task = self._cluster.tasks.get(uid)
        if task is not None and not task.nominated and (task.pod.status.nominated_node_name or uid in self._taken_off):
            self.clear_nomination(task)

    def forget(self, uid: str) -> None:
        """Drop what is known of a pod that is gone."""
        self._retry_pauses.forget(f"{kinds.POD.name} {uid}")
        self._retry_pauses.forget(f"{_NOMINATION} {uid}")
        self._retry_pauses.forget(f"{_GATE} {uid}")
        self._paces.forget(f"{kinds.POD.name} {uid}")
        self.renewals.forget(uid)
        self._ungated.pop(uid, None)
        self._taken_off.pop(uid, None)
        self._written.pop(uid, None)


def _name(effect: Patch) -> str:
    """Name what a patch is about; the gate of a pod and the end of a nomination count by themselves."""
    if not effect.subresource:
        return f"{_GATE} {effect.uid}"
    removal = effect.body["status"].get("nominatedNodeName", "") is None
    return f"{_NOMINATION if removal else kinds.POD.name} {effect.uid}"


def _scheduling_condition(generation: int, reason: str, message: str) -> dict[str, Any]:
    """Return the condition that says why a pod has no node; pods of older servers have no generation."""
    return {
        **({"observedGeneration": generation} if generation else {}),
        "type": names.CONDITION_POD_SCHEDULED,
        "status": "False",
        "reason": reason,
        "message": message,
    }
