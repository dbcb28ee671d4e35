"""Jobs that are equal fail together, each with words of its own; those that others mind differently are not equal."""

from __future__ import annotations

from builders import Desk, group, node, pod, queue

HOST = "kubernetes.io/hostname"


def keeps_away(app):
    """An affinity that bears no pod of an app beside it."""
    rule = {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": HOST}
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [rule]}}


def test_a_job_whom_running_pods_bear_is_placed_though_one_of_its_shape_was_refused():
    made = Desk().feed(node("n1", labels={HOST: "n1"}), group("old", phase="Running"))
    made.feed(pod("old-0", "old", cpu="1", node="n1", affinity=keeps_away("x")))
    for name, app in (("first", "x"), ("second", "y")):
        made.feed(group(name, phase="Inqueue"), pod(name, name, cpu="1", labels={"app": app}))
    made.cycle()
    assert made.world.binds == {"second": "n1"}
    assert "existing pods anti-affinity" in made.cache.record.explain("a/first")


def test_every_one_of_many_equal_jobs_is_told_why_with_its_own_pod_and_its_own_minimum():
    made = Desk().feed(node("n1", cpu="1"))
    for i in range(12):
        size = 1 + i % 3
        made.feed(group(f"g{i:02}", size, phase="Inqueue"))
        made.feed(*(pod(f"g{i:02}-w-{k}", f"g{i:02}", cpu="2") for k in range(size)))
    trace = made.cycle().trace()
    assert [line for line in trace if line.startswith("allocate: ")] == [
        f"allocate: a/g{i:02}: 0 of the {1 + i % 3} members it still needs could be placed; "
        f"g{i:02}-w-0: 0/1 nodes are unavailable: 1 Insufficient cpu."
        for i in range(12)
    ]
    for i in range(12):
        assert f"g{i:02}-w-0: 0/1 nodes are unavailable" in made.cache.record.explain(f"a/g{i:02}")


def test_equals_of_a_failed_job_are_tried_once_somebody_has_left_room():
    """In one cycle: `big` is too large, `small` is placed, and only then is it known that no `big` fits."""
    made = Desk().feed(node("n1", cpu="3"), queue("q"))
    sizes = {"a-big": "4", "b-small": "1", "c-fits": "2", "d-fits": "2", "e-big": "4"}
    for name, cpu in sizes.items():
        made.feed(group(name, phase="Inqueue"), pod(name, name, cpu=cpu))
    made.cycle()
    assert made.world.binds == {"b-small": "n1", "c-fits": "n1"}
    for name in ("a-big", "d-fits", "e-big"):
        assert f"{name}: 0/1 nodes are unavailable: 1 Insufficient cpu." in made.cache.record.explain(f"a/{name}")
