"""Rounds of turns: what jobs are given together is what their turns would have given them, said in the same words."""

from __future__ import annotations

from contextlib import contextmanager
from unittest import mock

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_actions_surplus import asked, configuration, merged

from builders import Desk, group, metadata, node, played, pod, priority_class, queue
from drawing import drawn
from pumice.actions.placing import drafted, rounds, surplus
from pumice.cache import effects
from pumice.framework import observing, shortcuts
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


SHARING = (
    "{name: proportion}",
    "{name: drf}, {name: proportion}",
    "{name: capacity}",
    "{name: drf}, {name: capacity}",
    "{name: capacity, enableHierarchy: true}",
    "{name: drf, enableHierarchy: true}",
    "{name: drf, enableHierarchy: true}]\n- plugins: [{name: proportion}",
    "{name: drf}",
    "",
)


def tiers_for_queues(pick):
    """Plugins that let queues take turns, in one tier or another."""
    first = "{name: priority}, {name: gang}" if pick.random() < 0.8 else "{name: gang}"
    second = [pick.choice(SHARING), "{name: predicates}", pick.choice(["{name: nodeorder}", "{name: binpack}"])]
    actions = pick.choice(["allocate", "allocate", "enqueue, allocate, backfill", "allocate, preempt, reclaim"])
    return f'actions: "{actions}"\ntiers:\n- plugins: [{first}]\n- plugins: [{", ".join(filter(None, second))}]\n'


def limited(pick):
    """What a queue may hold, is due and is guaranteed, now and then."""
    amounts = {"capability": (2, 9), "deserved": (1, 6), "guarantee": (1, 3)}
    found = {name: {"cpu": str(pick.randint(*span))} for name, span in amounts.items() if pick.random() < 0.25}
    if "guarantee" in found:
        found["guarantee"] = {"resource": found["guarantee"]}
    return {**found, "priority": pick.choice([0, 0, 0, 5]), "weight": pick.randint(1, 4)}


def queues_world(pick):
    """Many small queues, some under others, whose jobs take turns, and rooms that end here and there."""
    branches = [f"b{i}" for i in range(pick.randint(0, 2))]
    leaves = [f"q{i}" for i in range(pick.choice([2, 3, 8]))]
    first = [priority_class("high", 10), *(queue(name, **limited(pick)) for name in branches)]
    for name in leaves:
        branch = pick.choice([*branches, ""])
        more = {"parent": branch} if branch else {}
        written = {"volcano.sh/hierarchy": f"root/{branch or 'b9'}/{name}", "volcano.sh/hierarchy-weights": "1/2/3"}
        annotations = written if pick.random() < 0.8 else None
        first.append(queue(name, created=pick.randint(0, 2), annotations=annotations, **limited(pick), **more))
    nodes = [
        node(f"n{i}", cpu=str(pick.randint(1, 12)), memory="6Gi", labels={"zone": pick.choice("ab")})
        for i in range(pick.randint(1, 6))
    ]
    return [
        [*first, *nodes, *jobs_of(pick, leaves, 0)],
        *([*jobs_of(pick, leaves, wave)] for wave in range(1, pick.randint(1, 3))),
    ]


def jobs_of(pick, queues, wave):
    """Jobs of a pod or of many, most of them ready with one, some of them gangs."""
    shapes = [asked(pick) if pick.random() < 0.3 else {"cpu": pick.choice(["100m", "250m", "1"])} for _ in range(3)]
    for number in range(pick.choice([5, 20, 60])):
        name, count = f"j{wave}-{number}", pick.choice([1, 1, 1, 1, 2, 4, 12, 30])
        high = "high" if pick.random() < 0.1 else ""
        least = pick.choice([0, 1, 1, 1, 1, count])
        yield group(name, least, queue=pick.choice(queues), created=pick.randint(0, 3), priorityClassName=high)
        for i in range(count):
            yield pod(f"{name}-w-{i}", name, **(shapes[0] if pick.random() < 0.7 else pick.choice(shapes)))


@settings(max_examples=drawn(40), deadline=None)
@given(pick=ANYTHING)
def test_queues_that_take_turns_are_served_in_rounds_as_turn_by_turn(pick):
    assert_as_in_turns(tiers_for_queues(pick), queues_world(pick))


def decide(text, waves, *classes):
    """Play the waves; give what was sent and what was said."""
    return played(Desk(text, *classes), waves, merged)


def assert_as_in_turns(text, waves, *classes):
    together = decide(text, waves, *classes)
    with (
        mock.patch.object(rounds.Rounds, "play", return_value=None),
        mock.patch.object(surplus.Surplus, "place_ahead", return_value=0),
    ):
        assert together == decide(text, waves, *classes)


