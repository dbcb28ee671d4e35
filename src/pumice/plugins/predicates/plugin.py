"""predicates: a pod goes only where Kubernetes would let it run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from pumice.api import core, names
from pumice.framework.configuration import Configured, Settings, settings
from pumice.framework.plugin import Plugin
from pumice.framework.points import NODE_TASKS, Reads
from pumice.framework.reasons import Code, ReasonVector
from pumice.model import selectors, tolerations
from pumice.model.resources import PODS
from pumice.model.statuses import GOING
from pumice.plugins.predicates import volume_rules
from pumice.plugins.predicates.devices import rules as device_rules
from pumice.plugins.sharing import interpod, spread

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pumice.framework.session import Session
    from pumice.framework.subject import Subject, Subjects
    from pumice.model.constraints import HostPort
    from pumice.model.nodes import NodeRecord, Nodes

NOT_READY = "node(s) were not ready"
UNSCHEDULABLE = "node(s) were unschedulable"
AFFINITY = "node(s) didn't match Pod's node affinity/selector"
TAINTS = "node(s) had untolerated taint(s)"
PORTS = "node(s) didn't have free ports for the requested pod ports"
FEATURES = "node(s) didn't match Pod's required features"
POD_NUMBER = "node(s) pod number exceeded"

OTHER_PODS = Reads.NODE | Reads.OTHER_NODES
BLOCKING = (names.TAINT_NO_SCHEDULE, names.TAINT_NO_EXECUTE)
CORDON = core.Taint(key=names.UNSCHEDULABLE_TAINT, effect=names.TAINT_NO_SCHEDULE)


def _switch(name: str, what: str) -> settings.Field[bool]:
    return settings.truth(f"predicate.{name}", default=True, help=f"whether {what} is checked")


class RuleSettings(Settings):
    """Which rules are checked."""

    node_affinity = _switch("NodeAffinityEnable", "node affinity")
    node_ports = _switch("NodePortsEnable", "host ports")
    taint_toleration = _switch("TaintTolerationEnable", "taints")
    pod_affinity = _switch("PodAffinityEnable", "inter-pod affinity and anti-affinity")
    pod_topology_spread = _switch("PodTopologySpreadEnable", "topology spread")
    cache = settings.truth(
        "predicate.CacheEnable",
        default=False,
        help="accepted for compatibility; verdicts are always kept per class of equal pods, and are exact",
    )


class PredicatesSettings(device_rules.DeviceSettings, volume_rules.VolumeSettings, RuleSettings):
    """What predicates may be told."""


class Predicates(Plugin):
    """Filter nodes by the rules of Kubernetes.

    Readiness, cordon, number of pods, features that a pod needs of a kubelet, node selectors and node affinity, taints, host ports, inter-pod affinity and anti-affinity, topology spread, volumes.
    Room for the pod's requests is not checked here; the actions ask for it themselves.

    A claim that waits for its first consumer is decided together with the pod's node: it gets the smallest volume that suits it there, or a new one
    where its class and the driver's free room allow that. What was chosen is nobody else's from that moment, and is bound before the pod
    is. Volumes of CSI drivers are counted by driver and handle, so that one which several pods of a node share counts once; older in-tree volumes count
    where the node's CSINode says that they were migrated. As in Volcano, exclusive disks and ReadWriteOncePod are not checked.

    A pod with claims for devices (`resource.k8s.io`) goes where all of them can be had together: the devices are found with the node, are nobody else's from that moment, and
    are written to the claims before the pod is bound. Selectors in CEL need the extra `pumice[cel]`; without it claims that have some wait, and say so.
    """

    name = "predicates"
    points = frozenset({"PrePredicate", "Predicate"})
    settings = Configured(PredicatesSettings)
    volumes: volume_rules.VolumeRules | None = None
    _device_rules: device_rules.DeviceRules | None = None

    def open(self, session: Session) -> None:
        """Register the filters that are switched on."""
        self._reasons = {
            text: session.reason(self.name, code, text)
            for text, code in (
                (NOT_READY, Code.UNRESOLVABLE),
                (UNSCHEDULABLE, Code.UNRESOLVABLE),
                (AFFINITY, Code.UNRESOLVABLE),
                (TAINTS, Code.UNRESOLVABLE),
                (FEATURES, Code.UNRESOLVABLE),
                (PORTS, Code.UNSCHEDULABLE),
                (POD_NUMBER, Code.UNSCHEDULABLE),
            )
        }
        session.predicate.add(many=self.pod_number, reads=Reads.COLUMNS)
        session.predicate.add(self.ready, reads=Reads.NODE)
        session.predicate.add(self.unschedulable, reads=Reads.NODE)
        session.predicate.add(self.features, reads=Reads.NODE, details=_undeclared)
        if self.settings.node_affinity:
            session.predicate.add(self.affinity, reads=Reads.NODE, details=_unmatched, cause=_nowhere)
        if self.settings.taint_toleration:
            session.predicate.add(self.taints, reads=Reads.NODE, details=_untolerated, cause=_tainted)
        if self.settings.node_ports:
            session.predicate.add(self.ports, reads=NODE_TASKS)
        if self.settings.pod_affinity:
            judge = interpod.judge(interpod.reasons(session, self.name))
            session.predicate.add(judge, reads=OTHER_PODS, steady=interpod.steady, follow=interpod.Follower)
        if self.settings.pod_topology_spread:
            judge = spread.judge(spread.reasons(session, self.name))
            session.predicate.add(judge, reads=OTHER_PODS, steady=spread.steady, follow=spread.Follower)
        if self.switches["enablePredicate"]:
            self.volumes = self.volumes or volume_rules.VolumeRules(session, self.name, self.settings)
            self.volumes.register(session)
            self._device_rules = self._device_rules or device_rules.DeviceRules(session, self.name, self.settings)
            self._device_rules.register(session)

    def close(self, session: Session) -> None:
        """Have claims freed that keep their pods from every node."""
        if self._device_rules is not None:
            self._device_rules.review(session)

    def _refuse(self, refused: Any, text: str) -> ReasonVector:
        return np.where(refused, self._reasons[text], 0).astype(np.int16)

    # -- filters -----------------------------------------------------------------------------------------------

    def pod_number(self, _subjects: Subjects, nodes: Nodes) -> ReasonVector:
        """Refuse nodes that have as many pods as they may, whoever asks."""
        return nodes.kept(self._full)[None, :]

    def _full(self, nodes: Nodes) -> ReasonVector:
        return self._refuse(nodes.pods >= nodes.allocatable[:, PODS], POD_NUMBER)

    def ready(self, _subject: Subject, nodes: Nodes) -> ReasonVector | None:
        """Refuse nodes that are not ready."""
        lost = nodes.table.attributes.not_ready
        return self._refuse(lost[nodes.index], NOT_READY) if lost.any() else None

    def unschedulable(self, subject: Subject, nodes: Nodes) -> ReasonVector | None:
        """Refuse cordoned nodes, unless the pod tolerates the taint that stands for it."""
        cordoned = nodes.table.attributes.cordoned
        if not cordoned.any() or tolerations.tolerates(subject.constraints.tolerations, CORDON):
            return None
        return self._refuse(cordoned[nodes.index], UNSCHEDULABLE)

    def features(self, subject: Subject, nodes: Nodes) -> ReasonVector | None:
        """Refuse nodes whose kubelet does not declare what the pod needs."""
        needed = frozenset(subject.constraints.features)
        if not needed:
            return None
        lacking = [not needed <= record.features for record in nodes.records()]
        return self._refuse(np.array(lacking, dtype=np.bool_), FEATURES)

    def affinity(self, subject: Subject, nodes: Nodes) -> ReasonVector | None:
        """Refuse nodes outside the pod's node selector or required node affinity."""
        mask = selectors.node_mask(subject.constraints, nodes.table.attributes)
        return None if mask is None else self._refuse(~mask[nodes.index], AFFINITY)

    def taints(self, subject: Subject, nodes: Nodes) -> ReasonVector | None:
        """Refuse nodes with a taint that keeps pods off and that the pod does not tolerate."""
        sets, codes = nodes.table.attributes.taints
        if not any(sets):
            return None
        refused = [not tolerations.tolerates_all(subject.constraints.tolerations, taints, BLOCKING) for taints in sets]
        return self._refuse(np.array(refused, dtype=np.bool_)[codes[nodes.index]], TAINTS)

    def ports(self, subject: Subject, nodes: Nodes) -> ReasonVector | None:
        """Refuse nodes on which a wanted host port is taken."""
        wanted = subject.constraints.ports
        if not wanted:
            return None
        answer = np.zeros(len(nodes), dtype=np.int16)
        for position, record in enumerate(nodes.records()):
            taken = (
                port
                for task in record.port_users.values()
                if not (nodes.released and task.status in GOING)
                for port in task.shape.constraints.ports
            )
            if record.port_users and conflict(wanted, taken):
                answer[position] = self._reasons[PORTS]
        return answer


