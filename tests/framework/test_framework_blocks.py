"""Shapes worked out together decide exactly as each worked out alone, with every built-in plugin; a form over many that is wrong decides nothing."""

from __future__ import annotations

import functools
import re
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders import Desk, group, node, played, pod, queue
from drawing import drawn
from pumice.cache import effects
from pumice.framework import block, blocks, observing, selection, shortcuts
from pumice.framework.drafting import Draft
from pumice.framework.plugin import Plugin
from pumice.framework.points import NODE_TASKS, Reads
from pumice.framework.reasons import Code
from pumice.framework.subject import Subject
from pumice.model import nodes as model_nodes

ROOT = Path(__file__).parents[2]
ANYTHING = st.randoms(use_true_random=True)
GPU = "nvidia.com/gpu"
SOFT = {"key": "k", "effect": "PreferNoSchedule"}
HARD = {"key": "k", "effect": "NoSchedule"}


class Loner(Plugin):
    """A filter on the tasks of a node, offered for many: no more than three pods on one node."""

    name = "loner"
    points = frozenset({"Predicate"})
    reads = NODE_TASKS

    def open(self, session):
        self.reason = session.reason(self.name, Code.UNSCHEDULABLE, "three pods are here already")
        session.predicate.add(self.full, many=self.full_for_many)

    def full(self, _subject, nodes):
        return np.array([self.reason * (len(each.tasks) > 2) for each in nodes.records()], dtype=np.int16)

    def full_for_many(self, _subjects, nodes):
        return self.full(None, nodes)[None, :]


class Alone(Plugin):
    """A score that can be asked about one subject only, and has nothing to say about small pods."""

    name = "alone"
    points = frozenset({"NodeOrder"})
    reads = Reads.COLUMNS

    def open(self, session):
        session.score.add(self.points_of)

    def points_of(self, subject, nodes):
        return None if subject.request.vector[0] < 1500 else (nodes.used[:, 0] % 7).astype(float)


def from_the_page():
    """The example of the page for authors, as it is written there."""
    page = (ROOT / "docs/plugins.md").read_text(encoding="utf-8")
    (example,) = [block for block in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if "class Roomy(" in block]
    space = {}
    exec(example, space)  # noqa: S102  our own page
    return space["Roomy"]


Roomy = from_the_page()


def configuration(pick):
    """Any scoring and filtering plugins, with any weights, on any sharing plugin."""
    weights = {
        name: pick.choice([0, 1, 1, 2])
        for name in (
            "leastrequested",
            "mostrequested",
            "balancedresource",
            "nodeaffinity",
            "tainttoleration",
            "podaffinity",
        )
    }
    packing = {
        "binpack.weight": pick.choice([1, 3, -1]),
        "binpack.cpu": pick.choice([0, 1, 5]),
        "binpack.resources": GPU,
    }
    offered = [
        f"{{name: nodeorder, arguments: {{{', '.join(f'{k}.weight: {v}' for k, v in weights.items())}}}}}",
        f"{{name: binpack, arguments: {{{', '.join(f'{k}: {v}' for k, v in packing.items())}}}}}",
        "{name: resource-strategy-fit}",
        "{name: nodegroup}",
        "{name: task-topology}",
        "{name: network-topology-aware}",
        "{name: loner}",
        "{name: alone}",
        "{name: roomy}",
    ]
    chosen = [
        each
        for each, odds in zip(offered, (0.8, 0.6, 0.2, 0.1, 0.1, 0.1, 0.1, 0.1, 0.3), strict=True)
        if pick.random() < odds
    ]
    sharing = pick.choice(["{name: proportion}", "{name: capacity}", "{name: drf}", "{name: drf}, {name: proportion}"])
    actions = pick.choice(
        ["allocate", "allocate, backfill", "enqueue, allocate, backfill", "allocate, preempt", "allocate, reclaim"]
    )
    second = ", ".join([sharing, "{name: predicates}", *chosen])
    return f'actions: "{actions}"\ntiers:\n- plugins: [{{name: priority}}, {{name: gang}}]\n- plugins: [{second}]\n'


