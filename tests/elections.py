"""Flags of an election in a namespace of its own."""

from __future__ import annotations


def flags(namespace):
    """As shipped, so that nobody loses the lease on a busy machine, but tried more often: whoever may lead does so at once."""
    return f"--leader-elect-resource-namespace={namespace}", "--leader-elect-retry-period=500ms"
