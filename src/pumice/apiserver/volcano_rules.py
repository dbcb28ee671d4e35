"""Volcano's kinds are completed and judged here as webhooks would on another cluster: the same functions, without a network between."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pumice.admission import job_plugins, patches, remarks, reviewing, rules, surroundings
from pumice.admission.requests import Request, RuleSettings
from pumice.api import names
from pumice.apiserver import statuses

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pumice.admission.requests import Operation
    from pumice.api import kinds
    from pumice.apiserver.resources import Resource
    from pumice.sim.history import WatchEventType
    from pumice.sim.identity import Key
    from pumice.sim.store import ObjectStore

Document = dict[str, Any]
_LEFT_ALONE: Final = (names.SYSTEM_NAMESPACE,)


class VolcanoRules:
    """The rules that an installation turns on, over what the store holds."""

    def __init__(
        self, store: ObjectStore, paths: tuple[str, ...] = rules.INSTALLED_PATHS, *, strict: bool = False
    ) -> None:
        self._settings = RuleSettings(job_plugins=job_plugins.installed(), strict=strict)
        self._rules = rules.named(paths)
        self._kinds = frozenset(rule.kind.plural for rule in self._rules)
        self._around = surroundings.KnownObjects()
        for kind in surroundings.FOLLOWED:
            for manifest in store.scan(kind):
                self._around.put(kind, manifest)
        store.observe(self._seen)

    def _seen(self, key: Key, event_type: WatchEventType, manifest: Mapping[str, Any]) -> None:
        if key.kind not in surroundings.FOLLOWED:
            return
        if event_type == "DELETED":
            self._around.drop(key.kind, key.name)
        else:
            self._around.put(key.kind, manifest)

    def completed(self, new: Document, resource: Resource, namespace: str) -> Document:
        """Give a new object with what is filled into it."""
        if not self.concerns(resource.kind, namespace):
            return new
        request = Request(operation="CREATE", object=new, namespace=namespace, name=new["metadata"].get("name", ""))
        return rules.completed(self._rules, resource.kind, request, self._around, self._settings)

    def check(
        self,
        operation: Operation,
        resource: Resource,
        place: tuple[str, str],
        *,
        new: Document | None = None,
        old: Mapping[str, Any] | None = None,
        warnings: list[str] | None = None,
    ) -> None:
        """Refuse a write with every field that is wrong, in the words of a webhook that denies it."""
        namespace, name = place
        if not self.concerns(resource.kind, namespace):
            return
        before = patches.copied(dict(old)) if old is not None else {}
        request = Request(operation=operation, object=new or {}, old=before, namespace=namespace, name=name)
        for rule in self._rules:
            if rule.judge is None or rule.kind is not resource.kind or operation not in rule.operations:
                continue
            found = remarks.Remarks(strict=self._settings.strict)
            rule.judge(request, found, self._around, self._settings)
            if warnings is not None:
                warnings += reviewing.warnings(found)
            if found.refusals:
                status = reviewing.status(rule, request, found)
                message = f'admission webhook "{rule.webhook}" denied the request: {status["message"]}'
                raise statuses.Problem(status["code"], message, reason=status["reason"], details=status["details"])

    def concerns(self, kind: kinds.Kind, namespace: str) -> bool:
        """Tell whether there are rules about a kind in a namespace."""
        return kind.plural in self._kinds and namespace not in _LEFT_ALONE
