"""timeline: worked cases of backfill, one node of ten slots each; scenarios/timeline plays them as users see them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from timeline_player import Job, Player, at, policy

import builders
from pumice.plugins.timeline.estimates import planned_end
from pumice.plugins.timeline.texts import expected, length, moment

MINUTE = 60_000_000
LATECOMERS = [Job(5, 60, submit=second) for second in range(30, 211, 30)]
CASES = {
    "a job that ends in time goes first": ("easy", [Job(6, 100), Job(8, 50), Job(4, 80)], [0, 100, 0]),
    "what is left over is given once": (
        "easy",
        [Job(6, 100), Job(8, 50), Job(4, 80), Job(2, 500), Job(2, 500)],
        [0, 100, 0, 80, 150],
    ),
    "no estimate is for ever": ("easy", [Job(6, 100), Job(8, 50), Job(4, 80, estimate=None)], [0, 100, 150]),
    "nothing reserved, the large one starves": ("off", [Job(5, 60), Job(10, 30), *LATECOMERS], [0, 270, *range(30, 211, 30)]),
    "reserved, it does not": ("easy", [Job(5, 60), Job(10, 30), *LATECOMERS], [0, 60, 90, 90, 150, 150, 210, 210, 270]),
    "easy holds for the first alone": ("easy", [Job(6, 100), Job(6, 100), Job(10, 50), Job(4, 250)], [0, 100, 250, 0]),
    "two reservations": (
        'easy", timeline.depth: 2, timeline.overrun: "extend',
        [Job(6, 100), Job(6, 100), Job(10, 50), Job(4, 250)],
        [0, 100, 200, 250],
    ),
    "conservative holds for all": (
        "conservative",
        [Job(6, 100), Job(6, 100), Job(10, 50), Job(4, 250)],
        [0, 100, 200, 250],
    ),
    "an early end": ("conservative", [Job(10, 40, estimate=100), Job(10, 50), Job(5, 30)], [0, 40, 90]),
    "an overrun": ("easy", [Job(10, 130, estimate=100), Job(10, 20)], [0, 130]),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_jobs_start_when_they_should(case):
    name, jobs, starts = CASES[case]
    assert Player(jobs, policy(name)).play() == starts


def test_a_forecast_moves_when_a_job_is_over_its_estimate():
    player = Player([Job(10, 130, estimate=100), Job(10, 20)], policy())
    player.play()
    assert list(dict.fromkeys(when for _, when in player.forecasts[1])) == [100, 160]


MOVED = {
    "over its estimate": ("easy", [Job(10, 130, estimate=100), Job(10, 20)], 1, "00:01:40: a/j000 is over its estimate"),
    "ended early": (
        "conservative",
        [Job(10, 140, estimate=600), Job(10, 50), Job(5, 30)],
        2,
        "00:10:50: a/j000 ended sooner than was expected",
    ),
    "another came and started": (
        "easy",
        [Job(6, 100), Job(8, 50), Job(10, 50), Job(2, 500, submit=30)],
        2,
        "00:02:30: a/j003 goes first",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", MOVED)
def test_a_forecast_that_moves_says_by_whom(case):
    name, jobs, number, why = MOVED[case]
    player = Player(jobs, policy(name))
    player.play()
    assert any(f"; moved from {why}" in message for message in player.told[number]), player.told[number]


def test_a_forecast_that_moves_on_another_day_than_it_was_first_told_has_a_date():
    """It keeps the time at which it was first told, and who reads it takes what has no date for that day's."""
    player = Player([Job(10, 90_030, estimate=90_000), Job(10, 20)], policy(more=', timeline.window: "0s"'))
    player.play()
    assert list(dict.fromkeys(message.partition(" on ")[0] for message in player.told[1])) == [
        "expected at 2026-01-02 01:00",
        "expected at 2026-01-02 01:01",
    ]


