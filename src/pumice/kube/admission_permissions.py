"""What `pumice admission` may do on an API server, each permission with the code that needs it; as the scheduler's table, and held against an audit log likewise."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pumice.api import kinds
from pumice.kube import permissions
from pumice.kube.permissions import may

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pumice.kube.permissions import Permission, Rule

_SECRET: Final = kinds.Kind(name="Secret", group="", version="v1", plural="secrets", namespaced=True)
_WEBHOOKS: Final = tuple(
    kinds.Kind(
        name=name, group="admissionregistration.k8s.io", version="v1", plural=f"{name.lower()}s", namespaced=False
    )
    for name in ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
)
NAMESPACES: Final = may(kinds.NAMESPACE, "list watch", "server.admission.following:specs")
"""Only where /podgroups/mutate is on."""

PERMISSIONS: Final = (
    may(kinds.QUEUE, "list watch", "server.admission.following:specs"),
    may(kinds.PRIORITY_CLASS, "list watch", "server.admission.following:specs"),
    # Of all: Volcano's own are looked for too, and a list cannot be limited to several names.
    *(may(kind, "list watch", "server.admission.following:specs") for kind in _WEBHOOKS),
    *(may(kind, "patch", "server.admission.injecting:Injector.run", place="webhooks") for kind in _WEBHOOKS),
    may(_SECRET, "get create patch", "server.admission.certificate_sources:SharedSecret.read", place="certificates"),
)


def cluster_rules(*, namespaces: bool = False) -> list[Rule]:
    """Give the rules that hold everywhere."""
    table: Sequence[Permission] = (*PERMISSIONS, NAMESPACES) if namespaces else PERMISSIONS
    return permissions.cluster_rules(table)


def webhook_rules(names: Sequence[str]) -> list[Rule]:
    """Give the rules for our own webhook configurations."""
    return permissions.named_rules("webhooks", names, PERMISSIONS)


def certificate_rules(name: str) -> list[Rule]:
    """Give the rules for the Secret with the certificate."""
    return permissions.named_rules("certificates", [name], PERMISSIONS)
