"""The one way to the store for what people and controllers write: everybody who has a say about an object has it here, in one order.

```
  webhooks that change it ──▶ finished by the server ──▶ rights ──▶ rules of its kind ──▶ rules of Volcano's kinds ──▶ completed ──▶ webhooks that judge it
```
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from pumice.apiserver import conformity
from pumice.apiserver.access import granting
from pumice.apiserver.webhooks.consulting import Asked
from pumice.sim import structure

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pumice.admission.requests import Operation
    from pumice.apiserver.access.authorization import Authorizer
    from pumice.apiserver.kind_rules import KindRules
    from pumice.apiserver.requests import Options, Target
    from pumice.apiserver.volcano_rules import VolcanoRules
    from pumice.apiserver.webhooks.asking import Asking
    from pumice.apiserver.webhooks.consulting import Consulting

Document = dict[str, Any]


class Write(msgspec.Struct, kw_only=True):
    """What is written and by whom; `old` is what is there, `warnings` takes what the writer is told."""

    operation: Operation
    target: Target
    options: Options
    warnings: list[str]
    old: Mapping[str, Any] | None = None


class Passing:
    """Lets everybody have their say about objects that are created or replaced."""

    def __init__(self, rules: KindRules, authorizer: Authorizer, consulting: Consulting) -> None:
        self._rules = rules
        self._authorizer = authorizer
        self._consulting = consulting
        self.volcano_rules: VolcanoRules | None = None

    def asks(self, operation: Operation, target: Target, options: Options) -> bool:
        """Tell whether webhooks have to be asked about such a write."""
        return options.asks and self._consulting.concerns(operation, target)

    def passed(
        self,
        write: Write,
        new: Document,
        *,
        shape: Callable[[Document], Document],
        complete: Callable[[Document], None] = lambda _: None,
    ) -> Asking[Document]:
        """Give an object as it is to be stored, or refuse it; `shape` gives what the writer may change of it, `complete` what is filled in that no rule is about."""
        resource, asks = write.target.resource, self.asks(write.operation, write.target, write.options)
        if asks:
            new = yield from self._changed(write, new)
        new = shape(new)
        self._rules.finish(new, resource)
        if write.options.user is not None:
            granting.check(self._authorizer, write.options.user, write.target, new, write.old)
        self._rules.judge(new, resource, write.old, write.target.subresource)
        self._review(write, new)
        complete(new)
        if asks:
            yield from self._consulting.judged(_asked(write, new), write.warnings)
        return new

    def _changed(self, write: Write, new: Document) -> Asking[Document]:
        """Let webhooks change an object; what they make of it has to be one of its kind again."""
        asked = _asked(write, new)
        changed = yield from self._consulting.changed(asked, write.warnings)
        if not changed or asked.new is None:
            return new
        lenient = msgspec.structs.replace(write.options, validation="Ignore")
        made = conformity.decoded(structure.copied(asked.new), write.target.resource, lenient, [])
        self._rules.default(made, write.target.resource)
        if made["metadata"].get("name") != new["metadata"].get("name"):
            made["metadata"]["name"] = new["metadata"].get("name")
        return made

    def _review(self, write: Write, new: Document) -> None:
        """Ask the rules of Volcano's kinds, as webhooks are asked: about objects, never about their status alone."""
        target = write.target
        if self.volcano_rules is not None and not target.subresource:
            place = (target.namespace, new["metadata"].get("name", ""))
            self.volcano_rules.check(
                write.operation, target.resource, place, new=new, old=write.old, warnings=write.warnings
            )


def _asked(write: Write, new: Document) -> Asked:
    """Say what webhooks are asked about a write."""
    options = write.options
    stated: Document = {
        "kind": "CreateOptions" if write.operation == "CREATE" else "UpdateOptions",
        "apiVersion": "meta.k8s.io/v1",
        "fieldManager": options.manager,
    }
    if options.dry_run:
        stated["dryRun"] = ["All"]
    return Asked(
        operation=write.operation,
        target=write.target,
        name=new["metadata"].get("name", ""),
        new=new,
        old=write.old,
        user=options.user,
        options=stated,
        dry_run=options.dry_run,
    )
