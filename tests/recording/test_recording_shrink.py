"""What shrinking gives still shows the verdict, passes as a scenario, and can spare no object."""

from __future__ import annotations

import pytest
import recording_rig as rig
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from pumice.cli.program import program
from pumice.framework import configuration
from pumice.recording import reducing, shrinking, verdicts
from pumice.recording.other_policy import copy
from pumice.recording.player import Player
from pumice.server import dump
from tests.lives import scripts
from tests.lives.stage import KNOWN


@given(st.integers(0, 30), st.lists(st.frozensets(st.integers(0, 29), min_size=1, max_size=4), min_size=1, max_size=3))
def test_reducing_keeps_what_holds_and_nothing_that_could_be_left_out(size, wanted):
    """Any of several sets of items is enough: one of them is found, whole."""
    items = list(range(size))

    def holds(chosen):
        return any(each <= set(chosen) for each in wanted)

    if not holds(items):
        return
    kept = reducing.minimal(items, holds)
    assert holds(kept)
    assert kept == sorted(kept)
    for index in range(len(kept)):
        assert not holds(kept[:index] + kept[index + 1 :])


def test_reducing_comes_down_to_nothing_where_nothing_is_needed():
    assert reducing.minimal([1, 2, 3], lambda _: True) == []


def _verdicts(folder):
    """Give, for each job of a recording, the last verdict of each sort with what was known when it was given."""
    player, found = Player(rig.files(folder), KNOWN), {}
    for step, _ in player.steps():
        before = copy(player) if step.cycle and not step.skipped else None
        played = player.play(step)
        for job in list(player.scheduler.cache.cluster.jobs) if before is not None else ():
            if (verdict := verdicts.of_cycle(player, played, job)) is not None:
                found[job, verdict.is_] = (verdict, before, step, player.scheduler.configuration)
    return found


def _one_of_each_sort(folder):
    """Give the first job of each sort of verdict, with its verdict and what was known."""
    found = {}
    for (job, sort), known in _verdicts(folder).items():
        found.setdefault(sort, (job, *known))
    return found.values()


@pytest.mark.parametrize("seed", [3, 12, 16, 33, 69, 83, 100])  # evicted in three, started in four, waiting in all
def test_what_is_left_shows_the_same_verdict_and_no_object_can_be_missed(seed, tmp_path):
    rig.live(scripts.draw(seed, cycles=4), tmp_path)
    shown = 0
    for job, verdict, before, step, policy in _one_of_each_sort(tmp_path):
        before.prepare(step)
        before.cache.inputs = before
        before.cache.apply(step.now, standby=True)
        objects = list(dump.manifests(before.cache.cluster))
        trial = shrinking.Trial(job, verdict, policy, before.cache.options, KNOWN)
        try:
            kept = shrinking.shrink(objects, trial, lambda _: None)
        except shrinking.NotShownError:
            continue  # it rests on what only the process knew, and that is said
        shown += 1
        assert trial.shows(kept)
        for index in range(len(kept)):
            assert not trial.shows(kept[:index] + kept[index + 1 :]), (job, verdict, kept[index])
    assert shown


@pytest.mark.parametrize("seed", [12, 83])
def test_the_scenario_file_of_any_job_passes(seed, tmp_path):
    folder = tmp_path / "recording"
    rig.live(scripts.draw(seed, cycles=4), folder)
    runner, passed = CliRunner(), 0
    for job in {job: None for job, _ in _verdicts(folder)}:
        file = tmp_path / "scenario.yaml"
        result = runner.invoke(program, ["shrink", str(folder), "--job", job, "-o", str(file)])
        assert result.exit_code in (0, 1), result.output
        if result.exit_code == 0:
            tested = runner.invoke(program, ["test", str(file)])
            assert tested.exit_code == 0, tested.output + file.read_text()
            passed += 1
    assert passed


def test_the_configuration_of_the_verdict_is_that_of_its_cycle(tmp_path):
    script = scripts.draw(1, cycles=2)
    rig.live(script, tmp_path)
    _, _, _, policy = next(iter(_verdicts(tmp_path).values()))
    assert policy.tiers == configuration.load(script.policy.text, KNOWN.catalog(), "config").tiers
