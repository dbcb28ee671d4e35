"""Full clusters of some more nodes, with whatever can make a victim dearer or forbid it: priorities, gangs, roles, budgets, shares, ports, taints, affinity, limits."""

from __future__ import annotations

import random

from builders import Desk, group, metadata, node, pod, priority_class, queue
from pumice.framework.shortcuts import ALL

PLUGINS = {
    "preempt": ("preempt", "[{name: priority}, {name: gang}, {name: conformance}]", ""),
    "preempt, no vote of gang": (
        "preempt",
        "[{name: priority}, {name: pdb}]",
        "{name: gang, enablePreemptable: false}",
    ),
    "preempt, gang falls through": ("preempt", "[{name: gang}, {name: conformance}]", "{name: priority}"),
    "preempt, drf": ("preempt", "[{name: priority}, {name: drf}, {name: pdb}]", "{name: gang}"),
    "preempt, drf alone": ("preempt", "[{name: drf}]", "{name: gang}"),
    "preempt, limits": ("preempt", "[{name: priority}, {name: gang}]", "{name: capacity}, {name: nodegroup}"),
    "reclaim, proportion": ("reclaim", "[{name: priority}, {name: gang}, {name: conformance}]", "{name: proportion}"),
    "reclaim, capacity": ("reclaim", "[{name: gang}, {name: conformance}]", "{name: capacity}, {name: pdb}"),
    "reclaim, tree": ("reclaim", "[{name: gang}]", "{name: capacity, enableHierarchy: true}"),
    "reclaim, one tier": ("reclaim", "[{name: gang}, {name: capacity}, {name: priority}]", ""),
    "reclaim, no vote of gang": (
        "reclaim",
        "[{name: pdb}, {name: proportion}]",
        "{name: gang, enableReclaimable: false}",
    ),
}


def configuration(name, more=""):
    action, first, second = PLUGINS[name]
    listed = f"[{second + ', ' if second else ''}{{name: predicates}}, {{name: nodeorder}}, {{name: binpack}}]"
    return f'actions: "enqueue, allocate, {action}"\n{more}tiers:\n- plugins: {first}\n- plugins: {listed}\n'


def crowd(seed, name, taken=ALL):
    """Return a desk with a crowd at it, whose claimants have not been served."""
    pick = random.Random(seed)  # noqa: S311  a world, not a secret
    desk = Desk(configuration(name), queues=("root",), taken=taken)
    desk.feed(*(priority_class(f"p{value}", value) for value in (5, 10, 50, 100)))
    limits = {"annotations": {"volcano.sh/nodegroup-resource-limits": '{"g": {"cpu": "9"}}'}}
    desk.feed(*([queue("branch", deserved={"cpu": "9"})] if name == "reclaim, tree" else []))
    for index in range(3):
        spec = {"weight": pick.randint(1, 3), "deserved": {"cpu": str(pick.randint(2, 14))}}
        if pick.random() < 0.3:
            spec["capability"] = {"cpu": str(pick.randint(6, 20))}
        if pick.random() < 0.3:
            spec["guarantee"] = {"resource": {"cpu": str(pick.randint(1, 2))}}
        if pick.random() < 0.1:
            spec["reclaimable"] = False
        rule = "requiredDuringSchedulingIgnoredDuringExecution"
        spec["affinity"] = {"nodeGroupAffinity": {rule: pick.choice([["g"], ["g", "h"]])}}
        spec["parent"] = "branch" if name == "reclaim, tree" and index else ""
        desk.feed(queue(f"q{index}", **spec, **(limits if pick.random() < 0.3 else {})))
    free = {}
    for index in range(pick.randint(2, 7)):
        free[f"n{index}"] = [pick.randint(4, 9), pick.randint(4, 12), pick.choice([0, 0, 2]), 9]
        desk.feed(_node(pick, f"n{index}", free[f"n{index}"]))
    for index in range(pick.randint(4, 12)):
        _job(pick, desk, f"old{index}", free)
    for index in range(pick.randint(1, 3)):
        _job(pick, desk, f"new{index}", None)
    for index in range(pick.randint(0, 3)):
        desk.feed(_budget(f"b{index}", pick.choice("xyz"), pick.randint(0, 2)))
    return desk