def _undeclared(subject: Subject, record: NodeRecord) -> str:
    """Name the features that a node does not declare."""
    return f"does not declare {', '.join(sorted(set(subject.constraints.features) - record.features))}"


def _untolerated(subject: Subject, record: NodeRecord) -> str:
    """Name the first taint of a node that keeps a pod off."""
    blocking = (taint for taint in record.taints if taint.effect in BLOCKING)
    found = next((t for t in blocking if not tolerations.tolerates(subject.constraints.tolerations, t)), None)
    if found is None:
        return ""
    return f"tainted {found.key}={found.value}:{found.effect}" if found.value else f"tainted {found.key}:{found.effect}"


def _unmatched(subject: Subject, record: NodeRecord) -> str:
    """Name the labels that a node lacks: those of the selector, or what one of the terms of the affinity asks for."""
    constraints, labels = subject.constraints, record.labels
    lacking = [f"{key}={value}" for key, value in sorted(constraints.node_selector.items()) if labels.get(key) != value]
    if lacking:
        return f"not {', '.join(lacking)}"
    terms = selectors.required_terms(constraints.affinity) or ()
    wanted = [selectors.unmet(term, labels, record.name) for term in terms]
    return f"not {' or '.join(dict.fromkeys(wanted))}" if wanted else "no node affinity term"


