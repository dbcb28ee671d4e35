"""`pumice up` judges Volcano's kinds as a cluster with webhooks would, and `pumice vet` by what is in it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from running_cluster import RunningCluster

from admission import admission_objects as objects

ROOT = Path(__file__).parents[2]


def created(cluster, manifest, *more):
    return cluster.kubectl("create", "-f", "-", *more, input=json.dumps(manifest), check=False)


def test_kubectl_shows_every_mistake_in_a_line_of_its_own(cluster):
    told = created(cluster, objects.job(minAvailable=9, queue="nope"))

    assert 'The Job "train" is invalid' in told
    assert "* spec.minAvailable: is 9, above the replicas of all tasks together (2)\n" in told
    assert '* spec.queue: is "nope", and there is no such queue; create it first\n' in told


def test_kubectl_says_what_the_page_shows(cluster):
    lines = (ROOT / "docs/examples/job-mistakes.yaml").read_text().splitlines()
    manifest = "\n".join(
        line for line in lines if "maxRetries" not in line
    )  # kubectl itself refuses a field that is unknown
    page = (ROOT / "docs/admission.md").read_text()
    shown = page.partition("$ kubectl create -f job.yaml\n")[2].partition("```")[0]

    told = cluster.kubectl("create", "-f", "-", input=manifest, check=False)

    assert [line.rstrip() for line in told.splitlines()] == shown.splitlines()


def test_a_job_is_completed_and_its_warnings_are_shown(cluster):
    given = objects.edited(objects.job(minAvailable=0, priorityClassName="absent"), ("metadata", "name"), "completed")

    told = created(cluster, given)

    assert "Warning: spec.priorityClassName" in told
    spec = json.loads(cluster.kubectl("get", "vcjob", "completed", "-o", "json"))["spec"]
    assert (spec["minAvailable"], spec["schedulerName"], spec["tasks"][0]["minAvailable"]) == (2, "volcano", 2)
    cluster.kubectl("delete", "vcjob", "completed")


def test_vet_with_a_kubeconfig_refuses_a_queue_that_is_not_there(cluster, tmp_path):
    path = tmp_path / "job.json"
    path.write_text(json.dumps(objects.job(queue="nope")))

    def vet(*more):
        command = [sys.executable, "-c", "from pumice.cli import main; main()", "vet", str(path), *more]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    alone, asked = vet(), vet("--kubeconfig", cluster.kubeconfig)

    assert (alone.returncode, asked.returncode) == (0, 1)
    assert "warning: job/train: spec.queue" in alone.stdout
    assert 'job/train: spec.queue: is "nope", and there is no such queue; create it first' in asked.stdout


def test_without_admission_everything_that_the_schemas_allow_is_stored(tmp_path):
    with RunningCluster(tmp_path, "--nodes", "1", "--scheduler", "none", "--admission", "none") as bare:
        created(bare, objects.job(minAvailable=9, queue="nope"))

        assert json.loads(bare.kubectl("get", "vcjob", "train", "-o", "json"))["spec"]["minAvailable"] == 9


def test_what_only_we_find_wrong_is_created_and_kubectl_shows_the_warning(cluster):
    odd = objects.job(plugins={"svc": ["--enable-networking"]})

    told = created(cluster, objects.edited(odd, ("metadata", "name"), "odd"))

    assert "Warning: spec.plugins.svc: --enable-networking is no flag of it" in told
    assert "job.batch.volcano.sh/odd created" in told
    cluster.kubectl("delete", "vcjob", "odd")
