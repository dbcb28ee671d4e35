"""What a scheduler knows, dumped, is what a scenario can start from."""

from __future__ import annotations

import json
import os
import stat
import tempfile

import pytest
from server_desk import Lines

import builders
from pumice.scenario import format as scenario_format
from pumice.scenario import runner, stage
from pumice.server import dump

POLICY = """
actions: "enqueue, allocate, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}]
- plugins: [{name: predicates}, {name: proportion}, {name: nodeorder}, {name: network-topology-aware}]
"""

CLUSTER = [
    builders.node("n1", cpu="4", labels={"zone": "a"}),
    builders.node("n2", cpu="4", labels={"zone": "b"}, taints=[{"key": "k", "value": "v", "effect": "NoSchedule"}]),
    builders.node("n3", cpu="4"),
    {
        "apiVersion": "topology.volcano.sh/v1alpha1",
        "kind": "HyperNode",
        "metadata": {"name": "rack"},
        "spec": {"tier": 1, "members": [{"type": "Node", "selector": {"exactMatch": {"name": "n3"}}}]},
    },
    builders.queue("gold", weight=3),
    builders.priority_class("high", 100),
    builders.group("waits", 3, queue="gold", priorityClassName="high"),
    builders.group("runs", 1),
    builders.group("later", 2),
    builders.group("racked", 1, networkTopology={"mode": "hard", "highestTierAllowed": 1}),
    builders.pod("racked-0", "racked", cpu="1"),
    *(builders.pod(f"w-{i}", "waits", cpu="1", created=i) for i in range(3)),
    *(builders.pod(f"l-{i}", "later", cpu="1500m", created=i, nodeSelector={"zone": "a"}) for i in range(2)),
    builders.pod(
        "r-0", "runs", cpu="3", node="n1", annotations={"kubectl.kubernetes.io/last-applied-configuration": "{}"}
    ),
    builders.pod("other", cpu="500m", node="n3", scheduler="default-scheduler"),
]

SCENARIO = """
scenario: replay
given: {given}
config: |
{config}
steps:
- cycles: 3
- expect: {{pods: {{a/r-0: {{node: n1}}}}}}
"""


def placed(made):
    pods = made.view(made.counts()).pods
    return {name: pod["spec"].get("nodeName", "") for name, pod in pods.items()}


def play(tmp_path, given):
    text = SCENARIO.format(given=given, config="".join(f"  {line}\n" for line in POLICY.splitlines()))
    (tmp_path / "replay.yaml").write_text(text)
    found = scenario_format.load(tmp_path / "replay.yaml")
    assert not found.problems, found.problems
    stages = []

    def build(scenario):
        stages.append(stage.build(scenario))
        return stages[-1]

    result = runner.run(found.scenarios[0], build)
    assert result.status == "passed", result
    return stages[0]


def test_a_scenario_that_starts_from_a_dump_decides_as_the_cluster_it_was_taken_from(tmp_path):
    (tmp_path / "given.json").write_text(json.dumps(CLUSTER))
    straight = play(tmp_path, "given.json")
    assert placed(straight)["a/w-2"]
    assert placed(straight)["a/racked-0"] == "n3"
    assert not placed(straight)["a/l-0"]

    # the same cluster once more, dumped before its first cycle
    found = scenario_format.load(tmp_path / "replay.yaml").scenarios[0]
    fresh = stage.build(found)
    fresh.cluster.pump()
    fresh.cache.apply(builders.NOW)
    written = dump.write(fresh.cache.cluster, str(tmp_path), 1234)
    assert written == tmp_path / "snapshot-1234.json"
    again = play(tmp_path, written.name)
    assert placed(again) == placed(straight)
    assert {n: g["status"]["phase"] for n, g in again.view(again.counts()).pod_groups.items()} == {
        n: g["status"]["phase"] for n, g in straight.view(straight.counts()).pod_groups.items()
    }


def test_a_dump_is_one_array_for_its_owner_alone_without_copies_of_manifests(tmp_path):
    desk = builders.Desk(POLICY)
    desk.feed(*CLUSTER)
    desk.scheduler.cycle()
    written = dump.write(desk.cache.cluster, str(tmp_path), 1)
    assert stat.S_IMODE(written.stat().st_mode) == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["snapshot-1.json"]
    objects = json.loads(written.read_bytes())
    assert {found["kind"] for found in objects} == {"Node", "HyperNode", "Pod", "PodGroup", "Queue", "PriorityClass"}
    assert "last-applied" not in written.read_text()
    by_name = {found["metadata"]["name"]: found for found in objects if found["kind"] == "Pod"}
    assert by_name["w-0"]["spec"]["nodeName"], "a bind on its way counts as done"


