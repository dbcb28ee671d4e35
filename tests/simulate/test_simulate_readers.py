"""Traces of every format, and what is wrong with bad ones: file, line and field."""

from __future__ import annotations

import gzip
import json

import pytest
from simulating import SECOND

from pumice.simulate import cluster_files, job_files, loading, preparing, reshaping, swf, trace_files
from pumice.simulate.settings import PolicyFile, Settings
from pumice.simulate.trace import TraceError

JOB = {"submit": 0, "runTime": 10, "members": [{"count": 2, "requests": {"cpu": "1"}}]}


def swf_line(number=1, submit=0, run=10, size=2, *, requested=-1, estimate=-1, user=-1, queue=-1):
    return f"{number} {submit} -1 {run} {size} -1 -1 {requested} {estimate} -1 1 {user} -1 -1 {queue} -1 -1 -1"


def written(folder, name, text):
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return str(path)


def refused(function, *arguments):
    with pytest.raises(TraceError) as caught:
        function(*arguments)
    return str(caught.value)


# ---- SWF


def test_a_workload_is_read_with_its_machine(tmp_path):
    rows = [
        swf_line(1, 5, 12, 4, requested=6, estimate=30, user=3, queue=2),
        swf_line(2, 6, 0, 4),
        swf_line(3, 7, 9, -1),
        swf_line(4, 6, 2.5, 1),
    ]
    file = written(tmp_path, "a.swf", "; MaxNodes: 8\n; MaxProcs: 16\n;\n" + "\n".join(rows) + "\n")
    found = swf.read(file)
    assert [job.name for job in found.jobs] == ["job-1", "job-4"]
    first, second = found.jobs
    assert (first.submit, first.run_time, first.estimate, swf.job_size(first)) == (
        5 * SECOND,
        12 * SECOND,
        30 * SECOND,
        6,
    )
    assert (first.user, first.queue, second.queue) == ("user-3", "queue-2", "default")
    assert (second.run_time, second.estimate) == (2_500_000, 2_500_000)
    assert found.skipped == 2
    assert found.notes == [
        "1 of 2 jobs have no estimate (field 9): their run time is taken",
        "2 jobs without run time or size are skipped",
    ]
    assert [node.status.allocatable["cpu"] for _, node in found.cluster] == ["16"]
    gang = swf.read(file, "gang")
    assert [(job.size, job.min_member) for job in gang.jobs] == [(6, 6), (1, 1)]
    assert len(gang.cluster) == 16


def test_a_compressed_trace_is_read_as_well(tmp_path):
    path = tmp_path / "a.swf.gz"
    path.write_bytes(gzip.compress(f"; MaxProcs: 4\n{swf_line()}\n".encode()))
    assert len(swf.read(str(path)).jobs) == 1


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (swf_line(), "MaxProcs: the header states neither MaxProcs nor MaxNodes; the widest job asks for 2"),
        (f"; MaxProcs: many\n{swf_line()}", ":1: MaxProcs: 'many' is no number of processors between 1 and 1,000,000"),
        ("; MaxProcs: 4\n1 2 3", ":2: has 3 fields, and a job has 18"),
        (f"; MaxProcs: 4\n{swf_line(run='ten')}", ":2: field 4 (run time): 'ten' is no number"),
        (f"; MaxProcs: 4\n{swf_line(run='nan')}", ":2: field 4 (run time): 'nan' is no number"),
        (f"; MaxProcs: 4\n{swf_line(submit=-5)}", ":2: field 2 (submit): -5 is negative"),
        (f"; MaxProcs: 4\n{swf_line(size=2_000_000)}", ":2: field 5 (processors): 2,000,000 is beyond"),
    ],
)
def test_a_bad_workload_names_line_and_field(tmp_path, text, told):
    assert told in refused(swf.read, written(tmp_path, "a.swf", text))


# ---- files


