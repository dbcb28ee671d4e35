"""fragmentation: keep what is left of GPUs usable for the pods that usually come."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from pumice.api import duration, names
from pumice.framework.configuration import Configured, Settings, settings
from pumice.framework.plugin import Plugin
from pumice.framework.points import NODE_LOCAL, NODE_TASKS
from pumice.framework.reasons import Code
from pumice.plugins.deviceshare import card_choice
from pumice.plugins.deviceshare.holdings import Holdings
from pumice.plugins.deviceshare.situations import REFUSED
from pumice.plugins.fragmentation import asked, typical
from pumice.plugins.fragmentation.fragments import Fragments
from pumice.plugins.fragmentation.milli_cards import MilliCards
from pumice.plugins.fragmentation.scorer import Scorer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pumice.framework.reasons import ReasonVector
    from pumice.framework.runs import Run
    from pumice.framework.session import Session
    from pumice.framework.subject import Subject
    from pumice.model.nodes import NodeRecord, Nodes
    from pumice.model.shape import Shape
    from pumice.plugins.fragmentation.typical import Kind, Learnt

    Lesson = tuple[Any, int, int, bool, Learnt]
    """By which settings, when, and after how many pods it was learnt; whether any of them asked for cards, and the typical kinds."""

PAUSE: Final = 10 * duration.MINUTE
"""How long what was learnt stays in force."""
WHOLE_GPUS: Final = (names.NVIDIA_GPU, names.AMD_GPU)
_DEVICESHARE: Final = "deviceshare"
SHORT: Final = "node(s) did not have the GPU cards that the pod asks for"
ILL: Final = "node(s) had GPU cards for the pod that are not well"


class FragmentationSettings(Settings):
    """From what typical pods are learnt, and how much the score counts."""

    weight = settings.whole(
        "fragmentation.weight", 1, minimum=0, help="weight of the score; 0 leaves only the cards to it"
    )
    history = settings.period(
        "fragmentation.history", 7 * 24 * duration.HOUR, minimum=1, help="how far back pods count that were created"
    )
    share = settings.whole(
        "fragmentation.share", 95, minimum=1, maximum=100, help="percent of these pods that typical kinds have to cover"
    )
    resources = settings.words(
        "fragmentation.resources",
        help="further names of resources that are whole GPUs, beside nvidia.com/gpu and amd.com/gpu",
    )
    model_label = settings.text(
        "fragmentation.modelLabel", names.GPU_PRODUCT, help="the node label that says which model its GPUs are"
    )


class Fragmentation(Plugin):
    """Prefer nodes, and cards, on which a pod leaves as few fragments as possible: GPU room that pods of the usual kinds cannot use.

    The kinds are learnt from the pods that were created of late, every ten minutes. The fragments of a node are what is left of its cards, for each kind all of it where a pod of the kind does not fit (cpu, cards, model), otherwise what is left of the cards that are too full for it; weighted by how frequent the kind is. With F before and F' after, the score is ⌊100 ÷ (1 + e^(-(F - F') ÷ 1000))⌋ whole points times `fragmentation.weight`, 50 where nothing changes; equal nodes are taken in the order of their names.
    It gives out cards by thousandths: pods ask for `pumice.dev/gpu-milli` (1 to 1000) of one card, or with `pumice.dev/gpu-count` for several whole ones, on nodes that offer 1000 for each card. The card travels with the bind in the annotation `pumice.dev/gpu-index`, and is read back from there after a restart; cards that a node lists in `pumice.dev/gpu-unhealthy-ids` take nobody. Which card `deviceshare` takes comes from this score, too.
    """

    name = "fragmentation"
    points = frozenset({"Predicate", "NodeOrder"})
    settings = Configured(FragmentationSettings)

    def __init__(self, settings: Settings, switches: Mapping[str, bool]) -> None:
        super().__init__(settings, switches)
        self.holdings = Holdings(MilliCards())
        self._whole = tuple(dict.fromkeys((*WHOLE_GPUS, *self.settings.resources)))
        self._scorer: tuple[Learnt | None, Scorer] | None = None

    def open(self, session: Session) -> None:
        """Register filter and score, if any node has cards."""
        self._session = session
        cluster = session.cluster
        shares = any(plugin.name == _DEVICESHARE for tier in session.configuration.tiers for plugin in tier)
        own = self.holdings.update(cluster)
        whole = self._whole if shares else (*self._whole, names.GPU_NUMBER)
        for node, problem in (*self.holdings.problems.items(), *self.holdings.gone.items()):
            session.record.say(self.name, f"Node {node}: {problem}")
        if not (own or shares or any(name in cluster.vocabulary.columns for name in whole)):
            return
        self._rater = self._scored_by(self._lesson(session), whole)
        self._rater.begin(cluster.nodes)
        self.holdings.preference = self._rater
        card_choice.prefer(session, self._rater)
        if own:
            causes = ((Code.UNSCHEDULABLE, SHORT), (Code.UNSCHEDULABLE, ILL))
            self._reasons = np.array([session.reason(self.name, code, why) for code, why in causes], dtype=np.int16)
            session.predicate.add(self.fits, reads=NODE_TASKS, details=self.detail, ahead=True)
            session.add_handler(self.follow)
        if self.settings.weight:
            reads = NODE_TASKS if own or shares else NODE_LOCAL
            session.score.add(self._rater.score, reads=reads, ahead=True)

    # -- typical kinds -------------------------------------------------------------------------------------------

    def _lesson(self, session: Session) -> Learnt | None:
        """Return the typical kinds, learnt anew if that is due; None if no pod asked for cards. They are kept with the cluster, as a part of what recordings know."""
        told, arrivals = self.settings, session.cluster.arrivals
        arrivals.follow(session.cluster.tasks.values())
        by = (told.history, told.share, *self._whole, told.model_label, arrivals.given is not None)
        lesson: Lesson | None = arrivals.learnt.get(self.name)
        if lesson is None or lesson[0] != by or self._is_over(lesson, session.started, arrivals.noted):
            offered = session.cluster.vocabulary.columns
            shared = names.GPU_MEMORY in offered or names.VGPU_NUMBER in offered
            sizes = asked.usual_sizes(session.cluster.nodes.records) if shared else asked.Sizes()

            def kind_of(shape: Shape) -> Kind:
                return asked.kind_of(shape, self._whole, told.model_label, sizes)

            kinds = typical.counted(arrivals.since(session.started - told.history), kind_of)
            seen = any(milli for _, milli, _, _ in kinds)
            lesson = (by, session.started, arrivals.noted, seen, typical.learn(kinds, told.share) if seen else ())
            arrivals.learnt[self.name] = lesson
        return lesson[4] if lesson[3] else None

    @staticmethod
    def _is_over(lesson: Lesson, now: int, noted: int) -> bool:
        """Tell whether it is time to learn again; until anybody asks for cards, every new pod is a reason to look."""
        by, learnt, after, seen, _ = lesson
        if by[-1]:
            return False  # all of the history was told
        return now - learnt >= PAUSE or (not seen and noted != after)

    def _scored_by(self, kinds: Learnt | None, whole: tuple[str, ...]) -> Scorer:
        """Return what scores by typical kinds: the same as before while they are the same, so that answers stay."""
        if self._scorer is None or self._scorer[0] != kinds:
            fragments = None if kinds is None else Fragments(kinds)
            told = self.settings
            self._scorer = (kinds, Scorer(fragments, self.holdings, whole, told.model_label, told.weight))
        return self._scorer[1]

    # -- cards by thousandths ------------------------------------------------------------------------------------

    def fits(self, subject: Subject, nodes: Nodes) -> ReasonVector | None:
        """Refuse nodes whose cards do not have what a pod asks for."""
        request = self.holdings.kind.request(subject.task)
        if request is None:
            return None
        answers, at = self.holdings.answers(request), self.holdings.situations(nodes, subject.task)
        return np.where(answers.look(at) == REFUSED, self._reasons[answers.causes[at]], 0).astype(np.int16)

    def detail(self, subject: Subject, node: NodeRecord) -> str:
        """Say what a node's cards lack."""
        gone = self.holdings.gone.get(node.name, "")
        refusal = self.holdings.refusal(node.row, self.holdings.kind.request(subject.task)) or SHORT
        return f"{refusal}; {gone}" if gone else refusal

    def follow(self, run: Run, sign: int) -> None:
        """Give cards to pods that are placed, and take back those of pods that are not any more."""
        self.holdings.follow(self._session.cluster, run, sign, self._session.started)