def _nowhere(subject: Subject, records: Sequence[NodeRecord]) -> str:
    """Say that no node has the labels that a pod asks for: those that none has, if there are any, else all of them."""
    constraints = subject.constraints
    wanted = sorted(constraints.node_selector.items())
    absent = [(key, value) for key, value in wanted if not any(each.labels.get(key) == value for each in records)]
    told = " and ".join(f"{key}={value}" for key, value in absent or wanted)
    terms = selectors.required_terms(constraints.affinity)
    if absent or not terms:
        asks = "its nodeSelector asks for"
    else:
        told = " or ".join(dict.fromkeys(selectors.unmet(term, {}, "") for term in terms)) or told
        asks = "its node affinity asks for"
    return f"no node has the label {told} that {asks}"


def _tainted(subject: Subject, records: Sequence[NodeRecord]) -> str:
    """Say that a pod tolerates the taints of no node, with the first of them."""
    record = next((each for each in records if _untolerated(subject, each)), None)
    such = (
        f", such as {_untolerated(subject, record).removeprefix('tainted ')} on {record.name}"
        if record is not None
        else ""
    )
    nodes = f"all {len(records)} nodes have taints" if len(records) > 1 else "the only node has a taint"
    return f"{nodes} that it does not tolerate{such}"


def conflict(wanted: Iterable[HostPort], taken: Iterable[HostPort]) -> bool:
    """Tell whether any wanted port is taken."""
    used = list(taken)
    return any(port.conflicts(other) for port in wanted for other in used)