def test_what_is_no_text_or_too_long_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "a.swf"
    path.write_bytes(b"; MaxProcs: 4\n\xff\xfe\n")
    assert ":2: is not UTF-8 text" in refused(swf.read, str(path))
    packed = gzip.compress(b"; MaxProcs: 4\n" * 1000)
    path.write_bytes(packed[: len(packed) // 2])
    assert "cannot be unpacked" in refused(swf.read, str(path))
    assert "cannot be read: No such file" in refused(swf.read, str(tmp_path / "none.swf"))
    monkeypatch.setattr(trace_files, "LONGEST", 20)
    assert ":1: the line is longer than 20 bytes" in refused(swf.read, written(tmp_path, "b.swf", ";" * 50))
    monkeypatch.setattr(trace_files, "LARGEST", 30)
    assert "the trace is larger than 30 bytes" in refused(swf.read, written(tmp_path, "c.swf", "; abc\n" * 20))


# ---- jobs of our own


def test_a_job_is_read_with_all_it_says(tmp_path):
    job = {
        "name": "a/train",
        "submit": 5,
        "queue": "research",
        "user": "ann",
        "priority": "high",
        "minMember": 4,
        "runTime": "95m",
        "estimate": "2h",
        "members": [
            {"count": 4, "requests": {"cpu": "8", "nvidia.com/gpu": "1"}},
            {"runTime": "10m", "pod": {"containers": [{"name": "c", "resources": {"requests": {"cpu": 1}}}]}},
        ],
        "checkpoint": "10m",
        "exit": "failed",
    }
    found = job_files.read(written(tmp_path, "a.jsonl", json.dumps(job) + "\n\n" + json.dumps(JOB))).jobs
    other, first = sorted(found, key=lambda each: each.submit)
    assert (first.key, first.queue, first.user, first.priority) == ("a/train", "research", "ann", "high")
    assert (first.min_member, first.size, first.failed) == (4, 5, True)
    assert (first.run_time, first.estimate, first.checkpoint) == (5700 * SECOND, 7200 * SECOND, 600 * SECOND)
    assert [each.run_time for each in first.members] == [5700 * SECOND, 600 * SECOND]
    assert first.members[1].spec.scheduler_name == "volcano"
    assert (other.key, other.min_member, other.estimate, other.line) == ("default/job-2", 2, None, 3)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"runtime": 5}, "runtime: unknown key; did you mean 'runTime'?"),
        ({"zzz": 5}, "zzz: unknown key; known are name, submit"),
        ({"submit": None}, "submit: is missing"),
        ({"submit": -1}, "submit: -1 is negative"),
        ({"submit": True}, "submit: expected seconds or a duration such as 95m"),
        ({"runTime": "soon"}, "runTime: 'soon' is no duration"),
        ({"runTime": 1e300}, "runTime: 1e+300 is negative, or later than anybody simulates"),
        ({"members": []}, "members: expected a list with at least one kind of member"),
        ({"members": [3]}, "members[0]: expected a map"),
        ({"members": [{"requests": {"cpu": "1"}, "cout": 2}]}, "members[0].cout: unknown key; did you mean 'count'?"),
        (
            {"members": [{"count": 0, "requests": {"cpu": "1"}}]},
            "members[0].count: '0' is no whole number between 1 and",
        ),
        ({"members": [{"count": 2}]}, "members[0].requests: give either requests or pod"),
        ({"members": [{"requests": {"cpu": "x"}}]}, "members[0].requests: "),
        ({"members": [{"requests": 4}]}, "members[0].requests: expected a map of quantities"),
        ({"members": [{"pod": {"containers": 3}}]}, "members[0].pod: "),
        ({"members": [{"pod": {"containers": []}}]}, "members[0].pod.containers: is missing"),
        (
            {"members": [{"pod": {"containers": [{}], "resourceClaims": [{"name": "x"}]}}]},
            "members[0].pod.resourceClaims: is not simulated; leave it out",
        ),
        ({"minMember": 3}, "minMember: 3 is more than the 2 members that there are"),
        ({"exit": "killed"}, "exit: 'killed' is neither succeeded nor failed"),
        ({"name": "a/b/c"}, "name: 'a/b/c' is not of the form name or namespace/name"),
        ({"name": 7}, "name: expected text"),
    ],
)
def test_a_bad_job_names_line_and_field(tmp_path, change, told):
    file = written(tmp_path, "a.jsonl", json.dumps(JOB) + "\n" + json.dumps({**JOB, **change}))
    assert f"a.jsonl:2: {told}" in refused(job_files.read, file)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "a.jsonl: the trace has no jobs"),
        ("{", "a.jsonl:1: is not valid JSON"),
        ("[1]", "a.jsonl:1: expected a job (a map)"),
    ],
)
def test_what_is_no_job_is_told(tmp_path, text, told):
    assert told in refused(job_files.read, written(tmp_path, "a.jsonl", text))


