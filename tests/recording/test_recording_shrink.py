"""What shrinking gives still shows the verdict, passes as a scenario, and can spare no object."""

from __future__ import annotations

import pytest
import recording_rig as rig
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from drawing import FUZZ
from pumice.cli.program import program
from pumice.framework import configuration
from pumice.framework.record import Verdict
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


# Somebody is evicted in 69, started in the first three, and waits in all.
@pytest.mark.parametrize("seed", [3, 16, 69, *([12, 33, 83, 100] if FUZZ else [])])
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


@pytest.mark.parametrize("seed", [12, 83] if FUZZ else [12])
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


EVICTING = """\
actions: "enqueue, allocate, preempt, reclaim"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins: [{name: predicates}, {name: nodeorder}]
"""


def _manifest(kind, name, api="v1", **rest):
    metadata = {"name": name} if kind == "Node" else {"name": name, "namespace": "a"}
    metadata.update(rest.pop("metadata", {}))
    return {"apiVersion": api, "kind": kind, "metadata": metadata, **rest}


def _job(name, cpu, node=""):
    group = _manifest(
        "PodGroup", name, "scheduling.volcano.sh/v1beta1", spec={"minMember": 1}, status={"phase": "Inqueue"}
    )
    resources = {"requests": {"cpu": cpu}}
    spec = {"schedulerName": "volcano", "containers": [{"name": "c", "image": "x", "resources": resources}]}
    annotations = {"scheduling.k8s.io/group-name": name}
    pod = _manifest(
        "Pod", f"{name}-0", metadata={"annotations": annotations}, spec={**spec, **({"nodeName": node} if node else {})}
    )
    return [group, pod]


def test_what_is_kept_is_why_the_job_got_no_place_and_not_why_nobody_was_evicted_for_it(tmp_path):
    """Both preempt and reclaim speak after allocate; what they say follows from others that run, and those can go."""
    nodes = [_manifest("Node", f"node-{n}", status={"allocatable": {"cpu": "4", "pods": "110"}}) for n in range(3)]
    running = [each for n in range(3) for each in _job(f"runs-{n}", "2", f"node-{n}")]
    stage = rig.stage(EVICTING, [*nodes, *running, *_job("waits", "64")], tmp_path)
    stage.decide()
    said = {each.source for each in stage.cache.record.verdicts("a/waits")}
    stage.end()
    assert said & {"preempt", "reclaim"}, said
    file = tmp_path / "scenario.yaml"
    result = CliRunner().invoke(program, ["shrink", str(tmp_path), "--job", "a/waits", "-o", str(file)])
    assert result.exit_code == 0, result.output
    assert "a/waits waits: allocate: " in result.output
    assert "Insufficient cpu" in result.output
    text = file.read_text()
    assert "runs-" not in text
    assert text.count('kind":"Node"') + text.count("kind: Node") == 1
    assert CliRunner().invoke(program, ["test", str(file)]).exit_code == 0


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ([("enqueue", 2), ("allocate", 2), ("reclaim", 2)], "allocate"),
        ([("allocate", 2), ("enqueue", 2)], "allocate"),
        ([("preempt", 3), ("allocate", 2)], "allocate"),
        ([("allocate", 2), ("enqueue", 3)], "enqueue"),
        ([("backfill", 1), ("gangpreempt", 4), ("shuffle", 5)], "backfill"),
        ([("reclaim", 1), ("preempt", 2)], "preempt"),
        ([("reclaim", 7)], "reclaim"),
        ([("allocate", 1), ("mine", 2), ("gangreclaim", 2)], "mine"),
    ],
)
def test_the_reason_that_matters_is_that_of_whoever_places_or_lets_in(said, kept):
    spoken = [Verdict(cycle, source, f"{source} says so", "a/j") for source, cycle in said]
    assert verdicts.summed_up({}, [], spoken).source == kept
    for source, _ in said:  # one that is looked for is found, whatever else was said
        wanted = verdicts.summed_up({}, [], [each for each in spoken if each.source == source])
        assert verdicts.summed_up({}, [], spoken, wanted).source == source
