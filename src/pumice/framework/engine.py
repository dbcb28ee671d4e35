"""A configuration brought to life: its plugins and actions, which stay until it changes, and the frame of one cycle."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pumice.api import names
from pumice.framework import observing, reservations
from pumice.framework.evaluation import Evaluator
from pumice.framework.reasons import Reasons
from pumice.framework.session import Outlet, Session

if TYPE_CHECKING:
    from types import FrameType

    from pumice.framework.configuration import Configuration
    from pumice.framework.record import CycleRecord
    from pumice.framework.registry import Registry
    from pumice.framework.sampling import Sampler
    from pumice.model.cluster import Cluster


class Breakdown(msgspec.Struct, frozen=True):
    """An exception that somebody's code let out: the action that ran, and whose code it was; empty where nobody knows."""

    error: Exception
    action: str = ""
    plugin: str = ""


class Engine:
    """The plugins and actions of one configuration; `breakdowns` are those of the latest cycle."""

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
            [registry.plugins[s.name](s.settings, s.switches) for s in tier] for tier in configuration.tiers
        ]
        self.actions = [registry.actions[s.name](s.settings) for s in configuration.actions]
        self.breakdowns: list[Breakdown] = []

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
        self.breakdowns = []
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
        try:
            session.open(self.plugins)
            reservations.apply(session, session.reservations)
        except Exception as error:
            self._blame(error)
            raise
        self.observer.spent("open", "", mark)
        return session

    def decide(self, session: Session) -> None:
        """Run the actions, then let the plugins look back; one that breaks down is named and stops nobody else."""
        if "enqueue" not in self.configuration.action_names:
            _let_everybody_in(session)
        for action in self.actions:
            mark = self.observer.mark()
            known = len(session.failures)
            try:
                action.execute(session)
            except Exception as error:  # noqa: BLE001  a policy that breaks down must not stop the cycle
                session.record.say(action.name, f"broke down: {type(error).__name__}: {error}")
                session.failures.append(error)
            for failure in session.failures[known:]:
                self._blame(failure, action=action.name)
            self.observer.spent("action", action.name, mark)
        for tier in self.plugins:
            for plugin in tier:
                mark = self.observer.mark()
                try:
                    plugin.close(session)
                except Exception as error:  # noqa: BLE001  as above
                    session.record.say(plugin.name, f"broke down at close: {type(error).__name__}: {error}")
                    session.failures.append(error)
                    self.breakdowns.append(Breakdown(error, plugin=plugin.name))
                self.observer.spent("plugin close", plugin.name, mark)

    def _blame(self, error: Exception, action: str = "") -> None:
        self.breakdowns.append(Breakdown(error, action, self._culprit(error)))

    def _culprit(self, error: Exception) -> str:
        """Return the plugin whose code was running last, empty if none was; asked afterwards, since guarding each of its functions would slow every call down."""
        trace, frames = error.__traceback__, []
        while trace is not None:
            frames.append(trace.tb_frame)
            trace = trace.tb_next
        return next((name for frame in reversed(frames) if (name := self._owner(frame))), "")

    def _owner(self, frame: FrameType) -> str:
        """Return the plugin that a function belongs to: its own method, else one of a module that holds no other plugin."""
        plugins = [plugin for tier in self.plugins for plugin in tier]
        bound = frame.f_locals.get("self")
        module = frame.f_globals.get("__name__")
        own = [plugin.name for plugin in plugins if plugin is bound]
        near = [plugin.name for plugin in plugins if type(plugin).__module__ == module]
        return own[0] if own else near[0] if len(near) == 1 else ""


def _let_everybody_in(session: Session) -> None:
    """Where nobody asks for votes, let every valid group of an open queue in, pods or not: controllers create pods only then."""
    for job in session.cluster.phases.jobs(names.PHASE_PENDING):
        if session.usable(job) and session.cluster.queues[job.queue].is_open:
            session.findings.set_phase(job, names.PHASE_INQUEUE)
