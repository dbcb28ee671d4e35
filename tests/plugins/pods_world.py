"""Small clusters with pods in every state, drawn at random: for tests that compare rules about other pods with their plain reference."""

from __future__ import annotations

import random

import numpy as np
from hypothesis import strategies as st
from pods_reference import HOSTNAME, PREFERRED, REQUIRED, ZONE, Placed

import builders
from pumice.framework.subject import Subject

NAMESPACES = ("a", "b", "c")
TOPOLOGIES = (HOSTNAME, ZONE, "rack")
RUNNING, TERMINATING, ALLOCATED, PIPELINED, EVICTED = "running", "terminating", "allocated", "pipelined", "evicted"

CONFIG = """
actions: "allocate"
tiers:
- plugins:
  - name: predicates
  - name: nodeorder
    arguments: {leastrequested.weight: 0, balancedresource.weight: 0, tainttoleration.weight: 0, nodeaffinity.weight: 0,
                podaffinity.weight: AFFINITY, podtopologyspread.weight: SPREAD}
"""


# Worlds are drawn by an ordinary generator from one seed: drawing every choice through hypothesis costs ten times as much as the tests themselves.
SEEDS = st.integers(0, 2**32)


class Draw:
    """Draws nodes and pods."""

    def __init__(self, seed):
        self.random = random.Random(seed)  # noqa: S311  a test's own dice
        self.choose = self.random.choice

    def odds(self, one_in):
        return self.random.randrange(one_in) == 0

    def some(self, make, least, most):
        return [make() for _ in range(self.random.randint(least, most))]

    def selector(self):
        """Over the labels app and tier, empty ones and odd ones too."""
        kind = self.choose(["labels", "labels", "labels", "labels", "expressions", "expressions", "empty", "none"])
        if kind in ("none", "empty"):
            return None if kind == "none" else {}
        key = self.choose(["app", "app", "app", "tier"])
        if kind == "labels":
            return {"matchLabels": {key: self.choose("xxxy")}}
        operator = self.choose(["In", "NotIn", "Exists", "DoesNotExist"])
        values = self.some(lambda: self.choose("xy"), 1, 2) if operator in ("In", "NotIn") else []
        return {"matchExpressions": [{"key": key, "operator": operator, "values": values}]}

    def term(self):
        made = {"labelSelector": self.selector(), "topologyKey": self.choose(TOPOLOGIES)}
        if self.odds(4):
            made["namespaces"] = self.some(lambda: self.choose(NAMESPACES), 0, 2)
        if self.odds(4):
            made["namespaceSelector"] = self.choose([{}, {"matchLabels": {"team": "red"}}])
        if self.odds(5):
            made[self.choose(["matchLabelKeys", "mismatchLabelKeys"])] = ["version"]
        return {key: value for key, value in made.items() if value is not None}

    def affinity(self, groups=("podAffinity", "podAntiAffinity", "podAntiAffinity")):
        """Rules of one kind or of both."""
        made = {}
        for group in dict.fromkeys(self.some(lambda: self.choose(groups), 1, 2)):
            required = self.some(self.term, 0, 2)
            preferred = self.some(lambda: {"weight": self.random.randint(1, 100), "podAffinityTerm": self.term()}, 0, 2)
            made[group] = {REQUIRED: required, PREFERRED: preferred}
        return made

    def constraint(self, action=None):
        made = {
            "maxSkew": self.choose([1, 1, 1, 2, 3]),
            "topologyKey": self.choose(TOPOLOGIES),
            "whenUnsatisfiable": action or self.choose(["DoNotSchedule", "ScheduleAnyway"]),
            "labelSelector": self.selector(),
            "minDomains": self.choose([None, None, 1, 2, 4]),
            "nodeAffinityPolicy": self.choose([None, "Honor", "Ignore"]),
            "nodeTaintsPolicy": self.choose([None, "Honor", "Ignore"]),
            "matchLabelKeys": self.choose([None, None, ["version"]]),
        }
        if made["labelSelector"] is None:
            made["matchLabelKeys"] = None
        return {key: value for key, value in made.items() if value is not None}

    def labels(self):
        made = {"app": self.choose("xxxy."), "tier": self.choose("xy.."), "version": self.choose("112.")}
        return {key: value for key, value in made.items() if value != "."}

    def nodes(self):
        """One to six nodes; labels may be missing or shared, hostnames too."""
        made = []
        for number in range(self.random.randint(1, 6)):
            name = f"n{number}"
            host = self.choose([name] * 6 + ["n0", "."])
            at = {
                HOSTNAME: host,
                ZONE: self.choose("pppqqqr."),
                "rack": self.choose("11122."),
                "disk": self.choose("sh"),
            }
            effect = self.choose(["NoSchedule", "PreferNoSchedule"])
            chosen = {key: value for key, value in at.items() if value != "."}
            taints = [{"key": "k", "value": "", "effect": effect}] if self.odds(4) else ()
            made.append(builders.node(name, labels=chosen, taints=taints))
        return made

    def pod(self, name, *, affinity=None, spread=(), **fields):
        spec = {key: value for key, value in (("affinity", affinity), ("topologySpreadConstraints", spread)) if value}
        if self.odds(4):
            spec["nodeSelector"] = {"disk": "s"}
        if self.odds(4):
            spec["tolerations"] = [{"key": "k", "operator": "Exists"}]
        namespace = self.choose(["a", "a", "a", "b", "c"])
        return builders.pod(name, namespace=namespace, labels=self.labels(), cpu="1m", **fields, **spec)

    def world(self, looking):
        """Nodes, pods with their states and nodes, the labels of namespaces, and the pod that looks for a node."""
        nodes = self.nodes()
        names = [node["metadata"]["name"] for node in nodes]
        others = []
        for number in range(self.random.randint(0, 8)):
            state = self.choose([RUNNING, RUNNING, RUNNING, TERMINATING, ALLOCATED, PIPELINED, EVICTED])
            # A pod may also name a node that is not there; it counts nowhere.
            where = "gone" if state == RUNNING and self.odds(8) else self.choose(names)
            there = where if state in (RUNNING, TERMINATING, EVICTED) else ""
            affinity = self.affinity() if self.odds(2) else None
            pod = self.pod(f"p{number}", affinity=affinity, node=there, deleting=state == TERMINATING)
            others.append((pod, state, where))
        about = {name: {"team": self.choose(["red", "blue"])} for name in NAMESPACES[:2]}
        return nodes, others, about, looking

    def candidates(self, world):
        names = [node["metadata"]["name"] for node in world[0]]
        return sorted(self.random.sample(names, self.random.randint(1, len(names))))


