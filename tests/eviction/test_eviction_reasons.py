"""Why nobody goes for a job, in depth: everybody whom an action could think of, in groups by the first thing that keeps them."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from builders import Desk, group, metadata, node, pod, priority_class, queue
from pumice.actions.eviction import candidate_reasons, gang_rules, rules
from pumice.framework.plugin import Plugin

CONFIG = """
actions: "preempt, reclaim"
tiers:
- plugins: %s
- plugins: [{name: predicates}]
"""
USUAL = CONFIG % "[{name: priority}, {name: gang}, {name: conformance}, {name: pdb}]"
NO = {"volcano.sh/preemptable": "false"}


class Fussy(Plugin):
    """Gives nobody away whose name begins like that, and breaks down about others."""

    name = "fussy"
    points = frozenset({"Preemptable"})

    def open(self, session):
        def given(_claimant, tasks):
            if any(task.name.startswith("frail") for task in tasks) and len(tasks) == 1:
                raise ValueError("as the test says")
            return [task for task in tasks if not task.name.startswith(("kept", "frail"))]

        session.preemptable.add(given)


class Silent(Plugin):
    """Has no opinion about anybody."""

    name = "silent"
    points = frozenset({"Preemptable"})

    def open(self, session):
        session.preemptable.add(lambda _claimant, _tasks: None)


class Once(Plugin):
    """Gives anybody away who is asked about alone, of several only the last."""

    name = "once"
    points = frozenset({"Preemptable"})

    def open(self, session):
        session.preemptable.add(lambda _claimant, tasks: list(tasks)[-1:])


def budget():
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {**metadata("b", "a"), "resourceVersion": "1"},
        "spec": {"selector": {"matchLabels": {"app": "x"}}},
        "status": {"disruptionsAllowed": 0},
    }


def scene(text, jobs, *plugins, asks=({"cpu": "1"},), rank="mid"):
    """Jobs by name: their queue, minimum, priority, and pods."""
    desk = Desk(text, *plugins, queues=("root", "default", "q", "closed")).feed(node("m", "64"), budget())
    desk.modify(queue("closed", reclaimable=False))
    desk.feed(
        *(
            priority_class(name, value)
            for name, value in (("low", 1), ("mid", 5), ("high", 9), ("system-node-critical", 3))
        )
    )
    for name, (owner, least, weight, pods) in jobs.items():
        desk.feed(group(name, least, queue=owner, phase="Running", priorityClassName=weight))
        desk.feed(*(pod(f"{name}-{i}", name, **{"cpu": "1", "node": "m", **spec}) for i, spec in enumerate(pods)))
    desk.feed(group("asks", 1, queue="default", phase="Inqueue", priorityClassName=rank))
    desk.feed(*(pod(f"asks-{i}", "asks", **spec) for i, spec in enumerate(asks)), pod("own", "asks", cpu="1", node="m"))
    return desk, desk.session()


def told(found):
    return [(each.reason, each.count, each.first, each.offered) for each in found.groups]


OWN = {
    "a": ("default", 0, "low", [{}, {}, {"annotations": NO}]),
    "b": ("default", 2, "low", [{}, {}]),
    "c": ("default", 0, "mid", [{}, {}, {}]),
    "d": ("default", 0, "high", [{}]),
    "e": ("default", 0, "low", [{"labels": {"app": "x"}}, {"priorityClassName": "system-node-critical"}]),
    "f": ("default", 0, "low", [{"node": ""}, {"deleting": 1}]),
    "g": ("q", 0, "low", [{}]),
    "h": ("closed", 0, "low", [{}, {}]),
}


def test_whoever_is_in_the_queue_is_told_by_what_keeps_it_the_largest_group_first_and_those_of_no_help_last():
    desk, session = scene(USUAL, OWN)
    found = candidate_reasons.verdict(rules.Preempt(session), desk.task("asks-0").job)
    assert (found.action, found.candidates, found.unseen) == ("preempt", 11, 0)
    groups = told(found)
    assert groups[:2] == [("of equal priority", 3, "a/c-0", False), ("needed by their gang", 2, "a/b-0", False)]
    assert groups[-1] == (candidate_reasons.OF_NO_HELP, 2, "a/a-0", True)
    rest = {reason: (count, first) for reason, count, first, _ in groups[2:-1]}
    assert [reason for reason, *_ in groups[2:-1]] == sorted(rest)
    critical = next(reason for reason in rest if "critical" in reason)
    assert rest == {
        "marked as not preemptable": (1, "a/a-2"),
        "more important": (1, "a/d-0"),
        "protected by PodDisruptionBudget a/b": (1, "a/e-0"),
        critical: (1, "a/e-1"),
    }
    assert "e-1" not in critical


def test_of_other_queues_those_are_told_that_may_be_reclaimed_from_and_those_that_may_not():
    desk, session = scene(USUAL, OWN)
    found = candidate_reasons.verdict(rules.Reclaim(session), desk.task("asks-0").job)
    assert told(found) == [
        ("queue closed is not reclaimable", 2, "a/h-0", False),
        (candidate_reasons.OF_NO_HELP, 1, "a/g-0", True),
    ]


def test_gang_forms_look_at_lower_priorities_alone():
    desk, session = scene(USUAL, {name: OWN[name] for name in "acd"})
    found = candidate_reasons.verdict(gang_rules.GangPreempt(session), desk.task("asks-0").job)
    assert told(found) == [
        ("of equal priority", 3, "a/c-0", False),
        ("marked as not preemptable", 1, "a/a-2", False),
        ("of higher priority", 1, "a/d-0", False),
        (candidate_reasons.OF_NO_HELP, 2, "a/a-0", True),
    ]


@pytest.mark.parametrize(
    ("asks", "reason"),
    [
        (({}, {}), "with requests, for a pod without"),
        (({}, {"cpu": "1"}), candidate_reasons.OF_NO_HELP),  # the one with requests stands for both
        (({"cpu": "1"}, {}), candidate_reasons.OF_NO_HELP),
    ],
)
def test_the_first_member_with_requests_stands_for_a_job(asks, reason):
    jobs = {"a": ("default", 0, "low", [{}]), "modest": ("default", 0, "low", [{"cpu": None}])}
    desk, session = scene(USUAL, jobs, asks=asks)
    groups = told(candidate_reasons.verdict(rules.Preempt(session), desk.task("asks-0").job))
    first = next(first for each, _, first, _ in groups if each == reason)
    assert first == "a/a-0"
    helpless = next(count for text, count, *_ in groups if text == candidate_reasons.OF_NO_HELP)
    assert helpless == (1 if reason.startswith("with") else 2)


def test_of_a_job_that_asks_for_nothing_nothing_is_said():
    desk, session = scene(USUAL, {}, asks=())
    assert candidate_reasons.verdict(rules.Preempt(session), desk.task("own").job) is None


def test_pods_whose_eviction_was_refused_are_told_so():
    desk, session = scene(USUAL, {"a": ("default", 0, "low", [{}, {}])})
    desk.task("a-0").eviction_refused = session.started
    found = candidate_reasons.verdict(rules.Preempt(session), desk.task("asks-0").job)
    assert told(found) == [
        (candidate_reasons.REFUSED, 1, "a/a-0", False),
        (candidate_reasons.OF_NO_HELP, 1, "a/a-1", True),
    ]


def test_how_many_were_not_looked_at_is_told(monkeypatch):
    monkeypatch.setattr(candidate_reasons, "LOOKED_AT", 2)
    desk, session = scene(USUAL, {"a": ("default", 0, "low", [{}] * 5)})
    found = candidate_reasons.verdict(rules.Preempt(session), desk.task("asks-0").job)
    assert (found.candidates, found.unseen) == (2, 3)
    assert told(found) == [(candidate_reasons.OF_NO_HELP, 2, "a/a-0", True)]


@pytest.mark.parametrize(
    ("plugins", "jobs", "groups"),
    [
        (
            "[{name: fussy}]",
            {"kept": ("default", 0, "low", [{}]), "frail": ("default", 0, "low", [{}])},
            [("kept by the rules of fussy", 2, "a/frail-0", False)],
        ),
        (
            "[{name: fussy}, {name: gang}]",
            {"kept": ("default", 1, "low", [{}])},
            [("kept by the rules of fussy, gang", 1, "a/kept-0", False)],
        ),
        (
            "[{name: silent}, {name: gang}]",
            {"a": ("default", 1, "low", [{}])},
            [("needed by their gang", 1, "a/a-0", False)],
        ),
        (
            "[{name: once}]",
            {"a": ("default", 0, "low", [{}, {}])},
            [
                ("kept by the rules of once once others are gone", 1, "a/a-1", False),
                (candidate_reasons.OF_NO_HELP, 1, "a/a-0", True),
            ],
        ),
        (
            "[{name: priority}]",
            {"a": ("default", 0, "mid", [{}]), "b": ("default", 0, "low", [{}])},
            [("of equal priority", 1, "a/a-0", False), (candidate_reasons.OF_NO_HELP, 1, "a/b-0", True)],
        ),
    ],
)
@pytest.mark.retreats
def test_whoever_is_not_offered_is_told_by_whose_rule(plugins, jobs, groups):
    desk, session = scene(CONFIG % plugins, jobs, Fussy, Silent, Once)
    assert told(candidate_reasons.verdict(rules.Preempt(session), desk.task("asks-0").job)) == groups


def test_a_job_that_is_gone_and_a_claimant_of_no_job_are_nobody():
    desk, session = scene(USUAL, {"a": ("default", 0, "low", [{}])})
    job = desk.task("asks-0").job
    desk.cluster.queues["default"].jobs["a/gone"] = None
    assert candidate_reasons.verdict(rules.Preempt(session), job).candidates == 1
    lost = SimpleNamespace(pending={"u": SimpleNamespace(name="u", best_effort=False, job=None)})
    made = rules.Reclaim(session)
    assert candidate_reasons.verdict(made, lost).candidates == 2