def test_who_ends_when_it_always_was_to_end_is_not_named_when_a_node_is_lost():
    """It was to start on the first node after 100 s; without that it waits for the other one, which ends when that was known all along."""
    desk = builders.Desk(policy())
    nodes = [builders.node(f"n{i}", cpu="10", memory="1000Gi") for i in range(2)]
    desk.feed(*nodes)
    for name, node, estimate in (("short", "n0", "100s"), ("long", "n1", "500s")):
        runs = builders.pod(f"{name}-0", name, cpu="10", node=node)
        runs["status"] = {"phase": "Running", "startTime": at(0)}
        desk.feed(builders.group(name, 1, annotations={"pumice.dev/estimate": estimate}), runs)
    desk.feed(*waiting("next", 1))
    desk.now = builders.NOW + 10 * builders.SECOND
    desk.cycle(0)
    assert told(desk, "next")[-1].startswith("expected at 00:01:40 on n0")
    desk.modify({**nodes[0], "spec": {**nodes[0].get("spec", {}), "unschedulable": True}})
    desk.delete(builders.pod("short-0", "short", cpu="10", node="n0")).delete(nodes[0])
    desk.now += 10 * builders.SECOND
    desk.cycle(0)
    assert told(desk, "next")[-1].startswith("expected at 00:08:20 on n1")
    assert told(desk, "next")[-1].endswith("moved from 00:01:40: there is less room than was expected")


