"""`pumice scheduler` as a process of its own on a real API server."""

from __future__ import annotations

import json
import re
import signal

import pytest
from server_process import ROOT, Process, gang, node, phase, placed, pod, wait_for

import elections

pytestmark = pytest.mark.kube

GOOD = 'actions: "enqueue, allocate, backfill"\ntiers:\n- plugins: [{name: priority}, {name: gang}]\n'
CLOSED = GOOD.replace("enqueue, allocate, backfill", "enqueue")


@pytest.fixture
def server(empty_api_server):
    """An API server with our kinds, two nodes of four cores, and nothing else."""
    empty_api_server.crds(ROOT / "deploy" / "crds")
    for name in ("n1", "n2"):
        node(empty_api_server, name)
    return empty_api_server


@pytest.fixture
def lock(server, namespace):
    return elections.flags(namespace)


def test_a_gang_is_bound_whole_and_told_of_everywhere(server, namespace):
    gang(server, namespace, "g", 3, cpu="2")
    gang(server, namespace, "big", 5, cpu="2")
    pod(server, namespace, "alone")
    pod(server, namespace, "foreign", scheduler="somebody-else")
    with Process(server, "--leader-elect=false") as scheduler:
        scheduler.deciding()
        wait_for(lambda: len(placed(server, namespace)) == 4, scheduler)
        wait_for(lambda: phase(server, namespace, "g") == "Running", scheduler)
        assert sorted(placed(server, namespace)) == ["alone", "g-0", "g-1", "g-2"]
        queues = server.kubectl(
            "get", "queues.scheduling.volcano.sh", "-o", "jsonpath={.items[*].metadata.name}"
        ).split()
        assert sorted(queues) == ["default", "root"]
        wait_for(lambda: "Successfully assigned" in server.kubectl("get", "events", "-n", namespace), scheduler)
        _, text = scheduler.get("metrics", "/metrics")
        assert 'volcano_task_scheduling_latency_milliseconds_count{stage="Bound"} 4.0' in text
        assert 'volcano_unschedule_task_count{job_id="big"} 5.0' in text
        assert 'volcano_queue_allocated_milli_cpu{queue_name="default"} 7000.0' in text
        assert scheduler.get("health", "/healthz") == (200, "ok")
        assert scheduler.stop() == 0
        assert f"msg=bind pod={namespace}/g-0 node=n" in scheduler.log
        assert "flag without effect" not in scheduler.log
        assert server.token not in scheduler.log


def test_a_dump_and_a_summary_are_made_on_signals(server, namespace, tmp_path):
    gang(server, namespace, "g", 2, cpu="3")
    with Process(server, "--leader-elect=false", f"--cache-dump-dir={tmp_path}") as scheduler:
        scheduler.deciding()
        wait_for(lambda: len(placed(server, namespace)) == 2, scheduler)
        scheduler.signal(signal.SIGUSR1)
        scheduler.signal(signal.SIGUSR2)
        wait_for(lambda: "msg=summary" in scheduler.log and list(tmp_path.glob("snapshot-*.json")), scheduler)
        assert "nodes=2" in scheduler.log
        objects = json.loads(next(tmp_path.glob("snapshot-*.json")).read_bytes())
        assert {found["metadata"]["name"] for found in objects if found["kind"] == "Node"} == {"n1", "n2"}
        assert scheduler.stop() == 0


def test_configuration_is_followed_broken_and_mended_while_running(server, namespace, tmp_path):
    path = tmp_path / "scheduler.conf"
    path.write_text(CLOSED)
    with Process(server, "--leader-elect=false", f"--scheduler-conf={path}") as scheduler:
        scheduler.deciding()
        gang(server, namespace, "g", 2)
        wait_for(lambda: phase(server, namespace, "g") == "Inqueue", scheduler)
        path.write_text(GOOD.replace("gang", "gangs"))
        wait_for(lambda: "configuration refused" in scheduler.log, scheduler)
        assert re.search(r"problem=.*line 3", scheduler.log)
        assert "[!]configuration" in scheduler.get("health", "/readyz?verbose")[1]
        assert "pumice_configuration_valid 0.0" in scheduler.get("metrics", "/metrics")[1]
        assert placed(server, namespace) == {}
        path.write_text(GOOD)
        wait_for(lambda: len(placed(server, namespace)) == 2, scheduler)
        assert "pumice_configuration_valid 1.0" in scheduler.get("metrics", "/metrics")[1]
        assert scheduler.stop() == 0


