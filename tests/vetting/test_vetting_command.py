"""`pumice vet`: every mistake with its file, line and field; the same findings as the rules have; exit status 0, 1 or 2."""

from __future__ import annotations

import json

import pytest
import yaml
from click.testing import CliRunner

from admission import admission_objects as objects
from pumice.cli import program

JOB = """\
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata:
  name: train
spec:
  minAvailable: 5
  queue: team-b
  maxRetries: 3
  tasks:
  - name: worker
    replicas: 2
    template:
      spec:
        contaners: []
        containers:
        - name: main
          image: busybox
          env:
          - {name: A, value: 1}
          resources:
            requests: {cpu: "2"}
            limits: {cpu: "1"}
"""
GOOD = yaml.safe_dump(objects.job())


def vet(*arguments, text=None):
    done = CliRunner().invoke(program.program, ["vet", *map(str, arguments)], input=text)
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done


def test_every_mistake_is_printed_with_file_line_and_field(tmp_path):
    path = tmp_path / "job.yaml"
    path.write_text(JOB)

    done = vet(path)

    assert done.exit_code == 1
    at = "job/train: spec.tasks[0].template.spec"
    assert done.stdout.splitlines() == [
        f"{path}:6: job/train: spec.minAvailable: is 5, above the replicas of all tasks together (2)",
        f'{path}:7: warning: job/train: spec.queue: is "team-b", which is not among what was read: it must exist in the cluster',
        f"{path}:8: job/train: spec.maxRetries: is no field that is known here; did you mean maxRetry?",
        f"{path}:14: warning: {at}.contaners: is no field that is known here, and is dropped from the pods; did you mean containers?",
        f"{path}:19: {at}.containers[0].env[0].value: must be a string, not an integer; put quotes around it",
        f"{path}:21: {at}.containers[0].resources.requests.cpu: is 2, above the limit of 1",
        "1 object in 1 file: 4 mistakes, 2 warnings",
    ]


def test_nothing_to_complain_about_is_status_0():
    done = vet("-", text=GOOD)

    assert (done.exit_code, done.stdout) == (0, "1 object in 1 file: nothing to complain about\n")


def test_warnings_count_only_where_asked():
    text = yaml.safe_dump(objects.job(queue="q"))

    assert vet("-", text=text).exit_code == 0
    assert vet("-", "--strict", text=text).exit_code == 1


