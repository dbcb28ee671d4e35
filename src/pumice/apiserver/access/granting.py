"""Whoever writes roles and bindings: nobody grants what they do not hold, unless they may `escalate` or `bind` that role."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pumice.apiserver import statuses
from pumice.apiserver.access import roles
from pumice.apiserver.access.attributes import Attributes
from pumice.apiserver.access.authorization import GROUP, place_of_role
from pumice.sim import structure

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pumice.apiserver.access.authorization import Authorizer
    from pumice.apiserver.access.roles import Rule
    from pumice.apiserver.access.users import User
    from pumice.apiserver.requests import Target

Document = dict[str, Any]
_EVERYTHING: Final = (roles.Rule(verbs=("*",), groups=("*",), resources=("*",)), roles.Rule(verbs=("*",), paths=("*",)))
_CHECKED: Final = frozenset({"Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding"})
_COLLECTED: Final = ("finalizers", "ownerReferences", "managedFields", "resourceVersion", "generation")


def check(
    authorizer: Authorizer, user: User, target: Target, new: Mapping[str, Any], old: Mapping[str, Any] | None
) -> None:
    """Refuse a role or a binding that grants more than its writer holds."""
    kind = target.resource.kind_name
    if target.resource.group != GROUP or kind not in _CHECKED or user.is_master:
        return
    if old is not None and _without_collected(old) == _without_collected(new):
        return
    if kind.endswith("Binding"):
        _check_binding(authorizer, user, target, new)
    else:
        _check_role(authorizer, user, target, new, old)


def _check_role(
    authorizer: Authorizer, user: User, target: Target, new: Mapping[str, Any], old: Mapping[str, Any] | None
) -> None:
    escalating = Attributes(
        verb="escalate", group=GROUP, resource=target.resource.plural, namespace=target.namespace, name=target.name
    )
    if authorizer.allows(user, escalating):
        return
    held = authorizer.rules(user, target.namespace)
    _check_held(authorizer, user, target, new, roles.of_role(new))
    if (_aggregates(new) or _aggregates(old)) and roles.missing(held, _EVERYTHING):
        why = "must have cluster-admin privileges to use the aggregationRule"
        raise statuses.forbidden(target.resource.plural, GROUP, new["metadata"].get("name", ""), why)


def _check_binding(authorizer: Authorizer, user: User, target: Target, new: Mapping[str, Any]) -> None:
    place = place_of_role(new, target.namespace)
    binding = Attributes(
        verb="bind",
        group=GROUP,
        resource="roles" if place[0] else "clusterroles",
        namespace=target.namespace,
        name=place[1],
    )
    if authorizer.allows(user, binding):
        return
    rules = authorizer.of_role(place)
    if rules is None:
        raise statuses.not_found(target.resource.plural, GROUP, place[1])
    _check_held(authorizer, user, target, new, rules)


def _check_held(
    authorizer: Authorizer, user: User, target: Target, new: Mapping[str, Any], rules: tuple[Rule, ...]
) -> None:
    missing = roles.missing(authorizer.rules(user, target.namespace), rules)
    if not missing:
        return
    groups = " ".join(f'"{each}"' for each in user.groups)
    listed = "\n".join(sorted({each.told() for each in roles.merged(missing)}))
    why = (
        f'user "{user.name}" (groups=[{groups}]) is attempting to grant RBAC permissions not currently held:\n{listed}'
    )
    if trouble := authorizer.troubles(user, target.namespace):
        why += f"; resolution errors: [{trouble.removeprefix('RBAC: ')}]"
    raise statuses.forbidden(target.resource.plural, GROUP, new["metadata"].get("name", ""), why)


def _aggregates(role: Mapping[str, Any] | None) -> bool:
    return bool(role and structure.mapping(role, "aggregationRule").get("clusterRoleSelectors"))


def _without_collected(manifest: Mapping[str, Any]) -> Document:
    """Leave out what a garbage collector may change without being asked what it holds."""
    metadata = {key: value for key, value in manifest["metadata"].items() if key not in _COLLECTED}
    return {**manifest, "metadata": metadata}
