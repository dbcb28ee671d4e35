"""How objects are deleted: preconditions, grace, finalizers, and what is to become of those they own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pumice.api import duration, kinds
from pumice.apiserver import statuses, versions
from pumice.apiserver.webhooks.asking import at_once
from pumice.apiserver.webhooks.consulting import Asked
from pumice.sim import deletion, structure
from pumice.sim.identity import Key

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pumice.apiserver.requests import Options, Target
    from pumice.apiserver.volcano_rules import VolcanoRules
    from pumice.apiserver.webhooks.asking import Asking
    from pumice.apiserver.webhooks.consulting import Consulting
    from pumice.sim.store import ObjectStore

Document = dict[str, Any]
ORPHAN: Final = "orphan"
FOREGROUND: Final = "foregroundDeletion"
_POLICIES: Final = ("Foreground", "Background", "Orphan")
_GIVEN_BACK: Final = frozenset(
    {
        "PersistentVolume",
        "PersistentVolumeClaim",
        "Pod",
        "PodTemplate",
        "ReplicationController",
        "ResourceQuota",
        "Service",
        "ServiceAccount",
    }
)
_SYSTEM: Final = frozenset({"default", "kube-system", "kube-public"})


class Deleting:
    """Deletes objects; who depends on them is left to the garbage collector, who is told by finalizers."""

    def __init__(self, store: ObjectStore, consulting: Consulting) -> None:
        self._store = store
        self._consulting = consulting
        self.volcano_rules: VolcanoRules | None = None

    def delete(self, target: Target, options: Mapping[str, Any], *, dry_run: bool) -> Mapping[str, Any]:
        """Delete an object that no webhook is asked about."""
        return at_once(self.deleting(target, options, dry_run=dry_run, asking=None, warnings=[]))

    def deleting(
        self,
        target: Target,
        options: Mapping[str, Any],
        *,
        dry_run: bool,
        asking: Options | None,
        warnings: list[str],
    ) -> Asking[Mapping[str, Any]]:
        """Delete an object and give what its deletion answers: the object while it is still there, else a Status."""
        resource = target.resource
        key = Key(resource.kind, target.namespace, target.name)
        old = self._checked(target, options)
        if asking is not None and asking.asks and self._consulting.concerns("DELETE", target):
            yield from self._ask(target, old, options, asking, warnings)
            old = self._checked(target, options)
        policy = policy_of(options)
        grace = grace_of(options)
        if key.kind is kinds.NAMESPACE and key.name in _SYSTEM:
            raise statuses.forbidden("namespaces", "", key.name, "this namespace may not be deleted")
        if self.volcano_rules is not None and not deletion.is_terminating(old):
            self.volcano_rules.check("DELETE", resource, (key.namespace, key.name), old=old)
        if not dry_run:
            self._mark(key, old, policy, options)
            self._delete(key, grace)
        left = self._store.find(key)
        if left is not None and not dry_run:
            return left
        if resource.kind_name not in _GIVEN_BACK:
            return gone(target, old)
        return {**old, "metadata": {**old["metadata"], "deletionGracePeriodSeconds": 0}}

    def _checked(self, target: Target, options: Mapping[str, Any]) -> Mapping[str, Any]:
        """Give the object that is meant, or refuse."""
        resource = target.resource
        old = self._store.find(Key(resource.kind, target.namespace, target.name))
        if old is None:
            raise statuses.not_found(resource.plural, resource.group, target.name)
        check_preconditions(target, old, structure.mapping(options, "preconditions"))
        return old

    def _ask(
        self, target: Target, old: Mapping[str, Any], stated: Mapping[str, Any], asking: Options, warnings: list[str]
    ) -> Asking[None]:
        """Let webhooks judge a deletion; there is nothing that they could change."""
        asked = Asked(
            operation="DELETE",
            target=target,
            name=target.name,
            old=versions.told(old, target.resource),
            user=asking.user,
            options={**stated, "kind": "DeleteOptions", "apiVersion": "meta.k8s.io/v1"},
            dry_run=asking.dry_run,
        )
        yield from self._consulting.changed(asked, warnings)
        yield from self._consulting.judged(asked, warnings)

    def _mark(self, key: Key, old: Mapping[str, Any], policy: str, options: Mapping[str, Any]) -> None:
        """Tell the garbage collector what to do with dependents, through the finalizer of the policy."""
        wanted = {"Orphan": ORPHAN, "Foreground": FOREGROUND}.get(policy, "")
        if not policy and key.kind is kinds.BATCH_JOB and "propagationPolicy" not in options:
            wanted = ORPHAN  # as batch/v1 has it for whoever says nothing
        present = old["metadata"].get("finalizers") or []
        kept = [each for each in present if each not in (ORPHAN, FOREGROUND)] if policy or wanted else list(present)
        finalizers = [*kept, wanted] if wanted else kept
        if finalizers != present:
            self._store.overwrite(key, {**old, "metadata": {**old["metadata"], "finalizers": finalizers}})

    def _delete(self, key: Key, grace: int | None) -> None:
        if key.kind is kinds.NAMESPACE:
            self._store.delete(key, held=True)
            marked = self._store.peek(key)
            if structure.mapping(marked, "status").get("phase") != "Terminating":
                self._store.overwrite(
                    key, {**marked, "status": {**structure.mapping(marked, "status"), "phase": "Terminating"}}
                )
        elif self._store.find(key) is not None:
            self._store.delete(key, grace=grace)


def gone(target: Target, old: Mapping[str, Any]) -> Document:
    """Say that an object is gone."""
    resource = target.resource
    details = {"name": target.name, "kind": resource.plural, "uid": old["metadata"]["uid"]}
    details |= {"group": resource.group} if resource.group else {}
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}


def policy_of(options: Mapping[str, Any]) -> str:
    """Give the propagation policy that is asked for, or nothing."""
    policy = options.get("propagationPolicy") or ""
    if policy not in ("", *_POLICIES):
        supported = ", ".join(f'"{each}"' for each in (*_POLICIES, "nil"))
        text = f'Unsupported value: "{policy}": supported values: {supported}'
        raise statuses.invalid(
            "DeleteOptions", "meta.k8s.io", "", [("FieldValueNotSupported", "propagationPolicy", text)]
        )
    if "orphanDependents" in options and options["orphanDependents"] is not None:
        if policy:
            raise statuses.Problem(422, 'DeleteOptions.meta.k8s.io "" is invalid: propagationPolicy: Invalid value: orphanDependents and deletionPropagation cannot be both set')  # fmt: skip
        return "Orphan" if options["orphanDependents"] else "Background"
    return str(policy)


def grace_of(options: Mapping[str, Any]) -> int | None:
    """Give the grace that is asked for, in microseconds."""
    seconds = options.get("gracePeriodSeconds")
    if seconds is None:
        return None
    if isinstance(seconds, bool) or not isinstance(seconds, int):
        raise statuses.bad_request(
            f"gracePeriodSeconds: Invalid value: {seconds!r}: it must be a whole number of seconds"
        )
    return min(max(seconds, 0), deletion.LONGEST_GRACE_SECONDS) * duration.SECOND


def check_preconditions(target: Target, old: Mapping[str, Any], stated: Mapping[str, Any]) -> None:
    """Refuse to delete another object than the one that is meant."""
    resource, metadata = target.resource, old["metadata"]
    for field, called, where in (("uid", "UID", "uid"), ("resourceVersion", "ResourceVersion", "resourceVersion")):
        wanted = stated.get(field)
        if wanted and wanted != metadata.get(where):
            why = f"the {called} in the precondition ({wanted}) does not match the {called} in record ({metadata.get(where)}). The object might have been deleted and then recreated"  # fmt: skip
            raise statuses.conflict(resource.kind_name, resource.group, target.name, why)
