"""A client that is kept to one namespace."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping

    from pumice.api.kinds import Kind
    from pumice.kube.calls.client import Client


class Scoped:
    """The part of a client that reads lists and watches, kept to one namespace where a kind has namespaces; empty means all."""

    def __init__(self, client: Client, namespace: str = "") -> None:
        self._client = client
        self.namespace = namespace
        self.request = client.request

    async def list_page(self, kind: Kind, *, query: Mapping[str, str]) -> bytes:
        """Return a page of a list."""
        return await self._client.list_page(kind, namespace=self.namespace, query=query)

    def stream(self, kind: Kind, *, query: Mapping[str, str], silence: float) -> AsyncGenerator[bytes, None]:
        """Give the lines of a watch."""
        return self._client.stream(kind, namespace=self.namespace, query=query, silence=silence)
