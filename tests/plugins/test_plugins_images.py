"""Image locality: the score of Kubernetes, to the point."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders import Desk, group, node, pod
from drawing import drawn
from pumice.framework.subject import Subject
from pumice.model.shape import image_name
from pumice.plugins.nodeorder import images

MI = 2**20


def with_images(name, sizes):
    made = node(name)
    made["status"]["images"] = [{"names": [image], "sizeBytes": size} for image, size in sizes.items()]
    return made


def with_containers(*names, init=(), volumes=()):
    return pod(
        "g-0",
        "g",
        containers=[{"name": f"c{i}", "image": name} for i, name in enumerate(names)],
        initContainers=[{"name": f"i{i}", "image": name} for i, name in enumerate(init)],
        volumes=[{"name": f"v{i}", "image": {"reference": name}} for i, name in enumerate(volumes)],
    )


def scores(nodes, asking):
    desk = Desk().feed(*(with_images(f"n{i}", sizes) for i, sizes in enumerate(nodes)), group("g"), asking).apply()
    found = images.locality(Subject(desk.task("g-0")), desk.cluster.nodes.view())
    return [0] * len(nodes) if found is None else [int(score) for score in found]


KP11 = [
    ([{"a:latest": 500 * MI}] * 4 + [{}] * 6, ("a",), [18] * 4 + [0] * 6),
    ([{"a:latest": 500 * MI}] * 10, ("a",), [48] * 10),
    ([{"a:latest": 2000 * MI, "b:latest": 300 * MI}] * 5 + [{"a:latest": 2000 * MI}] * 5, ("a", "b"), [100] * 10),
]


@pytest.mark.parametrize(("nodes", "wanted", "expected"), KP11)
def test_kp11_large_images_that_many_nodes_have_count_most(nodes, wanted, expected):
    assert scores(nodes, with_containers(*wanted)) == expected


names = st.sampled_from(["a", "b:v1", "r:5000/c", "d@sha256:0f"])


@settings(max_examples=drawn(80), deadline=None)
@given(
    nodes=st.lists(
        st.dictionaries(names.map(image_name), st.integers(0, 1500 * MI), max_size=3), min_size=1, max_size=5
    ),
    containers=st.lists(names, min_size=1, max_size=3),
    init=st.lists(names, max_size=2),
    volumes=st.lists(names, max_size=2),
)
def test_every_node_gets_the_score_of_the_plain_rule(nodes, containers, init, volumes):
    count = len(containers) + len(init)
    expected = []
    for sizes in nodes:
        total = 0
        for name in [*containers, *init, *volumes]:
            full = image_name(name)
            having = sum(1 for other in nodes if full in other)
            total += sizes.get(full, 0) * having // len(nodes)
        total = min(max(total, 23 * MI), 1000 * MI * count)
        expected.append(100 * (total - 23 * MI) // (1000 * MI * count - 23 * MI))
    assert scores(nodes, with_containers(*containers, init=init, volumes=volumes)) == expected


@pytest.mark.parametrize(
    ("written", "full"),
    [
        ("a", "a:latest"),
        ("a:v1", "a:v1"),
        ("r/a", "r/a:latest"),
        ("r:5000/a", "r:5000/a:latest"),
        ("r:5000/a:v1", "r:5000/a:v1"),
        ("r/a@sha256:00", "r/a@sha256:00"),
    ],
)
def test_a_name_without_a_tag_is_the_latest(written, full):
    assert image_name(written) == full


def test_an_absurd_size_counts_as_large_and_a_negative_one_as_nothing():
    assert scores([{"a:latest": 2**62}, {"a:latest": -(2**62)}], with_containers("a")) == [100, 0]


def test_images_nobody_has_cost_nothing():
    desk = Desk().feed(with_images("n0", {"a:latest": 500 * MI}), group("g"), with_containers("b")).apply()
    assert images.locality(Subject(desk.task("g-0")), desk.cluster.nodes.view()) is None


def test_only_a_change_of_images_voids_verdicts():
    first = with_images("n0", {"a:latest": 500 * MI})
    desk = Desk().feed(first).apply()
    before = desk.cluster.nodes.static
    beat = with_images("n0", {"a:latest": 500 * MI})
    beat["status"]["conditions"] = [{"type": "Ready", "status": "True", "lastHeartbeatTime": "2026-01-01T00:00:10Z"}]
    desk.modify(beat).apply()
    assert desk.cluster.nodes.static == before
    desk.modify(with_images("n0", {"a:latest": 500 * MI, "b:latest": 1})).apply()
    assert desk.cluster.nodes.static == before + 1


def test_pods_with_the_same_images_share_a_shape_whatever_their_order():
    desk = Desk().feed(node("n0"), group("g", 2))
    other = with_containers("b", "a")
    other["metadata"].update(name="g-1", uid="a.g-1")
    desk.feed(with_containers("a", "b"), other).apply()
    assert desk.task("g-0").shape is desk.task("g-1").shape
