"""What `pumice up --data` has acknowledged is there after a kill, a restart, and anything else that is not the loss of the disk."""

from __future__ import annotations

import asyncio
import signal
import threading
from pathlib import Path

import pytest
from running_cluster import RunningCluster

from pumice.apiserver import cluster
from pumice.local_cluster import journal
from pumice.sim.store import ObjectStore
from testbed.waiting import until

MAPS = "/api/v1/namespaces/default/configmaps"


def arguments(folder):
    return ("--nodes", "2", "--scheduler", "none", "--data", str(folder / "data"))


def test_a_killed_process_loses_nothing_that_was_acknowledged(tmp_path):
    running = RunningCluster(tmp_path, *arguments(tmp_path))
    running.start()
    acknowledged = []
    ending = threading.Event()

    def write(worker):
        caller, number = running.caller, 0
        while not ending.is_set():
            name = f"m-{worker}-{number}"
            try:
                caller.call("POST", MAPS, {"metadata": {"name": name}, "data": {"n": str(number)}})
            except Exception:  # noqa: BLE001  the process is killed in the middle of it
                return
            acknowledged.append(name)
            number += 1

    workers = [threading.Thread(target=write, args=(worker,)) for worker in range(4)]
    for worker in workers:
        worker.start()
    until(lambda: len(acknowledged) >= 40)
    running.stop(signal.SIGKILL)
    ending.set()
    for worker in workers:
        worker.join()
    with RunningCluster(tmp_path, *arguments(tmp_path)) as again:
        found = {each["metadata"]["name"] for each in again.caller.call("GET", MAPS)["items"]}
    assert set(acknowledged) <= found


def test_port_certificates_and_versions_are_kept_across_a_restart(tmp_path):
    with RunningCluster(tmp_path, *arguments(tmp_path)) as first:
        made = first.caller.call("POST", MAPS, {"metadata": {"name": "kept"}})
        kubeconfig = Path(first.kubeconfig).read_text()
    with RunningCluster(tmp_path, *arguments(tmp_path)) as second:
        assert Path(second.kubeconfig).read_text() == kubeconfig
        found = second.caller.call("GET", f"{MAPS}/kept")
        assert found == made
        changed = second.caller.call(
            "PATCH", f"{MAPS}/kept", {"data": {"a": "b"}}, content_type="application/merge-patch+json"
        )
        assert int(changed["metadata"]["resourceVersion"]) > int(made["metadata"]["resourceVersion"])


def test_a_definition_and_its_objects_are_served_again_after_a_restart(tmp_path):
    queue = {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": "mine"},
        "spec": {"weight": 3},
    }
    path = "/apis/scheduling.volcano.sh/v1beta1/queues"
    with RunningCluster(tmp_path, *arguments(tmp_path)) as first:
        first.caller.call("POST", path, queue)
    with RunningCluster(tmp_path, *arguments(tmp_path)) as second:
        assert second.caller.call("GET", f"{path}/mine")["spec"]["weight"] == 3


def test_two_processes_do_not_share_a_folder(tmp_path):
    with RunningCluster(tmp_path, *arguments(tmp_path)), pytest.raises(AssertionError, match="another process uses it"):
        RunningCluster(tmp_path, *arguments(tmp_path)).start()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_in_good_order(tmp_path, number):
    running = RunningCluster(tmp_path, *arguments(tmp_path))
    running.start()
    assert running.stop(number) == 0


def test_a_file_that_is_no_database_is_named(tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "state.db").write_bytes(b"nonsense" * 1000)
    with pytest.raises(AssertionError, match=r"state\.db: .*not a database.*move it away"):
        RunningCluster(tmp_path, *arguments(tmp_path)).start()


def test_a_journal_that_is_stuck_before_its_first_turn_is_not_taken_for_resting(tmp_path, monkeypatch):
    released = threading.Event()
    monkeypatch.setattr(journal.Journal, "_run", lambda _: released.wait())

    async def play():
        store = ObjectStore(lambda: 0)
        kept = journal.open_journal(tmp_path, store)
        assert kept.rests
        kept.restore(cluster.Cluster(store, lambda: 0))
        assert (kept.turns, kept.rests) == (0, False)
        released.set()
        kept.close()
        assert kept.rests

    asyncio.run(play())
