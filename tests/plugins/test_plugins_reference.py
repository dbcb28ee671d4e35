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
values = st.sampled_from(["a", "b", "ssd", "1", "2", "5", "+1", "x", "9223372036854775808"])
keys = st.sampled_from([*LABELS, "none"])
labels = st.fixed_dictionaries({}, optional={key: st.sampled_from(known) for key, known in LABELS.items()})
taints = st.lists(
    st.fixed_dictionaries(
        {
            "key": st.sampled_from(["k", "m"]),
            "effect": st.sampled_from(["NoSchedule", "NoExecute", "PreferNoSchedule", "PreferNoSchedule"]),
        },
        optional={"value": st.sampled_from(["", "v"])},
    ),
    max_size=2,
)
tolerations = st.lists(
    st.fixed_dictionaries(
        {},
        optional={
            "key": st.sampled_from(["", "k", "m", "node.kubernetes.io/unschedulable"]),
            "operator": st.sampled_from(["", "Exists", "Equal", "Gt"]),
            "value": st.sampled_from(["", "v"]),
            "effect": st.sampled_from(["", "NoSchedule", "NoExecute", "PreferNoSchedule"]),
        },
    ),
    max_size=3,
)
ports = st.lists(
    st.fixed_dictionaries(
        {"hostPort": st.sampled_from([0, 80, 80, 443])},
        optional={
            "protocol": st.sampled_from(["", "TCP", "UDP"]),
            "hostIP": st.sampled_from(["", "0.0.0.0", "10.0.0.1", "10.0.0.2"]),  # noqa: S104  compared, not bound
        },
    ),
    max_size=2,
)
operators = st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Is"])
expression = st.fixed_dictionaries({"key": keys, "operator": operators, "values": st.lists(values, max_size=2)})
field = st.fixed_dictionaries(
    {
        "key": st.sampled_from(["metadata.name", "metadata.name", "metadata.uid"]),
        "operator": st.sampled_from(["In", "NotIn", "Exists"]),
        "values": st.lists(st.sampled_from(["n0", "n1"]), min_size=1, max_size=2),
    }
)
term = st.fixed_dictionaries(
    {}, optional={"matchExpressions": st.lists(expression, max_size=2), "matchFields": st.lists(field, max_size=1)}
)
node_affinity = st.fixed_dictionaries(
    {},
    optional={
        "requiredDuringSchedulingIgnoredDuringExecution": st.fixed_dictionaries(
            {"nodeSelectorTerms": st.lists(term, max_size=3)}
        ),
        "preferredDuringSchedulingIgnoredDuringExecution": st.lists(
            st.fixed_dictionaries({"weight": st.integers(1, 100), "preference": term}), max_size=3
        ),
    },
)
requests = st.fixed_dictionaries(
    {},
    optional={
        "cpu": st.sampled_from(["0", "500m", "1", "3"]),
        "memory": st.sampled_from(["0", "300Mi", "1Gi", "3Gi"]),
        GPU: st.sampled_from(["0", "1", "2"]),
        "example.com/x": st.just("1"),
    },
)


# Each world is about one or two things, so that the others do not rule every node out.
THEMES = ("room", "labels", "taints", "states", "ports")


@st.composite
def nodes(draw, name, themes):
    amounts = {
        "cpu": draw(st.sampled_from(["0", "1", "4", "8"])),
        "memory": draw(st.sampled_from(["1Gi", "3Gi", "8Gi"])),
        "pods": draw(st.sampled_from([None, "0", "1", "2", "3", "110"])),
    }
    made = node(
        name,
        **(amounts if "room" in themes else {"cpu": "64", "memory": "64Gi"}),
        labels=draw(labels),
        taints=draw(taints) if "taints" in themes else (),
        cordoned="states" in themes and draw(st.integers(0, 2)) == 0,
        ready=draw(st.sampled_from([None, "True", "False", "Unknown"])) if "states" in themes else None,
    )
    if gpus := draw(st.sampled_from([None, None, "2", "8"])):
        made["status"]["allocatable"][GPU] = gpus
    return made


@st.composite
def clusters(draw):
    """Nodes, the pods on each, and a pod that looks for one."""
    themes = draw(st.lists(st.sampled_from(THEMES), min_size=1, max_size=2))
    known = [draw(nodes(f"n{i}", themes)) for i in range(draw(st.integers(1, 5)))]
    nothing = st.just([])
    present = []
    for i in range(draw(st.integers(0, 8))):
        where = draw(st.integers(0, len(known) - 1))
        state = draw(st.sampled_from([HELD, HELD, LEAVING, COMING, "placed"]))
        taken = draw(ports if "ports" in themes else nothing)
        present.append((where, state, pod(f"old-{i}", "g", requests=draw(requests), ports=taken)))
    looking = pod(
        "looking",
        "g",
        requests=draw(requests),
        ports=draw(ports if "ports" in themes else nothing),
        nodeSelector=draw(st.dictionaries(keys, values, max_size=1)) if "labels" in themes else {},
        affinity={"nodeAffinity": draw(node_affinity)} if "labels" in themes else {},
        tolerations=draw(tolerations if {"taints", "states"} & set(themes) else nothing),
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


@settings(max_examples=200, deadline=None)
@given(cluster=clusters(), released=st.booleans())
def test_filters_and_room_equal_the_rule_for_one_node(cluster, released):
    known, _, looking = cluster
    _, evaluation, standing = stage(PLAIN, *cluster)
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


@settings(max_examples=200, deadline=None)
@given(cluster=clusters(), mix=st.sampled_from(MIXES))
def test_scores_equal_the_rule_for_one_node(cluster, mix):
    known, _, looking = cluster
    desk, evaluation, standing = stage(CONFIG.format(**mix._asdict()), *cluster)
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
