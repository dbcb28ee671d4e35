"""The six steps of a cycle, in the order in which docs/architecture.md describes them."""

from __future__ import annotations

import pytest

import builders
from pumice.framework.session import Session

STEPS = ["apply", "open", "decide", "publish", "rollback"]


def watched(desk, monkeypatch):
    """Write down which steps a desk's scheduler takes."""
    taken = []

    def watch(owner, name):
        original = getattr(owner, name)

        def step(*args, **options):
            taken.append(name)
            return original(*args, **options)

        monkeypatch.setattr(owner, name, step)

    for owner, name in (
        (desk.cache, "apply"),
        (desk.scheduler.engine, "open"),
        (desk.scheduler.engine, "decide"),
        (desk.cache, "publish"),
        (Session, "rollback"),
    ):
        watch(owner, name)
    return taken


def gang_at_a_desk():
    return builders.Desk().feed(builders.node("n1"), builders.group("g"), builders.pod("p", "g"))


def broken(*_args, **_options):
    raise ValueError("broken")


def test_a_cycle_takes_its_steps_in_order(monkeypatch):
    desk = gang_at_a_desk()
    taken = watched(desk, monkeypatch)
    desk.cycle()
    assert taken == STEPS
    assert desk.world.binds == {"p": "n1"}


def test_a_cycle_that_could_only_repeat_the_last_one_takes_in_what_came_and_ends(monkeypatch):
    desk = gang_at_a_desk()
    for _ in range(3):
        desk.cycle()
    taken = watched(desk, monkeypatch)
    assert desk.cycle().skipped
    assert taken == ["apply"]


def test_a_policy_that_cannot_be_opened_decides_nothing_and_is_tried_again(monkeypatch):
    desk = gang_at_a_desk()
    with monkeypatch.context() as patch:
        patch.setattr(desk.scheduler.engine, "open", broken)
        taken = watched(desk, patch)
        record = desk.cycle()
    assert taken == ["apply", "open"]
    assert any("opening broke down: ValueError: broken" in line for line in record.trace())
    assert [str(failure) for failure in desk.scheduler.failures] == ["broken"]
    desk.cycle()
    assert desk.world.binds == {"p": "n1"}


@pytest.mark.parametrize("step", ["decide", "publish"])
def test_whatever_breaks_what_was_only_held_is_undone_and_the_next_cycle_tries_again(step, monkeypatch):
    desk = gang_at_a_desk()
    with monkeypatch.context() as patch:
        patch.setattr(desk.cache if step == "publish" else desk.scheduler.engine, step, broken)
        taken = watched(desk, patch)
        desk.cycle()
    assert taken == [*STEPS[: STEPS.index(step) + 1], "rollback"]
    assert [str(failure) for failure in desk.scheduler.failures] == ["broken"]
    assert not desk.cycle().skipped
    assert desk.world.binds == {"p": "n1"}
