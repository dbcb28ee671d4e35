"""What must exist before the first cycle, so that it need not wait for a second one: the queues."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final, Protocol

from pumice.api import kinds
from pumice.cache.required_queues import required_queues
from pumice.kube import errors

if TYPE_CHECKING:
    from collections.abc import Callable

    from pumice.cache.options import Options
    from pumice.server.logs.logs import Log

PATIENCE: Final = 2.0
_MISSING, _CONFLICT = 404, 409


class Creator(Protocol):
    """The request that makes an object."""

    async def create(self, kind: kinds.Kind, manifest: dict[str, Any]) -> dict[str, Any]:
        """Create an object."""


class Queues:
    """Creates the queues that are required; what fails here is asked for again by the first cycle."""

    def __init__(self, client: Creator, options: Options, log: Log, may_write: Callable[[], bool]) -> None:
        self._client = client
        self._options = options
        self._log = log
        self._may_write = may_write

    async def ensure(self) -> None:
        """Create what is missing, if we may write already; a standby leaves that to its leader."""
        if not self._may_write():
            return
        try:
            async with asyncio.timeout(PATIENCE):
                for manifest in required_queues(self._options):
                    await self._create(manifest)
        except (errors.KubeError, TimeoutError) as error:
            self._log.warning("queues cannot be created yet", problem=str(error) or "no answer")

    async def _create(self, manifest: dict[str, Any]) -> None:
        try:
            await self._client.create(kinds.QUEUE, manifest)
        except errors.ApiError as error:
            if error.status == _MISSING:
                raise errors.ConfigurationError(
                    f"the cluster does not know {kinds.QUEUE.plural}.{kinds.QUEUE.group}; "
                    "install the custom resource definitions: pumice install --print --crds-only | kubectl apply --server-side -f -"
                ) from error
            if error.status != _CONFLICT:
                raise
        else:
            self._log.info("queue created", queue=manifest["metadata"]["name"])
