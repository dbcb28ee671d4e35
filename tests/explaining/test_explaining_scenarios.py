"""Whatever a scenario plays can be explained, and plays on as if nobody had asked."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from pumice.framework import explaining
from pumice.scenario import stage, suite

ROOT = Path(__file__).parents[2]


def ask_about_everything(self, explainer):
    cluster = explainer.session.cluster
    answers = [
        *map(explainer.job, sorted(cluster.jobs)),
        *map(explainer.queue, sorted(cluster.queues)),
        *map(explainer.node, sorted(cluster.nodes.by_name)[:5]),
        *map(explainer.pod, sorted(task.key for task in cluster.tasks.values())[:5]),
    ]
    for each in answers:
        assert explaining.text(each)
        assert msgspec.json.decode(msgspec.json.encode(each), type=type(each)) == each
    self._explanations = {
        each.job: "\n".join(explaining.text(each)) for each in answers if isinstance(each, explaining.JobExplanation)
    }


@pytest.mark.parametrize("folder", ["best-effort", "capacity", "topology"])
def test_scenarios_pass_though_everything_is_explained_in_every_cycle(folder, monkeypatch):
    asked = []
    everybody = property(lambda _: ("*/*",), lambda _, groups: asked.append(groups))
    monkeypatch.setattr(stage.SimulatedStage, "explained", everybody, raising=False)
    monkeypatch.setattr(stage.SimulatedStage, "_ask", lambda *both: asked.append(ask_about_everything(*both)))
    found = list(suite.run(suite.collect([str(ROOT / "scenarios" / folder)])))
    assert asked.count(None) >= len(found) > 5
    assert [result.failures for result in found if result.mismatches] == []
