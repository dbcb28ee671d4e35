"""That nobody may go for a claimant is remembered until something changes that it rests on, and never longer."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders import Desk, group, metadata, node, pod, priority_class, queue, said_of
from drawing import drawn
from pumice.actions.eviction import asking, candidate_columns, search, telling
from pumice.cache.options import Options
from pumice.framework import sampling
from pumice.plugins.proportion import Proportion

RECLAIM = """
actions: "allocate, reclaim, preempt"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins: [{name: drf}, {name: predicates}, {name: proportion}, {name: nodeorder}]
"""
CAPACITY = RECLAIM.replace("{name: proportion}", "{name: capacity}")
BUDGETS = RECLAIM.replace("{name: conformance}", "{name: conformance}, {name: pdb}")
PLAIN_BUDGETS = BUDGETS.replace("{name: proportion}, ", "")
SHARES = """
actions: "allocate, preempt"
tiers:
- plugins: [{name: drf}]
- plugins: [{name: gang}, {name: predicates}]
"""
ONLY_BUDGETS = SHARES.replace("{name: drf}", "{name: pdb}")
COOLING = RECLAIM.replace("{name: conformance}", "{name: conformance}, {name: cdp}")
POLICIES = (RECLAIM, CAPACITY, BUDGETS, SHARES, ONLY_BUDGETS, COOLING)


def budget(name, allowed, version):
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {**metadata(name, "a"), "resourceVersion": str(version)},
        "spec": {"selector": {"matchLabels": {"app": name}}},
        "status": {"disruptionsAllowed": allowed},
    }


# -- as if it were found out anew ------------------------------------------------------------------------------


class Life:
    """A random life of a small full cluster; the same changes come to three schedulers, of which one remembers nothing and one takes no shortcut at all."""

    def __init__(self, text, seed):
        self.rng = random.Random(seed)  # noqa: S311  reproducible, not secret
        plain = Options(plain=True)
        self.desks = [Desk(text), Desk(text), Desk(text, options=plain)]
        self.number = 0
        self.running = {}
        self.groups = []
        both = [
            priority_class("low", 1),
            priority_class("high", 5),
            *(node(f"n{i}", "4") for i in range(2)),
            *(queue(name, weight=1 + i) for i, name in enumerate("pq")),
            *(budget(app, self.rng.choice([0, 0, 1]), 0) for app in ("x", "y")),
        ]
        self.feed(*both)
        for _ in range(4):
            self.start()
        for _ in range(3):
            self.arrive()

    def feed(self, *manifests, event="ADDED"):
        for desk in self.desks:
            desk.feed(*manifests, event=event)

    def group(self, minimum, phase):
        self.number += 1
        name = f"j{self.number}"
        chosen = {"priorityClassName": self.rng.choice(["low", "high"])} if self.rng.random() < 0.7 else {}
        made = group(name, minimum, queue=self.rng.choice("pq"), phase=phase, created=self.number, **chosen)
        self.groups.append(made)
        self.feed(made)
        return name

    def regroup(self):
        made = self.rng.choice(self.groups)
        made["spec"] |= {"queue": self.rng.choice("pq"), "minMember": self.rng.randint(1, 3)}
        self.feed(made, event="MODIFIED")

    def start(self):
        size = self.rng.randint(1, 3)
        name = self.group(self.rng.randint(1, size), "Running")
        for i in range(size):
            made = pod(
                f"{name}-{i}",
                name,
                cpu="1",
                node=f"n{self.rng.randint(0, 1)}",
                labels={"app": self.rng.choice("xyz")},
            )
            self.running[made["metadata"]["name"]] = made
            self.feed(made)

    def arrive(self):
        for _ in range(self.rng.choice([1, 1, 3])):
            self.waits()

    def waits(self):
        name = self.group(1, "Inqueue")
        self.feed(*(pod(f"{name}-{i}", name, cpu=self.rng.choice(["1", "2"])) for i in range(self.rng.randint(1, 2))))

    def end(self):
        if self.running:
            name = self.rng.choice(sorted(self.running))
            self.feed(self.running.pop(name), event="DELETED")

    def relabel(self):
        if self.running:
            name = self.rng.choice(sorted(self.running))
            made = self.running[name]
            made["metadata"]["labels"] = {"app": self.rng.choice("xyz")}
            made["metadata"]["annotations"]["volcano.sh/preemptable"] = self.rng.choice(["true", "false"])
            self.feed(made, event="MODIFIED")

    def change_queue(self):
        name = self.rng.choice("pq")
        guarantee = {"resource": {"cpu": str(self.rng.randint(0, 3))}}
        spec = {"weight": self.rng.randint(1, 4), "reclaimable": self.rng.random() < 0.7, "guarantee": guarantee}
        self.feed(queue(name, deserved={"cpu": str(self.rng.randint(0, 4))}, **spec), event="MODIFIED")

    def change_budget(self):
        self.number += 1
        self.feed(budget(self.rng.choice("xy"), self.rng.choice([0, 1, 2]), self.number), event="MODIFIED")

    def change_class(self):
        self.feed(priority_class(self.rng.choice(["low", "high"]), self.rng.randint(0, 6)), event="MODIFIED")

    def change_node(self):
        self.feed(node("n1", self.rng.choice(["3", "4", "5"])), event="MODIFIED")

    def change(self):
        steps = [self.start, self.arrive, self.arrive, self.end, self.relabel, self.change_queue, self.regroup]
        self.rng.choice([*steps, self.change_budget, self.change_class, self.change_node, lambda: None])()

    def cycle(self):
        """Run a cycle on each; give what each did and said."""
        self.desks[1].scheduler.renew()
        found = []
        for desk in self.desks:
            desk.cluster.changed += 1
            record = desk.cycle()
            sent = [repr(effect) for effect in desk.world.effects]
            desk.world.effects.clear()
            found.append((sent, [said_of(record, key) for key in sorted(desk.cluster.jobs)]))
        return found


@settings(max_examples=drawn(40, 4), deadline=None)
@given(seed=st.integers(0, 10**6), text=st.sampled_from(POLICIES))
def test_whoever_remembers_decides_and_says_what_one_does_who_does_not(seed, text):
    life = Life(text, seed)
    for turn in range(8):
        remembered, anew, plain = life.cycle()
        assert remembered == anew, f"cycle {turn}"
        # What is told of one claimant is told its equals too; whoever takes no shortcut counts for each of them anew.
        assert remembered[0] == plain[0], f"cycle {turn}"
        life.change()


def listed(columns):
    """Say what could go on each node."""
    told = [
        [(i.priority, i.breaks, i.count, i.loss, i.freed.tolist(), [t.uid for t in i.tasks], i.queue) for i in items]
        for items in map(columns.items_of, range(len(columns.starts)))
    ]
    return [sorted(items) for items in told], int(columns.alive.sum())


@settings(max_examples=drawn(40, 4), deadline=None)
@given(seed=st.integers(0, 10**6), text=st.sampled_from(POLICIES))
def test_who_could_go_is_followed_from_cycle_to_cycle_as_if_laid_out_anew(seed, text):
    compared, columns = [], candidate_columns.columns

    def checked(session, rules, claimant):
        kept = columns(session, rules, claimant)
        told = listed(kept)
        assert told == listed(candidate_columns.Columns(session, rules, claimant))
        compared.append(told[1])
        return kept

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(candidate_columns, "columns", checked)
        life = Life(text, seed)
        for _ in range(8):
            life.cycle()
            life.change()


# -- how often it is asked -------------------------------------------------------------------------------------


@pytest.fixture
def asked(monkeypatch):
    """Count the pods that somebody was asked about before it was known whether anybody may go."""
    counts = [0]
    real = asking.is_anybody_offered

    def counting(rules, claimant, sources, *, ask):
        counts[0] += sum(task.node is not None for job in sources for task in job.tasks.values())
        return real(rules, claimant, sources, ask=ask)

    monkeypatch.setattr(asking, "is_anybody_offered", counting)

    def since():
        found, counts[0] = counts[0], 0
        return found

    return since


def settled(text, running=12, waiting=30):
    """A full cluster where nobody may go for anybody."""
    made = Desk(text).feed(
        node("n", str(running), f"{2 * running}Gi"),
        *(queue(name, deserved={"cpu": str(running // 2)}) for name in "pq"),
    )
    made.feed(budget("x", 0, 1))
    for i in range(running):
        made.feed(group(f"r{i}", 1, queue="pq"[i % 2], phase="Running"))
        made.feed(pod(f"r{i}", f"r{i}", cpu="1", memory="1Gi", node="n", labels={"app": "x"}))
    for i in range(waiting):
        made.feed(group(f"w{i}", 1, queue="pq"[i % 2], phase="Inqueue"))
        made.feed(pod(f"w{i}", f"w{i}", cpu="1"))
    return made


@pytest.mark.parametrize("text", [RECLAIM, CAPACITY, BUDGETS, SHARES, ONLY_BUDGETS])
def test_a_settled_cluster_is_asked_about_once_and_grows_with_running_pods_not_with_their_product_with_claimants(
    asked, text
):
    counted = {}
    for waiting in (30, 60):
        made = settled(text, waiting=waiting)
        made.cycle()
        counted[waiting] = asked()
        made.cluster.changed += 1
        made.cycle()
        assert asked() == 0
        assert not made.world.evictions
    assert 0 < counted[30] == counted[60] <= 4 * 12 * 2


@pytest.mark.parametrize("text", [CAPACITY, PLAIN_BUDGETS, SHARES, ONLY_BUDGETS])
def test_one_more_claimant_of_a_known_kind_asks_about_nobody(asked, text):
    made = settled(text)
    made.cycle()
    asked()
    made.feed(group("one", 1, queue="p", phase="Inqueue"), pod("one", "one", cpu="1")).cycle()
    assert asked() == 0


@pytest.mark.parametrize(("sampler", "often"), [(None, 1), (sampling.Sampler(minimum=1, percentage=50), 8)])
def test_claimants_alike_for_whom_nobody_helps_are_sought_for_once_unless_each_would_see_other_nodes(
    sampler, often, monkeypatch
):
    counts = [0]
    real = search.Search._settle  # noqa: SLF001  how often somebody is sought for shows nowhere else

    def counting(self, wanted):
        counts[0] += 1
        return real(self, wanted)

    monkeypatch.setattr(search.Search, "_settle", counting)
    made = Desk(PLAIN_BUDGETS).feed(node("n", "4"), budget("x", 0, 1), priority_class("high", 5))
    made.feed(group("old", 0, phase="Running"), pod("old-0", "old", cpu="3", node="n", labels={"app": "x"}))
    made.feed(pod("old-1", "old", cpu="1", node="n"))
    for i in range(8):
        made.feed(group(f"g{i}", 2, phase="Inqueue", priorityClassName="high"))
        made.feed(*(pod(f"g{i}-{j}", f"g{i}", cpu="2") for j in range(2)))
    made.scheduler.engine.evaluator.sampler = sampler
    record = made.cycle()
    assert counts[0] == often
    assert not made.world.evictions
    assert len({record.verdict(f"a/g{i}", "preempt").text for i in range(8)}) == 1


def test_a_queue_that_keeps_all_of_its_pods_is_asked_about_once(monkeypatch):
    counts = [0]
    real = Proportion.protection

    def counting(self, claimant, victim, action):
        counts[0] += 1
        return real(self, claimant, victim, action)

    monkeypatch.setattr(Proportion, "protection", counting)
    monkeypatch.setattr(telling, "considered", lambda *_: "")
    settled(RECLAIM.replace(", preempt", ""), running=40).cycle()
    assert counts[0] == 2  # claimants of either queue ask about the other


def _running(number, app="x"):
    return pod(f"r{number}", f"r{number}", cpu="1", memory="1Gi", node="n", labels={"app": app})


CHANGES = {
    "a pod is gone": lambda made: made.delete(_running(0)),
    "a queue says something else": lambda made: made.modify(queue("q", weight=5)),
    "a pod has another label": lambda made: made.modify(_running(1, "y")),
    "a group says something else": lambda made: made.modify(group("r1", 0, queue="q", phase="Running")),
    "there is another priority class": lambda made: made.feed(priority_class("high", 5)),
}


@pytest.mark.parametrize("text", [RECLAIM, CAPACITY, PLAIN_BUDGETS])
@pytest.mark.parametrize("change", CHANGES)
def test_what_a_refusal_rests_on_is_asked_again_when_it_changes(asked, text, change):
    made = settled(text)
    made.cycle()
    asked()
    CHANGES[change](made).cycle()
    assert asked() > 0


def test_a_budget_that_allows_somebody_again_is_noticed():
    made = settled(PLAIN_BUDGETS.replace("{name: gang}", "{name: gang, enablePreemptable: false}"))
    made.feed(priority_class("high", 5))
    made.feed(group("urgent", 1, queue="p", phase="Inqueue", priorityClassName="high"))
    made.feed(pod("urgent", "urgent", cpu="1"))
    made.cycle()
    assert not made.world.evictions
    made.modify(budget("x", 1, 2))
    made.cycle()
    assert len(made.world.evictions) == 1


def test_of_claimants_alike_each_is_asked_about_the_others_pods():
    """The first that asks does not look at its own pods; for the next one they may go."""
    made = Desk(ONLY_BUDGETS).feed(node("n", "2"))
    made.feed(group("a", 1, phase="Running"), pod("a-0", "a", cpu="1", node="n"), pod("a-1", "a", cpu="1", node="n"))
    made.feed(pod("a-2", "a", cpu="1"))
    made.feed(group("b", 1, phase="Inqueue"), pod("b-0", "b", cpu="1"))
    made.cycle()
    assert made.world.evictions == ["a-1"]
