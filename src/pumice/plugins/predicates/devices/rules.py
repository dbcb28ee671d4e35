"""The rules about claims for devices: what must be true of them before nodes are looked at, which nodes can give what, and what is kept for a pod that is placed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from pumice.api import affinity, resource
from pumice.framework.configuration import Settings, settings
from pumice.framework.outlooks import SHORT
from pumice.framework.points import NODE_TASKS, Reads
from pumice.framework.reasons import Code, ReasonVector
from pumice.framework.runs import Step
from pumice.framework.subject import Subject
from pumice.model import selectors, statuses
from pumice.model.devices import decisions, extended
from pumice.model.devices.decisions import ClaimDecision, ClaimReservation
from pumice.model.devices.mapped import NOTHING
from pumice.model.devices.wanted import ClaimUse  # noqa: TC001  so it does here
from pumice.plugins.predicates.devices import device_causes, results
from pumice.plugins.predicates.devices.answers import Answers
from pumice.plugins.predicates.devices.asking import Asking
from pumice.plugins.predicates.devices.search import Refusal, Solution

if TYPE_CHECKING:
    from collections.abc import Collection, Hashable, Sequence

    from pumice.framework.evaluation import Floats
    from pumice.framework.runs import Run
    from pumice.framework.session import Session
    from pumice.model.nodes import NodeRecord, Nodes
    from pumice.model.resources import Vector
    from pumice.model.task import Task
    from pumice.plugins.predicates.devices.asking import Asked

NONE_FREE: Final = "cannot allocate all claims"
ELSEWHERE: Final = "resourceclaim not available on the node"
INVALID_POOLS: Final = "invalid resource pools were encountered"
GAVE_UP: Final = "the search for devices was given up"
BROKEN: Final = "claims of the pod cannot be used"
FREED: Final = "deallocation of ResourceClaim completed"
STEPS_PER_SECOND: Final = 10_000
MOST_SCORE: Final = 100.0
MANY: Final = 4
"""So many equal pods on a node are counted, no more."""
NO_LIMIT: Final = 2**31 - 1
SUPPLIES: Final = 1000
"""So many different demands are remembered, each with a number for every node."""
OTHERS: Final = Reads.NODE | Reads.OTHER_NODES
_TEXTS: Final = 200  # different errors that are told by name
Positions = npt.NDArray[np.int64]


class DeviceSettings(Settings):
    """How claims for devices are looked at."""

    resource_claims = settings.truth(
        "predicate.DynamicResourceAllocationEnable",
        default=False,
        help="accepted for compatibility; claims for devices are placed whenever pods have them",
    )
    claims_timeout = settings.whole(
        "dynamicresources.filterTimeoutSeconds",
        10,
        minimum=0,
        help=f"how far the search for devices of one node goes, in seconds of {STEPS_PER_SECOND} steps each; 0 is without end",
    )


class DeviceRules:
    """The rules, for as long as the configuration lasts."""

    def __init__(self, session: Session, plugin: str, told: DeviceSettings) -> None:
        self._cluster = session.cluster
        self._devices = session.cluster.devices
        seconds = told.claims_timeout or 1_000_000
        self._answers = Answers(session.cluster, seconds * STEPS_PER_SECOND)
        self._none = session.reason(plugin, Code.UNSCHEDULABLE, NONE_FREE)
        self._elsewhere = session.reason(plugin, Code.UNRESOLVABLE, ELSEWHERE)
        self._invalid = session.reason(plugin, Code.UNRESOLVABLE, INVALID_POOLS)
        self._gave_up = session.reason(plugin, Code.ERROR, GAVE_UP)
        self._broken = session.reason(plugin, Code.ERROR, BROKEN)
        self._claims = Asking(session.cluster)
        self._asking: dict[str, Task] = {}
        self._plugin = plugin
        self._session = session
        self._texts: dict[str, int] = {}
        self._lists = (-1, False)
        self._supplied: tuple[object, dict[Hashable, Vector]] = ((), {})

    def register(self, session: Session) -> None:
        """Register the rules; where there are no claims, all that is left is to say so of pods that have some."""
        self._session = session
        self._devices.withdrawn.clear()
        self._asking = {}
        self._claims.begin()
        if not self._devices.claims and not self._devices.has_special:
            session.pre_predicate.add(self.problem, reads=Reads(0))
            if self._devices.is_asked:
                session.never_running.supply = self.supply
            return
        self._answers.begin()
        self._answers.update()
        reads = NODE_TASKS if self._answers.catalogue.is_local else OTHERS
        session.pre_predicate.add(self.problem, reads=Reads.TASK)
        session.divide_runs(self.kind)
        session.predicate.add(self.fits, reads=reads, apart=self.key, details=self.detail)
        if self._any_list():
            session.score.add(self.preferred, normalise=scaled, reads=reads, apart=self.key)
        session.follow(self.follow, may_refuse=True)
        session.announced.pod_causes.append(self.cause)
        session.never_running.supply = self.supply

    def supply(self, task: Task) -> Vector | None:
        """Return how many pods that claim the same each node would have devices for if nobody had any; many count as no limit. None if that is not known yet, or a node might do without."""
        if not task.shape.constraint_class.has_device_claims or self._devices.mapped.mixed:
            return None
        uses = self._devices.uses_of(task.pod)
        if any(not use.key or use.special is not None or use.key in self._devices.in_flight for use in uses):
            return None
        found = self._claims.asked(task)
        nodes = self._cluster.nodes
        if found is None or found.problem:
            return None if found is None else np.zeros(nodes.count, dtype=np.int64)
        if not found.wanted:
            return None
        self._answers.update()
        key = (tuple([each.content for each in found.wanted]), found.shared)
        state = (self._devices.offered, nodes.structure, nodes.static)
        if state != self._supplied[0] or len(self._supplied[1]) >= SUPPLIES:
            self._supplied = (state, {})
        known = self._supplied[1].get(key)
        if known is None:
            most = 1 if found.shared else MANY
            counts = [self._answers.repeats(row, found.wanted, most) for row in range(nodes.count)]
            known = self._supplied[1][key] = np.array([NO_LIMIT if each == most else each for each in counts])
        return known

    def _any_list(self) -> bool:
        """Tell whether some claim has a list of options, so that there is something to score; asked anew when claims change."""
        version = self._cluster.nodes.claims
        if self._lists[0] != version:
            claims = self._devices.claims.values()
            found = any(each.first_available for claim in claims for each in claim.spec.devices.requests)
            self._lists = (version, found)
        return self._lists[1]

    def review(self, session: Session) -> None:
        """Let claims be freed that keep their pods from every node, at most one for each pod."""
        for task in self._asking.values():
            if task.status is not statuses.Status.PENDING or task.uid not in self._cluster.tasks:
                continue
            key = self._in_the_way(task)
            queue = session.queue_of(task.job) if task.job is not None else None
            if key and not session.evaluate(Subject(task, queue)).mask(released=True).any():
                self._devices.to_free[key] = FREED

    def _in_the_way(self, task: Task) -> str:
        """Return a claim of a pod that has devices and is used by nobody else; empty if there is none."""
        for use in self._devices.uses_of(task.pod):
            claim = self._devices.claims.get(use.key)
            allocation = claim.status.allocation if claim is not None else None
            if allocation is None or allocation.node_selector is None:
                continue
            if self._devices.consumers(use.key) <= {task.uid}:
                return use.key
        return ""

    # -- what pods ask for -------------------------------------------------------------------------------------

    def problem(self, subject: Subject) -> str | None:
        """Say which of the pod's claims keeps it from every node."""
        # What some node offers itself may be had there, whatever is wrong with the claim for it.
        found = self._claims.asked(subject.task, frozenset(self._devices.mapped.mixed))
        if found is None:
            return None
        self._asking[subject.task.uid] = subject.task
        return found.problem or None

    def key(self, subject: Subject) -> Hashable:
        """Return what nodes can tell equal pods apart by; None without claims."""
        found = self._claims.asked(subject.task)
        return None if found is None else found.key

    def kind(self, task: Task) -> object:
        """Return what nodes are chosen apart for; who shares a claim that has nothing yet comes after whoever is first."""
        found = self._claims.asked(task)
        if found is None:
            return None
        return (found.key, task.uid) if found.shared else found.key

    # -- nodes -------------------------------------------------------------------------------------------------

    def fits(self, subject: Subject, nodes: Nodes) -> ReasonVector | None:
        """Refuse nodes that cannot give what the pod's claims ask for, or cannot reach what they have."""
        if not subject.task.shape.constraint_class.has_device_claims:
            return None
        answer = np.zeros(len(nodes), dtype=np.int16)
        for natives, positions in self._alike(nodes):
            found = self._claims.asked(subject.task, natives)
            if found is not None:
                answer[positions] = self._refusals(found, nodes, positions)
        return answer

    def _alike(self, nodes: Nodes) -> list[tuple[frozenset[str], Positions]]:
        """Divide nodes by what they offer themselves of the resources that classes stand for."""
        mapped = self._devices.mapped
        if not mapped.mixed:
            return [(NOTHING, np.arange(len(nodes)))]
        found: dict[frozenset[str], list[int]] = {}
        for position, record in enumerate(nodes.records()):
            found.setdefault(mapped.natives(record), []).append(position)
        return [(natives, np.array(positions, dtype=np.int64)) for natives, positions in found.items()]

    def _refusals(self, found: Asked, nodes: Nodes, positions: Positions) -> ReasonVector:
        """Return why some nodes are refused, 0 for those that are not."""
        answer = np.zeros(len(positions), dtype=np.int16)
        if found.problem:
            answer[:] = self._told(found.problem)
            return answer
        for selector in found.selectors:
            answer[~_reached(selector, nodes)[positions]] = self._elsewhere
        if found.wanted:
            self._answers.update()
            rows = nodes.index[positions].tolist()
            for position in np.flatnonzero(answer == 0).tolist():
                answer[position] = self._verdict(rows[position], found, released=nodes.released)
        return answer

    def _verdict(self, row: int, found: Asked, *, released: bool) -> int:
        answer = self._answers.answer(row, found.wanted, released=released)
        if isinstance(answer, Solution):
            return 0
        if answer.error:
            self._claims.errors[tuple([each.content for each in found.wanted])] = answer.error
            return self._told(answer.error)
        if answer.gave_up:
            return self._gave_up
        invalid = any(pool.invalid for pool in self._answers.offer(row).pools)
        return self._invalid if invalid else self._none

    def _told(self, error: str) -> int:
        """Return the reason that says what is wrong with claims; of many different ones, that something is."""
        known = self._texts.get(error)
        if known is None:
            if len(self._texts) >= _TEXTS:
                return self._broken
            known = self._texts[error] = self._session.reason(self._plugin, Code.ERROR, error)
        return known

    def detail(self, subject: Subject, node: NodeRecord) -> str:
        """Say how the devices stand that a request of the pod is about."""
        found = self._claims.asked(subject.task, self._devices.mapped.natives(node))
        if found is None or found.problem or not found.wanted:
            return "" if found is None else found.problem or "outside the nodes that reach what a claim of the pod has"
        answer = self._answers.answer(node.row, found.wanted, released=True)
        if not isinstance(answer, Refusal):
            return ""
        problems = [pool.problem for pool in self._answers.offer(node.row).pools if pool.problem]
        if answer.error or answer.gave_up:
            return (
                answer.error or "without a solution after as many steps as dynamicresources.filterTimeoutSeconds allows"
            )
        text = f"no free device for request {answer.request} ({answer.stand})"
        return f"{text}; {problems[0]}" if problems else text

    def cause(self, subject: Subject, reasons: Collection[str]) -> str:
        """Say in a sentence which request of the pod finds no devices on any node; `reasons` is what nodes said."""
        if NONE_FREE not in reasons or any(each.startswith(SHORT) for each in reasons):
            return ""
        self._answers.update()
        asked: dict[frozenset[str], Asked | None] = {}
        misses = []
        for record in self._cluster.nodes.records[: self._cluster.nodes.count]:
            natives = self._devices.mapped.natives(record)
            if natives not in asked:
                asked[natives] = self._claims.asked(subject.task, natives)
            found = asked[natives]
            if found is None or not found.wanted or found.problem:
                continue
            answer = self._answers.answer(record.row, found.wanted, released=False)
            if isinstance(answer, Solution):
                return ""  # something else keeps the pod from there
            if not answer.error and not answer.gave_up:
                misses.append(device_causes.Miss(record.name, found, answer))
        return device_causes.told(misses)

    def preferred(self, subject: Subject, nodes: Nodes) -> Floats | None:
        """Score nodes that can give an earlier one of several options higher."""
        whole = self._claims.asked(subject.task)
        if whole is None or not any(request.is_list for each in whole.wanted for request in each.requests):
            return None
        self._answers.update()
        points = np.zeros(len(nodes), dtype=np.float64)
        for natives, positions in self._alike(nodes):
            found = self._claims.asked(subject.task, natives)
            needs = found.wanted if found is not None else ()
            for position in positions.tolist() if needs else ():
                answer = self._answers.answer(int(nodes.index[position]), needs, released=nodes.released)
                points[position] = answer.score if isinstance(answer, Solution) else 0
        return points

    # -- placements --------------------------------------------------------------------------------------------

    def follow(self, runs: Sequence[Run], sign: int) -> str | None:
        """Keep devices for pods that were placed; they are free again by themselves when the pod leaves its node."""
        if sign < 0:
            return None
        for run in runs:
            if run.step is Step.EVICT or not run.tasks[0].shape.constraint_class.has_device_claims:
                continue
            for task, record in zip(run.tasks, run.targets, strict=True):
                if record is None or self._devices.reservations.get(task.uid) is not None:
                    continue
                found = self._again(task, record) or self._decided(task, record)
                if not isinstance(found, str):
                    if found.decisions:
                        self._devices.reserve(task.uid, found)
                elif task.status is not statuses.Status.PIPELINED:
                    return found  # who waits is not bound yet, and whoever makes room for it asks the filter
        return None

    def _again(self, task: Task, record: NodeRecord) -> ClaimReservation | None:
        """Return what a pod had that comes back to its node, if that is still free."""
        before = self._devices.withdrawn.get(task.uid)
        if before is None or before.node != record.name:
            return None
        for decision in before.decisions:
            for result in decision.allocation.devices.results:
                use = self._devices.uses.get((result.driver, result.pool, result.device))
                if use is not None and not result.admin_access and set(use.owners) - {decision.key}:
                    return None
        return before

    def _decided(self, task: Task, record: NodeRecord) -> ClaimReservation | str:
        found = self._claims.asked(task, self._devices.mapped.natives(record))
        if found is None or found.problem:
            return found.problem if found is not None else ""
        self._leave_unused(task, found)
        if any(not selects(selector, record) for selector in found.selectors):
            return f"{ELSEWHERE} {record.name}"
        allocations: dict[str, resource.Allocation] = {}
        if found.wanted:
            self._answers.update()
            waits = task.status is statuses.Status.PIPELINED
            answer = self._answers.answer(record.row, found.wanted, released=waits)
            if not isinstance(answer, Solution):
                return f"{NONE_FREE} on node {record.name}"
            offer = self._answers.offer(record.row)
            for key, need, picks in zip(found.open, found.wanted, answer.picks, strict=True):
                claim = self._devices.claims.get(key)
                uid = claim.metadata.uid if claim is not None else task.uid
                classes = self._devices.classes
                allocations[key] = results.allocation(uid, need, picks, offer=offer, node=record.name, classes=classes)
        return ClaimReservation(record.name, tuple(self._decision(task, use, allocations) for use in found.uses))

    def _leave_unused(self, task: Task, found: Asked) -> None:
        """Have a claim deleted that an earlier attempt made for resources which the node offers itself."""
        for use in self._devices.uses_of(task.pod)[len(found.uses) :]:
            if use.special is not None and use.key in self._devices.claims:
                self._devices.to_delete[use.key] = task.uid

    def _decision(self, task: Task, use: ClaimUse, made: dict[str, resource.Allocation]) -> ClaimDecision:
        claim = self._devices.claims.get(use.key)
        namespace, _, name = use.key.partition("/")
        return ClaimDecision(
            namespace=namespace,
            claim=name,
            uid=claim.metadata.uid if claim is not None else "",
            allocation=made.get(use.key) or self._devices.allocation(use.key) or resource.Allocation(),
            consumer=resource.Consumer(resource=decisions.PODS, name=task.name, uid=task.uid),
            made=extended.manifest(task.pod, use.special) if use.special is not None else None,
            mappings=use.special.mappings if use.special is not None else (),
        )


def scaled(raw: Floats) -> Floats:
    """Bring scores to at most 100."""
    most = float(raw.max(initial=0.0))
    points: Floats = np.floor(raw * MOST_SCORE / most) if most else raw
    return points


def selects(selector: affinity.NodeSelector, record: NodeRecord) -> bool:
    """Tell whether a selector chooses a node."""
    return any(selectors.term_matches(term, record.labels, record.name) for term in selector.node_selector_terms)


def _reached(selector: affinity.NodeSelector, nodes: Nodes) -> Any:
    columns = nodes.table.attributes
    mask = np.zeros(columns.count, dtype=np.bool_)
    for term in selector.node_selector_terms:
        mask |= selectors.term_mask(term, columns)
    return mask[nodes.index]
