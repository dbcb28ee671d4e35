"""A configuration brought to life: its plugins and actions, which stay until it changes, and the frame of one cycle."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pumice.framework import observing, reservations
from pumice.framework.evaluation import Evaluator
from pumice.framework.reasons import Reasons
from pumice.framework.session import Outlet, Session

if TYPE_CHECKING:
    from pumice.framework.configuration import Configuration
    from pumice.framework.record import CycleRecord
    from pumice.framework.registry import Registry
    from pumice.framework.sampling import Sampler
    from pumice.model.cluster import Cluster


class Engine:
    """The plugins and actions of one configuration."""

    def __init__(
        self,
        configuration: Configuration,
        registry: Registry,
        cluster: Cluster,
        sampler: Sampler | None = None,
        observer: observing.Observer = observing.NOBODY,
    ) -> None:
        self.configuration = configuration
        self.observer = observer
        self.cluster = cluster
        self.evaluator = Evaluator(cluster.nodes, Reasons(), sampler, observer)
        self.plugins = [
            [registry.plugins[s.name](s.arguments, s.switches) for s in tier] for tier in configuration.tiers
        ]
        self.actions = [registry.actions[s.name](s.arguments) for s in configuration.actions]

    def open(
        self,
        record: CycleRecord,
        outlet: Outlet,
        *,
        number: int,
        now: int,
        reserved: reservations.Reservations | None = None,
    ) -> Session:
        """Open a session on the cluster as it is, with the room held that earlier plans made."""
        mark = self.observer.mark()
        session = Session(
            self.cluster,
            self.configuration,
            self.evaluator,
            record,
            outlet,
            number=number,
            now=now,
            reservations=reserved,
            observer=self.observer,
        )
        session.open(self.plugins)
        reservations.apply(session, session.reservations)
        self.observer.spent("open", "", mark)
        return session

    def decide(self, session: Session) -> None:
        """Run the actions, then let the plugins look back; one that breaks down is named and stops nobody else."""
        for action in self.actions:
            mark = self.observer.mark()
            try:
                action.execute(session)
            except Exception as error:  # noqa: BLE001  a policy that breaks down must not stop the cycle
                session.record.say(action.name, f"broke down: {type(error).__name__}: {error}")
                session.failures.append(error)
            self.observer.spent("action", action.name, mark)
        for tier in self.plugins:
            for plugin in tier:
                mark = self.observer.mark()
                try:
                    plugin.close(session)
                except Exception as error:  # noqa: BLE001  as above
                    session.record.say(plugin.name, f"broke down at close: {type(error).__name__}: {error}")
                    session.failures.append(error)
                self.observer.spent("plugin close", plugin.name, mark)