def test_configuration_may_come_from_a_config_map(server, namespace):
    server.kubectl("create", "configmap", "conf", "-n", namespace, f"--from-literal=volcano-scheduler.conf={GOOD}")
    gang(server, namespace, "g", 2)
    with Process(server, "--leader-elect=false", f"--scheduler-conf={namespace}/conf") as scheduler:
        wait_for(lambda: len(placed(server, namespace)) == 2, scheduler)
        assert f'source="configmap {namespace}/conf"' in scheduler.log
        bad = json.dumps({"data": {"volcano-scheduler.conf": GOOD.replace("gang", "gangs")}})
        server.kubectl("patch", "configmap", "conf", "-n", namespace, "--type=merge", "-p", bad)
        wait_for(lambda: "the last good configuration stays in force: line 3" in refusal(server, namespace), scheduler)
        assert scheduler.stop() == 0
    with Process(server, "--leader-elect=false", f"--scheduler-conf={namespace}/conf") as scheduler:
        assert scheduler.wait() == 1
        assert "the scheduler cannot start: line 3" in refusal(server, namespace)


def refusal(server, namespace):
    chosen = "involvedObject.kind=ConfigMap,involvedObject.name=conf,reason=ConfigurationRefused"
    return server.kubectl(
        "get", "events", "-n", namespace, f"--field-selector={chosen}", "-o=jsonpath={.items[*].message}"
    )


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        (["--scheduler-conf=/nowhere/conf"], "/nowhere/conf cannot be read: No such file or directory"),
        (["--scheduler-conf=configmap:default/nothing"], "configmap default/nothing cannot be read"),
        (["--listen-address=192.0.2.1:1"], "cannot serve metrics on 192.0.2.1:1"),
        (["--plugins-dir=/nowhere"], "--plugins-dir /nowhere: no such folder"),
    ],
)
def test_what_keeps_it_from_starting_is_said_and_ends_it(server, flags, told):
    with Process(server, "--leader-elect=false", *flags) as scheduler:
        assert scheduler.wait() == 1
        assert told in scheduler.log


def test_every_problem_of_the_first_configuration_has_a_line_of_its_own(server, tmp_path):
    (tmp_path / "conf").write_text('actions: "alocate"\ntires: []\n')
    with Process(server, "--leader-elect=false", f"--scheduler-conf={tmp_path / 'conf'}") as scheduler:
        assert scheduler.wait() == 1
        assert scheduler.log.count('msg="configuration refused"') == 2
        assert 'problem="line 1: actions: unknown action' in scheduler.log


PLUGIN = "from pumice.framework.plugin import Plugin\nclass Mine(Plugin):\n name = 'mine'\n"


def test_files_that_cannot_be_used_are_told_at_the_start_and_keep_it_from_starting_only_where_they_are_listed(
    server, tmp_path
):
    folder, conf = tmp_path / "plugins", tmp_path / "conf"
    folder.mkdir()
    (folder / "good.py").write_text(PLUGIN)
    (folder / "bad.py").write_text("import nothing_of_this_name\n")
    (folder / "gang.py").write_text(PLUGIN.replace("mine", "gang"))
    flags = (f"--plugins-dir={folder}", f"--scheduler-conf={conf}", "--cache-dump-dir=/nowhere")
    conf.write_text('actions: "allocate"\ntiers: [{plugins: [{name: mine}, {name: priority}]}]\n')
    with Process(server, "--leader-elect=false", *flags) as scheduler:
        scheduler.ready()
        log, text = scheduler.log, scheduler.get("health", "/readyz?verbose")[1]
        assert log.count('msg="a plugin or action cannot be used"') == 2
        for told in (
            f"{folder}/bad.py could not be loaded: line 1: ModuleNotFoundError",
            f"{folder}/gang.py: class Mine claims",
        ):
            assert told in log
            assert told in text
        assert 'msg="dumps cannot be written" folder=/nowhere problem="No such file or directory" remedy=' in log
        assert scheduler.stop() == 0
    conf.write_text(conf.read_text().replace("priority", "gang"))
    with Process(server, "--leader-elect=false", "--cache-dumper=false", *flags) as scheduler:
        assert scheduler.wait() == 1
        assert re.search(rf'msg="configuration refused" .*{folder}/gang\.py: class Mine claims the name', scheduler.log)
        assert "dumps cannot be written" not in scheduler.log


