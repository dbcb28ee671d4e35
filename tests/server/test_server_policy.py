"""Where the configuration comes from, and how changes of it are followed."""

from __future__ import annotations

import asyncio
import os
from types import SimpleNamespace

import pytest
from server_desk import Lines

from pumice.framework import registry
from pumice.framework.configuration import ConfigurationError
from pumice.kube import errors
from pumice.server.configuration import policy, refusals, sources

GOOD = 'actions: "enqueue, allocate"\ntiers:\n- plugins:\n  - name: gang\n'
OTHER = 'actions: "allocate"\ntiers:\n- plugins:\n  - name: gang\n    enablePreemptable: false\n'
BAD = 'actions: "enqueue, allocat"\ntiers: []\n'


def make(verbosity=0):
    lines = Lines(verbosity)
    return policy.Policy(registry.catalog(), lines.log), lines


class Maps:
    def __init__(self, data):
        self.data = data

    async def get(self, kind, namespace, name):
        assert (kind.plural, namespace, name) == ("configmaps", "ns", "conf")
        if isinstance(self.data, Exception):
            raise self.data
        return {"metadata": {"uid": "u1"}, "data": self.data}


def read(source):
    return asyncio.run(source.read())


# ---- sources


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ("/etc/x.conf", "/etc/x.conf"),
        ("x.conf", "x.conf"),
        ("./x", "./x"),
        ("a/b/c", "a/b/c"),
        ("ns/conf", "configmap ns/conf"),
        ("configmap:ns/conf", "configmap ns/conf"),
        ("configmap:ns/conf/key", "configmap ns/conf key key"),
    ],
)
def test_a_path_is_a_file_and_two_words_without_such_a_file_are_a_config_map(given, found):
    assert sources.find(given, Maps({})).name == found


