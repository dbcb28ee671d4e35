"""Operators of other projects as processes, beside a cluster of `pumice up`: built by `make kube WITH=…`, with the definitions that they came with."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import re
import socket
import subprocess
from typing import TYPE_CHECKING, NamedTuple

import ray_dashboard
import spark_submit
import yaml

from testbed import certificates, operator_files, processes, provide, waiting

if TYPE_CHECKING:
    from collections.abc import Mapping

_COMPLAINTS = re.compile(
    r"failed to (list|watch)|could not find the requested resource|cannot unmarshal|content.type|panic", re.IGNORECASE
)
_CERTIFICATES = "k8s-webhook-server/serving-certs"
_WEBHOOKS = "manifests.yaml"
_CONFIGURATION = """
apiVersion: {group}/v1alpha1
kind: Configuration
leaderElection: {{leaderElect: false}}
{certificates}: {{enable: false}}
webhook: {{host: 127.0.0.1, port: {port}{place}}}
metrics: {{bindAddress: "0"}}
health: {{healthProbeBindAddress: "0"}}
"""


class Operator(NamedTuple):
    """How a program is started: what its file of settings is made of, or else its flags."""

    flags: tuple[str, ...] = ()
    group: str = ""
    certificates: str = "internalCertManagement"
    settings: str = ""
    environment: Mapping[str, str] = {}
    needs: str = ""
    """A manifest that has to be there before it starts."""


OPERATORS = {
    "argo": Operator(
        ("--executor-image=example/argoexec:1",),
        environment={"LEADER_ELECTION_DISABLE": "true"},
        needs="""
apiVersion: v1
kind: ConfigMap
metadata: {name: workflow-controller-configmap, namespace: default}
data: {metricsConfig: "enabled: false\\n"}
""",
    ),
    "jobset": Operator(group="config.jobset.x-k8s.io"),
    "kuberay": Operator(
        (
            "--batch-scheduler=volcano",
            "--enable-leader-election=false",
            "--metrics-addr=0",
            "--health-probe-bind-address=0",
        )
    ),
    "lws": Operator(group="config.lws.x-k8s.io", settings="gangSchedulingManagement: {schedulerProvider: volcano}\n"),
    "mpi": Operator(("--gang-scheduling=volcano", "--kube-api-qps=100", "--kube-api-burst=200")),
    "spark": Operator(
        (
            "controller",
            "start",
            "--enable-batch-scheduler",
            "--health-probe-bind-address=0",
            "--enable-ui-service=false",
        ),
        environment={"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": "443"},
    ),
    "trainer": Operator(group="config.trainer.kubeflow.org", certificates="certManagement"),
}
PAGES = {
    "argo": ("argo",),
    "jobs": (),
    "jobset": ("jobset",),
    "lws": ("lws",),
    "mpi": ("mpi",),
    "ray": ("kuberay",),
    "spark": ("spark",),
    "trainer": ("jobset", "trainer"),
}
"""Which operators run when a page is played."""


def can_play(page):
    """Tell whether all operators of a page were built here."""
    return all(provide.program(program) for program in PAGES[page])


def define(cluster, programs):
    """Apply the CustomResourceDefinitions of operators, those that their modules have."""
    files = [file for program in programs for file in operator_files.kept(program) if file.name != _WEBHOOKS]
    if files:
        cluster.kubectl("apply", "--server-side", *(word for file in files for word in ("-f", str(file))))
        cluster.kubectl("wait", "--for=condition=Established", "customresourcedefinitions", "--all", "--timeout=240s")


@contextlib.contextmanager
def beside(cluster, programs):
    """Run operators until the block ends; then they have to run still, and to have understood every answer."""
    define(cluster, programs)
    with contextlib.ExitStack() as stack:
        running = [stack.enter_context(_running(cluster, program)) for program in programs]
        yield
        for process, log in running:
            assert process.poll() is None, log.read_text()[-4000:]
            assert [line for line in log.read_text().splitlines() if _COMPLAINTS.search(line)] == []


@contextlib.contextmanager
def _running(cluster, program):
    folder = cluster.folder / program
    folder.mkdir()
    if OPERATORS[program].needs:
        cluster.kubectl("apply", "-f", "-", input=OPERATORS[program].needs)
    log = folder / "log"
    command = [str(provide.program(program)), *_arguments(program, folder)]
    with _surroundings(program, folder) as more, log.open("wb") as output:
        environment = {**os.environ, **cluster.environment, **OPERATORS[program].environment, **more}
        process = subprocess.Popen(command, stdout=output, stderr=output, env=environment)
        try:
            _call_webhooks(cluster, program, folder, process)
            yield process, log
        finally:
            process.terminate()
            process.wait(timeout=waiting.PATIENCE)


@contextlib.contextmanager
def _surroundings(program, folder):
    """Give the settings of what an operator calls that cannot run here."""
    if program == "kuberay":
        with ray_dashboard.answering() as settings:
            yield settings
    elif program == "spark":
        yield {"SPARK_HOME": str(spark_submit.home(folder))}
    else:
        yield {"TMPDIR": str(folder)}


def _arguments(program, folder):
    operator = OPERATORS[program]
    if not operator.group:
        return operator.flags
    _certificate(folder)
    text = _CONFIGURATION.format(
        group=operator.group,
        certificates=operator.certificates,
        port=processes.free_port(),
        place="" if program == "trainer" else f", certDir: {folder / _CERTIFICATES}",
    )
    (folder / "settings.yaml").write_text(text + operator.settings)
    return ("--config", str(folder / "settings.yaml"), *operator.flags)


def _call_webhooks(cluster, program, folder, process):
    """Have the webhooks of an operator called, once it listens: as its own files say, but on this machine."""
    files = [file for file in operator_files.kept(program) if file.name == _WEBHOOKS]
    if not files:
        return
    port = yaml.safe_load((folder / "settings.yaml").read_text())["webhook"]["port"]
    waiting.until(lambda: _listens(port), (folder / "log").read_text, ended=lambda: process.poll() is not None)
    authority = base64.b64encode((folder / _CERTIFICATES / "ca.crt").read_bytes()).decode()
    for manifest in yaml.safe_load_all(files[0].read_text()):
        manifest["metadata"]["name"] = f"{program}-{manifest['metadata']['name']}"
        for webhook in manifest["webhooks"]:
            path = webhook["clientConfig"]["service"]["path"]
            webhook["clientConfig"] = {"url": f"https://127.0.0.1:{port}{path}", "caBundle": authority}
        cluster.kubectl("apply", "-f", "-", input=json.dumps(manifest))


def _listens(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _certificate(folder):
    """Make what the operator's own webhooks are served with, where it looks for it: below the folder for passing things."""
    folder = folder / _CERTIFICATES
    folder.mkdir(parents=True)
    made = certificates.Authority(folder).server("tls", ["IP:127.0.0.1", "DNS:localhost"])
    assert (made.certificate.name, made.key.name) == ("tls.crt", "tls.key")
