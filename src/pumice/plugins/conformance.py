"""conformance: system-critical pods are never evicted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pumice.api import names
from pumice.framework.plugin import Plugin
from pumice.framework.points import Reads

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pumice.framework.session import Session
    from pumice.model.task import Task

SWITCHES = {"preempt": "enablePreemptable", "reclaim": "enableReclaimable"}
CRITICAL_CLASSES = frozenset({names.SYSTEM_CLUSTER_CRITICAL, names.SYSTEM_NODE_CRITICAL})


class Conformance(Plugin):
    """Protect pods of namespace `kube-system` and of the classes `system-cluster-critical` and `system-node-critical` from eviction."""

    name = "conformance"
    points = frozenset({"Preemptable", "Reclaimable", "UnifiedEvictable", "Protection"})

    def open(self, session: Session) -> None:
        """Register the protection wherever victims are chosen."""
        session.preemptable.add(_unprotected, reads=Reads(0))
        session.reclaimable.add(_unprotected, reads=Reads(0))
        session.unified_evictable.add(_unprotected, reads=Reads(0))
        session.protection.add(self.protection, reads=Reads.TASK)

    def protection(self, _claimant: Task | None, victim: Task, action: str) -> str | None:
        """Protect critical pods from every eviction, unless the point of that action is switched off."""
        switch = SWITCHES.get(action)
        if not is_protected(victim) or (switch is not None and not self.switches[switch]):
            return None
        return f"{victim.key} is critical to the system"


def is_protected(task: Task) -> bool:
    """Tell whether a pod is critical to the system."""
    return task.namespace == names.SYSTEM_NAMESPACE or task.pod.spec.priority_class_name in CRITICAL_CLASSES


def _unprotected(_claimant: object, candidates: Sequence[Task]) -> list[Task]:
    return [task for task in candidates if not is_protected(task)]
