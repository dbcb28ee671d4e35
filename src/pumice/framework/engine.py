"""A configuration brought to life: its plugins and actions, which stay until it changes, and the frame of one cycle."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pumice.api import names
from pumice.framework import breakdowns, dormancy, observing, reservations, resting, shortcuts
from pumice.framework.breakdowns import CLOSE, CONCLUDE, Breakdown
from pumice.framework.evaluator import Evaluator
from pumice.framework.reasons import FitSummary, Reasons
from pumice.framework.registration import Slot
from pumice.framework.session import Session

if TYPE_CHECKING:
    from pumice.framework.configuration import Configuration
    from pumice.framework.outlet import Outlet
    from pumice.framework.plugin import Plugin
    from pumice.framework.record import CycleRecord
    from pumice.framework.registry import Registry
    from pumice.framework.sampling import Sampler
    from pumice.model.cluster import Cluster
    from pumice.model.job import Job

SOURCE = "breakdown"


class Engine:
    """The plugins and actions of one configuration; `breakdowns` are those of the latest cycle, and of functions that rest because of earlier ones."""

    def __init__(
        self,
        configuration: Configuration,
        registry: Registry,
        cluster: Cluster,
        sampler: Sampler | None = None,
        observer: observing.Observer = observing.NOBODY,
        *,
        taken: shortcuts.Shortcuts = shortcuts.ALL,
    ) -> None:
        self.configuration = configuration
        self.shortcuts = taken
        self.observer = observer
        self.cluster = cluster
        self.evaluator = Evaluator(cluster.nodes, Reasons(), sampler, observer, taken=taken)
        self.plugins = [
            [registry.plugins[s.name](s.settings, s.switches) for s in tier] for tier in configuration.tiers
        ]
        self._slots = [
            (plugin, Slot(tier, plugin.name, setting, plugin.reads))
            for tier, (plugins, settings) in enumerate(zip(self.plugins, configuration.tiers, strict=True))
            for plugin, setting in zip(plugins, settings, strict=True)
        ]
        self.actions = [registry.actions[s.name](s.settings) for s in configuration.actions]
        self.breakdowns: list[Breakdown] = []
        self._streaks: dict[breakdowns.Key, breakdowns.Streak] = {}
        self._blamed: dict[str, None] = {}
        self.lasting: dict[str, object] = {}  # what is kept from cycle to cycle, by name

    def open(
        self,
        record: CycleRecord,
        outlet: Outlet,
        *,
        number: int,
        now: int,
        reserved: reservations.Reservations | None = None,
        is_asked: bool = False,
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
            streaks=self._streaks,
            lasting=self.lasting if self.shortcuts.memory else None,
            is_asked=is_asked,
        )
        session.open(self._slots)
        resting.of(session).begin(session)
        if not reservations.apply(session, session.reservations):
            resting.of(session).give_up(session)
            reservations.apply(session, session.reservations)
        session.findings.dormant = dormancy.of(session).renew(session)
        session.__dict__.pop("awake", None)  # a plugin that asked when it was opened was told of everybody
        self.observer.spent("open", "", mark)
        return session

    def decide(self, session: Session) -> None:
        """Run the actions, then let the plugins look back; what breaks down is named and stops nobody else."""
        if "enqueue" not in self.configuration.action_names:
            _let_everybody_in(session)
        for action in self.actions:
            mark = self.observer.mark()
            session.breakdowns.action = action.name
            try:
                action.execute(session)
            except Exception as error:  # noqa: BLE001  a policy that breaks down must not stop the cycle
                session.record.say(action.name, f"broke down: {breakdowns.said(error)}")
                self._blame(session, error, action.name)
            self.observer.spent("action", action.name, mark)
        session.breakdowns.action = ""
        for tier in self.plugins:
            for plugin in tier:
                _conclude(session, plugin)
        for tier in self.plugins:
            for plugin in tier:
                mark = self.observer.mark()
                _close(session, plugin)
                self.observer.spent("plugin close", plugin.name, mark)
        self._tell(session)

    def is_settled(self, session: Session) -> bool:
        """Tell whether a cycle after this one, with nothing new but what was placed, could only confirm it: room has become less, and nothing else decides."""
        if session.breakdowns.found or session.breakdowns.is_resting or session.failures or session.reservations.holds:
            return False
        if session.handlers.may_refuse or session.names_nodes or not session.independence.all_nodes_are_looked_at:
            return False
        plugins = [plugin for tier in self.plugins for plugin in tier]
        nodes = self.cluster.nodes
        try:
            return (
                all(action.is_settled(session) for action in self.actions)
                and all(plugin.is_settled(session) for plugin in plugins)
                and not nodes.releasing[: nodes.count].any()
            )
        except Exception as error:  # noqa: BLE001  whoever cannot say it is not settled
            session.failures.append(error)
            return False

    def end(self, session: Session) -> None:
        """Count what broke down in a cycle that is over."""
        cluster = session.cluster
        session.breakdowns.forget(lambda a: a not in cluster.jobs and a.removeprefix("queue ") not in cluster.queues)
        self.breakdowns += [*session.breakdowns.found.values(), *session.breakdowns.unasked()]
        session.breakdowns.end()

    def _blame(self, session: Session, error: Exception, action: str) -> None:
        """Note an exception that stopped a whole action."""
        if not isinstance(error, breakdowns.PluginBreakdownError):
            session.failures.append(error)
            culprit = breakdowns.culprit(error, [plugin for tier in self.plugins for plugin in tier])
            self.breakdowns.append(Breakdown(error, action, culprit))

    def _tell(self, session: Session) -> None:
        """Say who broke down, once each, and put it on the jobs that it was about."""
        record, told = session.record, dict[str, tuple[str, int]]()
        before, self._blamed = self._blamed, {}
        for found in session.breakdowns.found.values():
            text = str(found)
            told[text] = (found.action or found.point, told.get(text, ("", 0))[1] + 1)
        for about, found in session.breakdowns.blamed.items():
            if (job := session.cluster.jobs.get(about)) is not None:
                self._blamed[about] = None
                record.judge(about, SOURCE, str(found))
                _put_on(session, job, str(found))
        for text, (source, count) in told.items():
            record.say(source, text if count == 1 else f"{text} (about {count} jobs or queues)")
        for key in before:
            if key not in self._blamed:
                record.acquit(key, SOURCE)


def _conclude(session: Session, plugin: Plugin) -> None:
    """Let a plugin draw its conclusions."""
    try:
        if rests := session.breakdowns.resting(plugin.name, CONCLUDE, type(plugin).conclude):
            raise breakdowns.PluginBreakdownError(rests[""])  # noqa: TRY301  as if it had been called
        plugin.conclude(session)
    except Exception as error:  # noqa: BLE001  as above
        session.breakdowns.note(plugin.name, CONCLUDE, type(plugin).conclude, error)


def _close(session: Session, plugin: Plugin) -> None:
    """Let a plugin look back."""
    try:
        if rests := session.breakdowns.resting(plugin.name, CLOSE, type(plugin).close):
            raise breakdowns.PluginBreakdownError(rests[""])  # noqa: TRY301  as if it had been called
        plugin.close(session)
    except Exception as error:  # noqa: BLE001  as above
        session.breakdowns.note(plugin.name, CLOSE, type(plugin).close, error)


def _put_on(session: Session, job: Job, text: str) -> None:
    """Tell the members of a job that are without a node of a breakdown, where nothing better is known."""
    session.findings.attempt(job)
    known = session.findings.errors(job)
    waiting = [task for task in job.pending.values() if task.uid not in known]
    if waiting:
        session.findings.note_fit(waiting, FitSummary(0, (), text))


def _let_everybody_in(session: Session) -> None:
    """Where nobody asks for votes, let every valid group of an open queue in, pods or not: controllers create pods only then."""
    for job in session.cluster.phases.jobs(names.PHASE_PENDING):
        if session.usable(job) and session.cluster.queues[job.queue].is_open:
            session.findings.set_phase(job, names.PHASE_INQUEUE)
