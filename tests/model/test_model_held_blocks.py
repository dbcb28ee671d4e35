"""A block of pods that is put on nodes and taken away changes what moving each of them changes, and nothing stays of it; the logs are told of it only where somebody says so."""

from __future__ import annotations

import random

import pytest

import recount
from builders import Desk, group, node, pod
from pumice.model import held_blocks
from pumice.model.held_blocks import HeldBlock
from pumice.model.statuses import Status


def cluster(seed):
    """Return a cluster in which some jobs of one equal pod each wait, with a block of all of them."""
    pick = random.Random(seed)  # noqa: S311  a world, not a secret
    made = Desk().feed(*(node(f"n{i}", "64") for i in range(4)))
    for i in range(pick.randint(1, 9)):
        made.feed(
            group(f"g{i}", 1, phase="Inqueue"), pod(f"g{i}-0", f"g{i}", cpu="2", role=pick.choice(["", "worker"]))
        )
    made.cache.apply(made.now)
    model = made.cluster
    tasks = sorted(model.tasks.values(), key=lambda task: task.uid)
    return model, HeldBlock(tasks, [model.nodes.records[pick.randrange(4)] for _ in tasks])


@pytest.mark.parametrize("seed", range(12))
def test_a_block_is_counted_as_if_each_pod_had_been_moved(seed):
    model, block = cluster(seed)
    block.put(model)
    recount.check(model)
    together = recount.fingerprint(model)
    block.take(model)
    model.apply(block.tasks, block.nodes, Status.PIPELINED)
    assert recount.fingerprint(model) == together


@pytest.mark.parametrize("seed", range(12))
def test_nothing_stays_of_a_block_that_was_taken_away(seed):
    model, block = cluster(seed)
    before, position = recount.fingerprint(model), model.nodes.position
    block.put(model)
    assert recount.fingerprint(model) != before
    block.take(model)
    assert recount.fingerprint(model) == before
    assert model.nodes.position == position


def test_the_logs_are_told_of_whoever_is_not_back_once():
    model, block = cluster(3)
    position = model.nodes.position
    model.dirty_jobs.clear()
    block.put(model)
    block.take(model)
    model.owed.update(block.by_job)
    first, *others = [task.job_key for task in block.tasks]
    held_blocks.tell_the_logs(model, {first})
    assert sorted(model.dirty_jobs) == sorted(others)
    rows = {record.row for record in block.nodes[1:]}
    assert set(model.nodes.rows_since(position)) == rows
    told = model.nodes.position
    held_blocks.tell_the_logs(model)
    assert model.nodes.position == told
