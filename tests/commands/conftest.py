"""The API server of `pumice up` in this process, without nodes, scheduler and controllers: what a command writes stays as it was written."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from contract.contract_up import UpServer
from pumice.cli.program import program
from pumice.cli.volcano import programs

CRDS = Path(__file__).parents[2] / "deploy" / "crds"


class Commands:
    """Runs commands against one server, in a namespace of its own."""

    def __init__(self, server, namespace):
        self.server = server
        self.namespace = namespace

    def run(self, *arguments, name="pumice", text=None):
        """Run a command; its options come first, so that what a test adds is at the end."""
        command = program if name == "pumice" else programs.find(name)
        there = ["--kubeconfig", str(self.server.kubeconfig)]
        return CliRunner().invoke(command, [*arguments, *there], prog_name=name, input=text)

    def printed(self, *arguments, **more):
        """Run a command that has to succeed; gives its standard output."""
        result = self.run(*arguments, **more)
        assert result.exit_code == 0, result.output
        return result.stdout

    def failed(self, *arguments, status=1, **more):
        """Run a command that has to fail; gives its standard output."""
        result = self.run(*arguments, **more)
        assert result.exit_code == status, result.output
        return result.stdout

    def path(self, group, plural, name="", *, namespaced=True):
        where = f"/apis/{group}" + (f"/namespaces/{self.namespace}" if namespaced else "")
        return f"{where}/{plural}" + (f"/{name}" if name else "")

    def job(self, name, **status):
        """Create a job as a controller would leave it."""
        jobs = self.path("batch.volcano.sh/v1alpha1", "jobs")
        template = {"spec": {"containers": [{"name": "c", "image": "x"}]}}
        made = {"metadata": {"name": name}, "spec": {"tasks": [{"replicas": 2, "template": template}]}}
        made.update(apiVersion="batch.volcano.sh/v1alpha1", kind="Job")
        self.server.call("POST", jobs, made)
        if status:
            patch = {"status": status}
            self.server.call("PATCH", f"{jobs}/{name}/status", patch, content_type="application/merge-patch+json")

    def commands(self, namespace=None):
        """Give the Commands of a namespace that are about to be carried out."""
        found = self.server.call(
            "GET", f"/apis/bus.volcano.sh/v1alpha1/namespaces/{namespace or self.namespace}/commands"
        )
        return found["items"]


@pytest.fixture(scope="session")
def up_server(tmp_path_factory):
    with UpServer(tmp_path_factory.mktemp("commands")) as server:
        yield server


@pytest.fixture(scope="session")
def real_server(api_server):
    """The real API server, with the kinds that commands speak of."""
    api_server.crds(CRDS)
    return api_server


@pytest.fixture
def commands(up_server):
    return Commands(up_server, up_server.new_namespace())


@pytest.fixture(params=["up", pytest.param("kube", marks=pytest.mark.kube)])
def either(request):
    """The same on the server of `pumice up` and on a real one."""
    if request.param == "up":
        return request.getfixturevalue("commands")
    server = request.getfixturevalue("real_server")
    return Commands(server, server.new_namespace())


@pytest.fixture
def queue(either):
    """A queue with a name of its own."""
    name = f"q-{either.namespace}"
    either.printed("queue", "create", "-n", name, "-w", "4")
    yield name
    either.server.call("DELETE", f"/apis/scheduling.volcano.sh/v1beta1/queues/{name}")
