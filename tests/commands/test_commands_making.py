"""Flags become objects: jobs, queues and Commands, or an error that names the flag and what helps."""

from __future__ import annotations

import pytest

from pumice.api import kinds
from pumice.cli.volcano import files, making

PLAIN = {
    "name": "train",
    "namespace": "default",
    "image": "busybox",
    "minimum": 1,
    "replicas": 1,
    "requests": "cpu=1000m,memory=100Mi",
    "scheduler": "volcano",
}


def made(**flags):
    return making.job(making.Wanted(**{**PLAIN, **flags}))


def test_job_of_the_default_flags_is_that_of_vcctl():
    amounts = {"cpu": "1000m", "memory": "100Mi"}
    container = {
        "image": "busybox",
        "name": "train",
        "imagePullPolicy": "IfNotPresent",
        "resources": {"limits": amounts, "requests": amounts},
    }
    template = {
        "metadata": {"name": "train", "labels": {"job.volcano.sh": "train"}},
        "spec": {"restartPolicy": "Never", "containers": [container]},
    }
    assert made() == {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": "train", "namespace": "default"},
        "spec": {"minAvailable": 1, "schedulerName": "volcano", "tasks": [{"replicas": 1, "template": template}]},
    }


def test_queue_and_command_are_written_where_they_belong():
    job = made(queue="q", command="sh -c 'echo a b'", replicas=3, minimum=2)
    assert job["spec"]["queue"] == "q"
    assert job["spec"]["minAvailable"] == 2
    (task,) = job["spec"]["tasks"]
    assert task["replicas"] == 3
    assert task["template"]["spec"]["containers"][0]["command"] == ["sh", "-c", "echo a b"]


@pytest.mark.parametrize(
    ("flags", "limits"),
    [
        ({"requests": "cpu=2"}, {"cpu": "2", "memory": "100Mi"}),
        ({"requests": "cpu=500m,nvidia.com/gpu=1"}, {"cpu": "1000m", "memory": "100Mi"}),
        ({"requests": "cpu=500m", "limits": "cpu=1"}, {"cpu": "1"}),
        ({"requests": "", "limits": "memory=1Gi"}, {"memory": "1Gi"}),
    ],
)
def test_limit_that_nobody_gave_is_no_lower_than_the_request(flags, limits):
    (container,) = made(**flags)["spec"]["tasks"][0]["template"]["spec"]["containers"]
    assert container["resources"]["limits"] == limits


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        (
            {"minimum": 3},
            "--min 3 is more than --replicas 1, so the job could never start; give --replicas 3 or a smaller --min",
        ),
        ({"requests": "cpu"}, "--requests: 'cpu' is no amount; write NAME=QUANTITY, as in cpu=1000m,memory=100Mi"),
        ({"requests": "cpu=1=2"}, "--requests: 'cpu=1=2' is no amount"),
        ({"limits": "cpu=many"}, "--limits: cpu: 'many' is no quantity"),
        (
            {"requests": "cpu=2", "limits": "cpu=1"},
            "--requests cpu=2 is more than --limits cpu=1; no pod could be created",
        ),
        ({"command": "echo 'a"}, '--command: "echo \'a" cannot be taken apart into words'),
    ],
)
def test_flag_that_cannot_be_used_is_named_with_what_helps(flags, told):
    with pytest.raises(making.BadFlagError) as error:
        made(**flags)
    assert told in str(error.value)


@pytest.mark.parametrize(
    ("kind", "namespace", "action", "place"),
    [
        (kinds.JOB, "research", "AbortJob", "research"),
        (kinds.JOB, "research", "ResumeJob", "research"),
        (kinds.QUEUE, "", "OpenQueue", "default"),
        (kinds.QUEUE, "", "CloseQueue", "default"),
    ],
)
def test_command_belongs_to_its_target_and_names_the_action(kind, namespace, action, place):
    metadata = {"name": "x", "uid": "u", **({"namespace": namespace} if namespace else {})}
    owner = {
        "apiVersion": kind.api_version,
        "kind": kind.name,
        "name": "x",
        "uid": "u",
        "controller": True,
        "blockOwnerDeletion": True,
    }
    assert making.command(kind, {"metadata": metadata}, action) == {
        "apiVersion": "bus.volcano.sh/v1alpha1",
        "kind": "Command",
        "metadata": {"generateName": f"x-{action.lower()}-", "namespace": place, "ownerReferences": [owner]},
        "action": action,
        "target": owner,
    }


# -- files -----------------------------------------------------------------------------------------------------------

JOB = "apiVersion: batch.volcano.sh/v1alpha1\nkind: Job\nmetadata: {name: %s%s}\nspec: {tasks: []}\n"


def read(tmp_path, text, namespace="", name="job.yaml"):
    (tmp_path / name).write_text(text, encoding="utf-8")
    return files.read(str(tmp_path / name), kinds.JOB, namespace)


def test_every_job_of_a_file_is_read_and_gets_its_namespace(tmp_path):
    text = JOB % ("a", "") + "---\n" + JOB % ("b", ", namespace: own") + "---\n"
    assert [each["metadata"] for each in read(tmp_path, text)] == [
        {"name": "a", "namespace": "default"},
        {"name": "b", "namespace": "own"},
    ]
    assert read(tmp_path, JOB % ("a", ""), "asked")[0]["metadata"]["namespace"] == "asked"


def test_kind_may_be_missing_as_vcctl_fills_it_in(tmp_path):
    (job,) = read(tmp_path, "metadata: {name: a}\n")
    assert (job["apiVersion"], job["kind"]) == ("batch.volcano.sh/v1alpha1", "Job")


def test_list_of_kubectl_is_read_item_by_item(tmp_path):
    text = "kind: List\napiVersion: v1\nitems:\n- {metadata: {name: a}}\n- {metadata: {name: b}}\n"
    assert [each["metadata"]["name"] for each in read(tmp_path, text)] == ["a", "b"]


@pytest.mark.parametrize(
    ("text", "namespace", "told"),
    [
        ("", "", "holds no Job; write apiVersion: batch.volcano.sh/v1alpha1, kind: Job"),
        ("a: [", "", "line"),
        ("- 1\n", "", "line 1: is no object but list"),
        (
            "\nkind: Pod\napiVersion: v1\n",
            "",
            "line 2: is a Pod of v1, no Job of batch.volcano.sh/v1alpha1; kubectl create -f takes any kind",
        ),
        ("kind: Job\n", "", "line 1: metadata.name is missing"),
        (
            JOB % ("a", ", namespace: own"),
            "other",
            "metadata.namespace is 'own' and the namespace asked for is 'other'",
        ),
    ],
)
def test_file_that_cannot_be_used_is_named_with_its_line(tmp_path, text, namespace, told):
    with pytest.raises(files.BadFileError) as error:
        read(tmp_path, text, namespace)
    assert str(error.value).startswith(str(tmp_path))
    assert told in str(error.value)


@pytest.mark.parametrize(
    ("name", "told"), [("job.txt", "only yaml files are read"), ("missing.yaml", "there is no such file")]
)
def test_file_of_another_kind_or_none_is_refused(tmp_path, name, told):
    with pytest.raises(files.BadFileError, match=told):
        files.read(str(tmp_path / name), kinds.JOB, "")


def test_text_that_is_no_utf8_is_refused(tmp_path):
    (tmp_path / "job.yaml").write_bytes(b"\xff\xfe\xff")
    with pytest.raises(files.BadFileError, match="UTF-8"):
        files.read(str(tmp_path / "job.yaml"), kinds.JOB, "")