def test_queues_of_other_files_are_known_whatever_the_order(tmp_path):
    (tmp_path / "a.yaml").write_text(yaml.safe_dump(objects.job(queue="q")))
    (tmp_path / "b.yml").write_text(yaml.safe_dump(objects.queue("q", "Closed")))
    (tmp_path / "c.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [objects.queue("z")]}))
    (tmp_path / "values.yaml").write_text("replicas: 3\n")
    (tmp_path / ".hidden.yaml").write_text("a: [\n")

    done = vet(tmp_path)

    assert done.exit_code == 1
    assert done.stdout.splitlines() == [
        f'{tmp_path}/a.yaml:8: job/train: spec.queue: is "q", whose state is Closed; only an Open queue takes anybody in',
        "3 objects in 3 files: 1 mistake, 0 warnings",
    ]


def test_lists_and_several_documents_keep_their_lines():
    text = yaml.safe_dump(
        {"apiVersion": "v1", "kind": "List", "items": [objects.queue("a"), objects.queue("b", weight=-1)]}
    )
    text += "---\n" + yaml.safe_dump(objects.queue("c", weight=-2))

    done = vet("-", "-o", "json", text=text)

    found = json.loads(done.stdout)
    lines = text.splitlines()
    assert (found["objects"], found["files"]) == (3, 1)
    assert [(each["name"], each["field"], lines[each["line"] - 1].strip()) for each in found["findings"]] == [
        ("b", "spec.weight", "weight: -1"),
        ("c", "spec.weight", "weight: -2"),
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: [\n", "<stdin>:2: while parsing a flow node, did not find expected node content"),
        ("just text\n", "<stdin>:1: is no manifest: it has no apiVersion and kind"),
        ("{}\n", "<stdin>:1: is no manifest: it has no apiVersion and kind"),
        ("apiVersion: batch.volcano.sh/v1\nkind: Job\nmetadata: {name: x}\n", "<stdin>:1: job/x: apiVersion: is batch.volcano.sh/v1, and Job is served as batch.volcano.sh/v1alpha1"),
        ("apiVersion: v1\nkind: Pod\nmetadata: 3\n", "<stdin>:3: pod/: metadata: must be an object, not the integer 3"),
        ("apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: a, image: x, command: [1]}]}\n", "<stdin>:4: pod/p: spec.containers[0].command[0]: must be a string, not an integer"),
        ("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: Upper}\n", "<stdin>:3: configmap/Upper: metadata.name: invalid value"),
        ("apiVersion: scheduling.volcano.sh/v1beta1\nkind: Queue\nmetadata:\n  name: q\n  labels: {a: 1}\n", "<stdin>:5: queue/q: metadata.labels.a: must be a string, not the integer 1; put quotes around it"),
        ("apiVersion: topology.volcano.sh/v1alpha1\nkind: HyperNode\nmetadata: {name: h}\nspec: {tier: 1, members: [{type: Node, selector: {}}]}\n", "<stdin>:4: hypernode/h: spec.members[0].selector: must have exactly one of"),
    ],
)  # fmt: skip
def test_what_is_no_good_manifest_is_named_with_its_line(text, message):
    done = vet("-", text=text)

    assert done.exit_code == 1
    assert message in done.stdout


def test_a_kind_that_nobody_knows_is_said_to_be_unchecked():
    done = vet("-", text="apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nmetadata: {name: x}\n")

    assert done.exit_code == 0
    assert "not checked: kubeflow.org/v1 PyTorchJob" in done.stderr


@pytest.mark.parametrize("arguments", [("/no/such/file",), (), ("--output", "xml", "-")])
def test_what_cannot_be_read_is_status_2(arguments):
    assert vet(*arguments, text="").exit_code == 2


@pytest.mark.parametrize(
    "manifest",
    [
        objects.job(minAvailable=9, plugins={"x": []}),
        objects.queue(guarantee={"resource": {"cpu": 2}}, parent="q"),
        objects.pod_group(minMember=-1),
        objects.hyper_node({"type": "Node", "selector": {"regexMatch": {"pattern": "("}}}),
        objects.cron_job(schedule="x", timeZone="Mars/Base"),
        objects.job_flow(a=["b"], b=["a"]),
    ],
    ids=lambda each: each["kind"],
)
def test_vet_finds_what_the_rules_find(manifest):
    done = vet("-", "-o", "json", text=yaml.safe_dump(manifest))

    found = {(each["field"], each["message"]) for each in json.loads(done.stdout)["findings"]}
    wanted = objects.judged(manifest, around=objects.known(complete=False)).all
    assert {(each.field, each.message) for each in wanted} <= found
    assert wanted


def test_a_template_of_flows_is_judged_like_the_jobs_made_from_it():
    template = {**objects.job(minAvailable=9), "apiVersion": "flow.volcano.sh/v1alpha1", "kind": "JobTemplate"}

    done = vet("-", text=yaml.safe_dump(template))

    assert "jobtemplate/train: spec.minAvailable: is 9" in done.stdout


ODD = [
    (objects.job(policies=[{"action": "TerminateJob", "events": ["PodEvicted", "PodFailed", "PodEvicted"]}]), "job-policy-repeats"),
    (objects.job(plugins={"tensorflow": [], "svc": ["--enable-networking"]}), "job-plugin-arguments"),
    (objects.edited(objects.job_flow(a=[], b=["a"]), ("spec", "flows", 2), {"name": "a"}), "flow-repeats"),
    (objects.edited(objects.cron_job(), ("spec", "jobTemplate", "spec", "minAvailable"), 9), "cron-template"),
]  # fmt: skip


@pytest.mark.parametrize(("manifest", "rule"), ODD, ids=[rule for _, rule in ODD])
def test_what_only_we_find_wrong_is_a_warning_that_counts_where_asked(manifest, rule):
    text = yaml.safe_dump(manifest)

    done = vet("-", "-o", "json", text=text)

    assert [(each["rule"], each["refuses"]) for each in json.loads(done.stdout)["findings"]] == [(rule, False)]
    assert done.exit_code == 0
    assert "warning: " in vet("-", text=text).stdout
    assert vet("-", "--strict", text=text).exit_code == 1
