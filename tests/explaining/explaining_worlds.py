"""Clusters to be explained: drawn at random, small enough for a slow obvious answer."""

from __future__ import annotations

from hypothesis import strategies as st

from builders import Desk, group, node, pod, priority_class, queue

EVERYTHING = """
actions: "enqueue, allocate, preempt, reclaim, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}, {name: pdb}]
- plugins: [{name: predicates}, {name: proportion}, {name: nodeorder}]
"""
GPU = "nvidia.com/gpu"
MAINTENANCE = {"key": "maintenance", "effect": "NoSchedule"}


def asked(made, *questions):
    """Run a cycle and return what the explainer answers to each question, a name of a kind and of a thing."""
    answers = []
    made.scheduler.cycle(lambda explainer: answers.extend(getattr(explainer, kind)(name) for kind, name in questions))
    made.now += 1_000_000
    return answers


@st.composite
def nodes(draw, most=6):
    """Nodes of a few sizes, some tainted, cordoned or in another zone."""
    made = []
    for i in range(draw(st.integers(0, most))):
        gpus = draw(st.sampled_from(["0", "2", "4"]))
        made.append(
            node(
                f"n{i}",
                cpu=draw(st.sampled_from(["1", "2", "4"])),
                memory=draw(st.sampled_from(["1Gi", "4Gi"])),
                pods=draw(st.sampled_from(["1", "110"])),
                taints=[MAINTENANCE] if draw(st.booleans()) and draw(st.booleans()) else [],
                labels={"zone": draw(st.sampled_from(["a", "b"]))},
                cordoned=draw(st.sampled_from([False, False, False, True])),
                **{"nvidia.com__gpu": gpus},
            )
        )
    return made


def requests(draw):
    """What a pod may ask for."""
    return {
        "cpu": draw(st.sampled_from(["500m", "1", "3"])),
        "memory": draw(st.sampled_from(["512Mi", "2Gi"])),
        "requests": draw(st.sampled_from([{}, {GPU: "1"}, {GPU: "3"}])),
    }


@st.composite
def worlds(draw):
    """Objects of a cluster in which some jobs run and some wait."""
    objects = [queue("lent"), queue("own", weight=3), priority_class("high", 10), *draw(nodes())]
    known = [each for each in objects if each["kind"] == "Node"]
    for g in range(draw(st.integers(1, 4))):
        size = draw(st.integers(0, 4))
        more = {"priorityClassName": "high"} if draw(st.booleans()) else {}
        if draw(st.booleans()):
            more["minResources"] = {"cpu": draw(st.sampled_from(["1", "6", "40"]))}
        name = draw(st.sampled_from(["default", "lent", "own"]))
        objects.append(group(f"g{g}", draw(st.integers(1, 4)), queue=name, created=g, **more))
        wish = requests(draw)
        spec = {"nodeSelector": {"zone": "a"}} if draw(st.booleans()) else {}
        for i in range(size):
            mine = requests(draw) if draw(st.booleans()) else wish
            place = draw(st.sampled_from(known))["metadata"]["name"] if known and draw(st.booleans()) else ""
            objects.append(pod(f"g{g}-w-{i}", f"g{g}", created=g, node=place, **mine, **spec))
    return objects


def desk(objects, text=EVERYTHING):
    """A scheduler that has heard of objects in the order in which they are given."""
    return Desk(text).feed(*objects)


def questions(objects):
    """Ask about everything there is."""
    found = []
    for each in objects:
        name = each["metadata"]["name"]
        match each["kind"]:
            case "PodGroup":
                found.append(("job", f"a/{name}"))
            case "Pod":
                found.append(("pod", f"a/{name}"))
            case "Queue" | "Node":
                found.append((each["kind"].lower(), name))
    return sorted(found)
