"""Shell completion: scripts, commands, flags, files, and names that a cluster knows."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from pumice.cli import completing
from pumice.cli.program import COMMANDS, program

ROOT = Path(__file__).parents[2]
RUN = "from pumice.cli import main; import sys; sys.argv = ['{name}']; main()"

PATIENT = (
    "from pumice.cli import completing; completing.PATIENCE = 60.0; "  # a busy machine is no cluster without answers
)


def completed(*words, name="pumice", **environment):
    """Give what a shell is told about the last word, as pairs of kind and value."""
    asked = {
        "COMP_WORDS": " ".join((name, *words)),
        "COMP_CWORD": str(len(words)),
        f"_{name.upper()}_COMPLETE": "bash_complete",
    }
    done = subprocess.run(
        [sys.executable, "-c", PATIENT + RUN.format(name=name)],
        env={**os.environ, **asked, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""
    return [tuple(line.split(",", 1)) for line in done.stdout.split()]


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (("te",), [("plain", "test")]),
        (("com",), [("plain", "completion")]),
        (("completion", ""), [("plain", "bash"), ("plain", "zsh"), ("plain", "fish")]),
        (("config", "sh"), [("plain", "show")]),
        (("plugin", ""), [("plain", "new")]),
        (("test", "sc"), [("file", "sc")]),
        (("test", "--plugins-dir", "pl"), [("dir", "pl")]),
        (("test", "--config", "x"), [("file", "x")]),
        (("scheduler", "--scheduler-n"), [("plain", "--scheduler-name")]),
        (("scheduler", "--kubeconfig", "x"), [("file", "x")]),
        (("scheduler", "--scheduler-conf", "./x"), [("file", "./x")]),
        (("scheduler", "--kubeconfig", "/nowhere", "--default-queue", ""), []),
        (("install", "--names"), [("plain", "--namespace")]),
        (("to",), [("plain", "top")]),
        (("job", "re"), [("plain", "resume")]),
        (("job", "list", "--sel"), [("plain", "--selector")]),
        (("job", "view", "--kubeconfig", "/nowhere", "-N", ""), []),
        (("queue", "operate", "-a", "o"), [("plain", "open")]),
        (("jobflow", "create", "-f", "x"), [("file", "x")]),
        (("top", "--sort", ""), [("plain", "waiting"), ("plain", "use"), ("plain", "name")]),
    ],
)
def test_last_word_is_completed(words, found):
    assert completed(*words) == found


@pytest.mark.parametrize(
    ("name", "words", "found"),
    [
        ("vcctl", ("jobt",), [("plain", "jobtemplate")]),
        ("vcctl", ("queue", "op"), [("plain", "operate")]),
        ("vsub", ("--schedu",), [("plain", "--scheduler")]),
    ],
)
def test_other_names_of_the_program_are_completed_too(name, words, found):
    assert completed(*words, name=name) == found
    script = CliRunner().invoke(program, ["completion", "bash", "--for", name], prog_name="pumice").output
    assert f"_{name.upper()}_COMPLETE=bash_complete" in script


def test_every_command_is_completed_without_importing_any():
    items = program.shell_complete(program.make_context("pumice", [], resilient_parsing=True), "")
    assert [item.value for item in items if not item.value.startswith("-")] == list(COMMANDS)


@pytest.mark.parametrize(
    ("shell", "registers"),
    [("bash", "complete -o nosort -F"), ("zsh", "compdef"), ("fish", "complete --no-files --command pumice")],
)
def test_each_shell_gets_a_script_that_asks_pumice(shell, registers):
    result = CliRunner().invoke(program, ["completion", shell], prog_name="pumice")
    assert result.exit_code == 0
    assert registers in result.output
    assert f"_PUMICE_COMPLETE={shell}_complete" in result.output


def test_script_for_bash_is_understood_by_bash():
    script = CliRunner().invoke(program, ["completion", "bash"], prog_name="pumice").output
    bash = shutil.which("bash")
    if bash is not None:
        assert subprocess.run([bash, "-n"], input=script, text=True, check=False).returncode == 0


def test_contexts_are_those_of_the_kubeconfigs(tmp_path):
    (tmp_path / "one").write_text("contexts: [{name: east}, {name: eden}]\n")
    (tmp_path / "two").write_text("contexts: [{name: west}, {name: early}]\n")
    (tmp_path / "broken").write_text("contexts: [")
    files = os.pathsep.join(str(tmp_path / name) for name in ("one", "missing", "broken", "two"))
    assert completed("nodes", "--context", "e", KUBECONFIG=files) == [
        ("plain", "early"),
        ("plain", "east"),
        ("plain", "eden"),
    ]
    assert completed("nodes", "--kubeconfig", str(tmp_path / "one"), "--context", "w", KUBECONFIG=files) == []


def test_cluster_that_does_not_answer_has_no_names(monkeypatch):
    monkeypatch.setattr(completing, "PATIENCE", 0.0)
    context = program.make_context("pumice", [], resilient_parsing=True)
    assert completing.namespaces(context, None, "") == []


def test_names_are_those_of_the_cluster(api_server):
    conf, namespace = str(api_server.kubeconfig), api_server.new_namespace()
    api_server.crds(ROOT / "deploy" / "crds")
    queue = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": f"of-{namespace}"}}
    api_server.kubectl("apply", "-f", "-", input=json.dumps(queue))
    for name, key in (("with", "volcano-scheduler.conf"), ("without", "other")):
        api_server.kubectl("create", "configmap", name, "-n", namespace, f"--from-literal={key}=x")
    there = ("scheduler", "--kubeconfig", conf)
    assert completed("install", "--namespace", namespace, KUBECONFIG=conf) == [("plain", namespace)]
    assert completed(*there, "--scheduler-conf", f"{namespace}/w") == [("plain", f"{namespace}/with")]
    assert completed(*there, "--scheduler-conf", f"{namespace}/o") == [("file", f"{namespace}/o")]
    assert completed(*there, "--default-queue", "of-") == [("plain", f"of-{namespace}")]
    job = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"name": "train"}}
    job["spec"] = {"tasks": [{"replicas": 1, "template": {"spec": {"containers": [{"name": "c", "image": "x"}]}}}]}
    api_server.kubectl("create", "-n", namespace, "-f", "-", input=json.dumps(job))
    assert completed("job", "view", "-k", conf, "-n", namespace, "-N", "t") == [("plain", "train")]
    api_server.kubectl("delete", "queue.scheduling.volcano.sh", f"of-{namespace}")