def small():
    desk = builders.Desk(POLICY)
    desk.feed(builders.node("n1", cpu="4"))
    desk.scheduler.cycle()
    return desk.cache.cluster


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_folder_keeps_the_newest_dumps(tmp_path):
    cluster = small()
    for second in range(96, 104):
        dump.write(cluster, str(tmp_path), second)
    assert names(tmp_path) == sorted(f"snapshot-{second}.json" for second in range(99, 104))
    dump.write(cluster, str(tmp_path), 103)
    assert len(names(tmp_path)) == dump.KEPT, "a second one within the second takes the place of the first"


def test_dumps_together_have_no_more_bytes_than_there_is_room_for(tmp_path, monkeypatch):
    cluster = small()
    size = len(dump.encode(cluster))
    monkeypatch.setattr(dump, "MOST_BYTES", 2 * size + size // 2)
    for second in range(3):
        dump.write(cluster, str(tmp_path), second)
    assert names(tmp_path) == ["snapshot-1.json", "snapshot-2.json"]
    monkeypatch.setattr(dump, "MOST_BYTES", size - 1)
    with pytest.raises(OSError, match=rf"a dump of {size} bytes is larger than {size - 1}"):
        dump.write(cluster, str(tmp_path), 4)
    assert names(tmp_path) == ["snapshot-1.json", "snapshot-2.json"]


def test_only_files_that_are_ours_make_room(tmp_path):
    cluster = small()
    dump.write(cluster, str(tmp_path), 1)
    (tmp_path / "snapshot-1.json").chmod(0o644)  # somebody wants it for others
    (tmp_path / "snapshot-2.json").write_text("[1]")
    (tmp_path / "snapshot-2.json").chmod(0o600)
    (tmp_path / "snapshot-kept.json").write_text("[]")
    (tmp_path / "snapshot-3.json").mkdir()
    (tmp_path / "snapshot-4.json").symlink_to(tmp_path / "snapshot-2.json")
    for age, name in ((7200, ".snapshot-left-behind"), (60, ".snapshot-being-written")):
        (tmp_path / name).write_text("[")
        (tmp_path / name).chmod(0o600)
        written = (tmp_path / name).stat().st_mtime - age
        os.utime(tmp_path / name, (written, written))
    before = names(tmp_path)
    for second in range(10, 20):
        dump.write(cluster, str(tmp_path), second)
    kept = [name for name in before if name != ".snapshot-left-behind"]
    assert names(tmp_path) == sorted(kept + [f"snapshot-{second}.json" for second in range(15, 20)])


def test_a_folder_that_takes_no_dumps_is_a_warning_that_says_what_to_do(tmp_path, monkeypatch):
    lines = Lines()
    dump.check(str(tmp_path), lines.log)
    assert lines.all == []
    assert names(tmp_path) == []
    (tmp_path / "file").write_text("")
    for folder, problem in (("nowhere", "No such file or directory"), ("file", "Not a directory")):
        dump.check(str(tmp_path / folder), lines.log)
        line = lines.all[-1]
        assert (line["level"], line["msg"]) == ("warning", "dumps cannot be written")
        assert (line["folder"], line["problem"]) == (str(tmp_path / folder), problem)
        assert "--cache-dump-dir" in line["remedy"]

    def full(*_, **__):
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(tempfile, "NamedTemporaryFile", full)
    dump.check("", lines.log)
    assert (lines.all[-1]["folder"], lines.all[-1]["problem"]) == ("the temporary folder", "Read-only file system")


@pytest.mark.parametrize(
    ("given", "content", "told"),
    [
        ("missing.json", None, "given: missing.json: cannot be read: No such file or directory"),
        ("bad.json", "{", "given: bad.json: "),
        ("bad.json", "3", "bad.json: the document: expected a list of manifests"),
        (
            "bad.yaml",
            "kind: Pod\nmetadata: {name: x}\n",
            "given: bad.yaml:1: the document: the manifest has no apiVersion",
        ),
    ],
)
def test_a_given_file_that_cannot_be_used_makes_the_scenario_invalid(tmp_path, given, content, told):
    if content is not None:
        (tmp_path / given).write_text(content)
    path = tmp_path / "s.yaml"
    path.write_text(f"scenario: x\ngiven: {given}\nsteps: [{{expect: {{pods: {{}}}}}}]\n")
    found = scenario_format.load(path)
    assert any(problem.line == 2 and told in problem.message for problem in found.problems), found.problems


def test_a_given_file_may_be_yaml_with_one_manifest_per_document(tmp_path):
    (tmp_path / "objects.yaml").write_text(
        "{apiVersion: v1, kind: Node, metadata: {name: n1}}\n---\n[{apiVersion: v1, kind: Node, metadata: {name: n2}}]\n"
    )
    path = tmp_path / "s.yaml"
    path.write_text("scenario: x\ngiven: objects.yaml\nsteps: [{cycles: 1}, {expect: {pods: {}}}]\n")
    found = scenario_format.load(path)
    assert [entry.body["metadata"]["name"] for entry in found.scenarios[0].given] == ["n1", "n2"]