@settings(max_examples=drawn(30), deadline=None)
@given(pick=ANYTHING)
def test_pods_placed_in_rounds_go_where_they_would_have_gone_turn_by_turn(pick):
    assert_as_in_turns(configuration(pick), world(pick))


def large_jobs(pick):
    """Jobs of more pods than are counted together in one queue that may not have all of them: of equal pods, or of such as differ from one to the next."""
    limits = {"capability": {"cpu": str(pick.randint(10, 20))}}
    objects = [queue("default", **limits), *(node(f"n{i}", cpu="20", memory="64Gi") for i in range(3))]
    for number in range(pick.randint(2, 3)):
        cpus = ["1"] * 10 if pick.random() < 0.5 else [pick.choice(["1", "2", "500m"]) for _ in range(10)]
        objects.append(group(f"j{number}", 1, created=pick.randint(0, 1)))
        objects += [pod(f"j{number}-w-{i}", f"j{number}", cpu=cpu) for i, cpu in enumerate(cpus)]
    return objects


@settings(max_examples=drawn(200, 40), deadline=None)
@given(pick=ANYTHING)
def test_what_a_queue_takes_on_ahead_is_not_given_to_others_beside(pick):
    text = 'actions: "allocate"\ntiers:\n- plugins: [{name: gang}, {name: drf}, {name: SHARING}, {name: predicates}]\n'
    assert_as_in_turns(text.replace("SHARING", pick.choice(["proportion", "capacity"])), [large_jobs(pick)])


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


@settings(max_examples=drawn(20), deadline=None)
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


class FickleQueues(Plugin):
    """Moves a queue to the front or to the back whenever a pod is placed."""

    name = "fickle-queues"
    points = frozenset({"QueueOrder"})

    def open(self, session):
        self.placed, self.places = 0, {}
        session.queue_order.add(lambda queue: self.places.get(queue.name, 0))
        session.add_handler(lambda run, sign: self.follow(session, run, sign))

    def follow(self, session, run, sign):
        self.placed += sign * len(run.tasks)
        names = sorted(session.cluster.queues)
        moved = names[self.placed * 7 % len(names)]
        self.places[moved] = self.placed % 5
        session.queue_order.touch(session.cluster.queues[moved])


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


@settings(max_examples=drawn(15), deadline=None)  # four worlds each
@given(pick=ANYTHING)
def test_plugins_that_move_refuse_or_break_down_are_heeded_as_in_turns(pick):
    for each in (Fickle, FickleQueues, Breaking, Refusing):
        made = pick.choice([world, queues_world])(pick)
        text = configuration(pick).replace("{name: gang}", f"{{name: gang}}, {{name: {each.name}}}")
        # Who is moved whenever a pod is placed breaks what is asked of orders where pods are given ahead.
        with mock.patch.object(surplus.Surplus, "place_ahead", return_value=0):
            assert_as_in_turns(text, made, each)


def test_jobs_of_many_queues_are_played_in_few_rounds():
    objects = [queue(f"q{number}") for number in range(10)]
    for number in range(100):
        name = f"j{number}"
        objects += [group(name, 1, queue=f"q{number % 10}"), pod(f"{name}-0", name, cpu="100m")]
    desk = Desk().feed(node("n", cpu="64"), *objects)
    with counted_rounds() as played:
        desk.cycle()
    assert len(desk.world.binds) == 100
    assert sum(played) >= 90
    assert len(played) <= 20


def test_large_jobs_that_take_turns_are_played_in_few_rounds():
    jobs = [f"j{number}" for number in range(4)]
    pods = [pod(f"{name}-{i}", name, cpu="100m") for name in jobs for i in range(25)]
    text = 'actions: "allocate"\ntiers:\n- plugins: [{name: gang}, {name: drf}, {name: predicates}]\n'
    desk = Desk(text).feed(node("n", cpu="64"), *(group(name, 1) for name in jobs), *pods)
    with counted_rounds() as played:
        desk.cycle()
    assert len(desk.world.binds) == 100
    assert sum(played) >= 80


@contextmanager
def counted_rounds():
    """Count the turns of each round that is played or tried."""
    played, play = [], rounds.Rounds.play

    def counted(self, *arguments):
        found = play(self, *arguments)
        played.append(0 if found is None else len(found.served))
        return found

    with mock.patch.object(rounds.Rounds, "play", counted):
        yield played


def test_many_jobs_of_one_pod_are_played_in_few_rounds():
    names = [f"j{number}" for number in range(100)]
    objects = [each for name in names for each in (group(name, 1), pod(f"{name}-0", name, cpu="100m"))]
    with counted_rounds() as played:
        desk = Desk().feed(node("n", cpu="64"), *objects)
        desk.cycle()
    assert len(desk.world.binds) == len(names)
    assert sum(played) >= 90
    assert len(played) <= 10


