"""Groups of Kubernetes' own that are being deleted stay until none of their pods is left that has not finished."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pumice.api import kinds, names
from pumice.controllers.queueing import requests
from pumice.controllers.workloads import manifests, steps_to

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pumice.controllers.queueing.observed import Observed
    from pumice.controllers.queueing.requests import Moment, Reconciled

_FINISHED: Final = (names.PHASE_SUCCEEDED, names.PHASE_FAILED)


class ProtectedGroups:
    """Takes the finalizer off groups that nobody needs any more."""

    kind = kinds.NATIVE_POD_GROUP
    watched = (kinds.POD,)

    def concerns(self, kind: kinds.Kind, manifest: Mapping[str, Any], observed: Observed) -> Iterable[tuple[str, str]]:
        """Name the group of a pod, if that is going."""
        del kind
        named = _group_name(manifest)
        namespace = manifest["metadata"].get("namespace", "")
        group = observed.find(self.kind, namespace, named) if named else None
        return [(namespace, named)] if group is not None and manifests.is_going(group) else []

    def reconcile(self, namespace: str, name: str, observed: Observed, moment: Moment) -> Reconciled:
        """Let a group go that is being deleted and has no pod left that has not finished."""
        del moment
        group = observed.find(self.kind, namespace, name)
        if group is None or not manifests.is_going(group):
            return requests.Reconciled()
        finalizers = group["metadata"].get("finalizers") or []
        if names.GROUP_PROTECTION not in finalizers or any(
            _group_name(pod) == name and manifests.mapping(pod, "status").get("phase") not in _FINISHED
            for pod in observed.inside(kinds.POD, namespace)
        ):
            return requests.Reconciled()
        left = [each for each in finalizers if each != names.GROUP_PROTECTION]
        step = steps_to.patch(self.kind, group, {"metadata": {"finalizers": left or None}})
        return requests.Reconciled(steps=[step])


def _group_name(pod: Mapping[str, Any]) -> str:
    return str(manifests.mapping(pod, "spec", "schedulingGroup").get("podGroupName") or "")
