"""Flags of an election in a namespace of its own, tried often: whoever may lead does so at once."""

from __future__ import annotations

from pumice.api import kinds
from pumice.kube.calls import client, paths


def flags(namespace, *, lasts=300):
    """Nobody loses this lease because a machine is busy; one that is to run out `lasts` for fewer seconds."""
    return (
        f"--leader-elect-resource-namespace={namespace}",
        f"--leader-elect-lease-duration={lasts}s",
        f"--leader-elect-renew-deadline={lasts * 4 // 5}s",
        "--leader-elect-retry-period=500ms",
    )


def let_go(server, namespace, name="volcano"):
    """Give the lease of a process that was killed up for it, as it would run out in the end: the next one leads at once."""
    body = {"spec": {"holderIdentity": ""}}
    server.call("PATCH", paths.path(kinds.LEASE, namespace, name), body, content_type=client.MERGE)
