"""Operators of other projects as processes, beside a cluster of `pumice up`: built by `make kube WITH=…`, with the definitions that they came with."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
from typing import TYPE_CHECKING, NamedTuple

import ray_dashboard
import spark_submit

from testbed import certificates, operator_files, processes, provide, waiting

if TYPE_CHECKING:
    from collections.abc import Mapping

_COMPLAINTS = re.compile(
    r"failed to (list|watch)|could not find the requested resource|cannot unmarshal|content.type|panic", re.IGNORECASE
)
_WEBHOOKS = "manifests.yaml"
_CONFIGURATION = """
apiVersion: {group}/v1alpha1
kind: Configuration
leaderElection: {{leaderElect: false}}
{certificates}: {{enable: false}}
webhook: {{host: 127.0.0.1, port: {port}{folder}}}
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


OPERATORS = {
    "argo": Operator(("--executor-image=example/argoexec:1",), environment={"LEADER_ELECTION_DISABLE": "true"}),
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
PAGES: dict[str, tuple[str, ...]] = {"jobs": ()}
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
    log = folder / "log"
    command = [str(provide.program(program)), *_arguments(program, folder)]
    with _surroundings(program, folder) as more, log.open("wb") as output:
        environment = {**os.environ, **cluster.environment, **OPERATORS[program].environment, **more}
        process = subprocess.Popen(command, stdout=output, stderr=output, env=environment)
        try:
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
        yield {}


def _arguments(program, folder):
    operator = OPERATORS[program]
    if not operator.group:
        return operator.flags
    _certificate(folder)
    text = _CONFIGURATION.format(
        group=operator.group,
        certificates=operator.certificates,
        port=processes.free_port(),
        folder="" if program == "trainer" else f", certDir: {folder}",
    )
    (folder / "settings.yaml").write_text(text + operator.settings)
    return ("--config", str(folder / "settings.yaml"), *operator.flags)


def _certificate(folder):
    """Make what the operator's own webhooks are served with."""
    made = certificates.Authority(folder).server("tls", ["IP:127.0.0.1", "DNS:localhost"])
    assert (made.certificate.name, made.key.name) == ("tls.crt", "tls.key")
