"""ControllerRevisions: the templates that a StatefulSet or DaemonSet had, as `kubectl rollout history` and `undo` read them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from pumice.controllers.workloads import manifests, naming, pods, steps_to

if TYPE_CHECKING:
    from collections.abc import Collection

    from pumice.api import kinds
    from pumice.controllers.queueing.observed import Observed
    from pumice.controllers.queueing.requests import Step

Manifest = dict[str, Any]
LABEL: Final = "controller-revision-hash"
_COPIED: Final = "kubectl.kubernetes.io/last-applied-configuration"


class History(msgspec.Struct):
    """The revisions of a workload, oldest first; `update` names the present template's, `steps` bring about that it is there and the newest."""

    revisions: list[Manifest]
    update: str
    code: str
    steps: list[Step]

    def template(self, name: str) -> Any:
        """Give the template of a revision, None if it is not there."""
        found = next((each for each in self.revisions if manifests.name(each) == name), None)
        template = dict(manifests.mapping(found, "data", "spec", "template"))
        template.pop("$patch", None)
        return template or None


def read(subject: Manifest, kind: kinds.Kind, observed: Observed) -> History:
    """Find the revision of the present template, or ask for it; a template that comes back is the newest again."""
    owned = observed.owned(manifests.CONTROLLER_REVISION, manifests.uid(subject))
    owned.sort(key=lambda each: (manifests.number(each, "revision"), manifests.created(each), manifests.name(each)))
    template = manifests.mapping(subject, "spec", "template")
    data = {"spec": {"template": {**template, "$patch": "replace"}}}
    latest = manifests.number(owned[-1], "revision") if owned else 0
    same = [each for each in owned if each.get("data") == data]
    if same:
        found = same[-1]
        steps = []
        if found is not owned[-1]:
            steps = [steps_to.patch(manifests.CONTROLLER_REVISION, found, {"revision": latest + 1})]
        return History(owned, manifests.name(found), str(manifests.labels(found).get(LABEL, "")), steps)
    code = _free_code(subject, template, {manifests.name(each) for each in owned})
    name = f"{manifests.name(subject)}-{code}"
    labels = {**manifests.mapping(template, "metadata", "labels"), LABEL: code}
    notes = manifests.mapping(subject, "metadata", "annotations")
    manifest: Manifest = {
        "apiVersion": "apps/v1",
        "kind": "ControllerRevision",
        "metadata": {
            "name": name,
            "namespace": subject["metadata"].get("namespace", ""),
            "labels": labels,
            "annotations": {key: value for key, value in notes.items() if key != _COPIED},
            "ownerReferences": [pods.controller_reference(subject, kind)],
        },
        "data": data,
        "revision": latest + 1,
    }
    return History(owned, name, code, [steps_to.create(manifests.CONTROLLER_REVISION, manifest)])


def forgotten(subject: Manifest, history: History, live: Collection[str]) -> list[Step]:
    """Delete the oldest revisions beyond the limit, none that is live."""
    limit = manifests.number(manifests.mapping(subject, "spec"), "revisionHistoryLimit", 10)
    idle = [each for each in history.revisions if manifests.name(each) not in live and not manifests.is_going(each)]
    return [steps_to.delete(manifests.CONTROLLER_REVISION, each) for each in idle[: max(0, len(idle) - limit)]]


def _free_code(subject: Manifest, template: Any, taken: Collection[str]) -> str:
    collisions = 0
    while True:
        code = naming.template_hash(template, collisions)
        if f"{manifests.name(subject)}-{code}" not in taken:
            return code
        collisions += 1
