"""Who may do what: roles and bindings of the store, indexed by whom they are bound to, so that a check looks at nobody else's.

What was found for somebody and a kind of request is remembered until a role or a binding changes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pumice.api import kinds
from pumice.apiserver.access import attributes, roles, users
from pumice.sim.identity import Key

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pumice.apiserver.access.attributes import Attributes
    from pumice.apiserver.access.roles import Rule
    from pumice.apiserver.access.users import User
    from pumice.sim.history import WatchEventType
    from pumice.sim.store import ObjectStore

GROUP: Final = "rbac.authorization.k8s.io"
_MOST_REMEMBERED: Final = 20_000
_LONGEST_REMEMBERED: Final = 400  # characters of what is asked for
_EVERYTHING: Final = (roles.Rule(verbs=("*",), groups=("*",), resources=("*",)), roles.Rule(verbs=("*",), paths=("*",)))


def _kind(name: str, *, namespaced: bool) -> kinds.Kind:
    return kinds.Kind(name=name, group=GROUP, version="v1", plural=f"{name.lower()}s", namespaced=namespaced)


ROLE: Final = _kind("Role", namespaced=True)
CLUSTER_ROLE: Final = _kind("ClusterRole", namespaced=False)
ROLE_BINDING: Final = _kind("RoleBinding", namespaced=True)
CLUSTER_ROLE_BINDING: Final = _kind("ClusterRoleBinding", namespaced=False)
_KINDS: Final = (CLUSTER_ROLE, ROLE, CLUSTER_ROLE_BINDING, ROLE_BINDING)

Place = tuple[str, str]  # the namespace of a role, empty for one of the cluster, and its name
Subject = tuple[str, str]  # User or Group, and the name


class _Binding:
    """Whom a binding binds to which role, and where."""

    __slots__ = ("name", "namespace", "role", "subjects")

    def __init__(self, key: Key, manifest: Mapping[str, Any]) -> None:
        self.namespace, self.name = key.namespace, key.name
        self.role = place_of_role(manifest, key.namespace)
        self.subjects = tuple(_subjects(manifest, key.namespace))

    def told(self) -> str:
        """Name it with its role, as reasons do."""
        own = f'RoleBinding "{self.name}/{self.namespace}"' if self.namespace else f'ClusterRoleBinding "{self.name}"'
        return f'{own} of {"Role" if self.role[0] else "ClusterRole"} "{self.role[1]}"'


class Authorizer:
    """Answers what somebody may do; it follows the store."""

    def __init__(self, store: ObjectStore) -> None:
        self._roles: dict[Place, tuple[Rule, ...]] = {}
        self._bindings: dict[Key, _Binding] = {}
        self._bound: dict[tuple[str, Subject], dict[Key, _Binding]] = {}  # by namespace, empty for the whole cluster
        self._found: dict[tuple[User, str, str, str, str], tuple[Rule, ...]] = {}
        self._store = store
        store.observe(self._seen)

    def read(self) -> None:
        """Read what an earlier run has left in the store."""
        for kind in _KINDS:
            for manifest in self._store.scan(kind):
                metadata = manifest["metadata"]
                self._seen(Key(kind, metadata.get("namespace", ""), metadata["name"]), "ADDED", manifest)

    def _seen(self, key: Key, event_type: WatchEventType, manifest: Mapping[str, Any]) -> None:
        if key.kind.group != GROUP:
            return
        self._found.clear()
        if key.kind in (ROLE, CLUSTER_ROLE):
            if event_type == "DELETED":
                self._roles.pop((key.namespace, key.name), None)
            else:
                self._roles[key.namespace, key.name] = roles.of_role(manifest)
            return
        held = self._bindings.pop(key, None)
        for subject in held.subjects if held is not None else ():
            self._bound[key.namespace, subject].pop(key, None)
            if not self._bound[key.namespace, subject]:
                del self._bound[key.namespace, subject]
        if event_type != "DELETED":
            made = self._bindings[key] = _Binding(key, manifest)
            for subject in made.subjects:
                self._bound.setdefault((key.namespace, subject), {})[key] = made

    # ---- asking

    def check(self, user: User, wanted: Attributes) -> None:
        """Refuse what somebody may not do."""
        if not self.allows(user, wanted):
            raise attributes.refusal(user, wanted, self.troubles(user, wanted.namespace))

    def allows(self, user: User, wanted: Attributes) -> bool:
        """Tell whether somebody may do something."""
        if user.is_master:
            return True
        if wanted.path:
            return any(rule.allows(wanted) for rule in self.rules(user, ""))
        key = (user, wanted.verb, wanted.group, wanted.full_resource, wanted.namespace)
        found = self._found.get(key)
        if found is None:
            speaking = tuple(rule for rule in self.rules(user, wanted.namespace) if rule.speaks_of(wanted))
            found = next(((rule,) for rule in speaking if not rule.names), speaking)
            # Names of any length may be asked for, by anybody.
            if len(wanted.group) + len(wanted.full_resource) + len(wanted.namespace) <= _LONGEST_REMEMBERED:
                if len(self._found) >= _MOST_REMEMBERED:
                    self._found.clear()
                self._found[key] = found
        return any(not rule.names or wanted.name in rule.names for rule in found)

    def rules(self, user: User, namespace: str) -> tuple[Rule, ...]:
        """Give all rules that hold for somebody in a namespace, or in the whole cluster."""
        if user.is_master:
            return _EVERYTHING
        return tuple(rule for role in self._held(user, namespace) for rule in self._roles.get(role, ()))

    def of_role(self, place: Place) -> tuple[Rule, ...] | None:
        """Give the rules of a role, None if it is not there."""
        return self._roles.get(place)

    def reason(self, user: User, wanted: Attributes) -> str:
        """Say by which binding somebody may do something, in the words of kube-apiserver; nothing for whom nothing is asked of."""
        if user.is_master:
            return ""
        for binding, subject in self._bindings_of(user, wanted.namespace if not wanted.path else ""):
            if any(rule.allows(wanted) for rule in self._roles.get(binding.role, ())):
                return f"RBAC: allowed by {binding.told()} to {_told(subject)}"
        return ""

    def troubles(self, user: User, namespace: str) -> str:
        """Say which roles somebody is bound to that are not there, or nothing."""
        missing = [_not_found(role) for role in self._held(user, namespace) if role not in self._roles]
        if not missing:
            return ""
        return f"RBAC: {missing[0] if len(missing) == 1 else '[' + ', '.join(missing) + ']'}"

    def _held(self, user: User, namespace: str) -> Iterator[Place]:
        """Give the roles that somebody is bound to, each once."""
        return iter(dict.fromkeys(binding.role for binding, _ in self._bindings_of(user, namespace)))

    def _bindings_of(self, user: User, namespace: str) -> Iterator[tuple[_Binding, Subject]]:
        subjects = [("User", user.name), *(("Group", group) for group in user.groups)]
        for where in ("", namespace) if namespace else ("",):
            for subject in subjects:
                for binding in self._bound.get((where, subject), {}).values():
                    yield binding, subject


def place_of_role(binding: Mapping[str, Any], namespace: str) -> Place:
    """Give where the role of a binding is."""
    reference = binding.get("roleRef")
    stated = reference if isinstance(reference, dict) else {}
    return (namespace if stated.get("kind") == "Role" else "", str(stated.get("name", "")))


def _subjects(binding: Mapping[str, Any], namespace: str) -> Iterator[Subject]:
    stated = binding.get("subjects")
    for each in stated if isinstance(stated, list) else ():
        kind, name = each.get("kind"), str(each.get("name", ""))
        if kind == "ServiceAccount":
            yield "User", f"{users.ACCOUNT}{each.get('namespace') or namespace}:{name}"
        elif kind in ("User", "Group"):
            yield kind, name


def _told(subject: Subject) -> str:
    parts = users.account_parts(subject[1]) if subject[0] == "User" else None
    return f'ServiceAccount "{parts[1]}/{parts[0]}"' if parts is not None else f'{subject[0]} "{subject[1]}"'


def _not_found(place: Place) -> str:
    kind = "role" if place[0] else "clusterrole"
    return f'{kind}.{GROUP} "{place[1]}" not found'
