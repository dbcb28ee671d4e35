"""A plugin that goes wrong at any of its calls, in any way: no gang is bound in part, no node is over-committed, and whoever it was not about is served."""

from __future__ import annotations

from typing import ClassVar

import faulty
import numpy as np
import pytest
from faulty import ATTRIBUTES, FAULTS, Faulty
from hypothesis import given, settings
from hypothesis import strategies as st

import recount
from builders import Desk, group, node, pod, priority_class, queue
from drawing import drawn

pytestmark = pytest.mark.retreats  # plugins that go wrong in every way also go wrong where many are asked about at once

CONFIG = """
actions: "enqueue, allocate, preempt, backfill"
tiers:
- plugins: [{name: erratic}, {name: priority}, {name: gang}, {name: conformance}]
- plugins: [{name: predicates}, {name: nodeorder}, {name: proportion}]
"""
PLACED = {"BINDING", "BOUND", "RUNNING"}


class Erratic(Faulty):
    """Is in order everywhere, except at the calls that it is told."""

    name = "erratic"
    wrong: ClassVar[dict[int, str]] = {}
    asked_so_far = 0

    def open(self, session):
        for attribute in ATTRIBUTES:
            getattr(session, attribute).add(self._function(attribute))
        session.add_handler(self._function("handler"))

    def close(self, _session):
        self._answer("close")

    def _function(self, attribute):
        return lambda *args: self._answer(attribute, *args)

    def _answer(self, attribute, *args):
        Erratic.asked_so_far += 1
        fault = self.wrong.get(Erratic.asked_so_far)
        if fault is not None and fault in faulty.faults_of(attribute):
            return FAULTS[fault](attribute, *args)
        return faulty.in_order(attribute, *args)


gangs = st.lists(
    st.tuples(
        st.integers(1, 4),  # pods
        st.integers(1, 4),  # minimum
        st.sampled_from(["1", "500m", None]),
        st.sampled_from(["default", "other"]),
        st.booleans(),
    ),
    min_size=1,
    max_size=5,
)
wrong = st.dictionaries(st.integers(1, 400), st.sampled_from(sorted(FAULTS)), max_size=25)


def desk(jobs):
    made = Desk(CONFIG, Erratic).feed(
        queue("other"), priority_class("high", 10), *(node(f"n{i}", cpu="8") for i in range(3))
    )
    for number, (pods, minimum, cpu, line, votes) in enumerate(jobs):
        made.feed(
            group(
                f"g{number}",
                min(minimum, pods),
                queue=line,
                created=number,
                **({"minResources": {"cpu": "1"}} if votes else {}),
            ),
            *(pod(f"g{number}-{i}", f"g{number}", cpu=cpu, created=number) for i in range(pods)),
        )
    return made


@settings(max_examples=drawn(60), deadline=None)
@given(jobs=gangs, wrong=wrong)
def test_a_plugin_that_goes_wrong_at_random_costs_only_those_it_was_asked_about(jobs, wrong):
    Erratic.wrong, Erratic.asked_so_far = wrong, 0
    made = desk(jobs)
    for _ in range(2):
        session = opened(made)
        recount.check(made.cluster)
        table = made.cluster.nodes
        assert np.all(table.used[: table.count] <= table.allocatable[: table.count])
        blamed = session.breakdowns.blamed
        for job in made.cluster.jobs.values():
            placed = [task for task in job.tasks.values() if task.status.name in PLACED]
            # Members without requests are bound one by one by design, and count as ready before.
            light = any(task.best_effort for task in job.tasks.values())
            assert light or not placed or len(placed) >= job.min_member
            if job.key not in blamed and f"queue {job.queue}" not in blamed:
                assert len(placed) == len(job.tasks)


def opened(made):
    """Run one cycle, and give its session."""
    sessions = []
    engine = made.scheduler.engine
    end = engine.end
    engine.end = lambda session: (sessions.append(session), end(session))
    made.cycle()
    engine.end = end
    return sessions[0]
