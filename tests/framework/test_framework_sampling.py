"""How many feasible nodes are enough (actions.md 2.3 and case 21)."""

import numpy as np
import pytest

from builders import Desk, group, node, pod
from pumice.framework import sampling


@pytest.mark.parametrize(
    ("nodes", "percentage", "expected"),
    [
        (1000, sampling.adaptive(1000, 5), 420),
        (6000, sampling.adaptive(6000, 5), 300),
        (80, sampling.adaptive(80, 5), 80),
        (6000, 40, 2400),
        (6000, 0, 6000),
        (6000, 100, 6000),
        (150, 10, 100),
    ],
)
def test_the_sample_follows_percentage_and_minimum(nodes, percentage, expected):
    assert sampling.enough(nodes, 100, percentage) == expected


def test_samples_take_turns_over_all_candidates():
    sampler = sampling.Sampler(minimum=2, percentage=20)
    candidates = np.array([0, 2, 4, 6, 8])
    seen = [sampler.sample(candidates, 10).tolist() for _ in range(3)]
    assert seen == [[0, 2], [4, 6], [0, 8]]


def test_few_candidates_are_all_taken():
    sampler = sampling.Sampler(minimum=5, percentage=10)
    assert sampler.sample(np.array([3, 7]), 50).tolist() == [3, 7]


def test_who_takes_all_candidates_leaves_the_next_search_where_it_was_to_begin():
    sampler = sampling.Sampler(minimum=2, percentage=20)
    assert sampler.sample(np.array([0, 2, 4]), 10).tolist() == [0, 2]
    assert sampler.sample(np.array([7, 9]), 10).tolist() == [7, 9]
    assert sampler.sample(np.array([1, 3, 5]), 10).tolist() == [3, 5]


def test_who_is_asked_to_look_at_few_nodes_looks_at_no_others():
    """However many shapes wait, and though the others would be chosen by their scores."""
    desk = Desk('actions: "allocate"\ntiers:\n- plugins: [{name: gang}, {name: binpack}]\n')
    desk.scheduler.engine.evaluator.sampler = sampling.Sampler(minimum=1, percentage=10)
    desk.feed(*(node(f"n{i}") for i in range(10)))
    for i in range(4):
        desk.feed(group(f"g{i}", 1), pod(f"g{i}-0", f"g{i}", cpu=f"{i + 1}00m"))
    desk.cycle()
    assert desk.world.binds == {f"g{i}-0": f"n{i}" for i in range(4)}
