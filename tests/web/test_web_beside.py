"""What a scheduler tells its page: the last change of each object, however slowly the page listens, and how the process that serves it takes that."""

from __future__ import annotations

import asyncio

import msgspec
import web_worlds as worlds

from pumice.api import decoding, kinds
from pumice.framework import configuration, registry
from pumice.server.flags import settings
from pumice.server.logs.logs import Log
from pumice.server.onlooking import Around, SelfReport
from pumice.study.state import State
from pumice.web import inside, questions, relaying
from pumice.web.beside import Beside, _config_map, _facts
from pumice.web.cluster import Cluster
from pumice.web.inside import Taking


class Pipe:
    """Takes what is written, and reads it as the page does."""

    def __init__(self):
        self.data = b""

    def write(self, data):
        self.data += data

    async def drain(self):
        pass

    def messages(self):
        left, found = self.data, []
        while left:
            size = questions.length(left[: questions.HEAD])
            found.append(relaying.MESSAGES.decode(left[questions.HEAD : questions.HEAD + size]))
            left = left[questions.HEAD + size :]
        return found


def beside(**flags):
    return Beside(settings.read({"web-address": "127.0.0.1:0", **flags}), Log())


def decoded(manifest):
    kind = kinds.find(manifest["apiVersion"], manifest["kind"])
    return kind, decoding.decode_json(kind, msgspec.json.encode(manifest))


def fed(page, event_type, *manifests):
    for manifest in manifests:
        kind, found = decoded(manifest)
        page.feed(kind, event_type, found, b"")


def sent(page):
    pipe = Pipe()
    asyncio.run(page.send_waiting(pipe))
    return [change for message in pipe.messages() for change in message.changes]


def test_only_the_last_change_of_an_object_waits_however_many_there_are():
    page = beside()
    for number in range(5000):
        fed(page, "MODIFIED", worlds.pod("p", cpu=str(number % 7 + 1)), worlds.node(f"n-{number % 3}"))
    changes = sent(page)
    assert [(name, event) for _, name, event, _ in changes] == [("Pod", "MODIFIED"), *[("Node", "MODIFIED")] * 3]
    assert sent(page) == []


def test_object_that_cannot_be_read_counts_as_absent_and_environments_are_not_told():
    page = beside()
    bad = {**worlds.pod("bad"), "spec": {"containers": 7}}
    good = worlds.pod("good")
    good["spec"]["containers"][0]["env"] = [{"name": "PASSWORD", "value": "hunter2"}]
    fed(page, "ADDED", bad, good)
    (_, _, first, _), (_, _, second, raw) = sent(page)
    assert (first, second) == ("DELETED", "ADDED")
    assert b"hunter2" not in raw


def test_page_shows_what_it_is_told():
    page, cluster = beside(), Cluster("x", lambda: worlds.NOW)
    fed(page, "ADDED", worlds.node("n-0"), worlds.group("g"), worlds.pod("g-0", "g", "n-0"), worlds.eviction("g-9", "Pod is evicted, because of preempt"))  # fmt: skip
    taking = Taking(cluster)
    taking.take(questions.Feed(sent(page)))
    taking.take(relaying.Told({"scheduler": {"decided": 3}}))
    taking.take(questions.About(source="", text="actions: allocate", since=7))
    cluster.turn()
    scene = msgspec.json.decode(cluster.board.whole().data())
    assert scene["rows"]["jobs"]["a/g"]["ready"] == 1
    assert scene["facts"]["scheduler"] == {"decided": 3}
    assert [each["pod"] for each in scene["evictions"]] == ["g-9"]
    assert (cluster.about.source, cluster.about.since) == ("x", 7)


def test_what_was_read_after_a_restart_is_not_undone_by_what_is_told_late(monkeypatch):
    cluster = Cluster("x", lambda: worlds.NOW)
    taking = Taking(cluster)
    kind, newer = decoded(versioned(worlds.node("n-0", "16"), "20"))
    monkeypatch.setattr(
        inside.live, "read", lambda _: State(source="x", now=worlds.NOW, objects=[(kind, newer)], jobs={})
    )
    taking.read(None)
    cases = [("MODIFIED", "19", 16_000), ("DELETED", "10", 16_000), ("MODIFIED", "21", 8000), ("DELETED", "22", None)]
    cases.append(
        ("ADDED", "5", 8000)
    )  # of another cluster state altogether: from the first news on, what is told counts
    for event, version, cpu in cases:
        raw = msgspec.json.encode(versioned(worlds.node("n-0"), version))
        taking.take(questions.Feed([("v1", "Node", event, raw)]))
        row = cluster.tracker.node("n-0")
        assert (None if row is None else row.allocatable["cpu"]) == cpu, (event, version)


def versioned(manifest, version):
    manifest["metadata"]["resourceVersion"] = version
    return manifest


def test_second_start_reads_by_itself_what_was_told_before():
    page = beside(**{"web-hosts": ("x",), "web-client-ca": "ca"})
    first, second = (page.beginning(reads_first=again) for again in (False, True))
    assert (first.reads_first, second.reads_first) == (False, True)
    assert (first.hosts, first.client_ca) == (("x",), "ca")


def test_policy_is_that_of_the_named_config_map_else_of_the_installation():
    named = {"scheduler-conf": "configmap:here/mine/key"}
    assert _config_map(settings.read(named)) == ("here", "mine")
    lease = {"leader-elect-resource-namespace": "pumice-system", "leader-elect-resource-name": "pumice"}
    assert _config_map(settings.read(lease)) == ("pumice-system", "pumice-scheduler-configmap")
    assert _config_map(settings.read({"scheduler-conf": "/x/volcano-scheduler.conf"})) == (
        "volcano-system",
        "volcano-scheduler-configmap",
    )


def test_silence_is_told_once_it_is_worth_a_word_and_the_policy_with_its_time():
    known = registry.installed()
    policy = configuration.default(known.catalog())
    report = SelfReport(leading=True, decided=1, skipped=0, silence=3.2, troubles=("starting",))
    around = Around(known.catalog(), lambda: policy, lambda: report)
    quiet = _facts(around)
    assert quiet["notes"] == ["starting"]
    assert quiet["scheduler"]["silence"] == 0
    report = msgspec.structs.replace(report, silence=42.0)
    assert "silent for 42 s" in _facts(around)["notes"][1]
    page = beside()
    about = page.about(policy, around)
    assert about.since > 0
    assert "actions" in about.text
    assert page.about(policy, around).since == about.since
