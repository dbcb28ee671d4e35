"""A recording is shown moment by moment as its scheduler saw it, and one that cannot be read says why."""

from __future__ import annotations

import msgspec
import pytest

from pumice.framework import registry
from pumice.recording import segments
from pumice.web import recordings, sources
from recording import recording_rig as rig
from tests.lives import scripts


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    folder = tmp_path_factory.mktemp("recording")
    rig.live(scripts.draw(3, cycles=12), folder, every=4)
    return folder


def shown(paths):
    return recordings.read(paths, registry.installed(), sources.Policy())


def rows(data):
    return msgspec.json.decode(data)["rows"]


def test_every_moment_is_what_its_scheduler_knew(recorded):
    paths = rig.files(recorded)
    board = shown(paths).board
    player = rig.Replay(paths, rig.KNOWN)
    moments = {}
    for step, _ in player.steps():
        player.play(step)
        cluster = player.scheduler.cache.cluster
        moments[step.now] = {name for name, each in cluster.nodes.by_name.items() if each.object is not None}
    assert len(moments) > 5
    for moment, nodes in moments.items():
        assert set(rows(board.at(moment).data())["nodes"]) == nodes


def test_segment_that_begins_with_a_state_shows_it(recorded):
    paths = rig.files(recorded)
    whole, last = shown(paths), shown(paths[-1:])
    assert len(paths) > 2
    assert rows(last.board.whole().data()) == rows(whole.board.whole().data())


def test_recording_that_is_cut_off_is_shown_as_far_as_it_goes_and_says_so(recorded, tmp_path):
    path = rig.files(recorded)[0]
    cut = tmp_path / path.name
    cut.write_bytes(path.read_bytes()[:-40])
    cluster = shown([cut])
    assert "is missing" in cluster.notes()[0]
    assert path.name in cluster.notes()[0]


def test_what_is_no_recording_is_refused(tmp_path):
    path = tmp_path / "recording-1-00000000-000001.jsonl.gz"
    path.write_bytes(b"nothing")
    with pytest.raises(segments.RecordingError, match="no recording"):
        shown([path])
