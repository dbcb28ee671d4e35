"""The configuration that --scheduler-conf names: read before anything else, and followed from then on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pumice.framework.configuration import ConfigurationError
from pumice.server.configuration import sources
from pumice.server.threads.io_thread import StartError

if TYPE_CHECKING:
    from collections.abc import Callable

    from pumice.framework.configuration import Configuration
    from pumice.kube.calls.client import Client
    from pumice.server.configuration.policy import Policy
    from pumice.server.configuration.refusals import Refusals


class Followed:
    """Where the configuration comes from; without a source it is the default one, for ever."""

    def __init__(self, source: str, in_force: Policy) -> None:
        self._source = source
        self._policy = in_force
        self._is_read = False

    def first(self) -> Configuration | None:
        """Return what to start with; None if it must be read from the cluster first."""
        if not self._source:
            return self._policy.use_default()
        found = sources.find(self._source, None)
        if not isinstance(found, sources.FileSource):
            return None
        self._is_read = True
        return self._policy.use(found.read_now(), self._source)

    async def run(
        self,
        client: Client,
        changed: Callable[[Configuration], None],
        refusals: Refusals,
        may_write: Callable[[], bool],
    ) -> None:
        """Read the source if that was not done yet, and follow it until cancelled; whatever is refused is told of."""

        async def tell(source: sources.Source, problem: str) -> None:
            # Of several replicas the one that leads does.
            if may_write():
                await refusals.tell(source, "refused; the last good configuration stays in force", problem)

        try:
            source = sources.find(self._source, client)
            if source is None:
                raise StartError(f"--scheduler-conf {self._source}: no such source")
        except sources.SourceError as error:
            raise StartError(str(error)) from error
        if not self._is_read:
            changed(await self._read_first(source, refusals))
        await self._policy.follow(source, changed, tell)

    async def _read_first(self, source: sources.Source, refusals: Refusals) -> Configuration:
        try:
            return self._policy.use(await source.read(), source.name)
        except (sources.SourceError, ConfigurationError) as error:
            problems = error.problems if isinstance(error, ConfigurationError) else (error,)
            await refusals.tell(source, "the scheduler cannot start", "; ".join(map(str, problems)))
            raise StartError(str(error)) from error
