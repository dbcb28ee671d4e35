"""Workload files can be read, and mean the worlds they describe."""

from __future__ import annotations

import msgspec
import pytest

from bench import workload

FILES = sorted(workload.FOLDER.glob("*.yaml"))


def scaled_down(found):
    """The same world with a hundredth of the jobs, or of the pods of one, on a hundredth of the nodes."""
    (jobs,) = found.arrivals
    fewer = msgspec.structs.replace(jobs, jobs=max(1, jobs.jobs // 100), size=max(1, jobs.size // 100))
    fewer = msgspec.structs.replace(fewer, minimum=min(jobs.minimum, fewer.size))
    nodes = msgspec.structs.replace(found.nodes, count=found.nodes.count // 100)
    return msgspec.structs.replace(found, nodes=nodes, arrivals=(fewer,), queues=min(found.queues, 3))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_workload_binds_all_its_pods(path):
    found = scaled_down(workload.read(path))
    assert workload.decided(found)[1] == len(found.requests())


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_the_scan_beside_it_is_about_the_same_pods(path):
    found = scaled_down(workload.read(path))
    asked = sorted(
        (task.shape.request.amounts["cpu"], task.shape.request.amounts["memory"], 1)
        for task in found.stage().cache.cluster.tasks.values()
    )
    assert asked == sorted(found.requests())


def test_pods_that_run_already_hold_room():
    text = """
name: full
nodes: {count: 2, cpu: 1, memory: 1}
existing: [{jobs: 2, size: 1, minimum: 1, shapes: {cpu: {first: 800}, memory: {first: 100}}}]
arrivals: [{jobs: 2, size: 1, minimum: 1, shapes: {count: 2, cpu: {first: 200, step: 1}, memory: {first: 100}}}]
"""
    found = msgspec.convert(workload.yaml.safe_load(text), workload.Workload)
    assert workload.decided(found)[1] == 1


def test_a_field_that_does_not_exist_is_refused_by_name(tmp_path):
    path = tmp_path / "wrong.yaml"
    path.write_text(FILES[0].read_text(encoding="utf-8") + "nodse: 3\n", encoding="utf-8")
    with pytest.raises(SystemExit, match=r"wrong\.yaml: .*nodse"):
        workload.read(path)
