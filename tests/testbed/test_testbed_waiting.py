"""Waiting ends with what was waited for, or says what there is to know."""

from __future__ import annotations

import asyncio

import pytest

from kube import virtual_loop
from testbed import waiting

ASKING = {
    "in a thread": waiting.until,
    "in a loop": lambda *given, **more: asyncio.run(waiting.soon(*given, **more)),
}


@pytest.mark.parametrize("asked", ASKING.values(), ids=ASKING)
def test_the_first_true_answer_is_given_at_any_time(asked, monkeypatch):
    monkeypatch.setattr(waiting, "PATIENCE", 0.0)
    assert asked(lambda: "at once", every=0) == "at once"
    monkeypatch.setattr(waiting, "PATIENCE", 60.0)
    answers = iter(["", None, 0, "at last", "too late"])
    assert asked(lambda: next(answers), every=0) == "at last"


@pytest.mark.parametrize("asked", ASKING.values(), ids=ASKING)
def test_what_never_comes_is_told_with_what_there_is_to_know(asked, monkeypatch):
    monkeypatch.setattr(waiting, "PATIENCE", 0.01)
    with pytest.raises(waiting.NeverError, match=r"^not within 0.01 s\nthe log\n"):
        asked(lambda: None, lambda: "the log\n", every=0.001)


def test_nobody_waits_for_one_who_has_ended_but_what_came_before_counts():
    left = ["last words"]
    assert waiting.until(lambda: left, ended=lambda: True) == left
    with pytest.raises(waiting.NeverError, match=r"^it has ended\nthe log"):
        waiting.until(lambda: None, lambda: "the log", ended=lambda: True)


def test_a_loop_is_patient_by_its_own_clock():
    async def ask():
        with pytest.raises(waiting.NeverError):
            await waiting.soon(lambda: False, every=1.0)
        return asyncio.get_running_loop().time()

    assert virtual_loop.run(ask()) == pytest.approx(waiting.PATIENCE + 1, abs=1)
