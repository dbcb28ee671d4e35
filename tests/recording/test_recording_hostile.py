"""A recording from somebody else can be opened: nothing in it is run, and what makes no sense is refused with its place, in bounded time and memory."""

from __future__ import annotations

import gzip
import tempfile
import tracemalloc
import zlib

import msgspec
import pytest
import recording_rig as rig
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from pumice.cli.program import program
from pumice.recording import classes, graph_reading, segments
from pumice.recording.classes import Layout
from pumice.recording.graph import Column, Group, Table
from tests import mutations
from tests.lives import scripts

ELSEWHERE = [
    ("pumice.framework.registration", "inspect.importlib.resources._common.tempfile.TemporaryDirectory"),
    ("pumice.model.attributes", "np._core._internal.ctypes.CDLL"),
    ("pumice.framework.registry", "metadata.zipfile.ZipFile"),
    ("pumice.framework.breakdowns", "pathlib.Path"),
]
TASK = Layout("pumice.model.records", "Task", ("name",))
HYPER = 2**50


def _read(layouts, groups):
    table = msgspec.json.decode(msgspec.json.encode(Table(layouts, groups)), type=Table)
    reader = graph_reading.Reader(table)
    return reader, reader.root()


@pytest.mark.parametrize("code", ["e", "w", "o", "D"])
@pytest.mark.parametrize(("module", "name"), ELSEWHERE)
def test_no_state_can_call_what_a_module_of_the_project_merely_imports(code, module, name, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    kept = []
    columns = {"o": [], "D": [Column(values=[]), Column(values=[])]}.get(code, [Column(values=["x"])])
    group = Group(code, 1, 0, columns, [0] if code == "D" else None)
    with pytest.raises(classes.StateError, match="no class that a state may hold"):
        kept.append(_read([Layout(module, name, ())], [group]))
    assert list(tmp_path.iterdir()) == []


def _list(*numbers):
    return Group("l", 1, -1, [Column(objects=list(numbers))], [len(numbers)])


def _leaf(code, *values, layout=-1):
    return Group(code, len(values), layout, [Column(values=list(values))])


def _nested(code, depth):
    """Give containers each of which holds the next."""
    return [_list(1), *(Group(code, 1, -1, [Column(objects=[n + 2])], [1]) for n in range(depth)), _leaf("v", 1)]


def _doubled(depth):
    """Give a set with one key, a tuple that holds the next twice, and so on: 2 to the power of `depth` parts to hash."""
    pairs = [Group("t", 1, -1, [Column(objects=[n + 2, n + 2])], [2]) for n in range(depth)]
    return [Group("s", 1, -1, [Column(objects=[1])], [1]), *pairs, _leaf("v", 1)]


BAD_TABLES = {
    "no root": ([], [], "0 objects"),
    "an unknown code": ([], [Group("ol", 1, -1, [Column(values=[1])])], "nobody knows what 'ol' is"),
    "more objects than anybody refers to": ([TASK], [Group("l", HYPER, -1, [Column(values=[])], [])], "objects"),
    "a count without text": ([Layout("pumice.model.records", "Task", ())], [Group("o", 10**9, 0, [])], "nobody knows"),
    "a count below 0": ([], [Group("v", -1, -1, [Column(values=[])])], "group 0: it has -1 objects"),
    "a size below 0": ([], [Group("l", 2, -1, [Column(values=[1])], [2, -1])], "group 0"),
    "sizes that do not fit": ([], [Group("l", 1, -1, [Column(values=[1])], [HYPER])], "in the place of"),
    "a reference to nobody": ([], [_list(5)], "outside of 0 to 0"),
    "a reference below 0": ([], [_list(-1)], "outside of 0 to 0"),
    "no class": ([], [Group("o", 1, 3, [])], "there is no class 3"),
    "columns missing": ([TASK], [Group("o", 1, 0, [])], "0 columns in the place of 1"),
    "values and objects": ([], [Group("l", 1, -1, [Column(values=[1], objects=[0])], [1])], "or both"),
    "a column too short": ([TASK], [Group("o", 1, 0, [Column(values=[])])], "0 entries in the place of 1"),
    "a list among scalars": ([], [Group("l", 1, -1, [Column(values=[[]])], [1])], "something else than text"),
    "a scalar that is none": ([], [_leaf("v", {"a": 1})], "cannot be read"),
    "a float that is a list": ([], [_leaf("x", ["1"])], "cannot be read"),
    "a long float": ([], [_leaf("x", "1" * 100_000)], "cannot be read"),
    "a fraction out of text": ([], [_leaf("f", ["1e999999999", 1])], "cannot be read"),
    "a fraction by 0": ([], [_leaf("f", [1, 0])], "Fraction"),
    "a range without steps": ([], [_leaf("r", [0, 1, 0])], "must not be zero"),
    "an array of objects": ([], [_leaf("a", ["|O", [1], "AAAAAAAAAAA=", True])], "cannot be read"),
    "an array of records": ([], [_leaf("a", ["i8,i8", [1], "AAAA", True])], "cannot be read"),
    "an array of pages": ([], [_leaf("a", ["|V999999999", [1], "AAAA", True])], "cannot be read"),
    "an array larger than its bytes": ([], [_leaf("a", ["<i8", [2**39], "AAAAAAAAAAA=", True])], "has 8 bytes"),
    "an array with a size below 0": ([], [_leaf("a", ["<i8", [-1], "AAAAAAAAAAA=", True])], "cannot be read"),
    "an array without a shape": ([], [_leaf("a", ["<i8", 1, "AAAAAAAAAAA=", True])], "cannot be read"),
    "a number of another kind": ([], [_leaf("n", ["|S9", "x"])], "cannot be read"),
    "a number out of an object": ([], [_leaf("n", ["O", "x"])], "cannot be read"),
    "an unknown kind": ([], [_leaf("k", ["v1", "Nothing"])], "cannot be read"),
    "an unhashable kind": ([], [_leaf("k", [[], {}])], "cannot be read"),
    "no member": ([Layout("pumice.model.statuses", "Status", ())], [_leaf("e", 99, layout=0)], "'99' cannot be read"),
    "a member by name": ([Layout("pumice.model.statuses", "Status", ())], [_leaf("e", [1], layout=0)], "cannot be"),
    "another type": ([Layout("pumice.api.core", "Taint", ())], [_leaf("w", {"key": 5}, layout=0)], "group 0"),
    "a field that is none": (
        [Layout("pumice.model.records", "Task", ("__class__",))],
        [Group("o", 1, 0, [Column(values=[1])])],
        "has no field '__class__'",
    ),
    "a property": (
        [Layout("pumice.model.records", "Job", ("is_ready",))],
        [Group("o", 1, 0, [Column(values=[1])])],
        "has no field",
    ),
    "a method": (
        [Layout("pumice.cache.cache", "Cache", ("apply",))],
        [Group("o", 1, 0, [Column(values=[1])])],
        "has no field 'apply'",
    ),
    "a field twice": (
        [Layout("pumice.model.records", "Task", ("name", "name"))],
        [Group("o", 1, 0, [Column(values=[1]), Column(values=[1])])],
        "a field twice",
    ),
    "other fields of a record": (
        [Layout("pumice.cache.effects", "Evict", ("name", "node"))],
        [Group("o", 1, 0, [Column(values=["a"]), Column(values=["b"])])],
        "Evict has other fields: .*, namespace, node, ",
    ),
    "tuples in tuples": ([], _nested("t", 2_000), "nested deeper than 64"),
    "sets in sets": ([], _nested("z", 100), "nested deeper than 64"),
    "a tuple in itself": ([], [_list(1), Group("t", 1, -1, [Column(objects=[1])], [1])], "or in itself"),
    "a key that is hashed for ever": ([], _doubled(60), "keys have more parts"),
    "a key that cannot be one": ([], [Group("s", 1, -1, [Column(objects=[1])], [1]), _list()], "unhashable"),
}


@pytest.mark.parametrize(("layouts", "groups", "said"), BAD_TABLES.values(), ids=BAD_TABLES)
def test_a_table_that_makes_no_sense_is_refused_before_it_costs_anything(layouts, groups, said):
    text = msgspec.json.encode(Table(layouts, groups))
    tracemalloc.start()
    try:
        table = msgspec.json.decode(text, type=Table)
        with pytest.raises((ValueError, TypeError), match=said):
            graph_reading.Reader(table).root()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 100_000 + 100 * len(text)


def test_lists_may_be_nested_as_deep_as_anybody_likes():
    _, root = _read([], _nested("l", 5_000))
    depth, each = 0, root
    while each and isinstance(each[0], list):
        depth, each = depth + 1, each[0]
    assert depth == 5_000
    assert type(root[0][0][0]) is list


# -- files --------------------------------------------------------------------------------------------------------


def _replayed(path):
    """Replay a file as users do; give the exit status and what was said. Any other exception than our own is raised here."""
    result = CliRunner().invoke(program, ["replay", str(path)])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.output


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """A short life, and the lines of a segment of it that begins with a state."""
    folder = tmp_path_factory.mktemp("life")
    rig.live(scripts.draw(11, cycles=6), folder, every=2)
    path = rig.files(folder)[1]
    assert _replayed(path)[0] == 0
    return gzip.decompress(path.read_bytes()).splitlines()


def _packed(lines):
    return gzip.compress(b"\n".join(lines) + b"\n", compresslevel=1)


@pytest.mark.parametrize("form", ["one line", "many lines"])
def test_a_file_that_unpacks_to_far_more_than_a_recording_is_refused_after_a_few_megabytes(form, recorded, tmp_path):
    path = tmp_path / "recording.jsonl.gz"
    more = b" " * (1 << 26) if form == "one line" else (b'{"is":"end"}' + b" " * 50_000 + b"\n") * 1_300
    path.write_bytes(gzip.compress(recorded[0] + b"\n" + more, compresslevel=6))
    tracemalloc.start()
    try:
        with pytest.raises(segments.RecordingError, match="more than those of any recording"):
            for _ in segments.Segment(path).lines():
                pass
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 20 * (segments.LEAST_UNPACKED + segments.MOST_UNPACKED * path.stat().st_size)


def test_a_long_line_is_put_together_once(recorded, tmp_path, monkeypatch):
    """Pieces are joined when the line is whole, so a line of n pieces costs n, and not n squared."""
    path = tmp_path / "recording.jsonl.gz"
    path.write_bytes(_packed(recorded))
    at_once = list(segments.Segment(path).lines())
    monkeypatch.setattr(segments, "CHUNK", 64)
    assert list(segments.Segment(path).lines()) == at_once
    assert len(at_once) == len(recorded)


def test_what_follows_the_end_of_a_file_is_not_read(recorded, tmp_path):
    path = tmp_path / "recording.jsonl.gz"
    path.write_bytes(_packed(recorded) + b"x" * 5_000_000)
    assert _replayed(path)[0] == 0


def test_an_event_that_cannot_be_read_is_named_with_its_line_and_cycle(recorded, tmp_path):
    step = next(place for place, line in enumerate(recorded) if b'"is":"step"' in line)
    found = msgspec.json.decode(recorded[step])
    found["events"] = [[["v1/Nothing", "ADDED", {}]]]
    path = tmp_path / "recording.jsonl.gz"
    path.write_bytes(_packed([*recorded[:step], msgspec.json.encode(found)]))
    code, said = _replayed(path)
    assert code == 2
    assert f"line {step + 1}: cycle {found['cycle']}: what came in cannot be read: KeyError: 'v1/Nothing'" in said


@settings(max_examples=mutations.EXAMPLES)
@given(data=st.data())
def test_a_recording_with_other_bytes_is_replayed_or_refused_with_its_name(data, recorded, tmp_path_factory):
    path = tmp_path_factory.mktemp("bytes") / "recording.jsonl.gz"
    lines = b"\n".join(recorded) + b"\n"
    if data.draw(st.booleans()):
        path.write_bytes(data.draw(mutations.changed_bytes(_packed(recorded))))
    else:
        path.write_bytes(zlib_packed(data.draw(mutations.changed_bytes(lines))))
    code, said = _replayed(path)
    assert code in (0, 1, 2)
    assert str(path) in said


def zlib_packed(text):
    packer = zlib.compressobj(1, zlib.DEFLATED, 31)
    return packer.compress(text) + packer.flush()


@settings(max_examples=mutations.EXAMPLES)
@given(data=st.data())
def test_a_recording_with_other_values_is_replayed_or_refused_with_its_name(data, recorded, tmp_path_factory):
    """Values anywhere: in the header, the events, the effects, and above all in the columns of the state."""
    place = data.draw(st.sampled_from([1, 1, *range(len(recorded))]))
    found = msgspec.json.decode(recorded[place])
    changed = data.draw(mutations.changed_value(found))
    path = tmp_path_factory.mktemp("values") / "recording.jsonl.gz"
    path.write_bytes(_packed([*recorded[:place], msgspec.json.encode(changed), *recorded[place + 1 :]]))
    code, said = _replayed(path)
    assert code in (0, 1, 2)
    assert str(path) in said
