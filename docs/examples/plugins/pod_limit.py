"""pod-limit: let a queue have so many pods and no more. A limit."""

from pumice.framework.configuration import Configured, Settings, settings
from pumice.framework.plugin import Plugin
from pumice.framework.session import Session
from pumice.framework.subject import Demand
from pumice.model.queue import Queue
from pumice.model.resources import PODS


class PodLimitSettings(Settings):
    """What a configuration may say."""

    pods = settings.each(settings.whole("pod-limit.*", 0, minimum=0, help="pods that the queue of that name may have"))


class PodLimit(Plugin):
    """Let a queue have so many pods and no more."""

    name = "pod-limit"
    points = frozenset({"Allocatable"})
    settings = Configured(PodLimitSettings)

    def open(self, session: Session) -> None:
        """Register the limit; what queues hold is kept up to date by the cluster, within the cycle too."""
        self.sums = session.cluster.queue_sums
        session.allocatable.add(self.refusal)

    def refusal(self, queue: Queue, demand: Demand) -> str | None:
        """Say why a queue may not take on some pods; None if it may."""
        limit = self.settings.pods.get(queue.name)
        if limit is None:
            return None
        has = int(self.sums.held(queue.row)[PODS])
        asked = int(demand.amounts[PODS])
        return f"queue {queue.name} has {has} of {limit} pods, {asked} more asked" if has + asked > limit else None
