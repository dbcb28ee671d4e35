"""What a recording holds and what it does not, how large it grows, and what happens when it cannot be written."""

from __future__ import annotations

import errno
import gzip
import stat
import time

import msgspec
import pytest
import recording_rig as rig
from hypothesis import given
from hypothesis import strategies as st

from pumice.api import kinds
from pumice.cache import effects
from pumice.cache.options import Options
from pumice.recording import graph, graph_reading, lines, segments, writer, writing
from pumice.recording.recorder import Recorder
from pumice.recording.redaction import Redaction
from testbed import waiting

CONFIG = 'actions: "enqueue, allocate"\ntiers:\n- plugins: [{name: gang}, {name: predicates}]\n'
WORD = "hunter2-correct-horse"
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def _pod(name="p", secret=WORD):
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "a",
            "uid": f"uid-{name}",
            "annotations": {LAST_APPLIED: f'{{"password":"{secret}"}}'},
        },
        "spec": {
            "schedulerName": "volcano",
            "containers": [
                {
                    "name": "c",
                    "image": "x",
                    "env": [{"name": "PASSWORD", "value": secret}],
                    "args": [secret],
                    "resources": {"requests": {"cpu": "1m"}},
                }
            ],
        },
    }


def _text(folder):
    return b"".join(gzip.decompress(path.read_bytes()) for path in rig.files(folder))


def test_no_secret_of_a_pod_is_in_a_recording_neither_in_events_nor_answers_nor_states(tmp_path):
    stage = rig.stage(CONFIG, [_pod()], tmp_path, every=1)
    stage.decide()
    cache = stage.cache
    read = effects.Read(kind=kinds.POD, namespace="a", name="p", uid="uid-p")
    cache.world.send(read)
    cache.settled(effects.Outcome(effect=read, object=_pod()))
    stage.decide()
    stage.decide()
    stage.end()
    text = _text(tmp_path)
    assert b"uid-p" in text
    assert b'"state"' in text
    assert WORD.encode() not in text


def test_a_change_of_what_is_left_out_is_still_a_change():
    redaction, other = Redaction(), Redaction()
    one, two = redaction.checksum("a"), redaction.checksum("b")
    assert one != two
    assert one == redaction.checksum("a")
    assert one != other.checksum("a")  # nobody can look a text up without the key


@pytest.mark.parametrize(
    ("header", "said"),
    [
        ({"format": 2, "version": "9.9.9"}, "was recorded by pumice 9.9.9 in format 2; this version reads format 1"),
        ({"format": 2, "version": "9.9.9", "options": "another shape"}, "was recorded by pumice 9.9.9 in format 2"),
        ({"format": 1, "version": "9.9.9", "run": 3}, "no recording"),
    ],
)
def test_a_recording_of_another_format_is_refused_by_name(header, said, tmp_path):
    path = tmp_path / "x.jsonl.gz"
    base = {"is": "recording", "run": "r", "segment": 1, "options": {}}
    path.write_bytes(gzip.compress(msgspec.json.encode({**base, **header}) + b"\n"))
    with pytest.raises(segments.RecordingError, match=r"x\.jsonl\.gz") as refused:
        list(segments.Segment(path).lines())
    assert said in str(refused.value)


def test_a_run_of_another_version_is_read_from_its_start_and_its_states_are_refused_by_name(tmp_path):
    stage = rig.stage(CONFIG, [_pod()], tmp_path, every=1)
    stage.decide()
    stage.decide()
    stage.end()
    for path in rig.files(tmp_path):
        first, *rest = gzip.decompress(path.read_bytes()).splitlines()
        head = msgspec.json.decode(first)
        path.write_bytes(gzip.compress(b"\n".join([msgspec.json.encode({**head, "version": "0.0.1"}), *rest]) + b"\n"))
    paths = rig.files(tmp_path)
    assert rig.replay(paths)[2] is None
    with pytest.raises(segments.RecordingError, match=r"use pumice 0\.0\.1"):
        rig.replay(paths[1:])


def test_a_run_with_a_plugin_that_asks_somebody_is_refused_and_nobody_is_asked(tmp_path):
    listed = "  - {name: extender, arguments: {extender.urlPrefix: 'http://127.0.0.1:1', extender.predicateVerb: p}}"
    stage = rig.stage(f'actions: "allocate"\ntiers:\n- plugins:\n  - name: predicates\n{listed}\n', [_pod()], tmp_path)
    stage.decide()
    stage.end()
    with pytest.raises(segments.RecordingError, match="lists plugin extender on line 5, which asks somebody"):
        rig.replay(rig.files(tmp_path))


def test_recordings_are_for_their_owner_alone(tmp_path):
    stage = rig.stage(CONFIG, [], tmp_path / "new")
    stage.decide()
    stage.end()
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in rig.files(tmp_path / "new")} == {0o600}


def test_a_recording_stays_within_its_limit_and_what_is_left_can_be_replayed(tmp_path, monkeypatch):
    monkeypatch.setattr(writer, "PAUSE", 0.0)
    limit = 80_000
    strange = tmp_path / "notes.txt"
    strange.write_text("not ours")
    stage = rig.stage(CONFIG, [], tmp_path, limit=limit)
    told = stage.recorders[0].writer
    largest = 0
    for number in range(150):
        stage.apply([_pod(f"p{number}-{i}", secret=str(i)) for i in range(3)])
        stage.delete([f"pod/a/p{number - 1}-{i}" for i in range(3)])
        stage.decide()
        stage.wait()
        _written(told)
        largest = max(largest, sum(path.stat().st_size for path in rig.files(tmp_path)))
    stage.end()
    paths = rig.files(tmp_path)
    assert paths[0].name.endswith("-000001.jsonl.gz") is False  # the first have gone
    assert len(paths) > 2
    assert largest <= limit
    assert strange.exists()
    for path in paths:
        _, _, difference = rig.replay([path])
        assert difference is None