def equals(seed, name, action=""):
    """Return a desk with many jobs of few kinds, so that most of those that ask are like others."""
    pick = random.Random(seed)  # noqa: S311  as above
    text = configuration(name)
    desk = Desk(
        text.replace(f"allocate, {PLUGINS[name][0]}", f"allocate, {action}") if action else text, queues=("root",)
    )
    desk.feed(*(priority_class(f"p{value}", value) for value in (5, 10, 50, 100)))
    desk.feed(*(queue(f"q{index}", weight=1, deserved={"cpu": str(pick.randint(4, 12))}) for index in range(2)))
    for index in range(pick.randint(2, 6)):
        desk.feed(node(f"n{index}", "4", "16Gi", "9", labels={"zone": "a"}))
    most = pick.choice([1, 1, 2, 3])
    for index in range(pick.randint(4, 24)):
        _equal_job(pick, desk, f"old{index}", pick.randint(1, most), place=f"n{index % 6}")
    size, minimum, asked, rank = pick.randint(1, most), pick.choice([0, 1, 9]), pick.choice(["1", "2", "3"]), "p100"
    for index in range(pick.randint(2, 6)):
        if pick.random() < 0.2:
            size, rank = pick.randint(1, most), pick.choice(["p50", "p100"])
        spec = {"priorityClassName": rank, "queue": pick.choice(["q0", "q0", "q0", "q1"])}
        desk.feed(group(f"new{index}", min(size, minimum) or 1, phase="Inqueue", **spec))
        critical = {"priorityClassName": "system-node-critical"} if pick.random() < 0.1 else {}
        desk.feed(*(pod(f"new{index}-{i}", f"new{index}", cpu=asked, **critical) for i in range(size)))
    if pick.random() < 0.2:
        desk.feed(_budget("b0", "x", pick.randint(0, 2)))
    return desk


def herd(seed, name):
    """Return a desk with elastic jobs that have many equal pods on few nodes, and gangs of equal pods that ask."""
    pick = random.Random(seed)  # noqa: S311  as above
    desk = Desk(configuration(name), queues=("root",))
    desk.feed(*(priority_class(f"p{value}", value) for value in (5, 10, 100)))
    desk.feed(queue("q0", weight=1), queue("q1", weight=1))
    room = [pick.randint(3, 9) for _ in range(pick.randint(2, 5))]
    for index, cpu in enumerate(room):
        desk.feed(node(f"n{index}", str(cpu), f"{pick.choice([cpu, 40])}Gi", pick.choice(["9", "30"])))
    places = [index for index, cpu in enumerate(room) for _ in range(cpu - pick.choice([0, 0, 0, 1]))]
    pick.shuffle(places)
    while places:
        key, size = f"old{len(places)}", pick.randint(4, 12)
        here, places = places[:size], places[size:]
        spec = {"priorityClassName": pick.choice(["p5", "p5", "p10"]), "queue": pick.choice(["q0", "q0", "q1"])}
        desk.feed(group(key, pick.choice([0, 1, 1, 3]), phase="Running", **spec))
        memory = pick.choice(["1Gi", "1Gi", "512Mi"])
        desk.feed(*(pod(f"{key}-{i}", key, cpu="1", memory=memory, node=f"n{at}") for i, at in enumerate(here)))
    for index in range(pick.randint(1, 3)):
        size, cpu = pick.randint(3, 9), pick.choice(["1", "1", "1", "500m", "1500m"])
        desk.feed(group(f"new{index}", size, phase="Inqueue", priorityClassName="p100", queue="q0"))
        desk.feed(*(pod(f"new{index}-{i}", f"new{index}", cpu=cpu, memory="1Gi") for i in range(size)))
    return desk


def throng(seed, name):
    """Return a desk with more nodes than plans are tried on in every way, full of jobs of one pod and some larger ones, and waves of jobs of one pod that ask, most of them like the one before."""
    pick = random.Random(seed)  # noqa: S311  as above
    desk = Desk(configuration(name), queues=("root",))
    desk.feed(*(priority_class(f"p{value}", value) for value in (5, 10, 100)))
    room = {"cpu": str(pick.randint(20, 60))} if pick.random() < 0.2 else {}
    desk.feed(queue("q0", weight=1, capability=room), queue("q1", weight=1))
    sizes = [pick.choice([4, 4, 4, 6, 8]) for _ in range(pick.randint(9, 14))]
    taint = [{"key": "only", "value": "x", "effect": "NoSchedule"}]
    for at, cpu in enumerate(sizes):
        desk.feed(node(f"n{at:02}", str(cpu), "40Gi", "30", taints=taint if pick.random() < 0.1 else ()))
    places = [at for at, cpu in enumerate(sizes) for _ in range(cpu - (pick.random() < 0.1))]
    odd, minimum = pick.choice([0.0, 0.1, 0.3]), pick.choice([0, 1])
    while places:
        size = pick.randint(2, 4) if pick.random() < odd else 1
        if pick.random() < odd:
            pick.shuffle(places)
        key, here, places = f"old{len(places)}", places[:size], places[size:]
        spec = {
            "priorityClassName": "p10" if pick.random() < odd else "p5",
            "queue": "q1" if pick.random() < odd / 3 else "q0",
        }
        least = pick.choice([0, 1, size]) if pick.random() < odd else min(minimum, size)
        desk.feed(group(key, least, phase="Running", **spec))
        memory = "512Mi" if pick.random() < odd else "1Gi"
        notes = {"volcano.sh/preemptable": "false"} if pick.random() < odd / 3 else {}
        labels = {"app": pick.choice("xyz")}
        for i, at in enumerate(here):
            asked = {"cpu": "1", "memory": memory, "labels": labels, "annotations": notes}
            desk.feed(pod(f"{key}-{i}", key, node=f"n{at:02}", **asked))
    if pick.random() < odd:
        desk.feed(_budget("b0", "x", pick.randint(0, 3)))
    return desk, [_lone_claimants(pick, wave, odd) for wave in range(2)]