def test_a_file_that_exists_is_a_file_even_if_it_looks_like_a_config_map(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ns").mkdir()
    (tmp_path / "ns" / "conf").write_text(GOOD)
    assert sources.find("ns/conf", Maps({})).read_now() == GOOD


def test_a_config_map_needs_a_client():
    assert sources.find("ns/conf", None) is None
    with pytest.raises(sources.SourceError, match="configmap:NAMESPACE/NAME"):
        sources.find("configmap:conf", None)


@pytest.mark.parametrize(
    ("data", "key", "found"),
    [
        ({"volcano-scheduler.conf": GOOD, "other": "x"}, "", GOOD),
        ({"mine": GOOD}, "", GOOD),
        ({"a": "x", "b": GOOD}, "b", GOOD),
    ],
)
def test_the_key_of_a_config_map_is_the_one_named_the_usual_one_or_the_only_one(data, key, found):
    assert read(sources.ConfigMapSource(Maps(data), "ns", "conf", key)) == found


def test_the_object_a_configuration_was_read_from_is_known():
    source = sources.ConfigMapSource(Maps({"mine": GOOD}), "ns", "conf")
    assert source.place is None
    read(source)
    assert (source.place.namespace, source.place.name) == ("ns", "conf")


def test_a_config_map_that_is_kube_batchs_flat_map_is_the_configuration():
    made, _ = make()
    data = {"actions": "allocate, backfill", "plugins": "gang, drf", "plugin.gang.jobready": "true"}
    loaded = made.use(read(sources.ConfigMapSource(Maps(data), "ns", "conf")), "x")
    assert loaded.rules == "kube-batch"
    assert loaded.action_names == ("allocate", "backfill")


@pytest.mark.parametrize(
    ("data", "key", "told"),
    [
        ({"a": "", "b": ""}, "", "has the keys a, b; say which: configmap:ns/conf/KEY"),
        ({}, "", "has no data"),
        ({"a": ""}, "b", "key b does not exist; the ConfigMap has the keys a"),
        (errors.ApiError(404, "NotFound", "no such thing"), "", "cannot be read: no such thing (404 NotFound)"),
    ],
)
def test_a_config_map_that_cannot_be_used_says_why(data, key, told):
    with pytest.raises(sources.SourceError) as caught:
        read(sources.ConfigMapSource(Maps(data), "ns", "conf", key))
    assert told in str(caught.value)


def test_a_config_map_that_may_have_been_meant_as_a_file_says_that_it_is_neither():
    refused = Maps(errors.ApiError(404, "NotFound", "no such thing"))
    with pytest.raises(sources.SourceError, match=r"nor is there a file ns/conf$"):
        read(sources.find("ns/conf", refused))
    with pytest.raises(sources.SourceError, match=r"\(404 NotFound\)$"):
        read(sources.find("configmap:ns/conf", refused))


@pytest.mark.parametrize(
    ("content", "told"),
    [(None, "No such file"), (b"\xff", "not UTF-8"), (b"x" * (sources.LARGEST + 1), "larger than")],
)
def test_a_file_that_cannot_be_used_says_why(tmp_path, content, told):
    path = tmp_path / "conf"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(sources.SourceError, match=told):
        sources.FileSource(str(path)).read_now()


# ---- at the start


def test_an_invalid_configuration_at_the_start_is_an_error_with_its_lines():
    made, _ = make()
    with pytest.raises(ConfigurationError, match="line 1: actions: "):
        made.use(BAD, "conf")


def test_a_load_tells_the_effective_configuration_at_verbosity_2():
    made, lines = make(verbosity=2)
    made.use(OTHER, "conf")
    assert lines.of("configuration loaded")[0]["actions"] == "allocate"
    assert lines.of("configuration plugin") == [
        {**lines.of("configuration plugin")[0], "plugin": "gang", "tier": 1, "switched": "enablePreemptable"}
    ]


# ---- while running


class Ticks:
    """Sleeps that cost nothing; each one does the next thing, the last ends the story."""

    def __init__(self, *things):
        self.things = list(things)

    async def __call__(self, _seconds):
        if not self.things:
            raise asyncio.CancelledError
        self.things.pop(0)()


async def unheard(_source, _problem):
    """Stand in for whoever tells of refusals."""


def follow(made, source, *things, monkeypatch, refused=None):
    """Start with what the source says, then let things happen between its looks; give what was loaded."""
    first = source.read_now() if isinstance(source, sources.FileSource) else read(source)
    made.use(first, source.name)
    loaded = []
    monkeypatch.setattr(policy, "asyncio", SimpleNamespace(**vars(asyncio) | {"sleep": Ticks(*things)}))
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(made.follow(source, loaded.append, refused or unheard))
    return [each.action_names for each in loaded]


def test_only_a_change_of_the_text_counts(tmp_path, monkeypatch):
    made, _ = make()
    path = tmp_path / "conf"
    path.write_text(GOOD)
    changes = [
        lambda: None,
        lambda: (tmp_path / "neighbour").write_text(BAD),
        lambda: path.write_text(GOOD),
        lambda: path.write_text(OTHER),
    ]
    assert follow(made, sources.FileSource(str(path)), *changes, monkeypatch=monkeypatch) == [("allocate",)]


def test_links_are_followed_as_a_config_map_volume_swaps_them(tmp_path, monkeypatch):
    made, _ = make()
    for name, text in (("one", GOOD), ("two", OTHER)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "conf").write_text(text)
    (tmp_path / "..data").symlink_to("one")
    (tmp_path / "conf").symlink_to("..data/conf")

    def swap():
        (tmp_path / "..tmp").symlink_to("two")
        os.replace(tmp_path / "..tmp", tmp_path / "..data")  # noqa: PTH105  as the kubelet does it

    assert follow(made, sources.FileSource(str(tmp_path / "conf")), swap, lambda: None, monkeypatch=monkeypatch) == [
        ("allocate",)
    ]


def test_a_broken_text_is_told_of_once_and_leaves_the_last_good_one_in_force_until_it_is_mended(tmp_path, monkeypatch):
    made, lines = make()
    path = tmp_path / "conf"
    path.write_text(GOOD)
    seen = []
    changes = [
        lambda: path.write_text(BAD),
        lambda: seen.append(made.problem),
        lambda: seen.append(made.problem),
        lambda: path.write_text(GOOD),
        lambda: None,
    ]
    loaded = follow(made, sources.FileSource(str(path)), *changes, monkeypatch=monkeypatch)
    assert loaded == [("enqueue", "allocate")]
    assert len(lines.of("configuration refused; the last good one stays in force")) == 1
    assert "line 1: actions: " in lines.of("configuration refused; the last good one stays in force")[0]["problem"]
    assert seen[0] == seen[1] != ""
    assert made.problem == ""


def test_a_file_that_is_gone_for_a_while_changes_nothing(tmp_path, monkeypatch):
    made, lines = make()
    path = tmp_path / "conf"
    path.write_text(GOOD)
    seen = []
    changes = [
        path.unlink,
        lambda: None,
        lambda: seen.append(made.problem),
        lambda: path.write_text(GOOD),
        lambda: None,
    ]
    assert follow(made, sources.FileSource(str(path)), *changes, monkeypatch=monkeypatch) == []
    assert len(lines.of("configuration cannot be read; the last good one stays in force")) == 1
    assert "No such file" in seen[0]
    assert made.problem == ""


# ---- events about a config map


class Events:
    """Keeps what is written about events, or never answers."""

    def __init__(self, *, silent=False):
        self.written = []
        self._silent = silent

    async def create(self, kind, manifest):
        if self._silent:
            await asyncio.Event().wait()
        self.written.append((kind.name, manifest))

    async def patch(self, _kind, _namespace, _name, body):
        self.written.append(("count", body))


def test_a_config_map_that_is_refused_gets_an_event_once_for_each_text(monkeypatch):
    made, _ = make()
    maps, events = Maps({"conf": GOOD}), Events()
    told = refusals.Refusals(events, lambda: 1_000_000, "volcano")

    async def tell(source, problem):
        await told.tell(source, "refused", problem)

    def put(text):
        return lambda: setattr(maps, "data", {"conf": text})

    changes = [put(BAD), lambda: None, put(GOOD), put("actions: ["), lambda: None]
    follow(made, sources.ConfigMapSource(maps, "ns", "conf"), *changes, monkeypatch=monkeypatch, refused=tell)
    # One Event about the object, whose count rises with the next text that is refused.
    assert [kind for kind, _ in events.written] == ["Event", "count"]
    event = events.written[0][1]
    assert event["involvedObject"] == {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "name": "conf",
        "namespace": "ns",
        "uid": "u1",
    }
    assert (event["type"], event["reason"]) == ("Warning", "ConfigurationRefused")
    assert event["message"].startswith("refused: line 1: actions: unknown action")


def test_a_config_map_whose_key_is_gone_gets_an_event_and_one_that_is_gone_itself_does_not(monkeypatch):
    made, _ = make()
    maps, heard = Maps({"conf": GOOD}), []

    async def tell(source, problem):
        heard.append((source.holder is not None, problem))

    changes = [
        lambda: setattr(maps, "data", {}),
        lambda: setattr(maps, "data", errors.ApiError(404, "NotFound", "no such thing")),
    ]
    follow(made, sources.ConfigMapSource(maps, "ns", "conf"), *changes, monkeypatch=monkeypatch, refused=tell)
    assert [(held, "no data" in problem) for held, problem in heard] == [(True, True), (False, False)]


def test_an_event_that_is_not_answered_holds_nothing_up_and_a_file_gets_none(monkeypatch, tmp_path):
    monkeypatch.setattr(refusals, "PATIENCE", 0.0)
    source = sources.ConfigMapSource(Maps({"conf": BAD}), "ns", "conf")
    read(source)
    asyncio.run(refusals.Refusals(Events(silent=True), lambda: 0, "volcano").tell(source, "refused", "x"))
    events = Events()
    asyncio.run(refusals.Refusals(events, lambda: 0, "volcano").tell(sources.FileSource(str(tmp_path)), "refused", "x"))
    assert events.written == []
