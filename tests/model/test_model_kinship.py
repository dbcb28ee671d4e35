"""Kins and counts: whatever happens to pods, nodes, namespaces and services, the counts are what a recount gives."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import builders
from drawing import drawn
from pumice.model import carriers, kinship
from pumice.model.carriers import Carriers
from pumice.model.counts import DomainCounts
from pumice.model.domains import NODE, Division
from pumice.model.pickers import Picker
from pumice.model.statuses import Status

HOSTNAME = "kubernetes.io/hostname"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
KEYS = ("app", "tier", "track")


def means(cluster, picker, task):
    """Whether a picker means a pod, judged by all its labels."""
    namespace = cluster.objects.get("Namespace", {}).get(task.namespace)
    about = {"kubernetes.io/metadata.name": task.namespace, **(namespace.metadata.labels if namespace else {})}
    return picker.picks(task.namespace, about, task.pod.metadata.labels)


def recounted(cluster, thing):
    """What a count should hold, by node: staying and going."""
    staying, going = {}, {}
    for task in cluster.tasks.values():
        if task.node is None:
            continue
        if isinstance(thing, Carriers):
            rules = task.bond.rules
            terms = [(t, 1) for t in rules.anti] if thing.required else [(t, t.weight) for t in rules.preferred]
            same = [weight for t, weight in terms if (t.picker, t.topology) == (thing.pickers[0], thing.topology)]
            amount = sum(same)
        else:
            amount = all(means(cluster, picker, task) for picker in thing.pickers)
        sums = going if task.status in (Status.RELEASING, Status.EVICTING) else staying
        sums[task.node.name] = sums.get(task.node.name, 0) + int(amount)
    return tuple({name: amount for name, amount in sums.items() if amount} for sums in (staying, going))


def check(cluster):
    kinship = cluster.kinship
    for thing in [*kinship.counts.values(), *kinship.register.known.values()]:
        staying, going = recounted(cluster, thing)
        assert {r.name: amount for r, amount in thing.staying.items()} == staying
        assert {r.name: amount for r, amount in thing.going.items()} == going
        for division, kept in thing.by_division.items():
            if kept.state == (cluster.nodes.structure, cluster.nodes.static):
                check_by_domains(cluster, division, kept, staying, going)
    for kin in kinship.kins.values():
        assert kin.members
        assert {task.bond.kin for task in kin.members.values()} == {kin}
        for count in kin.counts:
            assert kin in count.kins
        rules = [rule for rule in kinship.register.known.values() if kin.is_picked(rule.pickers)]
        assert [rule.serial for rule in kinship.register.meaning(kin)] == sorted(rule.serial for rule in rules)
    assert sum(len(kin.members) for kin in kinship.kins.values()) == len(cluster.tasks)
    assert kinship.counting == bool(kinship.counts or kinship.register.known)


def check_by_domains(cluster, division, kept, staying, going):
    table = cluster.nodes
    values = {}
    for record in table.records[: table.count]:
        value = record.name if division.topology == NODE else record.labels.get(division.topology)
        if value is not None and all(label in record.labels for label in division.labels):
            sums = values.setdefault(value, [0, 0])
            sums[0] += staying.get(record.name, 0)
            sums[1] += going.get(record.name, 0)
    codes = kept.domains.codes
    for row, record in enumerate(table.records[: table.count]):
        value = record.name if division.topology == NODE else record.labels.get(division.topology)
        if codes[row] >= 0:
            expected = values.get(value, [0, 0])
            assert int(kept.present(released=True)[codes[row]]) == expected[0]
            assert int(kept.present(released=False)[codes[row]]) == sum(expected)
    assert kept.total(released=False) == sum(map(sum, values.values()))


class Story:
    """Things that happen to a cluster, drawn from one seed."""

    def __init__(self, seed):
        self.dice = random.Random(seed)  # noqa: S311  a test's own dice
        self.desk = builders.Desk()
        self.cluster = self.desk.cluster
        self.pods, self.nodes = {}, {}
        self.session = None
        self.statements = []
        for _ in range(4):
            self.node()
        self.desk.apply()

    def labels(self):
        drawn = {key: self.dice.choice("xy.") for key in KEYS}
        return {key: value for key, value in drawn.items() if value != "."}

    def term(self):
        key = self.dice.choice(KEYS)
        selector = self.dice.choice(
            [
                {"matchLabels": {key: self.dice.choice("xy")}},
                {"matchExpressions": [{"key": key, "operator": "NotIn", "values": ["x"]}]},
                {},
            ]
        )
        term = {"labelSelector": selector, "topologyKey": self.dice.choice([HOSTNAME, "zone"])}
        if self.dice.random() < 0.3:
            term["namespaceSelector"] = self.dice.choice([{}, {"matchLabels": {"team": "red"}}])
        return term

    def rules(self):
        if self.dice.random() < 0.5:
            return {}
        preferred = [{"weight": self.dice.randint(1, 9), "podAffinityTerm": self.term()}]
        return {"affinity": {"podAntiAffinity": {REQUIRED: [self.term()], PREFERRED: preferred}}}

    # -- events

    def node(self):
        name = f"n{self.dice.randrange(6)}"
        labels = {HOSTNAME: name, "zone": self.dice.choice("pq")} if self.dice.random() < 0.8 else {HOSTNAME: name}
        made = builders.node(name, labels=labels)
        self.desk.feed(made, event="MODIFIED" if name in self.nodes else "ADDED")
        self.nodes[name] = made

    def lose_node(self):
        if self.nodes:
            self.desk.delete(self.nodes.pop(self.dice.choice(sorted(self.nodes))))

    def pod(self):
        name = f"p{self.dice.randrange(12)}"
        where = self.dice.choice([*sorted(self.nodes), "gone", "", ""])
        made = builders.pod(
            name,
            namespace="a",
            labels=self.labels(),
            node=where,
            deleting=bool(where) and self.dice.random() < 0.3,
            phase=self.dice.choice(["", "", "", "Succeeded"]),
            cpu="1m",
            **self.rules(),
        )
        self.desk.feed(made, event="MODIFIED" if name in self.pods else "ADDED")
        self.pods[name] = made

    def lose_pod(self):
        if self.pods:
            self.desk.delete(self.pods.pop(self.dice.choice(sorted(self.pods))))

    def namespace(self):
        labels = {"team": self.dice.choice(["red", "blue"])}
        self.desk.feed({"apiVersion": "v1", "kind": "Namespace", "metadata": builders.metadata("a", labels=labels)})

    def service(self):
        selector = {self.dice.choice(["app", "new"]): "x"}
        made = {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": builders.metadata("s", "a"),
            "spec": {"selector": selector},
        }
        self.desk.feed(made, event=self.dice.choice(["ADDED", "DELETED"]))

    # -- questions

    def ask(self):
        kinship = self.cluster.kinship
        pickers = []
        for _ in range(self.dice.randint(1, 2)):
            wanted = self.dice.choice(
                [(), (("app", "In", ("x",)),), (("tier", "Exists", ()),), (("track", "NotIn", ("x", "y")),)]
            )
            live = all(key in kinship.looked_at for key, _, _ in wanted)
            pickers.append(Picker(("a",), None, wanted if live else ()))
        count = self.dice.choice([kinship.count(*pickers), *kinship.register.known.values()])
        topology = self.dice.choice([HOSTNAME, "zone", NODE])
        kinship.by_domains(count, Division(topology, self.dice.choice([(), ("zone",)])))

    # -- decisions

    def open(self):
        self.statements = []
        self.session = self.desk.session()

    def close(self):
        if self.session is not None:
            self.session.rollback()
            self.session = None

    def decide(self):
        if self.session is None:
            return
        if not self.statements or self.dice.random() < 0.3:
            self.statements.append(self.session.statement())
        statement = self.dice.choice(self.statements)
        tasks = [t for t in self.cluster.tasks.values() if t.node is None and t.status == Status.PENDING]
        placed = [t for t in self.cluster.tasks.values() if t.status in (Status.RUNNING, Status.ALLOCATED)]
        records = self.cluster.nodes.records[: self.cluster.nodes.count]
        match self.dice.randrange(6):
            case 0 | 1 if tasks and records:
                statement.allocate([self.dice.choice(tasks)], [self.dice.choice(records)])
            case 2 if tasks and records:
                statement.pipeline([self.dice.choice(tasks)], [self.dice.choice(records)])
            case 3 if placed:
                statement.evict([self.dice.choice(placed)], "a test")
            case 4:
                statement.discard()
            case 5 if statement.runs:
                statement.undo(self.dice.choice(statement.runs).tasks[0])


EVENTS = ("node", "lose_node", "pod", "pod", "pod", "pod", "lose_pod", "namespace", "service")


@settings(max_examples=drawn(60), deadline=None)
@given(seed=st.integers(0, 2**32))
def test_counts_are_what_a_recount_gives_after_any_events_and_decisions(seed):
    story = Story(seed)
    for _ in range(8):
        for _ in range(story.dice.randint(1, 4)):
            getattr(story, story.dice.choice(EVENTS))()
        story.open()
        story.ask()
        check(story.cluster)
        for _ in range(6):
            story.dice.choice([story.decide, story.decide, story.ask])()
            check(story.cluster)
        story.close()
        check(story.cluster)


def test_rules_that_mean_a_pod_are_found_also_when_many_came_since_it_was_last_asked_about(monkeypatch):
    monkeypatch.setattr(carriers, "LOG_LIMIT", 2)
    desk = builders.Desk()
    desk.feed(labelled("p", app="x")).apply()
    for number in range(12):
        desk.feed(
            builders.pod(
                f"shy-{number}", namespace=f"ns{number}", labels={"app": "x"}, **anti(app="x", track=str(number % 3))
            )
        )
        if number % 5 == 0:
            desk.apply()
            check(desk.cluster)
    desk.apply()
    check(desk.cluster)


def labelled(name, **labels):
    return builders.pod(name, labels=labels, node="n0")


def anti(**labels):
    term = {"labelSelector": {"matchLabels": labels}, "topologyKey": HOSTNAME}
    return {"affinity": {"podAntiAffinity": {REQUIRED: [term]}}}


def test_labels_that_no_rule_names_any_more_are_forgotten_in_the_end(monkeypatch):
    monkeypatch.setattr(kinship, "SPARE_KEYS", 1)
    desk = builders.Desk()
    desk.feed(*(labelled(f"p{i}", app="x", index=str(i)) for i in range(3)))
    for key in ("index", "tier", "track"):
        shy = builders.pod("shy", **anti(**{key: "1"}))
        desk.feed(shy).apply()
        desk.cluster.kinship.count(Picker(("a",), None, ((key, "In", ("1",)),)))
        check(desk.cluster)
        desk.delete(shy).apply()
    assert len(desk.cluster.kinship.kins) == 1
    assert list(desk.cluster.kinship.looked_at) == ["track"]
    assert [pickers[0].labels[0][0] for pickers in desk.cluster.kinship.counts] == ["track"]
    check(desk.cluster)


def test_pods_are_told_apart_only_by_labels_that_a_live_rule_names():
    desk = builders.Desk()
    desk.feed(*(labelled(f"p{i}", app="x", index=str(i)) for i in range(3)))
    desk.apply()
    assert len(desk.cluster.kinship.kins) == 1
    shy = builders.pod("shy", **anti(index="1"))
    desk.feed(shy).apply()
    assert len(desk.cluster.kinship.kins) == 4


def test_equal_pods_with_different_irrelevant_labels_are_alike():
    desk = builders.Desk()
    desk.feed(builders.node("n0", labels={HOSTNAME: "n0"}), builders.pod("shy", node="n0", **anti(app="x")))
    desk.feed(*(builders.pod(f"p{i}", labels={"app": app}) for i, app in enumerate("xyz"))).apply()
    first, second, third = (desk.task(f"p{i}").likeness for i in range(3))
    assert second == third
    assert first != second


def test_a_rule_is_forgotten_with_the_last_pod_that_carries_it():
    desk = builders.Desk()
    desk.feed(builders.pod("p0", **anti(app="x")), builders.pod("p1", **anti(app="x"))).apply()
    kinship = desk.cluster.kinship
    assert len(kinship.register) == 1
    desk.delete(builders.pod("p0")).apply()
    assert len(kinship.register) == 1
    desk.delete(builders.pod("p1")).apply()
    assert len(kinship.register) == 0
    assert not kinship._keys  # noqa: SLF001  memory that is given back shows nowhere else
    assert not kinship.counting


def test_counts_that_nobody_asks_for_any_more_are_dropped():
    desk = builders.Desk()
    desk.feed(labelled("p", app="x"), builders.pod("shy", **anti(app="x"))).apply()
    kinship = desk.cluster.kinship
    for value in range(200):
        kinship.count(Picker(("a",), None, (("app", "In", (str(value),)),)))
    asked = [Picker(("a",), None, (("app", "In", (str(value),)),)) for value in (7, *range(200, 500))]
    kinship.prepare()
    for each in asked:
        kinship.count(each)
    kinship.prepare()
    assert list(kinship.counts) == [(each,) for each in asked]


def test_only_so_many_tallies_are_kept_and_those_asked_for_last():
    desk = builders.Desk()
    desk.feed(builders.node("n0", labels={HOSTNAME: "n0"})).apply()
    kinship = desk.cluster.kinship
    kinship.domain_counts = DomainCounts(limit=2)
    counts = [kinship.count(Picker((name,), None, ())) for name in "abc"]
    for count in (counts[0], counts[1], counts[0], counts[2]):
        kinship.by_domains(count, Division(HOSTNAME))
    assert [bool(count.by_division) for count in counts] == [True, False, True]


@pytest.mark.parametrize(
    ("picker", "hook"),
    [
        (Picker(("a",), None, (("app", "In", ("x",)),)), ("app", "x")),
        (Picker(("a",), None, (("app", "In", ("x", "y")),)), ("a",)),
        (Picker(("a", "b"), None, (("app", "Exists", ()),)), ()),
        (Picker(("a",), (), ()), ()),
    ],
)
def test_a_rule_is_filed_under_what_every_pod_it_means_must_have(picker, hook):
    assert picker.hook == hook
