"""The two queues that must exist: created once where they are missing, and again when the root or every queue has gone, as after their kind was taken away and defined again: others may have made theirs before that is seen."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pumice.api import kinds, names
from pumice.cache import retry_pauses
from pumice.cache.effects import Create

if TYPE_CHECKING:
    from pumice.cache.effects import Outcome
    from pumice.cache.mirror import Mirror
    from pumice.cache.options import Options


class RequiredQueues:
    """Asks for them; what fails is asked for again after a pause, which is short where only the kind is missing."""

    def __init__(self, cache: Mirror) -> None:
        self._cache = cache
        self._there = (False, False)  # whether there was a root, and any queue, at the last look
        self._asked = False
        self._retry_pauses = retry_pauses.RetryPauses()

    def review(self, now: int) -> None:
        """Ask for what is missing if nobody has yet, and for what is due again."""
        queues = self._cache.cluster.queues
        before, self._there = self._there, (names.ROOT_QUEUE in queues, bool(queues))
        due = set(self._retry_pauses.due(now))
        everything = not self._asked or any(had and not has for had, has in zip(before, self._there, strict=True))
        self._asked = True
        for manifest in required_queues(self._cache.options) if everything or due else ():
            name = manifest["metadata"]["name"]
            if name in queues:
                self._retry_pauses.forget(name)
            elif everything or name in due:
                self._cache.world.send(Create(kind=kinds.QUEUE, manifest=manifest))

    def settle(self, effect: Create, outcome: Outcome, now: int) -> None:
        """Take the answer."""
        name, failure = effect.manifest["metadata"]["name"], outcome.failure
        if failure is None:
            self._retry_pauses.forget(name)
        else:  # a kind that is not there may be defined at any moment
            self._retry_pauses.failed(name, "unavailable" if failure.code == "notfound" else failure.code, now)

    def next_wake(self) -> int | None:
        """Return when one is due again."""
        return self._retry_pauses.next_wake()


def required_queues(options: Options) -> list[dict[str, Any]]:
    """Return the queues that must exist: the root and the default one; none where namespaces are the queues."""
    if options.enable_namespace_as_queue:
        return []
    return [
        {
            "apiVersion": kinds.QUEUE.api_version,
            "kind": kinds.QUEUE.name,
            "metadata": {"name": name},
            "spec": {"weight": 1, "reclaimable": reclaimable},
        }
        for name, reclaimable in ((names.ROOT_QUEUE, False), (options.default_queue, True))
    ]
