"""deviceshare: accelerators that are shared, or given out one by one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from pumice.api import kinds, names, usage
from pumice.framework.configuration import Configured, Settings, settings
from pumice.framework.plugin import Plugin
from pumice.framework.points import NODE_TASKS, Reads
from pumice.framework.reasons import Code
from pumice.plugins.deviceshare import card_choice, geometries
from pumice.plugins.deviceshare.holdings import Holdings
from pumice.plugins.deviceshare.kinds import Gpus, VirtualGpus
from pumice.plugins.deviceshare.locks import Locks
from pumice.plugins.deviceshare.situations import REFUSED

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Mapping

    from pumice.api import documents
    from pumice.framework.evaluation import Floats
    from pumice.framework.reasons import ReasonVector
    from pumice.framework.runs import Run
    from pumice.framework.session import Session
    from pumice.framework.subject import Subject
    from pumice.model.nodes import NodeRecord, Nodes

_SHARING: Final = "deviceshare.GPUSharingEnable"
_NUMBER: Final = "deviceshare.GPUNumberEnable"
_VGPU: Final = "deviceshare.VGPUEnable"
_LOCK: Final = "deviceshare.NodeLockEnable"
_ASCEND: Final = ("deviceshare.AscendMindClusterVNPUEnable", "deviceshare.AscendHAMiVNPUEnable")
_RULES: Final = "deviceshare.GPUExclusiveRules"
_ASCEND_RESOURCES: Final = ("huawei.com/Ascend", "huawei.com/npu-core")
SHORT: Final = "node(s) did not have the cards that the pod asks for"
GEOMETRIES: Final = "cluster"  # the one object that the text of the ConfigMap becomes
ILL: Final = "node(s) had cards for the pod that are not well"
UNCUT: Final = "node(s) had cards that are cut into MIG instances of no known geometry"
NO_ASCEND: Final = "node(s) are not known to share Ascend cards"


class DeviceShareSettings(Settings):
    """Which cards are shared, and how they are chosen."""

    sharing = settings.truth(_SHARING, default=False, help="whether GPUs are shared by memory (volcano.sh/gpu-memory)")
    number = settings.truth(_NUMBER, default=False, help="whether GPUs are given out whole (volcano.sh/gpu-number)")
    vgpu = settings.truth(_VGPU, default=False, help="whether virtual GPUs are given out (volcano.sh/vgpu-number)")
    lock = settings.truth(
        _LOCK,
        default=False,
        help="whether a node is locked, by an annotation, from before pods are bound to it until its device plugin has served them",
    )
    mind_cluster = settings.truth(
        _ASCEND[0], default=False, help="accepted: pods with Ascend cards wait, with a reason"
    )
    hami = settings.truth(_ASCEND[1], default=False, help="accepted: pods with Ascend cards wait, with a reason")
    policy = settings.text(
        "deviceshare.SchedulePolicy", "", choices=("", "binpack", "spread"), help="which card, and node, is preferred"
    )
    weight = settings.whole("deviceshare.ScheduleWeight", 0, minimum=0, help="weight of the score; 0 switches it off")
    geometries_name = settings.text(
        "deviceshare.KnownGeometriesCMName",
        "volcano-vgpu-device-config",
        help="the ConfigMap whose key `device-config.yaml` says into which MIG instances cards can be cut",
    )
    geometries_namespace = settings.text(
        "deviceshare.KnownGeometriesCMNamespace", "kube-system", help="the namespace of that ConfigMap"
    )
    rules = settings.anything(
        _RULES, "list", (), help="maps of labels: pods that have all labels of one keep off each other's cards"
    )


class DeviceShare(Plugin):
    """Put pods on cards: GPUs by memory or by number, or virtual GPUs with memory and cores of their own.

    What a node has is read from its capacity, or from the annotation of its device plugin; cards that are not well take nobody, and are named to whoever waits for want of one. Which card a pod has travels with its bind, in the annotations that the device plugins read, and is read back from there after a restart. Pods of one cycle never get the same part of a card.
    Where the device plugin cuts cards into MIG instances (mode `mig`), a pod gets the smallest instance that is large enough, of the first way to cut the card that has one; a card that somebody uses stays cut as it is, and is free to be cut anew when nobody does any more. The ways are read from
    the ConfigMap of the device plugin, once a minute, which its role may `get` under the usual name (under another, grant it `get` on that one); a recording keeps its text as the object `CardGeometries`, and a scenario can have one. While no way to cut a type of card is known, its pods wait with that reason.
    For virtual GPUs `binpack` prefers cards that are used most, and `spread` those that are used least. Only one of the three kinds can be switched on.
    With locks a node is locked before pods are bound to it, by the annotation `gpu` or `hamivgpu`, and takes nobody else who asks for cards until its device plugin has taken the lock off, or five minutes have passed. Members of a gang that leave together share a lock.
    """

    name = "deviceshare"
    points = frozenset({"Predicate", "NodeOrder"})
    settings = Configured(DeviceShareSettings)

    @classmethod
    def objections(cls, arguments: Mapping[str, Any]) -> Iterable[tuple[documents.Path, str]]:
        """Refuse kinds that exclude each other, and rules that cannot be read."""
        on = [key for key in (_SHARING, _NUMBER, _VGPU) if arguments.get(key)]
        if len(on) > 1:
            yield (on[1],), f"cannot be on together with {on[0]}; keep only one of them"
        for index, rule in enumerate(arguments.get(_RULES) or ()):
            if not isinstance(rule, dict) or not all(isinstance(each, str) for pair in rule.items() for each in pair):
                yield (_RULES, index), "expected a map of labels"

    def __init__(self, settings: Settings, switches: Mapping[str, bool]) -> None:
        super().__init__(settings, switches)
        told = self.settings
        self.holdings: Holdings | None = None
        self._geometries = self._wrong = ""
        if told.sharing or told.number:
            self.holdings = Holdings(Gpus(whole=told.number))
        elif told.vgpu:
            self.holdings = Holdings(VirtualGpus(told.policy, list(told.rules or ())))
        self._locks: Locks | None = None
        if told.lock and (holdings := self.holdings) is not None:
            annotation = names.VGPU_LOCK if told.vgpu else names.GPU_LOCK
            self._locks = Locks(self.name, annotation, lambda task: holdings.kind.request(task) is not None)

    def open(self, session: Session) -> None:
        """Register filter and score, if any node has cards."""
        self._session = session
        causes = ((Code.UNSCHEDULABLE, SHORT), (Code.UNSCHEDULABLE, ILL), (Code.UNRESOLVABLE, UNCUT))
        self._reasons = np.array([session.reason(self.name, code, why) for code, why in causes], dtype=np.int16)
        self._ascend = session.reason(self.name, Code.UNRESOLVABLE, NO_ASCEND)
        if self.settings.mind_cluster or self.settings.hami:
            session.predicate.add(self.is_not_ascend, reads=Reads.NODE)
        holdings = self.holdings
        if holdings is not None and isinstance(holdings.kind, VirtualGpus):
            self._read_geometries(session, holdings, holdings.kind)
        if holdings is None or not holdings.update(session.cluster):
            return
        card_choice.share(session, holdings)
        for node, problem in (*holdings.problems.items(), *holdings.gone.items()):
            session.record.say(self.name, f"Node {node}: {problem}")
        reads = NODE_TASKS | Reads.TASK if self.settings.rules else NODE_TASKS  # rules go by labels
        session.predicate.add(self.fits, reads=reads, apart=self.request, details=self.detail, ahead=True)
        session.add_handler(self.follow)
        if self._locks is not None:
            self._locks.open(session)
        if self.settings.weight:
            session.score.add(self.score, reads=reads, apart=self.request, ahead=True)

    def _read_geometries(self, session: Session, holdings: Holdings, kind: VirtualGpus) -> None:
        """Take over into what cards can be cut, if that has changed; what cannot be read is said, and what was known before stays."""
        found = session.cluster.objects.get(kinds.CARD_GEOMETRIES.name, {}).get(GEOMETRIES)
        text = found.text if isinstance(found, usage.CardGeometries) else ""
        if text != self._geometries:
            self._geometries, self._wrong = text, ""
            try:
                kind.geometries = geometries.parse(text) if text else geometries.NONE
                holdings.forget()
            except geometries.GeometryError as error:
                self._wrong = f"ConfigMap {self.settings.geometries_namespace}/{self.settings.geometries_name}: {error}"
        if self._wrong:
            session.record.say(self.name, self._wrong)

    def is_not_ascend(self, subject: Subject, nodes: Nodes) -> ReasonVector | None:
        """Let pods that ask for Ascend cards wait."""
        if not any(name.startswith(_ASCEND_RESOURCES) for name in subject.request.amounts):
            return None
        return np.full(len(nodes), self._ascend, dtype=np.int16)

    def request(self, subject: Subject) -> Hashable:
        """Tell subjects apart by what they ask for and whom they keep off."""
        return None if self.holdings is None else self.holdings.kind.request(subject.task)

    def fits(self, subject: Subject, nodes: Nodes) -> ReasonVector | None:
        """Refuse nodes whose cards do not have what a pod asks for; one without cards is for the other filters to judge."""
        request, holdings = self.request(subject), self.holdings
        if request is None or holdings is None:
            return None
        answers = holdings.answers(request)
        at = holdings.situations(nodes, subject.task)
        return np.where(answers.look(at) == REFUSED, self._reasons[answers.causes[at]], 0).astype(np.int16)

    def detail(self, subject: Subject, node: NodeRecord) -> str:
        """Say what a node's cards lack."""
        if self.holdings is None:
            return SHORT
        gone = self.holdings.gone.get(node.name, "")
        refusal = self.holdings.refusal(node.row, self.request(subject)) or SHORT
        return f"{refusal}; {gone}" if gone else refusal

    def score(self, subject: Subject, nodes: Nodes) -> Floats | None:
        """Rate nodes by the cards that a pod would get."""
        request, holdings = self.request(subject), self.holdings
        if request is None or holdings is None:
            return None
        at = holdings.situations(nodes, subject.task)
        rated: Floats = np.rint(holdings.answers(request).rates(at)) * self.settings.weight
        return rated

    def follow(self, run: Run, sign: int) -> None:
        """Give cards to pods that are placed, and take back those of pods that are not any more."""
        if self.holdings is not None:
            self.holdings.follow(self._session.cluster, run, sign, self._session.started)
