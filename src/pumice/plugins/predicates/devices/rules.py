"""The rules about claims for devices: what must be true of them before nodes are looked at, which nodes can give what, and what is kept for a pod that is placed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec
import numpy as np

from pumice.api import affinity, resource
from pumice.framework.configuration import Settings, settings
from pumice.framework.points import NODE_TASKS, Reads
from pumice.framework.reasons import Code, ReasonVector
from pumice.framework.runs import Step
from pumice.framework.subject import Subject
from pumice.model import selectors, statuses
from pumice.model.devices import decisions, extended, wanted
from pumice.model.devices.decisions import ClaimDecision, ClaimReservation
from pumice.model.devices.wanted import ClaimUse, Wanted  # noqa: TC001  so it does here
from pumice.plugins.predicates.devices import results
from pumice.plugins.predicates.devices.answers import Answers
from pumice.plugins.predicates.devices.search import Refusal, Solution

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from pumice.framework.evaluation import Floats
    from pumice.framework.runs import Run
    from pumice.framework.session import Session
    from pumice.model.nodes import NodeRecord, Nodes
    from pumice.model.task import Task

NONE_FREE: Final = "cannot allocate all claims"
ELSEWHERE: Final = "resourceclaim not available on the node"
INVALID_POOLS: Final = "invalid resource pools were encountered"
GAVE_UP: Final = "the search for devices was given up"
BROKEN: Final = "claims of the pod cannot be used"
FREED: Final = "deallocation of ResourceClaim completed"
STEPS_PER_SECOND: Final = 10_000
MOST_CONSUMERS: Final = 256
MOST_SCORE: Final = 100.0
OTHERS: Final = Reads.NODE | Reads.OTHER_NODES
_TEXTS: Final = 200  # different errors that are told by name
_SPARE: Final = 1000  # claims that are gone, and yet remembered


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


class Asked(msgspec.Struct, frozen=True):
    """What a pod asks for by claims: what is to be found, and where what others found for it can be used."""

    uses: tuple[ClaimUse, ...] = ()
    open: tuple[str, ...] = ()  # keys of the claims that have nothing yet
    wanted: tuple[Wanted, ...] = ()  # what these ask for
    selectors: tuple[affinity.NodeSelector, ...] = ()
    problem: str = ""
    shared: bool = False  # whether a claim without devices may be somebody else's, too

    @property
    def key(self) -> Hashable:
        """What nodes can tell pods with claims apart by."""
        return tuple([each.content for each in self.wanted]), self.selectors, self.problem


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
        self._wanted: dict[str, tuple[resource.ResourceClaim, Wanted]] = {}
        self._asking: dict[str, Task] = {}
        self._errors: dict[tuple[bytes, ...], str] = {}
        self._plugin = plugin
        self._session = session
        self._texts: dict[str, int] = {}
        self._offered = -1
        self._lists = (-1, False)

    def register(self, session: Session) -> None:
        """Register the rules; where there are no claims, all that is left is to say so of pods that have some."""
        self._session = session
        self._devices.withdrawn.clear()
        self._asking = {}
        if not self._devices.claims and not self._devices.has_special:
            session.pre_predicate.add(self.problem, reads=Reads(0))
            self._wanted.clear()
            return
        if self._offered != self._devices.offered:
            self._offered, self._errors = self._devices.offered, {}
        if len(self._wanted) > 2 * len(self._devices.claims) + _SPARE:
            self._wanted.clear()
        self._answers.begin()
        self._answers.update()
        reads = NODE_TASKS if self._answers.catalogue.is_local else OTHERS
        session.pre_predicate.add(self.problem, reads=Reads.TASK)
        session.divide_runs(self.kind)
        session.predicate.add(self.fits, reads=reads, apart=self.key, details=self.detail)
        if self._any_list():
            session.score.add(self.preferred, normalise=scaled, reads=reads, apart=self.key)
        session.follow(self.follow, may_refuse=True)

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

    def asked(self, task: Task) -> Asked | None:
        """Collect what a pod asks for; None if it has no claims."""
        if not task.shape.constraint_class.has_device_claims:
            return None
        uses = self._devices.uses_of(task.pod)
        keys: list[str] = []
        needs: list[Wanted] = []
        chosen: list[affinity.NodeSelector] = []
        shared = False
        for use in uses:
            problem = self._unusable(use, task)
            if problem:
                return Asked(problem=problem)
            allocation = self._devices.allocation(use.key)
            if allocation is None:
                need = self._need(use)
                problem = need.problem or self._classless(need) or self._error((need,))
                if problem:
                    return Asked(problem=f"claim {use.key}: {problem}")
                keys.append(use.key)
                needs.append(need)
                shared = shared or not use.owner
            elif allocation.node_selector is not None:
                chosen.append(allocation.node_selector)
        found = Asked(uses, tuple(keys), tuple(needs), tuple(chosen), shared=shared)
        problem = self._error(found.wanted)
        return Asked(problem=problem) if problem else found

    def _need(self, use: ClaimUse) -> Wanted:
        key, claim = use.key, self._devices.claims.get(use.key)
        if claim is None:
            return wanted.read(use.special.spec if use.special is not None else resource.ResourceClaimSpec())
        known = self._wanted.get(key)
        if known is None or known[0] is not claim:
            known = self._wanted[key] = (claim, wanted.read(claim.spec))
        return known[1]

    def _unusable(self, use: ClaimUse, task: Task) -> str:
        """Say why a claim cannot be used by a pod, whatever it asks for."""
        if not use.key:
            return f"pod claim {use.name}: ResourceClaim not created yet"
        name = use.key.partition("/")[2]
        claim = self._devices.claims.get(use.key)
        if claim is None:
            return "" if use.special is not None else f'resourceclaim "{name}" not found'
        if use.key in self._devices.unreadable:
            return self._devices.unreadable[use.key]
        if claim.metadata.deletion_timestamp:
            return f'resourceclaim "{name}" is being deleted'
        if use.owner and not any(each.controller and each.uid == use.owner for each in claim.metadata.owner_references):
            return f'resourceclaim "{name}" was not created for pod {task.key}: the pod is not its owner'
        if use.special is not None and not extended.is_for(claim.spec, use.special):
            self._devices.to_delete[use.key] = task.uid
            return f'resourceclaim "{name}" was made for the pod and asks for something else; it is deleted first'
        if len(claim.status.reserved_for) >= MOST_CONSUMERS and not decisions.is_reserved(claim, task.uid):
            return f'resourceclaim "{name}" is used by {len(claim.status.reserved_for)} pods; no more may'
        if use.key in self._devices.in_flight and claim.status.allocation is None:
            tasks = self._cluster.tasks
            jobs = {tasks[uid].job_key for uid in self._devices.relying(use.key) if uid in tasks}
            if jobs != {task.job_key} and task.uid not in self._devices.relying(use.key):
                return f"resource claim {use.key} is in the process of being allocated"
        return ""

    def _classless(self, need: Wanted) -> str:
        for request in need.requests:
            for option in request.options:
                if option.device_class not in self._devices.classes:
                    return f"request {option.name}: device class {option.device_class} does not exist"
        return ""

    def _error(self, needs: tuple[Wanted, ...]) -> str:
        return self._errors.get(tuple([each.content for each in needs]), "") if self._errors else ""

    def problem(self, subject: Subject) -> str | None:
        """Say which of the pod's claims keeps it from every node."""
        found = self.asked(subject.task)
        if found is None:
            return None
        self._asking[subject.task.uid] = subject.task
        return found.problem or None

    def key(self, subject: Subject) -> Hashable:
        """Return what nodes can tell equal pods apart by; None without claims."""
        found = self.asked(subject.task)
        return None if found is None else found.key

    def kind(self, task: Task) -> object:
        """Return what nodes are chosen apart for; who shares a claim that has nothing yet comes after whoever is first."""
        found = self.asked(task)
        if found is None:
            return None
        return (found.key, task.uid) if found.shared else found.key

    # -- nodes -------------------------------------------------------------------------------------------------

    def fits(self, subject: Subject, nodes: Nodes) -> ReasonVector | None:
        """Refuse nodes that cannot give what the pod's claims ask for, or cannot reach what they have."""
        found = self.asked(subject.task)
        if found is None:
            return None
        answer = np.zeros(len(nodes), dtype=np.int16)
        if found.problem:
            answer[:] = self._told(found.problem)
            return answer
        for selector in found.selectors:
            answer[~_reached(selector, nodes)] = self._elsewhere
        if found.wanted:
            self._answers.update()
            rows = nodes.index.tolist()
            for position in np.flatnonzero(answer == 0).tolist():
                answer[position] = self._verdict(rows[position], found, released=nodes.released)
        return answer

    def _verdict(self, row: int, found: Asked, *, released: bool) -> int:
        answer = self._answers.answer(row, found.wanted, released=released)
        if isinstance(answer, Solution):
            return 0
        if answer.error:
            self._errors[tuple([each.content for each in found.wanted])] = answer.error
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
        found = self.asked(subject.task)
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
        text = f"no free device for request {answer.request} ({answer.matching} match, {answer.in_use} in use, {answer.tainted} tainted)"
        return f"{text}; {problems[0]}" if problems else text

    def preferred(self, subject: Subject, nodes: Nodes) -> Floats | None:
        """Score nodes that can give an earlier one of several options higher."""
        found = self.asked(subject.task)
        if found is None or not any(request.is_list for each in found.wanted for request in each.requests):
            return None
        self._answers.update()
        points = [self._answers.answer(row, found.wanted, released=nodes.released) for row in nodes.index.tolist()]
        return np.array([each.score if isinstance(each, Solution) else 0 for each in points], dtype=np.float64)

    # -- placements --------------------------------------------------------------------------------------------

    def follow(self, runs: Sequence[Run], sign: int) -> str | None:
        """Keep devices for pods that were placed; they are free again by themselves when the pod leaves its node."""
        if sign < 0:
            return None
        for run in runs:
            if run.step is Step.EVICT or not run.tasks[0].shape.constraint_class.has_device_claims:
                continue
            for task, record in zip(run.tasks, run.targets, strict=True):
                if record is None or self._devices.reservation(task.uid) is not None:
                    continue
                found = self._again(task, record) or self._decided(task, record)
                if not isinstance(found, str):
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
        found = self.asked(task)
        if found is None or found.problem:
            return found.problem if found is not None else ""
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
