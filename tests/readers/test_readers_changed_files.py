"""Every reader of files and answers that others made: a valid one, changed, is read or refused in our own words, and nothing else happens.

`PUMICE_FUZZ=1` (`make fuzz`) tries more than thirty times as many, and new ones each time.
"""

from __future__ import annotations

import asyncio
import functools
import json
import sqlite3
import tempfile
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pumice.admission import reviewing
from pumice.admission import surroundings as admission_surroundings
from pumice.api import decoding, kinds
from pumice.bench import finding
from pumice.framework import configuration, registry
from pumice.kube import errors
from pumice.kube.access import execplugin, kubeconfig
from pumice.kube.calls import answers, http_answers
from pumice.kube.watches import arrivals
from pumice.local_cluster import journal, pools
from pumice.scenario import format as scenario_format
from pumice.scenario import policies
from pumice.sim import clock
from pumice.sim.store import ObjectStore
from pumice.study import files as study_files
from pumice.study.state import StudyError
from pumice.vetting import files as vetting_files
from pumice.vetting.judging import Vetting
from tests import mutations

ROOT = Path(__file__).parents[2]
KNOWN = registry.installed()
POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {
        "name": "p",
        "namespace": "a",
        "uid": "u",
        "resourceVersion": "7",
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "labels": {"k": "v"},
        "ownerReferences": [{"apiVersion": "v1", "kind": "Job", "name": "j", "uid": "x", "controller": True}],
    },
    "spec": {
        "schedulerName": "volcano",
        "priority": 5,
        "tolerations": [{"key": "a", "operator": "Exists", "tolerationSeconds": 3}],
        "containers": [{"name": "c", "image": "x:1", "resources": {"requests": {"cpu": "100m", "memory": "1Gi"}}}],
    },
    "status": {"phase": "Pending", "conditions": [{"type": "Ready", "status": "True"}]},
}
DUMP = {"apiVersion": "v1", "kind": "List", "items": [POD, {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node-1"}, "status": {"allocatable": {"cpu": "4"}}}]}  # fmt: skip
CONFIGURATION = "actions: enqueue, allocate\ntiers:\n- plugins:\n  - name: gang\n    enableJobStarving: true\n  - {name: binpack, arguments: {binpack.weight: 5}}\n"
KUBECONFIG = """\
apiVersion: v1
kind: Config
current-context: c
clusters:
- {name: k, cluster: {server: "https://h:6443", insecure-skip-tls-verify: true, proxy-url: "http://p:1"}}
contexts:
- {name: c, context: {cluster: k, user: u, namespace: team}}
users:
- name: u
  user:
    exec: {apiVersion: client.authentication.k8s.io/v1, command: ./get, args: [a], env: [{name: A, value: b}], interactiveMode: Never}
"""
REVIEW = {
    "apiVersion": "admission.k8s.io/v1",
    "kind": "AdmissionReview",
    "request": {
        "uid": "u",
        "kind": {"group": "", "version": "v1", "kind": "Pod"},
        "resource": {"group": "", "version": "v1", "resource": "pods"},
        "operation": "CREATE",
        "namespace": "a",
        "object": POD,
        "userInfo": {"username": "me"},
    },
}
ANSWER = b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n5;x=y\r\n{"a":\r\n2\r\n1}\r\n0\r\nTrailer: x\r\n\r\n'
CREDENTIAL = {"kind": "ExecCredential", "apiVersion": "client.authentication.k8s.io/v1", "status": {"token": "t", "expirationTimestamp": "2026-01-01T00:00:00Z"}}  # fmt: skip
POOLS = "pools:\n- {name: gpu, count: 4, cpu: 64, memory: 1Ti, labels: {a: b}}\n- {name: b, count: 1}\n"


def _file(read, suffix=".yaml"):
    """Let a reader of files read bytes."""

    def reader(data):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / f"file{suffix}"
            path.write_bytes(data)
            return read(path)

    return reader


@functools.cache
def _vetting():
    return Vetting(admission_surroundings.KnownObjects())


def _vet(path):
    return _vetting().judge(list(vetting_files.read([str(path)])))


def _http(data):
    answer = http_answers.Answer(1 << 16)
    for start in range(0, len(data), 7):
        answer.feed(data[start : start + 7])
    answer.end()


def _list(data):
    for item in arrivals.page(data).items:
        arrivals.arrival(kinds.POD, item, keep=False)


def _watch(data):
    event = arrivals.line(data)
    if event.type == "BOOKMARK":
        arrivals.bookmark(event)
    else:
        arrivals.identify(arrivals.arrival(kinds.POD, event.object, keep=True))


def _exec(data):
    settings = execplugin.ExecEntry(command="x", api_version="client.authentication.k8s.io/v1")
    plugin = execplugin.ExecPlugin(settings, field="users[u].exec", folder=Path(), environ={}, cluster=dict)
    plugin.read(data)


def _encoded(value):
    return json.dumps(value).encode()


READERS = {
    "a dump as JSON": (_encoded(DUMP), _file(lambda path: study_files.read(str(path), KNOWN), ".json"), StudyError),
    "manifests": (msgspec.yaml.encode(DUMP), _file(lambda path: study_files.read(str(path), KNOWN)), StudyError),
    "manifests to apply": (msgspec.yaml.encode(POD), _file(lambda path: study_files.manifests_of(str(path))), StudyError),
    "manifests to vet": (msgspec.yaml.encode(POD), _file(_vet), vetting_files.UnreadableError),
    "a scenario": ((ROOT / "scenarios" / "gangs" / "minimum-first.yaml").read_bytes()[:3000], _file(scenario_format.load), ()),
    "a policy": (CONFIGURATION.encode(), _file(lambda path: policies.load(str(path))), policies.PolicyError),
    "a configuration": (CONFIGURATION.encode(), lambda data: configuration.load(data.decode("utf-8", "replace"), KNOWN.catalog(), "x"), configuration.ConfigurationError),
    "a kubeconfig": (KUBECONFIG.encode(), _file(lambda path: kubeconfig.load([path], "", "", environ={}, required=True)), errors.ConfigurationError),
    "pools": (POOLS.encode(), _file(pools.read), pools.PoolError),
    "a workload": (next((ROOT / "src" / "pumice" / "bench").rglob("*.yaml")).read_bytes(), _file(finding.read), finding.WorkloadError),
    "a review": (_encoded(REVIEW), reviewing.read, reviewing.ReviewError),
    "an answer over HTTP": (ANSWER, _http, (http_answers.GarbledAnswerError, errors.OversizeError)),
    "a list": (_encoded({"metadata": {"resourceVersion": "5"}, "items": [POD]}), _list, errors.KubeError),
    "a line of a watch": (_encoded({"type": "MODIFIED", "object": POD}), _watch, errors.KubeError),
    "a refusal": (_encoded({"kind": "Status", "reason": "Conflict", "message": "m", "details": {"retryAfterSeconds": 3}}), lambda data: answers.parse_status(409, data, "", "x"), ()),
    "credentials of a plugin": (_encoded(CREDENTIAL), _exec, errors.KubeError),
    "an object": (_encoded(POD), lambda data: decoding.decode_json(kinds.POD, data), ()),
}  # fmt: skip


@pytest.mark.parametrize("name", READERS)
def test_what_is_changed_below_is_read_as_it_is(name):
    data, read, _ = READERS[name]
    found = read(data)
    assert not isinstance(found, decoding.Malformed)
    assert name != "a scenario" or not found.problems


@pytest.mark.parametrize("name", READERS)
@settings(max_examples=2 * mutations.EXAMPLES)
@given(data=st.data())
def test_a_file_with_other_bytes_is_read_or_refused_in_our_own_words(name, data):
    valid, read, refuses = READERS[name]
    said = ""
    try:
        read(data.draw(mutations.changed_bytes(valid)))
    except refuses as error:
        said = str(error)
    assert len(said) < 20_000


@pytest.mark.parametrize("name", [name for name in READERS if READERS[name][0].startswith(b"{")])
@settings(max_examples=2 * mutations.EXAMPLES)
@given(data=st.data())
def test_a_file_with_other_values_is_read_or_refused_in_our_own_words(name, data):
    valid, read, refuses = READERS[name]
    said = ""
    try:
        read(_encoded(data.draw(mutations.changed_value(json.loads(valid)))))
    except refuses as error:
        said = str(error)
    assert len(said) < 20_000


# -- the state of pumice up ------------------------------------------------------------------------------------------


def _journal(folder, rows, about=(("format", "1"), ("version", "9")), more=""):
    database = sqlite3.connect(folder / journal.FILE)
    database.executescript(journal.SCHEMA)
    database.executemany("INSERT OR REPLACE INTO objects VALUES (?, ?, ?, ?)", rows)
    database.executemany("INSERT OR REPLACE INTO about VALUES (?, ?)", about)
    database.executescript(more)
    database.commit()
    database.close()


class Served:
    """A cluster, as far as a journal asks for one."""

    def __init__(self):
        self.definitions = self

    def serve_all(self):
        """There are no definitions."""


def _restore(folder):
    """Read what a folder keeps into a cluster; give its pods."""

    async def restored():
        store = ObjectStore(lambda: clock.START)
        opened = journal.open_journal(folder, store)
        try:
            opened.restore(Served())
            return list(store.scan(kinds.POD))
        finally:
            opened.close()

    return asyncio.run(restored())


ROW = ("/v1/pods/Pod/namespaced", "a", "p", _encoded(POD))


def test_the_state_that_is_changed_below_is_read_as_it_is(tmp_path):
    _journal(tmp_path, [ROW])
    assert [each["metadata"]["name"] for each in _restore(tmp_path)] == ["p"]


@pytest.mark.parametrize(
    ("rows", "about", "said"),
    [
        ([("pods", "a", "p", b"{}")], (), "cannot be read"),
        ([(*ROW[:3], b"{")], (), "cannot be read"),
        ([(*ROW[:3], b"{}")], (), "cannot be read"),
        ([(*ROW[:3], b'{"metadata":' + b"[" * 100_000)], (), "cannot be read"),
        ([(*ROW[:3], b'{"metadata":5}')], (), "cannot be read"),
        ([ROW], (("format", "2"),), "has format 2"),
        ([ROW], (("format", "1"), ("version", "x")), "its version is 'x'"),
        ([ROW], (("format", "1"), ("version", "9" * 5_000)), "its version is '9"),
    ],
)
def test_a_state_that_cannot_be_read_is_refused_with_its_file(rows, about, said, tmp_path):
    _journal(tmp_path, rows, about or (("format", "1"), ("version", "9")))
    with pytest.raises(journal.JournalError, match=said) as refused:
        _restore(tmp_path)
    assert str(tmp_path / journal.FILE) in str(refused.value)


@pytest.mark.parametrize(
    "more",
    [
        "CREATE TRIGGER t AFTER INSERT ON objects BEGIN DELETE FROM objects; END;",
        "DROP TABLE about; CREATE VIEW about AS WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x FROM n) SELECT x AS name, x AS value FROM n;",
        "CREATE TABLE other (x);",
        "DROP TABLE about; CREATE TABLE about (name TEXT PRIMARY KEY, value TEXT AS (name || name));",
    ],
    ids=["trigger", "view", "table", "column"],
)
def test_a_database_that_would_run_something_is_refused(more, tmp_path):
    _journal(tmp_path, [], (), more)
    with pytest.raises(
        journal.JournalError, match=r"holds something else than the state of a cluster|there is already a view"
    ):
        _restore(tmp_path)


@settings(max_examples=mutations.EXAMPLES)
@given(data=st.data())
def test_a_state_with_other_bytes_is_read_or_refused_with_its_file(data):
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _journal(folder, [ROW])
        path = folder / journal.FILE
        path.write_bytes(data.draw(mutations.changed_bytes(path.read_bytes())))
        said = ""
        try:
            _restore(folder)
        except journal.JournalError as error:
            said = str(error)
        assert said == "" or str(path) in said


@settings(max_examples=2 * mutations.EXAMPLES)
@given(changed=mutations.changed_value(POD))
def test_a_state_with_other_values_is_read_or_refused_with_its_file(changed):
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _journal(folder, [(*ROW[:3], _encoded(changed))])
        said = ""
        try:
            _restore(folder)
        except journal.JournalError as error:
            said = str(error)
        assert said == "" or journal.FILE in said