def test_a_plugin_that_breaks_down_is_named_in_the_log_in_readyz_and_in_the_metrics(server, namespace, tmp_path):
    conf = tmp_path / "conf"
    body = " points = frozenset({'NodeOrder'})\n def open(self, session):\n  session.score.add(lambda *_: 1 / 0)\n"
    (tmp_path / "mine.py").write_text(PLUGIN + body)
    conf.write_text(GOOD.replace("{name: gang}", "{name: gang}, {name: mine}"))
    gang(server, namespace, "g", 1)
    with Process(server, "--leader-elect=false", f"--plugins-dir={tmp_path}", f"--scheduler-conf={conf}") as scheduler:
        told = "[!]deciding: plugin mine broke down at NodeOrder (Mine.open.<lambda>, mine.py line "
        wait_for(lambda: told in scheduler.get("health", "/readyz?verbose")[1], scheduler)
        fields = r'plugin=mine action=allocate at=NodeOrder place="mine.py line \d+" error="ZeroDivisionError: division by zero" exception='
        wait_for(lambda: re.search(f'msg="a plugin or action broke down" {fields}', scheduler.log), scheduler)
        counted = r'^pumice_breakdowns_total\{action="allocate",plugin="mine"\} [1-9]'
        wait_for(lambda: re.search(counted, scheduler.get("metrics", "/metrics")[1], re.MULTILINE), scheduler)
        conf.write_text(GOOD)
        wait_for(lambda: "[!]deciding" not in scheduler.get("health", "/readyz?verbose")[1], scheduler)
        wait_for(lambda: placed(server, namespace), scheduler)
        assert scheduler.stop() == 0


def test_a_lease_without_a_namespace_is_a_warning_and_a_note(server):
    with Process(server, "--leader-elect-resource-namespace=nowhere") as scheduler:
        told = "[!]standing by: the lease cannot be taken: Lease nowhere/volcano: POST "
        wait_for(lambda: told in scheduler.get("health", "/readyz?verbose")[1], scheduler)
        wait_for(lambda: 'level=warning msg="the lease cannot be taken"' in scheduler.log, scheduler)
        assert "standing by" not in scheduler.log
        assert scheduler.stop() == 0


def test_a_second_installation_serves_other_names_or_refuses_to_start_and_says_who_serves_them(server, namespace, lock):
    pod(server, namespace, "theirs")
    pod(server, namespace, "ours", scheduler="second")
    with Process(server, *lock, "--leader-elect-resource-name=first") as first:
        first.deciding()
        with Process(server, *lock, "--leader-elect-resource-name=second") as refused:
            assert refused.wait() == 1
            assert "msg=leading" not in refused.log
            assert (
                f"who holds Lease {namespace}/first: give this one another --scheduler-name, or end it" in refused.log
            )
        with Process(server, "--leader-elect=false") as unelected:
            assert unelected.wait() == 1
            assert f"who holds Lease {namespace}/first" in unelected.log
        flags = ("--leader-elect-resource-name=second", "--scheduler-name=second")
        with Process(server, *lock, *flags) as second:
            second.deciding()
            wait_for(lambda: placed(server, namespace).keys() == {"theirs", "ours"}, second)
            assert f"msg=bind pod={namespace}/ours" in second.log
            assert f"msg=bind pod={namespace}/theirs" not in second.log
            assert second.stop() == 0
        assert first.stop() == 0