def _lone_claimants(pick, wave, odd):
    kinds = [("p100", pick.choice(["1", "2", "3", "2500m"]), "q0"), ("p10", "2", "q0"), ("p100", "1", "q1")]
    kind, found = kinds[0], []
    for index in range(pick.randint(4, 12)):
        if pick.random() < odd:
            kind = pick.choice(kinds)
        rank, cpu, owner = kind
        key = f"new{wave}-{index:02}"
        found.append(group(key, 1, phase="Inqueue", priorityClassName=rank, queue=owner))
        found.append(pod(key, key, cpu=cpu, memory="1Gi", labels={"app": pick.choice("xyz")}))
    return found


def _equal_job(pick, desk, name, size, *, place):
    rank, where = pick.choice(["p5", "p5", "p10", "p100"]), pick.choice(["q0", "q0", "q1"])
    minimum = pick.choice([0, 1, size])
    desk.feed(group(name, minimum, phase="Running", priorityClassName=rank, queue=where))
    notes = {"volcano.sh/preemptable": "false"} if pick.random() < 0.05 else {}
    labels = {"app": pick.choice("xyz")}
    desk.feed(*(pod(f"{name}-{i}", name, cpu="1", node=place, labels=labels, annotations=notes) for i in range(size)))


def _node(pick, name, amounts):
    taint = [{"key": "only", "value": "x", "effect": "NoSchedule"}] if pick.random() < 0.1 else ()
    labels = {"zone": pick.choice("ab"), "volcano.sh/nodegroup-name": pick.choice("gh")}
    cpu, memory, devices, pods = map(str, amounts)
    return node(name, cpu, f"{memory}Gi", pods, labels=labels, taints=taint, **{"example.com__dev": devices})


def _budget(name, label, allowed):
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": metadata(name, "a", resourceVersion="7"),
        "spec": {"selector": {"matchLabels": {"app": label}}},
        "status": {"disruptionsAllowed": allowed},
    }


def _job(pick, desk, name, free):
    size = pick.randint(1, 5)
    ranks = ["p5", "p10", "p10", "p50"] if free is not None else ["p50", "p100", "p100"]
    roles = [pick.choice("mw") for _ in range(size)]
    spec = {"priorityClassName": pick.choice(ranks), "queue": pick.choice(["q0", "q1", "q2"])}
    minimum = pick.choice([0, 1, 1, size, pick.randint(1, size)])
    if pick.random() < 0.15:
        spec["minTaskMember"] = {role: pick.randint(0, roles.count(role)) for role in set(roles)}
        minimum = max(minimum, sum(spec["minTaskMember"].values()))
    desk.feed(group(name, minimum, phase="Running" if free is not None else "Inqueue", **spec))
    for index in range(size):
        most = 3 if free is not None else 6
        asked = [pick.randint(0, most), pick.randint(0, most), pick.choice([0, 0, 0, 1])]
        place = "" if free is None else _place(pick, free, asked)
        if free is None or place:
            desk.feed(_pod(pick, f"{name}-{index}", name, asked, place=place, role=roles[index]))


def _place(pick, free, asked):
    for name in pick.sample(sorted(free), len(free)):
        if all(have >= want for have, want in zip(free[name], [*asked, 1], strict=True)):
            free[name] = [have - want for have, want in zip(free[name], [*asked, 1], strict=True)]
            return name
    return ""


def _pod(pick, name, job, asked, *, place, role):
    spec = {}
    if pick.random() < 0.1:
        rule = {"labelSelector": {"matchLabels": {"app": pick.choice("xyz")}}, "topologyKey": "zone"}
        kind = pick.choice(["podAntiAffinity", "podAffinity"])
        spec["affinity"] = {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [rule]}}
    if pick.random() < 0.1:
        spec["nodeSelector"] = {"zone": pick.choice("ab")}
    notes = {"volcano.sh/preemptable": "false"} if pick.random() < 0.05 else {}
    if pick.random() < 0.2:
        notes["volcano.sh/task-priority"] = str(pick.randint(1, 9))
    cpu, memory, devices = asked
    return pod(
        name,
        job,
        cpu=str(cpu) if cpu else None,
        memory=f"{memory}Gi" if memory else None,
        requests={"example.com/dev": str(devices)} if devices else None,
        node=place,
        role=role,
        labels={"app": pick.choice("xyz")},
        annotations=notes,
        ports=[{"containerPort": 80, "hostPort": 8080}] if pick.random() < 0.08 else (),
        **spec,
    )
