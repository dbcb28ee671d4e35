"""Without shortcuts everything is decided the long way, to the same end."""

from __future__ import annotations

from pathlib import Path

import pytest

from pumice.framework import shortcuts
from pumice.scenario import suite
from pumice.scheduler import Options

SCENARIOS = Path(__file__).parents[2] / "scenarios"


@pytest.mark.parametrize(
    "file",
    [
        "affinity/required.yaml",  # what nodes answer is asked by whoever asks first
        "eviction/preempt/within-a-job.yaml",  # what was refused for others says nothing about the own job
        "eviction/preempt/inside-one-job.yaml",
        "gangs/minimum-first.yaml",
    ],
)
def test_scenarios_hold_without_shortcuts(file):
    done = list(suite.run(suite.collect([str(SCENARIOS / file)]), plain=True))
    assert [result.name for result in done if result.status != "passed"] == []
    assert done


def test_plain_turns_every_shortcut_off_and_nothing_else_does():
    taken, none = Options().shortcuts, Options(plain=True).shortcuts
    fields = shortcuts.Shortcuts.__struct_fields__
    assert fields
    assert all(getattr(taken, field) for field in fields)
    assert not any(getattr(none, field) for field in fields)