def silence(scheduler):
    found = re.search(
        r"^pumice_api_server_silence_seconds (\S+)", scheduler.get("metrics", "/metrics")[1], re.MULTILINE
    )
    return float(found[1])


@pytest.mark.parametrize("elect", [False, True])
def test_an_api_server_that_is_away_is_told_and_leaves_it_ready(server, lock, elect):
    flags = lock if elect else ()
    with Process(server, f"--leader-elect={str(elect).lower()}", *flags) as scheduler:
        scheduler.deciding()

        def says(line):
            status, text = scheduler.get("health", "/readyz?verbose")
            assert status == 200
            return re.search(line, text, re.MULTILINE)

        wait_for(lambda: says(r"^\[\+\]api-server ok: last sign of life \d+s ago$"), scheduler)
        wait_for(lambda: says(r"^\[\+\]watch nodes ok: 2 objects, last heard \d+s ago$"), scheduler)
        with server.down():
            away = r"^\[!\]api-server: no sign of life for (?:[2-9]|\d\d+)s; (\d+) of \1 watches are down$"
            wait_for(lambda: says(away), scheduler)
            assert scheduler.get("health", "/readyz") == (200, "ok")
            wait_for(lambda: says(r"^\[!\]watch nodes: .*2 objects, last heard .*refused"), scheduler)
            assert silence(scheduler) > 1
        wait_for(lambda: says(r"^\[\+\]api-server ok"), scheduler)
        node(server, "n3")
        wait_for(lambda: silence(scheduler) < 3, scheduler)
        assert scheduler.stop() == 0


def test_a_standby_is_ready_and_takes_over_at_once_from_a_leader_that_ends(server, namespace, lock):
    with Process(server, *lock) as first, Process(server, *lock) as second:
        wait_for(lambda: sum("msg=leading" in each.log for each in (first, second)) == 1)
        leader, standby = (first, second) if "msg=leading" in first.log else (second, first)
        leader.deciding()
        standby.ready()
        wait_for(lambda: "[+]leading\n" in leader.get("health", "/readyz?verbose")[1])
        wait_for(lambda: "[+]standing by: held by " in standby.get("health", "/readyz?verbose")[1])
        gang(server, namespace, "one", 2)
        wait_for(lambda: len(placed(server, namespace)) == 2, leader)
        assert f"msg=bind pod={namespace}/one-0" not in standby.log
        assert leader.stop() == 0
        standby.deciding()
        gang(server, namespace, "two", 2)
        wait_for(lambda: len(placed(server, namespace)) == 4, standby)
        assert f"msg=bind pod={namespace}/one-" not in standby.log
        lease = server.call("GET", f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/volcano")
        assert lease["spec"]["leaseTransitions"] == 1
        assert standby.stop() == 0


def test_a_leader_that_is_killed_is_followed_after_its_lease(server, namespace):
    lock = elections.flags(namespace, lasts=30)
    gang(server, namespace, "one", 2)
    with Process(server, *lock) as leader:
        wait_for(lambda: len(placed(server, namespace)) == 2, leader)
        with Process(server, *lock) as standby:
            standby.ready()
            leader.kill()
            gang(server, namespace, "two", 3)
            wait_for(lambda: len(placed(server, namespace)) == 5, standby)
            assert standby.stop() == 0


def test_a_leader_whose_lease_is_taken_ends_with_a_failure(server, namespace, lock):
    with Process(server, *lock) as scheduler:
        scheduler.deciding()
        patch = '{"spec": {"holderIdentity": "a-thief"}}'
        server.kubectl("patch", "lease", "volcano", "-n", namespace, "--type=merge", "-p", patch)
        assert scheduler.wait() == 1
        assert "the lease is lost" in scheduler.log
        assert "a-thief" in scheduler.log


def test_a_second_signal_ends_it_at_once(server, namespace):
    with Process(server, "--leader-elect=false") as scheduler:
        scheduler.deciding()
        scheduler.signal(signal.SIGSTOP)
        scheduler.signal(signal.SIGTERM)
        scheduler.signal(signal.SIGINT)
        scheduler.signal(signal.SIGCONT)
        assert scheduler.wait() == 1
