"""What is told of a plan, and of those who were considered in vain."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from pumice.actions.eviction import telling, votes
from pumice.framework.runs import Step
from pumice.model.statuses import Status

# ---- what is told


@pytest.mark.parametrize(
    ("count", "text"), [(telling.NAMED, ""), (telling.NAMED + 1, " and 1 more"), (telling.NAMED + 5, " and 5 more")]
)
@pytest.mark.parametrize("domain", [None, "rack"])
def test_a_plan_is_told_with_its_victims_its_number_and_how_long_room_is_held(count, text, domain):
    victims = [SimpleNamespace(key=f"a/v{i}") for i in range(count)]
    runs = [SimpleNamespace(step=step, reason="preempt", why="") for step in (Step.EVICT, Step.PIPELINE)]
    plan = SimpleNamespace(
        session=SimpleNamespace(record=SimpleNamespace(next_plan=lambda: 7)),
        rules=SimpleNamespace(plugins=["priority", "gang"], hold_for=62_000_000),
        statement=SimpleNamespace(runs=runs),
        claimant=SimpleNamespace(key="a/asks-0"),
        job=SimpleNamespace(key="a/asks", queue="q"),
        victims=victims,
        members=[1, 2],
        domain=None if domain is None else SimpleNamespace(name=domain),
        with_bounds=lambda said: f"{said} (bounds)",
    )
    named = ", ".join(task.key for task in victims[: telling.NAMED])
    where = " in rack" if domain else ""
    assert telling.number(plan) == (
        f"{count} pods are evicted for 2 members{where}: {named}{text}; plan 7 by the rules of priority, gang, for a/asks-0 first; "
        "the room is held for 62 s after they are gone (bounds)"
    )
    assert [each.why for each in runs] == [
        "preempt for pod a/asks-0 of group a/asks in queue q by the rules of priority, gang, plan 7",
        "",
    ]


# ---- who was considered


def considered(jobs, *, offered=99, best_effort=False, monkeypatch):
    """Jobs by key: how many of their pods wait, and the pods, each with what keeps it."""
    made = []
    for key, (waiting, pods) in jobs.items():
        tasks = {}
        for i, reason in [*enumerate(pods)][::-1]:
            name = f"{key}{i}"
            status = Status.PENDING if reason == "waits" else Status.RUNNING
            tasks[name] = SimpleNamespace(
                name=name, key=f"a/{name}", status=status, reason=reason, best_effort=reason == "modest"
            )
        made.append(SimpleNamespace(key=key, tasks=tasks, pending=range(waiting)))
    asked = []

    def ask(_rules, _claimant, tasks):
        asked.append([task.name for task in tasks])
        return tasks[:offered]

    monkeypatch.setattr(votes, "ask", ask)
    rules = SimpleNamespace(
        sources=lambda _: made[::-1],
        statuses={Status.RUNNING},
        plugins=["gang"],
        in_order=lambda _, tasks: tasks,
        concerns=lambda _, task: task.reason != "of no concern",
        protection=lambda _, task: None if task.reason in {None, "modest"} else f"{task.key} is {task.reason}",
    )
    return telling.considered(rules, SimpleNamespace(best_effort=best_effort)), asked


@pytest.mark.parametrize(
    ("jobs", "more", "text"),
    [
        ({}, {}, "nobody runs whom it could ask for"),
        ({"b": (1, [None])}, {}, "nobody runs whom it could ask for"),
        ({"b": (0, ["waits", "of no concern"])}, {}, "nobody runs whom it could ask for"),
        ({"b": (0, [None])}, {}, "of 1 pods considered: 1 offered, but of no help"),
        (
            {"b": (1, [None, None, None])},
            {"offered": 1},
            "of 3 pods considered: 2 refused by the rules of gang; 1 offered, but of no help",
        ),
        (
            {"b": (0, ["kept", "kept"]), "c": (0, ["loved", None])},
            {"offered": 0},
            "of 4 pods considered: 2 the pod is kept; 1 the pod is loved; 1 refused by the rules of gang",
        ),
        (
            {"b": (0, [None, "modest", "modest"])},
            {"best_effort": True},
            "of 3 pods considered: 2 offered, but of no help; 1 with requests, for a pod without",
        ),
        (
            {"b": (0, list("vwxyz"))},
            {},
            "of 5 pods considered: " + "; ".join(f"1 the pod is {each}" for each in "vwxyz"),
        ),
        (
            {"b": (0, list("uvwxyz"))},
            {},
            "of 6 pods considered: " + "; ".join(f"1 the pod is {each}" for each in "uvwxy") + "; and 1 more reasons",
        ),
    ],
)
def test_who_was_considered_is_told_by_what_refused_them_the_most_frequent_first(jobs, more, text, monkeypatch):
    assert considered(jobs, monkeypatch=monkeypatch, **more)[0] == text


@pytest.mark.parametrize(("count", "text"), [(2, "of 2 pods"), (3, "of the first 2 pods")])
def test_of_many_the_first_by_name_are_looked_at_and_that_is_told(count, text, monkeypatch):
    monkeypatch.setattr(telling, "LOOKED_AT", 2)
    found, asked = considered({"b": (0, [None] * (count - 1)), "a": (0, [None])}, monkeypatch=monkeypatch)
    assert found.startswith(f"{text} considered: 2 ")
    assert asked == [["a0", "b0"]]
    assert considered({"a": (0, [None] * count)}, monkeypatch=monkeypatch)[1] == [["a0", "a1"]]
