"""Rounds of turns: what small jobs of one queue are given together is what their turns would have given them, said in the same words."""

from __future__ import annotations

from unittest import mock

from hypothesis import given, settings
from hypothesis import strategies as st
from test_actions_surplus import asked, configuration, merged

from builders import Desk, group, node, pod, priority_class, queue
from pumice.actions.placing import rounds
from pumice.framework.plugin import Plugin

ANYTHING = st.randoms(use_true_random=True)


def small_jobs(pick, wave):
    """Many jobs of a few pods, most of them ready with one, mostly of one queue."""
    shapes = [asked(pick) for _ in range(pick.randint(1, 4))]
    for number in range(pick.choice([2, 5, 20, 40])):
        name, count = f"j{wave}-{number}", pick.choice([1, 1, 1, 2, 3, 9])
        yield group(
            name,
            pick.choice([0, 1, 1, 1, count]),
            queue="other" if pick.random() < 0.05 else "default",
            created=pick.randint(0, 3),
            priorityClassName=pick.choice(["", "", "", "high"]),
        )
        for i in range(count):
            yield pod(f"{name}-w-{i}", name, **(pick.choice(shapes) if pick.random() < 0.9 else asked(pick)))


def world(pick):
    """The objects of each cycle: nodes with room for most, then jobs."""
    limits = {"capability": {"cpu": str(pick.randint(1, 9))}} if pick.random() < 0.3 else {}
    first = [queue("default", **limits), queue("other", weight=2), priority_class("high", 10), group("old", 1)]
    for i in range(pick.randint(1, 6)):
        pods = str(pick.choice([3, 110, 110]))
        labels = {"zone": pick.choice("ab")}
        first.append(node(f"n{i}", cpu=str(pick.randint(1, 12)), memory="6Gi", pods=pods, labels=labels))
        if pick.random() < 0.3:
            first.append(pod(f"old-{i}", "old", cpu="500m", node=f"n{i}", deleting=pick.random() < 0.5))
    return [[*first, *small_jobs(pick, 0)], *([*small_jobs(pick, wave)] for wave in range(1, pick.randint(1, 3)))]


def decide(text, waves, *classes):
    """Play the waves, a cycle each; give what was sent and what was said."""
    desk = Desk(text, *classes)
    said = []
    for wave in waves:
        desk.feed(*wave)
        record = desk.cycle()
        said.append([*merged(record.trace()), *(record.explain(key) for key in sorted(desk.cluster.jobs))])
    return [repr(effect) for effect in desk.world.effects], said


def assert_as_in_turns(text, waves, *classes):
    together = decide(text, waves, *classes)
    with mock.patch.object(rounds.Rounds, "play", return_value=None):
        assert together == decide(text, waves, *classes)


@settings(max_examples=100, deadline=None)
@given(pick=ANYTHING)
def test_pods_placed_in_rounds_go_where_they_would_have_gone_turn_by_turn(pick):
    assert_as_in_turns(configuration(pick), world(pick))


def minding(pick):
    """Pods that mind each other: keep apart, come together, spread, or prefer to."""
    rule = {
        "topologyKey": pick.choice(["zone", "kubernetes.io/hostname"]),
        "labelSelector": {"matchLabels": {"app": "x"}},
    }
    kind = pick.choice(["podAffinity", "podAntiAffinity"])
    hard = {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [rule]}}
    wish = {kind: {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 10, "podAffinityTerm": rule}]}}
    action = pick.choice(["DoNotSchedule", "ScheduleAnyway"])
    spread = [{"maxSkew": pick.randint(1, 3), "whenUnsatisfiable": action, **rule}]
    rules = pick.choice([{"affinity": hard}, {"affinity": wish}, {"topologySpreadConstraints": spread}])
    both = {"affinity": wish, "topologySpreadConstraints": spread}
    return {"cpu": "100m", "labels": {"app": pick.choice("xxy")}, **pick.choice([rules, rules, both])}


@settings(max_examples=50, deadline=None)
@given(pick=ANYTHING)
def test_equal_pods_of_many_jobs_that_mind_each_other_are_chosen_for_ahead(pick):
    kinds = [minding(pick), *([asked(pick)] if pick.random() < 0.5 else [])]
    objects = []
    for i in range(pick.randint(1, 16)):
        labels = {"zone": pick.choice("abc"), "kubernetes.io/hostname": f"n{i:02d}"}
        objects.append(node(f"n{i:02d}", cpu=pick.choice(["1", "8"]), memory="6Gi", labels=labels))
    for number in range(pick.choice([8, 40])):
        spec = kinds[0] if pick.random() < 0.9 else kinds[-1]
        objects += [group(f"j{number:02d}", 1, created=number), pod(f"j{number:02d}-0", f"j{number:02d}", **spec)]
    assert_as_in_turns(configuration(pick), [objects])


class Fickle(Plugin):
    """Moves a job that waits to the front or to the back whenever a pod is placed."""

    name = "fickle"
    points = frozenset({"JobOrder"})

    def open(self, session):
        self.placed, self.places = 0, {}
        session.job_order.add(lambda job: self.places.get(job.key, 0))
        session.add_handler(lambda run, sign: self.follow(session, run, sign))

    def follow(self, session, run, sign):
        self.placed += sign * len(run.tasks)
        waiting = sorted(session.cluster.pending_jobs)
        if waiting and self.placed % 3 == 0:
            moved = waiting[self.placed * 7 % len(waiting)]
            self.places[moved] = self.places.get(moved, 0) + (sign if self.placed % 2 else -sign)
            session.job_order.touch(session.cluster.jobs[moved])


class Breaking(Plugin):
    """Breaks down about some jobs."""

    name = "breaking"
    points = frozenset({"Score", "JobReady"})

    def open(self, session):
        session.score.add(lambda subject, nodes: 1 / (len(subject.task.name) % 4) and None)
        session.job_ready.add(lambda job: not job.name.endswith("3") or 1 / 0)


class Refusing(Plugin):
    """Follows placements, and refuses some."""

    name = "refusing"

    def open(self, session):
        session.add_handler(self.follow, may_refuse=False)

    def follow(self, run, sign):
        return "not this one" if sign > 0 and run.tasks[0].name.endswith("5-w-0") else None


@settings(max_examples=25, deadline=None)
@given(pick=ANYTHING)
def test_plugins_that_move_refuse_or_break_down_are_heeded_as_in_turns(pick):
    for each in (Fickle, Breaking, Refusing):
        text = configuration(pick).replace("{name: gang}", f"{{name: gang}}, {{name: {each.name}}}")
        assert_as_in_turns(text, world(pick), each)


def test_many_jobs_of_one_pod_are_played_in_few_rounds():
    names = [f"j{number}" for number in range(100)]
    objects = [each for name in names for each in (group(name, 1), pod(f"{name}-0", name, cpu="100m"))]
    played = []

    def counted(self, *arguments):
        found = play(self, *arguments)
        played.append(0 if found is None else len(found.served))
        return found

    play = rounds.Rounds.play
    with mock.patch.object(rounds.Rounds, "play", counted):
        desk = Desk().feed(node("n", cpu="64"), *objects)
        desk.cycle()
    assert len(desk.world.binds) == len(names)
    assert sum(played) >= 90
    assert len(played) <= 10