def namespace(name, labels):
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": builders.metadata(name, labels=labels)}


def enact(world, *, affinity=0, spread=0, more=(), config=CONFIG):
    """Bring a world to life: returns the desk, a session in which everything has happened, and the pods as the reference sees them."""
    made, others, about, looking = world
    desk = builders.Desk(config.replace("AFFINITY", str(affinity)).replace("SPREAD", str(spread)))
    desk.feed(*(namespace(name, labels) for name, labels in about.items()), *made, *more)
    desk.feed(*(pod for pod, _, _ in others), looking)
    session = desk.session()
    statement = session.statement()
    for pod, state, where in others:
        task = desk.task(pod["metadata"]["name"], pod["metadata"]["namespace"])
        if state == ALLOCATED:
            statement.allocate([task], [desk.node(where)])
        elif state == PIPELINED:
            statement.pipeline([task], [desk.node(where)])
        elif state == EVICTED:
            statement.evict([task], "a test")
    placed = [Placed(pod, where, terminating=state in (TERMINATING, EVICTED)) for pod, state, where in others]
    return desk, session, placed


def twin(looking):
    """A pod equal to the one that looks for a node, by another name."""
    made = builders.pod("twin", namespace=looking["metadata"]["namespace"], labels=looking["metadata"].get("labels"))
    return {**made, "spec": looking["spec"]}


def subject(desk, looking):
    return Subject(desk.task("looking", looking["metadata"]["namespace"]))


def verdicts(desk, session, about, texts, *, released):
    """What the filters with these reasons say of each node, as the session asks them."""
    found = {}
    table = desk.cluster.nodes
    for function in session.evaluator.functions.filters:
        answer = function.function(about, table.view(released=released))
        if answer is None:
            continue
        for row, number in enumerate(answer.tolist()):
            text = session.evaluator.reasons.table[number].text
            if number and text in texts:
                found[table.records[row].name] = text
    return {record.name: found.get(record.name) for record in table.records[: table.count]}


def points(desk, session, about, candidates):
    """The points of candidates by the one score that is switched on; None if it does not apply."""
    evaluation = session.evaluate(about)
    evaluation.refresh_scores()
    if all(vector is None for vector in evaluation.raw_vectors):
        return None
    rows = np.array([desk.node(name).row for name in candidates], dtype=np.int64)
    return dict(zip(candidates, evaluation.normalised(rows).tolist(), strict=True))
