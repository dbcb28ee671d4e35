"""What the log is told about the watches."""

from __future__ import annotations

import asyncio

import pytest
from server_desk import Lines

from pumice.api import kinds
from pumice.kube.watches.informers import WatchReport
from pumice.server.health import api_silence
from pumice.server.logs import watch_log


def watch(name, state="watching", error="", *, synced=True, kind=kinds.POD):
    return WatchReport(
        watch=name,
        kind=kind,
        state=state,
        synced=synced,
        objects=1,
        version="1",
        last_heard_age=None,
        lists=1,
        errors=1,
        error=error,
    )


class Informers:
    """Reports as told, look by look, and then ends the test."""

    def __init__(self, looks):
        self._looks = iter(looks)

    def report(self):
        try:
            return next(self._looks)
        except StopIteration:
            raise EOFError from None


def told(monkeypatch, *looks):
    monkeypatch.setattr(watch_log, "LOOK", 0)
    lines = Lines()
    with pytest.raises(EOFError):
        asyncio.run(watch_log.keep(Informers(looks), lines.log))
    return lines.all


UP, DOWN = [watch("nodes"), watch("pods")], [watch("nodes", "waiting", "nodes: refused"), watch("pods")]


def test_an_interruption_is_told_once_when_it_lasts_and_so_is_its_end(monkeypatch):
    lines = told(monkeypatch, UP, DOWN, DOWN, DOWN, UP, UP)
    assert [line["msg"] for line in lines] == ["watches are interrupted", "watches are back"]
    assert (lines[0]["down"], lines[0]["of"], lines[0]["errors"]) == (1, 2, "nodes: refused")


def test_a_short_gap_and_a_kind_that_is_not_served_are_not_worth_a_line(monkeypatch):
    absent = [watch("nodes"), watch("pods", "absent", "pods: not found")]
    assert told(monkeypatch, UP, DOWN, UP, DOWN, UP, absent, absent) == []


def test_that_kubernetes_own_gangs_are_not_served_is_told_once_and_again_when_they_are(monkeypatch):
    def groups(state):
        return [*UP, watch("podgroups.scheduling.k8s.io", state, kind=kinds.NATIVE_POD_GROUP)]

    lines = told(monkeypatch, groups("absent"), groups("absent"), groups("listing"), groups("watching"))
    assert [line["msg"] for line in lines] == ["a kind is not served", "a kind is served now"]
    assert {line["kind"] for line in lines} == {"podgroups.scheduling.k8s.io"}
    assert "GenericWorkload" in lines[0]["so"]


def test_kinds_that_are_not_served_are_counted_neither_as_down_nor_among_all(monkeypatch):
    absent = watch("queues", "absent", "queues: not found")
    lines = told(monkeypatch, [*DOWN, absent], [*DOWN, absent], [*UP, absent])
    assert [(line["msg"], line["of"]) for line in lines] == [("watches are interrupted", 2), ("watches are back", 2)]
    assert lines[0]["down"] == len(api_silence.down([*DOWN, absent])) == 1


def test_an_interruption_that_moves_from_watch_to_watch_is_one(monkeypatch):
    other = [watch("nodes"), watch("pods", "listing", "pods: refused")]
    assert [line["msg"] for line in told(monkeypatch, DOWN, DOWN, other, DOWN, UP)] == [
        "watches are interrupted",
        "watches are back",
    ]


def test_of_many_errors_a_few_are_written_out(monkeypatch):
    missing = [watch(f"w{n}", "forbidden", f"w{n}: forbidden", synced=False) for n in range(6)]
    (line,) = told(monkeypatch, missing)
    assert line["missing"] == "w0; w1; w2; w3; w4; w5"
    assert line["errors"] == "w0: forbidden; w1: forbidden; w2: forbidden; 3 more"