def test_a_table_of_jobs_is_read(tmp_path):
    text = (
        "name,submit,count,cpu,gpu,gpu_milli,min_member,run_time,estimate\nx,3,2,4,1,,1,1h,\ny,1,1,500m,1,250,,60,2m\n"
    )
    first, second = job_files.read(written(tmp_path, "a.csv", text)).jobs
    assert (first.name, first.run_time, first.estimate) == ("y", 60 * SECOND, 120 * SECOND)
    assert first.members[0].spec.containers[0].resources.requests == {"cpu": "500m", "pumice.dev/gpu-milli": "250"}
    assert second.members[0].spec.containers[0].resources.requests == {"cpu": "4", "nvidia.com/gpu": "1"}
    assert (second.size, second.min_member) == (2, 1)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("submit,runtime\n", "a.csv:1: runtime: unknown key; did you mean 'run_time'?"),
        ("submit,submit\n", "a.csv:1: a column stands there twice"),
        ("submit,run_time,cpu\n1,2\n", "a.csv:2: has 2 cells, and the header 3"),
        ("submit,run_time,cpu\n1,2,\n", "a.csv:2: cpu: the job asks for nothing"),
        ("submit,run_time,cpu\n,2,1\n", "a.csv:2: submit: is missing"),
        (
            "submit,run_time,gpu,gpu_milli\n1,2,2,500\n",
            "a.csv:2: gpu_milli: 500 of 2 cards; only one card can be shared",
        ),
        ('submit,run_time,cpu\n1,2,"3\n', "a.csv:2: is no line of CSV"),
    ],
)
def test_a_bad_table_names_line_and_field(tmp_path, text, told):
    assert told in refused(job_files.read, written(tmp_path, "a.csv", text))


# ---- what belongs together


def settings(file, **more):
    return Settings(trace=file, policies=(PolicyFile(name="p"),), **more)


def test_the_format_follows_from_the_name(tmp_path):
    table = written(tmp_path, "pods.csv", "name,cpu_milli,memory_mib,num_gpu,gpu_milli\n")
    jobs = written(tmp_path, "jobs.csv", "submit,run_time,cpu\n")
    named = {file: loading.guessed(file) for file in (table, jobs, "a.swf.gz", "b.jsonl", str(tmp_path))}
    assert list(named.values()) == ["openb", "jobs", "swf", "jobs", "recording"]
    assert loading.guessed("recording-1-aaaaaaaa-000001.jsonl.gz") == "recording"
    assert "say it with --format" in refused(loading.guessed, "trace.txt")


def test_a_trace_without_nodes_asks_for_a_cluster(tmp_path):
    file = written(tmp_path, "a.jsonl", json.dumps(JOB))
    assert "give them with --cluster FILE" in refused(loading.load, settings(file))


def test_priorities_and_names_are_checked(tmp_path):
    nodes = written(
        tmp_path,
        "nodes.yaml",
        "{apiVersion: v1, kind: Node, metadata: {name: n1}, status: {allocatable: {cpu: 4, pods: 10}}}\n---\n"
        "{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: high}, value: 7}\n",
    )
    file = written(tmp_path, "a.jsonl", json.dumps({**JOB, "priority": "hihg"}))
    assert "a.jsonl:1: priority: the cluster has no PriorityClass 'hihg'; did you mean 'high'?" in refused(
        loading.load, settings(file, cluster=nodes)
    )
    twice = json.dumps({**JOB, "name": "x"})
    file = written(tmp_path, "b.jsonl", f"{twice}\n{twice}")
    assert "b.jsonl:2: name: default/x is the job of line 1 too" in refused(loading.load, settings(file, cluster=nodes))


