"""Somebody who asks: a name, groups, and what else is known."""

from __future__ import annotations

from typing import Any, Final

import msgspec

MASTERS: Final = "system:masters"
AUTHENTICATED: Final = "system:authenticated"
UNAUTHENTICATED: Final = "system:unauthenticated"
ACCOUNT: Final = "system:serviceaccount:"
ACCOUNTS: Final = "system:serviceaccounts"


class User(msgspec.Struct, frozen=True):
    """Somebody who asks."""

    name: str
    groups: tuple[str, ...]
    uid: str = ""
    extra: tuple[tuple[str, tuple[str, ...]], ...] = ()

    @property
    def is_master(self) -> bool:
        """Tell whether nothing is asked of it."""
        return MASTERS in self.groups

    def told(self) -> dict[str, Any]:
        """Give it as reviews and webhooks are told of it."""
        found: dict[str, Any] = {"username": self.name, "groups": list(self.groups)}
        if self.uid:
            found["uid"] = self.uid
        if self.extra:
            found["extra"] = {key: list(values) for key, values in self.extra}
        return found


ANONYMOUS: Final = User("system:anonymous", (UNAUTHENTICATED,))


def account(namespace: str, name: str, uid: str = "", extra: tuple[tuple[str, tuple[str, ...]], ...] = ()) -> User:
    """Give a service account as a user."""
    return User(f"{ACCOUNT}{namespace}:{name}", account_groups(namespace), uid, extra)


def account_groups(namespace: str) -> tuple[str, ...]:
    """Give the groups that every service account of a namespace is in."""
    return (ACCOUNTS, f"{ACCOUNTS}:{namespace}", AUTHENTICATED)


def account_parts(name: str) -> tuple[str, str] | None:
    """Give namespace and name of the service account that a user is, or nothing."""
    namespace, _, account_name = name.removeprefix(ACCOUNT).partition(":")
    return (namespace, account_name) if name.startswith(ACCOUNT) and namespace and account_name else None