def test_planned_ends_go_up_by_one_two_four_minutes_and_never_more_than_the_estimate():
    ends = [planned_end(0, 5 * MINUTE, now * MINUTE) // MINUTE for now in (0, 4, 5, 6, 8, 12, 17, 22, 100)]
    assert ends == [5, 5, 6, 8, 12, 17, 22, 27, 102]
    assert planned_end(0, None, 10**15) == 2**62


def test_texts_are_absolute_and_can_be_read_back():
    now, later = 1_767_225_600_000_000, 1_767_225_600_000_000 + 26 * 3_600_000_000
    assert moment(now + 14 * 60 * MINUTE + 32 * MINUTE, now) == "14:32"
    assert moment(later, now) == "2026-01-02 02:00"
    assert [length(each * 1_000_000) for each in (1, 61, 120, 5400, 7261)] == ["1s", "61s", "2m", "1h30m", "2h1m1s"]
    assert expected(f"expected at {moment(later, now)} on n1", "2026-01-01T00:00:00Z") == later
    assert expected("expected at 00:01:40 on n1", "2026-01-01T00:00:00Z") == now + 100_000_000


def test_a_forecast_names_the_second_by_which_a_job_starts_never_the_one_before():
    now = 1_767_225_600_000_000
    assert moment(now + 1, now) == "00:00:01"
    assert moment(now + 59_000_001, now) == "00:01"


# -- after a restart --------------------------------------------------------------------------------------------------


def waiting(name, submitted, **status):
    """A group of one pod of ten cpu, which waits."""
    group = builders.group(name, 1, annotations={"pumice.dev/estimate": "50s"})
    group["metadata"]["creationTimestamp"] = at(submitted)
    group["status"] = {"phase": "Inqueue", **status}
    pod = builders.pod(f"{name}-0", name, cpu="10")
    pod["metadata"]["creationTimestamp"] = at(submitted)
    return group, pod


def forecasts(desk):
    """What is written about starts: reasons by the name of the group."""
    found = {}
    for effect in desk.world.effects:
        if isinstance(effect, builders.Patch) and effect.kind.name == "PodGroup":
            for condition in effect.body.get("status", {}).get("conditions", ()):
                if condition["type"] == "StartForecast":
                    found[effect.name] = condition["reason"]
    return found


def told(desk, name):
    """What a group was told about its start, one after the other."""
    return [
        condition["message"]
        for effect in desk.world.effects
        if isinstance(effect, builders.Patch) and effect.kind.name == "PodGroup" and effect.name == name
        for condition in effect.body.get("status", {}).get("conditions", ())
        if condition["type"] == "StartForecast"
    ]


@pytest.mark.parametrize("held", [True, False])
def test_who_held_room_before_a_restart_keeps_its_place_before_one_who_would_come_first(held):
    """Both want all ten cpu after the one who runs; by age the other one comes first."""
    condition = {
        "type": "StartForecast",
        "status": "True",
        "reason": "Reserved",
        "message": "expected at 00:01:40 on n0; waits for a/runs (10 cpu, until 00:01:40 by its estimate)",
        "lastTransitionTime": at(5),
    }
    desk = builders.Desk(policy())
    desk.feed(builders.node("n0", cpu="10", memory="1000Gi"))
    runs = builders.pod("runs-0", "runs", cpu="10", node="n0")
    runs["status"] = {"phase": "Running", "startTime": at(0)}
    desk.feed(builders.group("runs", 1, annotations={"pumice.dev/estimate": "100s"}), runs)
    desk.feed(*waiting("holder", 3, **({"conditions": [condition]} if held else {})), *waiting("older", 1))
    desk.now = builders.NOW + 10 * builders.SECOND
    desk.cycle()
    found = forecasts(desk)
    assert found["older"] == ("Planned" if held else "Reserved")
    assert found.get("holder", "Reserved") == ("Reserved" if held else "Planned")


def test_estimates_are_learnt_from_the_last_two_runs_of_the_same_owner():
    """Two runs of 30 and 50 seconds have ended; the third is planned to end after 40, so who waits for it is told so."""
    desk = builders.Desk(policy(more=", timeline.learn: true"))
    desk.feed(builders.node("n0", cpu="10", memory="1000Gi"))
    second = 0
    for number, seconds in enumerate((30, 50, None)):
        name = f"train-{number}"
        group = builders.group(name, 1)
        group["metadata"]["ownerReferences"] = [
            {"apiVersion": "v1", "kind": "X", "name": "train", "uid": "x", "controller": True}
        ]
        pod = builders.pod(f"{name}-0", name, cpu="10", node="n0")
        pod["status"] = {"phase": "Running", "startTime": at(second)}
        desk.now = builders.NOW + second * builders.SECOND
        desk.feed(group, pod).cycle(0)
        if seconds is not None:
            second += seconds
            desk.now = builders.NOW + second * builders.SECOND
            pod = {**pod, "status": {"phase": "Succeeded", "startTime": at(second - seconds)}}
            desk.modify(pod).cycle(0)
    desk.feed(*waiting("next", second)).cycle(0)
    assert told(desk, "next")[-1].startswith("expected at 00:02 on n0")


@pytest.mark.parametrize(
    ("notes", "start", "by"),
    [
        ({"pumice.dev/estimate": "100s"}, "00:01:40", "estimate"),
        ({"pumice.dev/estimate": "100s", "pumice.dev/ends-by": at(60)}, "00:01", "deadline"),
        ({"pumice.dev/estimate": "100s", "pumice.dev/ends-by": at(500)}, "00:01:40", "estimate"),
        ({"pumice.dev/ends-by": at(60)}, "00:01", "deadline"),
        ({"pumice.dev/estimate": "100s", "pumice.dev/ends-by": "soon"}, "00:01:40", "estimate"),
    ],
)
def test_what_ends_a_job_at_a_time_bounds_its_planned_end(notes, start, by):
    desk = builders.Desk(policy())
    desk.feed(builders.node("n0", cpu="10", memory="1000Gi"))
    runs = builders.pod("runs-0", "runs", cpu="10", node="n0")
    runs["status"] = {"phase": "Running", "startTime": at(0)}
    desk.feed(builders.group("runs", 1, annotations=notes), runs, *waiting("next", 1))
    desk.now = builders.NOW + 10 * builders.SECOND
    desk.cycle(0)
    message = told(desk, "next")[-1]
    assert message.startswith(f"expected at {start} on n0")
    assert message.endswith(f"; waits for a/runs (10 cpu, until {start} by its {by})")


@pytest.mark.parametrize(
    "status",
    [
        {"phase": "Running", "startTime": at(3600)},
        {"conditions": [{"type": "PodScheduled", "status": "True", "lastTransitionTime": at(3600)}]},
        {"conditions": [{"type": "PodScheduled", "status": "True"}]},
    ],
)
def test_what_a_clock_that_is_ahead_says_has_begun_began_when_it_was_seen(status):
    desk = builders.Desk(policy())
    desk.feed(builders.node("n0", cpu="10", memory="1000Gi"))
    runs = builders.pod("runs-0", "runs", cpu="10", node="n0")
    runs["status"] = status
    desk.feed(builders.group("runs", 1, annotations={"pumice.dev/estimate": "100s"}), runs, *waiting("next", 1))
    for seconds in (10, 20, 30):
        desk.now = builders.NOW + seconds * builders.SECOND
        desk.feed(*waiting(f"later-{seconds}", seconds)).cycle(0)
        assert told(desk, "next")[-1].startswith("expected at 00:01:50 on n0")


def test_a_group_that_was_made_for_a_workload_is_told_of_by_the_name_of_that():
    desk = builders.Desk(policy())
    desk.feed(builders.node("n0", cpu="10", memory="1000Gi"))
    runs = builders.pod("train-x7k2p", "podgroup-u1", cpu="10", node="n0")
    runs["status"] = {"phase": "Running", "startTime": at(0)}
    made = builders.group("podgroup-u1", 1, annotations={"pumice.dev/estimate": "100s"})
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": "u1", "controller": True}
    made["metadata"]["ownerReferences"] = [owner]
    desk.feed(made, runs, *waiting("next", 1), *waiting("last", 2))
    desk.cycle(0)
    assert told(desk, "next")[-1].endswith("; waits for Job a/train (10 cpu, until 00:01:40 by its estimate)")
    desk.delete(runs).delete(made)
    desk.now += 30 * builders.SECOND
    desk.cycle(0)
    assert told(desk, "last")[-1].endswith("; moved from 00:02:30: Job a/train ended sooner than was expected")


def test_a_job_that_is_ended_in_time_goes_first_though_it_says_that_it_runs_longer():
    """Eight of ten cpu are taken for 100 s and ten are wanted; two cpu are free until then, and the Job of the last one ends it at 90 s."""
    found = {}
    for ends_by in (at(90), at(110)):
        desk = builders.Desk(policy())
        desk.feed(builders.node("n0", cpu="10", memory="1000Gi"))
        runs = builders.pod("runs-0", "runs", cpu="8", node="n0")
        runs["status"] = {"phase": "Running", "startTime": at(0)}
        desk.feed(builders.group("runs", 1, annotations={"pumice.dev/estimate": "100s"}), runs, *waiting("large", 1))
        notes = {"pumice.dev/estimate": "1h", "pumice.dev/ends-by": ends_by}
        small = builders.group("small", 1, annotations=notes), builders.pod("small-0", "small", cpu="2")
        small[0]["metadata"]["creationTimestamp"] = at(2)
        desk.feed(*small)
        desk.now = builders.NOW + 10 * builders.SECOND
        desk.cycle(0)
        found[ends_by] = [effect.name for effect in desk.world.effects if isinstance(effect, builders.Bind)]
    assert found == {at(90): ["small-0"], at(110): []}


def test_who_asks_is_told_what_would_bring_a_start_forward_though_the_forecast_stands():
    desk = builders.Desk(policy())
    desk.feed(builders.node("n0", cpu="10", memory="1000Gi"))
    runs = builders.pod("runs-0", "runs", cpu="10", node="n0")
    runs["status"] = {"phase": "Running", "startTime": at(0)}
    desk.feed(builders.group("runs", 1, annotations={"pumice.dev/estimate": "100s"}), runs)
    desk.feed(*waiting("first", 1), *waiting("second", 2))
    desk.now = builders.NOW + 10 * builders.SECOND
    desk.cycle(0)
    desk.now += builders.SECOND
    said = []
    for name in ("first", "second"):
        desk.scheduler.cycle(lambda explainer, name=name: said.append(str(explainer.job(f"a/{name}"))))
    assert "it starts sooner if a/runs ends before its estimate" in said[0]
    assert "it starts sooner if a/first ends before it is planned to" in said[1]


def test_what_the_page_shows_is_expected_by_a_scenario():
    root = Path(__file__).parents[2]
    shown = re.findall(r"\n\n```\n(.*?)\n```", (root / "docs" / "start-times.md").read_text(), re.DOTALL)
    pinned = "".join(path.read_text() for path in sorted((root / "scenarios" / "timeline").glob("*.yaml")))
    lines = [line for block in shown for line in block.splitlines()]
    assert len(lines) == 3
    for line in lines:
        assert line in pinned.replace("\\", "")
