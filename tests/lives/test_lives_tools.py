"""What the search for wrong decisions rests on: the same seed is the same life, and a life that was told can be lived again."""

from __future__ import annotations

import pytest

from pumice.scenario import format as scenario_format
from pumice.scenario import runner
from tests.lives import decisions, files, scripts
from tests.lives.player import Player


def test_the_same_seed_is_the_same_life():
    assert decisions.of_seed(7) == decisions.of_seed(7)


@pytest.mark.parametrize("seed", [0, 1, 3])
def test_a_life_that_is_written_out_is_the_same_life(seed):
    life = Player(scripts.draw(seed)).play()
    assert decisions.lines(Player(life.written_out()).play()) == decisions.lines(life)


def test_a_life_is_a_scenario_that_can_be_run(tmp_path):
    written = tmp_path / "life.yaml"
    life = Player(scripts.draw(1)).play()
    written.write_text(files.write(life.written_out(), []), encoding="utf-8")
    [scenario] = scenario_format.load(written).scenarios
    result = runner.run(scenario)
    assert result.status == "passed"
    assert result.binds == sum(cycle.writes["binds"] for cycle in life.cycles)
