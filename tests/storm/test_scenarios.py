"""A life as a scenario."""

from __future__ import annotations

import json

from pumice.scenario import format as scenario_format
from pumice.scenario import runner
from tests.storm import objects, scenarios

TEXT = "125.000: a/j0-00000000-0000-4000-8000-0000000000ce: 2 of [1000, 2000] milli wait though [8000] are free"


def request(method, path, body=None):
    return f"{method} {path} HTTP/1.1\r\nHost: storm\r\n\r\n".encode() + (json.dumps(body).encode() if body else b"")


def test_what_people_wrote_and_who_should_have_had_room_is_a_scenario_that_runs(tmp_path):
    diary = scenarios.Diary()
    jobs = "/apis/batch.volcano.sh/v1alpha1/namespaces/a/jobs"
    conf = "/api/v1/namespaces/kube-system/configmaps/pumice"
    diary.sent(4.5, request("POST", jobs, objects.job("j0", [(2, 1, 1000)], 2)))
    diary.sent(5.0, request("GET", jobs))
    diary.sent(8.0, request("PATCH", conf, {"data": {"x": objects.BAD[1]}}))
    diary.sent(9.0, request("PATCH", conf, {"data": {"x": objects.GOOD[2]}}))
    diary.sent(9.5, request("PATCH", "/api/v1/nodes/n0", {"spec": {"unschedulable": False}}))
    diary.sent(10.0, request("DELETE", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/jobs"))
    diary.sent(10.0, request("POST", jobs, objects.job("j1", [(1, 1, 3)], 1)))
    diary.sent(12.0, request("DELETE", f"{jobs}/j1?propagationPolicy=Background"))
    text = scenarios.written(7, "fits", TEXT, [objects.node("n0", 4)], diary.entries)
    file = tmp_path / "found.yaml"
    file.write_text(text)
    loaded = scenario_format.load(file)
    assert loaded.problems == ()
    (scenario,) = loaded.scenarios
    result = runner.run(scenario)
    assert (result.failures, result.status) == ([], "passed")


def test_what_a_scenario_cannot_say_is_none():
    assert scenarios.written(7, "lease", "30.0: sched-a#1 sends PATCH", [], []) is None
