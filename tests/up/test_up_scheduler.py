"""Who schedules a cluster of `pumice up`: itself, or another process through plain HTTP; and what it starts from."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from click.testing import CliRunner
from running_cluster import RunningCluster

from pumice.cli.program import program
from testbed.waiting import until

PODS = "/api/v1/namespaces/default/pods"


def pod(name, **metadata):
    return {
        "metadata": {"name": name, **metadata},
        "spec": {"schedulerName": "volcano", "restartPolicy": "Never", "containers": [{"name": "c", "image": "x"}]},
    }


def test_another_process_schedules_a_cluster_that_has_no_scheduler(tmp_path):
    with RunningCluster(tmp_path, "--nodes", "2", "--scheduler", "none") as running:
        caller = running.caller
        caller.call("POST", PODS, pod("p"))
        command = [sys.executable, "-c", "from pumice.cli import main; main()", "scheduler"]
        command += ["--kubeconfig", running.kubeconfig, "--leader-elect=false"]
        with subprocess.Popen(command, stderr=subprocess.DEVNULL) as scheduler:
            until(lambda: caller.call("GET", f"{PODS}/p")["status"]["phase"] == "Running")
            scheduler.terminate()


WAITING = """
actions: "enqueue"
tiers:
- plugins: [{name: priority}, {name: gang}]
- plugins: [{name: predicates}, {name: nodeorder}]
"""


def test_a_change_of_the_configuration_is_followed_and_a_mistake_in_it_is_not(tmp_path):
    config = tmp_path / "scheduler.yaml"
    config.write_text(WAITING)
    with RunningCluster(tmp_path, "--nodes", "2", "--config", str(config)) as running:
        caller = running.caller

        def phase(name):
            return caller.call("GET", f"{PODS}/{name}")["status"]["phase"]

        caller.call("POST", PODS, pod("first"))
        groups = "/apis/scheduling.volcano.sh/v1beta1/namespaces/default/podgroups"
        until(
            lambda: [each.get("status", {}).get("phase") for each in caller.call("GET", groups)["items"]] == ["Inqueue"]
        )
        assert "nodeName" not in caller.call("GET", f"{PODS}/first")["spec"]
        arrive(config, WAITING.replace("enqueue", "enqueue, allocate, backfill"))
        until(lambda: phase("first") == "Running")
        arrive(config, WAITING.replace("enqueue", "enqueue, no-such-action"))
        log = Path(running.kubeconfig).parent / "scheduler.log"
        until(lambda: "no-such-action" in log.read_text())
        caller.call("POST", PODS, pod("second"))
        until(lambda: phase("second") == "Running")


def arrive(path, text):
    """Replace a file as editors and ConfigMaps do: at once."""
    new = path.with_suffix(".new")
    new.write_text(text)
    new.replace(path)


def test_a_dump_is_where_a_cluster_starts(tmp_path):
    dump = [
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "old"}, "status": {"allocatable": {"cpu": "4"}}},
        {"apiVersion": "v1", "kind": "Pod", **pod("p", namespace="team"), "status": {"phase": "Pending"}},
    ]
    path = tmp_path / "dump.json"
    path.write_text(json.dumps(dump))
    with RunningCluster(tmp_path, "--scheduler", "none", "--load", str(path)) as running:
        assert "1 nodes" in running.text
        assert running.caller.call("GET", "/api/v1/namespaces/team/pods/p")["spec"]["containers"][0]["image"] == "x"


def test_nothing_is_started_with_what_makes_no_sense(tmp_path):
    path = tmp_path / "bad.json"
    path.write_text("[{}]")
    strange = tmp_path / "strange.json"
    strange.write_text(json.dumps([{"apiVersion": "example.com/v1", "kind": "Rocket", "metadata": {"name": "r"}}]))
    cases = [
        (("--nodes", "no-such-file"), 2, "no-such-file: No such file"),
        (("--nodes", "1000000"), 2, "1 to 100000 nodes"),
        (("--load", str(path)), 1, "without kind or metadata.name"),
        (("--load", str(strange)), 1, "object 0 is a example.com/v1 Rocket named 'r': that is not served here"),
        (("--config", str(tmp_path / "none.yaml")), 1, "none.yaml cannot be read"),
        (("--speed", "0"), 2, "--speed"),
    ]
    for arguments, status, words in cases:
        done = CliRunner().invoke(program, ["up", "--no-web", *arguments])
        assert done.exit_code == status, (arguments, done.output)
        assert words in done.stderr