@pytest.mark.retreats
def test_jobs_whose_round_breaks_down_are_served_turn_by_turn_and_no_other_round_is_tried(monkeypatch):
    retreats = []
    monkeypatch.setattr(observing.Observer, "retreated", lambda _, way, error: retreats.append((way, str(error))))
    names = [f"j{number}" for number in range(10)]
    objects = [each for name in names for each in (group(name, 1), pod(f"{name}-0", name, cpu="100m"))]
    desk = Desk().feed(node("n", cpu="64"), *objects)
    with mock.patch.object(drafted, "place", side_effect=ValueError("ours")):
        desk.cycle()
    assert len(desk.world.binds) == len(names)
    assert not desk.scheduler.failures
    assert retreats == [("rounds", "ours")]


@pytest.mark.parametrize("rooms", range(1, 12))
@pytest.mark.parametrize("members", [1, 2, 3])
def test_whoever_stays_first_has_the_next_turn_too(rooms, members):
    names = [f"j{number}" for number in range(6)]
    text = 'actions: "allocate"\ntiers:\n- plugins: [{name: priority}]\n- plugins: [{name: gang}, {name: predicates}]\n'
    desk = Desk(text).feed(node("n", cpu=str(rooms)))
    for number, name in enumerate(names):
        desk.feed(priority_class(f"p{number}", 10 - number), group(name, 1, priorityClassName=f"p{number}"))
        desk.feed(*(pod(f"{name}-{i}", name, cpu="1") for i in range(members)))
    desk.cycle()
    due = [f"{name}-{i}" for name in names for i in range(members)]
    assert sorted(bind.name for bind in desk.world.of(effects.Bind)) == due[:rooms]


class Enough(Plugin):
    """Serves a queue until it holds so many pods."""

    name = "enough"
    points = frozenset({"Overused"})
    most = 3

    def open(self, session):
        sums = session.cluster.queue_sums
        session.overused.add(lambda queue: "it has enough" if sums.held(queue.row)[0] >= 1000 * self.most else None)


class Unready(Plugin):
    """Finds one job never ready."""

    name = "unready"
    points = frozenset({"JobReady"})

    def open(self, session):
        session.job_ready.add(lambda job: job.name != "j3")


@pytest.mark.parametrize("queues", [1, 2])
@pytest.mark.parametrize("blocks", [True, False])
def test_a_pod_that_does_not_make_its_job_ready_is_bound_in_no_round(queues, blocks):
    text = 'actions: "allocate"\ntiers:\n- plugins: [{name: gang}, {name: unready}, {name: predicates}]\n'
    taken = msgspec.structs.replace(shortcuts.ALL, blocks=blocks)
    desk = Desk(text, Unready, taken=taken).feed(node("n", cpu="64"), queue("other"))
    for number in range(9):
        name = f"j{number}"
        owner = "other" if number % queues else "default"
        desk.feed(group(name, 1, queue=owner, created=number), pod(f"{name}-0", name, cpu="1"))
    desk.cycle()
    assert sorted(desk.world.binds) == [f"j{number}-0" for number in range(9) if number != 3]


@pytest.mark.parametrize("most", range(1, 10))
@pytest.mark.parametrize("members", [1, 2])
def test_a_queue_that_has_enough_is_served_no_further_in_the_same_round(most, members):
    text = 'actions: "allocate"\ntiers:\n- plugins: [{name: gang}, {name: enough}, {name: predicates}]\n'
    desk = Desk(text, type("Enough", (Enough,), {"most": most})).feed(node("n", cpu="64"))
    for name in (f"j{number}" for number in range(9)):
        desk.feed(group(name, 1), *(pod(f"{name}-{i}", name, cpu="1") for i in range(members)))
    desk.cycle()
    assert len(desk.world.binds) == most


def test_jobs_that_are_bound_to_a_rack_are_placed_there_though_they_are_small():
    members = [{"type": "Node", "selector": {"exactMatch": {"name": "n1"}}}]
    rack = {"apiVersion": "topology.volcano.sh/v1alpha1", "kind": "HyperNode", "metadata": metadata("rack")}
    plugins = "{name: gang}, {name: predicates}, {name: network-topology-aware}"
    desk = Desk(f'actions: "allocate"\ntiers:\n- plugins: [{plugins}]\n').feed(node("n0", "20"), node("n1", "20"))
    desk.feed({**rack, "spec": {"tier": 1, "members": members}})
    for i in range(9):
        bound = {"networkTopology": {"mode": "hard", "highestTierAllowed": 1}}
        desk.feed(group(f"j{i}", 1, created=i, phase="Inqueue", **bound), pod(f"p{i}", f"j{i}", cpu="1"))
    desk.cycle()
    assert desk.world.binds == {f"p{i}": "n1" for i in range(9)}
