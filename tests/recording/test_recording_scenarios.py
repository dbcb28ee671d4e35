"""Scenarios of every folder, recorded with states every few cycles, are replayed bit for bit: whatever a cluster may hold can be written down."""

from __future__ import annotations

from pathlib import Path

import pytest
import recording_rig as rig

from pumice.cache.cache import Cache
from pumice.recording import segments, telling
from pumice.recording.recorder import Recorder
from pumice.scenario import format as scenario_format
from pumice.scenario import runner, stage, suite
from pumice.scheduler import Scheduler
from tests.lives.stage import KNOWN

ROOT = Path(__file__).parents[2]
FOLDERS = sorted(path for path in (ROOT / "scenarios").iterdir() if path.is_dir())
TAKEN = 2  # of each folder
ALL = frozenset({"timeline"})  # what is planned is in no state: it has to be worked out again the same


class RecordedScenario(stage.SimulatedStage):
    """A stage whose scheduler is recorded, with a new segment after every second cycle."""

    folder = Path()
    told: list = []  # noqa: RUF012  one for each test

    def __init__(self, settings, options, known, **more):
        super().__init__(settings, options, known, **more)
        self.recorder = Recorder(self.folder, rig.LIMIT, options, tell=lambda *words: self.told.append(words))
        self.cache = Cache(self.recorder.join(self._cluster), options)
        self.cache.inputs = self.recorder
        self.scheduler = Scheduler(self.cache, settings, self._cluster.clock.now, known=known)
        self.recorder.follow(self.scheduler)

    def cycle(self, period):
        super().cycle(period)
        if self.scheduler.cycles % 2 == 0:
            self.recorder.rotate()


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_scenarios_are_replayed_from_each_of_their_segments(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(stage, "SimulatedStage", RecordedScenario)
    found = [each for each in suite.collect([str(folder)]) if not isinstance(each, scenario_format.ScenarioFile)]
    taken = len(found) if folder.name in ALL else TAKEN
    for number, scenario in enumerate(found[:: max(1, len(found) // taken)][:taken]):
        place = tmp_path / str(number)
        monkeypatch.setattr(RecordedScenario, "folder", place)
        monkeypatch.setattr(RecordedScenario, "told", [])
        made = []

        def build(given, made=made):
            made.append(stage.build(given, KNOWN))
            return made[-1]

        runner.run(scenario, build)
        for each in made:
            each.recorder.close()
        assert RecordedScenario.told == []
        paths = rig.files(place)
        if any(not KNOWN.plugins[plugin.name].pure for plugin in made[-1].scheduler.configuration.plugins):
            with pytest.raises(segments.RecordingError, match="whose answers are in no recording"):
                rig.replay(paths)
            continue
        for chosen in (paths, *([path] for path in paths)):
            _, _, difference = rig.replay(chosen)
            assert difference is None, (scenario.name, telling.difference(difference))