def test_a_folder_that_cannot_be_written_costs_the_recording_alone_and_is_told_once(tmp_path):
    place = tmp_path / "file"
    place.write_text("in the way")
    told = []
    stage = rig.stage(CONFIG, [_node()], place, tell=lambda *words: told.append(words))
    stage.apply([_pod()])
    for _ in range(10):
        stage.decide()
        stage.wait()
    _written(stage.recorders[0].writer)
    stage.decide()
    stage.end()
    assert stage.writes()["binds"] == 1
    assert [what for what, _ in told] == ["recording fails, scheduling goes on"]
    assert stage.recorders[0].writer.dropped == 11


def test_after_a_full_disk_the_recording_goes_on_with_a_new_segment(tmp_path, monkeypatch):
    monkeypatch.setattr(writer, "RETRY", 0.0)
    plain, full = segments.SegmentFile.write, [False]

    def write(self, data):
        if full[0]:
            raise OSError(errno.ENOSPC, "No space left on device")
        plain(self, data)

    monkeypatch.setattr(segments.SegmentFile, "write", write)
    told = []
    stage = rig.stage(CONFIG, [_node()], tmp_path, tell=lambda *words: told.append(words))
    recorded = stage.recorders[0].writer
    for number, is_full in enumerate([False, False, True, True, False, False, False]):
        full[0] = is_full
        stage.apply([_pod(f"p{number}")])
        stage.decide()
        stage.wait()
        _written(recorded, works=not is_full)
    stage.end()
    assert [what for what, _ in told] == ["recording fails, scheduling goes on", "recording again"]
    assert "No space left on device" in told[0][1]
    assert recorded.dropped >= 2
    first, *_, last = rig.files(tmp_path)
    assert first != last
    for path in (first, last):
        _, played, difference = rig.replay([path])
        assert difference is None
        assert played


def test_what_cannot_be_written_down_ends_the_recording_and_nothing_else(tmp_path):
    told = []
    stage = rig.stage(CONFIG, [_node()], tmp_path, tell=lambda *words: told.append(words))
    stage.decide()
    stage.cache.cluster.strange = lambda: None  # no data
    stage.recorders[0].rotate()
    stage.apply([_pod()])
    for _ in range(5):
        stage.decide()
        stage.wait()
        _written(stage.recorders[0].writer)
    stage.end()
    assert stage.writes()["binds"] == 1
    assert len(told) == 1
    assert "builtins.function is no class that a state may hold" in told[0][1]
    assert stage.recorders[0].writer.dropped > 0
    assert rig.replay(rig.files(tmp_path)[:1])[2] is None


def test_what_waits_to_be_written_is_bounded(tmp_path, monkeypatch):
    monkeypatch.setattr(writer, "MOST_WAITING", 40)
    monkeypatch.setattr(writer.Writer, "start", lambda self: None)  # a disk that never answers
    recorder = Recorder(tmp_path, rig.LIMIT, Options())
    stage = rig.stage(CONFIG, [], tmp_path)
    stage.recorders[0].writer.put(writing.Taken(0))
    for number in range(30):
        stage.apply([_pod(f"p{number}")])
        stage.decide()
        stage.wait()
    assert stage.recorders[0].writer.waiting < 60
    assert stage.recorders[0].writer.dropped > 0
    recorder.writer.end(1.0)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers(-(2**62), 2**62) | st.floats(allow_nan=False) | st.text() | st.binary(),
        lambda inner: st.lists(inner) | st.lists(inner).map(tuple) | st.dictionaries(st.text() | st.integers(), inner),
        max_leaves=20,
    )
)
def test_a_graph_of_plain_data_comes_back_as_it_was(root):
    table = graph.capture([root, root], graph.Rules({}, {})).table()
    read = msgspec.json.decode(msgspec.json.encode(table), type=graph.Table)
    one, two = graph_reading.Reader(read).root()
    assert rig.differences(root, one) == []
    assert one is two or one == two


def test_the_names_of_segments_sort_by_time(tmp_path):
    names = [segments.name(9, "ffffffff", 2), segments.name(10, "00000000", 1), segments.name(10, "00000000", 12)]
    for each in reversed(names):
        (tmp_path / each).touch()
    (tmp_path / "recording-x.jsonl.gz").touch()
    assert [path.name for path in segments.listed(tmp_path)] == names


def test_a_header_says_who_recorded_and_under_which_flags():
    options = Options(scheduler_name=("a", "b"), node_selector=("zone:x",))
    line = lines.Header(format=1, version="1", run="r", segment=1, options=options, member="s-0", members=2)
    assert lines.decode(writing.encode(line)) == line


def _node():
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "n"},
        "status": {"allocatable": {"cpu": "4", "memory": "8Gi"}},
    }


def _written(thread, *, works=False):
    """Wait until all that was handed over is written or let go, and, where that works, until it is known that it does."""
    deadline = time.monotonic() + waiting.PATIENCE
    while (thread.waiting or (works and not thread.may_begin)) and time.monotonic() < deadline:
        time.sleep(0.01)
    time.sleep(0)
