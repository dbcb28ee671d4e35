"""What functions say that they read spares work and changes nothing: whoever declares just what it reads has the same effect as if it had declared everything."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from hypothesis import given, settings
from test_actions_drafted import ANYTHING, configuration, decide, world

from builders import Desk, group, node, pod, priority_class
from drawing import drawn, number_by
from pumice.framework.plugin import Plugin
from pumice.framework.reads import EVERYTHING, NOTHING, Reads
from pumice.framework.reasons import Code

READ = (Reads.NODE, Reads.COLUMNS, Reads.TASKS, Reads.OTHER_NODES, Reads.TASK, Reads.JOB, Reads.QUEUE)
MILLION = 1 << 20


def who(reads, seed, subject):
    """Name a subject by what may be read of it."""
    return (
        seed,
        sorted(subject.request.amounts.items()) if Reads.COLUMNS in reads else "",
        subject.constraints.node_selector,
        subject.task.name if Reads.TASK in reads else "",
        subject.job.key if Reads.JOB in reads else "",
        subject.queue.name if Reads.QUEUE in reads else "",
    )


def label(task):
    return task.pod.metadata.labels.get("app", "")


def held(cluster):
    return sum(job.tally.ready for job in cluster.jobs.values())


def to_scale(raw):
    """Give the best of some nodes 100 points and the worst none, in whole points."""
    span = raw.max() - raw.min()
    return (raw - raw.min()) * 100 // span if span else np.zeros(len(raw))


class Peculiar(Plugin):
    """Has its own mind at three points, each of which reads what `wishes` says, and maybe a label that it names; it tells of that, or says that it reads everything."""

    name = "peculiar"
    points = frozenset({"PrePredicate", "Predicate", "NodeOrder"})
    wishes, honest, names, compares = {}, True, False, False

    def open(self, session):
        self.cluster = session.cluster
        self.reason = session.reason(self.name, Code.UNSCHEDULABLE, "peculiar")
        for point, (seed, reads) in self.wishes.items():
            function = functools.partial(getattr(self, point), seed, reads)
            apart = {"apart": lambda subject: label(subject.task)} if self.names and point != "pre_predicate" else {}
            scale = {"normalise": to_scale} if self.compares and point == "score" else {}
            how = {"reads": reads, **apart, **scale} if self.honest else {"reads": EVERYTHING, **scale}
            getattr(session, point).add(function, **how)
        if self.names:
            session.divide_runs(label)

    def is_over(self, reads, known, cpu, tasks):
        """Tell whether as much as is read of what placements change is too much: whoever is refused stays so until somebody goes."""
        limit = number_by("limit", *known)
        return (
            (Reads.COLUMNS in reads and cpu > 2000 + limit % 6000)
            or (Reads.TASKS in reads and tasks > 1 + limit % 9)
            or (Reads.OTHER_NODES in reads and held(self.cluster) > 1 + limit % 20)
        )

    def pre_predicate(self, seed, reads, subject):
        known, table = who(reads, seed, subject), self.cluster.nodes
        nodes = [each.name for each in table.records] if Reads.NODE in reads else ()
        cpu, tasks = int(table.view().used[:, 0].sum()), sum(len(each.tasks) for each in table.records)
        over = number_by(*known, nodes) % 8 == 0 or self.is_over(reads, known, cpu // 4, tasks // 4)
        return "peculiar" if over else None

    def predicate(self, seed, reads, subject, nodes):
        known = (*who(reads, seed, subject), label(subject.task) if self.names else "")
        found = np.zeros(len(nodes), dtype=np.int16)
        for place, each in enumerate(nodes.records()):
            node = each.name if Reads.NODE in reads else ""
            tasks = len(each.tasks) if Reads.TASKS in reads else 0
            over = self.is_over(reads, known, int(nodes.used[place, 0]), tasks)
            found[place] = self.reason if over or number_by(*known, node) % 4 == 0 else 0
        return found

    def score(self, seed, reads, subject, nodes):
        known = (*who(reads, seed, subject), label(subject.task) if self.names else "")
        found = np.zeros(len(nodes), dtype=np.int64)
        for place, each in enumerate(nodes.records()):
            read = (
                each.name if Reads.NODE in reads else "",
                int(nodes.used[place, 0]) if Reads.COLUMNS in reads else 0,
                len(each.tasks) if Reads.TASKS in reads else 0,
                held(self.cluster) if Reads.OTHER_NODES in reads else 0,
            )
            found[place] = number_by(*known, *read) % 100
        return found


def wishes(pick):
    """Choose who has a mind of its own, and what each of them reads."""
    found = {}
    for point in ("pre_predicate", "predicate", "score"):
        if pick.random() < 0.6:
            chosen = [each for each in READ if pick.random() < 0.3]
            found[point] = (pick.randrange(MILLION), functools.reduce(lambda one, other: one | other, chosen, NOTHING))
    return found


def decisions(text, waves, plugin):
    """Give who was sent where, and who was sent away."""
    sent = decide(text, waves, plugin)[0]
    return [each for each in sent if each.startswith(("Bind(", "Evict("))]


@settings(max_examples=drawn(160, 40), deadline=None)
@given(pick=ANYTHING)
def test_what_functions_say_that_they_read_changes_no_decision(pick):
    text, waves, minds = configuration(pick, "peculiar"), world(pick), wishes(pick)
    has = {"wishes": minds, "names": pick.random() < 0.3, "compares": pick.random() < 0.4}
    honest, shy = (type("Peculiar", (Peculiar,), {**has, "honest": each}) for each in (True, False))
    assert decisions(text, waves, honest) == decisions(text, waves, shy), minds


PREEMPT = """
actions: "allocate, preempt"
tiers:
- plugins: [{name: priority}, {name: gang}]
- plugins: [{name: predicates}, {name: sulking}]
"""


@pytest.mark.parametrize("refuses", [True, False])
@pytest.mark.parametrize("reads", [NOTHING, *READ, Reads.JOB | Reads.QUEUE, Reads.TIME, EVERYTHING], ids=str)
def test_nobody_is_evicted_against_a_filter_that_nobody_s_going_changes(reads, refuses):
    """Whatever its reason says: `UNSCHEDULABLE` is that of which somebody's going could be a cure."""

    class Sulking(Plugin):
        name = "sulking"
        points = frozenset({"Predicate"})

        def open(self, session):
            reason = session.reason(self.name, Code.UNSCHEDULABLE, "not in this mood")
            if refuses:
                session.predicate.add(lambda _, nodes: np.full(len(nodes), reason, dtype=np.int16), reads=reads)

    desk = Desk(PREEMPT, Sulking).feed(node("n", "4"), priority_class("high", 9), group("old", 1, phase="Running"))
    desk.feed(pod("old-0", "old", cpu="2", node="n"), pod("old-1", "old", cpu="2", node="n"))
    desk.feed(group("g", 1, phase="Inqueue", priorityClassName="high"), pod("g-0", "g", cpu="2", priority=9)).cycle()
    assert desk.world.evictions == ([] if refuses else ["old-1"])


@pytest.mark.parametrize("reads", [NOTHING, Reads.NODE, Reads.COLUMNS, Reads.TASKS, Reads.OTHER_NODES], ids=str)
def test_a_filter_that_names_a_label_answers_by_it_whatever_else_it_reads(reads):
    class Choosy(Plugin):
        name = "choosy"
        points = frozenset({"Predicate"})

        def open(self, session):
            reason = session.reason(self.name, Code.UNRESOLVABLE, "not this one")
            session.predicate.add(
                lambda subject, nodes: np.full(len(nodes), reason * (label(subject.task) == "x"), dtype=np.int16),
                reads=reads,
                apart=lambda subject: label(subject.task),
            )

    desk = Desk(PREEMPT.replace("sulking", "choosy"), Choosy).feed(node("n", "9"))
    for i, app in enumerate("yxyx"):
        desk.feed(group(f"g{i}", 1, phase="Inqueue"), pod(f"g{i}-0", f"g{i}", cpu="1", labels={"app": app}))
    desk.cycle()
    assert sorted(desk.world.binds) == ["g0-0", "g2-0"]
