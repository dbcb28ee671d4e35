"""Roles for people: who is bound to one may run jobs, look at them, or have them explained. In Volcano's place they have its names, so that bindings go on holding."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pumice.api import kinds
from pumice.cache.options import Options
from pumice.kube.watches import informers
from pumice.study import live

if TYPE_CHECKING:
    from pumice.manifests.component import Component

Manifest = dict[str, Any]
_READ: Final = ("get", "list", "watch")
_WRITE: Final = ("create", "delete", "patch", "update")
_WORK: Final = (kinds.JOB, kinds.CRON_JOB, kinds.JOB_FLOW, kinds.JOB_TEMPLATE)


def rules() -> dict[str, list[Manifest]]:
    """Give what the roles allow, by what Volcano calls them."""
    return {
        "vcjob-editor-role": [*_work((*_READ, *_WRITE)), _rule((kinds.COMMAND,), ("create", *_READ))],
        "vcjob-viewer-role": [*_work(_READ), _rule((kinds.COMMAND,), _READ)],
        "vcjob-explainer-role": _explaining(),
    }


def _explaining() -> list[Manifest]:
    """Give what `pumice explain`, `what-if`, `top` and `queue` read of a cluster: what its scheduler decides by, and its policy."""
    read = dict.fromkeys(spec.kind for spec in informers.standard(Options()))
    groups = dict.fromkeys(kind.group for kind in (*read, kinds.EVENT))
    rules = [_rule(tuple(kind for kind in (*read, kinds.EVENT) if kind.group == group), _READ) for group in groups]
    policies = {
        "apiGroups": [""],
        "resources": [live.CONFIG_MAP.plural],
        "resourceNames": sorted(name for _, name in live.PLACES),
        "verbs": ["get"],
    }
    return [*rules, policies, _rule((kinds.LEASE,), ("list",))]  # by which scheduler names are served together


def of(part: Component) -> list[Manifest]:
    """Give the roles, named after the installation unless it stands in Volcano's place."""
    release = part.release
    return [
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRole",
            "metadata": {"name": name if release.in_place else f"{release.name}-{name}", "labels": part.labels},
            "rules": allowed,
        }
        for name, allowed in rules().items()
    ]


def _work(verbs: tuple[str, ...]) -> list[Manifest]:
    groups = dict.fromkeys(kind.group for kind in _WORK)
    return [_rule(tuple(kind for kind in _WORK if kind.group == group), verbs) for group in groups]


def _rule(of_kinds: tuple[kinds.Kind, ...], verbs: tuple[str, ...]) -> Manifest:
    return {
        "apiGroups": [of_kinds[0].group],
        "resources": sorted(kind.plural for kind in of_kinds),
        "verbs": sorted(verbs),
    }
