"""Vectorised filters and scores say of every node what the plain rule says of one pod and one node."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

import numpy as np
import plugins_reference as reference
from hypothesis import given, settings
from hypothesis import strategies as st
from plugins_reference import COMING, GPU, HELD, LEAVING

from builders import Desk, group, node, pod
from drawing import drawn
from pumice.framework import selection
from pumice.framework.subject import Subject

CONFIG = """
actions: "allocate"
tiers:
- plugins:
  - name: predicates
  - name: nodeorder
    arguments: {{leastrequested.weight: {least}, mostrequested.weight: {most}, balancedresource.weight: {balanced}, nodeaffinity.weight: 2, tainttoleration.weight: 3}}
  - name: binpack
    arguments: {{binpack.weight: {binpack}, binpack.cpu: 5, binpack.memory: 1, binpack.resources: "nvidia.com/gpu, example.com/x", binpack.resources.nvidia.com/gpu: 2}}
"""
WEIGHTS = {"cpu": 5, "memory": 1, GPU: 2, "example.com/x": 1}


class Mix(NamedTuple):
    least: int
    most: int
    balanced: int
    binpack: int


# ---- what clusters and pods look like

LABELS = {"zone": ["a", "b"], "disk": ["ssd", "hdd"], "gen": ["1", "2", "10", "x", "-3"]}
VALUES = ["a", "b", "ssd", "1", "2", "5", "+1", "x", "9223372036854775808"]
OPERATORS = ["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Is"]
EFFECTS = ["NoSchedule", "NoExecute", "PreferNoSchedule", "PreferNoSchedule"]
# Each world is about one or two things, so that the others do not rule every node out.
THEMES = ["room", "labels", "taints", "states", "ports"]
ANYTHING = st.randoms(use_true_random=True)


def some(pick, most, make):
    """A list of up to so many."""
    return [make() for _ in range(pick.randint(0, most))]


def sometimes(pick, fields):
    """Some of the fields of a map."""
    return {key: pick.choice(values) for key, values in fields.items() if pick.randint(0, 1)}


def taint(pick):
    return {"key": pick.choice("km"), "effect": pick.choice(EFFECTS), **sometimes(pick, {"value": ["", "v"]})}


def toleration(pick):
    fields = {
        "key": ["", "k", "m", "node.kubernetes.io/unschedulable"],
        "operator": ["", "Exists", "Equal", "Gt"],
        "value": ["", "v"],
        "effect": ["", "NoSchedule", "NoExecute", "PreferNoSchedule"],
    }
    return sometimes(pick, fields)


def port(pick):
    addresses = ["", "0.0.0.0", "10.0.0.1", "10.0.0.2"]  # noqa: S104  compared, not bound
    return {
        "hostPort": pick.choice([0, 80, 80, 443]),
        **sometimes(pick, {"protocol": ["", "TCP", "UDP"], "hostIP": addresses}),
    }


def expression(pick):
    """A requirement, every other one of a form that can be read."""
    operator = pick.choice(OPERATORS)
    count = (
        {"In": 2, "NotIn": 1, "Gt": 1, "Lt": 1}.get(operator, 0) if pick.randint(0, 2) else pick.choice([0, 0, 1, 2])
    )
    values = [pick.choice(VALUES) for _ in range(count)]
    return {"key": pick.choice([*LABELS, "none"]), "operator": operator, "values": values}


def field(pick):
    return {
        "key": pick.choice(["metadata.name", "metadata.name", "metadata.uid"]),
        "operator": pick.choice(["In", "NotIn", "NotIn", "Exists"]),
        "values": [pick.choice(["n0", "n1"]) for _ in range(pick.choice([1, 1, 1, 2]))],
    }


def term(pick):
    made = {"matchExpressions": some(pick, 2, lambda: expression(pick))} if pick.randint(0, 4) else {}
    return made | ({"matchFields": [field(pick)]} if not pick.randint(0, 3) else {})


def affinity(pick):
    made = {}
    if pick.randint(0, 1):
        terms = some(pick, 3, lambda: term(pick))
        made["requiredDuringSchedulingIgnoredDuringExecution"] = {"nodeSelectorTerms": terms}
    simple = {"matchExpressions": [{"key": pick.choice(list(LABELS)), "operator": "Exists", "values": []}]}
    liked = some(pick, 3, lambda: {"weight": pick.randint(1, 100), "preference": pick.choice([simple, term(pick)])})
    return {"nodeAffinity": made | {"preferredDuringSchedulingIgnoredDuringExecution": liked}}


def requests(pick):
    fields = {
        "cpu": ["0", "500m", "1", "3"],
        "memory": ["0", "300Mi", "1Gi", "3Gi"],
        GPU: ["0", "1", "2"],
    }
    return sometimes(pick, fields) | ({"example.com/x": "1"} if not pick.randint(0, 9) else {})


def machine(pick, name, themes):
    amounts = {
        "cpu": pick.choice(["0", "1", "4", "8"]),
        "memory": pick.choice(["1Gi", "3Gi", "8Gi"]),
        "pods": pick.choice([None, "0", "1", "2", "3", "110", "110"]),
    }
    made = node(
        name,
        **(amounts if "room" in themes else {"cpu": "64", "memory": "64Gi"}),
        labels=sometimes(pick, LABELS),
        taints=some(pick, 2, lambda: taint(pick)) if "taints" in themes else (),
        cordoned="states" in themes and not pick.randint(0, 2),
        ready=pick.choice([None, "True", "False", "Unknown"]) if "states" in themes else None,
    )
    if gpus := pick.choice([None, "2", "8"]):
        made["status"]["allocatable"][GPU] = gpus
    return made


def cluster(pick):
    """Nodes, the pods on each, and a pod that looks for one."""
    themes = pick.sample([*THEMES, "labels"], pick.randint(1, 2))
    known = [machine(pick, f"n{i}", themes) for i in range(pick.randint(1, 5))]
    present = []
    for i in range(pick.randint(0, 8)):
        state = pick.choice([HELD, HELD, LEAVING, LEAVING, COMING, "placed"])
        taken = some(pick, 2, lambda: port(pick)) if "ports" in themes else ()
        old = pod(f"old-{i}", "g", requests=requests(pick), ports=taken)
        present.append((pick.randrange(len(known)), state, old))
    looking = pod(
        "looking",
        "g",
        requests=requests(pick),
        ports=some(pick, 2, lambda: port(pick)) if "ports" in themes else (),
        nodeSelector=dict([pick.choice([("zone", "a"), ("disk", "ssd"), ("none", "x")])])
        if "labels" in themes and not pick.randint(0, 3)
        else {},
        affinity=affinity(pick) if "labels" in themes else {},
        tolerations=some(pick, 3, lambda: toleration(pick)) if {"taints", "states"} & set(themes) else (),
    )
    return known, present, looking


def stage(config, known, present, looking):
    """Build the cluster; give the evaluation of the pod, and what is on each node as the reference wants it."""
    desk = Desk(config)
    desk.feed(*known, group("g", 99), looking)
    for where, state, manifest in present:
        running = {**manifest, "spec": {**manifest["spec"], "nodeName": known[where]["metadata"]["name"]}}
        if state == LEAVING:
            running["metadata"] = {**manifest["metadata"], "deletionTimestamp": "2026-01-01T00:00:01Z"}
        running["status"] = {"phase": "Running"}
        desk.feed(running if state in (HELD, LEAVING) else manifest)
    session = desk.session()
    statement = session.statement()
    for where, state, manifest in present:
        if state in (COMING, "placed"):
            step = statement.pipeline if state == COMING else statement.allocate
            step([desk.task(manifest["metadata"]["name"])], [desk.node(known[where]["metadata"]["name"])])
    standing = [
        [(m, HELD if state == "placed" else state) for where, state, m in present if where == i]
        for i in range(len(known))
    ]
    return desk, session.evaluate(Subject(desk.task("looking"))), standing


PLAIN = CONFIG.format(least=1, most=0, balanced=1, binpack=0)


@settings(max_examples=drawn(300), deadline=None)
@given(pick=ANYTHING, released=st.booleans())
def test_filters_and_room_equal_the_rule_for_one_node(pick, released):
    known, present, looking = cluster(pick)
    _, evaluation, standing = stage(PLAIN, known, present, looking)
    mask = evaluation.mask(released=released).tolist()
    counted = Counter()
    offered = {name for each in known for name in each["status"]["allocatable"]}
    for i, manifest in enumerate(known):
        missing = reference.short(looking, manifest, standing[i], offered, released=released)
        reasons = reference.refusals(looking, manifest, standing[i], released=released)
        assert mask[i] == (not missing and not reasons), (manifest["metadata"]["name"], missing, reasons)
        counted.update(reference.explain(missing, reasons))
    if not any(mask):
        texts = ", ".join(sorted(f"{count} {text}" for text, count in counted.items()))
        assert str(evaluation.failure(released=released)) == f"0/{len(known)} nodes are unavailable: {texts}."


MIXES = [Mix(1, 0, 1, 0), Mix(0, 2, 0, 1), Mix(1, 1, 3, 10), Mix(0, 0, 0, -1)]


@settings(max_examples=drawn(300), deadline=None)
@given(pick=ANYTHING, mix=st.sampled_from(MIXES))
def test_scores_equal_the_rule_for_one_node(pick, mix):
    known, present, looking = cluster(pick)
    desk, evaluation, standing = stage(CONFIG.format(**mix._asdict()), known, present, looking)
    evaluation.refresh_scores()
    for i, manifest in enumerate(known):
        if any(GPU in each["status"]["allocatable"] for each in known) or not reference.request(looking, GPU):
            assert abs(evaluation.plain[i] - plain(looking, manifest, standing[i], mix)) < 1e-6
    candidates = np.flatnonzero(evaluation.mask(released=True))
    if not len(candidates):
        return
    rows = candidates.tolist()
    liked = reference.normalised([reference.preference(looking, known[i]) for i in rows], reverse=False)
    disliked = reference.normalised([reference.aversion(looking, known[i]) for i in rows], reverse=True)
    compared = [2 * like + 3 * dislike for like, dislike in zip(liked, disliked, strict=True)]
    found = evaluation.normalised(candidates)
    assert [value - found[0] for value in found] == [value - compared[0] for value in compared]
    totals = [
        round((plain(looking, known[i], standing[i], mix) + extra) * 1000)
        for i, extra in zip(rows, compared, strict=True)
    ]
    chosen = selection.choose(evaluation, desk.cluster.nodes, 1, released=True)
    assert chosen == [rows[totals.index(max(totals))]]


def plain(looking, manifest, present, mix):
    """The sum of the scores that compare no nodes."""
    return float(
        mix.least * reference.least(looking, manifest, present)
        + mix.most * reference.most(looking, manifest, present)
        + mix.balanced * reference.balanced(looking, manifest, present)
        + reference.binpack(looking, manifest, present, WEIGHTS, mix.binpack)
    )
