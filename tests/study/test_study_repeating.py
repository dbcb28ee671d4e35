"""A cycle that is rehearsed leaves nothing behind: rehearsed again, it decides the same, devices and locks included."""

from __future__ import annotations

import pytest

import builders
from cache.test_cache_preparing import LOCKING, gpu_node
from cache.test_cache_preparing import asking as asking_for_cards
from devices.test_devices_placing import device_class, own, slice_of
from pumice.cache.options import Options
from pumice.study.rehearsal import Rehearsal

CLAIMS = [device_class(), slice_of("n1", 2), *own("g-0", "g"), *own("g-1", "g")]
CARDS = [gpu_node("n1"), *(asking_for_cards(f"g-{i}", "g", "5000") for i in range(2))]


@pytest.mark.parametrize(
    ("policy", "objects"),
    [(builders.GANG, [builders.node("n1"), *CLAIMS]), (LOCKING, CARDS)],
    ids=["claims for devices", "locks of nodes"],
)
def test_a_gang_that_is_prepared_is_placed_in_every_rehearsal(policy, objects):
    settings, known = builders.settings(policy)
    given = [*map(builders.queue, ("root", "default")), builders.group("g", 2), *objects]
    rehearsal = Rehearsal([(builders.kind_of(each), each) for each in given], settings, Options(), builders.NOW, known)
    for _ in range(3):
        with rehearsal.cycle() as (_, outlet):
            assert sorted((task.name, node) for task, node in outlet.bound.values()) == [("g-0", "n1"), ("g-1", "n1")]
        assert {task.status.name for task in rehearsal.cluster.tasks.values()} == {"PENDING"}
        assert rehearsal.cache.next_wake() is None