def nodes(pick):
    for i in range(pick.choice([0, 1, 2, 3, 4, 5, 6, 7])):
        more = {"nvidia.com__gpu": str(pick.randint(1, 4))} if pick.random() < 0.3 else {}
        yield node(
            f"n{i}",
            cpu=str(pick.randint(1, 8)),
            memory=pick.choice(["1Gi", "4Gi", "16Gi", "0"]),
            pods=str(pick.choice([1, 3, 110])),
            labels={"zone": pick.choice("ab")},
            taints=[pick.choice([SOFT, HARD])] if pick.random() < 0.1 else [],
            cordoned=pick.random() < 0.05,
            **more,
        )


def asked(pick):
    """What a pod asks for; now and then with what keeps it out of a block."""
    requests = {GPU: str(pick.randint(1, 2))} if pick.random() < 0.15 else {}
    more = {"ports": [{"hostPort": 80}]} if pick.random() < 0.1 else {}
    if pick.random() < 0.15:
        more["nodeSelector"] = {"zone": "a"}
    if pick.random() < 0.1:
        term = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "x"}}}
        more["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    if pick.random() < 0.1:
        more["tolerations"] = [{"operator": "Exists"}]
    cpu = pick.choice([None, "100m", "250m", "500m", "700m", "1", "2"])
    memory = pick.choice([None, "100Mi", "300Mi", "1Gi", "2Gi"])
    return {"cpu": cpu, "memory": memory, "requests": requests, "labels": {"app": pick.choice("xyz")}, **more}


def arrivals(pick, wave):
    """Jobs of one pod and of several, of unequal and of equal ones."""
    for job in range(pick.randint(1, 8)):
        name, count = f"j{wave}-{job}", pick.choice([1, 1, 1, 2, 4, 6])
        yield group(name, pick.randint(1, count), queue=pick.choice(["default", "other"]))
        equal = asked(pick)
        for i in range(count):
            yield pod(f"{name}-w-{i}", name, **(equal if pick.random() < 0.5 else asked(pick)))


def world(pick):
    """The objects of each cycle."""
    first = [*nodes(pick), queue("other", weight=pick.randint(1, 3)), group("old", 1)]
    count = len([each for each in first if each["kind"] == "Node"])
    for i in range(pick.randint(0, 6) if count else 0):
        where = f"n{pick.randrange(count)}"
        first.append(pod(f"old-w-{i}", "old", cpu="500m", node=where, deleting=pick.random() < 0.4))
    return [[*first, *arrivals(pick, 0)], *([*arrivals(pick, wave)] for wave in range(1, pick.randint(1, 3)))]


def decide(text, waves, *, together):
    """Play the waves; give what was sent and what was said."""
    desk = Desk(text, Loner, Alone, Roomy, taken=None if together else shortcuts.Shortcuts(blocks=False))
    return played(desk, waves)


@settings(max_examples=drawn(150), deadline=None)
@given(pick=ANYTHING)
def test_shapes_worked_out_together_decide_as_each_worked_out_alone(pick):
    text, waves = configuration(pick), world(pick)
    with (
        mock.patch.multiple(block, AT_ONCE=pick.choice([1, 9, 1 << 16]), FEW=pick.choice([0, 64])),
        mock.patch.multiple(blocks, FIRST=pick.choice([2, 32]), KEPT_LIMIT=pick.choice([1, 60, 1 << 23])),
        mock.patch.object(selection, "SMALL", pick.choice([1, 64])),
    ):
        together = decide(text, waves, together=True)
    assert together == decide(text, waves, together=False)


class Wrong(Plugin):
    """A score whose form over many cannot be right."""

    name = "wrong"
    points = frozenset({"NodeOrder"})
    reads = Reads.COLUMNS
    said = None

    def open(self, session):
        session.score.add(self.points_of, many=self.points_of_many)

    def points_of(self, _subject, nodes):
        return nodes.used[:, 0] % 5.0

    def points_of_many(self, subjects, nodes):
        if self.said is None:
            raise ValueError("not today")
        return self.said(len(subjects), len(nodes))


@pytest.mark.retreats
@pytest.mark.parametrize(
    "said",
    [
        None,
        lambda subjects, nodes: np.full((subjects, nodes), np.nan),
        lambda subjects, nodes: np.full((subjects, nodes), np.inf),
        lambda subjects, nodes: np.zeros((nodes, subjects + 1)),
        lambda subjects, nodes: np.zeros(subjects * nodes),
        lambda subjects, nodes: [[0.0] * nodes] * subjects,
        lambda subjects, nodes: np.full((subjects, nodes), "high"),
    ],
)
def test_a_wrong_form_over_many_leaves_the_decision_to_the_form_over_one(said):
    text = (
        'actions: "allocate"\ntiers:\n- plugins: [{name: gang}, {name: predicates}, {name: nodeorder}, {name: wrong}]\n'
    )
    manifests = [
        *(node(f"n{i}", cpu="8") for i in range(3)),
        *(each for i in range(6) for each in (group(f"g{i}", 1), pod(f"p{i}", f"g{i}", cpu=f"{i + 1}00m"))),
    ]

    def sent(*, together):
        known = type("Wrong", (Wrong,), {"said": staticmethod(said) if said else None})
        desk = Desk(text, known, taken=None if together else shortcuts.Shortcuts(blocks=False))
        desk.feed(*manifests).cycle()
        return [repr(effect) for effect in desk.world.effects]

    assert sent(together=True) == sent(together=False)


@pytest.mark.retreats
@pytest.mark.parametrize("way", ["one by one", "many jobs", "many pods"])
def test_once_a_form_over_many_was_wrong_it_is_asked_no_more_in_that_cycle_and_that_is_told_of_once(way, monkeypatch):
    """Whichever answer it is that is wrong: the first, one about nodes that took pods since, or the last."""
    retreats, answers = [], []
    monkeypatch.setattr(observing.Observer, "retreated", lambda _, way, error: retreats.append(way))

    class Breaking(Wrong):
        name, last = "breaking", 0

        def points_of_many(self, subjects, nodes):
            answers.append(len(answers))
            if answers[-1] == self.last:
                raise ValueError("no more")
            return np.tile(self.points_of(None, nodes), (len(subjects), 1))

    def placed(last):
        answers.clear()
        retreats.clear()
        known = type("Breaking", (Breaking,), {"last": last})
        desk = Desk('actions: "allocate"\ntiers:\n- plugins: [{name: gang}, {name: breaking}]\n', known)
        desk.feed(*(node(f"n{i}", cpu="8") for i in range(5)))
        for i in range(6):
            members = 3 if way == "many pods" else 1
            sizes = (i + 2) if way == "one by one" else 3
            desk.feed(group(f"g{i}", members))
            desk.feed(*(pod(f"p{i}-{j}", f"g{i}", cpu=f"{sizes}00m") for j in range(members)))
        desk.cycle()
        return [(bind.name, bind.node) for bind in desk.world.of(effects.Bind)]

    whole = placed(-1)
    assert len(whole) in {6, 18}
    assert retreats == []
    assert answers
    for last in range(len(answers)):
        assert placed(last) == whole
        assert answers[-1] == last
        assert retreats == ["blocks"]


def test_a_question_that_raises_is_put_on_the_job_it_is_asked_about_and_stops_nobody_else(monkeypatch):
    """`apart` is asked about everybody before anybody is tried."""
    retreats = []
    monkeypatch.setattr(observing.Observer, "retreated", lambda _, way, error: retreats.append((way, str(error))))

    class Asking(Alone):
        name = "asking"

        def open(self, session):
            session.score.add(self.points_of, apart=self.question)

        def question(self, subject):
            if subject.task.name == "p2":
                raise ValueError("not about this one")

    desk = Desk('actions: "allocate"\ntiers:\n- plugins: [{name: gang}, {name: asking}]\n', Asking)
    desk.feed(node("n", cpu="8"), *(group(f"g{i}", 1) for i in range(5)))
    desk.feed(*(pod(f"p{i}", f"g{i}", cpu=f"{i + 1}00m") for i in range(5))).cycle()
    assert sorted(bind.name for bind in desk.world.of(effects.Bind)) == ["p0", "p1", "p3", "p4"]
    assert retreats == [(way, "not about this one") for way in ("blocks", "rounds")]


def test_in_a_new_session_nobody_is_worked_out_together_with_others_before_it_is_known_who_comes_next():
    desk = Desk('actions: "allocate"\ntiers:\n- plugins: [{name: gang}, {name: nodeorder}]\n').feed(node("n", "1"))
    for i in range(3):
        desk.feed(group(f"g{i}", 1), pod(f"p{i}", f"g{i}", cpu=f"{i + 2}"))
    desk.cycle()
    session = desk.session()
    subjects = [Subject(desk.task(f"p{i}")) for i in range(3)]
    evaluations = [session.evaluate(subject) for subject in subjects]
    assert all(each.keys(released=False) is None for each in evaluations)
    session.evaluator.blocks.expect(subjects)
    assert all(each.keys(released=False) is not None for each in evaluations)


def test_unequal_shapes_are_really_worked_out_together():
    """The property above would hold trivially if no block were ever made."""
    desk = Desk(
        'actions: "allocate"\ntiers:\n- plugins: [{name: gang}, {name: predicates}, {name: nodeorder}, {name: binpack}]\n'
    )
    desk.feed(*(node(f"n{i}", cpu="8") for i in range(3)))
    for i in range(20):
        desk.feed(group(f"g{i}", 1), pod(f"p{i}", f"g{i}", cpu=f"{i + 1}00m"))
    with mock.patch.object(blocks, "Block", wraps=blocks.Block) as made:
        desk.cycle()
    assert [len(call.args[1]) for call in made.call_args_list] == [20]


@pytest.mark.parametrize("weights", ["leastrequested.weight: 1", "mostrequested.weight: 3"], ids=["spread", "packed"])
@pytest.mark.parametrize("count", [2, selection.SMALL + 9])
def test_many_equal_pods_of_shapes_worked_out_together_are_chosen_at_once_as_each_alone(count, weights):
    """However few nodes a draft would be made for."""
    text = f"""
actions: "allocate"
tiers:
- plugins: [{{name: gang}}, {{name: predicates}}, {{name: nodeorder, arguments: {{{weights}}}}}]
"""
    waves = [
        [node("n9", cpu="64", taints=[HARD]), node("n8", cpu="0"), *(node(f"n{i}", cpu=f"{i + 4}") for i in range(8))]
    ]
    for name, cpu in (("a", "300m"), ("b", "200m"), ("c", "100m")):
        waves[0] += [group(name, count), *(pod(f"{name}-{i:02}", name, cpu=cpu) for i in range(count))]
    with (
        mock.patch.object(selection, "SMALL", 1),
        mock.patch.object(selection, "_from_block", wraps=selection._from_block) as found,  # noqa: SLF001  that it is taken
    ):
        together = decide(text, waves, together=True)
    assert together == decide(text, waves, together=False)
    assert {call.args[-1] for call in found.call_args_list} == {count}


class Refused(Plugin):
    """Refuses a pod before nodes are asked, about which its score by Node objects would break down."""

    name = "refused"
    points = frozenset({"PrePredicate", "NodeOrder"})
    reads = Reads.NODE

    def open(self, session):
        session.pre_predicate.add(lambda subject: "not this one" if subject.task.name == "p2" else None)
        session.score.add(self._fail)

    def _fail(self, subject, _nodes):
        if subject.task.name == "p2":
            raise ValueError("nobody asked")


@pytest.mark.retreats
def test_what_breaks_down_while_many_are_worked_out_together_is_put_on_nobody_who_does_not_ask():
    desk = Desk('actions: "allocate"\ntiers:\n- plugins: [{name: gang}, {name: refused}]\n', Refused).feed(
        node("n", "8")
    )
    desk.feed(*(each for i in range(4) for each in (group(f"g{i}", 1), pod(f"p{i}", f"g{i}", cpu=f"{i + 1}00m"))))
    record = desk.cycle()
    assert sorted(desk.world.binds) == ["p0", "p1", "p3"]
    assert desk.scheduler.failures == []
    assert "broke down" not in "\n".join(record.trace())


@pytest.mark.parametrize("kind", [np.float64, np.float32, np.int64])
@pytest.mark.parametrize("is_spread", [False, True])
@pytest.mark.parametrize("count", [0, 1, 2, 3])
def test_forms_over_many_may_answer_in_whole_numbers_and_for_all_alike(kind, is_spread, count):
    class Ranking(Plugin):
        name = "ranking"
        points = frozenset({"NodeOrder"})
        reads = Reads.COLUMNS

        def open(self, session):
            for number in range(count):
                session.score.add(many=functools.partial(self._rank, number))

        def _rank(self, number, subjects, nodes):
            points = (nodes.index * (7, 3, 5)[number] % 4).astype(kind)
            return points[None, :] if is_spread else np.tile(points, (len(subjects), 1))

    def bound(**how):
        desk = Desk('actions: "allocate"\ntiers:\n- plugins: [{name: gang}, {name: ranking}]\n', Ranking, **how)
        desk.feed(*(node(f"n{i}", f"{i + 1}") for i in range(5)))
        for i in range(12):
            desk.feed(group(f"g{i}", 1), pod(f"p{i}", f"g{i}", cpu=f"{i + 1}50m"))
        desk.cycle()
        return desk.world.binds

    assert bound() == bound(taken=shortcuts.Shortcuts(blocks=False))


@pytest.mark.parametrize("few", [1, 64])
def test_a_node_that_is_again_as_it_was_is_answered_about_as_then(few, monkeypatch):
    """Whether a draft had put something on it, or it was another while many were."""
    monkeypatch.setattr(block, "FEW", few)
    desk = Desk('actions: "allocate"\ntiers:\n- plugins: [{name: predicates}, {name: binpack}]\n').feed(group("g", 99))
    desk.feed(*(node(f"n{i}", "8") for i in range(12)), *(pod(f"g-{i}", "g", cpu=f"{i + 1}00m") for i in range(6)))
    session = desk.session()
    tasks = [desk.task(f"g-{i}") for i in range(6)]
    subjects, table = [Subject(task) for task in tasks[:3]], desk.cluster.nodes
    kept, statement = block.Block(session.evaluator, subjects), session.statement()

    def moved(*changes):
        for task, place in changes:
            if place is None:
                statement.undo(task)
            else:
                statement.allocate([task], [table.records[place]])
        kept.catch_up()
        assert kept.keys.tolist() == block.Block(session.evaluator, subjects).keys.tolist()

    moved((tasks[0], 5))
    moved((tasks[1], 5), (tasks[2], 7), (tasks[3], 8))
    moved((tasks[1], None))
    assert Draft(kept, table, [0, 1, 2]).rows() == [8, 8, 8]
    moved()


def test_blocks_that_are_out_of_date_are_let_go_of(monkeypatch):
    """Those that come after them find nothing of them where they are too many."""
    monkeypatch.setattr(blocks, "KEPT_LIMIT", 1)
    monkeypatch.setattr(blocks, "FIRST", 2)
    desk = Desk('actions: "allocate"\ntiers:\n- plugins: [{name: gang}, {name: nodeorder}]\n')
    for wave in range(3):
        desk.feed(node(f"n{wave}", cpu="8"))
        for i in range(4):
            desk.feed(group(f"g{wave}-{i}", 1), pod(f"p{wave}-{i}", f"g{wave}-{i}", cpu=f"{wave + 1}{i + 1}0m"))
        desk.cycle()
    assert len(desk.world.binds) == 12


@settings(max_examples=drawn(120), deadline=None)
@given(draw=ANYTHING)
def test_a_block_that_is_brought_up_to_date_says_what_a_new_one_says(draw):
    """However much has changed, also where it is not known any more what has, and after drafts."""
    desk = Desk(
        'actions: "allocate"\ntiers:\n- plugins: [{name: predicates}, {name: nodeorder}, {name: binpack}]\n'
    ).feed(*nodes(draw), node("last", "9"), group("g", 99))
    desk.feed(*(pod(f"g-{i}", "g", cpu=f"{draw.randint(1, 4)}00m", memory="100Mi") for i in range(8)))
    session = desk.session()
    tasks = [desk.task(f"g-{i}") for i in range(8)]
    subjects = list({id(task.shape): Subject(task) for task in tasks}.values())
    table, evaluator = desk.cluster.nodes, session.evaluator
    statement = session.statement()
    small = {
        "AT_ONCE": draw.choice([1, 9, 1 << 16]),
        "FEW": draw.choice([0, 1, 64]),
        "MEMO_LIMIT": draw.choice([0, 1 << 18]),
    }
    log = draw.choice([1, 1 << 20])
    with mock.patch.multiple(block, **small), mock.patch.object(model_nodes, "LOG_LIMIT", log):
        kept = block.Block(evaluator, subjects)
        for _ in range(draw.randint(1, 4)):
            for task in draw.sample(tasks, draw.randint(0, 4)):
                if task.node is None:
                    statement.pipeline([task], [draw.choice(table.records)])
                else:
                    statement.undo(task)
            if draw.random() < 0.5:
                Draft(kept, table, [draw.randrange(len(subjects)) for _ in range(3)]).rows()
            kept.catch_up()
            assert kept.keys.tolist() == block.Block(evaluator, subjects).keys.tolist()