def test_a_cluster_with_pods_that_wait_is_refused(tmp_path):
    text = "{apiVersion: v1, kind: Pod, metadata: {name: p, namespace: a}, spec: {containers: [{name: c}]}}\n"
    assert "Pod a/p: waits for a node; pods that wait belong into the trace" in refused(
        cluster_files.read, written(tmp_path, "n.yaml", text)
    )
    assert f"{tmp_path}/n.yaml: " in refused(cluster_files.read, written(tmp_path, "n.yaml", "a: ["))
    wrong = "- {apiVersion: v1, kind: Nod, metadata: {name: n1}}\n"
    assert f"{tmp_path}/n.yaml:1: [0].kind: unknown kind 'Nod'; did you mean 'Node'?" in refused(
        cluster_files.read, written(tmp_path, "n.yaml", wrong)
    )
    assert f"{tmp_path}/none.yaml: cannot be read" in refused(cluster_files.read, str(tmp_path / "none.yaml"))


def test_a_cluster_is_written_as_in_a_scenario(tmp_path):
    text = "- repeat: 3\n  object: {apiVersion: v1, kind: Node, metadata: {name: 'n{i}'}, status: {allocatable: {cpu: 4}}}\n"
    found = cluster_files.read(written(tmp_path, "n.yaml", text))
    assert [each.metadata.name for kind, each in found if kind.name == "Node"] == ["n0", "n1", "n2"]


def lublin(tmp_path, count=9):
    rows = [swf_line(number, 10 * number, 60 * number, 2) for number in range(1, count + 1)]
    return written(tmp_path, "a.swf", "; MaxProcs: 4\n" + "\n".join(rows))


@pytest.mark.parametrize(
    ("how", "wanted"),
    [
        ("trace", [60, 120, 180, 240]),
        ("exact", [60, 120, 180, 240]),
        ("modal", [600, 600, 172800, 600]),
        ("none", [None] * 4),
    ],
)
def test_estimates_are_as_asked_for(tmp_path, how, wanted):
    found = loading.load(settings(lublin(tmp_path, 4), estimates=how)).trace.jobs
    assert [job.estimate if job.estimate is None else job.estimate // SECOND for job in found] == wanted


def test_a_load_stretches_arrivals(tmp_path):
    loaded = loading.load(settings(lublin(tmp_path), load=0.5))
    # 2 x 60 x (1 + ... + 9) = 5400 processor seconds on 4 processors: half full in 2700 s.
    assert loaded.trace.jobs[-1].submit - loaded.trace.jobs[0].submit == 2700 * SECOND
    assert loaded.trace.jobs[0].submit == 10 * SECOND
    assert reshaping.offered_load(loaded.trace, loaded.cluster) == pytest.approx(0.5)


def test_shaking_moves_submits_by_up_to_a_minute_and_is_seeded(tmp_path):
    file = lublin(tmp_path)
    plain, shaken = (loading.load(settings(file), number).trace.jobs for number in (0, 1))
    again, other = (loading.load(settings(file, seed=seed), 1).trace.jobs for seed in (42, 43))
    moved = {job.name: job.submit for job in shaken}
    assert all(0 <= moved[job.name] - job.submit <= 60 * SECOND for job in plain)
    assert shaken == again
    assert shaken != other
    assert [job.submit for job in shaken] == sorted(moved.values())


def test_the_first_jobs_alone_are_taken(tmp_path):
    assert len(loading.load(settings(lublin(tmp_path), first=3)).trace.jobs) == 3


def test_queues_that_nobody_gave_are_made(tmp_path):
    trace = swf.read(lublin(tmp_path))
    named = {found.metadata.name for kind, found in preparing.cluster(trace, trace.cluster) if kind.name == "Queue"}
    assert named == {"root", "default"}
